// Every tensor gets a number that stands for its row; rows then fill in one walk over the modules.
// Keys and titles are written once a row, never once a tensor.

#include "gridscope/analysis/inspection_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "gridscope/analysis/stored_as.hpp"
#include "gridscope/core/checked.hpp"
#include "gridscope/core/text.hpp"
#include "gridscope/model/checkpoint.hpp"

namespace gridscope::analysis {
namespace {

using model::Checkpoint;
using model::Module;
using model::Storage;

using Heading = std::pair<std::string, std::string>;  // key, title

// Rows are in rising order of their codes until they are sorted by bytes.
struct Grouping {
  std::function<std::uint64_t(std::uint32_t tensor)> code_of;
  std::function<Heading(std::uint64_t code)> heading;
};

// Parts have the numbers of model::Part, components those that follow.
constexpr auto kFirstComponent = static_cast<std::uint32_t>(model::Part::kOther) + 1;
constexpr std::uint64_t kOutsideLayers = std::numeric_limits<std::uint64_t>::max();

Grouping by_part(const PartTable& parts) {
  return {.code_of = [&](std::uint32_t tensor) -> std::uint64_t { return parts.part_of(tensor); },
          .heading =
              [&](std::uint64_t code) {
                const auto part = static_cast<std::uint32_t>(code);
                return Heading{std::string(parts.key(part)), std::string(parts.title(part))};
              }};
}

Grouping by_role(const Checkpoint& checkpoint, const PartTable& parts) {
  const auto code_of = [&](std::uint32_t tensor) {
    const auto role = static_cast<std::uint64_t>(checkpoint.names[tensor].role);
    const auto storage = static_cast<std::uint64_t>(checkpoint.modules.storage_of[tensor]);
    return std::uint64_t{parts.part_of(tensor)} << 16 | role << 8 | storage;
  };
  const auto heading = [&](std::uint64_t code) {
    const auto part = static_cast<std::uint32_t>(code >> 16);
    const auto role = static_cast<model::Role>(code >> 8 & 0xFF);
    const auto storage = static_cast<Storage>(code & 0xFF);
    return Heading{
        fmt::format("{}/{}/{}", parts.key(part), role_key(role), storage_key(storage)),
        fmt::format("{}: {}, {}", parts.title(part), role_title(role), storage_title(storage))};
  };
  return {code_of, heading};
}

Grouping by_dtype(const Checkpoint& checkpoint) {
  return {.code_of =
              [&](std::uint32_t tensor) {
                return static_cast<std::uint64_t>(checkpoint.tensors[tensor].dtype);
              },
          .heading =
              [](std::uint64_t code) {
                const std::string name(dtype_name(static_cast<Dtype>(code)));
                return Heading{name, name};
              }};
}

// Parts are numbered so that the decoder's layers come before those of the towers.
Grouping by_layer(const Checkpoint& checkpoint, const PartTable& parts) {
  const auto code_of = [&](std::uint32_t tensor) {
    const std::optional<std::uint32_t> layer = checkpoint.names[tensor].layer;
    return layer ? std::uint64_t{parts.part_of(tensor)} << 32 | *layer : kOutsideLayers;
  };
  const auto heading = [&](std::uint64_t code) {
    if (code == kOutsideLayers) return Heading{"outside_layers", "outside layers"};
    const auto part = static_cast<std::uint32_t>(code >> 32);
    const auto layer = static_cast<std::uint32_t>(code);
    return Heading{fmt::format("{}/{}", parts.key(part), layer),
                   fmt::format("{} layer {}", parts.title(part), layer)};
  };
  return {code_of, heading};
}

Grouping by_file(const Checkpoint& checkpoint) {
  return {
      .code_of = [&](std::uint32_t tensor) -> std::uint64_t { return checkpoint.file_of[tensor]; },
      .heading =
          [&](std::uint64_t code) {
            const std::string& path = checkpoint.files[code].path;
            return Heading{path, path};
          }};
}

Grouping grouping(const Checkpoint& checkpoint, const PartTable& parts, GroupBy by) {
  switch (by) {
    case GroupBy::kPart:
      break;
    case GroupBy::kRole:
      return by_role(checkpoint, parts);
    case GroupBy::kDtype:
      return by_dtype(checkpoint);
    case GroupBy::kLayer:
      return by_layer(checkpoint, parts);
    case GroupBy::kFile:
      return by_file(checkpoint);
  }
  return by_part(parts);
}

std::string_view prefix_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return name.substr(0, dot == std::string_view::npos ? 0 : dot);
}

// Codes that no scheme explains, and what by its name are their scales: none of them says how many
// weights there are.
std::vector<bool> unexplained_tensors(const Checkpoint& checkpoint) {
  std::vector<bool> unexplained(checkpoint.tensors.size());
  std::set<std::string_view> modules;
  for (const Module& module : checkpoint.modules.modules) {
    if (module.scheme != model::Scheme::kUnknown) continue;
    for (const std::uint32_t tensor : module.tensors) {
      unexplained[tensor] = true;
      modules.insert(prefix_of(checkpoint.tensors[tensor].name));
    }
  }
  if (modules.empty()) return unexplained;
  for (std::uint32_t tensor = 0; tensor < unexplained.size(); ++tensor) {
    const std::string_view name = checkpoint.tensors[tensor].name;
    const std::string_view prefix = prefix_of(name);
    if (prefix.empty() || !modules.contains(prefix)) continue;
    const std::string_view own = name.substr(prefix.size());
    const bool is_scale =
        own.find("scale") != std::string_view::npos || own.find("zero") != std::string_view::npos;
    if (is_scale) unexplained[tensor] = true;
  }
  return unexplained;
}

// A row while it fills.
struct Filling {
  InspectionRow row;
  bool explained = true;
  std::map<Dtype, std::uint64_t> dtypes;
  StorageMix mix;
};

// The tensors of one module that fall into one row.
struct ModuleShare {
  std::size_t row = 0;
  std::optional<Dtype> weight = {};
  std::optional<Dtype> scales = {};
  std::uint64_t largest_scale = 0;
  std::uint64_t bytes = 0;  // of all but the biases
};

class RowFiller {
 public:
  RowFiller(const Checkpoint& checkpoint, const Grouping& grouping)
      : checkpoint_(checkpoint),
        unexplained_(unexplained_tensors(checkpoint)),
        row_of_(checkpoint.tensors.size()) {
    std::map<std::uint64_t, std::size_t> row_of_code;
    for (std::uint32_t tensor = 0; tensor < row_of_.size(); ++tensor) {
      row_of_code.try_emplace(grouping.code_of(tensor), 0);
    }
    for (auto& [code, row] : row_of_code) {
      row = rows_.size();
      InspectionRow& heading = rows_.emplace_back().row;
      std::tie(heading.key, heading.title) = grouping.heading(code);
    }
    for (std::uint32_t tensor = 0; tensor < row_of_.size(); ++tensor) {
      row_of_[tensor] = row_of_code.at(grouping.code_of(tensor));
    }
  }

  std::vector<InspectionRow> fill() {
    for (std::uint32_t tensor = 0; tensor < row_of_.size(); ++tensor) count(tensor);
    for (const Module& module : checkpoint_.modules.modules) {
      if (is_coded(module.scheme)) {
        mix_coded(module);
      } else {
        for (const std::uint32_t tensor : module.tensors) mix_plain(tensor);
      }
    }
    return finish();
  }

 private:
  void count(std::uint32_t tensor) {
    Filling& filling = rows_[row_of_[tensor]];
    const format::TensorInfo& info = checkpoint_.tensors[tensor];
    ++filling.row.tensors;
    filling.row.bytes = saturating_add(filling.row.bytes, info.bytes);
    if (unexplained_[tensor]) {
      filling.explained = false;
    } else {
      filling.row.parameters =
          saturating_add(filling.row.parameters, checkpoint_.modules.parameters_of[tensor]);
    }
    ++filling.dtypes[info.dtype];
    total_bytes_ = saturating_add(total_bytes_, info.bytes);
  }

  void mix(std::size_t row, const StorageKind& kind, std::uint64_t bytes) {
    std::uint64_t& sum = rows_[row].mix[kind];
    sum = saturating_add(sum, bytes);
  }

  void mix_plain(std::uint32_t tensor) {
    const format::TensorInfo& info = checkpoint_.tensors[tensor];
    const auto scheme = checkpoint_.modules.modules[checkpoint_.modules.module_of[tensor]].scheme;
    const bool unknown = scheme == model::Scheme::kUnknown;
    mix(row_of_[tensor], {.scheme = unknown ? scheme : model::Scheme::kPlain, .dtype = info.dtype},
        info.bytes);
  }

  // Scales stand beside the codes they belong to when both are in the row; alone they are what
  // their dtype says. Biases are always plain.
  void mix_coded(const Module& module) {
    const std::vector<ModuleShare> shares = split(module);
    for (const ModuleShare& share : shares) {
      if (!share.weight) continue;
      mix(share.row,
          {.scheme = module.scheme,
           .bits = module.bits,
           .group_size = module.group_size,
           .dtype = *share.weight,
           .scales = share.scales},
          share.bytes);
    }
    for (const std::uint32_t tensor : module.tensors) {
      const bool is_bias = checkpoint_.modules.storage_of[tensor] == Storage::kBias;
      const auto share = std::ranges::find(shares, row_of_[tensor], &ModuleShare::row);
      if (is_bias || !share->weight) mix_plain(tensor);
    }
  }

  [[nodiscard]] std::vector<ModuleShare> split(const Module& module) const {
    std::vector<ModuleShare> shares;
    for (const std::uint32_t tensor : module.tensors) {
      auto share = std::ranges::find(shares, row_of_[tensor], &ModuleShare::row);
      if (share == shares.end()) {
        share = shares.insert(share, ModuleShare{.row = row_of_[tensor]});
      }
      add(*share, tensor);
    }
    return shares;
  }

  // A module may have several scales (of groups, of the whole tensor); the largest speaks for it.
  void add(ModuleShare& share, std::uint32_t tensor) const {
    const format::TensorInfo& info = checkpoint_.tensors[tensor];
    const Storage storage = checkpoint_.modules.storage_of[tensor];
    if (storage == Storage::kBias) return;
    share.bytes = saturating_add(share.bytes, info.bytes);
    if (storage == Storage::kWeight || storage == Storage::kPackedWeight) share.weight = info.dtype;
    if (storage == Storage::kScale && info.bytes >= share.largest_scale) {
      share.scales = info.dtype;
      share.largest_scale = info.bytes;
    }
  }

  std::vector<InspectionRow> finish() {
    std::vector<InspectionRow> rows;
    rows.reserve(rows_.size());
    for (Filling& filling : rows_) {
      InspectionRow& row = filling.row;
      const auto bytes = static_cast<double>(row.bytes);
      if (total_bytes_ > 0) row.share = bytes / static_cast<double>(total_bytes_);
      if (row.parameters > 0 && filling.explained)
        row.bits_per_weight = 8.0 * bytes / static_cast<double>(row.parameters);
      for (const auto& [dtype, tensors] : filling.dtypes) {
        row.dtypes.emplace(dtype_name(dtype), tensors);
      }
      row.stored_as = describe(filling.mix);
      rows.push_back(std::move(row));
    }
    return rows;
  }

  const Checkpoint& checkpoint_;
  std::vector<bool> unexplained_;    // per tensor
  std::vector<std::size_t> row_of_;  // per tensor
  std::vector<Filling> rows_;
  std::uint64_t total_bytes_ = 0;
};

}  // namespace

PartTable::PartTable(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {
  for (const model::CheckpointFile& file : checkpoint.files) {
    if (file.component.empty()) {
      part_of_file_.emplace_back();
      continue;
    }
    auto component = std::ranges::find(components_, file.component);
    if (component == components_.end()) component = components_.insert(component, file.component);
    const auto number = static_cast<std::uint32_t>(component - components_.begin());
    part_of_file_.emplace_back(kFirstComponent + number);
  }
}

std::uint32_t PartTable::part_of(std::uint32_t tensor) const {
  const std::optional<std::uint32_t> component = part_of_file_[checkpoint_.file_of[tensor]];
  return component.value_or(static_cast<std::uint32_t>(checkpoint_.names[tensor].part));
}

std::string_view PartTable::key(std::uint32_t part) const {
  if (part < kFirstComponent) return model::part_key(static_cast<model::Part>(part));
  return components_[part - kFirstComponent];
}

std::string_view PartTable::title(std::uint32_t part) const {
  if (part < kFirstComponent) return model::part_title(static_cast<model::Part>(part));
  return components_[part - kFirstComponent];
}

std::vector<InspectionRow> inspection_rows(const Checkpoint& checkpoint, const PartTable& parts,
                                           GroupBy by) {
  std::vector<InspectionRow> rows = RowFiller(checkpoint, grouping(checkpoint, parts, by)).fill();
  if (by != GroupBy::kLayer && by != GroupBy::kFile) {
    std::ranges::sort(rows, [](const InspectionRow& a, const InspectionRow& b) {
      return std::tie(b.bytes, a.key) < std::tie(a.bytes, b.key);
    });
  }
  return rows;
}

std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) {
  return checked_add(a, b).value_or(std::numeric_limits<std::uint64_t>::max());
}

}  // namespace gridscope::analysis
