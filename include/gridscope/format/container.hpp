#pragma once

// Which container a file is, from its first bytes (never from its name alone), and what a person
// should do when it is one that gridscope only recognises.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "gridscope/core/result.hpp"

namespace gridscope::format {

enum class Container : std::uint8_t {
  kUnknown,
  kSafetensors,
  kGguf,
  // Recognised, not read.
  kGgufBigEndian,
  kGgmlLegacy,
  kLiteRtLm,
  kTfLite,
  kTask,        // a ZIP that bundles a TFLite model and a tokenizer
  kPyTorchZip,  // a ZIP with a pickle inside: never unpickled
  kPyTorchPickle,
  kOnnx,
  kHdf5,
  kNpz,
  kZip,
  kLfsPointer,  // the text that Git LFS leaves in place of a file it did not fetch
};

// "safetensors", "gguf", "litertlm", "pytorch-zip", "git-lfs-pointer", ...
[[nodiscard]] std::string_view container_name(Container container);

// One sentence: what it is and what to do instead, for a container that is not read here.
[[nodiscard]] std::string_view container_remedy(Container container);

// How many bytes identify_container wants to see; fewer at the end of a short file.
inline constexpr std::size_t kIdentifyBytes = 4096;

// `start` are the first bytes of the file, `name` its name (it only tells apart what the bytes
// leave open: ZIP bundles, ONNX), `file_bytes` its size. safetensors has no magic: it is recognised
// by a plausible header length followed by '{' or JSON white space.
[[nodiscard]] Container identify_container(std::span<const std::byte> start, std::string_view name,
                                           std::uint64_t file_bytes);

// The error for a file that is another container than the `expected` one: what it is and what to
// do. Empty when it is the expected one, or none that is known. Codes: kCorrupt for an LFS pointer,
// which stands where the file should be; else kUnsupported.
[[nodiscard]] std::optional<Error> other_container_error(Container expected,
                                                         std::span<const std::byte> start,
                                                         std::string_view name,
                                                         std::uint64_t file_bytes);

// What an LFS pointer stands for: the sha256 and size of the real file.
struct LfsPointer {
  std::string oid;  // 64 hex digits
  std::uint64_t size = 0;
};
[[nodiscard]] std::optional<LfsPointer> parse_lfs_pointer(std::span<const std::byte> text);

}  // namespace gridscope::format
