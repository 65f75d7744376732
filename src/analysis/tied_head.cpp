// Two tables of a gigabyte are not read to learn whether one is a copy of the other: a few rows
// from fixed places tell. A table is a weight and its companions (scales, zero points); both sides
// must be stored alike, tensor for tensor, or their bytes cannot be compared.

#include "gridscope/analysis/tied_head.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gridscope/analysis/inspection_rows.hpp"
#include "gridscope/core/checked.hpp"
#include "gridscope/core/text.hpp"
#include "gridscope/format/safetensors_index.hpp"
#include "gridscope/model/checkpoint.hpp"

namespace gridscope::analysis {
namespace {

using model::Checkpoint;
using model::Module;
using model::Role;
using model::Storage;

constexpr std::uint64_t kMaxSamples = 65'536;

bool is_weight(Storage storage) {
  return storage == Storage::kWeight || storage == Storage::kPackedWeight;
}

// The first module of that role that has a weight; null when there is none.
const Module* find_table(const Checkpoint& checkpoint, Role role) {
  for (std::uint32_t tensor = 0; tensor < checkpoint.tensors.size(); ++tensor) {
    const model::NameInfo& name = checkpoint.names[tensor];
    if (name.role != role || name.part != model::Part::kVocabularyEmbedding) continue;
    if (!is_weight(checkpoint.modules.storage_of[tensor])) continue;
    return &checkpoint.modules.modules[checkpoint.modules.module_of[tensor]];
  }
  return nullptr;
}

// One tensor of the output layer and its counterpart in the embedding.
struct Pair {
  std::uint32_t head = 0;
  std::uint32_t embedding = 0;
  std::uint64_t rows = 1;
  std::uint64_t row_bytes = 0;
};

// The tensors of a module without biases, which no embedding has.
std::vector<std::uint32_t> table_tensors(const Checkpoint& checkpoint, const Module& module) {
  std::vector<std::uint32_t> tensors = module.tensors;
  std::erase_if(tensors, [&](std::uint32_t tensor) {
    return checkpoint.modules.storage_of[tensor] == Storage::kBias;
  });
  return tensors;
}

// What makes two tensors comparable: their name within the module, type and shape.
struct TensorKind {
  std::string_view suffix;
  Dtype dtype;
  std::span<const std::uint64_t> shape;

  friend bool operator==(const TensorKind& a, const TensorKind& b) {
    return a.suffix == b.suffix && a.dtype == b.dtype && std::ranges::equal(a.shape, b.shape);
  }
};

TensorKind kind_of(const Module& module, const format::TensorInfo& info) {
  const std::size_t prefix = std::min(module.name.size(), info.name.size());
  return {std::string_view(info.name).substr(prefix), info.dtype, info.shape};
}

// Empty unless both modules hold the same kinds of tensors, each made of rows of whole bytes.
std::vector<Pair> pair_tensors(const Checkpoint& checkpoint, const Module& head,
                               const Module& embedding) {
  const std::vector<std::uint32_t> heads = table_tensors(checkpoint, head);
  const std::vector<std::uint32_t> embeddings = table_tensors(checkpoint, embedding);
  if (head.scheme != embedding.scheme || heads.size() != embeddings.size()) return {};
  std::vector<Pair> pairs;
  for (const std::uint32_t tensor : heads) {
    const format::TensorInfo& info = checkpoint.tensors[tensor];
    const auto twin = std::ranges::find(
        embeddings, kind_of(head, info),
        [&](std::uint32_t candidate) { return kind_of(embedding, checkpoint.tensors[candidate]); });
    const std::uint64_t rows = info.shape.empty() ? 1 : info.shape.front();
    if (twin == embeddings.end() || rows == 0 || info.bytes % rows != 0) return {};
    pairs.push_back({tensor, *twin, rows, info.bytes / rows});
  }
  return pairs;
}

// Rows held against each other.
struct Comparison {
  std::uint64_t rows = 0;
  std::uint64_t equal = 0;
  bool all_zero = true;
};

// The same sampled row of both sides, all tensors of it joined.
struct RowPair {
  std::vector<std::byte> head;
  std::vector<std::byte> embedding;
};

// Reads that go to one source each, so that it can merge them.
class ReadPlan {
 public:
  explicit ReadPlan(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  void add(std::uint32_t tensor, std::uint64_t offset, std::span<std::byte> into) {
    requests_[checkpoint_.file_of[tensor]].push_back(
        {.offset = checkpoint_.tensors[tensor].offset + offset, .into = into});
  }

  [[nodiscard]] Status read() const {
    for (const auto& [file, requests] : requests_) {
      GRIDSCOPE_CHECK(checkpoint_.files[file].source->read_many(requests));
    }
    return {};
  }

 private:
  const Checkpoint& checkpoint_;
  std::map<std::uint32_t, std::vector<io::ReadRequest>> requests_;
};

bool can_read(const Checkpoint& checkpoint, std::span<const Pair> pairs) {
  return std::ranges::all_of(pairs, [&](const Pair& pair) {
    return checkpoint.files[checkpoint.file_of[pair.head]].source != nullptr &&
           checkpoint.files[checkpoint.file_of[pair.embedding]].source != nullptr;
  });
}

// How many rows are compared: no more than asked for, than there are, and than kMaxSampleBytes
// holds.
std::uint64_t sample_count(std::span<const Pair> pairs, std::uint64_t asked) {
  std::uint64_t rows = 1;
  std::uint64_t row_bytes = 0;
  for (const Pair& pair : pairs) {
    rows = std::max(rows, pair.rows);
    row_bytes = saturating_add(row_bytes, pair.row_bytes);
  }
  const std::uint64_t affordable = row_bytes == 0 ? 0 : kMaxSampleBytes / 2 / row_bytes;
  return std::min({asked, rows, affordable, kMaxSamples});
}

Result<Comparison> compare_rows(const Checkpoint& checkpoint, std::span<const Pair> pairs,
                                std::uint64_t samples) {
  std::uint64_t row_bytes = 0;
  for (const Pair& pair : pairs) row_bytes += pair.row_bytes;
  std::vector<RowPair> sampled(samples);
  ReadPlan plan(checkpoint);
  for (std::uint64_t k = 0; k < samples; ++k) {
    RowPair& row = sampled[k];
    row.head.resize(row_bytes);
    row.embedding.resize(row_bytes);
    std::uint64_t at = 0;
    for (const Pair& pair : pairs) {
      const std::uint64_t offset = sampled_row(k, samples, pair.rows) * pair.row_bytes;
      plan.add(pair.head, offset, std::span(row.head).subspan(at, pair.row_bytes));
      plan.add(pair.embedding, offset, std::span(row.embedding).subspan(at, pair.row_bytes));
      at += pair.row_bytes;
    }
  }
  GRIDSCOPE_CHECK(plan.read());
  Comparison comparison{.rows = samples};
  const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
  for (const RowPair& row : sampled) {
    if (row.head == row.embedding) ++comparison.equal;
    comparison.all_zero = comparison.all_zero && std::ranges::all_of(row.head, is_zero) &&
                          std::ranges::all_of(row.embedding, is_zero);
  }
  return comparison;
}

struct Verdict {
  std::string text;  // ends the message
  std::string_view remedy;
};

constexpr std::string_view kDropCopy =
    "leave the output layer's tensors out when saving; runtimes that tie the layers use the "
    "embedding, others hold the copy in memory";
constexpr std::string_view kFindOutWhich =
    "find out which table is meant: a runtime that follows the configuration ignores the stored "
    "one; set tie_word_embeddings to false if it is the right one, else leave it out";

Verdict judge(const Comparison& comparison, std::string_view embedding) {
  if (comparison.all_zero) {
    return {fmt::format("all sampled rows ({}) are zero on both sides, which proves nothing",
                        with_thousands(comparison.rows)),
            kFindOutWhich};
  }
  const std::string counts =
      fmt::format("sampled rows that are byte-identical to {}: {} of {}", quote(embedding),
                  with_thousands(comparison.equal), with_thousands(comparison.rows));
  if (comparison.equal == comparison.rows) return {counts, kDropCopy};
  return {counts + ", so that it is no plain copy", kFindOutWhich};
}

std::string shape_text(const Checkpoint& checkpoint, const Module& module) {
  const auto weight = std::ranges::find_if(module.tensors, [&](std::uint32_t tensor) {
    return is_weight(checkpoint.modules.storage_of[tensor]);
  });
  if (weight == module.tensors.end()) return "";
  return fmt::format(" of shape [{}]", fmt::join(checkpoint.tensors[*weight].shape, ", "));
}

// Shapes are named where the way of storing is the same and cannot be the difference.
Verdict not_alike(const Checkpoint& checkpoint, const Module& head, const Module& embedding) {
  std::string one = describe_storage(head, checkpoint.tensors);
  std::string other = describe_storage(embedding, checkpoint.tensors);
  if (one == other) {
    one += shape_text(checkpoint, head);
    other += shape_text(checkpoint, embedding);
  }
  return {fmt::format("it and {} are not stored alike ({}; {}), so that no rows were compared",
                      quote(embedding.name), one, other),
          kFindOutWhich};
}

// Gigabytes are what a model is measured in; a small table would be 0.000 of them.
std::string size_text(std::uint64_t bytes) {
  constexpr std::uint64_t kSmall = 100'000'000;
  if (bytes < 1024) return count_of(bytes, "byte");
  const std::string units = bytes < kSmall
                                ? format_bytes(bytes)
                                : fmt::format("{} GB, {} GiB", format_gb(bytes), format_gib(bytes));
  return fmt::format("{} ({})", count_of(bytes, "byte"), units);
}

Result<Verdict> compare_tables(const Checkpoint& checkpoint, const Module& head,
                               const Module& embedding, std::uint64_t sampled_rows) {
  const std::vector<Pair> pairs = pair_tensors(checkpoint, head, embedding);
  if (pairs.empty()) return not_alike(checkpoint, head, embedding);
  const std::uint64_t samples = sample_count(pairs, sampled_rows);
  if (samples == 0 || !can_read(checkpoint, pairs)) {
    return Verdict{fmt::format("its rows were not compared with {}", quote(embedding.name)),
                   kFindOutWhich};
  }
  auto comparison = compare_rows(checkpoint, pairs, samples);
  if (comparison) return judge(*comparison, embedding.name);
  // A server that ignores ranges gives headers, which are all that the rest of the report needs.
  if (comparison.error().code != ErrorCode::kUnsupported) {
    return tl::make_unexpected(std::move(comparison).error());
  }
  return Verdict{fmt::format("its rows could not be compared with {}: {}", quote(embedding.name),
                             comparison.error().message),
                 kFindOutWhich};
}

Result<Finding> stored_finding(const Checkpoint& checkpoint, const Module& head,
                               const Module& embedding, std::uint64_t sampled_rows) {
  Finding finding{
      .code = "TIED_HEAD_STORED", .severity = Severity::kWarning, .message = {}, .remedy = {}};
  for (const std::uint32_t tensor : head.tensors) {
    finding.add_tensor(checkpoint.tensors[tensor].name);
    finding.bytes = saturating_add(finding.bytes, checkpoint.tensors[tensor].bytes);
  }
  auto verdict = compare_tables(checkpoint, head, embedding, sampled_rows);
  if (!verdict) {
    return tl::make_unexpected(
        with_context(std::move(verdict).error(), "comparing the output layer with the embedding"));
  }
  finding.message = fmt::format(
      "the configuration ties the output layer to the embedding, yet {} stores an output layer of "
      "{}; {}",
      quote(head.name), size_text(finding.bytes), verdict->text);
  finding.remedy = verdict->remedy;
  return finding;
}

bool is_language_model(const model::ModelConfig& config) {
  return std::ranges::any_of(config.architectures, [](std::string_view name) {
    return name.ends_with("ForCausalLM") || name.ends_with("ForConditionalGeneration");
  });
}

// Whether files are known to be missing: a reference may name one shard alone.
bool is_partial(const Checkpoint& checkpoint) {
  const bool reported = std::ranges::any_of(
      checkpoint.findings, [](const Finding& finding) { return finding.code == "SHARD_MISSING"; });
  return reported || std::ranges::any_of(checkpoint.files, [&](const model::CheckpointFile& file) {
           const std::size_t slash = file.path.rfind('/');
           const auto shard = format::parse_shard_name(
               std::string_view(file.path).substr(slash == std::string::npos ? 0 : slash + 1));
           return shard && shard->total > checkpoint.files.size();
         });
}

// Whether the file says that its output layer is the embedding, written once for both.
bool is_alias(const Checkpoint& checkpoint, const Module& embedding) {
  return std::ranges::any_of(checkpoint.aliases, [&](const auto& alias) {
    const bool kept = std::ranges::any_of(embedding.tensors, [&](std::uint32_t tensor) {
      return checkpoint.tensors[tensor].name == alias.second;
    });
    return kept && model::classify_name(alias.first).role == Role::kLmHead;
  });
}

Finding missing_finding(const Checkpoint& checkpoint, const Module& embedding) {
  Finding finding{.code = "TIED_HEAD_MISSING",
                  .severity = Severity::kError,
                  .message = fmt::format("{} says that the output layer is not tied to the "
                                         "embedding, yet no output layer is stored beside {}",
                                         quote(checkpoint.config.source), quote(embedding.name)),
                  .remedy =
                      "set tie_word_embeddings to true if the embedding serves as the output "
                      "layer, else save the checkpoint with its lm_head"};
  for (const std::uint32_t tensor : embedding.tensors) {
    finding.add_tensor(checkpoint.tensors[tensor].name);
  }
  return finding;
}

}  // namespace

Result<std::optional<Finding>> check_tied_head(const Checkpoint& checkpoint,
                                               std::uint64_t sampled_rows) {
  const std::optional<bool> tied = checkpoint.config.tie_word_embeddings;
  const Module* embedding = find_table(checkpoint, Role::kEmbedTokens);
  if (!tied || embedding == nullptr) return std::nullopt;
  const Module* head = find_table(checkpoint, Role::kLmHead);
  if (*tied && head != nullptr) {
    return stored_finding(checkpoint, *head, *embedding, sampled_rows);
  }
  if (!*tied && head == nullptr && is_language_model(checkpoint.config) &&
      !is_partial(checkpoint) && !is_alias(checkpoint, *embedding)) {
    return missing_finding(checkpoint, *embedding);
  }
  return std::nullopt;
}

std::uint64_t sampled_row(std::uint64_t k, std::uint64_t samples, std::uint64_t rows) {
  if (samples < 2) return 0;
  // floor(k * (rows - 1) / (samples - 1)) without the product, which may not fit.
  const std::uint64_t last = rows - 1;
  const std::uint64_t steps = samples - 1;
  return last / steps * k + last % steps * k / steps;
}

}  // namespace gridscope::analysis
