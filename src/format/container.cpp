#include "gridscope/format/container.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "gridscope/core/endian.hpp"
#include "gridscope/format/limits.hpp"

namespace gridscope::format {
namespace {

struct ContainerInfo {
  Container container;
  std::string_view name;
  std::string_view remedy;
};

constexpr std::array kContainers = std::to_array<ContainerInfo>({
    {Container::kUnknown, "unknown", "not a model file that gridscope knows; check the download"},
    {Container::kSafetensors, "safetensors", ""},
    {Container::kGguf, "gguf", ""},
    {Container::kGgufBigEndian, "gguf-big-endian",
     "big-endian GGUF for s390x; convert it with gguf_convert_endian.py or take the usual build"},
    {Container::kGgmlLegacy, "ggml-legacy",
     "a file of the years before GGUF; convert it again from the original checkpoint"},
    {Container::kLiteRtLm, "litertlm",
     "a LiteRT-LM bundle for phones; inspect the safetensors checkpoint that it was made from"},
    {Container::kTfLite, "tflite",
     "a TensorFlow Lite flatbuffer; inspect the safetensors checkpoint that it was made from"},
    {Container::kTask, "task",
     "a MediaPipe bundle (TFLite and tokenizer); inspect the checkpoint that it was made from"},
    {Container::kPyTorchZip, "pytorch-zip",
     "a PyTorch pickle, which runs code when it is loaded and is never loaded here; convert it to "
     "safetensors"},
    {Container::kPyTorchPickle, "pytorch-pickle",
     "an old PyTorch pickle, which runs code when it is loaded and is never loaded here; convert "
     "it to safetensors"},
    {Container::kOnnx, "onnx", "an ONNX graph; inspect the checkpoint that it was exported from"},
    {Container::kHdf5, "hdf5", "an HDF5 file (Keras); convert it to safetensors"},
    {Container::kNpz, "npz", "a NumPy archive; convert it to safetensors"},
    {Container::kZip, "zip", "a ZIP archive; unpack it and point at the files inside"},
    {Container::kLfsPointer, "git-lfs-pointer",
     "the text that stands for a file Git LFS has not fetched; run `git lfs pull`, or download the "
     "file itself"},
});

static_assert(std::ranges::all_of(kContainers, [](const ContainerInfo& info) {
  return &kContainers[static_cast<std::size_t>(info.container)] == &info;
}));

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct Magic {
  std::string_view bytes;
  std::size_t offset;
  Container container;
};

using namespace std::string_view_literals;

constexpr std::string_view kLfsVersion = "version https://git-lfs.github.com/spec/v1"sv;
constexpr std::string_view kLocalFileHeader = "PK\x03\x04"sv;

constexpr std::array kMagics = std::to_array<Magic>({
    {kLfsVersion, 0, Container::kLfsPointer},
    {"lmgg"sv, 0, Container::kGgmlLegacy},
    {"fmgg"sv, 0, Container::kGgmlLegacy},
    {"tjgg"sv, 0, Container::kGgmlLegacy},
    {"LITERTLM"sv, 0, Container::kLiteRtLm},
    {"TFL3"sv, 4, Container::kTfLite},
    {"\x89HDF\r\n\x1A\n"sv, 0, Container::kHdf5},
    // Pickle protocol 2 of the number that PyTorch wrote first of all before its ZIP format.
    {"\x80\x02\x8A\x0A\x6C\xFC\x9C\x46\xF9\x20\x6A\xA8\x50\x19"sv, 0, Container::kPyTorchPickle},
});

bool has_magic(std::string_view start, const Magic& magic) {
  return start.size() >= magic.offset && start.substr(magic.offset).starts_with(magic.bytes);
}

// A big-endian file has the same magic; its small version number then sits in the upper half.
Container identify_gguf(std::span<const std::byte> start) {
  if (start.size() < 8) return Container::kGguf;
  const auto version = load_le<std::uint32_t>(start.subspan(4));
  return version != 0 && (version & 0xFFFFU) == 0 ? Container::kGgufBigEndian : Container::kGguf;
}

// The names in the local file headers that the first bytes show. A name that compressed data only
// seems to hold does no harm: it decides between kinds of ZIP, none of which is read.
std::vector<std::string_view> zip_entry_names(std::string_view start) {
  constexpr std::size_t kNameLengthAt = 26;
  constexpr std::size_t kNameAt = 30;
  std::vector<std::string_view> names;
  for (auto at = start.find(kLocalFileHeader); at != std::string_view::npos;
       at = start.find(kLocalFileHeader, at + 1)) {
    const std::string_view entry = start.substr(at);
    if (entry.size() < kNameAt) break;
    const auto length =
        load_le<std::uint16_t>(std::as_bytes(std::span(entry)).subspan(kNameLengthAt));
    names.push_back(entry.substr(kNameAt, length));
  }
  return names;
}

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> endings) {
  return std::ranges::any_of(endings, [&](auto ending) { return name.ends_with(ending); });
}

Container identify_zip(std::string_view start, std::string_view name) {
  for (const std::string_view entry : zip_entry_names(start)) {
    if (ends_with_any(entry, {"/data.pkl"})) return Container::kPyTorchZip;
    if (ends_with_any(entry, {".npy"})) return Container::kNpz;
    if (ends_with_any(entry, {".tflite"}) || entry.starts_with("TF_LITE_")) return Container::kTask;
  }
  if (ends_with_any(name, {".pt", ".pth", ".bin", ".ckpt"})) return Container::kPyTorchZip;
  if (ends_with_any(name, {".npz"})) return Container::kNpz;
  if (ends_with_any(name, {".task"})) return Container::kTask;
  return Container::kZip;
}

// ONNX has no magic: a protobuf message whose first field is the small IR version.
bool is_onnx(std::string_view start, std::string_view name) {
  return name.ends_with(".onnx") && start.size() >= 2 && start[0] == '\x08' && start[1] > 0;
}

bool is_safetensors(std::span<const std::byte> start, std::uint64_t file_bytes) {
  if (start.size() < 9 || file_bytes < 9) return false;
  const auto header_bytes = load_le<std::uint64_t>(start);
  if (header_bytes > Limits{}.header_bytes || header_bytes > file_bytes - 8) return false;
  return as_text(start).find_first_of("{ \t\r\n", 8) == 8;
}

// "key value" of one line of a pointer, or empty.
std::optional<std::string_view> lfs_value(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with(key)) return line.substr(key.size());
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return std::nullopt;
}

bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

std::string_view container_name(Container container) {
  return kContainers[static_cast<std::size_t>(container)].name;
}

std::string_view container_remedy(Container container) {
  return kContainers[static_cast<std::size_t>(container)].remedy;
}

Container identify_container(std::span<const std::byte> start, std::string_view name,
                             std::uint64_t file_bytes) {
  const std::string_view text = as_text(start);
  for (const Magic& magic : kMagics) {
    if (has_magic(text, magic)) return magic.container;
  }
  if (text.starts_with("GGUF")) return identify_gguf(start);
  if (text.starts_with(kLocalFileHeader)) return identify_zip(text, name);
  if (is_safetensors(start, file_bytes)) return Container::kSafetensors;
  if (is_onnx(text, name)) return Container::kOnnx;
  return Container::kUnknown;
}

std::optional<Error> other_container_error(Container expected, std::span<const std::byte> start,
                                           std::string_view name, std::uint64_t file_bytes) {
  const Container found = identify_container(start, name, file_bytes);
  if (found == Container::kUnknown || found == expected) return std::nullopt;
  Error error{.code = ErrorCode::kUnsupported,
              .message = fmt::format("expected a {} file, found {}", container_name(expected),
                                     container_name(found)),
              .remedy = std::string(container_remedy(found))};
  if (error.remedy.empty()) error.remedy = fmt::format("name it *.{}", container_name(found));
  if (found != Container::kLfsPointer) return error;
  error.code = ErrorCode::kCorrupt;
  if (const auto pointer = parse_lfs_pointer(start)) {
    error.message +=
        fmt::format(" to a file of {} bytes with sha256 {}", pointer->size, pointer->oid);
  }
  return error;
}

std::optional<LfsPointer> parse_lfs_pointer(std::span<const std::byte> text) {
  const std::string_view all = as_text(text);
  if (!all.starts_with(kLfsVersion)) return std::nullopt;
  const auto oid = lfs_value(all, "oid sha256:");
  const auto size = lfs_value(all, "size ");
  if (!oid || !is_sha256(*oid) || !size) return std::nullopt;
  LfsPointer pointer{.oid = std::string(*oid)};
  const char* const end = size->data() + size->size();
  const auto [stop, error] = std::from_chars(size->data(), end, pointer.size);
  if (error != std::errc() || stop != end) return std::nullopt;
  return pointer;
}

}  // namespace gridscope::format
