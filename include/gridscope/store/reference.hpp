#pragma once

// How a person names a model, and where that points.
//
//   hf://org/name[@revision][/path]     the Hub (also hf://models/org/name)
//   org/name[@revision]                 the Hub, unless it exists on disk
//   https://huggingface.co/org/name/... the Hub: its web pages (tree, blob, resolve, raw, blame)
//   https://host/dir/  or  .../x.safetensors   a web server
//   file:///path, ./path, /path         disk: a file, a directory, a Hub cache folder

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "gridscope/core/result.hpp"

namespace gridscope::store {

enum class ReferenceKind : std::uint8_t { kHub, kHttp, kDisk };

// "hub", "http", "disk".
[[nodiscard]] std::string_view reference_kind_name(ReferenceKind kind);

struct ModelReference {
  ReferenceKind kind = ReferenceKind::kDisk;
  std::string text = {};          // as given, fit to be shown (query and fragment of a URL dropped)
  std::string location = {};      // Hub: repository id; HTTP: absolute URL; disk: path
  std::string revision = {};      // Hub only; empty when none was named
  std::string path = {};          // Hub only: of a file or folder in the repository; empty for all
  bool chosen_from_disk = false;  // a bare name that could be a Hub id, but exists on disk

  friend bool operator==(const ModelReference&, const ModelReference&) = default;
};

struct ReferenceOptions {
  std::string hub_endpoint = "https://huggingface.co";  // its host's web URLs are Hub URLs too
  std::function<bool(const std::string&)> exists_on_disk = {};
};

// Errors: kInvalidArgument, naming the rule that is broken and the forms that are understood. Data
// sets and Spaces are refused by name.
[[nodiscard]] Result<ModelReference> parse_reference(std::string_view text,
                                                     const ReferenceOptions& options);

// The Hub's rules for ids: at most one '/', parts of [A-Za-z0-9_.-] that start and end with a word
// character, a name of 1 to 96 characters, no "--" or "..", not ending in ".git". ASCII only.
[[nodiscard]] Status check_repo_id(std::string_view id);

// What git allows in the name of a branch, tag or commit, printable ASCII only: no blank, no
// "~^:?*[\", no empty, "." or ".." segment, no "..".
[[nodiscard]] Status check_revision(std::string_view revision);

// A relative POSIX path without empty, "." or ".." segments, backslash, drive, scheme or control
// byte.
[[nodiscard]] Status check_repo_path(std::string_view path);

// 40 lower-case hex digits: the only revision that cannot move.
[[nodiscard]] bool is_commit(std::string_view revision);

}  // namespace gridscope::store
