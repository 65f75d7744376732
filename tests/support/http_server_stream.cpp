#include "support/http_server_stream.hpp"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace gridscope::test {
namespace {

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Deleter<X509_free>>;
using Context = std::unique_ptr<SSL_CTX, Deleter<SSL_CTX_free>>;
using Session = std::unique_ptr<SSL, Deleter<SSL_free>>;

class PlainStream final : public Stream {
 public:
  explicit PlainStream(int socket) : socket_(socket) {}

  std::size_t read(std::span<char> into) override {
    const ssize_t n = ::recv(socket_, into.data(), into.size(), 0);
    return n > 0 ? static_cast<std::size_t>(n) : 0;
  }

  bool write(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

 private:
  int socket_;
};

class TlsStream final : public Stream {
 public:
  explicit TlsStream(Session session) : session_(std::move(session)) {}

  std::size_t read(std::span<char> into) override {
    std::size_t n = 0;
    return SSL_read_ex(session_.get(), into.data(), into.size(), &n) == 1 ? n : 0;
  }

  bool write(std::string_view bytes) override {
    std::size_t n = 0;
    return bytes.empty() || SSL_write_ex(session_.get(), bytes.data(), bytes.size(), &n) == 1;
  }

 private:
  Session session_;
};

void require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

void add_extension(X509* certificate, int nid, const char* value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value);
  require(extension != nullptr, "cannot make a certificate extension");
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

Certificate self_signed(EVP_PKEY* key) {
  constexpr long kValidSeconds = 3600;
  Certificate certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -kValidSeconds);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), kValidSeconds);
  X509_set_pubkey(certificate.get(), key);
  X509_NAME* name = X509_get_subject_name(certificate.get());
  const std::string common_name = "test server";
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(common_name.data()),
                             static_cast<int>(common_name.size()), -1, 0);
  X509_set_issuer_name(certificate.get(), name);
  add_extension(certificate.get(), NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
  add_extension(certificate.get(), NID_basic_constraints, "critical,CA:TRUE");
  require(X509_sign(certificate.get(), key, EVP_sha256()) > 0, "cannot sign the certificate");
  return certificate;
}

std::string write_temporary_pem(X509* certificate) {
  const char* directory = std::getenv("TMPDIR");
  std::string path = std::string(directory == nullptr ? "/tmp" : directory) + "/certificate.XXXXXX";
  const int descriptor = ::mkstemp(path.data());
  require(descriptor >= 0, "cannot make a temporary file");
  std::FILE* file = ::fdopen(descriptor, "w");
  require(PEM_write_X509(file, certificate) == 1, "cannot write the certificate");
  std::fclose(file);
  return path;
}

}  // namespace

std::unique_ptr<Stream> make_plain_stream(int socket) {
  return std::make_unique<PlainStream>(socket);
}

struct TlsIdentity::State {
  Context context{SSL_CTX_new(TLS_server_method())};
  std::string certificate_file;
};

TlsIdentity::TlsIdentity() : state_(std::make_unique<State>()) {
  const Key key(EVP_EC_gen("P-256"));
  require(key != nullptr, "cannot make a key");
  const Certificate certificate = self_signed(key.get());
  require(SSL_CTX_use_certificate(state_->context.get(), certificate.get()) == 1,
          "cannot use the certificate");
  require(SSL_CTX_use_PrivateKey(state_->context.get(), key.get()) == 1, "cannot use the key");
  state_->certificate_file = write_temporary_pem(certificate.get());
}

TlsIdentity::~TlsIdentity() {
  ::unlink(state_->certificate_file.c_str());
}

const std::string& TlsIdentity::certificate_file() const {
  return state_->certificate_file;
}

std::unique_ptr<Stream> TlsIdentity::accept(int socket) const {
  Session session(SSL_new(state_->context.get()));
  SSL_set_fd(session.get(), socket);
  if (SSL_accept(session.get()) != 1) return nullptr;
  return std::make_unique<TlsStream>(std::move(session));
}

}  // namespace gridscope::test
