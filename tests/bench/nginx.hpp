#pragma once

// A real web server on the loopback interface, for figures in which the server must not count.

#include <filesystem>
#include <string>
#include <vector>

namespace gridscope::bench {

class Nginx {
 public:
  [[nodiscard]] static bool is_installed();

  // Serves the files below `root`; its own files go to `work`, a new directory.
  // Throws std::runtime_error when it cannot be started.
  Nginx(const std::filesystem::path& root, const std::filesystem::path& work);
  ~Nginx();
  Nginx(const Nginx&) = delete;
  Nginx& operator=(const Nginx&) = delete;

  [[nodiscard]] std::string url(const std::string& path) const;

  // Requests with a range that were answered since the last call.
  struct Request {
    std::string path;
    std::string range;       // "0-7"
    std::string connection;  // its number
  };
  [[nodiscard]] std::vector<Request> take_ranges();

 private:
  std::filesystem::path work_;
  std::string port_;
};

}  // namespace gridscope::bench
