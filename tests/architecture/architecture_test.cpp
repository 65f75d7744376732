// The rules of the house, held against every source file. The table of rooms is data here: a room
// that needs a new direction needs a new line, and a reader of the change sees it.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "architecture/source_text.hpp"

namespace gridscope::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

using Names = std::set<std::string, std::less<>>;

struct Room {
  int floor;
  Names may_include;  // other rooms, all on lower floors
  Names third_party;  // in its sources; {fmt} may help to write a message anywhere
};

const std::map<std::string, Room, std::less<>>& rooms() {
  static const std::map<std::string, Room, std::less<>> kRooms = {
      {"core", {0, {}, {"nlohmann_json"}}},
      {"io", {1, {"core"}, {"zstd"}}},
      {"http", {1, {"core"}, {"libcurl"}}},
      {"quant", {1, {"core"}, {"Highway"}}},
      {"aws", {2, {"core", "http"}, {"nlohmann_json", "OpenSSL"}}},
      {"format", {2, {"core", "io"}, {"nlohmann_json"}}},
      {"store", {3, {"core", "io", "http", "aws"}, {}}},
      {"model", {4, {"core", "io", "format", "quant", "store"}, {"nlohmann_json"}}},
      {"analysis", {5, {"core", "io", "quant", "format", "model"}, {"xtensor"}}},
      {"endpoint", {6, {"core", "aws", "analysis"}, {}}},
      {"bench", {6, {"core", "http", "aws"}, {}}},
      {"report", {7, {"core", "analysis", "endpoint", "bench"}, {"nlohmann_json"}}},
      {"app",
       {8,
        {"core", "io", "http", "quant", "aws", "format", "store", "model", "analysis", "endpoint",
         "bench", "report"},
        {}}},
      {"cli", {9, {"app", "report", "core"}, {"CLI11", "spdlog"}}},
      {"mcp", {9, {"app", "report", "core"}, {"nlohmann_json"}}},
  };
  return kRooms;
}

// How a library's headers begin.
constexpr std::pair<std::string_view, std::string_view> kLibraries[] = {
    {"tl/", "tl::expected"}, {"fmt/", "fmt"},      {"nlohmann/", "nlohmann_json"},
    {"zstd.h", "zstd"},      {"curl/", "libcurl"}, {"openssl/", "OpenSSL"},
    {"hwy/", "Highway"},     {"CLI/", "CLI11"},    {"spdlog/", "spdlog"},
    {"xtensor/", "xtensor"},
};

// The one public header that shows a library, to those who include it.
constexpr std::string_view kOptInHeader = "include/gridscope/analysis/xtensor_views.hpp";
constexpr std::string_view kOptInLibrary = "xtensor";

// Of the system, and of the compiler for the processor.
constexpr std::string_view kPlatform[] = {"sys/",   "fcntl.h",    "unistd.h", "pthread.h",
                                          "poll.h", "dirent.h",   "signal.h", "netinet/",
                                          "arpa/",  "emmintrin.h"};

const std::filesystem::path kTop = GRIDSCOPE_SOURCE_DIR;

std::vector<SourceFile> library_sources() {
  auto files = read_sources(kTop, "include", {".hpp"});
  auto sources = read_sources(kTop, "src", {".hpp", ".cpp"});
  files.insert(files.end(), sources.begin(), sources.end());
  return files;
}

bool prints_by_right(const std::string& room) {
  return room == "cli" || room == "mcp";
}

// "fmt" of "fmt/format.h", "the platform" of "unistd.h", "" of a standard header, "?" of anything
// else.
std::string_view library_of(std::string_view header) {
  for (const auto& [prefix, library] : kLibraries) {
    if (header.starts_with(prefix)) return library;
  }
  for (const std::string_view prefix : kPlatform) {
    if (header.starts_with(prefix)) return "the platform";
  }
  return header.find_first_of("/.") == std::string_view::npos ? "" : "?";
}

// "" when `include` is right where it stands, else what is wrong with it.
std::string wrong_quoted_include(const SourceFile& file, std::string_view name) {
  constexpr std::string_view kPrefix = "gridscope/";
  const std::string own = file.room();
  if (!name.starts_with(kPrefix)) {
    const bool beside = name.find('/') == std::string_view::npos;
    return beside || name.starts_with(own + "/") ? "" : "is another room's private header";
  }
  const std::string other(
      name.substr(kPrefix.size(), name.find('/', kPrefix.size()) - kPrefix.size()));
  const auto room = rooms().find(own);
  if (room == rooms().end()) return "stands in a room that the table does not know";
  if (other == own || room->second.may_include.contains(other)) return "";
  return fmt::format("is not for room {}", own);
}

std::string wrong_angled_include(const SourceFile& file, std::string_view name) {
  const std::string_view library = library_of(name);
  if (library.empty()) return "";
  if (library == "?") return "is of a library that the table does not know";
  if (library == "tl::expected") return "";
  if (file.path == kOptInHeader && library == kOptInLibrary) return "";
  if (file.path.starts_with("include/")) return "shows a library in a public header";
  if (library == "fmt" || library == "the platform") return "";
  const auto room = rooms().find(file.room());
  const bool allowed = room != rooms().end() && room->second.third_party.contains(library);
  return allowed ? "" : fmt::format("({}) is not for room {}", library, file.room());
}

std::vector<std::string> wrong_includes(const SourceFile& file) {
  std::vector<std::string> wrong;
  for (const Include& include : includes_of(file.text)) {
    const std::string reason = include.kind == Include::Kind::kQuoted
                                   ? wrong_quoted_include(file, include.name)
                                   : wrong_angled_include(file, include.name);
    if (!reason.empty()) wrong.push_back(fmt::format("{}: {} {}", file.path, include.name, reason));
  }
  return wrong;
}

bool has_its_test(const SourceFile& source) {
  std::filesystem::path test = std::filesystem::path(source.path).lexically_relative("src");
  test.replace_filename(test.stem().string() + "_test.cpp");
  return std::filesystem::exists(kTop / "tests" / test);
}

// Calls `check` with each file and gathers what it says.
template <typename Check>
std::vector<std::string> gather(const std::vector<SourceFile>& files, const Check& check) {
  std::vector<std::string> all;
  for (const SourceFile& file : files) {
    for (const std::string& found : check(file)) all.push_back(found);
  }
  return all;
}

TEST(Architecture, RoomsLookOnlyDown) {
  for (const auto& [name, room] : rooms()) {
    for (const std::string& other : room.may_include) {
      EXPECT_LT(rooms().at(other).floor, room.floor) << name << " -> " << other;
    }
  }
}

TEST(Architecture, IncludesFollowTheRoomTable) {
  const auto files = library_sources();
  ASSERT_THAT(files, Not(IsEmpty()));
  EXPECT_THAT(gather(files, wrong_includes), IsEmpty());
}

TEST(Architecture, SeesAWrongInclude) {
  const SourceFile upward{"src/io/x.cpp", "#include \"gridscope/http/client.hpp\"\n"};
  const SourceFile shown{"include/gridscope/io/x.hpp", "#include <zstd.h>\n"};
  const SourceFile foreign{"src/format/x.cpp", "#include <curl/curl.h>\n#include <vector>\n"};
  const SourceFile unknown{"src/format/x.cpp", "#include <boost/any.hpp>\n"};
  const SourceFile private_header{"src/model/x.cpp", "#include \"store/listed_repository.hpp\"\n"};
  for (const auto& file : {upward, shown, foreign, unknown, private_header}) {
    EXPECT_EQ(wrong_includes(file).size(), 1U) << file.text;
  }
  const SourceFile right{"src/io/x.cpp",
                         "#include <zstd.h>\n#include \"gridscope/core/result.hpp\"\n"};
  EXPECT_THAT(wrong_includes(right), IsEmpty());
}

TEST(Architecture, EverySourceHasItsTest) {
  std::vector<std::string> without;
  for (const SourceFile& source : read_sources(kTop, "src", {".cpp"})) {
    const bool is_main = source.path.ends_with("/main.cpp");
    if (!is_main && !has_its_test(source)) without.push_back(source.path);
  }
  EXPECT_THAT(without, IsEmpty());
}

TEST(Architecture, OnlyTheCommandLinePrints) {
  const auto prints = [](const SourceFile& file) {
    std::vector<std::string> found;
    if (prints_by_right(file.room())) return found;
    for (const std::string& call : printing_calls(file.text)) {
      found.push_back(file.path + ": " + call);
    }
    return found;
  };
  EXPECT_THAT(gather(library_sources(), prints), IsEmpty());
}

TEST(Architecture, SeesPrinting) {
  EXPECT_THAT(printing_calls("void f() { std::cout << 1; printf(\"x\"); }"),
              ElementsAre("std::cout", "printf"));
  EXPECT_THAT(printing_calls("// std::cout\nauto s = \"printf\"; snprintf(b, 1, \"\");"),
              IsEmpty());
}

TEST(Architecture, ResultsCannotBeOverlooked) {
  const auto discardable = [](const SourceFile& file) {
    std::vector<std::string> found;
    for (const std::string& name : discardable_results(file.text)) {
      found.push_back(file.path + ": " + name);
    }
    return found;
  };
  EXPECT_THAT(gather(read_sources(kTop, "include", {".hpp"}), discardable), IsEmpty());
}

TEST(Architecture, SeesAResultThatCanBeOverlooked) {
  EXPECT_THAT(discardable_results("Result<std::vector<int>> f(int a);\n"
                                  "[[nodiscard]] Status g();\n"
                                  "class A { public: virtual Status h(Status before) = 0; };"),
              ElementsAre("f", "h"));
  EXPECT_THAT(discardable_results("// Status f();\nstd::function<Status(int)> g;\n"
                                  "[[nodiscard]] static Result<int> h(\n    Result<int> x);"),
              IsEmpty());
}

TEST(Architecture, FilesStaySmall) {
  constexpr auto kMaxLines = 600;
  std::vector<std::string> large;
  for (const std::string_view directory : {"include", "src", "tests"}) {
    for (const SourceFile& file : read_sources(kTop, directory, {".hpp", ".cpp"})) {
      const auto lines = std::count(file.text.begin(), file.text.end(), '\n');
      if (lines > kMaxLines) large.push_back(fmt::format("{}: {} lines", file.path, lines));
    }
  }
  EXPECT_THAT(large, IsEmpty());
}

TEST(Architecture, NothingIsLeftForLater) {
  // Spelt in two halves, so that this file passes its own test.
  const std::vector<std::string> marks = {std::string("TO") + "DO", std::string("FIX") + "ME"};
  std::vector<std::string> marked;
  for (const std::string_view directory : {"include", "src", "tests", "cmake", "fixtures", ".ci"}) {
    for (const SourceFile& file : read_sources(
             kTop, directory, {".hpp", ".cpp", ".txt", ".cmake", ".py", ".sh", ".in", "/run"})) {
      for (const std::string& mark : marks) {
        if (file.text.find(mark) != std::string::npos) marked.push_back(file.path + ": " + mark);
      }
    }
  }
  EXPECT_THAT(marked, IsEmpty());
}

}  // namespace
}  // namespace gridscope::test
