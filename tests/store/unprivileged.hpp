#pragma once

// For tests of permissions, which root does not feel.

#include <unistd.h>

namespace gridscope::store {

// While it lives, root acts as somebody who owns nothing; anybody else stays who they are.
class Unprivileged {
 public:
  Unprivileged() {
    if (was_root_ && ::seteuid(kNobody) != 0) ::_exit(1);
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;
  ~Unprivileged() {
    if (was_root_ && ::seteuid(0) != 0) ::_exit(1);
  }

 private:
  static constexpr uid_t kNobody = 65'534;
  const bool was_root_ = ::geteuid() == 0;
};

}  // namespace gridscope::store
