#include "gridscope/model/discovery.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <unordered_set>
#include <utility>

#include "gridscope/core/json.hpp"
#include "gridscope/core/text.hpp"
#include "gridscope/model/file_view.hpp"
#include "gridscope/model/weight_groups.hpp"

// The rules are tried in order and the first that finds weights decides; everything else that looks
// like weights is an alternative and set aside. Where the place cannot list, the names that a rule
// needs are probed before.

namespace gridscope::model {
namespace {

constexpr std::string_view kWeights = ".safetensors";
constexpr std::string_view kIndex = ".safetensors.index.json";
// Configurations that name files are small; anything larger is not one.
constexpr std::uint64_t kMaxListBytes = 1'000'000;
constexpr std::size_t kMaxNamesShown = 20;

std::string joined(std::span<const std::string> names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kMaxNamesShown; ++i) {
    text += (i == 0 ? "" : ", ") + printable(names[i]);
  }
  if (names.size() > kMaxNamesShown) {
    text += fmt::format(" and {} more", with_thousands(names.size() - kMaxNamesShown));
  }
  return text;
}

// "model--of-.safetensors": what is left of a shard's name without its numbers.
std::string without_digits(std::string_view name) {
  std::string text(name);
  std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
  return text;
}

bool is_projector(const WeightGroup& group) {
  return is_projector_file(group.name);
}

// The strings that a JSON object's members hold under `key`, for arrays of objects.
const std::string* string_member(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.find(key);
  return value == nullptr ? nullptr : value->string();
}

// Whether a member of model_index.json, [library, class], is a component that has weights.
// [null, null] stands for one that was left out on purpose.
bool promises_weights(std::string_view key, const JsonValue& value) {
  static constexpr std::array<std::string_view, 5> kEndings = {
      "Tokenizer", "TokenizerFast", "Scheduler", "FeatureExtractor", "Processor"};
  static constexpr std::array<std::string_view, 4> kKeys = {"scheduler", "tokenizer",
                                                            "feature_extractor", "image_processor"};
  const auto& pair = *value.array();
  if (pair.size() != 2 || pair[0].string() == nullptr || pair[1].string() == nullptr) return false;
  const std::string_view type = *pair[1].string();
  return std::ranges::none_of(kKeys, [&](auto start) { return key.starts_with(start); }) &&
         std::ranges::none_of(kEndings, [&](auto ending) { return type.ends_with(ending); });
}

class Discoverer {
 public:
  Discoverer(const store::Repository& repository, const format::Limits& limits)
      : repository_(repository), limits_(limits), files_(repository) {}

  Result<Discovery> run() {
    const NamedPlace place = named_place(repository_);
    folder_ = place.folder;
    if (!place.file.empty()) {
      GRIDSCOPE_CHECK(take_named(place.file));
    } else {
      GRIDSCOPE_CHECK(take_first_rule());
    }
    set_alternatives_aside();
    return std::move(found_);
  }

 private:
  using Rule = Result<bool> (Discoverer::*)();  // whether it found the model

  // ---- the reference names a file ---------------------------------------------------------------

  Status take_named(const std::string& path) {
    if (path.ends_with(".json")) return take_named_index(path);
    WeightSet set;
    set.container = format::Container::kUnknown;
    set.files = {path};
    if (path.ends_with(kWeights)) {
      set.container = format::Container::kSafetensors;
      note_other_shards(path);
    }
    if (path.ends_with(".gguf")) {
      set.container = format::Container::kGguf;
      set.files = shard_siblings(path);
      drop_missing(set);
    }
    found_.sets.push_back(std::move(set));
    return {};
  }

  // Whoever names one shard may have meant all of them.
  void note_other_shards(const std::string& path) {
    const auto shard = format::parse_shard_name(file_name_of(path));
    if (!shard || shard->total < 2) return;
    found_.findings.push_back(
        {.code = "SHARD_ALONE",
         .severity = Severity::kNote,
         .message = fmt::format("{} is one of {}; what the others hold is not counted",
                                printable(path), count_of(shard->total, "shard")),
         .remedy = "name the folder that it lies in to inspect all of them"});
  }

  // Any name may be an index's; a file that is none is taken for the configuration that people name
  // when they mean the model.
  Status take_named_index(const std::string& path) {
    auto set = indexed_set(path);
    if (set) {
      found_.sets.push_back(*std::move(set));
      return {};
    }
    const bool called_index = path.find(".index.") != std::string::npos;
    if (called_index || set.error().code != ErrorCode::kCorrupt) {
      return tl::make_unexpected(std::move(set).error());
    }
    std::string_view folder = repository_.info().reference;
    if (folder.ends_with(path)) folder.remove_suffix(file_name_of(path).size());
    if (folder.ends_with('/') && folder.size() > 1) folder.remove_suffix(1);
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{} is a configuration or the like, no index of weights", printable(path)),
        fmt::format("name the folder that it lies in: {}",
                    folder.empty() ? "." : printable(folder)));
  }

  // ---- rules, in order --------------------------------------------------------------------------

  Status take_first_rule() {
    if (files_.can_list() && !folder_.empty() && !files_.has_folder(folder_)) {
      return fail(ErrorCode::kNotFound,
                  fmt::format("{} has no file or folder {}", printable(repository_.info().location),
                              quote(repository_.named_file())),
                  "look at the repository's list of files");
    }
    static constexpr std::array<Rule, 9> kRules = {&Discoverer::transformers_model,
                                                   &Discoverer::diffusers_pipeline,
                                                   &Discoverer::diffusers_model,
                                                   &Discoverer::consolidated,
                                                   &Discoverer::adapter,
                                                   &Discoverer::other_index,
                                                   &Discoverer::other_safetensors,
                                                   &Discoverer::gguf,
                                                   &Discoverer::recognised_only};
    for (const Rule rule : kRules) {
      GRIDSCOPE_TRY(const bool found, (this->*rule)());
      if (found) return {};
    }
    return nothing_found();
  }

  Result<bool> transformers_model() {
    GRIDSCOPE_CHECK(probe({"model.safetensors", "model.safetensors.index.json", "modules.json"}));
    GRIDSCOPE_TRY(const bool found, take_stem(folder_, "model", ""));
    if (found) GRIDSCOPE_CHECK(add_dense_modules());
    return found;
  }

  Result<bool> diffusers_pipeline() {
    GRIDSCOPE_CHECK(probe({"model_index.json", "diffusion_pytorch_model.safetensors",
                           "diffusion_pytorch_model.safetensors.index.json",
                           "consolidated.safetensors", "consolidated.safetensors.index.json",
                           "adapter_model.safetensors", "pytorch_model.bin"}));
    const std::string path = folder_ + "model_index.json";
    if (files_.find(path) == nullptr) return false;
    GRIDSCOPE_TRY(const JsonValue pipeline, read_list(path));
    if (pipeline.object() == nullptr) return false;
    std::vector<std::string> components;
    std::unordered_set<std::string_view> promised;
    for (const auto& [name, value] : *pipeline.object()) {
      const bool component =
          !name.starts_with('_') && value.array() != nullptr && format::is_safe_shard_name(name);
      if (!component) continue;
      components.push_back(name);
      if (promises_weights(name, value)) promised.insert(name);
    }
    GRIDSCOPE_CHECK(probe_components(components));
    std::vector<Finding> missing;
    for (const std::string& component : components) {
      GRIDSCOPE_TRY(const bool found, add_component(component));
      if (found || !promised.contains(component)) continue;
      GRIDSCOPE_CHECK(rule_out_refusal(usual_files(component)));
      missing.push_back(missing_component(component));
    }
    if (found_.sets.empty()) return false;
    std::ranges::move(missing, std::back_inserter(found_.findings));
    return true;
  }

  Result<bool> diffusers_model() { return take_stem(folder_, "diffusion_pytorch_model", ""); }
  Result<bool> consolidated() { return take_stem(folder_, "consolidated", ""); }
  Result<bool> adapter() { return take_stem(folder_, "adapter_model", ""); }

  // "model.safetensors.index.fp16.json" and indexes of other names, where there is no default.
  Result<bool> other_index() {
    std::vector<std::string> indexes;
    for (const store::FileEntry& entry : files_.files()) {
      const bool here = folder_of(entry.path) == folder_;
      const bool index = entry.path.find(".safetensors.index.") != std::string::npos;
      if (here && index && entry.path.ends_with(".json")) indexes.push_back(entry.path);
    }
    if (indexes.empty()) return false;
    if (indexes.size() > 1) return ambiguous("indexes", indexes);
    GRIDSCOPE_TRY(WeightSet set, indexed_set(indexes.front()));
    found_.sets.push_back(std::move(set));
    return true;
  }

  Result<bool> other_safetensors() {
    return take_group(preferred_groups(group_weights(files_.files(), folder_, kWeights), folder_),
                      format::Container::kSafetensors, "");
  }

  Result<bool> gguf() {
    std::vector<WeightGroup> groups = group_weights(files_.files(), folder_, ".gguf");
    // A projector beside a model is an alternative reading of nothing: it is half of a pair, and is
    // inspected by naming it.
    if (!std::ranges::all_of(groups, is_projector)) std::erase_if(groups, is_projector);
    return take_group(std::move(groups), format::Container::kGguf, "");
  }

  Result<bool> recognised_only() {
    static constexpr std::array<std::string_view, 12> kExtensions = {
        ".bin",  ".pt",   ".pth", ".ckpt", ".litertlm", ".tflite",
        ".task", ".onnx", ".h5",  ".npz",  ".msgpack",  ".ggml"};
    if (!files_.can_list()) {
      const std::string path = folder_ + "pytorch_model.bin";
      if (files_.find(path) == nullptr) return false;
      return take_files({path}, format::Container::kUnknown);
    }
    for (const std::string_view extension : kExtensions) {
      std::vector<std::string> paths;
      for (const store::FileEntry& entry : files_.files()) {
        const bool fits = entry.path.starts_with(folder_) && entry.path.ends_with(extension);
        if (fits && is_weight_file(entry.path)) paths.push_back(entry.path);
      }
      if (!paths.empty()) return take_files(std::move(paths), format::Container::kUnknown);
    }
    return false;
  }

  // ---- what rules are made of -------------------------------------------------------------------

  Status probe(std::initializer_list<std::string_view> names) {
    std::vector<std::string> paths;
    for (const std::string_view name : names) paths.push_back(folder_ + std::string(name));
    return files_.probe(paths);
  }

  [[nodiscard]] std::vector<std::string> usual_files(const std::string& component) const {
    std::vector<std::string> paths;
    for (const char* stem : {"diffusion_pytorch_model", "model"}) {
      paths.push_back(fmt::format("{}{}/{}{}", folder_, component, stem, kWeights));
      paths.push_back(fmt::format("{}{}/{}{}", folder_, component, stem, kIndex));
    }
    return paths;
  }

  Status probe_components(std::span<const std::string> components) {
    std::vector<std::string> paths;
    for (const std::string& component : components) {
      std::ranges::move(usual_files(component), std::back_inserter(paths));
    }
    return files_.probe(paths);
  }

  // A server may refuse what is there, and probing takes a refusal for absence.
  [[nodiscard]] Status rule_out_refusal(std::span<const std::string> paths) const {
    if (files_.can_list()) return {};
    for (const std::string& path : paths) {
      auto source = repository_.open(path);
      if (!source && source.error().code == ErrorCode::kPermission) {
        return tl::make_unexpected(std::move(source).error());
      }
    }
    return {};
  }

  // stem.safetensors, else what its index names.
  Result<bool> take_stem(const std::string& folder, std::string_view stem,
                         const std::string& component) {
    const std::string file = fmt::format("{}{}{}", folder, stem, kWeights);
    const std::string index = fmt::format("{}{}{}", folder, stem, kIndex);
    const bool has_index = files_.find(index) != nullptr;
    if (files_.find(file) != nullptr) {
      WeightSet set{.component = component,
                    .container = format::Container::kSafetensors,
                    .files = {file},
                    .index_path = {},
                    .index = {}};
      if (has_index) GRIDSCOPE_CHECK(consider_index(index, set));
      found_.sets.push_back(std::move(set));
      return true;
    }
    if (!has_index) return false;
    GRIDSCOPE_TRY(WeightSet set, indexed_set(index));
    set.component = component;
    found_.sets.push_back(std::move(set));
    return true;
  }

  // An index beside the single file counts when it speaks of that file; otherwise it is left over
  // from a sharded copy.
  Status consider_index(const std::string& path, WeightSet& set) {
    auto index = read_index(path);
    if (!index && index.error().code != ErrorCode::kCorrupt) {
      return tl::make_unexpected(std::move(index).error());
    }
    const std::string_view name = file_name_of(set.files.front());
    if (index && index->shards.size() == 1 && index->shards.front() == name) {
      set.index_path = path;
      set.index = *std::move(index);
      return {};
    }
    const std::string why =
        index ? fmt::format("it names {}", count_of(index->shards.size(), "other file"))
              : index.error().message;
    found_.findings.push_back(
        {.code = "INDEX_STALE",
         .severity = Severity::kWarning,
         .message = fmt::format("{} is taken as the model; the index beside it is not used: {}",
                                printable(set.files.front()), why),
         .remedy = "delete the index, or the single file, so that every loader takes the same"});
    return {};
  }

  Result<format::ShardIndex> read_index(const std::string& path) {
    auto text = read_text(path, limits_.index_bytes);
    if (!text && text.error().code == ErrorCode::kLimit) {
      text.error().remedy = format::limit_remedy(&format::Limits::index_bytes);
    }
    if (!text) return tl::make_unexpected(std::move(text).error());
    auto index = format::parse_safetensors_index(std::as_bytes(std::span(*text)), limits_);
    if (!index) return tl::make_unexpected(with_context(std::move(index).error(), printable(path)));
    return index;
  }

  Result<WeightSet> indexed_set(const std::string& path) {
    GRIDSCOPE_TRY(format::ShardIndex index, read_index(path));
    WeightSet set{.component = {},
                  .container = format::Container::kSafetensors,
                  .files = {},
                  .index_path = path,
                  .index = std::move(index)};
    for (const std::string& shard : set.index.shards) {
      set.files.push_back(std::string(folder_of(path)) + shard);
    }
    std::ranges::sort(set.files);
    if (set.files.empty()) {
      return fail(ErrorCode::kCorrupt, fmt::format("{}: the index names no file", printable(path)),
                  "export the checkpoint again");
    }
    drop_missing(set);
    if (set.files.empty()) {
      return fail(ErrorCode::kNotFound,
                  fmt::format("{} names {}, and none of them is there", printable(path),
                              count_of(set.index.shards.size(), "file")),
                  "fetch the weights, or name another file of the repository");
    }
    flag_strays(set);
    return set;
  }

  // Takes shards that the listing does not have off the set and says so.
  void drop_missing(WeightSet& set) {
    if (!files_.can_list()) return;
    std::vector<std::string> missing;
    std::erase_if(set.files, [&](const std::string& file) {
      const bool gone = files_.find(file) == nullptr;
      if (gone) missing.push_back(file);
      return gone;
    });
    if (!missing.empty()) found_.findings.push_back(missing_shards(set, missing));
  }

  // GGUF's shards count themselves. An index of any name will do: variants have their own.
  void flag_lack_of_index(const WeightSet& set) {
    if (set.container != format::Container::kSafetensors || set.files.size() < 2) return;
    const std::string& first = set.files.front();
    const bool there = std::ranges::any_of(files_.files(), [&](const store::FileEntry& entry) {
      return folder_of(entry.path) == folder_of(first) &&
             entry.path.find(".safetensors.index.") != std::string::npos;
    });
    const auto shard = format::parse_shard_name(file_name_of(first));
    if (there || !shard) return;
    const std::string_view stem =
        std::string_view(shard->prefix).substr(0, shard->prefix.size() - 1);
    found_.findings.push_back(
        {.code = "INDEX_MISSING",
         .severity = Severity::kWarning,
         .message = fmt::format("{} without an index: most loaders need {}{}",
                                count_of(set.files.size(), "shard"), printable(stem), kIndex),
         .remedy = "write the index, or export the checkpoint again"});
  }

  // Files that differ from an indexed shard in their numbers only.
  void flag_strays(const WeightSet& set) {
    const std::unordered_set<std::string_view> indexed(set.files.begin(), set.files.end());
    std::unordered_set<std::string> patterns;
    for (const std::string& file : set.files) patterns.insert(without_digits(file));
    Finding stray{.code = "SHARD_STRAY",
                  .severity = Severity::kWarning,
                  .message = {},
                  .remedy = "delete them, or write the index again"};
    std::vector<std::string> names;
    for (const store::FileEntry& entry : files_.files()) {
      const bool looks_like_shard = entry.path.ends_with(kWeights) &&
                                    patterns.contains(without_digits(entry.path)) &&
                                    !indexed.contains(entry.path);
      if (!looks_like_shard || file_name_of(entry.path) == "model.safetensors") continue;
      names.push_back(entry.path);
      stray.bytes += entry.size;
    }
    if (names.empty()) return;
    stray.message = fmt::format("{} beside the shards that {} names: {}",
                                count_of(names.size(), "further file"), printable(set.index_path),
                                joined(names));
    found_.findings.push_back(std::move(stray));
  }

  Result<bool> take_files(std::vector<std::string> files, format::Container container) {
    WeightSet& set = found_.sets.emplace_back();
    set.container = container;
    set.files = std::move(files);
    return true;
  }

  Result<bool> take_group(std::vector<WeightGroup> groups, format::Container container,
                          const std::string& component) {
    if (groups.empty()) return false;
    if (groups.size() > 1) {
      const std::vector<std::string> names = names_to_choose(groups, folder_);
      return ambiguous(names.size() == groups.size() ? "models" : "folders with models", names);
    }
    WeightGroup& group = groups.front();
    WeightSet set{.component = component,
                  .container = container,
                  .files = std::move(group.files),
                  .index_path = {},
                  .index = {}};
    if (group.missing.empty()) {
      flag_lack_of_index(set);
    } else {
      found_.findings.push_back(missing_shards(set, group.missing));
    }
    found_.sets.push_back(std::move(set));
    return true;
  }

  [[nodiscard]] Result<bool> ambiguous(std::string_view what,
                                       const std::vector<std::string>& names) const {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{} holds {} {}: {}", printable(repository_.info().location),
                            with_thousands(names.size()), what, joined(names)),
                fmt::format("name one of them: {}/{}", printable(repository_.info().reference),
                            printable(names.front())));
  }

  Result<bool> add_component(const std::string& component) {
    const std::string folder = folder_ + component + "/";
    for (const char* stem : {"diffusion_pytorch_model", "model"}) {
      GRIDSCOPE_TRY(const bool found, take_stem(folder, stem, component));
      if (found) return true;
    }
    // Only variants, or another name: taken when there is just one.
    auto groups = preferred_groups(group_weights(files_.files(), folder, kWeights), folder);
    return take_group(std::move(groups), format::Container::kSafetensors, component);
  }

  [[nodiscard]] Finding missing_component(const std::string& component) const {
    const std::string folder = folder_ + component + "/";
    std::vector<std::string> others;
    for (const store::FileEntry& entry : files_.files()) {
      const bool weights = entry.path.starts_with(folder) && is_weight_file(entry.path);
      if (weights) others.push_back(entry.path);
    }
    const std::string there = !others.empty()     ? "only " + joined(others)
                              : files_.can_list() ? "no weights"
                                                  : "no weights under the usual names";
    return {.code = "SHARD_MISSING",
            .severity = Severity::kError,
            .message = fmt::format("model_index.json names the component {}, whose folder has {}",
                                   quote(component), there),
            .remedy = "fetch or upload its safetensors; what they hold is not counted here"};
  }

  // sentence-transformers: layers on top of the transformer, each in its own folder.
  Status add_dense_modules() {
    const std::string path = folder_ + "modules.json";
    if (files_.find(path) == nullptr) return {};
    GRIDSCOPE_TRY(const JsonValue modules, read_list(path));
    if (modules.array() == nullptr) return {};
    for (const JsonValue& module : *modules.array()) {
      const std::string* type = string_member(module, "type");
      const std::string* place = string_member(module, "path");
      if (type == nullptr || place == nullptr || !type->ends_with(".Dense")) continue;
      if (!format::is_safe_shard_name(*place)) continue;
      const std::string file = fmt::format("{}{}/model{}", folder_, *place, kWeights);
      GRIDSCOPE_CHECK(files_.probe(std::array{file}));
      GRIDSCOPE_CHECK(take_stem(folder_ + *place + "/", "model", *place).map([](bool) {}));
    }
    return {};
  }

  Result<std::string> read_text(const std::string& path, std::uint64_t max_bytes) {
    GRIDSCOPE_TRY(std::string text, read_file(repository_, path, max_bytes));
    if (auto pointer = lfs_pointer_error(path, text)) return tl::make_unexpected(*pointer);
    return text;
  }

  Result<JsonValue> read_list(const std::string& path) {
    GRIDSCOPE_TRY(const std::string text, read_text(path, kMaxListBytes));
    auto value = parse_json(text);
    if (!value) return tl::make_unexpected(with_context(std::move(value).error(), printable(path)));
    return value;
  }

  [[nodiscard]] Status nothing_found() const {
    std::vector<std::string> candidates;
    for (const char* stem : {"model", "diffusion_pytorch_model", "consolidated", "adapter_model"}) {
      candidates.push_back(fmt::format("{}{}{}", folder_, stem, kWeights));
      candidates.push_back(fmt::format("{}{}{}", folder_, stem, kIndex));
    }
    GRIDSCOPE_CHECK(rule_out_refusal(candidates));
    std::vector<std::string> names;
    for (const store::FileEntry& entry : files_.files()) {
      if (entry.path.starts_with(folder_)) names.push_back(entry.path);
    }
    const std::string there = !files_.can_list()
                                  ? "it cannot list its files, and none of the usual "
                                    "names is there"
                              : names.empty() ? "it is empty"
                                              : "it holds " + joined(names);
    return fail(ErrorCode::kNotFound,
                fmt::format("no weights in {}: {}", printable(repository_.info().location), there),
                "name the weights file itself");
  }

  void set_alternatives_aside() {
    std::unordered_set<std::string_view> chosen;
    for (const WeightSet& set : found_.sets) chosen.insert(set.files.begin(), set.files.end());
    for (const store::FileEntry& entry : files_.files()) {
      const bool alternative = entry.path.starts_with(folder_) && is_weight_file(entry.path) &&
                               !chosen.contains(entry.path);
      if (alternative) found_.set_aside.push_back(entry.path);
    }
  }

  const store::Repository& repository_;
  const format::Limits& limits_;
  FileView files_;
  std::string folder_;
  Discovery found_;
};

}  // namespace

Result<Discovery> discover(const store::Repository& repository, const format::Limits& limits) {
  return Discoverer(repository, limits).run();
}

Finding missing_shards(const WeightSet& set, std::span<const std::string> missing) {
  const std::size_t all = set.files.size() + missing.size();
  Finding finding{
      .code = "SHARD_MISSING",
      .severity = Severity::kError,
      .message = fmt::format("{} of {} are not there: {}", with_thousands(missing.size()),
                             count_of(all, "shard"), joined(missing)),
      .remedy = "fetch or upload the missing files; what they hold is not counted here"};
  std::unordered_set<std::string_view> names;
  for (const std::string& path : missing) names.insert(file_name_of(path));
  std::vector<bool> gone(set.index.shards.size());
  for (std::size_t i = 0; i < gone.size(); ++i) gone[i] = names.contains(set.index.shards[i]);
  for (const format::ShardIndex::Entry& entry : set.index.entries) {
    if (gone[entry.shard]) finding.add_tensor(entry.tensor);
  }
  return finding;
}

}  // namespace gridscope::model
