#include "gridscope/cli/verbs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "gridscope/cli/verb_list.hpp"

namespace gridscope::cli {
namespace {

// --- options shared by all verbs ---

constexpr std::array<std::string_view, 3> kColors = {"auto", "always", "never"};

constexpr auto kReadingOptions = std::to_array<OptionSpec>({
    {.name = "connections",
     .kind = ValueKind::kCount,
     .value_name = "N",
     .help = "read up to N ranges at once from a host",
     .fallback = "16",
     .maximum = 256},
    {.name = "timeout",
     .kind = ValueKind::kSeconds,
     .value_name = "SECONDS",
     .help = "give up on a connection that stays silent for so long (default: what "
             "HF_HUB_DOWNLOAD_TIMEOUT and HF_HUB_ETAG_TIMEOUT say, else 10)",
     .maximum = 86'400'000},
    {.name = "proxy",
     .kind = ValueKind::kProxy,
     .value_name = "URL",
     .help = "send requests through this proxy (default: what http_proxy, https_proxy and no_proxy "
             "say)"},
    // Here, because it says how to read: commands about the cache itself have no use for it.
    {.name = "no-cache", .help = "neither use nor fill the range cache"},
});

constexpr auto kRangeCacheOptions = std::to_array<OptionSpec>({
    {.name = "cache-dir",
     .kind = ValueKind::kDirectory,
     .value_name = "DIR",
     .help = "keep the range cache there (default: $XDG_CACHE_HOME/gridscope, else "
             "~/.cache/gridscope)"},
    {.name = "cache-size",
     .kind = ValueKind::kSize,
     .value_name = "SIZE",
     .help = "let the range cache grow to this size; the oldest used goes first",
     .fallback = "2GiB"},
});

constexpr auto kLimitOptions = std::to_array<OptionSpec>({
    {.name = "max-header-bytes",
     .kind = ValueKind::kSize,
     .value_name = "SIZE",
     .help = "refuse a file whose header is longer",
     .fallback = "100000000"},
    {.name = "max-index-bytes",
     .kind = ValueKind::kSize,
     .value_name = "SIZE",
     .help = "refuse an index that is longer",
     .fallback = "250000000"},
    {.name = "max-shards",
     .kind = ValueKind::kCount,
     .value_name = "N",
     .help = "refuse a checkpoint of more files",
     .fallback = "10000"},
    {.name = "max-tensors",
     .kind = ValueKind::kCount,
     .value_name = "N",
     .help = "refuse a checkpoint of more tensors",
     .fallback = "2000000"},
    {.name = "max-name-bytes",
     .kind = ValueKind::kSize,
     .value_name = "SIZE",
     .help = "refuse a tensor name that is longer",
     .fallback = "4096"},
    {.name = "max-json-depth",
     .kind = ValueKind::kCount,
     .value_name = "N",
     .help = "refuse JSON that is nested deeper",
     .fallback = "16",
     .maximum = 1000},
    {.name = "max-rank",
     .kind = ValueKind::kCount,
     .value_name = "N",
     .help = "refuse a tensor of more dimensions",
     .fallback = "16",
     .maximum = 1000},
});

constexpr auto kGeneralOptions = std::to_array<OptionSpec>({
    {.name = "output",
     .letter = 'o',
     .kind = ValueKind::kFile,
     .value_name = "FILE",
     .help = "write the result to FILE, which is replaced only when all of it is there; - is "
             "standard output"},
    {.name = "quiet",
     .letter = 'q',
     .help = "show no progress and do not say that a host is tried again"},
    {.name = "verbose",
     .letter = 'v',
     .help = "say on standard error what is chosen, requested and tried again"},
    {.name = "color",
     .kind = ValueKind::kChoice,
     .value_name = "WHEN",
     .help = "color what goes to standard error; auto means on a terminal, unless NO_COLOR is set",
     .choices = kColors,
     .fallback = "auto"},
    {.name = "help", .letter = 'h', .help = "print this help, as gridscope help COMMAND does"},
    {.name = "version", .help = "print the version"},
});

constexpr auto kGroups = std::to_array<OptionGroup>({
    {.title = "Reading", .options = kReadingOptions},
    {.title = "Limits", .options = kLimitOptions},
    {.title = "Range cache", .options = kRangeCacheOptions},
    {.title = "General", .options = kGeneralOptions},
});
constexpr std::span<const OptionGroup> kReadingGroups = kGroups;
constexpr std::span<const OptionGroup> kRangeCacheGroups = kReadingGroups.last(2);
constexpr std::span<const OptionGroup> kGeneralGroups = kReadingGroups.last(1);

// --- options that several verbs have ---

constexpr std::array<std::string_view, 3> kReportFormats = {"text", "markdown", "json"};
constexpr std::array<std::string_view, 3> kSeverities = {"error", "warning", "never"};

constexpr OptionSpec kReportFormatOption = {.name = "format",
                                            .kind = ValueKind::kChoice,
                                            .value_name = "FORMAT",
                                            .help = "how the result is written",
                                            .choices = kReportFormats,
                                            .fallback = "text"};
constexpr OptionSpec kJsonOption = {.name = "json",
                                    .help = "short for --format json",
                                    .means_option = "format",
                                    .means_value = "json"};
constexpr OptionSpec kFailOnOption = {.name = "fail-on",
                                      .kind = ValueKind::kChoice,
                                      .value_name = "SEVERITY",
                                      .help = "the least severe finding that makes the exit code 1",
                                      .choices = kSeverities,
                                      .fallback = "error"};

// --- inspect ---

constexpr std::array<std::string_view, 5> kGroupings = {"part", "role", "dtype", "layer", "file"};

constexpr auto kInspectPositionals = std::to_array<OptionSpec>({
    {.name = "MODEL",
     .kind = ValueKind::kModel,
     .help = "where the checkpoint lies: an id or web page of the Hub, a URL, a path"},
});

constexpr auto kInspectOptions = std::to_array<OptionSpec>({
    {.name = "revision",
     .kind = ValueKind::kText,
     .value_name = "R",
     .help = "the branch, tag or commit of a Hub repository (default: main)"},
    {.name = "by",
     .kind = ValueKind::kChoice,
     .value_name = "GROUP",
     .help = "what a line of the table stands for",
     .choices = kGroupings,
     .fallback = "part"},
    {.name = "tensors", .help = "list every tensor as well"},
    kReportFormatOption,
    kJsonOption,
    kFailOnOption,
});

constexpr auto kInspectExamples = std::to_array<Example>({
    {.command = "gridscope inspect openai-community/gpt2",
     .purpose = "a repository of the Hub, without downloading it"},
    {.command = "gridscope inspect ./checkpoint --by layer --tensors",
     .purpose = "a directory on disk, layer by layer, with every tensor"},
    {.command = "gridscope inspect hf://org/name@v1 --json -o report.json --fail-on warning",
     .purpose = "in a release job: a report for machines, and a failure when something is odd"},
});

constexpr auto kCheckExitCodes = std::to_array<Term>({
    {.name = "0", .meaning = "nothing was found at or above --fail-on"},
    {.name = "1", .meaning = "something was found at or above --fail-on; the result is complete"},
    {.name = "2", .meaning = "the command line or the reference is malformed"},
    {.name = "3",
     .meaning =
         "no verdict: it could not be reached, read or written, access was denied, or it was "
         "interrupted"},
});

// --- grid-check ---

constexpr std::array<std::string_view, 2> kRequirable = {"exact", "same_grid"};

constexpr auto kGridCheckPositionals = std::to_array<OptionSpec>({
    {.name = "SOURCE",
     .kind = ValueKind::kModel,
     .help = "the checkpoint that the builds were made from; with --merge the first part"},
    {.name = "BUILD",
     .kind = ValueKind::kModel,
     .help = "a quantized build of it; with --merge another part",
     .occurs = Occurs::kRepeatedly},
});

constexpr auto kGridCheckOptions = std::to_array<OptionSpec>({
    {.name = "tensor",
     .kind = ValueKind::kText,
     .value_name = "GLOB",
     .help = "compare only weights whose name, or that of a tensor they are stored in, matches in "
             "build or source; may be given again",
     .occurs = Occurs::kRepeatedly},
    {.name = "sample",
     .kind = ValueKind::kText,
     .value_name = "N|FRACTION",
     .help =
         "compare only N of the quantized weights and N of the plain ones (12), or such a share of "
         "each (0.05), the same ones every time, spread over layers and roles"},
    {.name = "max-moved",
     .kind = ValueKind::kFraction,
     .value_name = "FRACTION",
     .help =
         "fail when a larger share of a build's weights moved by more than half a step of its own "
         "scale, after undoing smoothing that no norm contradicts"},
    {.name = "min-sqnr",
     .kind = ValueKind::kReal,
     .value_name = "DB",
     .help = "fail when a build's signal to quantization noise is lower, after undoing smoothing "
             "that no norm contradicts"},
    {.name = "require",
     .kind = ValueKind::kChoice,
     .value_name = "VERDICT",
     .help = "fail when a build's verdict is worse",
     .choices = kRequirable},
    {.name = "plan",
     .help = "say what would be read, and read nothing but headers; a server may get several "
             "requests for one tile read"},
    {.name = "jobs",
     .kind = ValueKind::kCount,
     .value_name = "N",
     .help = "compute on N threads; the result is the same with any number",
     .fallback = "2",
     .maximum = 256},
    {.name = "shard",
     .kind = ValueKind::kText,
     .value_name = "I/N",
     .help = "do the I-th of N parts, and write a part for --merge, which takes the requirements"},
    {.name = "merge", .help = "put the parts of all shards together into one report"},
    {.name = "resume",
     .kind = ValueKind::kFile,
     .value_name = "FILE",
     .help = "keep what is done in FILE, and go on from there when it exists"},
    kReportFormatOption,
    kJsonOption,
    kFailOnOption,
});

constexpr auto kGridCheckExamples = std::to_array<Example>({
    {.command = "gridscope grid-check ./qat-unquantized ./qat-w4a16 --require same_grid",
     .purpose = "did the 4-bit build keep every level of the source"},
    {.command = "gridscope grid-check org/source org/build-awq org/build-gptq --sample 0.05",
     .purpose = "two builds beside each other, a twentieth of their weights"},
    {.command = "gridscope grid-check org/source org/build --shard 1/4 -o part-1.jsonl",
     .purpose = "a quarter of the work, for another machine to do the rest"},
    {.command = "gridscope grid-check --merge part-*.jsonl --json -o report.json",
     .purpose = "the report of all four"},
});

// --- cache, completion, man ---

constexpr std::array<std::string_view, 2> kCacheActions = {"info", "clear"};
constexpr std::array<std::string_view, 2> kValueFormats = {"text", "json"};
constexpr std::array<std::string_view, 1> kShells = {"bash"};

constexpr auto kCachePositionals = std::to_array<OptionSpec>({
    {.name = "ACTION",
     .kind = ValueKind::kChoice,
     .help = "info says where the cache is and what it holds; clear removes every entry",
     .choices = kCacheActions},
});

constexpr auto kCacheOptions = std::to_array<OptionSpec>({
    {.name = "format",
     .kind = ValueKind::kChoice,
     .value_name = "FORMAT",
     .help = "how the result is written",
     .choices = kValueFormats,
     .fallback = "text"},
    kJsonOption,
});

constexpr auto kCacheExamples = std::to_array<Example>({
    {.command = "gridscope cache info", .purpose = "how much is kept, and where"},
    {.command = "gridscope cache clear --cache-dir /var/tmp/ranges",
     .purpose = "empty a cache that lies elsewhere"},
});

constexpr auto kCompletionPositionals = std::to_array<OptionSpec>({
    {.name = "SHELL",
     .kind = ValueKind::kChoice,
     .help = "the shell the script is for",
     .choices = kShells},
});

constexpr auto kCompletionExamples = std::to_array<Example>({
    {.command = "source <(gridscope completion bash)", .purpose = "complete in this shell"},
});

constexpr auto kManExamples = std::to_array<Example>({
    {.command = "gridscope man | man -l -", .purpose = "read the page without installing it"},
});

constexpr auto kPlainExitCodes = std::to_array<Term>({
    {.name = "0", .meaning = "done"},
    {.name = "2", .meaning = "the command line is malformed"},
    {.name = "3", .meaning = "it could not be done or written"},
});

constexpr auto kVerbs = std::to_array<VerbSpec>({
    {.name = "inspect",
     .summary = "Say where the bytes of a checkpoint go",
     .description =
         "Reads the headers of a checkpoint where it lies, by byte range, and says which part "
         "takes how many bytes and how each part is stored. Index, shards, tensors and "
         "configuration are held against each other; what does not agree is a finding, with a "
         "code, a severity and a remedy.",
     .positionals = kInspectPositionals,
     .options = kInspectOptions,
     .groups = kReadingGroups,
     .examples = kInspectExamples,
     .exit_codes = kCheckExitCodes,
     .run = run_inspect},
    {.name = "grid-check",
     .summary = "Check whether builds kept their source's quantization grid",
     .description =
         "Reads source and builds weight by weight, decodes whatever 4-bit format a build is "
         "stored "
         "in, and compares the numbers: which are the source's, which moved to another level, how "
         "far off they are, and whether a scale was folded into them. Every build gets a verdict: "
         "exact, same_grid, levels_moved, smoothed, different_model or corrupt.",
     .positionals = kGridCheckPositionals,
     .options = kGridCheckOptions,
     .groups = kReadingGroups,
     .examples = kGridCheckExamples,
     .exit_codes = kCheckExitCodes,
     .run = run_grid_check},
    {.name = "cache",
     .summary = "Show or empty the range cache",
     .description =
         "What was read over the network is kept on disk, compressed and checked, so that a "
         "second run reads nothing again.",
     .positionals = kCachePositionals,
     .options = kCacheOptions,
     .groups = kRangeCacheGroups,
     .examples = kCacheExamples,
     .exit_codes = kPlainExitCodes,
     .run = run_cache},
    {.name = "completion",
     .summary = "Print a completion script for a shell",
     .description = "The script completes verbs, options, their choices and file names.",
     .positionals = kCompletionPositionals,
     .options = {},
     .groups = kGeneralGroups,
     .examples = kCompletionExamples,
     .exit_codes = kPlainExitCodes,
     .run = run_completion},
    {.name = "man",
     .summary = "Print the manual page",
     .description = "The page is roff for man(1), made from the same declarations as --help.",
     .positionals = {},
     .options = {},
     .groups = kGeneralGroups,
     .examples = kManExamples,
     .exit_codes = kPlainExitCodes,
     .run = run_man},
});

// --- the program ---

constexpr auto kReferences = std::to_array<Term>({
    {.name = "org/name[@revision]",
     .meaning = "a repository of the Hub, unless that path exists on disk"},
    {.name = "hf://org/name[@revision][/path]",
     .meaning = "a repository of the Hub, or a file or folder in it"},
    {.name = "https://huggingface.co/org/name/...", .meaning = "a web page of the Hub"},
    {.name = "https://host/path/file.safetensors", .meaning = "one file on a web server"},
    {.name = "https://host/path/", .meaning = "a directory on a web server that holds an index"},
    {.name = "path, file:///path", .meaning = "a file, a directory or a folder of the Hub's cache"},
});

constexpr auto kEnvironment = std::to_array<Term>({
    {.name = "HF_ENDPOINT", .meaning = "the Hub to ask instead of https://huggingface.co"},
    {.name = "HF_TOKEN", .meaning = "the token sent to the Hub, and to no other host"},
    {.name = "HF_TOKEN_PATH", .meaning = "the file that holds the token"},
    {.name = "HF_HOME, HF_HUB_CACHE", .meaning = "where the Hub's own cache lies, which is read"},
    {.name = "HF_HUB_OFFLINE", .meaning = "when 1, nothing is asked over the network"},
    {.name = "HF_HUB_DOWNLOAD_TIMEOUT, HF_HUB_ETAG_TIMEOUT",
     .meaning = "seconds of silence after which a transfer or a question is given up"},
    {.name = "XDG_CACHE_HOME", .meaning = "where the range cache lies, in the folder gridscope"},
    {.name = "http_proxy, https_proxy, no_proxy", .meaning = "proxies, as curl reads them"},
    {.name = "CURL_CA_BUNDLE, SSL_CERT_FILE",
     .meaning = "the file of certificates that servers are held against"},
    {.name = "NO_COLOR",
     .meaning = "when set, nothing is colored unless --color always asks for it"},
});

constexpr ProgramSpec kProgram = {
    .name = "gridscope",
    .version = GRIDSCOPE_VERSION,
    .summary = "read model checkpoints where they lie and say where their bytes go",
    .description =
        "gridscope reads a model checkpoint where it lies, on the Hub, a web server or disk, by "
        "byte range and without downloading it. It says what is in the files, which part takes the "
        "bytes, how each part is stored, and whether index, shards and configuration agree.",
    .verbs = kVerbs,
    .groups = kGroups,
    .references = kReferences,
    .environment = kEnvironment,
};

}  // namespace

const ProgramSpec& program() {
  return kProgram;
}

const VerbSpec* find_verb(std::string_view name) {
  const auto* const found = std::ranges::find(kVerbs, name, &VerbSpec::name);
  return found == kVerbs.end() ? nullptr : found;
}

std::string spelling(const OptionSpec& option) {
  if (option.is_positional()) return std::string(option.name);
  const std::string letter = option.letter == 0 ? "" : fmt::format("-{}, ", option.letter);
  const std::string value = option.value_name.empty() ? "" : fmt::format(" {}", option.value_name);
  return fmt::format("{}--{}{}", letter, option.name, value);
}

std::string explained(const OptionSpec& option) {
  std::string facts;
  if (!option.choices.empty()) facts = fmt::format("{}", fmt::join(option.choices, ", "));
  if (!option.fallback.empty()) {
    facts += fmt::format("{}default: {}", facts.empty() ? "" : "; ", option.fallback);
  }
  return facts.empty() ? std::string(option.help) : fmt::format("{} ({})", option.help, facts);
}

}  // namespace gridscope::cli
