#pragma once

// Bytes in memory as a ByteSource: for small documents and for tests.

#include <memory>
#include <string>
#include <vector>

#include "gridscope/io/byte_source.hpp"

namespace gridscope::io {

[[nodiscard]] std::unique_ptr<ByteSource> make_memory_source(std::vector<std::byte> bytes,
                                                             SourceIdentity identity);

}  // namespace gridscope::io
