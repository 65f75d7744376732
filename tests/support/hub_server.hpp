#pragma once

// A Hub for tests, on one loopback server with two names: 127.0.0.1 is the Hub and localhost is the
// content host that it redirects to with signed URLs. It answers what the Hub answers, so that the
// reference client reads it too, and refuses what the Hub refuses. Faults are functions from the
// good answer to a bad one, bound to a stage. It shares no code with the client under test.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/http_server.hpp"

namespace gridscope::test {

// A file mapped into memory, so that a sparse one of true size costs what is read of it.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  [[nodiscard]] std::string_view bytes() const { return bytes_; }

 private:
  std::string_view bytes_;
};

// How the Hub serves a file.
enum class HubStorage : std::uint8_t {
  kGit,        // at once
  kGitCached,  // after a relative 307 to its own resolve-cache
  kLarge,      // after a 302 to a signed URL on the content host
};

struct HubFile {
  std::string text = {};                               // the content,
  std::shared_ptr<const MappedFile> mapped = nullptr;  // or where it lies
  HubStorage storage = HubStorage::kGit;

  [[nodiscard]] std::string_view content() const { return mapped ? mapped->bytes() : text; }
};

enum class HubAccess : std::uint8_t { kPublic, kPrivate, kGated, kDisabled };

struct HubRepo {
  std::string id;
  std::map<std::string, HubFile> files = {};
  std::string commit = "1234567890abcdef1234567890abcdef12345678";
  std::vector<std::string> revisions = {"main"};  // all of them name the commit
  HubAccess access = HubAccess::kPublic;
  std::string moved_from = {};  // an old id, redirected to this one
};

// Everything below `directory`; names ending in .json and .txt are stored as git files.
[[nodiscard]] HubRepo hub_repo_from_directory(std::string id,
                                              const std::filesystem::path& directory);

enum class HubStage : std::uint8_t {
  kInfo,          // api/models/ID[/revision/REV]
  kTree,          // api/models/ID/tree/REV
  kResolve,       // ID/resolve/REV/PATH
  kResolveCache,  // api/resolve-cache/...
  kContent,       // the content host
};

// Changes the answers to some requests of a stage.
struct HubFault {
  HubStage stage;
  std::function<HttpReply(const HttpRequest&, HttpReply)> change;
  std::size_t spare = 0;         // so many requests go well first
  std::size_t times = SIZE_MAX;  // so many then fail
};

struct HubServerOptions {
  std::string token = {};        // the one that opens private repositories; empty: none does
  bool token_in_list = true;     // whether its owner may read gated ones
  std::size_t page_size = 1000;  // entries of a page of a listing
  std::int64_t lifetime = 3600;  // seconds that a signed URL is good
  std::function<std::int64_t()> now = {};  // seconds since 1970; empty: the system's clock
  HttpServerOptions server = {};
};

class HubServer {
 public:
  explicit HubServer(std::vector<HubRepo> repos, HubServerOptions options = {});
  ~HubServer();
  HubServer(const HubServer&) = delete;
  HubServer& operator=(const HubServer&) = delete;

  [[nodiscard]] std::string endpoint() const;        // http://127.0.0.1:PORT
  [[nodiscard]] std::string content_origin() const;  // http://localhost:PORT
  [[nodiscard]] std::string certificate_file() const;

  void add_fault(HubFault fault);
  void clear_faults();
  // Replaces the repository of the same id, or adds it.
  void set_repo(HubRepo repo);

  // All requests so far; host() tells which of the two names was asked.
  [[nodiscard]] std::vector<HttpRequest> requests() const;
  void forget_requests();

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace gridscope::test
