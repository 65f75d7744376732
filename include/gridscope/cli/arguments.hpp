#pragma once

// The arguments of one verb after parsing: every value has been checked against its option's kind,
// and what was not given has its default.

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gridscope/cli/verbs.hpp"
#include "gridscope/core/result.hpp"

namespace gridscope::cli {

// A word as it may be shown: a URL loses its query, which may hold a signature, and what stands
// before its host, which may hold a password.
[[nodiscard]] std::string without_secrets(std::string_view word);

class Arguments {
 public:
  // All defaults. Requires: every fallback in the table is a valid value.
  explicit Arguments(const VerbSpec& verb);

  // Replaces the value, or adds one to what may be given repeatedly.
  // Errors: kInvalidArgument, naming the option, what it expects and what it found.
  [[nodiscard]] Status set(const OptionSpec& option, std::string_view value);

  [[nodiscard]] const VerbSpec& verb() const { return *verb_; }
  [[nodiscard]] bool given(std::string_view name) const;
  [[nodiscard]] bool flag(std::string_view name) const { return given(name); }
  // As written; empty when it was not given and has no default.
  [[nodiscard]] const std::string& text(std::string_view name) const;
  // Every value of what may be given repeatedly, in order.
  [[nodiscard]] const std::vector<std::string>& texts(std::string_view name) const;
  // Of fractions and reals; 0 when it was not given.
  [[nodiscard]] double real(std::string_view name) const;
  // Of counts and sizes; 0 when it was not given and has no default.
  [[nodiscard]] std::uint64_t number(std::string_view name) const;
  [[nodiscard]] std::chrono::milliseconds duration(std::string_view name) const;

  // The verb with its positional arguments, for messages: "inspect org/name". What could be secret
  // in a URL is left out.
  [[nodiscard]] std::string subject() const;

 private:
  struct Value {
    std::string text;
    std::vector<std::string> all = {};
    std::uint64_t number = 0;
    bool given = false;
  };
  [[nodiscard]] const Value& value(std::string_view name) const;

  const VerbSpec* verb_;
  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace gridscope::cli
