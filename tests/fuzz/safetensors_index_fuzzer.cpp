// An index that is accepted names only files that stay beside it.

#include "fuzz/fuzz_target.hpp"
#include "gridscope/format/safetensors_index.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gridscope;
  const auto index = format::parse_safetensors_index(test::fuzz_bytes(data, size));
  if (!index) {
    test::require_fit_to_show(index.error());
    return 0;
  }
  for (const std::string& shard : index->shards) {
    test::require(format::is_safe_shard_name(shard));
    test::require(shard.find('/') == std::string::npos && shard != ".." && !shard.empty());
  }
  for (const auto& entry : index->entries) test::require(entry.shard < index->shards.size());
  return 0;
}
