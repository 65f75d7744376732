#pragma once

// A repository in memory, which can list its files or, like a plain web server, can not.

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gridscope/io/memory_source.hpp"
#include "gridscope/store/repository.hpp"
#include "support/matchers.hpp"

namespace gridscope::test {

enum class Listing : std::uint8_t { kGiven, kNone };

class MemoryRepository final : public store::Repository {
 public:
  explicit MemoryRepository(Listing listing = Listing::kGiven, std::string named_file = "")
      : has_listing_(listing == Listing::kGiven), named_file_(std::move(named_file)) {
    info_.reference = "models/tiny";
    info_.location = "models/tiny";
    if (has_listing_) listing_.emplace();
  }

  MemoryRepository& add(const std::string& path, std::vector<std::byte> bytes) {
    files_[path] = std::move(bytes);
    if (!has_listing_) return *this;
    listing_->clear();
    for (const auto& [name, content] : files_)
      listing_->push_back({.path = name, .size = content.size()});
    return *this;
  }
  MemoryRepository& add(const std::string& path, std::string_view text) {
    return add(path, to_bytes(text));
  }

  // Like a server that refuses a file: asking does not find it, and opening it fails.
  MemoryRepository& forbid(const std::string& path) {
    forbidden_.insert(path);
    return *this;
  }

  [[nodiscard]] const store::RepositoryInfo& info() const override { return info_; }
  [[nodiscard]] const std::optional<std::vector<store::FileEntry>>& listing() const override {
    return listing_;
  }
  [[nodiscard]] Result<std::optional<store::FileEntry>> find(std::string_view path) const override {
    ++finds;
    if (forbidden_.contains(path)) return std::nullopt;
    const auto at = files_.find(path);
    if (at == files_.end()) return std::nullopt;
    return std::optional(store::FileEntry{.path = at->first, .size = at->second.size()});
  }
  [[nodiscard]] Result<std::unique_ptr<io::ByteSource>> open(std::string_view path) const override {
    ++opens;
    if (forbidden_.contains(path)) {
      return fail(ErrorCode::kPermission, std::string(path) + " is forbidden");
    }
    const auto at = files_.find(path);
    if (at == files_.end()) return fail(ErrorCode::kNotFound, std::string(path) + " is not there");
    return io::make_memory_source(at->second, {.name = at->first, .version = ""});
  }
  [[nodiscard]] const std::string& named_file() const override { return named_file_; }

  mutable std::atomic<int> finds = 0;
  mutable std::atomic<int> opens = 0;

 private:
  bool has_listing_;
  std::string named_file_;
  store::RepositoryInfo info_;
  std::map<std::string, std::vector<std::byte>, std::less<>> files_;
  std::set<std::string, std::less<>> forbidden_;
  std::optional<std::vector<store::FileEntry>> listing_;
};

}  // namespace gridscope::test
