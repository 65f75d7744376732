#include "architecture/source_text.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <stdexcept>

namespace gridscope::test {
namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

std::size_t end_of_line(std::string_view text, std::size_t at) {
  return std::min(text.find('\n', at), text.size());
}

// Past the line at `at` and all that a backslash joins to it.
std::size_t end_of_directive(std::string_view text, std::size_t at) {
  std::size_t end = end_of_line(text, at);
  while (end < text.size() && end > at && text[end - 1] == '\\') end = end_of_line(text, end + 1);
  return end;
}

// Past the literal whose opening quote is at `at`. R"(...)" without a delimiter is understood too.
std::size_t end_of_literal(std::string_view text, std::size_t at) {
  if (at > 0 && text[at - 1] == 'R' && text.substr(at, 2) == "\"(") {
    return std::min(text.find(")\"", at), text.size() - 2) + 2;
  }
  const char quote = text[at];
  for (++at; at < text.size() && text[at] != quote; ++at) {
    if (text[at] == '\\') ++at;
  }
  return std::min(at + 1, text.size());
}

bool starts_literal(std::string_view text, std::size_t at) {
  if (text[at] == '"') return true;
  // 1'000'000 holds separators, not characters.
  const bool in_number = at > 0 && std::isalnum(static_cast<unsigned char>(text[at - 1])) != 0;
  return text[at] == '\'' && !in_number;
}

bool starts_directive(std::string_view text, std::size_t at, const std::string& code) {
  return text[at] == '#' && (code.empty() || code.back() == '\n');
}

// From the end of the declaration before `at` up to `at`.
std::string_view declaration_before(std::string_view code, std::size_t at) {
  std::size_t begin = at;
  while (begin > 0) {
    const char c = code[begin - 1];
    const bool label = c == ':' && (begin < 2 || code[begin - 2] != ':') && code[begin] != ':';
    if (c == ';' || c == '{' || c == '}' || label) break;
    --begin;
  }
  return code.substr(begin, at - begin);
}

// Past the '>' that closes the '<' at `at`.
std::size_t end_of_angles(std::string_view code, std::size_t at) {
  int depth = 0;
  for (; at < code.size(); ++at) {
    if (code[at] == '<') ++depth;
    if (code[at] == '>' && --depth == 0) return at + 1;
  }
  return at;
}

// The name in "name(", or "" when what stands at `at` is no function declarator.
std::string declared_function(std::string_view code, std::size_t at) {
  static const std::regex kDeclarator(R"(^\s+([A-Za-z_]\w*)\s*\()");
  std::match_results<std::string_view::const_iterator> match;
  const auto rest = code.substr(at);
  return std::regex_search(rest.begin(), rest.end(), match, kDeclarator) ? match[1].str() : "";
}

}  // namespace

std::string SourceFile::room() const {
  static const std::regex kRoom("^(?:src|include/gridscope)/([a-z_]+)/");
  std::smatch match;
  return std::regex_search(path, match, kRoom) ? match[1].str() : "";
}

std::vector<SourceFile> read_sources(const fs::path& top, std::string_view directory,
                                     const std::vector<std::string_view>& suffixes) {
  std::vector<SourceFile> files;
  if (!fs::exists(top / directory)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(top / directory)) {
    const std::string path = entry.path().lexically_relative(top).generic_string();
    const auto ends = [&](std::string_view suffix) { return path.ends_with(suffix); };
    if (entry.is_regular_file() && std::any_of(suffixes.begin(), suffixes.end(), ends)) {
      files.push_back({path, read_text(entry.path())});
    }
  }
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

std::vector<Include> includes_of(std::string_view text) {
  static const std::regex kInclude(R"re((?:^|\n)[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"])re");
  std::vector<Include> includes;
  using Matches = std::regex_iterator<std::string_view::const_iterator>;
  for (Matches match(text.begin(), text.end(), kInclude); match != Matches(); ++match) {
    const auto kind = (*match)[1] == "<" ? Include::Kind::kAngled : Include::Kind::kQuoted;
    includes.push_back({(*match)[2].str(), kind});
  }
  return includes;
}

std::string code_of(std::string_view text) {
  std::string code;
  for (std::size_t at = 0; at < text.size();) {
    if (text.substr(at, 2) == "//") {
      at = end_of_line(text, at);
    } else if (text.substr(at, 2) == "/*") {
      at = std::min(text.find("*/", at), text.size() - 2) + 2;
    } else if (starts_directive(text, at, code)) {
      at = end_of_directive(text, at);
    } else if (starts_literal(text, at)) {
      code += "\"\"";
      at = end_of_literal(text, at);
    } else {
      code += text[at++];
    }
  }
  return code;
}

std::vector<std::string> discardable_results(std::string_view header) {
  static const std::regex kResult(R"(\b(?:Result\s*<|Status\b))");
  const std::string code = code_of(header);
  std::vector<std::string> names;
  for (std::sregex_iterator match(code.begin(), code.end(), kResult), end; match != end; ++match) {
    const auto begin = static_cast<std::size_t>(match->position());
    const auto length = static_cast<std::size_t>(match->length());
    const bool templated = code[begin + length - 1] == '<';
    const std::size_t past = templated ? end_of_angles(code, begin) : begin + length;
    const std::string name = declared_function(code, past);
    const bool checked = declaration_before(code, begin).find("[[nodiscard]]") != std::string::npos;
    if (!name.empty() && !checked) names.push_back(name);
  }
  return names;
}

std::vector<std::string> printing_calls(std::string_view text) {
  static const std::regex kPrinting(
      R"(\b(std::cout|std::cerr|std::clog|stdout|stderr|printf|fprintf|puts|fputs|putchar|perror|fmt::print)\b)");
  const std::string code = code_of(text);
  std::vector<std::string> calls;
  for (std::sregex_iterator match(code.begin(), code.end(), kPrinting), end; match != end;
       ++match) {
    calls.push_back(match->str());
  }
  return calls;
}

}  // namespace gridscope::test
