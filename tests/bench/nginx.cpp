#include "bench/nginx.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "support/checkpoints.hpp"
#include "support/process.hpp"

namespace gridscope::bench {
namespace {

namespace fs = std::filesystem;

// sbin, where it is installed, is not in everybody's PATH.
constexpr const char* kProgram = "/usr/sbin/nginx";

constexpr const char* kConfiguration = R"(
{user}
worker_processes 2;
pid {work}/pid;
error_log {work}/error.log;
events {{ worker_connections 256; }}
http {{
  log_format ranges "$uri $http_range $connection $status";
  access_log {work}/access.log ranges;
  client_body_temp_path {work}/tmp; proxy_temp_path {work}/tmp; fastcgi_temp_path {work}/tmp;
  uwsgi_temp_path {work}/tmp; scgi_temp_path {work}/tmp;
  sendfile on;
  keepalive_requests 1000000;
  server {{ listen 127.0.0.1:{port}; root {root}; }}
}}
)";

std::string free_port() {
  const int probe = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const bool bound =
      probe >= 0 && ::bind(probe, any, size) == 0 && ::getsockname(probe, any, &size) == 0;
  if (probe >= 0) ::close(probe);
  if (!bound) throw std::runtime_error("no free port");
  return fmt::format("{}", ::ntohs(address.sin_port));
}

std::vector<std::string> command(const fs::path& work, std::vector<std::string> more) {
  std::vector<std::string> words = {kProgram,          "-p", work, "-c", work / "nginx.conf", "-e",
                                    work / "error.log"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

bool Nginx::is_installed() {
  return ::access(kProgram, X_OK) == 0;
}

Nginx::Nginx(const fs::path& root, const fs::path& work) : work_(work), port_(free_port()) {
  // Started by root, the workers would be another user, who cannot read a temporary directory.
  const std::string user = ::geteuid() == 0 ? "user root;" : "";
  test::write_file(
      work / "nginx.conf",
      fmt::format(kConfiguration, fmt::arg("user", user), fmt::arg("work", work.string()),
                  fmt::arg("port", port_), fmt::arg("root", root.string())));
  // It listens before the command that starts it ends.
  const auto started = test::run_process(command(work, {}));
  if (started.exit_code != 0) throw std::runtime_error("nginx: " + started.err);
}

Nginx::~Nginx() {
  try {
    static_cast<void>(test::run_process(command(work_, {"-s", "stop"})));
  } catch (const std::exception& error) {
    fmt::print(stderr, "nginx was left running: {}\n", error.what());
  }
}

std::string Nginx::url(const std::string& path) const {
  return fmt::format("http://127.0.0.1:{}{}", port_, path);
}

std::vector<Nginx::Request> Nginx::take_ranges() {
  // A line is written when its last byte has been sent: the client may have ended before.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  std::vector<Request> requests;
  std::ifstream log(work_ / "access.log");
  std::string status;
  for (Request request; log >> request.path >> request.range >> request.connection >> status;) {
    if (status != "206") continue;
    request.range.erase(0, request.range.find('=') + 1);
    requests.push_back(request);
  }
  fs::resize_file(work_ / "access.log", 0);
  return requests;
}

}  // namespace gridscope::bench
