#include "gridscope/format/safetensors_index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <unordered_map>

#include "gridscope/core/json.hpp"
#include "gridscope/core/text.hpp"
#include "gridscope/format/tensor_table.hpp"

// Published indexes reach 60 MB and half a million entries. They are read as events: each tensor's
// name is kept once, its shard as a number.

namespace gridscope::format {
namespace {

constexpr std::string_view kRemedy = "fetch the index again, or write the checkpoint again";
// The longest name that common file systems hold.
constexpr std::size_t kMaxFileNameBytes = 255;

tl::unexpected<Error> corrupt(std::string message) {
  return fail(ErrorCode::kCorrupt, std::move(message), std::string(kRemedy));
}

std::optional<std::uint64_t> parse_digits(std::string_view text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>{}(text);
  }
};

// Takes the events of an index apart:
//
//   { "metadata": { "total_size": n, ... }, "weight_map": { tensor: file, ... }, ... }
//
// Whatever else stands in it is passed over.
class IndexHandler final : public JsonHandler {
 public:
  explicit IndexHandler(const Limits& limits) : limits_(limits) {}

  ShardIndex index;
  bool has_weight_map = false;

  // As a size, null says that the writer did not know.
  Status on_null() override { return at_total_size() ? Status() : other("null"); }
  Status on_bool(bool value) override { return other(value ? "true" : "false"); }
  Status on_signed(std::int64_t value) override { return other(std::to_string(value)); }

  Status on_unsigned(std::uint64_t value) override {
    if (at_total_size()) index.total_size = value;
    return other(std::to_string(value));
  }

  // Some writers divide by one and get a float.
  Status on_real(double value, std::string_view text) override {
    constexpr double kLargestExact = 9007199254740992.0;  // 2^53
    if (at_total_size() && value >= 0 && value <= kLargestExact && std::floor(value) == value) {
      index.total_size = static_cast<std::uint64_t>(value);
    }
    return other(text);
  }

  Status on_string(std::string_view value) override {
    if (at_total_size()) index.total_size = parse_digits(value);
    return place_ == Place::kWeightMap ? set_shard(value) : other(quote(value));
  }

  Status on_key(std::string_view key) override {
    switch (place_) {
      case Place::kTop:
        return begin_member(key);
      case Place::kWeightMap:
        return begin_entry(key);
      case Place::kMetadata:
        at_total_size_ = key == "total_size";
        return {};
      default:
        return {};
    }
  }

  Status on_begin_object() override {
    if (place_ == Place::kStart) {
      place_ = Place::kTop;
      return {};
    }
    if (place_ == Place::kTop && member_ != Member::kOther) {
      has_weight_map = has_weight_map || member_ == Member::kWeightMap;
      place_ = member_ == Member::kWeightMap ? Place::kWeightMap : Place::kMetadata;
      return {};
    }
    return begin_ignored("an object");
  }

  Status on_begin_array() override { return begin_ignored("an array"); }

  Status on_end_object() override {
    if (place_ == Place::kIgnored) return end_ignored();
    place_ = place_ == Place::kTop ? Place::kStart : Place::kTop;
    return {};
  }

  Status on_end_array() override { return end_ignored(); }

 private:
  enum class Place : std::uint8_t { kStart, kTop, kMetadata, kWeightMap, kIgnored };
  enum class Member : std::uint8_t { kOther, kMetadata, kWeightMap };

  [[nodiscard]] bool at_total_size() const { return place_ == Place::kMetadata && at_total_size_; }

  Status begin_member(std::string_view key) {
    member_ = key == "weight_map" ? Member::kWeightMap
              : key == "metadata" ? Member::kMetadata
                                  : Member::kOther;
    bool& seen = member_ == Member::kWeightMap ? seen_weight_map_ : seen_metadata_;
    if (member_ != Member::kOther && std::exchange(seen, true)) {
      return corrupt(fmt::format("{} is given twice", key));
    }
    return {};
  }

  Status begin_entry(std::string_view tensor) {
    if (tensor.size() > limits_.name_bytes) {
      return over_limit(&Limits::name_bytes,
                        fmt::format("tensor name of {} bytes, the limit is {}: {}", tensor.size(),
                                    limits_.name_bytes, quote(tensor)));
    }
    if (index.entries.size() >= limits_.tensors) {
      return over_limit(&Limits::tensors, fmt::format("more than {} tensors", limits_.tensors));
    }
    index.entries.push_back({.tensor = std::string(tensor)});
    return {};
  }

  // Neighbours mostly share a shard, so the last one is asked first.
  Status set_shard(std::string_view file) {
    if (!index.shards.empty() && index.shards[last_shard_] == file) {
      index.entries.back().shard = last_shard_;
      return {};
    }
    const auto known = numbers_.find(file);
    if (known == numbers_.end()) return add_shard(file);
    index.entries.back().shard = last_shard_ = known->second;
    return {};
  }

  Status add_shard(std::string_view file) {
    if (!is_safe_shard_name(file)) {
      return corrupt(
          fmt::format("weight_map puts {} into {}, expected the name of a file beside the index",
                      quote(index.entries.back().tensor), quote(file)));
    }
    if (index.shards.size() >= limits_.shards) {
      return over_limit(&Limits::shards, fmt::format("more than {} shards", limits_.shards));
    }
    index.entries.back().shard = last_shard_ = static_cast<std::uint32_t>(index.shards.size());
    numbers_.emplace(file, last_shard_);
    index.shards.emplace_back(file);
    return {};
  }

  // Anything may stand beside weight_map, and inside metadata.
  Status begin_ignored(std::string_view found) {
    GRIDSCOPE_CHECK(other(found));
    if (place_ != Place::kIgnored) around_ignored_ = std::exchange(place_, Place::kIgnored);
    ++ignored_depth_;
    return {};
  }

  Status end_ignored() {
    if (--ignored_depth_ == 0) place_ = around_ignored_;
    return {};
  }

  // A value that has no meaning in its place: fine, unless the place needs a certain kind.
  Status other(std::string_view found) {
    if (at_total_size() && !index.total_size) index.odd_total_size = printable(found);
    if (place_ == Place::kStart) {
      return corrupt(fmt::format("index: expected an object, found {}", found));
    }
    if (place_ == Place::kTop && member_ == Member::kWeightMap) {
      return corrupt(fmt::format("weight_map: expected an object, found {}", found));
    }
    if (place_ == Place::kWeightMap) {
      return corrupt(fmt::format("weight_map entry {}: expected a file name, found {}",
                                 quote(index.entries.back().tensor), found));
    }
    return {};
  }

  const Limits& limits_;
  Place place_ = Place::kStart;
  Place around_ignored_ = Place::kTop;
  Member member_ = Member::kOther;
  bool seen_metadata_ = false;
  bool seen_weight_map_ = false;
  bool at_total_size_ = false;
  std::size_t ignored_depth_ = 0;
  std::uint32_t last_shard_ = 0;
  std::unordered_map<std::string, std::uint32_t, StringHash, std::equal_to<>> numbers_;
};

Status check_names(const ShardIndex& index) {
  std::vector<std::string_view> names;
  names.reserve(index.entries.size());
  for (const ShardIndex::Entry& entry : index.entries) names.push_back(entry.tensor);
  if (const auto at = find_repeated(names)) {
    return corrupt(fmt::format("weight_map names tensor {} twice", quote(names[*at])));
  }
  return {};
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// The number of five or six digits at the start of `text`, taken off it.
std::optional<std::uint32_t> take_number(std::string_view& text) {
  const auto length =
      static_cast<std::size_t>(std::ranges::find_if_not(text, is_digit) - text.begin());
  if (length != 5 && length != 6) return std::nullopt;
  const auto value = parse_digits(text.substr(0, length));
  if (!value) return std::nullopt;
  text.remove_prefix(length);
  return static_cast<std::uint32_t>(*value);
}

}  // namespace

Result<ShardIndex> parse_safetensors_index(std::span<const std::byte> text, const Limits& limits) {
  if (text.size() > limits.index_bytes) {
    return over_limit(&Limits::index_bytes, fmt::format("index of {} bytes, the limit is {}",
                                                        text.size(), limits.index_bytes));
  }
  IndexHandler handler(limits);
  if (Status read = read_json(text, handler,
                              {.max_depth = limits.json_depth, .max_bytes = limits.index_bytes},
                              DuplicateKeys::kReport);
      !read) {
    Error error = std::move(read).error();
    if (error.remedy.empty()) {
      error.remedy = error.code == ErrorCode::kLimit ? limit_remedy(&Limits::json_depth)
                                                     : std::string(kRemedy);
    }
    return tl::make_unexpected(std::move(error));
  }
  if (!handler.has_weight_map) return corrupt("index has no weight_map");
  GRIDSCOPE_CHECK(check_names(handler.index));
  return std::move(handler.index);
}

std::optional<ShardName> parse_shard_name(std::string_view file_name) {
  constexpr std::string_view kOf = "-of-";
  const auto of = file_name.rfind(kOf);
  if (of == std::string_view::npos) return std::nullopt;
  const std::string_view before = file_name.substr(0, of);
  const auto digits = before.find_last_not_of("0123456789") + 1;
  std::string_view number_text = before.substr(digits);
  std::string_view rest = file_name.substr(of + kOf.size());
  const auto number = take_number(number_text);
  const auto total = take_number(rest);
  if (!number || !total || *number > *total || *total == 0) return std::nullopt;
  const std::string_view prefix = before.substr(0, digits);
  if (!prefix.ends_with('-') && !prefix.ends_with('_')) return std::nullopt;
  return ShardName{.prefix = std::string(prefix),
                   .number = *number,
                   .total = *total,
                   .suffix = std::string(rest)};
}

bool is_safe_shard_name(std::string_view name) {
  const auto is_unsafe = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7F || c == '/' || c == '\\' || c == ':';
  };
  return !name.empty() && name != "." && name.size() <= kMaxFileNameBytes &&
         name.find("..") == std::string_view::npos && std::ranges::none_of(name, is_unsafe);
}

}  // namespace gridscope::format
