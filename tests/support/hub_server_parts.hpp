#pragma once

// What the test Hub's answers are made of: text in URLs, digests, stored files, and the bodies that
// the Hub's API gives. Used by hub_server.cpp alone.

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "support/hub_server.hpp"

namespace gridscope::test::hub {

[[nodiscard]] std::string lower(std::string text);
// Percent escapes undone, and made for all but letters, digits, "-._~" and `keep`.
[[nodiscard]] std::string decode(std::string_view text);
[[nodiscard]] std::string encode(std::string_view text, std::string_view keep);
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);
// The parts from number `from` on, with '/' between.
[[nodiscard]] std::string join(const std::vector<std::string>& parts, std::size_t from);
[[nodiscard]] std::string in_quotes(std::string_view text);
// Decoded; empty when the query has none of that name.
[[nodiscard]] std::string query_value(const std::string& query, std::string_view name);

[[nodiscard]] std::string sha1(std::initializer_list<std::string_view> parts);
[[nodiscard]] std::string sha256(std::initializer_list<std::string_view> parts);

// A file with the ids by which the Hub names its content. Those of very large files stand in for
// digests that would take too long.
struct Stored {
  HubFile file;
  std::string git_id;  // sha1 of the git object
  std::string sha256;

  [[nodiscard]] std::string_view content() const { return file.content(); }
  [[nodiscard]] bool is_large() const { return file.storage == HubStorage::kLarge; }
};
[[nodiscard]] Stored store(const std::string& path, HubFile file);

struct Repo {
  HubRepo facts;
  std::map<std::string, Stored> files;
};

void add(HttpReply& reply, std::string name, std::string value);
[[nodiscard]] HttpReply error_reply(int status, std::string_view code, std::string_view message);
[[nodiscard]] HttpReply redirect_reply(int status, const std::string& target);
[[nodiscard]] HttpReply page_reply(int status);
[[nodiscard]] HttpReply xml_reply(int status, std::string_view code, std::string_view message);

[[nodiscard]] HttpReply info_reply(const Repo& repo, const std::string& query);
[[nodiscard]] HttpReply refs_reply(const Repo& repo);
[[nodiscard]] HttpReply paths_info_reply(const Repo& repo, const HttpRequest& request);
// One page of the listing of `directory` ("" for all); its Link names the next.
[[nodiscard]] HttpReply tree_reply(const Repo& repo, const HttpRequest& request,
                                   const std::string& directory, std::size_t page_size);

}  // namespace gridscope::test::hub
