#include "gridscope/model/file_headers.hpp"

#include <gmock/gmock.h>

#include "support/checkpoints.hpp"
#include "support/memory_repository.hpp"

namespace gridscope::model {
namespace {

using format::Container;
using test::Fails;
using test::IsOk;
using test::MemoryRepository;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::string_view kPointer =
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";

WeightSet set_of(std::vector<std::string> files, Container container = Container::kSafetensors) {
  return {.component = "",
          .container = container,
          .files = std::move(files),
          .index_path = "",
          .index = {}};
}

Result<std::vector<FileHeader>> read(const MemoryRepository& repository,
                                     const std::vector<WeightSet>& sets) {
  NullObserver observer;
  return read_headers(repository, sets, observer, {});
}

test::Bytes tiny() {
  return test::SafetensorsBuilder().tensor("a.weight", Dtype::kBF16, {2, 2}).build();
}

TEST(FileHeaders, ReadsEveryFileOnce) {
  MemoryRepository repository;
  repository.add("a.safetensors", tiny()).add("b.safetensors", tiny());
  const auto headers = read(repository, {set_of({"a.safetensors"}), set_of({"b.safetensors"})});
  ASSERT_THAT(headers, IsOk());
  ASSERT_THAT(*headers, SizeIs(2));
  EXPECT_EQ((*headers)[1].path, "b.safetensors");
  EXPECT_EQ((*headers)[1].set, 1U);
  EXPECT_EQ((*headers)[1].container, Container::kSafetensors);
  EXPECT_THAT((*headers)[1].table.tensors, SizeIs(1));
  EXPECT_NE((*headers)[1].source, nullptr);
  EXPECT_EQ(repository.opens, 2);
}

TEST(FileHeaders, ReadsGgufAndWhatABareNameHides) {
  MemoryRepository repository;
  const auto gguf = test::GgufBuilder()
                        .key("general.architecture", std::string("llama"))
                        .tensor("token_embd.weight", Dtype::kQ4_0, {32, 2})
                        .build();
  repository.add("m.gguf", gguf).add("weights.dat", gguf);
  const auto headers = read(repository, {set_of({"m.gguf"}, Container::kGguf),
                                         set_of({"weights.dat"}, Container::kUnknown)});
  ASSERT_THAT(headers, IsOk());
  EXPECT_EQ((*headers)[0].container, Container::kGguf);
  EXPECT_EQ((*headers)[1].container, Container::kGguf);
}

TEST(FileHeaders, RecognisesAPointerAmongShards) {
  MemoryRepository repository;
  repository.add("a.safetensors", tiny()).add("b.safetensors", kPointer);
  const auto headers = read(repository, {set_of({"a.safetensors", "b.safetensors"})});
  ASSERT_THAT(headers, IsOk());
  EXPECT_EQ((*headers)[1].container, Container::kLfsPointer);
  ASSERT_TRUE((*headers)[1].pointer);
  EXPECT_EQ((*headers)[1].pointer->size, 12345U);
  EXPECT_EQ((*headers)[1].source, nullptr);
}

TEST(FileHeaders, TellsAMissingShardFromAMissingModel) {
  MemoryRepository repository;
  repository.add("a.safetensors", tiny());
  const auto headers = read(repository, {set_of({"a.safetensors", "b.safetensors"})});
  ASSERT_THAT(headers, IsOk());
  EXPECT_TRUE((*headers)[1].missing);
  EXPECT_THAT(read(repository, {set_of({"b.safetensors"})}),
              Fails(ErrorCode::kNotFound, HasSubstr("b.safetensors")));
}

TEST(FileHeaders, PutsTheFileBeforeItsFault) {
  MemoryRepository repository;
  repository.add("bad.safetensors", test::SafetensorsBuilder()
                                        .tensor("a", Dtype::kBF16, {2})
                                        .tensor("b", Dtype::kBF16, {2})
                                        .build(test::SafetensorsDefect::kOverlap));
  EXPECT_THAT(read(repository, {set_of({"bad.safetensors"})}),
              Fails(ErrorCode::kCorrupt, HasSubstr("bad.safetensors: ")));
}

TEST(FileHeaders, RecognisesWhatItDoesNotRead) {
  MemoryRepository repository;
  repository.add("m.litertlm", "LITERTLM" + std::string(64, '\0'))
      .add("noise.bin", "some text here");
  const auto headers = read(repository, {set_of({"m.litertlm"}, Container::kUnknown)});
  ASSERT_THAT(headers, IsOk());
  EXPECT_EQ((*headers)[0].container, Container::kLiteRtLm);
  EXPECT_THAT(read(repository, {set_of({"noise.bin"}, Container::kUnknown)}),
              Fails(ErrorCode::kUnsupported, HasSubstr("14 bytes in no format of weights")));
}

TEST(FileHeaders, StopsWhenAsked) {
  MemoryRepository repository;
  repository.add("a.safetensors", tiny());
  std::stop_source stop;
  stop.request_stop();
  NullObserver observer;
  const std::vector<WeightSet> sets = {set_of({"a.safetensors"})};
  EXPECT_THAT(read_headers(repository, sets, observer,
                           {.limits = {}, .readers = 0, .stop = stop.get_token()}),
              Fails(ErrorCode::kCancelled, HasSubstr("")));
}

}  // namespace
}  // namespace gridscope::model
