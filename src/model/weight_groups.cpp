#include "gridscope/model/weight_groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "gridscope/format/safetensors_index.hpp"
#include "gridscope/model/file_view.hpp"

namespace gridscope::model {
namespace {

// More shards than any name is believed to promise.
constexpr std::uint32_t kMaxPromised = 10'000;

// "model" of "model.fp16.safetensors" and of "model.fp16-00001-of-00002.safetensors"; empty when
// the name carries no variant.
std::string without_variant(std::string_view path) {
  static constexpr std::array<std::string_view, 8> kVariants = {
      ".fp16", ".bf16", ".fp32", ".fp8", ".int8", ".non_ema", "_fp16", "_fp8"};
  for (const std::string_view variant : kVariants) {
    const std::size_t at = path.rfind(variant);
    if (at == std::string_view::npos || at < folder_of(path).size()) continue;
    return std::string(path.substr(0, at)) + std::string(path.substr(at + variant.size()));
  }
  return {};
}

std::string shard_path(std::string_view folder, const format::ShardName& shard,
                       std::uint32_t number, std::size_t digits) {
  return fmt::format("{}{}{:0{}}-of-{:0{}}{}", folder, shard.prefix, number, digits, shard.total,
                     digits, shard.suffix);
}

std::size_t digits_of(std::string_view path, const format::ShardName& shard) {
  // prefix, number, "-of-", total, suffix: both numbers have the same width.
  const std::size_t rest = shard.prefix.size() + shard.suffix.size() + 4;
  const std::size_t name = file_name_of(path).size();
  return name > rest ? (name - rest) / 2 : 5;
}

// Numbers that are not there, where counting starts at 0 or at 1.
std::vector<std::string> missing_of(const std::vector<std::string>& files) {
  std::vector<std::string> missing;
  const auto first = format::parse_shard_name(file_name_of(files.front()));
  if (!first || first->total > kMaxPromised) return missing;
  std::set<std::uint32_t> present;
  for (const std::string& file : files) {
    if (const auto shard = format::parse_shard_name(file_name_of(file)))
      present.insert(shard->number);
  }
  const std::uint32_t start = present.contains(0) ? 0 : 1;
  for (std::uint32_t number = start; number < start + first->total; ++number) {
    if (present.contains(number)) continue;
    missing.push_back(
        shard_path(folder_of(files.front()), *first, number, digits_of(files.front(), *first)));
  }
  return missing;
}

}  // namespace

std::vector<WeightGroup> group_weights(std::span<const store::FileEntry> files,
                                       std::string_view folder, std::string_view extension,
                                       std::span<const std::string> taken) {
  std::map<std::string, std::vector<std::string>> by_key;
  for (const store::FileEntry& entry : files) {
    const std::string& path = entry.path;
    if (!path.starts_with(folder) || !path.ends_with(extension)) continue;
    if (std::ranges::find(taken, path) != taken.end()) continue;
    const auto shard = format::parse_shard_name(file_name_of(path));
    const std::string key = shard ? fmt::format("{}{}*-of-{}{}", folder_of(path), shard->prefix,
                                                shard->total, shard->suffix)
                                  : path;
    by_key[key].push_back(path);
  }
  std::vector<WeightGroup> groups;
  for (auto& [key, paths] : by_key) {
    WeightGroup group{.name = paths.front(), .files = std::move(paths), .missing = {}};
    group.missing = missing_of(group.files);
    groups.push_back(std::move(group));
  }
  return groups;
}

std::vector<std::string> shard_siblings(const std::string& path) {
  const auto shard = format::parse_shard_name(file_name_of(path));
  if (!shard || shard->total > kMaxPromised || shard->total == 0) return {path};
  std::vector<std::string> siblings;
  const std::uint32_t start = shard->number == 0 ? 0 : 1;
  for (std::uint32_t number = start; number < start + shard->total; ++number) {
    siblings.push_back(shard_path(folder_of(path), *shard, number, digits_of(path, *shard)));
  }
  return siblings;
}

std::vector<WeightGroup> preferred_groups(std::vector<WeightGroup> groups,
                                          std::string_view folder) {
  const auto in_folder = [&](const WeightGroup& group) { return folder_of(group.name) == folder; };
  if (std::ranges::any_of(groups, in_folder)) std::erase_if(groups, std::not_fn(in_folder));
  std::set<std::string> names;
  for (const WeightGroup& group : groups) names.insert(group.name);
  std::erase_if(groups, [&](const WeightGroup& group) {
    return names.contains(without_variant(group.name));
  });
  return groups;
}

std::vector<std::string> names_to_choose(std::span<const WeightGroup> groups,
                                         std::string_view folder) {
  std::vector<std::string> names;
  std::set<std::string> places;
  for (const WeightGroup& group : groups) {
    names.push_back(group.name);
    const std::string_view own = folder_of(group.name);
    places.emplace(own == folder ? group.name : own.substr(0, own.size() - 1));
  }
  return places.size() > 1 ? std::vector(places.begin(), places.end()) : names;
}

bool is_weight_file(std::string_view path) {
  static constexpr std::array<std::string_view, 13> kExtensions = {
      ".safetensors", ".gguf", ".litertlm", ".tflite", ".task",    ".onnx", ".pt",
      ".pth",         ".ckpt", ".h5",       ".npz",    ".msgpack", ".ggml"};
  const std::string_view name = file_name_of(path);
  if (name.ends_with(".bin"))
    return name.find("model") != std::string_view::npos || name.starts_with("consolidated") ||
           name.starts_with("ggml");
  return std::ranges::any_of(kExtensions, [&](auto ending) { return name.ends_with(ending); });
}

bool is_projector_file(std::string_view path) {
  return path.ends_with(".gguf") && file_name_of(path).find("mmproj") != std::string_view::npos;
}

}  // namespace gridscope::model
