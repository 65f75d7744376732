#pragma once

// Weight files of a listing, put into groups that belong together: a single file, or the shards of
// one model by the pattern of their names.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gridscope/store/repository.hpp"

namespace gridscope::model {

struct WeightGroup {
  std::string name;                  // the first file
  std::vector<std::string> files;    // paths in the repository, in shard order
  std::vector<std::string> missing;  // shards that the numbering asks for
};

// Of the files below `folder` that end in `extension`; files that `taken` lists are left out. In
// order of name.
[[nodiscard]] std::vector<WeightGroup> group_weights(std::span<const store::FileEntry> files,
                                                     std::string_view folder,
                                                     std::string_view extension,
                                                     std::span<const std::string> taken = {});

// All shards of the group that a file name such as "model-00002-of-00003.gguf" stands for, as
// paths; the file alone when its name is no shard's.
[[nodiscard]] std::vector<std::string> shard_siblings(const std::string& path);

// Leaves the groups of which one is to be chosen: those right in `folder` if there are any, and
// no variants (".fp16") of another group.
[[nodiscard]] std::vector<WeightGroup> preferred_groups(std::vector<WeightGroup> groups,
                                                        std::string_view folder);

// What to name to get one of them: folders below `folder` where there are several, so that all of a
// model is found, whatever its index calls its files; else the first file of each.
[[nodiscard]] std::vector<std::string> names_to_choose(std::span<const WeightGroup> groups,
                                                       std::string_view folder);

// Whether a file looks like weights in any format, by its name.
[[nodiscard]] bool is_weight_file(std::string_view path);

// Whether a GGUF file holds, by its name, the towers and projector of a model in another file.
[[nodiscard]] bool is_projector_file(std::string_view path);

}  // namespace gridscope::model
