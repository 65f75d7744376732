#include "gridscope/app/output_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <string_view>
#include <system_error>
#include <vector>

#include "exists_on_disk.hpp"
#include "gridscope/core/observer.hpp"
#include "gridscope/core/text.hpp"
#include "gridscope/store/open.hpp"
#include "gridscope/store/reference.hpp"

namespace gridscope::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRemedy = "choose another file for the output";

// Whether it starts as reports for machines and reports in Markdown do. A report in plain text
// starts with a foreign name, so that it cannot be told from a file of the model.
bool is_report(const fs::path& path) {
  constexpr auto kStarts =
      std::to_array<std::string_view>({"{\n  \"schema\": \"gridscope.", R"({"schema":"gridscope.)",
                                       "# Inspection of ", "# Grid check against "});
  std::string start(64, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(start.data(), static_cast<std::streamsize>(start.size()));
  return std::ranges::any_of(kStarts, [&](auto report) { return start.starts_with(report); });
}

// Of what lies beside a file that is named, only weights are taken for its kin.
bool belongs(const store::FileEntry& file, const std::string& named) {
  return named.empty() || file.path == named || file.path.ends_with(".safetensors") ||
         file.path.ends_with(".gguf");
}

// Where a path leads, by links that lead nowhere yet as well.
fs::path behind_links(fs::path path) {
  constexpr int kMostLinks = 40;  // as Linux follows
  std::error_code ignored;
  for (int i = 0; i < kMostLinks && fs::is_symlink(path, ignored); ++i) {
    path = path.parent_path() / fs::read_symlink(path, ignored);
  }
  return fs::weakly_canonical(fs::absolute(path, ignored), ignored);
}

}  // namespace

Status check_output(const std::string& model, const fs::path& output) {
  std::error_code ignored;
  if (!fs::is_regular_file(output, ignored)) return {};
  const auto reference = store::parse_reference(model, {.exists_on_disk = exists_on_disk});
  if (!reference || reference->kind != store::ReferenceKind::kDisk) return {};
  NullObserver observer;
  const auto repository = store::open_repository(*reference, {.observer = &observer});
  if (!repository) return {};
  const fs::path directory = (*repository)->info().location;
  const auto is_output = [&](const store::FileEntry& file) {
    return belongs(file, (*repository)->named_file()) &&
           fs::equivalent(directory / file.path, output, ignored);
  };
  const std::string& named = (*repository)->named_file();
  if (!named.empty() && fs::equivalent(directory / named, output, ignored)) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("the output {} is {}, which is to be read", quote(output.string()),
                            quote(reference->text)),
                kRemedy);
  }
  const auto files = (*repository)->listing().value_or(std::vector<store::FileEntry>{});
  if (std::ranges::none_of(files, is_output) || is_report(output)) return {};
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("the output {} is a file of the model {}", quote(output.string()),
                          quote(reference->text)),
              kRemedy);
}

Status check_output_apart(const fs::path& output, std::string_view option, const fs::path& kept) {
  std::error_code ignored;
  if (!fs::equivalent(output, kept, ignored) && behind_links(output) != behind_links(kept)) {
    return {};
  }
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("the output {} is the file {} of --{}", quote(output.string()),
                          quote(kept.string()), option),
              kRemedy);
}

}  // namespace gridscope::app
