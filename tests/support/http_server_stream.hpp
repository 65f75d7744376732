#pragma once

// The connections of the test server: a byte stream over a socket, plain or TLS.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace gridscope::test {

class Stream {
 public:
  virtual ~Stream() = default;
  // Bytes read; 0 at the end of the stream or on an error.
  [[nodiscard]] virtual std::size_t read(std::span<char> into) = 0;
  // False once the client is gone.
  [[nodiscard]] virtual bool write(std::string_view bytes) = 0;
};

// Reads and writes `socket`, which stays the caller's.
[[nodiscard]] std::unique_ptr<Stream> make_plain_stream(int socket);

// A self-signed certificate for 127.0.0.1 and localhost, in a temporary PEM file.
class TlsIdentity {
 public:
  TlsIdentity();
  ~TlsIdentity();
  TlsIdentity(const TlsIdentity&) = delete;
  TlsIdentity& operator=(const TlsIdentity&) = delete;

  [[nodiscard]] const std::string& certificate_file() const;
  // Does the handshake; null when it fails.
  [[nodiscard]] std::unique_ptr<Stream> accept(int socket) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gridscope::test
