// The idea: directory/<2 hex>/<16 hex>/<offset>-<length>.zst, where the hex digits are a hash of
// the key. What is kept of an object is learned by listing its directory, so that there is no index
// to keep right beside other processes. A file appears under its name only whole (written aside,
// then renamed) and proves itself when it is read (key, place, checksum), so that neither a crash
// nor a damaged disk can make a wrong byte pass; the worst that can happen is a miss. The
// modification time of an entry says when it was last used. One process at a time sweeps, under a
// file lock.

#include "gridscope/io/range_cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "gridscope/core/checked.hpp"
#include "gridscope/core/text.hpp"
#include "gridscope/io/cache_entry.hpp"
#include "gridscope/io/descriptor.hpp"

namespace gridscope::io {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDocumentName = "document.zst";
constexpr std::string_view kEntrySuffix = ".zst";
constexpr std::string_view kTemporarySuffix = ".tmp";

// To make a directory and a file in it before a sweep removes the directory.
constexpr int kMostAttempts = 1000;

// A writer holds its temporary for seconds; after this it is a crash's.
constexpr std::chrono::hours kTemporaryLife{1};

std::string range_name(const ByteRange& range) {
  return fmt::format("{}-{}{}", range.offset, range.length, kEntrySuffix);
}

// The range that an entry of that name holds; empty for any other name.
std::optional<ByteRange> parse_range_name(std::string_view name) {
  ByteRange range;
  const char* const begin = name.data();
  const char* const end = begin + name.size();
  const auto [dash, bad_offset] = std::from_chars(begin, end, range.offset);
  if (bad_offset != std::errc() || dash == end) return std::nullopt;
  const auto [rest, bad_length] = std::from_chars(dash + 1, end, range.length);
  if (bad_length != std::errc() || range_name(range) != name) return std::nullopt;
  if (!checked_add(range.offset, range.length)) return std::nullopt;
  return range;
}

bool is_hex(std::string_view name, std::size_t digits) {
  return name.size() == digits &&
         name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Empty when it cannot be listed.
std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    names.push_back(at->path().filename().native());
  }
  return names;
}

// 0, or the errno of what is in the way.
int make_directory(const fs::path& path) {
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return 0;
  if (errno != ENOENT || !path.has_relative_path() || !path.has_parent_path()) return errno;
  if (const int fault = make_directory(path.parent_path()); fault != 0) return fault;
  return ::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST ? 0 : errno;
}

// Of `kept`, ranges that together cover `wanted`, in order; empty when there is a gap. From each
// place the range is taken that goes on furthest.
std::vector<ByteRange> covering(std::vector<ByteRange> kept, const ByteRange& wanted) {
  std::ranges::sort(kept, {}, &ByteRange::offset);
  std::vector<ByteRange> chosen;
  std::uint64_t reached = wanted.offset;
  auto next = kept.begin();
  while (reached < wanted.end()) {
    ByteRange best;
    for (; next != kept.end() && next->offset <= reached; ++next) {
      if (next->end() > best.end()) best = *next;
    }
    if (best.end() <= reached) return {};
    chosen.push_back(best);
    reached = best.end();
  }
  return chosen;
}

// Different for every call of every process, also where process ids repeat.
std::string temporary_name() {
  static std::atomic<std::uint64_t> count = 0;
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return fmt::format("{}-{}-{}{}", ::getpid(), now, count.fetch_add(1), kTemporarySuffix);
}

// Writes `contents` aside and renames it to `name`. Sweeps may remove the directory while it is
// still empty, or one above it; then they are made again.
Status write_entry(const fs::path& directory, std::string_view name,
                   std::span<const std::byte> contents) {
  const fs::path temporary = directory / temporary_name();
  Descriptor file;
  for (int attempt = 0;; ++attempt) {
    const int obstacle = make_directory(directory);
    if (obstacle == 0) {
      file = Descriptor(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    }
    if (file.is_open()) break;
    const int fault = obstacle != 0 ? obstacle : errno;
    if (fault == ENOENT && attempt < kMostAttempts) continue;
    const std::string where =
        obstacle != 0 ? "making " + quote(directory.native()) : quote(temporary.native());
    return tl::make_unexpected(system_error(fault, where));
  }
  Status written = write_all(file, contents);
  if (written && ::rename(temporary.c_str(), (directory / name).c_str()) != 0) {
    written = tl::make_unexpected(system_error(errno, "renaming"));
  }
  if (!written) ::unlink(temporary.c_str());
  return written;
}

struct KeptFile {
  fs::path path;
  std::uint64_t bytes = 0;
  std::chrono::nanoseconds used{0};  // modification time, since the epoch
};

// Everything under the cache's directory that the cache itself has put there.
struct Contents {
  std::vector<KeptFile> entries;
  std::vector<KeptFile> temporaries;
  std::vector<fs::path> directories;  // inner ones first

  [[nodiscard]] RangeCacheUsage usage() const {
    RangeCacheUsage sum{.entries = entries.size(), .bytes = 0};
    for (const KeptFile& entry : entries) sum.bytes += entry.bytes;
    return sum;
  }
};

void add_object(const fs::path& directory, Contents& contents) {
  for (const std::string& name : names_in(directory)) {
    const bool temporary = name.ends_with(kTemporarySuffix);
    if (!temporary && name != kDocumentName && !parse_range_name(name)) continue;
    struct stat state{};
    const fs::path path = directory / name;
    if (::lstat(path.c_str(), &state) != 0 || !S_ISREG(state.st_mode)) continue;
    auto& files = temporary ? contents.temporaries : contents.entries;
    files.push_back({.path = path,
                     .bytes = static_cast<std::uint64_t>(state.st_size),
                     .used = std::chrono::seconds(state.st_mtim.tv_sec) +
                             std::chrono::nanoseconds(state.st_mtim.tv_nsec)});
  }
  contents.directories.push_back(directory);
}

Contents scan(const fs::path& root) {
  Contents contents;
  for (const std::string& shard : names_in(root)) {
    if (!is_hex(shard, 2)) continue;
    for (const std::string& object : names_in(root / shard)) {
      if (is_hex(object, 16)) add_object(root / shard / object, contents);
    }
    contents.directories.push_back(root / shard);
  }
  return contents;
}

bool remove_file(const fs::path& path) {
  return ::unlink(path.c_str()) == 0 || errno == ENOENT;
}

// Those that hold something stay.
void remove_empty(const std::vector<fs::path>& directories) {
  for (const fs::path& directory : directories) ::rmdir(directory.c_str());
}

void remove_stale_temporaries(const Contents& contents) {
  const auto limit = std::chrono::system_clock::now().time_since_epoch() - kTemporaryLife;
  for (const KeptFile& temporary : contents.temporaries) {
    if (temporary.used < limit) remove_file(temporary.path);
  }
}

// Removes the least recently used entries until at most `target` bytes remain; returns what does.
std::uint64_t evict(std::vector<KeptFile> entries, std::uint64_t total, std::uint64_t target) {
  std::ranges::sort(entries, {}, &KeptFile::used);
  for (const KeptFile& entry : entries) {
    if (total <= target) break;
    if (remove_file(entry.path)) total -= entry.bytes;
  }
  return total;
}

class DiskCache final : public RangeCache {
 public:
  DiskCache(RangeCacheOptions options, Observer& observer)
      : options_(std::move(options)), observer_(observer) {}

  bool get(const std::string& key, std::uint64_t offset, std::span<std::byte> into) override {
    if (!checked_add(offset, into.size())) return false;
    const fs::path directory = object_directory(key);
    const ByteRange wanted{.offset = offset, .length = into.size()};
    const std::vector<ByteRange> chosen = covering(kept_ranges(directory), wanted);
    std::uint64_t at = offset;
    for (const ByteRange& range : chosen) {
      const auto bytes = load(directory / range_name(range), key, range.offset);
      if (!bytes || bytes->size() != range.length) return false;
      const std::uint64_t end = std::min(range.end(), wanted.end());
      std::memcpy(into.data() + (at - offset), bytes->data() + (at - range.offset), end - at);
      at = end;
    }
    return at == wanted.end();
  }

  void put(const std::string& key, std::uint64_t offset,
           std::span<const std::byte> bytes) override {
    if (bytes.empty()) return;
    keep(key, range_name({.offset = offset, .length = bytes.size()}), offset, bytes);
  }

  std::optional<std::vector<std::byte>> get_document(const std::string& key) override {
    return load(object_directory(key) / kDocumentName, key, 0);
  }

  void put_document(const std::string& key, std::span<const std::byte> bytes) override {
    keep(key, kDocumentName, 0, bytes);
  }

  [[nodiscard]] RangeCacheUsage usage() const override { return scan(options_.directory).usage(); }

  Result<RangeCacheUsage> clear() override {
    const Contents contents = scan(options_.directory);
    for (const KeptFile& entry : contents.entries) {
      if (!remove_file(entry.path)) {
        return tl::make_unexpected(system_error(errno, "removing " + quote(entry.path.native())));
      }
    }
    remove_stale_temporaries(contents);
    remove_empty(contents.directories);
    return contents.usage();
  }

 private:
  [[nodiscard]] fs::path object_directory(const std::string& key) const {
    const std::string hash = fmt::format("{:016x}", hash_bytes(std::as_bytes(std::span(key))));
    return options_.directory / hash.substr(0, 2) / hash;
  }

  [[nodiscard]] std::vector<ByteRange> kept_ranges(const fs::path& directory) const {
    std::vector<ByteRange> ranges;
    for (const std::string& name : names_in(directory)) {
      const auto range = parse_range_name(name);
      if (range && range->length <= options_.max_entry_bytes) ranges.push_back(*range);
    }
    return ranges;
  }

  // The bytes of the entry at `path`, which is then the most recently used one. An entry that does
  // not prove to be that of `key` and `offset` is removed.
  std::optional<std::vector<std::byte>> load(const fs::path& path, const std::string& key,
                                             std::uint64_t offset) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!file.is_open()) return std::nullopt;
    Result<CacheEntry> entry = read_entry(file);
    if (!entry || entry->key != key || entry->offset != offset) {
      ::unlink(path.c_str());
      observer_.on_event(
          Detail{.message = fmt::format("removed a damaged entry of the range cache, {}",
                                        quote(path.native()))});
      return std::nullopt;
    }
    ::futimens(file.get(), nullptr);
    return std::move(entry->bytes);
  }

  [[nodiscard]] Result<CacheEntry> read_entry(const Descriptor& file) const {
    struct stat state{};
    if (::fstat(file.get(), &state) != 0 || !S_ISREG(state.st_mode) ||
        static_cast<std::uint64_t>(state.st_size) > cache_entry_bound(options_.max_entry_bytes)) {
      return fail(ErrorCode::kCorrupt, "not an entry");
    }
    std::vector<std::byte> contents(static_cast<std::size_t>(state.st_size));
    GRIDSCOPE_TRY(const std::size_t read, read_up_to(file, 0, contents));
    return decode_cache_entry(std::span(contents).first(read), options_.max_entry_bytes);
  }

  void keep(const std::string& key, std::string_view name, std::uint64_t offset,
            std::span<const std::byte> bytes) {
    if (!writable_ || bytes.size() > options_.max_entry_bytes) return;
    const auto contents = encode_cache_entry(key, offset, bytes);
    if (!contents || contents->size() > options_.max_bytes) return;
    if (const Status kept = write_entry(object_directory(key), name, *contents); !kept) {
      give_up(kept.error());
      return;
    }
    room_ -= static_cast<std::int64_t>(contents->size());
    if (room_ < 0) sweep();
  }

  // Evicts to seven eighths of the limit, so that not every later put has to look through the whole
  // cache again. At most the eighth that is then free may be written before the next look: other
  // processes write too. When another process sweeps already, the next put tries again.
  void sweep() {
    const fs::path path = options_.directory / "lock";
    const Descriptor lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!lock.is_open() || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return;
    const Contents contents = scan(options_.directory);
    remove_stale_temporaries(contents);
    const std::uint64_t eighth = options_.max_bytes / 8;
    std::uint64_t total = contents.usage().bytes;
    if (total > options_.max_bytes) {
      total = evict(contents.entries, total, options_.max_bytes - eighth);
      remove_empty(contents.directories);
    }
    const std::uint64_t left = options_.max_bytes - std::min(total, options_.max_bytes);
    room_ = static_cast<std::int64_t>(std::min(left, eighth));
  }

  void give_up(const Error& error) {
    if (!writable_.exchange(false)) return;
    const std::string message = fmt::format("the range cache {} cannot be written: {}",
                                            quote(options_.directory.native()), error.message);
    observer_.on_event(Warning{.code = "CACHE_UNWRITABLE",
                               .message = message,
                               .remedy = "make room or make the directory writable"});
  }

  const RangeCacheOptions options_;
  Observer& observer_;
  std::atomic<bool> writable_ = true;
  // Bytes that may be written before the next sweep; none before the first one.
  std::atomic<std::int64_t> room_ = 0;
};

}  // namespace

Result<std::unique_ptr<RangeCache>> RangeCache::open(RangeCacheOptions options,
                                                     Observer& observer) {
  std::error_code error;
  const fs::file_status status = fs::status(options.directory, error);
  if (fs::exists(status) && !fs::is_directory(status)) {
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("the range cache {} is not a directory", quote(options.directory.native())),
        "name a directory, or one that does not exist yet");
  }
  return std::make_unique<DiskCache>(std::move(options), observer);
}

Result<fs::path> default_cache_directory() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value == nullptr ? "" : value);
  };
  // A relative path is to be ignored, says the XDG base directory specification.
  if (const fs::path cache = variable("XDG_CACHE_HOME"); cache.is_absolute()) {
    return cache / "gridscope";
  }
  if (const fs::path home = variable("HOME"); !home.empty()) return home / ".cache" / "gridscope";
  return fail(ErrorCode::kNotFound, "no place for the range cache: HOME is not set",
              "set XDG_CACHE_HOME or HOME");
}

}  // namespace gridscope::io
