// The tables of ../shared/headers/README.md, recomputed from the headers of the 22 checkpoints.

#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "gridscope/format/safetensors.hpp"
#include "gridscope/model/config.hpp"
#include "gridscope/model/modules.hpp"
#include "gridscope/model/names.hpp"
#include "support/matchers.hpp"

namespace gridscope::model {
namespace {

namespace fs = std::filesystem;
using test::IsOk;

fs::path headers_directory() {
  return fs::path(GRIDSCOPE_SOURCE_DIR) / "../shared/headers";
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string decompress(const std::string& packed) {
  const auto size = ZSTD_getFrameContentSize(packed.data(), packed.size());
  std::string text(size, '\0');
  const auto got = ZSTD_decompress(text.data(), text.size(), packed.data(), packed.size());
  EXPECT_EQ(got, size);
  return text;
}

// A header on its own: the file's size follows from where its last tensor ends.
std::uint64_t file_bytes(const std::string& header) {
  std::uint64_t end = 0;
  constexpr std::string_view kOffsets = "\"data_offsets\":[";
  for (auto at = header.find(kOffsets); at != std::string::npos;
       at = header.find(kOffsets, at + 1)) {
    const auto comma = header.find(',', at);
    end = std::max<std::uint64_t>(end, std::stoull(header.substr(comma + 1, 24)));
  }
  return 8 + header.size() + end;
}

struct Row {
  std::uint64_t tensors = 0;
  std::uint64_t bytes = 0;
  std::set<std::string> dtypes;
  bool operator==(const Row&) const = default;
};
void PrintTo(const Row& row, std::ostream* out) {
  *out << row.tensors << " tensors, " << row.bytes << " bytes";
}

using Table = std::map<std::string, Row>;  // by part title

std::uint64_t number(std::string text) {
  std::erase(text, ',');
  return std::stoull(text);
}

// "| E2B-bf16 |  | audio tower | 752 | 614,368,768 | 0.614 | 0.572 | BF16 |"
std::map<std::string, Table> published_tables() {
  std::map<std::string, Table> tables;
  std::istringstream readme(read_text(headers_directory() / "README.md"));
  for (std::string line; std::getline(readme, line);) {
    std::vector<std::string> cells;
    std::istringstream columns(line);
    for (std::string cell; std::getline(columns, cell, '|');) {
      const auto first = cell.find_first_not_of(' ');
      const auto last = cell.find_last_not_of(' ');
      cells.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
    }
    const bool is_part = cells.size() == 9 && cells[2].empty() && !cells[3].starts_with("part");
    if (!is_part) continue;
    Row row{.tensors = number(cells[4]), .bytes = number(cells[5]), .dtypes = {}};
    std::istringstream dtypes(cells[8]);
    for (std::string dtype; std::getline(dtypes >> std::ws, dtype, ',');) row.dtypes.insert(dtype);
    tables[cells[1]][cells[3]] = row;
  }
  return tables;
}

struct Loaded {
  std::vector<format::TensorInfo> tensors;
  ModelConfig config;
};

Loaded load(const std::string& checkpoint) {
  Loaded loaded;
  const fs::path directory = headers_directory() / "checkpoints" / checkpoint;
  std::vector<fs::path> files(fs::directory_iterator(directory), {});
  std::ranges::sort(files);
  for (const fs::path& file : files) {
    if (!file.string().ends_with(".header.json.zst")) continue;
    const std::string header = decompress(read_text(file));
    auto table = format::parse_safetensors_header(test::bytes_of(header), file_bytes(header));
    EXPECT_THAT(table, IsOk()) << file;
    if (table) std::ranges::move(table->tensors, std::back_inserter(loaded.tensors));
  }
  auto config = parse_config(read_text(directory / "config.json"), "config.json");
  EXPECT_THAT(config, IsOk());
  if (config) loaded.config = *std::move(config);
  return loaded;
}

class PublishedTables : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!fs::exists(headers_directory() / "checkpoints")) {
      GTEST_SKIP() << "needs the checkpoint headers beside the repository: " << headers_directory();
    }
  }
};

Table table_of_parts(const Loaded& loaded) {
  Table parts;
  for (const format::TensorInfo& tensor : loaded.tensors) {
    const NameInfo name = classify_name(tensor.name, {.mtp_from = loaded.config.num_hidden_layers});
    Row& row = parts[std::string(part_title(name.part))];
    ++row.tensors;
    row.bytes += tensor.bytes;
    row.dtypes.insert(std::string(dtype_name(tensor.dtype)));
  }
  return parts;
}

// Every packed module of these builds is 4 bits in groups of 32, and every claim is kept.
void expect_agreement(const ModuleTable& table, bool quantized) {
  for (const Finding& finding : table.findings) {
    ADD_FAILURE() << finding.code << ": " << finding.message << " " << finding.tensors.front();
  }
  std::size_t packed = 0;
  for (const Module& module : table.modules) {
    if (module.scheme != Scheme::kCtPackQuantized) continue;
    ++packed;
    EXPECT_EQ(module.bits, 4U) << module.name;
    EXPECT_EQ(module.group_size, 32) << module.name;
  }
  EXPECT_EQ(packed > 0, quantized);
}

std::uint64_t parameters_of(const ModuleTable& table) {
  std::uint64_t parameters = 0;
  for (const Module& module : table.modules) parameters += module.parameters;
  return parameters;
}

// What the Hub prints as a model's parameter count: packed weights counted, scales not.
std::optional<std::uint64_t> published_parameters(const std::string& checkpoint) {
  static const std::map<std::string, std::uint64_t> kPublished = {{"12B-bf16", 11'959'730'224},
                                                                  {"E2B-ple4", 4'628'569'379},
                                                                  {"E4B-emb4", 8'134'102'058},
                                                                  {"26B-A4B-emb4", 25'971'339'294}};
  const auto found = kPublished.find(checkpoint);
  return found == kPublished.end() ? std::nullopt : std::optional(found->second);
}

TEST_P(PublishedTables, PartsClaimsAndParametersAreThePublishedOnes) {
  const Table expected = published_tables()[GetParam()];
  ASSERT_FALSE(expected.empty());
  const Loaded loaded = load(GetParam());
  EXPECT_EQ(table_of_parts(loaded), expected);

  const auto claim = quantization_from_config(loaded.config.root);
  const ModuleTable table = detect_modules(loaded.tensors, claim ? &*claim : nullptr);
  expect_agreement(table, GetParam().find("bf16") == std::string::npos);

  // Shapes alone give the same count as the configuration's bits and group size.
  const std::uint64_t parameters = parameters_of(table);
  EXPECT_EQ(parameters_of(detect_modules(loaded.tensors, nullptr)), parameters);
  EXPECT_EQ(parameters, published_parameters(GetParam()).value_or(parameters));
}

std::string name_of(const ::testing::TestParamInfo<std::string>& checkpoint) {
  std::string name = checkpoint.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Headers, PublishedTables,
                         ::testing::Values("E2B-bf16", "E2B-w4a16", "E4B-bf16", "E4B-w4a16",
                                           "12B-bf16", "12B-w4a16", "26B-A4B-bf16", "31B-bf16",
                                           "31B-w4a16", "E2B-repack", "E2B-text", "E2B-ple4",
                                           "E2B-emb4", "E4B-repack", "E4B-text", "E4B-emb4",
                                           "12B-repack", "26B-A4B-repack", "26B-A4B-emb4",
                                           "12B-bf16-5GB", "26B-A4B-bf16-5GB", "31B-bf16-5GB"),
                         name_of);

}  // namespace
}  // namespace gridscope::model
