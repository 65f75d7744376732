#include "gridscope/model/checkpoint_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "gridscope/core/text.hpp"
#include "gridscope/model/file_view.hpp"

namespace gridscope::model {
namespace {

// A configuration with thousands of ignored modules has a megabyte; nothing honest has more.
constexpr std::uint64_t kMaxConfigBytes = 16'000'000;

bool is_fault_of_file(ErrorCode code) {
  return code == ErrorCode::kCorrupt || code == ErrorCode::kLimit || code == ErrorCode::kNotFound;
}

Finding unreadable(std::string_view path, const Error& error) {
  return {.code = "CONFIG_MISSING",
          .severity = Severity::kWarning,
          .message = fmt::format("{} cannot be used: {}", printable(path), error.message),
          .remedy =
              "mend or fetch the file: what the model is and how it is quantized is told "
              "from tensors alone"};
}

// The file's text if it is there; a file that cannot be used leaves a finding.
Result<std::optional<std::string>> read_if_there(const store::Repository& repository,
                                                 const std::string& path, ConfigFiles& files) {
  auto text = read_file(repository, path, kMaxConfigBytes);
  if (text) {
    auto pointer = lfs_pointer_error(path, *text);
    if (!pointer) return std::optional(*std::move(text));
    files.findings.push_back({.code = "LFS_POINTER",
                              .severity = Severity::kWarning,
                              .message = std::move(pointer->message),
                              .remedy = std::move(pointer->remedy)});
    return std::nullopt;
  }
  if (!is_fault_of_file(text.error().code)) return tl::make_unexpected(std::move(text).error());
  if (text.error().code != ErrorCode::kNotFound) {
    files.findings.push_back(unreadable(path, text.error()));
  }
  return std::nullopt;
}

Status read_config(const store::Repository& repository, const std::string& path,
                   ConfigFiles& files) {
  GRIDSCOPE_TRY(const auto text, read_if_there(repository, path, files));
  if (!text) return {};
  auto config = parse_config(*text, std::string(file_name_of(path)));
  if (!config) {
    files.findings.push_back(unreadable(path, config.error()));
    return {};
  }
  files.config = *std::move(config);
  return {};
}

Status read_side_files(const store::Repository& repository, FileView& view,
                       const std::string& folder, ConfigFiles& files) {
  std::vector<std::string> paths;
  for (const std::string_view name : quantization_side_files()) {
    paths.push_back(folder + std::string(name));
  }
  GRIDSCOPE_CHECK(view.probe(paths));
  for (const std::string& path : paths) {
    if (files.quantization || view.find(path) == nullptr) continue;
    GRIDSCOPE_TRY(const auto text, read_if_there(repository, path, files));
    if (!text) continue;
    const auto root = parse_json(*text);
    if (root) {
      files.quantization = quantization_from_side_file(file_name_of(path), *root);
    } else {
      files.findings.push_back(unreadable(path, root.error()));
    }
  }
  return {};
}

}  // namespace

Result<ConfigFiles> read_config_files(const store::Repository& repository,
                                      const std::string& folder) {
  ConfigFiles files;
  FileView view(repository);
  const std::string path = folder + "config.json";
  GRIDSCOPE_CHECK(view.probe({&path, 1}));
  if (view.find(path) != nullptr) GRIDSCOPE_CHECK(read_config(repository, path, files));
  files.quantization = quantization_from_config(files.config.root);
  if (!files.quantization) GRIDSCOPE_CHECK(read_side_files(repository, view, folder, files));
  return files;
}

Result<ConfigFiles> read_substitute_config(const store::Repository& repository,
                                           const std::string& folder) {
  ConfigFiles files;
  FileView view(repository);
  std::vector<std::string> paths;
  for (const char* name : {"model_index.json", "params.json", "adapter_config.json"}) {
    paths.push_back(folder + name);
  }
  GRIDSCOPE_CHECK(view.probe(paths));
  for (const std::string& path : paths) {
    if (view.find(path) == nullptr || !files.config.source.empty()) continue;
    GRIDSCOPE_CHECK(read_config(repository, path, files));
  }
  return files;
}

}  // namespace gridscope::model
