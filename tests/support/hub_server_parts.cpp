#include "support/hub_server_parts.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace gridscope::test::hub {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMaxHashed = 64ULL * 1024 * 1024;

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return lower(std::string(1, c))[0] - 'a' + 10;
}

std::vector<std::string> query_values(const std::string& query, std::string_view name) {
  std::vector<std::string> values;
  for (const std::string& pair : split(query, '&')) {
    const std::size_t equals = pair.find('=');
    if (equals != std::string::npos && pair.substr(0, equals) == name) {
      values.push_back(decode(pair.substr(equals + 1)));
    }
  }
  return values;
}

std::string digest(const EVP_MD* algorithm, std::initializer_list<std::string_view> parts) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned size = 0;
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  EVP_DigestInit_ex(context, algorithm, nullptr);
  for (const std::string_view part : parts) EVP_DigestUpdate(context, part.data(), part.size());
  EVP_DigestFinal_ex(context, bytes.data(), &size);
  EVP_MD_CTX_free(context);
  std::string hex;
  for (unsigned i = 0; i < size; ++i) hex += fmt::format("{:02x}", bytes[i]);
  return hex;
}

HttpReply json_reply(const json& body) {
  return {.fields = {{"Content-Type", "application/json; charset=utf-8"}}, .body = body.dump()};
}

json tree_entry(const std::string& path, const Stored& stored, bool expanded) {
  json entry{
      {"type", "file"}, {"path", path}, {"size", stored.content().size()}, {"oid", stored.git_id}};
  if (stored.is_large()) {
    entry["lfs"] = {
        {"oid", stored.sha256}, {"size", stored.content().size()}, {"pointerSize", 134}};
  }
  if (expanded) {
    entry["lastCommit"] = {
        {"id", stored.git_id}, {"title", "Add files"}, {"date", "2026-01-01T00:00:00.000Z"}};
  }
  return entry;
}

json directory_entry(const std::string& path) {
  return {
      {"type", "directory"}, {"path", path}, {"size", 0}, {"oid", sha256({path}).substr(0, 40)}};
}

bool is_in(const std::string& path, const std::string& directory) {
  return directory.empty() || path.starts_with(directory + '/');
}

std::vector<json> tree_entries(const Repo& repo, const std::string& directory, bool recursive,
                               bool expanded) {
  std::vector<json> entries;
  std::set<std::string> directories;
  const std::size_t start = directory.empty() ? 0 : directory.size() + 1;
  for (const auto& [path, stored] : repo.files) {
    if (!is_in(path, directory)) continue;
    std::size_t slash = path.find('/', start);
    const bool direct = slash == std::string::npos;
    for (; slash != std::string::npos; slash = path.find('/', slash + 1)) {
      const std::string parent = path.substr(0, slash);
      if (directories.insert(parent).second) entries.push_back(directory_entry(parent));
      if (!recursive) break;
    }
    if (recursive || direct) entries.push_back(tree_entry(path, stored, expanded));
  }
  return entries;
}

json info_of(const Repo& repo, const std::string& query) {
  const HubRepo& facts = repo.facts;
  if (const auto fields = query_values(query, "expand"); !fields.empty()) {
    json info{{"_id", "660f"}, {"id", facts.id}};
    if (std::ranges::find(fields, "sha") != fields.end()) info["sha"] = facts.commit;
    return info;
  }
  json siblings = json::array();
  const bool blobs = lower(query_value(query, "blobs")) == "true";
  for (const auto& [path, stored] : repo.files) {
    json sibling{{"rfilename", path}};
    if (blobs) {
      sibling["size"] = stored.content().size();
      sibling["blobId"] = stored.git_id;
      if (stored.is_large()) {
        sibling["lfs"] = {
            {"sha256", stored.sha256}, {"size", stored.content().size()}, {"pointerSize", 134}};
      }
    }
    siblings.push_back(std::move(sibling));
  }
  const bool gated = facts.access == HubAccess::kGated;
  return {{"_id", "660f"},
          {"id", facts.id},
          {"modelId", facts.id},
          {"author", facts.id.substr(0, facts.id.find('/'))},
          {"sha", facts.commit},
          {"private", facts.access == HubAccess::kPrivate},
          {"gated", gated ? json("auto") : json(false)},
          {"disabled", facts.access == HubAccess::kDisabled},
          {"tags", {"safetensors"}},
          {"downloads", 1},
          {"likes", 1},
          {"lastModified", "2026-01-01T00:00:00.000Z"},
          {"createdAt", "2026-01-01T00:00:00.000Z"},
          {"siblings", std::move(siblings)}};
}

// {"paths": [...]} or the same as a form.
std::vector<std::string> asked_paths(const HttpRequest& request) {
  if (!request.body.starts_with('{')) return query_values(request.body, "paths");
  const json body = json::parse(request.body, nullptr, false);
  std::vector<std::string> paths;
  if (!body.is_object() || !body.contains("paths")) return paths;
  for (const json& path : body["paths"]) paths.push_back(path.get<std::string>());
  return paths;
}

}  // namespace

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return text;
}

std::string decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      out += static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string encode(std::string_view text, std::string_view keep) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~").find(c) != std::string_view::npos ||
                       keep.find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out;
  while (true) {
    const std::size_t end = text.find(separator);
    out.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

std::string join(const std::vector<std::string>& parts, std::size_t from) {
  std::string out;
  for (std::size_t i = from; i < parts.size(); ++i) out += (i == from ? "" : "/") + parts[i];
  return out;
}

std::string query_value(const std::string& query, std::string_view name) {
  for (const std::string& pair : split(query, '&')) {
    const std::size_t equals = pair.find('=');
    if (pair.substr(0, equals) != name) continue;
    return equals == std::string::npos ? "" : decode(pair.substr(equals + 1));
  }
  return {};
}

std::string sha1(std::initializer_list<std::string_view> parts) {
  return digest(EVP_sha1(), parts);
}

std::string sha256(std::initializer_list<std::string_view> parts) {
  return digest(EVP_sha256(), parts);
}

Stored store(const std::string& path, HubFile file) {
  const std::string_view content = file.content();
  const std::string size = std::to_string(content.size());
  const bool hashed = content.size() <= kMaxHashed;
  const std::string_view text = hashed ? content : std::string_view(path);
  const std::string header = "blob " + size + '\0';
  const std::string salt = hashed ? "" : size;
  return {.file = std::move(file),
          .git_id = sha1({header, salt, text}),
          .sha256 = sha256({salt, text})};
}

HttpReply error_reply(int status, std::string_view code, std::string_view message) {
  HttpReply reply{.status = status,
                  .fields = {{"Content-Type", "application/json; charset=utf-8"},
                             {"X-Error-Message", std::string(message)}},
                  .body = json{{"error", message}}.dump()};
  if (!code.empty()) reply.fields.push_back({"X-Error-Code", std::string(code)});
  return reply;
}

HttpReply redirect_reply(int status, const std::string& target) {
  const std::string_view word = status == 302 ? "Found" : "Temporary Redirect";
  return {.status = status,
          .fields = {{"Location", target},
                     {"Content-Type", "text/plain; charset=utf-8"},
                     {"Accept-Ranges", "bytes"}},
          .body = fmt::format("{}. Redirecting to {}", word, target)};
}

HttpReply page_reply(int status) {
  return {.status = status,
          .fields = {{"Content-Type", "text/html; charset=utf-8"}},
          .body = "<!doctype html><html><body>Sorry</body></html>"};
}

HttpReply xml_reply(int status, std::string_view code, std::string_view message) {
  return {.status = status,
          .fields = {{"Content-Type", "application/xml"}},
          .body = fmt::format("<?xml version=\"1.0\"?><Error><Code>{}</Code><Message>{}</Message>"
                              "</Error>",
                              code, message)};
}

void add(HttpReply& reply, std::string name, std::string value) {
  reply.fields.push_back({std::move(name), std::move(value)});
}

std::string in_quotes(std::string_view text) {
  return fmt::format("\"{}\"", text);
}

HttpReply info_reply(const Repo& repo, const std::string& query) {
  return json_reply(info_of(repo, query));
}

HttpReply refs_reply(const Repo& repo) {
  json branches = json::array();
  for (const std::string& name : repo.facts.revisions) {
    branches.push_back(
        {{"name", name}, {"ref", "refs/heads/" + name}, {"targetCommit", repo.facts.commit}});
  }
  return json_reply({{"branches", branches}, {"tags", json::array()}, {"converts", json::array()}});
}

HttpReply paths_info_reply(const Repo& repo, const HttpRequest& request) {
  json body = json::array();
  for (const std::string& path : asked_paths(request)) {
    const auto found = repo.files.find(path);
    if (found != repo.files.end()) {
      body.push_back(tree_entry(path, found->second, false));
    } else if (std::ranges::any_of(repo.files,
                                   [&](const auto& file) { return is_in(file.first, path); })) {
      body.push_back(directory_entry(path));
    }
  }
  return json_reply(body);
}

HttpReply tree_reply(const Repo& repo, const HttpRequest& request, const std::string& directory,
                     std::size_t page_size) {
  const std::string query = request.query();
  const bool recursive = lower(query_value(query, "recursive")) == "true";
  const bool expanded = lower(query_value(query, "expand")) == "true";
  const std::vector<json> entries = tree_entries(repo, directory, recursive, expanded);
  if (entries.empty() && !directory.empty()) {
    HttpReply reply = error_reply(404, "EntryNotFound", directory + " does not exist");
    add(reply, "X-Repo-Commit", repo.facts.commit);
    return reply;
  }
  const std::string cursor = query_value(query, "cursor");
  const std::size_t first = cursor.empty() ? 0 : std::stoul(cursor);
  constexpr std::size_t kExpandedPage = 50;
  const std::size_t page = expanded ? std::min(kExpandedPage, page_size) : page_size;
  const std::size_t last = std::min(entries.size(), first + page);
  json body = json::array();
  for (std::size_t i = first; i < last; ++i) body.push_back(entries[i]);
  HttpReply reply = json_reply(body);
  if (last < entries.size()) {
    add(reply, "Link",
        fmt::format("<http://{}{}?recursive={}&expand={}&cursor={}>; rel=\"next\"",
                    request.field("Host"), request.path(), recursive, expanded, last));
  }
  return reply;
}

}  // namespace gridscope::test::hub
