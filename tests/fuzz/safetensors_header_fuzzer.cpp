// A header that is accepted describes tensors that tile the data, whatever the bytes were.

#include "fuzz/fuzz_target.hpp"
#include "gridscope/format/safetensors.hpp"
#include "gridscope/io/memory_source.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gridscope;
  const auto bytes = test::fuzz_bytes(data, size);
  const auto source =
      io::make_memory_source({bytes.begin(), bytes.end()}, {.name = "fuzz", .version = ""});
  const auto table = format::read_safetensors_header(*source);
  if (!table) {
    test::require_fit_to_show(table.error());
    return 0;
  }
  std::uint64_t end = table->header_bytes;
  for (const format::TensorInfo& tensor : table->tensors) {
    test::require(tensor.offset == end);
    test::require(format::storage_bytes(tensor.dtype, tensor.elements()) == tensor.bytes);
    end += tensor.bytes;
  }
  test::require(end == size);
  return 0;
}
