#include "gridscope/format/container.hpp"

#include <gmock/gmock.h>

#include <string>

#include "support/checkpoints.hpp"
#include "support/matchers.hpp"

namespace gridscope::format {
namespace {

using namespace std::string_literals;
using test::bytes_of;

Container identify(std::string_view start, std::string_view name = "model.bin") {
  return identify_container(bytes_of(start), name, start.size());
}

std::string zip_entry(std::string_view name) {
  std::string entry = "PK\x03\x04"s + std::string(22, '\0');
  entry += static_cast<char>(name.size());
  entry += "\0\0\0"s;
  return entry.append(name);
}

TEST(IdentifyContainer, KnowsTheFormatsThatAreRead) {
  test::SafetensorsBuilder safetensors;
  safetensors.tensor("a", Dtype::kU8, {1});
  EXPECT_EQ(identify(test::to_text(safetensors.build())), Container::kSafetensors);
  EXPECT_EQ(identify(test::to_text(test::safetensors_file("\n{}"))), Container::kSafetensors);
  EXPECT_EQ(identify(test::to_text(test::GgufBuilder().build())), Container::kGguf);
}

TEST(IdentifyContainer, KnowsMagicNumbers) {
  EXPECT_EQ(identify("GGUF\0\0\0\3"s), Container::kGgufBigEndian);
  EXPECT_EQ(identify("lmgg\1\0\0\0"s), Container::kGgmlLegacy);
  EXPECT_EQ(identify("tjgg\3\0\0\0"s), Container::kGgmlLegacy);
  EXPECT_EQ(identify("fmgg\1\0\0\0"s), Container::kGgmlLegacy);
  EXPECT_EQ(identify("LITERTLM\1\0\0\0"s), Container::kLiteRtLm);
  EXPECT_EQ(identify("\x1C\0\0\0TFL3"s), Container::kTfLite);
  EXPECT_EQ(identify("\x89HDF\r\n\x1A\n"s), Container::kHdf5);
  EXPECT_EQ(identify("\x80\x02\x8A\x0A\x6C\xFC\x9C\x46\xF9\x20\x6A\xA8\x50\x19."s),
            Container::kPyTorchPickle);
}

TEST(IdentifyContainer, TellsArchivesApartByWhatTheyHold) {
  EXPECT_EQ(identify(zip_entry("archive/data.pkl"), "x"), Container::kPyTorchZip);
  EXPECT_EQ(identify(zip_entry("weight.npy"), "x"), Container::kNpz);
  EXPECT_EQ(identify(zip_entry("TF_LITE_PREFILL_DECODE"), "x"), Container::kTask);
  EXPECT_EQ(identify(zip_entry("README") + zip_entry("model.tflite"), "x"), Container::kTask);
  EXPECT_EQ(identify(zip_entry("README"), "x.zip"), Container::kZip);
}

TEST(IdentifyContainer, FallsBackOnTheNameOfAnArchive) {
  EXPECT_EQ(identify(zip_entry("archive/x"), "pytorch_model.bin"), Container::kPyTorchZip);
  EXPECT_EQ(identify(zip_entry("x"), "gemma.task"), Container::kTask);
  EXPECT_EQ(identify(zip_entry("x"), "weights.npz"), Container::kNpz);
  EXPECT_EQ(identify("PK\x03\x04", "weights.npz"), Container::kNpz);
}

TEST(IdentifyContainer, OnnxNeedsItsNameToo) {
  EXPECT_EQ(identify("\x08\x0A\x12\x07pytorch", "model.onnx"), Container::kOnnx);
  EXPECT_EQ(identify("\x08\x0A\x12\x07pytorch", "model.bin"), Container::kUnknown);
}

TEST(IdentifyContainer, NothingElseIsSafetensors) {
  EXPECT_EQ(identify(""), Container::kUnknown);
  EXPECT_EQ(identify("<!DOCTYPE html><html>"), Container::kUnknown);
  EXPECT_EQ(identify("\x02\0\0\0\0\0\0\0[]"s), Container::kUnknown);
  EXPECT_EQ(identify("\x03\0\0\0\0\0\0\0{}"s), Container::kUnknown);
}

constexpr std::string_view kPointer =
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    "size 12345\n";

TEST(LfsPointer, IsIdentifiedAndRead) {
  EXPECT_EQ(identify(kPointer), Container::kLfsPointer);
  const auto pointer = parse_lfs_pointer(bytes_of(kPointer));
  ASSERT_TRUE(pointer.has_value());
  EXPECT_EQ(pointer->oid, "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393");
  EXPECT_EQ(pointer->size, 12345U);
}

TEST(OtherContainerError, NamesWhatWasFound) {
  const auto error_for = [](std::string_view start) {
    return other_container_error(Container::kSafetensors, bytes_of(start), "model", start.size());
  };
  EXPECT_EQ(error_for("\x02\0\0\0\0\0\0\0{}"s), std::nullopt);
  EXPECT_EQ(error_for("<html>"), std::nullopt);
  const auto gguf = error_for("GGUF\3\0\0\0"s);
  ASSERT_TRUE(gguf.has_value());
  EXPECT_EQ(gguf->code, ErrorCode::kUnsupported);
  EXPECT_EQ(describe(*gguf), "expected a safetensors file, found gguf; name it *.gguf");
  const auto pointer = error_for(kPointer);
  ASSERT_TRUE(pointer.has_value());
  EXPECT_EQ(pointer->code, ErrorCode::kCorrupt);
  EXPECT_THAT(pointer->message, ::testing::HasSubstr("to a file of 12345 bytes"));
}

TEST(LfsPointer, DamagedPointersGiveNothing) {
  const std::string whole(kPointer);
  const auto parse = [](const std::string& text) { return parse_lfs_pointer(bytes_of(text)); };
  EXPECT_FALSE(parse("").has_value());
  EXPECT_FALSE(parse(whole.substr(1)).has_value());
  EXPECT_FALSE(parse(whole.substr(0, 60)).has_value());
  EXPECT_FALSE(parse(whole.substr(0, whole.find("size"))).has_value());
  EXPECT_FALSE(parse(whole.substr(0, whole.size() - 1) + "x\n").has_value());
  EXPECT_FALSE(
      parse(whole.substr(0, whole.find("size")) + "size 99999999999999999999\n").has_value());
}

TEST(Container, EveryOneThatIsNotReadHasANameAndARemedy) {
  for (int i = 0; i <= static_cast<int>(Container::kLfsPointer); ++i) {
    const auto container = static_cast<Container>(i);
    EXPECT_FALSE(container_name(container).empty());
    const bool read = container == Container::kSafetensors || container == Container::kGguf;
    EXPECT_EQ(container_remedy(container).empty(), read) << container_name(container);
  }
}

}  // namespace
}  // namespace gridscope::format
