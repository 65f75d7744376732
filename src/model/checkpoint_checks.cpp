#include "gridscope/model/checkpoint_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "gridscope/core/text.hpp"
#include "gridscope/model/weight_groups.hpp"

namespace gridscope::model {
namespace {

using format::TensorInfo;

// Two tensors of one name, the first and a later one.
struct Copy {
  std::uint32_t first = 0;
  std::uint32_t second = 0;
};
using Copies = std::span<const Copy>;

constexpr std::uint32_t kNotRead = std::numeric_limits<std::uint32_t>::max();

// The file that each shard of the index is, by its place among the headers; kNotRead for the rest.
std::vector<std::uint32_t> files_of_shards(std::span<const FileHeader> headers,
                                           const WeightSet& set) {
  std::unordered_map<std::string_view, std::uint32_t> by_name;
  for (std::uint32_t i = 0; i < headers.size(); ++i) {
    if (headers[i].source != nullptr) by_name.emplace(file_name_of(headers[i].path), i);
  }
  std::vector<std::uint32_t> files;
  files.reserve(set.index.shards.size());
  for (const std::string& shard : set.index.shards) {
    const auto found = by_name.find(shard);
    files.push_back(found == by_name.end() ? kNotRead : found->second);
  }
  return files;
}

// Fills by_name with the first tensor of each name. Returns the others.
std::vector<Copy> index_names(MergedTensors& merged) {
  const auto name_of = [&](std::uint32_t i) -> std::string_view { return merged.tensors[i].name; };
  std::vector<Copy> copies;
  merged.by_name = NameTable(merged.tensors.size());
  for (std::uint32_t i = 0; i < merged.tensors.size(); ++i) {
    const std::uint32_t first = merged.by_name.find_or_add(name_of(i), i, name_of);
    if (first != i) copies.push_back({.first = first, .second = i});
  }
  return copies;
}

void report_copies(const MergedTensors& merged, Copies copies, std::vector<Finding>& findings) {
  Finding same{.code = "DUPLICATE_TENSOR",
               .severity = Severity::kWarning,
               .message = {},
               .remedy = "delete the copies: loaders differ in which one they take"};
  Finding different = same;
  different.severity = Severity::kError;
  for (const auto& [first, second] : copies) {
    const TensorInfo& a = merged.tensors[first];
    const TensorInfo& b = merged.tensors[second];
    Finding& finding = a.dtype == b.dtype && a.shape == b.shape ? same : different;
    finding.add_tensor(b.name);
    finding.bytes += b.bytes;
  }
  same.message = fmt::format("{} more than one file holds, in the same type and shape",
                             count_of(same.tensor_count, "tensor"));
  different.message = fmt::format("{} more than one file holds, in different types or shapes",
                                  count_of(different.tensor_count, "tensor"));
  if (same.tensor_count > 0) findings.push_back(std::move(same));
  if (different.tensor_count > 0) findings.push_back(std::move(different));
}

// Of each pair, the one to leave out: what stands where the index does not say.
std::vector<bool> copies_to_drop(const MergedTensors& merged, Copies copies,
                                 std::span<const FileHeader> headers, const WeightSet& set) {
  std::unordered_map<std::string_view, std::uint32_t> wanted;  // file, by tensor
  for (const Copy& pair : copies) {
    wanted.emplace(merged.tensors[pair.first].name, kNotRead);
  }
  const auto files = files_of_shards(headers, set);
  for (const format::ShardIndex::Entry& entry : set.index.entries) {
    const auto found = wanted.find(entry.tensor);
    if (found != wanted.end()) found->second = files[entry.shard];
  }
  std::vector<bool> drop(merged.tensors.size());
  for (auto [first, second] : copies) {
    const bool take_second =
        wanted.at(merged.tensors[second].name) == merged.file_of[second] && !drop[second];
    drop[take_second ? first : second] = true;
  }
  return drop;
}

void drop_copies(MergedTensors& merged, const std::vector<bool>& drop) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < merged.tensors.size(); ++i) {
    if (drop[i]) continue;
    if (kept != i) merged.tensors[kept] = std::move(merged.tensors[i]);
    merged.file_of[kept++] = merged.file_of[i];
  }
  merged.tensors.resize(kept);
  merged.file_of.resize(kept);
}

void check_total_size(const MergedTensors& merged, std::span<const FileHeader> headers,
                      const WeightSet& set, std::vector<Finding>& findings) {
  std::uint64_t total = 0;
  for (const TensorInfo& tensor : merged.tensors) total += tensor.bytes;
  if (!set.index.odd_total_size.empty()) {
    findings.push_back({.code = "INDEX_TOTAL_SIZE",
                        .severity = Severity::kNote,
                        .message = fmt::format("{} gives {} as total_size, expected the {} bytes "
                                               "of the tensors",
                                               printable(set.index_path), set.index.odd_total_size,
                                               with_thousands(total)),
                        .remedy = "write the index again; loaders do not rely on this number"});
  }
  if (!set.index.total_size || *set.index.total_size == total) return;
  const std::uint64_t claimed = *set.index.total_size;
  std::uint64_t files = 0;
  for (const FileHeader& header : headers) files += header.bytes;
  findings.push_back({.code = "INDEX_TOTAL_SIZE",
                      .severity = Severity::kNote,
                      .message = fmt::format("{} gives {} bytes{}, the tensors have {}",
                                             printable(set.index_path), with_thousands(claimed),
                                             claimed == files ? ", those of the files" : "",
                                             with_thousands(total)),
                      .remedy = "write the index again; loaders do not rely on this number",
                      .tensors = {},
                      .tensor_count = 0,
                      .bytes = claimed > total ? claimed - total : total - claimed});
}

}  // namespace

MergedTensors merge_tables(std::span<FileHeader> headers, const WeightSet& set,
                           std::vector<Finding>& findings) {
  MergedTensors merged;
  std::size_t count = 0;
  for (const FileHeader& header : headers) count += header.table.tensors.size();
  merged.tensors.reserve(count);
  merged.file_of.reserve(count);
  for (std::uint32_t i = 0; i < headers.size(); ++i) {
    std::vector<TensorInfo> tensors = std::exchange(headers[i].table.tensors, {});
    std::ranges::move(tensors, std::back_inserter(merged.tensors));
    merged.file_of.resize(merged.tensors.size(), i);
  }
  const std::vector<Copy> copies = index_names(merged);
  if (copies.empty()) return merged;
  report_copies(merged, copies, findings);
  drop_copies(merged, copies_to_drop(merged, copies, headers, set));
  index_names(merged);
  return merged;
}

void check_index(const MergedTensors& merged, std::span<const FileHeader> headers,
                 const WeightSet& set, std::vector<Finding>& findings) {
  if (set.index_path.empty()) return;
  Finding phantom{.code = "INDEX_PHANTOM_TENSOR",
                  .severity = Severity::kError,
                  .message = {},
                  .remedy = "write the index again, or fetch the right shards"};
  Finding missed{.code = "INDEX_MISSES_TENSOR",
                 .severity = Severity::kWarning,
                 .message = {},
                 .remedy = "write the index again: loaders skip what it does not name"};
  const auto files = files_of_shards(headers, set);
  std::vector<bool> named(merged.tensors.size());
  for (const format::ShardIndex::Entry& entry : set.index.entries) {
    const auto found = merged.find(entry.tensor);
    if (found) named[*found] = true;
    if (files[entry.shard] == kNotRead) continue;
    const bool there = found && merged.file_of[*found] == files[entry.shard];
    if (!there) phantom.add_tensor(entry.tensor);
  }
  for (std::size_t i = 0; i < named.size(); ++i) {
    if (named[i]) continue;
    missed.add_tensor(merged.tensors[i].name);
    missed.bytes += merged.tensors[i].bytes;
  }
  if (phantom.tensor_count > 0) {
    phantom.message =
        fmt::format("{} names {} that the shard it gives does not hold", printable(set.index_path),
                    count_of(phantom.tensor_count, "tensor"));
    findings.push_back(std::move(phantom));
  }
  if (missed.tensor_count > 0) {
    missed.message =
        fmt::format("{} in the shards that {} does not name",
                    count_of(missed.tensor_count, "tensor"), printable(set.index_path));
    findings.push_back(std::move(missed));
  }
  if (std::ranges::find(files, kNotRead) == files.end()) {
    check_total_size(merged, headers, set, findings);
  }
}

Status check_gguf_split(std::span<const FileHeader> headers, std::vector<Finding>& findings) {
  const auto contradiction = [](const FileHeader& header, const std::string& what) {
    return fail(ErrorCode::kCorrupt, fmt::format("{}: {}", printable(header.path), what),
                "fetch all files of the split again, from one source");
  };
  std::set<std::uint32_t> numbers;
  std::optional<format::GgufSplit> first;
  std::uint64_t tensors = 0;
  for (const FileHeader& header : headers) {
    if (header.container != format::Container::kGguf) continue;
    tensors += header.table.tensors.size();
    if (!header.split || header.split->count <= 1) continue;
    if (!first) first = header.split;
    if (header.split->count != first->count || header.split->tensors != first->tensors) {
      return contradiction(header, fmt::format("split of {} files and {} tensors beside one of {} "
                                               "and {}",
                                               header.split->count, header.split->tensors,
                                               first->count, first->tensors));
    }
    if (header.split->number >= first->count || !numbers.insert(header.split->number).second) {
      return contradiction(header, fmt::format("split number {} a second time or out of range",
                                               header.split->number));
    }
  }
  if (!first) return {};
  if (numbers.size() < first->count) {
    const bool known = std::ranges::any_of(
        findings, [](const Finding& finding) { return finding.code == "SHARD_MISSING"; });
    if (known) return {};
    findings.push_back(
        {.code = "SHARD_MISSING",
         .severity = Severity::kError,
         .message = fmt::format("{} of {} are not there", first->count - numbers.size(),
                                count_of(first->count, "file")),
         .remedy = "fetch the missing files of the split"});
    return {};
  }
  if (first->tensors == tensors) return {};
  return contradiction(headers.front(),
                       fmt::format("{} tensors in all files where split.tensors.count"
                                   " says {}",
                                   tensors, first->tensors));
}

void check_projectors(const Discovery& discovery, const FileView& files,
                      std::vector<Finding>& findings) {
  const WeightSet& model = discovery.sets.front();
  const bool is_projector = std::ranges::any_of(model.files, is_projector_file);
  if (model.container != format::Container::kGguf || is_projector) return;
  std::string_view first;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  for (const std::string& path : discovery.set_aside) {
    const store::FileEntry* file = is_projector_file(path) ? files.find(path) : nullptr;
    if (file == nullptr) continue;
    if (count++ == 0) first = path;
    bytes += file->size;
  }
  if (count == 0) return;
  const std::string more = count == 1 ? "" : fmt::format(" and {} more", with_thousands(count - 1));
  findings.push_back(
      {.code = "PROJECTOR_SET_ASIDE",
       .severity = Severity::kNote,
       .message = fmt::format("{} of {} beside the model: {}{}", count_of(count, "projector file"),
                              count_of(bytes, "byte"), printable(first), more),
       .remedy = "name the file to inspect it: the towers and the projector that it holds are not "
                 "counted here",
       .tensors = {},
       .tensor_count = 0,
       .bytes = bytes});
}

Status check_containers(std::span<const FileHeader> headers, std::vector<Finding>& findings) {
  std::size_t present = 0;
  std::size_t pointers = 0;
  for (const FileHeader& header : headers) {
    if (header.missing) continue;
    ++present;
    if (header.container == format::Container::kLfsPointer) {
      ++pointers;
      const std::uint64_t size = header.pointer ? header.pointer->size : 0;
      findings.push_back(
          {.code = "LFS_POINTER",
           .severity = Severity::kError,
           .message = fmt::format("{} is the text that Git LFS left in place of {} bytes",
                                  printable(header.path), with_thousands(size)),
           .remedy = std::string(format::container_remedy(header.container)),
           .tensors = {},
           .tensor_count = 0,
           .bytes = size});
    } else if (header.source == nullptr) {
      findings.push_back(
          {.code = "UNSUPPORTED_CONTAINER",
           .severity = Severity::kError,
           .message = fmt::format("{} is a {} file, which is recognised but not read",
                                  printable(header.path), format::container_name(header.container)),
           .remedy = std::string(format::container_remedy(header.container)),
           .tensors = {},
           .tensor_count = 0,
           .bytes = header.bytes});
    }
  }
  if (present == 0 || pointers < present) return {};
  return fail(ErrorCode::kUnsupported, findings.back().message, findings.back().remedy);
}

}  // namespace gridscope::model
