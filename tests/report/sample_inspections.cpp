#include "report/sample_inspections.hpp"

#include <stdexcept>

#include "support/checkpoint_values.hpp"

namespace gridscope::test {

using analysis::GroupBy;
using analysis::Inspection;
using analysis::InspectOptions;
using model::Part;
using model::Role;

namespace {

Inspection inspect_or_throw(CheckpointBuilder builder, const InspectOptions& options) {
  const model::Checkpoint checkpoint = builder.build();
  Result<Inspection> inspection = analysis::inspect(checkpoint, options);
  if (!inspection) throw std::runtime_error(describe(inspection.error()));
  inspection->reads = {.requests = 3, .bytes = 393'216, .cache_hits = 1};
  inspection->read_seconds = 0.125;
  return *std::move(inspection);
}

}  // namespace

Inspection e2b_inspection(const InspectOptions& options) {
  return inspect_or_throw(e2b_w4a16(), options);
}

Inspection small_inspection() {
  CheckpointBuilder builder;
  builder.value.repository = {.kind = store::ReferenceKind::kDisk,
                              .reference = "./tiny",
                              .location = "tiny",
                              .revision = "",
                              .commit = ""};
  builder.value.config.architectures = {"TinyForCausalLM"};
  builder.value.config.tie_word_embeddings = false;
  builder.file("model-00001-of-00002.safetensors")
      .module({"model.embed_tokens", {Part::kVocabularyEmbedding, Role::kEmbedTokens, {}}})
      .tensor("weight", Dtype::kBF16, {1000, 64})
      .file("model-00002-of-00002.safetensors")
      .module({"model.layers.0.mlp.up_proj", {Part::kTransformerBody, Role::kMlp, 0}})
      .tensor("weight", Dtype::kBF16, {256, 64})
      .tensor("scale", Dtype::kF32, {}, model::Storage::kBuffer)
      .module({"model.norm", {Part::kTransformerBody, Role::kNorm, {}}})
      .tensor("weight", Dtype::kF32, {64});
  Finding phantom{.code = "INDEX_PHANTOM_TENSOR",
                  .severity = Severity::kWarning,
                  .message = "the index names 250 tensors that no shard holds",
                  .remedy = "write the index anew"};
  for (int i = 0; i < 250; ++i) phantom.add_tensor("gone." + std::to_string(i));
  builder.value.findings = {{.code = "INDEX_TOTAL_SIZE",
                             .severity = Severity::kNote,
                             .message = "the index gives 1 byte, the shards hold 161,028",
                             .remedy = ""},
                            std::move(phantom)};
  return inspect_or_throw(std::move(builder),
                          {.by = GroupBy::kLayer, .tensors = InspectOptions::Tensors::kList});
}

Inspection hostile_inspection() {
  Inspection inspection = small_inspection();
  inspection.reference = kHostile;
  inspection.revision = kHostile;
  inspection.commit = "";
  inspection.model_type = kHostile;
  inspection.groups[0].title = kHostile;
  inspection.tensors[0].name = kHostile;
  inspection.tensors[0].file = kHostile;
  inspection.findings[0].message = kHostile;
  inspection.findings[0].tensors[0] = kHostile;
  return inspection;
}

}  // namespace gridscope::test
