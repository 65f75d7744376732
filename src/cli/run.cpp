#include "gridscope/cli/run.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <variant>

#include "gridscope/app/output_check.hpp"
#include "gridscope/cli/arguments.hpp"
#include "gridscope/cli/console_observer.hpp"
#include "gridscope/cli/help.hpp"
#include "gridscope/cli/interruption.hpp"
#include "gridscope/cli/output.hpp"
#include "gridscope/cli/parse.hpp"
#include "gridscope/core/clock.hpp"
#include "gridscope/core/text.hpp"

namespace gridscope::cli {
namespace {

constexpr int kCheckFailed = 1;
constexpr int kWrongUsage = 2;
constexpr int kNoVerdict = 3;

// A closed standard descriptor would be given to the next file that is opened, and what is meant
// for the user would land in it. Each is taken by /dev/null, opened so that its use still fails.
void occupy_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    const int mode = descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    static_cast<void>(::open("/dev/null", mode | O_CLOEXEC));
  }
}

bool is_set(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

// Of a terminal that understands more than plain lines.
bool stderr_is_terminal() {
  const char* const kind = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
}

Color choose_color(std::string_view when) {
  const bool colored =
      when == "always" || (when == "auto" && stderr_is_terminal() && !is_set("NO_COLOR"));
  return colored ? Color::kColored : Color::kPlain;
}

ConsoleOptions console_options(const Arguments& arguments) {
  const bool draws = stderr_is_terminal() && !is_set("NO_COLOR") && !arguments.flag("quiet");
  return {.color = choose_color(arguments.text("color")),
          .progress = draws ? ProgressLine::kShown : ProgressLine::kHidden,
          .details = arguments.flag("verbose") ? Details::kShown : Details::kHidden,
          .notices = arguments.flag("quiet") ? Notices::kHidden : Notices::kShown};
}

int fail_with(ConsoleObserver& console, std::string_view subject, const Error& error) {
  console.show_error(subject, error);
  return exit_code(error.code);
}

// Whoever read the output has had enough, as `head` has: nothing to complain about.
bool reader_is_gone(const Status& written) {
  return !written && written.error().code == ErrorCode::kCancelled;
}

int print(std::string_view text, ConsoleObserver& console) {
  const Status written = write_all(STDOUT_FILENO, text, {});
  if (reader_is_gone(written)) return kNoVerdict;
  return written ? 0 : fail_with(console, {}, written.error());
}

bool has_output_file(const Arguments& arguments) {
  const std::string& path = arguments.text("output");
  return !path.empty() && path != "-";
}

// The report, where one sees why, went to a file.
void explain_failure(const Arguments& arguments, std::string_view failures,
                     ConsoleObserver& console) {
  if (!has_output_file(arguments) || arguments.flag("quiet")) return;
  console.show_error(arguments.subject(),
                     {.message = fmt::format("found {}: exit code 1, as --fail-on {} asks",
                                             failures, arguments.text("fail-on")),
                      .remedy = fmt::format("see {}", quote(arguments.text("output")))});
}

Result<int> answer(const Arguments& arguments, ConsoleObserver& console, Output& output) {
  const Interruption interruption([&](std::string_view signal) {
    output.discard();
    console.show_error(arguments.subject(), interrupted_by(signal));
    ::_exit(kNoVerdict);
  });
  const auto result = arguments.verb().run(arguments, {console, interruption.token()});
  console.finish();
  const auto written = result ? output.commit(result->text, interruption.token()) : Status{};
  const bool failed = !result || !written;
  if (failed && interruption.token().stop_requested()) {
    return tl::make_unexpected(interrupted_by(interruption.signal_name()));
  }
  if (reader_is_gone(written)) return kNoVerdict;
  GRIDSCOPE_CHECK(written);
  if (result && result->exit_code == kCheckFailed) {
    explain_failure(arguments, result->failures, console);
  }
  return result.map(&Answer::exit_code);
}

Result<Output> open_output(const Arguments& arguments) {
  if (!has_output_file(arguments)) return Output::standard();
  const std::string& path = arguments.text("output");
  for (const OptionSpec& option : arguments.verb().options) {
    if (option.kind != ValueKind::kFile || !arguments.given(option.name)) continue;
    GRIDSCOPE_CHECK(app::check_output_apart(path, option.name, arguments.text(option.name)));
  }
  for (const OptionSpec& positional : arguments.verb().positionals) {
    if (positional.kind != ValueKind::kModel) continue;
    GRIDSCOPE_CHECK(app::check_output(arguments.text(positional.name), path));
    for (const std::string& model : arguments.texts(positional.name)) {
      GRIDSCOPE_CHECK(app::check_output(model, path));
    }
  }
  return Output::open(path);
}

int execute(const Arguments& arguments) {
  const SystemClock clock;
  ConsoleObserver console(console_options(arguments), clock);
  auto output = open_output(arguments);
  if (!output) return fail_with(console, arguments.subject(), output.error());
  const Result<int> code = answer(arguments, console, *output);
  return code ? *code : fail_with(console, arguments.subject(), code.error());
}

Error current_exception_as_error() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {.code = ErrorCode::kLimit,
            .message = "out of memory",
            .remedy = "give it more, or lower the limits (--max-...)"};
  } catch (const std::exception& exception) {
    return {.message = std::string("internal error: ") + exception.what(),
            .remedy = "please report it"};
  } catch (...) {
    return {.message = "internal error", .remedy = "please report it"};
  }
}

}  // namespace

int run(std::span<const char* const> words) {
  occupy_standard_descriptors();
  std::signal(SIGPIPE, SIG_IGN);
  const SystemClock clock;
  ConsoleObserver console({.color = choose_color("auto")}, clock);
  if (words.empty()) {
    static_cast<void>(write_all(STDERR_FILENO, program_help(), {}));
    return kWrongUsage;
  }
  const auto command = parse_command_line(words);
  if (!command) return fail_with(console, {}, command.error());
  if (const auto* const help = std::get_if<HelpRequest>(&*command)) {
    return print(help->verb == nullptr ? program_help() : verb_help(*help->verb), console);
  }
  if (std::holds_alternative<VersionRequest>(*command)) return print(version_text(), console);
  return execute(std::get<Arguments>(*command));
}

int report_exception() noexcept {
  constexpr std::string_view kFallback = "gridscope: internal error\n";
  try {
    const SystemClock clock;
    ConsoleObserver({}, clock).show_error({}, current_exception_as_error());
  } catch (...) {
    static_cast<void>(::write(STDERR_FILENO, kFallback.data(), kFallback.size()));
  }
  return kNoVerdict;
}

}  // namespace gridscope::cli
