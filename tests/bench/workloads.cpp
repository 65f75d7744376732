#include "bench/workloads.hpp"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <string>

#include "support/checkpoints.hpp"

namespace gridscope::bench {
namespace {

constexpr std::uint32_t kExperts = 256;

std::string shard_name(std::uint32_t shard, std::uint32_t shards) {
  return fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, shards);
}

// As long as the names of the largest published mixtures of experts.
std::string tensor_name(std::uint64_t number) {
  constexpr std::array kMatrices = {"gate", "up", "down"};
  const std::uint64_t expert = number / kMatrices.size();
  return fmt::format("language_model.model.layers.{}.block_sparse_moe.experts.{}.{}_proj.weight",
                     expert / kExperts, expert % kExperts, kMatrices.at(number % kMatrices.size()));
}

}  // namespace

ShardedCheckpoint write_sharded_checkpoint(const std::filesystem::path& directory,
                                           ShardedShape shape) {
  test::write_file(directory / "config.json",
                   R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"]})");
  ShardedCheckpoint made;
  const std::filesystem::path index = directory / "model.safetensors.index.json";
  std::ofstream out(index);
  out << "{\n  \"metadata\": {},\n  \"weight_map\": {";
  for (std::uint32_t shard = 0; shard < shape.shards; ++shard) {
    const std::string file = shard_name(shard, shape.shards);
    test::SafetensorsBuilder builder;
    for (std::uint32_t i = 0; i < shape.tensors_per_shard; ++i, ++made.tensors) {
      const std::string name = tensor_name(made.tensors);
      builder.tensor(name, Dtype::kBF16, {56, 1024});
      out << fmt::format("{}\n    \"{}\": \"{}\"", made.tensors == 0 ? "" : ",", name, file);
    }
    builder.write_sparse(directory / file);
  }
  out << "\n  }\n}\n";
  out.close();
  made.index_bytes = std::filesystem::file_size(index);
  return made;
}

}  // namespace gridscope::bench
