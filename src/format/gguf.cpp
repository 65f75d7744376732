#include "gridscope/format/gguf.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <limits>
#include <utility>
#include <vector>

#include "gridscope/core/checked.hpp"
#include "gridscope/core/endian.hpp"
#include "gridscope/core/text.hpp"
#include "gridscope/format/container.hpp"
#include "gridscope/format/forward_reader.hpp"

// A GGUF header does not say how long it is, so it is read from front to back. Every count is held
// against the bytes that are left before anything is done for it: a key, an array element and a
// tensor each take a known minimum of bytes.

namespace gridscope::format {
namespace {

// ggml's own limits.
constexpr std::uint64_t kMaxStringBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kMaxArrayElements = std::uint64_t{1} << 30;
constexpr std::size_t kMaxTensorNameBytes = 63;
constexpr std::uint32_t kMaxDimensions = 4;
constexpr std::uint64_t kMaxElements = std::numeric_limits<std::int64_t>::max();

constexpr std::uint64_t kMinKeyBytes = 8 + 1 + 4 + 1;         // name of one byte, type, value
constexpr std::uint64_t kMinTensorBytes = 8 + 0 + 4 + 4 + 8;  // name, rank, type, offset

constexpr std::string_view kFetchAgain = "the file is incomplete or damaged: fetch it again";
constexpr std::string_view kConvertAgain = "convert the model again with a current llama.cpp";

tl::unexpected<Error> corrupt(std::string message, std::string_view remedy = kConvertAgain) {
  return fail(ErrorCode::kCorrupt, std::move(message), std::string(remedy));
}

// Types of metadata values, by number.
enum class ValueType : std::uint8_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};

struct ValueTypeInfo {
  std::string_view name;
  std::uint64_t min_bytes;  // of one value
};

constexpr std::array kValueTypes = std::to_array<ValueTypeInfo>({
    {"u8", 1},
    {"i8", 1},
    {"u16", 2},
    {"i16", 2},
    {"u32", 4},
    {"i32", 4},
    {"f32", 4},
    {"bool", 1},
    {"string", 8},
    {"array", 12},
    {"u64", 8},
    {"i64", 8},
    {"f64", 8},
});

// ggml's tensor types, by number; the empty ones were removed from it.
constexpr std::optional<Dtype> kRemoved;
constexpr std::array kTensorTypes = std::to_array<std::optional<Dtype>>({
    Dtype::kF32,     Dtype::kF16,   Dtype::kQ4_0,   Dtype::kQ4_1,  kRemoved,        kRemoved,
    Dtype::kQ5_0,    Dtype::kQ5_1,  Dtype::kQ8_0,   Dtype::kQ8_1,  Dtype::kQ2_K,    Dtype::kQ3_K,
    Dtype::kQ4_K,    Dtype::kQ5_K,  Dtype::kQ6_K,   Dtype::kQ8_K,  Dtype::kIQ2_XXS, Dtype::kIQ2_XS,
    Dtype::kIQ3_XXS, Dtype::kIQ1_S, Dtype::kIQ4_NL, Dtype::kIQ3_S, Dtype::kIQ2_S,   Dtype::kIQ4_XS,
    Dtype::kI8,      Dtype::kI16,   Dtype::kI32,    Dtype::kI64,   Dtype::kF64,     Dtype::kIQ1_M,
    Dtype::kBF16,    kRemoved,      kRemoved,       kRemoved,      Dtype::kTQ1_0,   Dtype::kTQ2_0,
    kRemoved,        kRemoved,      kRemoved,       Dtype::kMXFP4, Dtype::kNVFP4,   Dtype::kQ1_0,
    Dtype::kQ2_0,
});
static_assert(kTensorTypes.size() == 43);

// A value of the metadata.
struct Value {
  ValueType type;
  std::string text;
  std::optional<std::uint64_t> whole = std::nullopt;  // of an integer that is not negative
};

class GgufParser {
 public:
  GgufParser(const io::ByteSource& source, const Limits& limits)
      : limits_(limits), file_bytes_(source.size()), reader_(source, limits.header_bytes) {}

  Result<GgufHeader> parse() {
    GRIDSCOPE_CHECK(read_version());
    GRIDSCOPE_TRY(const std::uint64_t tensors, read_count("tensor count", kMinTensorBytes));
    if (tensors > limits_.tensors) {
      return over_limit(&Limits::tensors,
                        fmt::format("{} tensors, the limit is {}", tensors, limits_.tensors));
    }
    GRIDSCOPE_TRY(const std::uint64_t keys, read_count("key count", kMinKeyBytes));
    for (std::uint64_t i = 0; i < keys; ++i) GRIDSCOPE_CHECK(read_key());
    GRIDSCOPE_CHECK(check_key_names());
    for (std::uint64_t i = 0; i < tensors; ++i) GRIDSCOPE_CHECK(read_tensor());
    GRIDSCOPE_CHECK(check_tensor_names());
    GRIDSCOPE_CHECK(place_tensors());
    GRIDSCOPE_CHECK(set_split());
    return std::move(header_);
  }

 private:
  Status read_version();
  Result<std::uint64_t> read_count(std::string_view what, std::uint64_t min_bytes);

  Status read_key();
  Result<Value> read_value(const std::string& what);
  Result<ValueType> read_value_type(const std::string& what);
  Result<std::uint64_t> read_length(std::string_view what);
  Result<std::string> read_string(std::string_view what);
  Result<Value> read_array(const std::string& what);
  Status skip_elements(ValueType type, std::uint64_t count, const std::string& what);
  template <std::integral T>
  Result<Value> read_integer(ValueType type, const std::string& what);
  Result<Value> read_bool(const std::string& what);
  Status use_key(std::string_view key, const Value& value);
  Status set_alignment(const Value& value);

  Status read_tensor();
  Result<std::vector<std::uint64_t>> read_dimensions(const std::string& what);
  Result<Dtype> read_tensor_type(const std::string& what);

  [[nodiscard]] Status check_key_names() const;
  [[nodiscard]] Status check_tensor_names() const;
  Status place_tensors();
  Status set_split();

  const Limits& limits_;
  const std::uint64_t file_bytes_;
  ForwardReader reader_;
  GgufHeader header_;
  std::optional<std::uint64_t> split_number_;
  std::optional<std::uint64_t> split_count_;
  std::optional<std::uint64_t> split_tensors_;
};

Status GgufParser::read_version() {
  constexpr std::string_view kMagic = "GGUF";
  GRIDSCOPE_CHECK(reader_.need(kMagic.size(), "GGUF magic"));
  if (auto other = other_container_error(Container::kGguf, reader_.buffered(), "", file_bytes_)) {
    return tl::make_unexpected(*std::move(other));
  }
  GRIDSCOPE_TRY(const auto magic, reader_.number<std::uint32_t>("GGUF magic"));
  if (magic != load_le<std::uint32_t>(std::as_bytes(std::span(kMagic)))) {
    return corrupt(fmt::format("expected the bytes \"GGUF\" at byte 0, found 0x{:08X}", magic));
  }
  GRIDSCOPE_TRY(header_.version, reader_.number<std::uint32_t>("GGUF version"));
  if (header_.version == 2 || header_.version == 3) return {};
  return fail(header_.version == 0 ? ErrorCode::kCorrupt : ErrorCode::kUnsupported,
              fmt::format("GGUF version {} at byte 4, expected 2 or 3", header_.version),
              std::string(kConvertAgain));
}

// A count is signed in the file; so many things must still fit in behind it.
Result<std::uint64_t> GgufParser::read_count(std::string_view what, std::uint64_t min_bytes) {
  const std::uint64_t position = reader_.position();
  GRIDSCOPE_TRY(const auto count, reader_.number<std::int64_t>(what));
  if (count < 0) {
    return corrupt(fmt::format("{} at byte {} is negative: {}", what, position, count));
  }
  const auto number = static_cast<std::uint64_t>(count);
  if (number > reader_.remaining() / min_bytes) {
    return corrupt(fmt::format("{} at byte {} is {}, more than the {} bytes behind it can hold",
                               what, position, number, reader_.remaining()),
                   kFetchAgain);
  }
  return number;
}

Result<std::uint64_t> GgufParser::read_length(std::string_view what) {
  const std::uint64_t position = reader_.position();
  GRIDSCOPE_TRY(const auto length, reader_.number<std::uint64_t>(what));
  if (length > reader_.remaining()) {
    return corrupt(fmt::format("{} at byte {} is a string of {} bytes, but only {} follow", what,
                               position, length, reader_.remaining()),
                   kFetchAgain);
  }
  if (length <= kMaxStringBytes) return length;
  return fail(ErrorCode::kLimit,
              fmt::format("{} at byte {} is a string of {} bytes, the limit is {}", what, position,
                          length, kMaxStringBytes),
              std::string(kConvertAgain));
}

Result<std::string> GgufParser::read_string(std::string_view what) {
  GRIDSCOPE_TRY(const std::uint64_t length, read_length(what));
  GRIDSCOPE_TRY(const auto bytes, reader_.bytes(length, what));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Status GgufParser::read_key() {
  const std::uint64_t position = reader_.position();
  GRIDSCOPE_TRY(std::string key, read_string("key"));
  if (key.empty()) return corrupt(fmt::format("key at byte {} is empty", position));
  if (key.size() > limits_.name_bytes) {
    return over_limit(&Limits::name_bytes,
                      fmt::format("key at byte {} of {} bytes, the limit is {}", position,
                                  key.size(), limits_.name_bytes));
  }
  GRIDSCOPE_TRY(Value value, read_value("value of key " + quote(key)));
  GRIDSCOPE_CHECK(use_key(key, value));
  header_.table.metadata.emplace_back(std::move(key), std::move(value.text));
  return {};
}

Result<ValueType> GgufParser::read_value_type(const std::string& what) {
  const std::uint64_t position = reader_.position();
  GRIDSCOPE_TRY(const auto type, reader_.number<std::uint32_t>(what));
  if (type < kValueTypes.size()) return static_cast<ValueType>(type);
  return corrupt(fmt::format("{}: unknown value type {} at byte {}", what, type, position));
}

template <std::integral T>
Result<Value> GgufParser::read_integer(ValueType type, const std::string& what) {
  GRIDSCOPE_TRY(const T value, reader_.number<T>(what));
  Value result{.type = type, .text = std::to_string(value)};
  if (std::in_range<std::uint64_t>(value)) result.whole = static_cast<std::uint64_t>(value);
  return result;
}

Result<Value> GgufParser::read_bool(const std::string& what) {
  GRIDSCOPE_TRY(const auto byte, reader_.number<std::uint8_t>(what));
  if (byte > 1) ++header_.odd_bools;
  return Value{.type = ValueType::kBool, .text = byte != 0 ? "true" : "false"};
}

Result<Value> GgufParser::read_value(const std::string& what) {
  GRIDSCOPE_TRY(const ValueType type, read_value_type(what));
  switch (type) {
    case ValueType::kU8:
      return read_integer<std::uint8_t>(type, what);
    case ValueType::kI8:
      return read_integer<std::int8_t>(type, what);
    case ValueType::kU16:
      return read_integer<std::uint16_t>(type, what);
    case ValueType::kI16:
      return read_integer<std::int16_t>(type, what);
    case ValueType::kU32:
      return read_integer<std::uint32_t>(type, what);
    case ValueType::kI32:
      return read_integer<std::int32_t>(type, what);
    case ValueType::kU64:
      return read_integer<std::uint64_t>(type, what);
    case ValueType::kI64:
      return read_integer<std::int64_t>(type, what);
    case ValueType::kBool:
      return read_bool(what);
    case ValueType::kArray:
      return read_array(what);
    case ValueType::kF32: {
      GRIDSCOPE_TRY(const auto bits, reader_.number<std::uint32_t>(what));
      return Value{.type = type, .text = fmt::format("{}", std::bit_cast<float>(bits))};
    }
    case ValueType::kF64: {
      GRIDSCOPE_TRY(const auto bits, reader_.number<std::uint64_t>(what));
      return Value{.type = type, .text = fmt::format("{}", std::bit_cast<double>(bits))};
    }
    case ValueType::kString: {
      GRIDSCOPE_TRY(std::string text, read_string(what));
      return Value{.type = type, .text = std::move(text)};
    }
  }
  return fail(ErrorCode::kInternal, "value type without a reader");
}

Result<Value> GgufParser::read_array(const std::string& what) {
  const std::uint64_t position = reader_.position();
  GRIDSCOPE_TRY(const ValueType type, read_value_type(what));
  if (type == ValueType::kArray) {
    return fail(ErrorCode::kUnsupported,
                fmt::format("{} at byte {} is an array of arrays, which ggml does not read", what,
                            position),
                std::string(kConvertAgain));
  }
  GRIDSCOPE_TRY(const auto count, reader_.number<std::uint64_t>(what));
  const auto [name, min_bytes] = kValueTypes[static_cast<std::size_t>(type)];
  if (count > reader_.remaining() / min_bytes) {
    return corrupt(
        fmt::format("{} at byte {} is an array of {} of type {}, more than the {} bytes "
                    "behind it can hold",
                    what, position, count_of(count, "element"), name, reader_.remaining()),
        kFetchAgain);
  }
  if (count > kMaxArrayElements) {
    return fail(ErrorCode::kLimit,
                fmt::format("{} at byte {} is an array of {} elements, the limit is {}", what,
                            position, count, kMaxArrayElements),
                std::string(kConvertAgain));
  }
  GRIDSCOPE_CHECK(skip_elements(type, count, what));
  return Value{.type = ValueType::kArray, .text = fmt::format("[{}; {}]", name, count)};
}

Status GgufParser::skip_elements(ValueType type, std::uint64_t count, const std::string& what) {
  if (type == ValueType::kString) {
    for (std::uint64_t i = 0; i < count; ++i) {
      GRIDSCOPE_TRY(const std::uint64_t length, read_length(what));
      GRIDSCOPE_CHECK(reader_.skip(length, what));
    }
    return {};
  }
  if (type == ValueType::kBool) {
    for (std::uint64_t i = 0; i < count; ++i) GRIDSCOPE_CHECK(read_bool(what));
    return {};
  }
  return reader_.skip(count * kValueTypes[static_cast<std::size_t>(type)].min_bytes, what);
}

// The keys that say how the file itself is to be read.
Status GgufParser::use_key(std::string_view key, const Value& value) {
  if (key == "general.alignment") return set_alignment(value);
  const std::array<std::pair<std::string_view, std::optional<std::uint64_t>*>, 3> split_keys = {
      {{"split.no", &split_number_},
       {"split.count", &split_count_},
       {"split.tensors.count", &split_tensors_}}};
  for (const auto& [name, slot] : split_keys) {
    if (key != name) continue;
    if (!value.whole) {
      return corrupt(
          fmt::format("key {} is {}, expected a whole number", name, printable(value.text)));
    }
    *slot = value.whole;
  }
  return {};
}

Status GgufParser::set_alignment(const Value& value) {
  const std::uint64_t alignment = value.whole.value_or(0);
  if (value.type != ValueType::kU32 || !std::has_single_bit(alignment)) {
    return corrupt(
        fmt::format("general.alignment is {} of type {}, expected a power of two of "
                    "type u32",
                    printable(value.text), kValueTypes[static_cast<std::size_t>(value.type)].name));
  }
  header_.alignment = alignment;
  return {};
}

// Leaves `offset` as the file has it: counted from the start of the data.
Status GgufParser::read_tensor() {
  const std::uint64_t position = reader_.position();
  GRIDSCOPE_TRY(std::string name, read_string("tensor name"));
  const std::string what = "tensor " + quote(name);
  if (name.size() > kMaxTensorNameBytes) {
    return corrupt(fmt::format("{} at byte {} has a name of {} bytes, ggml reads up to {}", what,
                               position, name.size(), kMaxTensorNameBytes));
  }
  TensorInfo tensor;
  tensor.name = std::move(name);
  GRIDSCOPE_TRY(tensor.shape, read_dimensions(what));
  GRIDSCOPE_TRY(tensor.dtype, read_tensor_type(what));
  GRIDSCOPE_TRY(tensor.offset, reader_.number<std::uint64_t>(what));
  const std::uint64_t block = dtype_info(tensor.dtype).block_elements;
  const std::uint64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (row % block != 0) {
    return corrupt(fmt::format("{} has rows of {} elements, no multiple of the {} in a {} block",
                               what, row, block, dtype_name(tensor.dtype)));
  }
  const auto bytes = storage_bytes(tensor.dtype, tensor.elements());
  if (!bytes) return corrupt(what + " has more than 2^64-1 bits");
  tensor.bytes = *bytes;
  header_.table.tensors.push_back(std::move(tensor));
  return {};
}

// GGUF puts the contiguous dimension first; here it comes last.
Result<std::vector<std::uint64_t>> GgufParser::read_dimensions(const std::string& what) {
  const std::uint64_t position = reader_.position();
  GRIDSCOPE_TRY(const auto rank, reader_.number<std::uint32_t>(what));
  if (rank > kMaxDimensions) {
    return corrupt(fmt::format("{} has {} dimensions at byte {}, expected at most {}", what, rank,
                               position, kMaxDimensions));
  }
  std::vector<std::uint64_t> shape(rank);
  std::uint64_t elements = 1;
  for (std::uint64_t& dimension : shape) {
    GRIDSCOPE_TRY(const auto number, reader_.number<std::int64_t>(what));
    if (number < 0) return corrupt(fmt::format("{} has a dimension of {}", what, number));
    dimension = static_cast<std::uint64_t>(number);
    const auto product = checked_mul(elements, dimension);
    if (!product || *product > kMaxElements) {
      return corrupt(fmt::format("{} has more than 2^63-1 elements", what));
    }
    elements = *product;
  }
  std::ranges::reverse(shape);
  return shape;
}

Result<Dtype> GgufParser::read_tensor_type(const std::string& what) {
  const std::uint64_t position = reader_.position();
  GRIDSCOPE_TRY(const auto type, reader_.number<std::uint32_t>(what));
  const bool known = type < kTensorTypes.size();
  const std::optional<Dtype> dtype = known ? kTensorTypes[type] : std::nullopt;
  if (dtype) return *dtype;
  return fail(ErrorCode::kUnsupported,
              fmt::format("{} has type number {} at byte {}, which ggml {}", what, type, position,
                          known ? "no longer reads" : "had not given out yet"),
              known ? std::string(kConvertAgain) : "look for a newer gridscope");
}

Status GgufParser::check_key_names() const {
  std::vector<std::string_view> names;
  names.reserve(header_.table.metadata.size());
  for (const auto& [key, value] : header_.table.metadata) names.emplace_back(key);
  if (const auto at = find_repeated(names)) {
    return corrupt(fmt::format("key {} is given twice", quote(names[*at])));
  }
  return {};
}

Status GgufParser::check_tensor_names() const {
  std::vector<std::string_view> names;
  names.reserve(header_.table.tensors.size());
  for (const TensorInfo& tensor : header_.table.tensors) names.emplace_back(tensor.name);
  if (const auto at = find_repeated(names)) {
    return corrupt(fmt::format("tensor {} is given twice", quote(names[*at])));
  }
  return {};
}

// The first multiple of `alignment`, a power of two, that is not below `offset`. Past 2^64 it is
// some number that no file reaches.
std::uint64_t align_up(std::uint64_t offset, std::uint64_t alignment) {
  constexpr auto kFarAway = std::numeric_limits<std::uint64_t>::max();
  return checked_add(offset, alignment - 1).value_or(kFarAway) & ~(alignment - 1);
}

// Tensors follow each other in the order of their infos, each on a multiple of the alignment. The
// padding behind the last one may be missing.
Status GgufParser::place_tensors() {
  const std::uint64_t data_start = align_up(reader_.position(), header_.alignment);
  std::uint64_t expected = 0;
  for (TensorInfo& tensor : header_.table.tensors) {
    if (tensor.offset != expected) {
      return corrupt(fmt::format("tensor {} lies at data offset {}, expected {}",
                                 quote(tensor.name), tensor.offset, expected));
    }
    const auto begin = checked_add(data_start, tensor.offset);
    const auto end = begin ? checked_add(*begin, tensor.bytes) : std::nullopt;
    if (!end || *end > file_bytes_) {
      return corrupt(
          fmt::format("tensor {} takes {} bytes at data offset {}; the data starts at "
                      "byte {} and the file has {}",
                      quote(tensor.name), tensor.bytes, tensor.offset, data_start, file_bytes_),
          kFetchAgain);
    }
    expected = align_up(tensor.offset + tensor.bytes, header_.alignment);
    tensor.offset = *begin;
  }
  header_.table.header_bytes = std::min(data_start, file_bytes_);
  return {};
}

// A file that was merged from parts says that it has none.
Status GgufParser::set_split() {
  const std::uint64_t own = header_.table.tensors.size();
  const std::uint64_t count = split_count_.value_or(0);
  if (count == 0) return {};
  if (count > limits_.shards) {
    return over_limit(&Limits::shards,
                      fmt::format("split.count is {}, the limit is {}", count, limits_.shards));
  }
  if (count > 1 && (!split_number_ || !split_tensors_)) {
    return corrupt("a split file needs the keys split.no and split.tensors.count");
  }
  const std::uint64_t number = split_number_.value_or(0);
  const std::uint64_t tensors = split_tensors_.value_or(own);
  if (number >= count) {
    return corrupt(
        fmt::format("split.no is {}, expected less than split.count, {}", number, count));
  }
  if (tensors < own) {
    return corrupt(
        fmt::format("split.tensors.count is {}, but this file alone has {}", tensors, own));
  }
  header_.split = GgufSplit{.number = static_cast<std::uint32_t>(number),
                            .count = static_cast<std::uint32_t>(count),
                            .tensors = tensors};
  return {};
}

}  // namespace

Result<GgufHeader> read_gguf_header(const io::ByteSource& source, const Limits& limits) {
  return GgufParser(source, limits).parse();
}

}  // namespace gridscope::format
