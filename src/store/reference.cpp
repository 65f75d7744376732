// The idea: the scheme decides, then the host, then the disk. Only a bare name is ambiguous; there
// the disk wins, because a path that exists is what its owner most likely means, and the choice is
// written down in chosen_from_disk.

#include "gridscope/store/reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "gridscope/core/text.hpp"
#include "gridscope/http/url.hpp"

namespace gridscope::store {
namespace {

constexpr std::size_t kMaxReferenceBytes = 4096;
constexpr std::size_t kMaxRepoNameBytes = 96;
constexpr std::size_t kMaxPathBytes = 4096;
constexpr std::size_t kMaxRevisionBytes = 255;

constexpr std::string_view kForms =
    "name a model as org/name[@revision], hf://org/name[@revision][/path], an https:// URL, "
    "file:///path or a path on disk";

using Segments = std::vector<std::string>;
using SegmentsView = std::span<const std::string>;

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

template <typename Piece>
bool contains(std::string_view text, Piece piece) {
  return text.find(piece) != std::string_view::npos;
}

bool is_word(char c) {
  return is_alphanumeric(c) || c == '_';
}

bool has_control_byte(std::string_view text) {
  return std::ranges::any_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7F;
  });
}

tl::unexpected<Error> invalid(std::string message, std::string_view remedy = kForms) {
  return fail(ErrorCode::kInvalidArgument, std::move(message), std::string(remedy));
}

Segments split(std::string_view text, char separator) {
  Segments out;
  while (true) {
    const std::size_t end = text.find(separator);
    out.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

std::string join(SegmentsView segments) {
  return fmt::format("{}", fmt::join(segments, "/"));
}

std::string_view without_query(std::string_view text) {
  return text.substr(0, text.find_first_of("?#"));
}

// Where a URL's scheme ends, "https" in "https://host"; empty when there is none.
std::string scheme_of(std::string_view text) {
  const std::size_t end = text.find("://");
  if (end == std::string_view::npos || end == 0) return {};
  std::string scheme(text.substr(0, end));
  if (!std::ranges::all_of(scheme, [](char c) { return is_alphanumeric(c) || c == '+'; }))
    return {};
  std::ranges::transform(scheme, scheme.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return scheme;
}

Status refuse_other_kinds(std::string_view first_segment) {
  for (const std::string_view other : {"datasets", "spaces", "kernels"}) {
    if (first_segment == other) {
      return invalid(fmt::format("{} are not models", other), "name the repository of a model");
    }
  }
  return {};
}

// How many segments the revision takes: references that contain '/' themselves are the special ones
// of the Hub, refs/pr/N and refs/convert/NAME.
std::size_t revision_segments(SegmentsView segments) {
  const bool special = segments.size() >= 3 && segments[0] == "refs" &&
                       (segments[1] == "pr" || segments[1] == "convert");
  return special ? 3 : std::min<std::size_t>(1, segments.size());
}

// Percent escapes are undone in each segment by itself, so that "%2F" cannot make new segments in a
// path; in a revision it is how a branch with '/' is written.
Result<Segments> decode_all(SegmentsView segments) {
  Segments out;
  for (const std::string& segment : segments) {
    GRIDSCOPE_TRY(out.emplace_back(), http::percent_decode(segment));
  }
  return out;
}

// What may follow an id.
struct Tail {
  std::string revision;
  std::string path;
};

Result<Tail> parse_tail(SegmentsView revision, SegmentsView path) {
  Tail tail;
  if (!path.empty() && path.back().empty()) path = path.first(path.size() - 1);
  GRIDSCOPE_TRY(const Segments revision_parts, decode_all(revision));
  GRIDSCOPE_TRY(const Segments path_parts, decode_all(path));
  tail.revision = join(revision_parts);
  if (!revision.empty()) GRIDSCOPE_CHECK(check_revision(tail.revision));
  for (const std::string& part : path_parts) GRIDSCOPE_CHECK(check_repo_path(part));
  tail.path = join(path_parts);
  return tail;
}

ModelReference hub_reference(std::string_view text, std::string id, Tail tail) {
  return {.kind = ReferenceKind::kHub,
          .text = printable(text, kMaxReferenceBytes),
          .location = std::move(id),
          .revision = std::move(tail.revision),
          .path = std::move(tail.path)};
}

// org/name[@revision][/path], and name[@revision][/path] where the '@' stands in the first segment
// or nothing follows it.
Result<ModelReference> parse_hub_name(std::string_view text, std::string_view name) {
  Segments segments = split(name, '/');
  if (segments.size() > 1 && segments.back().empty()) segments.pop_back();
  const bool one_part = segments.size() == 1 || contains(segments[0], '@');
  const std::size_t id_segments = one_part ? 1 : 2;
  Segments revision;
  SegmentsView path = SegmentsView(segments).subspan(id_segments);
  std::string& last = segments[id_segments - 1];
  if (const std::size_t at = last.find('@'); at != std::string::npos) {
    revision.push_back(last.substr(at + 1));
    last.resize(at);
    revision.insert(revision.end(), path.begin(), path.end());
    const std::size_t taken = revision_segments(revision);
    revision.resize(taken);
    path = path.subspan(taken - 1);
  }
  std::string id = join(SegmentsView(segments).first(id_segments));
  GRIDSCOPE_CHECK(check_repo_id(id));
  GRIDSCOPE_TRY(Tail tail, parse_tail(revision, path));
  return hub_reference(text, std::move(id), std::move(tail));
}

Result<ModelReference> parse_hf(std::string_view text) {
  std::string_view name = without_query(text).substr(std::string_view("hf://").size());
  constexpr std::string_view kModels = "models/";
  const std::string_view first = name.substr(0, name.find('/'));
  GRIDSCOPE_CHECK(refuse_other_kinds(first));
  if (name.starts_with(kModels)) name.remove_prefix(kModels.size());
  return parse_hub_name(text, name);
}

bool is_action(std::string_view segment) {
  constexpr std::array<std::string_view, 5> kActions = {"tree", "blob", "resolve", "raw", "blame"};
  return std::ranges::find(kActions, segment) != kActions.end();
}

// The path of a web page of the Hub: ID, or ID/ACTION/REVISION[/PATH].
Result<ModelReference> parse_hub_page(std::string_view text, std::string_view page) {
  Segments segments = split(page, '/');
  while (!segments.empty() && segments.back().empty()) segments.pop_back();
  if (segments.empty()) return invalid("the URL names no repository");
  GRIDSCOPE_CHECK(refuse_other_kinds(segments[0]));
  const bool one_part = segments.size() == 1 || (segments.size() > 2 && is_action(segments[1]));
  const std::size_t id_segments = one_part ? 1 : 2;
  std::string id = join(SegmentsView(segments).first(id_segments));
  GRIDSCOPE_CHECK(check_repo_id(id));
  const SegmentsView rest = SegmentsView(segments).subspan(id_segments);
  if (rest.empty()) return hub_reference(text, std::move(id), {});
  if (!is_action(rest[0]) || rest.size() < 2) {
    return invalid(fmt::format("{} is not a page of files", quote(text)),
                   "use the repository's URL, or one with /tree/, /blob/ or /resolve/");
  }
  const std::size_t taken = revision_segments(rest.subspan(1));
  GRIDSCOPE_TRY(Tail tail, parse_tail(rest.subspan(1, taken), rest.subspan(1 + taken)));
  return hub_reference(text, std::move(id), std::move(tail));
}

// The path below the Hub's endpoint, when `url` is a page of the Hub.
std::optional<std::string> hub_page(const http::Url& url, const ReferenceOptions& options) {
  if (url.host == "huggingface.co" || url.host == "hf.co") return url.path.substr(1);
  const auto endpoint = http::parse_url(options.hub_endpoint);
  if (!endpoint || endpoint->origin() != url.origin()) return std::nullopt;
  std::string prefix = endpoint->path;
  if (!prefix.ends_with('/')) prefix += '/';
  if (!url.path.starts_with(prefix)) return std::nullopt;
  return url.path.substr(prefix.size());
}

Result<ModelReference> parse_web(std::string_view text, const ReferenceOptions& options) {
  auto url = http::parse_url(text);
  if (!url) return tl::make_unexpected(with_context(std::move(url).error(), "model reference"));
  const std::string shown = printable(url->origin() + url->path, kMaxReferenceBytes);
  if (const auto page = hub_page(*url, options)) return parse_hub_page(shown, *page);
  return ModelReference{.kind = ReferenceKind::kHttp, .text = shown, .location = url->text()};
}

Result<ModelReference> parse_file_url(std::string_view text) {
  std::string_view path = without_query(text).substr(std::string_view("file://").size());
  constexpr std::string_view kLocalhost = "localhost";
  if (path.starts_with(kLocalhost)) path.remove_prefix(kLocalhost.size());
  if (!path.starts_with('/')) {
    return invalid(fmt::format("{} names a file on another host", quote(text)),
                   "write file:///PATH with an absolute path");
  }
  GRIDSCOPE_TRY(std::string decoded, http::percent_decode(path));
  if (has_control_byte(decoded)) return invalid("the file URL holds a control byte");
  return ModelReference{.kind = ReferenceKind::kDisk,
                        .text = printable(text, kMaxReferenceBytes),
                        .location = std::move(decoded)};
}

ModelReference disk_reference(std::string_view text, bool chosen_from_disk) {
  return {.kind = ReferenceKind::kDisk,
          .text = printable(text, kMaxReferenceBytes),
          .location = std::string(text),
          .chosen_from_disk = chosen_from_disk};
}

bool looks_like_path(std::string_view text) {
  return text.starts_with('/') || text.starts_with("./") || text.starts_with("../") ||
         text == "." || text == ".." || text.starts_with('~');
}

// A name that could only be a file, so that a missing one is not looked for on the Hub.
bool names_a_file(std::string_view text) {
  constexpr std::array<std::string_view, 5> kEndings = {".safetensors", ".json", ".gguf", ".bin",
                                                        ".pt"};
  return std::ranges::any_of(kEndings, [&](std::string_view end) { return text.ends_with(end); });
}

Result<ModelReference> parse_bare(std::string_view text, const ReferenceOptions& options) {
  const bool exists = options.exists_on_disk && options.exists_on_disk(std::string(text));
  const auto slashes = std::ranges::count(text, '/');
  const bool id_shaped = slashes <= 1 || contains(text, '@');
  auto hub = id_shaped ? parse_hub_name(text, text) : Result<ModelReference>(invalid(""));
  if (exists) return disk_reference(text, hub.has_value());
  if (names_a_file(text) || !id_shaped) {
    return invalid(fmt::format("{} does not exist on disk and is no Hub repository", quote(text)),
                   "check the path, or write hf://org/name/path for a file on the Hub");
  }
  if (hub && !hub->path.empty()) {
    return invalid(fmt::format("{} names a path inside a repository", quote(text)),
                   fmt::format("write hf://{}", printable(text)));
  }
  if (hub) return hub;
  Error error = std::move(hub).error();
  error.remedy = kForms;
  return tl::make_unexpected(
      with_context(std::move(error), fmt::format("{} does not exist on disk", quote(text))));
}

// One '/'-separated part of an id.
Status check_id_part(std::string_view id, std::string_view part) {
  if (part.empty()) return invalid(fmt::format("Hub id {} has an empty part", quote(id)));
  const bool known =
      std::ranges::all_of(part, [](char c) { return is_word(c) || c == '.' || c == '-'; });
  if (!known) {
    return invalid(fmt::format("Hub id {} may hold only A-Z a-z 0-9 _ . -", quote(id)));
  }
  if (!is_word(part.front()) || !is_word(part.back())) {
    return invalid(
        fmt::format("Hub id {}: parts start and end with a letter, digit or _", quote(id)));
  }
  return {};
}

}  // namespace

std::string_view reference_kind_name(ReferenceKind kind) {
  switch (kind) {
    case ReferenceKind::kHub:
      return "hub";
    case ReferenceKind::kHttp:
      return "http";
    case ReferenceKind::kDisk:
      return "disk";
  }
  return "unknown";
}

Result<ModelReference> parse_reference(std::string_view text, const ReferenceOptions& options) {
  if (text.empty()) return invalid("the model reference is empty");
  if (text.size() > kMaxReferenceBytes) {
    return invalid(fmt::format("the model reference has {} bytes, more than {}",
                               with_thousands(text.size()), with_thousands(kMaxReferenceBytes)));
  }
  if (has_control_byte(text)) {
    return invalid(fmt::format("model reference {} holds a control byte", quote(text)));
  }
  const std::string scheme = scheme_of(text);
  if (scheme == "hf") return parse_hf(text);
  if (scheme == "http" || scheme == "https") return parse_web(text, options);
  if (scheme == "file") return parse_file_url(text);
  if (!scheme.empty()) return invalid(fmt::format("scheme {} is not known", quote(scheme)));
  if (looks_like_path(text)) return disk_reference(text, false);
  return parse_bare(text, options);
}

Status check_repo_id(std::string_view id) {
  const std::size_t slash = id.find('/');
  const std::string_view name = slash == std::string_view::npos ? id : id.substr(slash + 1);
  if (contains(name, '/'))
    return invalid(fmt::format("Hub id {} has more than one '/'", quote(id)));
  if (slash != std::string_view::npos) GRIDSCOPE_CHECK(check_id_part(id, id.substr(0, slash)));
  GRIDSCOPE_CHECK(check_id_part(id, name));
  if (name.size() > kMaxRepoNameBytes) {
    return invalid(fmt::format("Hub id {}: the name has {} characters, more than {}", quote(id),
                               name.size(), kMaxRepoNameBytes));
  }
  if (contains(id, "--") || contains(id, "..")) {
    return invalid(fmt::format("Hub id {} must not hold '--' or '..'", quote(id)));
  }
  if (id.ends_with(".git")) return invalid(fmt::format("Hub id {} ends in .git", quote(id)));
  return {};
}

Status check_revision(std::string_view revision) {
  constexpr std::string_view kRemedy = "name a branch, a tag, a commit or refs/pr/N";
  if (revision.empty()) return invalid("the revision is empty", kRemedy);
  if (revision.size() > kMaxRevisionBytes) {
    return invalid(fmt::format("the revision has {} characters, more than {}", revision.size(),
                               kMaxRevisionBytes),
                   kRemedy);
  }
  constexpr std::string_view kForbidden = "~^:?*[\\";
  const bool allowed = std::ranges::all_of(
      revision, [&](char c) { return c > 0x20 && c < 0x7F && !contains(kForbidden, c); });
  if (!allowed) {
    return invalid(fmt::format("revision {} holds a character that git forbids", quote(revision)),
                   kRemedy);
  }
  const Segments segments = split(revision, '/');
  const bool bad = std::ranges::any_of(segments, [](const std::string& segment) {
    return segment.empty() || segment.starts_with('.') || contains(segment, "..");
  });
  if (bad) {
    return invalid(fmt::format("revision {} has an empty or dotted segment", quote(revision)),
                   kRemedy);
  }
  return {};
}

Status check_repo_path(std::string_view path) {
  const auto refuse = [&](std::string_view reason) {
    return invalid(fmt::format("path {} {}", quote(path), reason),
                   "paths are relative to the repository and stay inside it");
  };
  if (path.empty()) return refuse("is empty");
  if (path.size() > kMaxPathBytes) return refuse("is too long");
  if (has_control_byte(path)) return refuse("holds a control byte");
  if (contains(path, '\\')) return refuse("holds a backslash");
  if (contains(path, "://")) return refuse("is a URL");
  if (path.size() >= 2 && path[1] == ':' && is_alphanumeric(path[0])) return refuse("has a drive");
  for (const std::string& segment : split(path, '/')) {
    if (segment.empty()) return refuse("has an empty segment");
    if (segment == "." || segment == "..") return refuse("has a '.' or '..' segment");
  }
  return {};
}

bool is_commit(std::string_view revision) {
  constexpr std::size_t kCommitDigits = 40;
  return revision.size() == kCommitDigits && std::ranges::all_of(revision, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace gridscope::store
