#include "gridscope/store/reference.hpp"

#include <gtest/gtest.h>

#include "support/matchers.hpp"

namespace gridscope::store {
namespace {

using test::Fails;
using test::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kCommit = "0123456789abcdef0123456789abcdef01234567";

ReferenceOptions disk_with(std::string name) {
  return {.exists_on_disk = [name = std::move(name)](const std::string& asked) {
    return asked == name;
  }};
}

Result<ModelReference> parse(std::string_view text) {
  return parse_reference(text, {});
}

struct Accepted {
  std::string_view text;
  std::string_view id;
  std::string_view revision = "";
  std::string_view path = "";
};

class HubReference : public ::testing::TestWithParam<Accepted> {};

TEST_P(HubReference, IsUnderstood) {
  const Accepted& want = GetParam();
  const auto got = parse(want.text);
  ASSERT_THAT(got, IsOk());
  EXPECT_EQ(got->kind, ReferenceKind::kHub);
  EXPECT_EQ(got->location, want.id);
  EXPECT_EQ(got->revision, want.revision);
  EXPECT_EQ(got->path, want.path);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, HubReference,
    ::testing::Values(
        Accepted{"org/name", "org/name"}, Accepted{"gpt2", "gpt2"},
        Accepted{"gpt2@v1", "gpt2", "v1"}, Accepted{"org/name@main", "org/name", "main"},
        Accepted{"org/name@refs/pr/7", "org/name", "refs/pr/7"}, Accepted{"hf://gpt2", "gpt2"},
        Accepted{"hf://org/name", "org/name"}, Accepted{"hf://org/name/", "org/name"},
        Accepted{"hf://models/org/name", "org/name"},
        Accepted{"hf://models/gpt2@main", "gpt2", "main"},
        Accepted{"hf://org/name@v1.0", "org/name", "v1.0"},
        Accepted{"hf://org/name@feature%2Fx", "org/name", "feature/x"},
        Accepted{"hf://org/name@refs/pr/12/a.json", "org/name", "refs/pr/12", "a.json"},
        Accepted{"hf://org/name@refs/convert/parquet/x/y", "org/name", "refs/convert/parquet",
                 "x/y"},
        Accepted{"hf://org/name/sub/model.safetensors", "org/name", "", "sub/model.safetensors"},
        Accepted{"hf://org/name@main/model.safetensors?x=1#f", "org/name", "main",
                 "model.safetensors"},
        Accepted{"hf://gpt2@main/config.json", "gpt2", "main", "config.json"},
        Accepted{"https://huggingface.co/org/name", "org/name"},
        Accepted{"https://huggingface.co/org/name/", "org/name"},
        Accepted{"https://HuggingFace.co/gpt2", "gpt2"},
        Accepted{"https://hf.co/org/name", "org/name"},
        Accepted{"https://huggingface.co/gpt2/tree/main", "gpt2", "main"},
        Accepted{"https://huggingface.co/org/name/tree/main", "org/name", "main"},
        Accepted{"https://huggingface.co/org/name/tree/main/sub/", "org/name", "main", "sub"},
        Accepted{"https://huggingface.co/org/name/tree/feature%2Fx", "org/name", "feature/x"},
        Accepted{"https://huggingface.co/org/name/blob/refs%2Fpr%2F7/a", "org/name", "refs/pr/7",
                 "a"},
        Accepted{"https://huggingface.co/org/name/blob/refs/pr/7/a", "org/name", "refs/pr/7", "a"},
        Accepted{"https://huggingface.co/org/name/raw/main/a%20b.json", "org/name", "main",
                 "a b.json"},
        Accepted{"https://huggingface.co/org/name/blame/main/c.json", "org/name", "main", "c.json"},
        Accepted{"https://huggingface.co/org/name/resolve/main/m.safetensors?download=true",
                 "org/name", "main", "m.safetensors"}));

TEST(Reference, KeepsACommitAsRevision) {
  const auto got = parse("org/name@" + std::string(kCommit));
  ASSERT_THAT(got, IsOk());
  EXPECT_EQ(got->revision, kCommit);
}

class RefusedReference : public ::testing::TestWithParam<std::pair<std::string, std::string>> {};

TEST_P(RefusedReference, NamesTheRule) {
  EXPECT_THAT(parse(GetParam().first),
              Fails(ErrorCode::kInvalidArgument, HasSubstr(GetParam().second)));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, RefusedReference,
    ::testing::Values(
        std::pair{"", "empty"}, std::pair{"a/b\n", "control byte"},
        std::pair{std::string(5000, 'a'), "more than 4,096"}, std::pair{"ftp://host/x", "scheme"},
        std::pair{"s3://bucket/prefix", "scheme"}, std::pair{"hf://datasets/org/name", "datasets"},
        std::pair{"hf://spaces/org/name", "spaces"},
        std::pair{"https://huggingface.co/datasets/org/name", "datasets"},
        std::pair{"https://huggingface.co/spaces/org/name", "spaces"},
        std::pair{"https://huggingface.co/", "no repository"},
        std::pair{"https://huggingface.co/org/name/discussions/3", "not a page of files"},
        std::pair{"https://huggingface.co/org/name/tree", "not a page of files"},
        std::pair{"https://user:secret@host/x", "user name or password"},
        std::pair{"hf://org/name@", "revision is empty"}, std::pair{"hf://", "empty part"},
        std::pair{"hf://org//x", "empty part"}, std::pair{"hf://org/name//x", "is empty"},
        std::pair{"hf://org/name/../x", "'..'"}, std::pair{"hf://org/name/%2e%2e/x", "'..'"},
        std::pair{"hf://org/name/a%2F..%2Fb", "'..'"}, std::pair{"hf://org/name/%2Fetc", "empty"},
        std::pair{"hf://org/name@%2e%2e%2Fx", "dotted"}, std::pair{"hf://org/name/%zz", "escape"},
        std::pair{"-org/name", "start and end"}, std::pair{"org/name.", "start and end"},
        std::pair{"org/na--me", "'--'"}, std::pair{"org/na..me", "'..'"},
        std::pair{"org/name.git", ".git"}, std::pair{"or\xC3\xA9g/name", "may hold only"},
        std::pair{"org/" + std::string(97, 'x'), "97 characters"},
        std::pair{"org/name/file.safetensors", "hf://org/name/path"},
        std::pair{"model.safetensors", "does not exist on disk"},
        std::pair{"org/name@main/file", "hf://org/name@main/file"},
        std::pair{"file://elsewhere/x", "another host"}, std::pair{"a/b/c", "no Hub repository"}));

TEST(Reference, TakesANameOf96Characters) {
  EXPECT_THAT(parse("org/" + std::string(96, 'x')), IsOk());
}

TEST(Reference, PrefersTheDiskForABareNameAndSaysSo) {
  const auto got = parse_reference("org/name", disk_with("org/name"));
  ASSERT_THAT(got, IsOk());
  EXPECT_EQ(got->kind, ReferenceKind::kDisk);
  EXPECT_EQ(got->location, "org/name");
  EXPECT_TRUE(got->chosen_from_disk);
}

TEST(Reference, MakesNoChoiceForANameThatOnlyTheDiskCanHave) {
  const auto got = parse_reference("some/dir/model", disk_with("some/dir/model"));
  ASSERT_THAT(got, IsOk());
  EXPECT_EQ(got->kind, ReferenceKind::kDisk);
  EXPECT_FALSE(got->chosen_from_disk);
}

TEST(Reference, DoesNotAskTheDiskForAnHfName) {
  const auto got = parse_reference("hf://org/name", disk_with("hf://org/name"));
  ASSERT_THAT(got, IsOk());
  EXPECT_EQ(got->kind, ReferenceKind::kHub);
}

class DiskReference : public ::testing::TestWithParam<std::pair<std::string, std::string>> {};

TEST_P(DiskReference, IsAPath) {
  const auto got = parse(GetParam().first);
  ASSERT_THAT(got, IsOk());
  EXPECT_EQ(got->kind, ReferenceKind::kDisk);
  EXPECT_EQ(got->location, GetParam().second);
}

INSTANTIATE_TEST_SUITE_P(Forms, DiskReference,
                         ::testing::Values(std::pair{"/models/x", "/models/x"},
                                           std::pair{"./x", "./x"}, std::pair{"../x", "../x"},
                                           std::pair{".", "."},
                                           std::pair{"file:///a/b%20c", "/a/b c"},
                                           std::pair{"file://localhost/a", "/a"}));

TEST(Reference, KeepsAWebUrlWithItsQueryButShowsItWithout) {
  const auto got = parse("https://host.example:8443/dir/m.safetensors?sig=secret#x");
  ASSERT_THAT(got, IsOk());
  EXPECT_EQ(got->kind, ReferenceKind::kHttp);
  EXPECT_EQ(got->location, "https://host.example:8443/dir/m.safetensors?sig=secret");
  EXPECT_EQ(got->text, "https://host.example:8443/dir/m.safetensors");
}

TEST(Reference, ShowsNoQueryOfAHubPage) {
  const auto got = parse("https://hf.co/org/name/resolve/main/m?token=hf_secret");
  ASSERT_THAT(got, IsOk());
  EXPECT_THAT(got->text, Not(HasSubstr("secret")));
}

TEST(Reference, TakesPagesOfTheEndpointForHubPages) {
  const ReferenceOptions options{.hub_endpoint = "http://127.0.0.1:8080/mirror"};
  const auto page = parse_reference("http://127.0.0.1:8080/mirror/org/name/tree/v1", options);
  ASSERT_THAT(page, IsOk());
  EXPECT_EQ(page->kind, ReferenceKind::kHub);
  EXPECT_EQ(page->location, "org/name");
  EXPECT_EQ(page->revision, "v1");
  const auto other_port = parse_reference("http://127.0.0.1:8081/mirror/org/name", options);
  ASSERT_THAT(other_port, IsOk());
  EXPECT_EQ(other_port->kind, ReferenceKind::kHttp);
  const auto other_path = parse_reference("http://127.0.0.1:8080/files/x", options);
  ASSERT_THAT(other_path, IsOk());
  EXPECT_EQ(other_path->kind, ReferenceKind::kHttp);
}

TEST(Reference, ErrorsNeverHoldAPassword) {
  const auto got = parse("https://user:hunter2@host/x?sig=abc");
  ASSERT_FALSE(got.has_value());
  EXPECT_THAT(describe(got.error()), AllOf(Not(HasSubstr("hunter2")), Not(HasSubstr("abc"))));
}

TEST(RepoPath, StaysInside) {
  for (const std::string_view good : {"a", "a/b.json", "a b", ".hidden", "..a/b", "a..b"}) {
    EXPECT_THAT(check_repo_path(good), IsOk()) << good;
  }
  for (const std::string_view bad : {"", "/a", "a/", "a//b", "..", "a/../b", "./a", "a/.", "a\\b",
                                     "..\\a", "C:x", "c:/x", "s3://x", "a\x1B", "\\\\host\\x"}) {
    EXPECT_THAT(check_repo_path(bad), Fails(ErrorCode::kInvalidArgument, HasSubstr("path"))) << bad;
  }
}

TEST(Revision, FollowsGit) {
  for (const std::string_view good : {"main", "v1.0", "refs/pr/7", "feature/x", "a-b_c"}) {
    EXPECT_THAT(check_revision(good), IsOk()) << good;
  }
  for (const std::string_view bad : {"", "..", "a/../b", "a b", "a\tb", "/a", "a/", "a//b", ".a",
                                     "a~1", "a^", "a:b", "a?", "a*", "a[", "a\\b", "\xC3\xA9"}) {
    EXPECT_THAT(check_revision(bad), Fails(ErrorCode::kInvalidArgument, HasSubstr("revision")))
        << bad;
  }
  EXPECT_THAT(check_revision(std::string(256, 'a')),
              Fails(ErrorCode::kInvalidArgument, HasSubstr("256")));
}

TEST(Revision, OnlyFullLowerCaseCommitsAreCommits) {
  EXPECT_TRUE(is_commit(kCommit));
  EXPECT_FALSE(is_commit(kCommit.substr(1)));
  EXPECT_FALSE(is_commit("0123456789ABCDEF0123456789abcdef01234567"));
  EXPECT_FALSE(is_commit("main"));
}

TEST(Reference, KindsHaveNames) {
  EXPECT_EQ(reference_kind_name(ReferenceKind::kHub), "hub");
  EXPECT_EQ(reference_kind_name(ReferenceKind::kHttp), "http");
  EXPECT_EQ(reference_kind_name(ReferenceKind::kDisk), "disk");
}

}  // namespace
}  // namespace gridscope::store
