#include "gridscope/cli/finding_codes.hpp"

#include <array>

namespace gridscope::cli {
namespace {

constexpr auto kFindings = std::to_array<Term>({
    {.name = "BUILD_ONLY", .meaning = "error: weights of the build have no source"},
    {.name = "COMPANION_MISMATCH",
     .meaning = "error: scales, zero points or the like do not fit the weight that they belong to"},
    {.name = "COMPANION_MISSING",
     .meaning = "error: a quantized weight lacks scales or the like, or these lack the weight"},
    {.name = "CONFIG_MISSING", .meaning = "warning: there is no config.json, or it cannot be used"},
    {.name = "CONFIG_TENSOR_MISMATCH",
     .meaning = "error, warning or note: tensors are not quantized as the configuration says"},
    {.name = "DUPLICATE_TENSOR",
     .meaning = "more than one file holds a tensor: a warning when the copies have the same type "
                "and shape, else an error"},
    {.name = "INDEX_MISSES_TENSOR",
     .meaning = "warning: shards hold tensors that the index does not name"},
    {.name = "INDEX_MISSING", .meaning = "warning: there are shards, but no index"},
    {.name = "INDEX_PHANTOM_TENSOR",
     .meaning = "error: the index names tensors that their shard does not hold"},
    {.name = "INDEX_STALE",
     .meaning = "warning: the index beside a single file speaks of other files"},
    {.name = "INDEX_TOTAL_SIZE", .meaning = "note: the index gives a wrong total_size"},
    {.name = "LEVELS_MOVED",
     .meaning = "note: weights of the build stand on other levels than the source"},
    {.name = "LEVELS_SHIFTED",
     .meaning = "error: all weights stand as many levels off the source: zero points one off"},
    {.name = "LFS_POINTER",
     .meaning = "error, of a configuration a warning: a Git LFS pointer lies in place of a file"},
    {.name = "MOVED_TOO_MANY", .meaning = "error: more weights moved than --max-moved allows"},
    {.name = "NORM_SMOOTHED",
     .meaning = "note: norms hold the inverse of a scale that went into the weights after them"},
    {.name = "NORM_UNCHECKED",
     .meaning = "warning: norms differ, and the weights that would explain it were not compared"},
    {.name = "NOTHING_QUANTIZED", .meaning = "warning: the build holds no quantized weight"},
    {.name = "PLAIN_DIFFERS",
     .meaning = "error: weights that were left unquantized differ from the source"},
    {.name = "PROJECTOR_SET_ASIDE",
     .meaning = "note: a projector file lies beside the GGUF model and is not counted"},
    {.name = "RANGE_IGNORED",
     .meaning = "warning: the server answers with whole files when asked for a range"},
    {.name = "SCALE_NOT_COMPENSATED",
     .meaning = "error: columns are scaled, but the norm before them does not undo it"},
    {.name = "SHAPE_MISMATCH", .meaning = "error: weights of the build have another shape"},
    {.name = "SHARD_ALONE",
     .meaning = "note: the file named is one of several shards; the others are not counted"},
    {.name = "SHARD_MISSING", .meaning = "error: shards or components are not there"},
    {.name = "SHARD_STRAY", .meaning = "warning: files look like shards, but the index names none"},
    {.name = "SMOOTHED",
     .meaning = "note: columns or rows are scaled against the source, as by AWQ"},
    {.name = "SOURCE_NOT_FINITE",
     .meaning = "warning: the source holds values that are no numbers"},
    {.name = "SOURCE_ONLY", .meaning = "error: weights of the source are not in the build"},
    {.name = "SQNR_TOO_LOW", .meaning = "error: the SQNR is lower than --min-sqnr asks for"},
    {.name = "STORAGE_ODD",
     .meaning = "warning: weights can be read, but other readers may take them differently"},
    {.name = "TIED_HEAD_MISSING",
     .meaning = "error: the configuration asks for an output layer of its own; none is stored"},
    {.name = "TIED_HEAD_STORED",
     .meaning = "warning: an output layer is stored although the configuration ties it to the "
                "embedding"},
    {.name = "UNKNOWN_QUANTIZATION",
     .meaning = "warning: the configuration names a quantization method that is not known"},
    {.name = "UNSUPPORTED_CONTAINER",
     .meaning = "error: files are of a format that is recognised, but not read"},
    {.name = "VERDICT_MISSED", .meaning = "error: the verdict is not the one --require asks for"},
    {.name = "VOCABULARY_PADDED",
     .meaning = "warning: build and source have vocabularies of different sizes"},
    {.name = "WEIGHT_CORRUPT", .meaning = "error: weights of the build cannot be decoded"},
    {.name = "WEIGHT_DIFFERS",
     .meaning = "error: weights are too far from the source's to be a build of them"},
    {.name = "WEIGHT_NOT_COMPARABLE", .meaning = "error: weights cannot be compared"},
    {.name = "WEIGHT_UNSUPPORTED",
     .meaning = "error: weights have a layout that no decoder knows, and stay unchecked"},
});

constexpr auto kWarnings = std::to_array<Term>({
    {.name = "CACHE_UNAVAILABLE", .meaning = "there is no place for the range cache"},
    {.name = "CACHE_UNWRITABLE", .meaning = "the range cache cannot be written; reading goes on"},
    {.name = "DIRECTORY_SKIPPED", .meaning = "a directory cannot be listed and is left out"},
    {.name = "HTTP_FORBIDDEN",
     .meaning = "a web server refuses a file, which is taken to be absent"},
    {.name = "HUB_WARNING", .meaning = "what the Hub itself says in its answers"},
    {.name = "LINK_DANGLING", .meaning = "a symbolic link leads to nothing"},
});

}  // namespace

std::span<const Term> finding_codes() {
  return kFindings;
}

std::span<const Term> warning_codes() {
  return kWarnings;
}

}  // namespace gridscope::cli
