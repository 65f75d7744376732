#include "support/grid_pair.hpp"

#include <fmt/format.h>

#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "gridscope/quant/pack.hpp"
#include "quant/int4_pair.hpp"
#include "support/checkpoints.hpp"

namespace gridscope::test {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kDistinctRows = 64;
constexpr std::uint64_t kGroup = 32;

struct Rows {
  Bytes source;
  Bytes codes;
  Bytes scales;
};

quant::LeveledWeight leveled(const Int4Pair& pair) {
  quant::LeveledWeight weight{.rows = pair.rows,
                              .columns = pair.columns(),
                              .group_size = kGroup,
                              .scales = {pair.scales.begin(), pair.scales.end()}};
  for (const std::uint8_t code : pair.codes) {
    weight.levels.push_back(static_cast<std::int16_t>(code - 8));
  }
  return weight;
}

Rows make_rows(const GridPairShape& shape) {
  const bool repack = shape.build == GridPairShape::Build::kRepack;
  const Int4Pair pair = make_pair({.rows = kDistinctRows,
                                   .columns = shape.columns,
                                   .build = repack ? Build::kRepack : Build::kRequantized},
                                  1);
  quant::WeightSpec like{.name = "a weight", .scheme = quant::Scheme::kCtPackQuantized};
  like[quant::Companion::kScale] = quant::StoredTensor{.dtype = Dtype::kBF16};
  const auto packed = quant::pack(leveled(pair), like);
  if (!packed) throw std::logic_error(packed.error().message);
  return {.source = pair.source_bytes(),
          .codes = packed->find(quant::Companion::kCodes)->data,
          .scales = packed->find(quant::Companion::kScale)->data};
}

void put(std::ostream& out, std::span<const std::byte> bytes) {
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

void put_repeated(std::ostream& out, const Bytes& bytes, std::uint64_t times) {
  for (std::uint64_t i = 0; i < times; ++i) put(out, bytes);
}

std::string module_name(std::uint64_t layer) {
  return fmt::format("model.language_model.layers.{}.self_attn.q_proj", layer);
}

std::string config(const GridPairShape& shape, const std::string& quantization) {
  return fmt::format(
      R"({{"model_type":"gemma4","text_config":{{"model_type":"gemma4_text","hidden_size":{},)"
      R"("num_hidden_layers":{}}}{}}})",
      shape.columns, shape.layers, quantization);
}

constexpr const char* kQuantization =
    R"(,"quantization_config":{"quant_method":"compressed-tensors","format":"pack-quantized",)"
    R"("ignore":[],"config_groups":{"group_0":{"targets":["Linear"],"weights":{"num_bits":4,)"
    R"("type":"int","symmetric":true,"strategy":"group","group_size":32}}}})";

// The header, ready for the data of its tensors to follow.
std::ofstream begin(const fs::path& path, const SafetensorsBuilder& builder) {
  builder.write_sparse(path);
  std::ofstream out(path, std::ios::binary | std::ios::in | std::ios::out);
  out.exceptions(std::ios::failbit | std::ios::badbit);
  out.seekp(static_cast<std::streamoff>(8 + builder.header().size()));
  return out;
}

void write_source(const fs::path& path, const GridPairShape& shape, const Rows& rows) {
  SafetensorsBuilder builder;
  for (std::uint64_t layer = 0; layer < shape.layers; ++layer) {
    builder.tensor(module_name(layer) + ".weight", Dtype::kBF16, {shape.rows, shape.columns});
  }
  std::ofstream out = begin(path, builder);
  put_repeated(out, rows.source, shape.layers * shape.rows / kDistinctRows);
}

void write_build(const fs::path& path, const GridPairShape& shape, const Rows& rows) {
  SafetensorsBuilder builder;
  for (std::uint64_t layer = 0; layer < shape.layers; ++layer) {
    const std::string module = module_name(layer);
    builder.tensor(module + ".weight_shape", Dtype::kI64, {2});
    builder.tensor(module + ".weight_packed", Dtype::kI32, {shape.rows, shape.columns / 8});
    builder.tensor(module + ".weight_scale", Dtype::kBF16, {shape.rows, shape.columns / kGroup});
  }
  std::ofstream out = begin(path, builder);
  const std::uint64_t extents[] = {shape.rows, shape.columns};
  for (std::uint64_t layer = 0; layer < shape.layers; ++layer) {
    put(out, std::as_bytes(std::span(extents)));
    put_repeated(out, rows.codes, shape.rows / kDistinctRows);
    put_repeated(out, rows.scales, shape.rows / kDistinctRows);
  }
}

}  // namespace

GridPair write_grid_pair(const fs::path& directory, const GridPairShape& shape) {
  if (shape.rows % kDistinctRows != 0 || shape.columns % kGroup != 0) {
    throw std::logic_error("a pair of this shape has no whole groups or repetitions");
  }
  GridPair pair{.source = directory / "source/model.safetensors",
                .build = directory / "build/model.safetensors"};
  write_file(directory / "source/config.json", config(shape, ""));
  write_file(directory / "build/config.json", config(shape, kQuantization));
  const Rows rows = make_rows(shape);
  write_source(pair.source, shape, rows);
  write_build(pair.build, shape, rows);
  pair.bytes = fs::file_size(pair.source) + fs::file_size(pair.build);
  return pair;
}

}  // namespace gridscope::test
