#include "gridscope/model/file_view.hpp"

#include <gmock/gmock.h>

#include "support/memory_repository.hpp"

namespace gridscope::model {
namespace {

using test::Fails;
using test::IsOk;
using test::Listing;
using test::MemoryRepository;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(FileView, LooksIntoTheListing) {
  MemoryRepository repository;
  repository.add("a.txt", "1").add("folder/b.txt", "22");
  const FileView view(repository);
  EXPECT_TRUE(view.can_list());
  EXPECT_THAT(view.files(), SizeIs(2));
  ASSERT_NE(view.find("folder/b.txt"), nullptr);
  EXPECT_EQ(view.find("folder/b.txt")->size, 2U);
  EXPECT_EQ(view.find("b.txt"), nullptr);
  EXPECT_TRUE(view.has_folder("folder/"));
  EXPECT_FALSE(view.has_folder("fold/"));
  EXPECT_EQ(repository.finds, 0);
}

TEST(FileView, AsksWhereNothingIsListed) {
  MemoryRepository repository(Listing::kNone);
  repository.add("a.txt", "1");
  FileView view(repository);
  EXPECT_EQ(view.find("a.txt"), nullptr);
  const std::vector<std::string> names = {"a.txt", "b.txt"};
  EXPECT_THAT(view.probe(names), IsOk());
  EXPECT_NE(view.find("a.txt"), nullptr);
  EXPECT_EQ(view.find("b.txt"), nullptr);
  EXPECT_EQ(repository.finds, 2);
}

TEST(FileView, ReadsSmallFilesWhole) {
  MemoryRepository repository;
  repository.add("a.txt", "hello").add("empty", "");
  EXPECT_EQ(read_file(repository, "a.txt", 5).value(), "hello");
  EXPECT_EQ(read_file(repository, "empty", 5).value(), "");
  EXPECT_THAT(read_file(repository, "a.txt", 4), Fails(ErrorCode::kLimit, HasSubstr("a.txt")));
  EXPECT_THAT(read_file(repository, "b.txt", 4), Fails(ErrorCode::kNotFound, HasSubstr("b.txt")));
}

TEST(FileView, TellsAFileFromAFolder) {
  MemoryRepository file(Listing::kGiven, "sub/odd_name");
  file.add("sub/odd_name", "x");
  EXPECT_EQ(named_place(file).file, "sub/odd_name");
  EXPECT_EQ(named_place(file).folder, "sub/");
  MemoryRepository folder(Listing::kGiven, "sub");
  folder.add("sub/model.safetensors", "x");
  EXPECT_EQ(named_place(folder).file, "");
  EXPECT_EQ(named_place(folder).folder, "sub/");
  EXPECT_EQ(named_place(MemoryRepository(Listing::kNone, "m.gguf")).file, "m.gguf");
  EXPECT_EQ(named_place(MemoryRepository(Listing::kNone, "sub/m.litertlm")).file, "sub/m.litertlm");
  EXPECT_EQ(named_place(MemoryRepository(Listing::kNone, "sub")).folder, "sub/");
  EXPECT_EQ(named_place(MemoryRepository(Listing::kNone)).folder, "");
}

TEST(FileView, CutsPaths) {
  EXPECT_EQ(folder_of("a/b/c"), "a/b/");
  EXPECT_EQ(folder_of("c"), "");
  EXPECT_EQ(file_name_of("a/b/c"), "c");
  EXPECT_EQ(file_name_of("a/"), "");
}

}  // namespace
}  // namespace gridscope::model
