#include "gridscope/io/memory_source.hpp"

#include <cstring>
#include <utility>

namespace gridscope::io {
namespace {

class MemorySource final : public ByteSource {
 public:
  MemorySource(std::vector<std::byte> bytes, SourceIdentity identity)
      : bytes_(std::move(bytes)), identity_(std::move(identity)) {}

  [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
  [[nodiscard]] const SourceIdentity& identity() const override { return identity_; }

  [[nodiscard]] Status read_at(std::uint64_t offset, std::span<std::byte> into) const override {
    GRIDSCOPE_CHECK(check_range(*this, offset, into.size()));
    if (!into.empty()) std::memcpy(into.data(), bytes_.data() + offset, into.size());
    return {};
  }

 private:
  const std::vector<std::byte> bytes_;
  const SourceIdentity identity_;
};

}  // namespace

std::unique_ptr<ByteSource> make_memory_source(std::vector<std::byte> bytes,
                                               SourceIdentity identity) {
  return std::make_unique<MemorySource>(std::move(bytes), std::move(identity));
}

}  // namespace gridscope::io
