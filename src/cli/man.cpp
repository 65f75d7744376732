#include "gridscope/cli/man.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "gridscope/cli/finding_codes.hpp"
#include "gridscope/cli/help.hpp"
#include "gridscope/cli/verb_list.hpp"

namespace gridscope::cli {
namespace {

std::string heading(std::string_view title) {
  std::string capitals(title);
  std::ranges::transform(capitals, capitals.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return fmt::format(".SH \"{}\"\n", roff_escape(capitals));
}

std::string paragraph(std::string_view text) {
  return fmt::format("{}\n", roff_escape(text));
}

std::string term(std::string_view name, std::string_view meaning) {
  return fmt::format(".TP\n\\fB{}\\fR\n{}", roff_escape(name), paragraph(meaning));
}

std::string terms(std::string_view title, std::span<const Term> list) {
  std::string out = heading(title);
  for (const Term& entry : list) out += term(entry.name, entry.meaning);
  return out;
}

std::string options(std::span<const OptionSpec> list) {
  std::string out;
  for (const OptionSpec& option : list) out += term(spelling(option), explained(option));
  return out;
}

std::string command(const VerbSpec& verb) {
  std::string out = fmt::format(".SS \"{}\"\n", roff_escape(usage(verb)));
  out += paragraph(fmt::format("{}.", verb.summary)) + paragraph(verb.description);
  out += options(verb.positionals) + options(verb.options);
  return out;
}

std::string commands() {
  std::string out = heading("Commands");
  for (const VerbSpec& verb : program().verbs) out += command(verb);
  out += ".SS \"gridscope help [COMMAND]\"\n";
  out += paragraph("Say what a command does and takes, as COMMAND --help does.");
  return out;
}

std::string shared_options() {
  std::string out = heading("Options");
  out += paragraph(
      "These stand before or after the command; one that has no effect on it is refused.");
  for (const OptionGroup& group : program().groups) {
    out += fmt::format(".SS \"{}\"\n{}", roff_escape(group.title), options(group.options));
  }
  return out;
}

std::string examples() {
  std::string out = heading("Examples");
  for (const VerbSpec& verb : program().verbs) {
    for (const Example& example : verb.examples) out += term(example.command, example.purpose);
  }
  return out;
}

}  // namespace

std::string roff_escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (out.empty() && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '"') {
      out += "\\(dq";
    } else if (c == '~') {
      out += "\\(ti";
    } else {
      out += c;
    }
  }
  return out;
}

std::string man_page() {
  const ProgramSpec& spec = program();
  std::string out = fmt::format(".TH GRIDSCOPE 1 \"{}\" \"{} {}\" \"User Commands\"\n",
                                roff_escape(GRIDSCOPE_DATE), spec.name, roff_escape(spec.version));
  out += heading("Name") + fmt::format("{} \\- {}\n", spec.name, roff_escape(spec.summary));
  out += heading("Synopsis") + fmt::format("\\fB{}\\fR COMMAND [OPTIONS] ...\n", spec.name);
  out += heading("Description") + paragraph(spec.description);
  out += commands();
  out += terms("Models", spec.references);
  out += shared_options();
  out += terms("Environment", spec.environment);
  out += terms("Exit status", spec.verbs.front().exit_codes);
  out += terms("Findings", finding_codes());
  out += terms("Warnings", warning_codes());
  out += examples();
  return out;
}

Result<Answer> run_man(const Arguments& /*arguments*/, const Surroundings& /*around*/) {
  return Answer{.text = man_page()};
}

}  // namespace gridscope::cli
