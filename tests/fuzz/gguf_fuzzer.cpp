// A GGUF header that is accepted describes tensors that lie inside the file.

#include "fuzz/fuzz_target.hpp"
#include "gridscope/format/gguf.hpp"
#include "gridscope/io/memory_source.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gridscope;
  const auto bytes = test::fuzz_bytes(data, size);
  const auto source =
      io::make_memory_source({bytes.begin(), bytes.end()}, {.name = "fuzz", .version = ""});
  const auto header = format::read_gguf_header(*source);
  if (!header) {
    test::require_fit_to_show(header.error());
    return 0;
  }
  for (const format::TensorInfo& tensor : header->table.tensors) {
    test::require(tensor.offset <= size && tensor.bytes <= size - tensor.offset);
    test::require(tensor.offset % header->alignment ==
                  header->table.header_bytes % header->alignment);
  }
  return 0;
}
