#include "support/sparse_checkpoint.hpp"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gridscope::test {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHeaderSuffix = ".header.json";
constexpr std::string_view kBundleName = "headers.txt";

struct Span {
  std::uint64_t begin;
  std::uint64_t end;
  std::string name;
};

std::string read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(in), {});
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return text;
}

// All frames of `compressed`; the frame header need not tell the size.
std::string decompress(std::string_view compressed, const fs::path& path) {
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(),
                                                                     &ZSTD_freeDCtx);
  std::string text;
  std::vector<char> block(ZSTD_DStreamOutSize());
  ZSTD_inBuffer in{compressed.data(), compressed.size(), 0};
  std::size_t expected = 1;  // 0 once a frame is complete and flushed
  while (in.pos < in.size || expected != 0) {
    ZSTD_outBuffer out{block.data(), block.size(), 0};
    const std::size_t before = in.pos;
    expected = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(expected) != 0U) {
      throw std::runtime_error(fmt::format("{}: {}", path.string(), ZSTD_getErrorName(expected)));
    }
    if (out.pos == 0 && in.pos == before) throw std::runtime_error(path.string() + ": cut short");
    text.append(block.data(), out.pos);
  }
  return text;
}

std::string read_maybe_compressed(const fs::path& path) {
  std::string text = read_text(path);
  return path.extension() == ".zst" ? decompress(text, path) : text;
}

std::uint64_t dtype_bits(const std::string& dtype) {
  static const std::map<std::string, std::uint64_t> kBits = {
      {"BOOL", 8}, {"U8", 8},   {"I8", 8},   {"F8_E4M3", 8}, {"F8_E5M2", 8},
      {"I16", 16}, {"U16", 16}, {"F16", 16}, {"BF16", 16},   {"I32", 32},
      {"U32", 32}, {"F32", 32}, {"I64", 64}, {"U64", 64},    {"F64", 64}};
  const auto found = kBits.find(dtype);
  if (found == kBits.end()) throw std::runtime_error("no such type: " + dtype);
  return found->second;
}

Span span_of(const std::string& name, const nlohmann::json& tensor) {
  std::uint64_t bits = dtype_bits(tensor.at("dtype").get<std::string>());
  for (const std::uint64_t extent : tensor.at("shape")) bits *= extent;
  const auto& offsets = tensor.at("data_offsets");
  const Span span{offsets.at(0).get<std::uint64_t>(), offsets.at(1).get<std::uint64_t>(), name};
  if (span.end - span.begin != bits / 8) {
    throw std::runtime_error(fmt::format("{} spans {} bytes, its shape needs {}", name,
                                         span.end - span.begin, bits / 8));
  }
  return span;
}

// The tensors in order of place; they tile the data from 0 without hole or overlap.
std::vector<Span> tiling(std::string_view header) {
  const auto document = nlohmann::json::parse(header);
  std::vector<Span> spans;
  for (const auto& [name, tensor] : document.items()) {
    if (name != "__metadata__") spans.push_back(span_of(name, tensor));
  }
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t end = 0;
  for (const Span& span : spans) {
    if (span.begin != end) {
      throw std::runtime_error(
          fmt::format("{} starts at {}, the tensor before ends at {}", span.name, span.begin, end));
    }
    end = span.end;
  }
  return spans;
}

void write_text(const fs::path& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(text.data(), std::ssize(text));
  if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
}

std::string length_word(std::uint64_t length) {
  std::string word;
  for (int i = 0; i < 8; ++i) word += static_cast<char>(length >> (8 * i) & 0xFF);
  return word;
}

void write_shard(std::string_view name, std::string_view header, SparseCheckpoint& checkpoint) {
  const std::vector<Span> spans = tiling(header);
  const std::uint64_t data_bytes = spans.empty() ? 0 : spans.back().end;
  const std::uint64_t file_bytes = 8 + header.size() + data_bytes;
  const fs::path path = checkpoint.directory / fmt::format("{}.safetensors", name);
  write_text(path, length_word(header.size()).append(header));
  fs::resize_file(path, file_bytes);
  ++checkpoint.files;
  checkpoint.tensors += spans.size();
  checkpoint.file_bytes += file_bytes;
}

void write_bundle(std::string_view bundle, SparseCheckpoint& checkpoint) {
  while (!bundle.empty()) {
    const std::string_view line = bundle.substr(0, bundle.find('\n'));
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) throw std::runtime_error("a line without a header");
    write_shard(line.substr(0, space), line.substr(space + 1), checkpoint);
    bundle.remove_prefix(std::min(line.size() + 1, bundle.size()));
  }
}

void write_entry(const fs::path& path, SparseCheckpoint& checkpoint) {
  const std::string name =
      path.extension() == ".zst" ? path.stem().string() : path.filename().string();
  if (name == kBundleName) {
    write_bundle(read_maybe_compressed(path), checkpoint);
  } else if (name.ends_with(kHeaderSuffix)) {
    write_shard(name.substr(0, name.size() - kHeaderSuffix.size()), read_maybe_compressed(path),
                checkpoint);
  } else if (name.ends_with(".json")) {
    write_text(checkpoint.directory / name, read_maybe_compressed(path));
  }
}

}  // namespace

SparseCheckpoint write_sparse_checkpoint(const fs::path& source, const fs::path& output) {
  SparseCheckpoint checkpoint{.directory = output / fs::canonical(source).filename()};
  fs::create_directories(checkpoint.directory);
  for (const fs::directory_entry& entry : fs::directory_iterator(source)) {
    try {
      write_entry(entry.path(), checkpoint);
    } catch (const std::exception& error) {
      throw std::runtime_error(fmt::format("{}: {}", entry.path().string(), error.what()));
    }
  }
  if (checkpoint.files == 0) throw std::runtime_error("no headers in " + source.string());
  return checkpoint;
}

}  // namespace gridscope::test
