#include "gridscope/format/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gridscope/core/checked.hpp"
#include "gridscope/core/endian.hpp"
#include "gridscope/core/json.hpp"
#include "gridscope/core/text.hpp"
#include "gridscope/format/container.hpp"

// The JSON is read as events straight into the table; no document tree is built. Sorting the
// tensors by their offsets turns the search for holes and overlaps into one pass over neighbours.

namespace gridscope::format {
namespace {

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::string_view kMetadataKey = "__metadata__";
constexpr std::string_view kFetchAgain = "the file is incomplete or damaged: fetch it again";
constexpr std::string_view kWriteAgain = "write the file again with a current safetensors library";

tl::unexpected<Error> corrupt(std::string message, std::string_view remedy = kWriteAgain) {
  return fail(ErrorCode::kCorrupt, std::move(message), std::string(remedy));
}

// A tensor as the header writes it: offsets count from the end of the header.
struct Entry {
  TensorInfo info;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// Takes the events of a header apart. What a value means is told by the place where it stands:
//
//   { "__metadata__": { key: string, ... }, name: { field: value, ... }, ... }
class HeaderHandler final : public JsonHandler {
 public:
  explicit HeaderHandler(const Limits& limits) : limits_(limits) {}

  std::vector<Entry> entries;  // as written
  std::vector<std::pair<std::string, std::string>> metadata;

  Status on_null() override {
    return place_ == Place::kTop && at_metadata_ ? Status() : other("null");
  }
  Status on_bool(bool value) override { return other(value ? "true" : "false"); }
  Status on_signed(std::int64_t value) override {
    return other(value == 0 ? "-0" : std::to_string(value));
  }
  Status on_real(double /*value*/, std::string_view text) override { return other(text); }

  Status on_unsigned(std::uint64_t value) override {
    if (place_ == Place::kShape) return add_dimension(value);
    if (place_ == Place::kOffsets) return add_offset(value);
    return other(std::to_string(value));
  }

  Status on_string(std::string_view value) override {
    if (place_ == Place::kMetadata) {
      metadata.back().second = value;
      return {};
    }
    if (place_ == Place::kTensor && field_ == kDtype) return set_dtype(value);
    return other(quote(value));
  }

  Status on_key(std::string_view key) override {
    switch (place_) {
      case Place::kTop:
        return begin_member(key);
      case Place::kMetadata:
        metadata.emplace_back(key, "");
        return {};
      case Place::kTensor:
        return begin_field(key);
      default:
        return {};
    }
  }

  Status on_begin_object() override {
    switch (place_) {
      case Place::kStart:
        place_ = Place::kTop;
        return {};
      case Place::kTop:
        place_ = at_metadata_ ? Place::kMetadata : Place::kTensor;
        fields_ = 0;
        offsets_ = 0;
        return {};
      default:
        return begin_ignored("an object");
    }
  }

  Status on_end_object() override {
    switch (place_) {
      case Place::kMetadata:
        place_ = Place::kTop;
        return {};
      case Place::kTensor:
        place_ = Place::kTop;
        return check_fields();
      default:
        return end_ignored();
    }
  }

  Status on_begin_array() override {
    if (place_ == Place::kTensor && field_ == kShape) {
      place_ = Place::kShape;
      return {};
    }
    if (place_ == Place::kTensor && field_ == kOffsets) {
      place_ = Place::kOffsets;
      return {};
    }
    return begin_ignored("an array");
  }

  Status on_end_array() override {
    if (place_ != Place::kShape && place_ != Place::kOffsets) return end_ignored();
    const bool short_offsets = place_ == Place::kOffsets && offsets_ != 2;
    place_ = Place::kTensor;
    return short_offsets
               ? corrupt(fmt::format("{}: expected two numbers, found {}", subject(), offsets_))
               : Status();
  }

 private:
  enum class Place : std::uint8_t { kStart, kTop, kMetadata, kTensor, kShape, kOffsets, kIgnored };
  // The fields of a tensor, each a bit of fields_.
  enum Field : unsigned { kOther = 0, kDtype = 1, kShape = 2, kOffsets = 4, kAll = 7 };

  Status begin_member(std::string_view name) {
    at_metadata_ = name == kMetadataKey;
    if (at_metadata_) {
      if (std::exchange(seen_metadata_, true)) {
        return corrupt(fmt::format("{} is given twice", kMetadataKey));
      }
      return {};
    }
    if (name.size() > limits_.name_bytes) {
      return over_limit(&Limits::name_bytes,
                        fmt::format("tensor name of {} bytes, the limit is {}: {}", name.size(),
                                    limits_.name_bytes, quote(name)));
    }
    if (entries.size() >= limits_.tensors) {
      return over_limit(&Limits::tensors, fmt::format("more than {} tensors", limits_.tensors));
    }
    entries.emplace_back().info.name = name;
    return {};
  }

  Status begin_field(std::string_view name) {
    field_ = name == "dtype"          ? kDtype
             : name == "shape"        ? kShape
             : name == "data_offsets" ? kOffsets
                                      : kOther;
    if ((fields_ & field_) != 0) return corrupt(subject() + " is given twice");
    fields_ |= field_;
    return {};
  }

  Status set_dtype(std::string_view name) {
    const auto dtype = safetensors_dtype(name);
    if (!dtype) {
      return corrupt(fmt::format("{}: unknown type {}", subject(), quote(name)),
                     "check the spelling (types are upper case, as in BF16), or whether this type "
                     "is newer than gridscope");
    }
    entries.back().info.dtype = *dtype;
    return {};
  }

  Status add_dimension(std::uint64_t value) {
    auto& shape = entries.back().info.shape;
    if (shape.size() >= limits_.rank) {
      return over_limit(&Limits::rank,
                        fmt::format("{}: more than {} dimensions", subject(), limits_.rank));
    }
    shape.push_back(value);
    return {};
  }

  Status add_offset(std::uint64_t value) {
    switch (++offsets_) {
      case 1:
        entries.back().begin = value;
        return {};
      case 2:
        entries.back().end = value;
        return {};
      default:
        return corrupt(subject() + ": expected two numbers, found more");
    }
  }

  Status check_fields() {
    for (const auto& [field, name] : {std::pair(kDtype, "dtype"), std::pair(kShape, "shape"),
                                      std::pair(kOffsets, "data_offsets")}) {
      if ((fields_ & field) == 0) return corrupt(fmt::format("{} has no {}", tensor(), name));
    }
    return {};
  }

  // Fields that the format does not define may hold anything.
  Status begin_ignored(std::string_view found) {
    if (place_ == Place::kTensor && field_ == kOther) place_ = Place::kIgnored;
    if (place_ != Place::kIgnored) return other(found);
    ++ignored_depth_;
    return {};
  }

  Status end_ignored() {
    if (place_ == Place::kIgnored && --ignored_depth_ == 0) place_ = Place::kTensor;
    return {};
  }

  // A value that is not what the format wants in its place.
  Status other(std::string_view found) {
    if (place_ == Place::kIgnored || (place_ == Place::kTensor && field_ == kOther)) return {};
    return corrupt(fmt::format("{}: expected {}, found {}", subject(), expected(), found));
  }

  [[nodiscard]] std::string tensor() const { return "tensor " + quote(entries.back().info.name); }

  // What the value stands for.
  [[nodiscard]] std::string subject() const {
    switch (place_) {
      case Place::kStart:
        return "top level";
      case Place::kTop:
        return at_metadata_ ? std::string(kMetadataKey) : tensor();
      case Place::kMetadata:
        return fmt::format("{} {}", kMetadataKey, quote(metadata.back().first));
      default:
        break;
    }
    return fmt::format("{} of {}",
                       field_ == kDtype   ? "dtype"
                       : field_ == kShape ? "shape"
                                          : "data_offsets",
                       tensor());
  }

  [[nodiscard]] std::string_view expected() const {
    switch (place_) {
      case Place::kStart:
      case Place::kTop:
        return "an object";
      case Place::kMetadata:
        return "a string";
      case Place::kTensor:
        return field_ == kDtype ? "a string" : field_ == kShape ? "an array" : "an array of two";
      default:
        return "a whole number from 0 to 2^64-1";
    }
  }

  const Limits& limits_;
  Place place_ = Place::kStart;
  bool at_metadata_ = false;  // the member of the header that is read is __metadata__
  bool seen_metadata_ = false;
  Field field_ = kOther;
  unsigned fields_ = 0;   // of the current tensor
  unsigned offsets_ = 0;  // of the current tensor
  std::size_t ignored_depth_ = 0;
};

template <typename Range, typename Projection>
std::optional<std::size_t> find_repeated_name(const Range& range, Projection name_of) {
  std::vector<std::string_view> names;
  names.reserve(range.size());
  for (const auto& item : range) names.push_back(name_of(item));
  return find_repeated(names);
}

Status check_names(const HeaderHandler& handler) {
  if (const auto at = find_repeated_name(
          handler.entries, [](const Entry& e) -> std::string_view { return e.info.name; })) {
    return corrupt(fmt::format("tensor {} is given twice", quote(handler.entries[*at].info.name)));
  }
  if (const auto at = find_repeated_name(
          handler.metadata, [](const auto& pair) -> std::string_view { return pair.first; })) {
    return corrupt(
        fmt::format("{} {} is given twice", kMetadataKey, quote(handler.metadata[*at].first)));
  }
  return {};
}

// Bytes that the tensor's type and shape need. The product is taken from left to right, so that a
// dimension of zero saves only what comes after it: the order of the reference.
Result<std::uint64_t> needed_bytes(const TensorInfo& tensor) {
  const auto what = [&] {
    return fmt::format("tensor {} of type {} and shape [{}]", quote(tensor.name),
                       dtype_name(tensor.dtype), fmt::join(tensor.shape, ", "));
  };
  std::optional<std::uint64_t> count = 1;
  for (const std::uint64_t dimension : tensor.shape) {
    count = checked_mul(*count, dimension);
    if (!count) return corrupt(what() + " has more than 2^64-1 elements");
  }
  if (const auto bytes = storage_bytes(tensor.dtype, *count)) return *bytes;
  const std::uint64_t element_bits = dtype_info(tensor.dtype).block_bits;
  if (!checked_mul(*count, element_bits)) return corrupt(what() + " has more than 2^64-1 bits");
  return corrupt(fmt::format("{} has {} of {} bits, which do not end on a byte", what(),
                             count_of(*count, "element"), element_bits));
}

// Holes and overlaps show where a tensor does not start at the end of the one before it.
Status check_start(const Entry& entry, std::uint64_t previous_end) {
  const auto report = [&](std::string_view problem) {
    return corrupt(
        fmt::format("tensor {} has data_offsets [{}, {}], expected it to start at {}: {}",
                    quote(entry.info.name), entry.begin, entry.end, previous_end, problem));
  };
  if (entry.begin > previous_end) return report("bytes that belong to no tensor lie before it");
  if (entry.begin < previous_end) return report("it overlaps the tensor before it");
  if (entry.end < entry.begin) return report("it ends before it starts");
  return {};
}

Status check_entry(const Entry& entry, std::uint64_t previous_end) {
  GRIDSCOPE_CHECK(check_start(entry, previous_end));
  GRIDSCOPE_TRY(const std::uint64_t needed, needed_bytes(entry.info));
  if (entry.end - entry.begin == needed) return {};
  return corrupt(fmt::format(
      "tensor {} of type {} and shape [{}] needs {} bytes, its data_offsets [{}, {}] hold {}",
      quote(entry.info.name), dtype_name(entry.info.dtype), fmt::join(entry.info.shape, ", "),
      needed, entry.begin, entry.end, entry.end - entry.begin));
}

// Where each tensor stands in `entries`, by offset: those without bytes before the one that starts
// in the same place, else as written.
std::vector<std::size_t> in_order_of_offset(const std::vector<Entry>& entries) {
  std::vector<std::size_t> order(entries.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {},
                    [&](std::size_t i) { return std::tuple(entries[i].begin, entries[i].end, i); });
  return order;
}

// Checks that the tensors tile the data, and gives them their place in the file.
Status place_tensors(std::vector<Entry>&& entries, std::uint64_t file_bytes, TensorTable& table) {
  table.tensors.reserve(entries.size());
  std::uint64_t data_bytes = 0;
  for (const std::size_t i : in_order_of_offset(entries)) {
    Entry& entry = entries[i];
    GRIDSCOPE_CHECK(check_entry(entry, data_bytes));
    entry.info.offset = table.header_bytes + entry.begin;
    entry.info.bytes = entry.end - entry.begin;
    data_bytes = entry.end;
    table.tensors.push_back(std::move(entry.info));
  }
  // Cannot overflow: the bits of every tensor fit 64 bits, so their bytes leave room.
  const std::uint64_t expected = table.header_bytes + data_bytes;
  if (expected == file_bytes) return {};
  const std::string difference = expected > file_bytes
                                     ? count_of(expected - file_bytes, "byte") + " missing"
                                     : count_of(file_bytes - expected, "byte") + " too many";
  return corrupt(fmt::format("header and tensors take {} bytes, the file has {}: {}", expected,
                             file_bytes, difference),
                 kFetchAgain);
}

// What the JSON reader says, with what to do about it. The length is checked before: of limits,
// only that of depth is its own.
Error explained(Error error) {
  if (error.remedy.empty()) {
    error.remedy = error.code == ErrorCode::kLimit ? limit_remedy(&Limits::json_depth)
                                                   : std::string(kFetchAgain);
  }
  return with_context(std::move(error), "header");
}

// What a person sees at a glance: a web page, an error in JSON, noise.
std::string show_start(std::span<const std::byte> start) {
  const auto shown = start.first(std::min<std::size_t>(start.size(), 16));
  return "most likely this is no safetensors file: it starts with " +
         quote({reinterpret_cast<const char*>(shown.data()), shown.size()});
}

// Whether the length is one that files do have, with the JSON object where it belongs: then it is
// the caller's limit that is narrow.
bool is_plausible(std::uint64_t header_bytes, std::span<const std::byte> start) {
  return header_bytes <= Limits{}.header_bytes && start.size() > kLengthBytes &&
         start[kLengthBytes] == std::byte{'{'};
}

// A length that cannot be: a file of another kind is better named than measured.
tl::unexpected<Error> bad_length(Error error, std::span<const std::byte> start,
                                 std::uint64_t file_bytes) {
  const auto other = other_container_error(Container::kSafetensors, start, "", file_bytes);
  return tl::make_unexpected(other.value_or(std::move(error)));
}

}  // namespace

Result<std::uint64_t> safetensors_header_length(std::span<const std::byte> start,
                                                std::uint64_t file_bytes, const Limits& limits) {
  if (start.size() < kLengthBytes || file_bytes < kLengthBytes) {
    return corrupt(fmt::format("file of {} bytes, expected at least the {} of the header length",
                               file_bytes, kLengthBytes),
                   kFetchAgain);
  }
  const auto header_bytes = load_le<std::uint64_t>(start);
  if (header_bytes > limits.header_bytes) {
    return bad_length({ErrorCode::kLimit,
                       fmt::format("header length {} at byte 0, the limit is {}", header_bytes,
                                   limits.header_bytes),
                       is_plausible(header_bytes, start) ? limit_remedy(&Limits::header_bytes)
                                                         : show_start(start)},
                      start, file_bytes);
  }
  const std::uint64_t rest = file_bytes - kLengthBytes;
  if (header_bytes > rest) {
    return bad_length(
        {ErrorCode::kCorrupt,
         fmt::format("header length {} at byte 0, but only {} bytes follow", header_bytes, rest),
         std::string(kFetchAgain)},
        start, file_bytes);
  }
  if (header_bytes == 0) return corrupt("header length 0 at byte 0: there is no header");
  return header_bytes;
}

Result<TensorTable> parse_safetensors_header(std::span<const std::byte> header,
                                             std::uint64_t file_bytes, const Limits& limits) {
  const std::string_view text(reinterpret_cast<const char*>(header.data()), header.size());
  if (const auto valid = valid_utf8_prefix(text); valid != text.size()) {
    return corrupt(fmt::format("header is not UTF-8 at byte {} of the file", kLengthBytes + valid));
  }
  HeaderHandler handler(limits);
  if (Status read = read_json(header, handler,
                              {.max_depth = limits.json_depth,
                               .max_bytes = limits.header_bytes,
                               .first_byte = kLengthBytes},
                              DuplicateKeys::kReport);
      !read) {
    return tl::make_unexpected(explained(std::move(read).error()));
  }
  GRIDSCOPE_CHECK(check_names(handler));
  TensorTable table{.header_bytes = kLengthBytes + header.size(),
                    .tensors = {},
                    .metadata = std::move(handler.metadata)};
  GRIDSCOPE_CHECK(place_tensors(std::move(handler.entries), file_bytes, table));
  return table;
}

Result<TensorTable> read_safetensors_header(const io::ByteSource& source, const Limits& limits) {
  const std::uint64_t file_bytes = source.size();
  std::vector<std::byte> start(std::min(file_bytes, kSpeculativeBytes));
  GRIDSCOPE_CHECK(source.read_at(0, start));
  GRIDSCOPE_TRY(const std::uint64_t header_bytes,
                safetensors_header_length(start, file_bytes, limits));
  const std::size_t got = start.size();
  const std::uint64_t end = kLengthBytes + header_bytes;
  if (end > got) {
    start.resize(end);
    GRIDSCOPE_CHECK(source.read_at(got, std::span(start).subspan(got)));
  }
  return parse_safetensors_header(std::span(start).subspan(kLengthBytes, header_bytes), file_bytes,
                                  limits);
}

}  // namespace gridscope::format
