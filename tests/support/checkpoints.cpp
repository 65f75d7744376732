#include "support/checkpoints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <functional>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <type_traits>

#include "gridscope/core/endian.hpp"

namespace gridscope::test {
namespace {

template <typename T>
void put(Bytes& out, T value) {
  out.resize(out.size() + sizeof(T));
  store_le(std::span(out).last(sizeof(T)), value);
}

void put_text(Bytes& out, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void put_counting(Bytes& out, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) out.push_back(static_cast<std::byte>(i));
}

std::uint64_t bytes_needed(Dtype dtype, const Shape& shape) {
  const DtypeInfo& info = dtype_info(dtype);
  const auto elements =
      std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
  return elements / info.block_elements * info.block_bits / 8;
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string tensor_json(std::string_view name, std::string_view dtype, const Shape& shape,
                        std::uint64_t begin, std::uint64_t end) {
  return fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                     json_string(name), dtype, fmt::join(shape, ","), begin, end);
}

// `text` with the first `from` replaced.
std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const auto at = text.find(from);
  if (at == std::string::npos) throw std::logic_error(fmt::format("no {} in {}", from, text));
  return text.replace(at, from.size(), to);
}

constexpr std::uint64_t align(std::uint64_t offset, std::uint64_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

void put_gguf_string(Bytes& out, std::string_view text) {
  put<std::uint64_t>(out, text.size());
  put_text(out, text);
}

// Type number and value, as the format numbers them.
struct PutValue {
  Bytes& out;

  template <typename T>
  void number(std::uint32_t type, T value) {
    put(out, type);
    put(out, value);
  }
  void operator()(std::uint8_t value) { number(0, value); }
  void operator()(std::int8_t value) { number(1, value); }
  void operator()(std::uint16_t value) { number(2, value); }
  void operator()(std::int16_t value) { number(3, value); }
  void operator()(std::uint32_t value) { number(4, value); }
  void operator()(std::int32_t value) { number(5, value); }
  void operator()(float value) { number(6, std::bit_cast<std::uint32_t>(value)); }
  void operator()(bool value) { number(7, static_cast<std::uint8_t>(value)); }
  void operator()(const std::string& value) {
    put<std::uint32_t>(out, 8);
    put_gguf_string(out, value);
  }
  void operator()(const std::vector<std::string>& values) {
    put<std::uint32_t>(out, 9);
    put<std::uint32_t>(out, 8);
    put<std::uint64_t>(out, values.size());
    for (const std::string& value : values) put_gguf_string(out, value);
  }
  void operator()(const std::vector<std::uint32_t>& values) {
    put<std::uint32_t>(out, 9);
    put<std::uint32_t>(out, 4);
    put<std::uint64_t>(out, values.size());
    for (const std::uint32_t value : values) put(out, value);
  }
  void operator()(std::uint64_t value) { number(10, value); }
  void operator()(std::int64_t value) { number(11, value); }
  void operator()(double value) { number(12, std::bit_cast<std::uint64_t>(value)); }
};

// The numbers of the types that tests write.
std::uint32_t ggml_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF32:
      return 0;
    case Dtype::kF16:
      return 1;
    case Dtype::kQ4_0:
      return 2;
    case Dtype::kQ4_1:
      return 3;
    case Dtype::kQ8_0:
      return 8;
    case Dtype::kQ4_K:
      return 12;
    case Dtype::kQ6_K:
      return 14;
    case Dtype::kI8:
      return 24;
    case Dtype::kI32:
      return 26;
    case Dtype::kBF16:
      return 30;
    case Dtype::kMXFP4:
      return 39;
    case Dtype::kNVFP4:
      return 40;
    default:
      throw std::logic_error(fmt::format("no ggml type for {}", dtype_name(dtype)));
  }
}

}  // namespace

SafetensorsBuilder& SafetensorsBuilder::tensor(std::string name, Dtype dtype, Shape shape) {
  tensors_.push_back({std::move(name), dtype, std::move(shape), std::nullopt});
  return *this;
}

SafetensorsBuilder& SafetensorsBuilder::tensor(std::string name, Dtype dtype, Shape shape,
                                               Bytes data) {
  if (data.size() != bytes_needed(dtype, shape)) throw std::logic_error("data of another size");
  tensors_.push_back({std::move(name), dtype, std::move(shape), std::move(data)});
  return *this;
}

SafetensorsBuilder& SafetensorsBuilder::metadata(std::string key, std::string value) {
  metadata_.emplace_back(std::move(key), std::move(value));
  return *this;
}

std::string SafetensorsBuilder::header_json() const {
  std::vector<std::string> members;
  if (!metadata_.empty()) {
    std::vector<std::string> pairs;
    for (const auto& [key, value] : metadata_) {
      pairs.push_back(json_string(key) + ':' + json_string(value));
    }
    members.push_back(fmt::format(R"("__metadata__":{{{}}})", fmt::join(pairs, ",")));
  }
  std::uint64_t begin = 0;
  for (const Tensor& tensor : tensors_) {
    const std::uint64_t end = begin + bytes_needed(tensor.dtype, tensor.shape);
    members.push_back(tensor_json(tensor.name, dtype_name(tensor.dtype), tensor.shape, begin, end));
    begin = end;
  }
  return fmt::format("{{{}}}", fmt::join(members, ","));
}

std::string SafetensorsBuilder::header() const {
  std::string json = header_json();
  json.resize((json.size() + 7) / 8 * 8, ' ');
  return json;
}

std::uint64_t SafetensorsBuilder::data_bytes() const {
  std::uint64_t total = 0;
  for (const Tensor& tensor : tensors_) total += bytes_needed(tensor.dtype, tensor.shape);
  return total;
}

Bytes SafetensorsBuilder::build() const {
  Bytes file = safetensors_file(header());
  for (const Tensor& tensor : tensors_) {
    if (tensor.data) {
      file.insert(file.end(), tensor.data->begin(), tensor.data->end());
    } else {
      put_counting(file, bytes_needed(tensor.dtype, tensor.shape));
    }
  }
  return file;
}

Bytes SafetensorsBuilder::build(SafetensorsDefect defect) const {
  Bytes file = build();
  const std::size_t data = data_bytes();
  const Tensor& first = tensors_.front();
  const std::uint64_t first_end = bytes_needed(first.dtype, first.shape);
  const std::uint64_t last_begin =
      data - bytes_needed(tensors_.back().dtype, tensors_.back().shape);
  const auto with_header = [&](const std::string& json) { return safetensors_file(json, data); };
  switch (defect) {
    case SafetensorsDefect::kTruncatedHeader:
      file.resize(8 + header().size() / 2);
      break;
    case SafetensorsDefect::kTruncatedData:
      file.pop_back();
      break;
    case SafetensorsDefect::kTrailingByte:
      file.push_back({});
      break;
    case SafetensorsDefect::kHeaderNotJson:
      file[8] = std::byte{'['};
      break;
    case SafetensorsDefect::kHeaderTooLong:
      store_le<std::uint64_t>(std::span(file).first(8), file.size());
      break;
    case SafetensorsDefect::kUnknownDtype:
      return with_header(replaced(header_json(), dtype_name(first.dtype), "F31"));
    case SafetensorsDefect::kWrongSize:
      return with_header(replaced(header_json(), "\"shape\":[", "\"shape\":[2,"));
    case SafetensorsDefect::kHole:
      return with_header(replaced(header_json(), fmt::format("\"data_offsets\":[{},", first_end),
                                  fmt::format("\"data_offsets\":[{},", first_end + 1)));
    case SafetensorsDefect::kOverlap:
      return with_header(replaced(header_json(), fmt::format("\"data_offsets\":[{},", last_begin),
                                  fmt::format("\"data_offsets\":[{},", last_begin - 1)));
    case SafetensorsDefect::kDuplicateName:
      return with_header(replaced(header_json(), json_string(tensors_[1].name) + ':',
                                  json_string(first.name) + ':'));
  }
  return file;
}

void SafetensorsBuilder::write_sparse(const std::filesystem::path& path) const {
  const Bytes start = safetensors_file(header());
  write_file(path, start);
  std::filesystem::resize_file(path, start.size() + data_bytes());
}

std::vector<std::string> SafetensorsBuilder::names() const {
  std::vector<std::string> names;
  for (const Tensor& tensor : tensors_) names.push_back(tensor.name);
  return names;
}

Bytes safetensors_file(std::string_view header, std::size_t data_bytes) {
  Bytes file;
  put<std::uint64_t>(file, header.size());
  put_text(file, header);
  file.resize(file.size() + data_bytes);
  return file;
}

std::string index_json(const WeightMap& weight_map, std::optional<std::uint64_t> total_size) {
  std::vector<std::string> entries;
  for (const auto& [tensor, file] : weight_map) {
    entries.push_back(json_string(tensor) + ": " + json_string(file));
  }
  const std::string metadata = total_size ? fmt::format("\"total_size\": {}", *total_size) : "";
  return fmt::format("{{\"metadata\": {{{}}}, \"weight_map\": {{{}}}}}\n", metadata,
                     fmt::join(entries, ", "));
}

GgufBuilder& GgufBuilder::version(std::uint32_t version) {
  version_ = version;
  return *this;
}

GgufBuilder& GgufBuilder::alignment(std::uint32_t alignment) {
  alignment_ = alignment;
  return key("general.alignment", alignment);
}

GgufBuilder& GgufBuilder::key(std::string key, Value value) {
  keys_.emplace_back(std::move(key), std::move(value));
  return *this;
}

GgufBuilder& GgufBuilder::tensor(std::string name, Dtype dtype, Shape dims) {
  const std::uint64_t offset =
      tensors_.empty() ? 0 : align(tensors_.back().offset + tensors_.back().bytes, alignment_);
  const std::uint64_t bytes = bytes_needed(dtype, dims);
  tensors_.push_back({std::move(name), dtype, std::move(dims), offset, bytes, std::nullopt});
  return *this;
}

GgufBuilder& GgufBuilder::tensor(std::string name, Dtype dtype, Shape dims, Bytes data) {
  if (data.size() != bytes_needed(dtype, dims)) throw std::logic_error("data of another size");
  tensor(std::move(name), dtype, std::move(dims));
  tensors_.back().data = std::move(data);
  return *this;
}

Bytes GgufBuilder::header() const {
  Bytes out;
  put_text(out, "GGUF");
  put(out, version_);
  put<std::uint64_t>(out, tensors_.size());
  put<std::uint64_t>(out, keys_.size());
  for (const auto& [key, value] : keys_) {
    put_gguf_string(out, key);
    std::visit(PutValue{out}, value);
  }
  for (const Tensor& tensor : tensors_) {
    put_gguf_string(out, tensor.name);
    put(out, static_cast<std::uint32_t>(tensor.dims.size()));
    for (const std::uint64_t dim : tensor.dims) put(out, dim);
    put(out, ggml_type(tensor.dtype));
    put(out, tensor.offset);
  }
  return out;
}

Bytes GgufBuilder::build() const {
  Bytes file = header();
  for (const Tensor& tensor : tensors_) {
    file.resize(align(file.size(), alignment_));
    if (tensor.data) {
      file.insert(file.end(), tensor.data->begin(), tensor.data->end());
    } else {
      put_counting(file, tensor.bytes);
    }
  }
  file.resize(align(file.size(), alignment_));
  return file;
}

Bytes GgufBuilder::build(GgufDefect defect) const {
  Bytes file = build();
  GgufBuilder other = *this;
  switch (defect) {
    case GgufDefect::kBadMagic:
      file[0] = std::byte{'g'};
      break;
    case GgufDefect::kVersion1:
      return other.version(1).build();
    case GgufDefect::kBigEndian:
      return other.version(0x0300'0000).build();
    case GgufDefect::kTruncatedHeader:
      file.resize(header().size() - 5);
      break;
    case GgufDefect::kTruncatedData:
      file.resize(align(header().size(), alignment_) + tensors_.back().offset);
      break;
    case GgufDefect::kDuplicateKey:
      other.keys_.push_back(keys_.front());
      return other.build();
    case GgufDefect::kDuplicateTensor:
      other.tensors_.back().name = tensors_.front().name;
      return other.build();
    case GgufDefect::kHole:
      other.tensors_.back().offset += alignment_;
      file = other.build();
      file.resize(file.size() + alignment_);
      break;
  }
  return file;
}

void write_checkpoint(const std::filesystem::path& directory, const CheckpointFiles& files) {
  write_file(directory / "config.json", files.config);
  WeightMap weight_map;
  std::uint64_t total_size = 0;
  for (const auto& [name, shard] : files.shards) {
    write_file(directory / name, shard.build());
    total_size += shard.data_bytes();
    for (const std::string& tensor : shard.names()) weight_map.emplace_back(tensor, name);
  }
  if (files.shards.size() < 2) return;
  write_file(directory / "model.safetensors.index.json", index_json(weight_map, total_size));
}

void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
  if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  write_file(path, std::as_bytes(std::span(text)));
}

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  Bytes bytes(std::filesystem::file_size(path));
  in.read(reinterpret_cast<char*>(bytes.data()), std::ssize(bytes));
  if (!in) throw std::runtime_error("cannot read all of " + path.string());
  return bytes;
}

}  // namespace gridscope::test
