#include "gridscope/model/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "gridscope/core/parallel.hpp"
#include "gridscope/core/text.hpp"
#include "gridscope/model/checkpoint_checks.hpp"
#include "gridscope/model/checkpoint_config.hpp"
#include "gridscope/model/consistency.hpp"
#include "gridscope/model/discovery.hpp"
#include "gridscope/model/file_headers.hpp"
#include "gridscope/model/file_view.hpp"

// Three rounds, each as wide as it can be: what the model is made of and what config.json says; the
// headers of all files; and then, without any reading, how it all fits together, set by set.

namespace gridscope::model {
namespace {

using format::TensorInfo;

template <typename T>
void append(std::vector<T>& to, std::vector<T>&& from) {
  if (to.empty()) {
    to = std::move(from);
  } else {
    std::ranges::move(from, std::back_inserter(to));
  }
}

class Loader {
 public:
  Loader(const store::Repository& repository, Observer& observer, const LoadOptions& options)
      : repository_(repository), observer_(observer), options_(options) {}

  Result<Checkpoint> run() {
    checkpoint_.repository = repository_.info();
    GRIDSCOPE_CHECK(find_files_and_config());
    const HeaderOptions options{
        .limits = options_.limits, .readers = options_.readers, .stop = options_.stop};
    GRIDSCOPE_TRY(headers_, read_headers(repository_, discovery_.sets, observer_, options));
    GRIDSCOPE_CHECK(check_files());
    GRIDSCOPE_CHECK(read_component_configs());
    add_files();
    settle_config();
    for (std::size_t set = 0; set < discovery_.sets.size(); ++set) {
      GRIDSCOPE_CHECK(add_set(set));
    }
    append(checkpoint_.findings, std::move(checkpoint_.modules.findings));
    checkpoint_.modules.findings = {};
    settle_quantization();
    return std::move(checkpoint_);
  }

 private:
  Status find_files_and_config() {
    const std::string folder = named_place(repository_).folder;
    GRIDSCOPE_CHECK(parallel_chunks(
        2, 2,
        [&](std::size_t task) -> Status {
          if (task == 0) {
            GRIDSCOPE_TRY(discovery_, discover(repository_, options_.limits));
          } else {
            GRIDSCOPE_TRY(config_, read_config_files(repository_, folder));
          }
          return {};
        },
        options_.stop));
    GRIDSCOPE_CHECK(prefer_config_beside_weights(folder));
    if (config_.config.source.empty() && config_.findings.empty()) {
      GRIDSCOPE_TRY(ConfigFiles substitute, read_substitute_config(repository_, folder));
      config_.config = std::move(substitute.config);
      append(config_.findings, std::move(substitute.findings));
    }
    append(checkpoint_.findings, std::move(discovery_.findings));
    check_projectors(discovery_, FileView(repository_), checkpoint_.findings);
    for (const std::string& path : discovery_.set_aside) {
      const std::string message =
          fmt::format("{} is set aside: another file was taken as the model", printable(path));
      observer_.on_event(Detail{.message = message});
    }
    return {};
  }

  // The only model may lie in a folder below the one that was named, with its configuration.
  Status prefer_config_beside_weights(const std::string& folder) {
    const WeightSet& first = discovery_.sets.front();
    if (!first.component.empty() || first.files.empty()) return {};
    const std::string beside(folder_of(first.files.front()));
    if (beside == folder) return {};
    GRIDSCOPE_TRY(ConfigFiles files, read_config_files(repository_, beside));
    if (!files.config.source.empty() || !files.findings.empty()) config_ = std::move(files);
    return {};
  }

  // What became of each file, before anything is counted.
  Status check_files() {
    for (std::size_t set = 0; set < discovery_.sets.size(); ++set) {
      std::vector<std::string> missing;
      for (const FileHeader& header : headers_of(set)) {
        if (header.missing) missing.push_back(header.path);
      }
      WeightSet& files = discovery_.sets[set];
      std::erase_if(files.files, [&](const std::string& path) {
        return std::ranges::find(missing, path) != missing.end();
      });
      if (missing.empty()) continue;
      if (files.files.empty()) {
        return fail(
            ErrorCode::kNotFound,
            fmt::format("none of {} is there", count_of(missing.size(), "file") + " of the model"),
            "fetch the weights, or name another file");
      }
      checkpoint_.findings.push_back(missing_shards(files, missing));
    }
    GRIDSCOPE_CHECK(check_containers(headers_, checkpoint_.findings));
    return check_gguf_split(headers_, checkpoint_.findings);
  }

  // The headers of a set lie together, in the order of its files.
  std::span<FileHeader> headers_of(std::size_t set) {
    const auto range = std::ranges::equal_range(headers_, set, {}, &FileHeader::set);
    return {range.begin(), range.end()};
  }

  Status read_component_configs() {
    component_claims_.resize(discovery_.sets.size());
    return parallel_chunks(
        discovery_.sets.size(), std::max<std::size_t>(options_.readers, 1),
        [&](std::size_t set) -> Status {
          const std::string& component = discovery_.sets[set].component;
          if (component.empty()) return {};
          const std::string folder = named_place(repository_).folder + component + "/";
          GRIDSCOPE_TRY(ConfigFiles files, read_config_files(repository_, folder));
          component_claims_[set] = std::move(files.quantization);
          return {};
        },
        options_.stop);
  }

  void add_files() {
    std::uint32_t next = 0;
    for (const FileHeader& header : headers_) {
      file_numbers_.push_back(next);
      if (header.missing) continue;
      checkpoint_.files.push_back({.path = header.path,
                                   .component = discovery_.sets[header.set].component,
                                   .bytes = header.bytes,
                                   .header_bytes = header.table.header_bytes,
                                   .source = header.source});
      ++next;
      const bool first = checkpoint_.container == format::Container::kUnknown;
      if (first || header.source != nullptr) checkpoint_.container = header.container;
    }
  }

  // GGUF carries its own configuration; for any other model a missing one is worth a finding.
  void settle_config() {
    const bool told = !config_.findings.empty();
    append(checkpoint_.findings, std::move(config_.findings));
    if (checkpoint_.container == format::Container::kGguf) {
      // Of split files the first holds the metadata; should it be missing, any will have to do.
      const auto first = std::ranges::find_if(
          headers_, [](const FileHeader& header) { return header.source != nullptr; });
      checkpoint_.config = config_from_gguf(first->table);
      config_.quantization.reset();
      return;
    }
    checkpoint_.config = std::move(config_.config);
    const bool read = checkpoint_.container == format::Container::kSafetensors;
    if (!read || told || !checkpoint_.config.source.empty()) return;
    checkpoint_.findings.push_back(
        {.code = "CONFIG_MISSING",
         .severity = Severity::kWarning,
         .message = "there is no config.json beside the weights",
         .remedy = "add it: what the model is and how it is quantized is told from tensors alone"});
  }

  Status add_set(std::size_t number) {
    WeightSet& set = discovery_.sets[number];
    const std::span<FileHeader> headers = headers_of(number);
    MergedTensors merged = merge_tables(headers, set, checkpoint_.findings);
    if (checkpoint_.tensors.size() + merged.tensors.size() > options_.limits.tensors) {
      return format::over_limit(
          &format::Limits::tensors,
          fmt::format("more than {} tensors", with_thousands(options_.limits.tensors)));
    }
    check_index(merged, headers, set, checkpoint_.findings);
    set.index = {};  // half a million names are not needed any more
    add_aliases(headers, merged);
    merged.by_name = {};
    const auto base = static_cast<std::size_t>(headers.data() - headers_.data());
    for (std::uint32_t& file : merged.file_of) file = file_numbers_[base + file];
    add_tensors(std::move(merged), claim_of(number));
    return {};
  }

  void add_aliases(std::span<const FileHeader> headers, const MergedTensors& merged) {
    for (const FileHeader& header : headers) {
      if (header.container != format::Container::kSafetensors) continue;
      for (const auto& [left_out, kept] : header.table.metadata) {
        if (!merged.find(kept)) continue;
        checkpoint_.aliases.emplace_back(left_out, kept);
      }
    }
  }

  [[nodiscard]] const QuantizationConfig* claim_of(std::size_t set) const {
    const std::optional<QuantizationConfig>& own = component_claims_[set];
    if (own) return &*own;
    const bool main = discovery_.sets[set].component.empty();
    return main && config_.quantization ? &*config_.quantization : nullptr;
  }

  void add_tensors(MergedTensors merged, const QuantizationConfig* claim) {
    const auto first_tensor = static_cast<std::uint32_t>(checkpoint_.tensors.size());
    const auto first_module = static_cast<std::uint32_t>(checkpoint_.modules.modules.size());
    std::vector<NameInfo> names;
    names.reserve(merged.tensors.size());
    const NameContext context{.mtp_from = checkpoint_.config.num_hidden_layers,
                              .container = checkpoint_.container};
    for (const TensorInfo& tensor : merged.tensors) {
      names.push_back(classify_name(tensor.name, context));
    }
    settle_parts(merged.tensors, names);
    ModuleTable table = detect_modules(merged.tensors, claim);
    if (first_tensor > 0) renumber(table, first_tensor, first_module);
    append(checkpoint_.tensors, std::move(merged.tensors));
    append(checkpoint_.file_of, std::move(merged.file_of));
    append(checkpoint_.names, std::move(names));
    append(checkpoint_.modules.modules, std::move(table.modules));
    append(checkpoint_.modules.module_of, std::move(table.module_of));
    append(checkpoint_.modules.storage_of, std::move(table.storage_of));
    append(checkpoint_.modules.parameters_of, std::move(table.parameters_of));
    append(checkpoint_.modules.findings, std::move(table.findings));
  }

  static void renumber(ModuleTable& table, std::uint32_t first_tensor, std::uint32_t first_module) {
    for (std::uint32_t& module : table.module_of) module += first_module;
    for (Module& module : table.modules) {
      for (std::uint32_t& tensor : module.tensors) tensor += first_tensor;
    }
  }

  // A claim without a method counts only when tensors confirm it, and takes the method from them.
  void settle_quantization() {
    std::optional<QuantizationConfig> claim = std::move(config_.quantization);
    for (auto& own : component_claims_) {
      if (!claim && own) claim = std::move(own);
    }
    if (claim && !claim->method.empty()) {
      checkpoint_.quantization = std::move(claim);
      return;
    }
    checkpoint_.quantization = quantization_from_tensors(checkpoint_.tensors, checkpoint_.modules);
  }

  const store::Repository& repository_;
  Observer& observer_;
  const LoadOptions& options_;
  Discovery discovery_;
  ConfigFiles config_;
  std::vector<FileHeader> headers_;
  std::vector<std::uint32_t> file_numbers_;  // of each header among the checkpoint's files
  std::vector<std::optional<QuantizationConfig>> component_claims_;  // per set
  Checkpoint checkpoint_;
};

}  // namespace

std::optional<std::uint32_t> Checkpoint::find_tensor(std::string_view name) const {
  const auto found = std::ranges::find(tensors, name, &TensorInfo::name);
  if (found == tensors.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - tensors.begin());
}

Result<Checkpoint> load_checkpoint(const store::Repository& repository, Observer& observer,
                                   const LoadOptions& options) {
  return Loader(repository, observer, options).run();
}

}  // namespace gridscope::model
