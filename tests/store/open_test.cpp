#include "gridscope/store/open.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "store/world.hpp"

namespace gridscope::store {
namespace {

using test::IsOk;

ReferenceKind kind_of(World& world, std::string_view text) {
  const auto reference = parse_reference(
      text, {.hub_endpoint = world.hub.endpoint(), .exists_on_disk = [](const std::string& path) {
               return std::filesystem::exists(path);
             }});
  EXPECT_THAT(reference, IsOk());
  const auto repository = open_repository(reference.value(), world.context());
  EXPECT_THAT(repository, IsOk());
  return repository.value()->info().kind;
}

TEST(OpenRepository, GoesWhereTheReferencePoints) {
  World world;
  std::ofstream(world.directory / "model.safetensors") << "x";
  EXPECT_EQ(kind_of(world, "org/model"), ReferenceKind::kHub);
  EXPECT_EQ(kind_of(world, "hf://org/model@main/config.json"), ReferenceKind::kHub);
  EXPECT_EQ(kind_of(world, world.hub.endpoint() + "/org/model/blob/main/config.json"),
            ReferenceKind::kHub);
  EXPECT_EQ(kind_of(world, world.directory.path().string()), ReferenceKind::kDisk);
  EXPECT_EQ(kind_of(world, "file://" + (world.directory / "model.safetensors").string()),
            ReferenceKind::kDisk);
  EXPECT_EQ(kind_of(world, world.hub.content_origin() + "/dir/"), ReferenceKind::kHttp);
}

}  // namespace
}  // namespace gridscope::store
