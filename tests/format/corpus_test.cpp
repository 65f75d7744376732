// fixtures/bad and fixtures/valid against the lists beside them: every file of the one is refused
// with the error listed, every file of the other is read.

#include <gmock/gmock.h>

#include <fstream>
#include <set>
#include <sstream>

#include "gridscope/format/container.hpp"
#include "gridscope/format/gguf.hpp"
#include "gridscope/format/safetensors.hpp"
#include "gridscope/format/safetensors_index.hpp"
#include "gridscope/io/memory_source.hpp"
#include "support/checkpoints.hpp"
#include "support/matchers.hpp"

namespace gridscope::format {
namespace {

namespace fs = std::filesystem;

const fs::path kFixtures = GRIDSCOPE_FIXTURES;

// The lines of an expected.tsv, each a list of fields; the first line names the columns.
std::vector<std::vector<std::string>> read_rows(const fs::path& directory) {
  std::ifstream in(directory / "expected.tsv");
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    rows.emplace_back();
    for (std::string field; std::getline(fields, field, '\t');) rows.back().push_back(field);
  }
  if (rows.size() < 2) throw std::runtime_error("no rows in " + directory.string());
  rows.erase(rows.begin());
  return rows;
}

std::set<std::string> files_in(const fs::path& directory) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    names.insert(entry.path().filename().string());
  }
  for (const char* about : {"README.md", "SHA256SUMS", "expected.tsv"}) names.erase(about);
  return names;
}

std::set<std::string> files_listed(const fs::path& directory) {
  std::set<std::string> names;
  for (const auto& row : read_rows(directory)) EXPECT_TRUE(names.insert(row[0]).second) << row[0];
  return names;
}

// The number of tensors in a file of that kind, or why it is refused.
Result<std::size_t> count_tensors(const fs::path& path, std::string_view kind) {
  const test::Bytes bytes = test::read_file(path);
  const auto source = io::make_memory_source(bytes, {.name = path.string(), .version = ""});
  if (kind == "safetensors") {
    GRIDSCOPE_TRY(const TensorTable table, read_safetensors_header(*source));
    return table.tensors.size();
  }
  if (kind == "gguf") {
    GRIDSCOPE_TRY(const GgufHeader header, read_gguf_header(*source));
    return header.table.tensors.size();
  }
  if (kind == "index") {
    GRIDSCOPE_TRY(const ShardIndex index, parse_safetensors_index(bytes));
    return index.entries.size();
  }
  const auto start = std::span(bytes).first(std::min(bytes.size(), kIdentifyBytes));
  const auto error =
      other_container_error(Container::kSafetensors, start, path.filename().string(), bytes.size());
  if (error) return tl::make_unexpected(*error);
  return fail(ErrorCode::kInternal, "the container was not recognised");
}

TEST(BadCorpus, EveryFileIsRefusedWithTheErrorListed) {
  for (const auto& row : read_rows(kFixtures / "bad")) {
    ASSERT_EQ(row.size(), 5U) << row[0];
    SCOPED_TRACE(row[0]);
    const auto tensors = count_tensors(kFixtures / "bad" / row[0], row[1]);
    ASSERT_FALSE(tensors.has_value());
    EXPECT_EQ(error_code_name(tensors.error().code), row[2]);
    EXPECT_EQ(describe(tensors.error()), row[3]);
  }
}

TEST(BadCorpus, NoFileThatIsRefusedPassesAsSafetensors) {
  for (const auto& row : read_rows(kFixtures / "bad")) {
    EXPECT_FALSE(count_tensors(kFixtures / "bad" / row[0], "safetensors").has_value()) << row[0];
  }
}

TEST(BadCorpus, TheListIsComplete) {
  EXPECT_EQ(files_listed(kFixtures / "bad"), files_in(kFixtures / "bad"));
  EXPECT_GE(files_in(kFixtures / "bad").size(), 60U);
}

TEST(ValidCorpus, EveryFileIsRead) {
  for (const auto& row : read_rows(kFixtures / "valid")) {
    ASSERT_EQ(row.size(), 4U) << row[0];
    SCOPED_TRACE(row[0]);
    const auto tensors = count_tensors(kFixtures / "valid" / row[0], row[1]);
    ASSERT_THAT(tensors, test::IsOk());
    EXPECT_EQ(std::to_string(*tensors), row[2]);
  }
}

TEST(ValidCorpus, TheListIsComplete) {
  EXPECT_EQ(files_listed(kFixtures / "valid"), files_in(kFixtures / "valid"));
}

}  // namespace
}  // namespace gridscope::format
