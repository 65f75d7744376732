#include "gridscope/model/file_headers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "gridscope/core/parallel.hpp"
#include "gridscope/core/text.hpp"
#include "gridscope/format/safetensors.hpp"

// A file is read as what its name promises, which costs one request; only when that fails are its
// first bytes looked at, to say what it is instead.

namespace gridscope::model {
namespace {

using format::Container;

bool is_read(Container container) {
  return container == Container::kSafetensors || container == Container::kGguf;
}

Result<Container> identify(const io::ByteSource& source, FileHeader& header) {
  std::vector<std::byte> start(std::min<std::uint64_t>(source.size(), format::kIdentifyBytes));
  GRIDSCOPE_CHECK(source.read_at(0, start));
  header.pointer = format::parse_lfs_pointer(start);
  return format::identify_container(start, header.path, source.size());
}

Status read_table(const io::ByteSource& source, Container container, const format::Limits& limits,
                  FileHeader& header) {
  if (container == Container::kSafetensors) {
    GRIDSCOPE_TRY(header.table, format::read_safetensors_header(source, limits));
  } else {
    GRIDSCOPE_TRY(format::GgufHeader gguf, format::read_gguf_header(source, limits));
    header.table = std::move(gguf.table);
    header.split = gguf.split;
  }
  header.container = container;
  return {};
}

class HeaderReader {
 public:
  HeaderReader(const store::Repository& repository, std::span<const WeightSet> sets,
               const HeaderOptions& options)
      : repository_(repository), sets_(sets), options_(options) {}

  Status read(FileHeader& header) const {
    auto source = repository_.open(header.path);
    const bool one_of_several = sets_[header.set].files.size() > 1;
    if (!source && source.error().code == ErrorCode::kNotFound && one_of_several) {
      header.missing = true;
      return {};
    }
    if (!source) return tl::make_unexpected(std::move(source).error());
    header.bytes = (*source)->size();
    GRIDSCOPE_CHECK(read_opened(**source, header));
    if (is_read(header.container)) header.source = *std::move(source);
    return {};
  }

 private:
  Status read_opened(const io::ByteSource& source, FileHeader& header) const {
    const Container promised = sets_[header.set].container;
    if (is_read(promised)) {
      Status status = read_table(source, promised, options_.limits, header);
      if (status || status.error().code != ErrorCode::kCorrupt) return status;
      return recognise_pointer(source, std::move(status).error(), header);
    }
    GRIDSCOPE_TRY(header.container, identify(source, header));
    if (is_read(header.container)) {
      return read_table(source, header.container, options_.limits, header);
    }
    if (header.container != Container::kUnknown) return {};
    return fail(ErrorCode::kUnsupported,
                fmt::format("{} in no format of weights that gridscope knows",
                            count_of(header.bytes, "byte")),
                "name a safetensors or GGUF file");
  }

  // One pointer among real shards must not keep the others from being looked at.
  static Status recognise_pointer(const io::ByteSource& source, Error error, FileHeader& header) {
    const auto container = identify(source, header);
    if (!container || *container != Container::kLfsPointer) {
      return tl::make_unexpected(std::move(error));
    }
    header.container = *container;
    return {};
  }

  const store::Repository& repository_;
  std::span<const WeightSet> sets_;
  const HeaderOptions& options_;
};

}  // namespace

Result<std::vector<FileHeader>> read_headers(const store::Repository& repository,
                                             std::span<const WeightSet> sets, Observer& observer,
                                             const HeaderOptions& options) {
  std::vector<FileHeader> headers;
  for (std::size_t set = 0; set < sets.size(); ++set) {
    for (const std::string& path : sets[set].files) {
      FileHeader& header = headers.emplace_back();
      header.path = path;
      header.set = set;
    }
  }
  const HeaderReader reader(repository, sets, options);
  std::atomic<std::uint64_t> done = 0;
  const auto read_one = [&](std::size_t i) -> Status {
    Status status = reader.read(headers[i]);
    if (!status) {
      return tl::make_unexpected(
          with_context(std::move(status).error(), printable(headers[i].path)));
    }
    observer.on_event(Progress{.stage = "headers", .done = ++done, .total = headers.size()});
    return {};
  };
  GRIDSCOPE_CHECK(parallel_chunks(headers.size(), std::max<std::size_t>(options.readers, 1),
                                  read_one, options.stop));
  return headers;
}

}  // namespace gridscope::model
