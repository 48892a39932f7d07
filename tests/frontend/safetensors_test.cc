#include "frontend/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "reference_data.h"
#include "temp_folder.h"

namespace sator {
namespace {

/// A file with this header text and these data bytes, laid out as the format says.
std::string raw_file(std::string_view header, size_t data_bytes = 0) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return out + std::string(header) + std::string(data_bytes, '\1');
}

SafeTensor tensor(std::string name, DType dtype, std::vector<int64_t> shape, const void* data, size_t size) {
  return {std::move(name), dtype, std::move(shape), {static_cast<const std::byte*>(data), size}};
}

TEST(SafeTensors, ReadsWhatTheFormatDescribes) {
  // Two tensors, the header's order is not that of the data; an empty one; a scalar.
  TempFolder folder;
  std::string header = R"({"__metadata__":{"format":"pt"},)"
                       R"("b":{"dtype":"F32","shape":[2],"data_offsets":[2,10]},)"
                       R"("a":{"dtype":"I8","shape":[1,2],"data_offsets":[0,2]},)"
                       R"("e":{"dtype":"F64","shape":[0,3],"data_offsets":[10,10]},)"
                       R"("s":{"dtype":"U8","shape":[],"data_offsets":[10,11]}}  )";
  std::string file = raw_file(header);
  file += std::string("\x05\xfb", 2);
  float values[2] = {1.5f, -2};
  file.append(reinterpret_cast<const char*>(values), 8);
  file += '\x07';
  SafeTensors read = SafeTensors::open(folder.write("m.safetensors", file));
  ASSERT_EQ(read.tensors().size(), 4u);
  EXPECT_EQ(read.tensors()[0].name, "a");
  EXPECT_EQ(read.metadata().at("format"), "pt");
  EXPECT_EQ(read.size_bytes(), 11);
  EXPECT_EQ(static_cast<int8_t>(read.get("a").bytes[1]), -5);
  float b[2];
  std::memcpy(b, read.get("b").bytes.data(), 8);
  EXPECT_EQ(b[0], 1.5f);
  EXPECT_EQ(b[1], -2.0f);
  EXPECT_EQ(read.get("b").shape, std::vector<int64_t>{2});
  EXPECT_EQ(read.get("e").elements(), 0);
  EXPECT_EQ(read.get("s").elements(), 1);
  EXPECT_EQ(read.get("s").dtype, u8);
  EXPECT_EQ(read.find("c"), nullptr);
  EXPECT_NE(error_of([&] { read.get("bb"); }).find("nearest names"), std::string::npos);
}

TEST(SafeTensors, RefusesDamagedFiles) {
  struct Case {
    const char* why;
    std::string file;
    const char* says;
  };
  auto one = [](std::string_view entry, size_t data_bytes) {
    return raw_file(text(R"({"w":)", entry, "}"), data_bytes);
  };
  std::string deep;
  for (int i = 0; i < 200'000; ++i) deep += "{\"a\":";
  const Case cases[] = {
      {"empty", "", "too few"},
      {"seven bytes", "1234567", "too few"},
      {"length beyond the file", std::string("\x40\0\0\0\0\0\0\0{}", 10), "states a header of 64 bytes"},
      {"length of 2^64 - 1", std::string(8, '\xff') + "{}", "states a header"},
      {"no object", raw_file("[]"), "does not begin with '{'"},
      {"text", "version https://git-lfs.github.com/spec/v1\n", "states a header"},
      {"cut header", raw_file(R"({"w":{"dtype":"F32")"), "not valid JSON"},
      {"nesting", raw_file(deep), "nests deeper"},
      {"duplicate name",
       raw_file(
           R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
           1),
       "given twice"},
      {"unknown dtype", one(R"({"dtype":"Q4","shape":[1],"data_offsets":[0,1]})", 1), "no safetensors dtype"},
      {"exponents",
       one(R"({"dtype":"F8_E8M0","shape":[1],"data_offsets":[0,1]})", 1),
       "F8_E8M0, which is not supported"},
      {"dtype is a number", one(R"({"dtype":5,"shape":[1],"data_offsets":[0,1]})", 1), "w.dtype is 5"},
      {"negative dim", one(R"({"dtype":"U8","shape":[-1],"data_offsets":[0,1]})", 1), "w.shape[0] is -1"},
      {"fractional dim", one(R"({"dtype":"U8","shape":[1.0],"data_offsets":[0,1]})", 1), "w.shape[0] is 1.0"},
      {"product overflows",
       one(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]})", 0),
       "64 bits"},
      {"product overflows beside a zero",
       one(R"({"dtype":"U8","shape":[4611686018427387904,4,0],"data_offsets":[0,0]})", 0),
       "64 bits"},
      {"product overflows int64",
       one(R"({"dtype":"U8","shape":[9223372036854775807,2],"data_offsets":[0,0]})", 0),
       "64 bits"},
      {"wrong size", one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})", 4), "spans 4 bytes"},
      {"offset outside", one(R"({"dtype":"U8","shape":[4],"data_offsets":[0,4]})", 3), "outside the file's 3 bytes"},
      {"offset of 2^63",
       one(R"({"dtype":"U8","shape":[4],"data_offsets":[0,9223372036854775808]})", 3),
       "w.data_offsets[1]"},
      {"begin after end", one(R"({"dtype":"U8","shape":[0],"data_offsets":[2,1]})", 3), "[2, 1]"},
      {"three offsets", one(R"({"dtype":"U8","shape":[0],"data_offsets":[0,0,0]})", 0), "has 3 elements"},
      {"hole at the begin", one(R"({"dtype":"U8","shape":[2],"data_offsets":[1,3]})", 3), "begins at byte 1"},
      {"trailing data", one(R"({"dtype":"U8","shape":[2],"data_offsets":[0,2]})", 3), "end at byte 2 of 3"},
      {"overlap",
       raw_file(
           R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
           3),
       "begins at byte 1"},
      {"no shape", one(R"({"dtype":"U8","data_offsets":[0,1]})", 1), "has no \"shape\""},
      {"extra member", one(R"({"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":0})", 1), "w.x is no member"},
      {"metadata of numbers", raw_file(R"({"__metadata__":{"a":1}})"), "__metadata__.a is 1"},
  };
  TempFolder folder;
  for (const Case& c : cases) {
    std::string error = error_of([&] { SafeTensors::open(folder.write("m.safetensors", c.file)); });
    EXPECT_NE(error.find(c.says), std::string::npos) << c.why << ": " << error;
  }
  EXPECT_NE(error_of([&] { SafeTensors::open(folder.path() / "none"); }), "");
  EXPECT_NE(error_of([&] { SafeTensors::open(folder.path()); }), "");
}

TEST(SafeTensors, EveryTruncationIsAnError) {
  TempFolder folder;
  int32_t values[3] = {1, 2, 3};
  SafeTensor w[] = {tensor("w", i32, {3}, values, 12)};
  write_safetensors(folder.path() / "whole", w);
  std::string whole = read_file(folder.path() / "whole");
  EXPECT_EQ(whole.size() % 8, 4u);  // the header pads to 8, the data are 12 bytes
  for (size_t n = 0; n < whole.size(); ++n) {
    fs::path cut = folder.write("cut", whole.substr(0, n));
    EXPECT_NE(error_of([&] { SafeTensors::open(cut); }), "") << n << " bytes";
  }
}

TEST(SafeTensors, WriterAndReaderAgree) {
  TempFolder folder;
  float a[2] = {1, 2};
  uint16_t h[3] = {0x3c00, 0x4000, 0x4200};
  SafeTensor tensors[] = {
      tensor("z", f16, {3}, h, 6), tensor("a \"quoted\"", f32, {1, 2}, a, 8), tensor("e", i64, {0}, a, 0)};
  fs::path file = folder.path() / "sub" / "m.safetensors";
  write_safetensors(file, tensors, {{"format", "pt"}});
  SafeTensors read = SafeTensors::open(file);
  ASSERT_EQ(read.tensors().size(), 3u);
  for (const SafeTensor& t : tensors) {
    const SafeTensor& r = read.get(t.name);
    EXPECT_EQ(r.dtype, t.dtype);
    EXPECT_EQ(r.shape, t.shape);
    EXPECT_TRUE(std::ranges::equal(r.bytes, t.bytes));
  }
  EXPECT_EQ(read.metadata().at("format"), "pt");
  SafeTensor wrong[] = {tensor("w", f32, {3}, a, 8)};
  EXPECT_NE(error_of([&] { write_safetensors(file, wrong); }).find("has 8 bytes"), std::string::npos);
  SafeTensor twice[] = {tensor("w", f32, {2}, a, 8), tensor("w", f32, {2}, a, 8)};
  EXPECT_NE(error_of([&] { write_safetensors(file, twice); }).find("twice"), std::string::npos);
  SafeTensor vector[] = {tensor("w", DType::Float(32, 4), {0}, a, 0)};
  EXPECT_NE(error_of([&] { write_safetensors(file, vector); }).find("float32x4"), std::string::npos);
}

TEST(SafeTensors, Shards) {
  TempFolder folder;
  EXPECT_NE(error_of([&] { SafeTensors::open_folder(folder.path()); }).find("no weights"), std::string::npos);
  uint8_t bytes[4] = {1, 2, 3, 4};
  SafeTensor first[] = {tensor("a", u8, {2}, bytes, 2)}, second[] = {tensor("b", u8, {2}, bytes + 2, 2)};
  write_safetensors(folder.path() / "s1.safetensors", first);
  write_safetensors(folder.path() / "deep" / "s2.safetensors", second);
  auto index = [&](std::string_view map) {
    folder.write("model.safetensors.index.json", text(R"({"metadata":{"total_size":4},"weight_map":)", map, "}"));
    return SafeTensors::open_folder(folder.path());
  };
  SafeTensors read = index(R"({"a":"s1.safetensors","b":"deep/s2.safetensors"})");
  EXPECT_EQ(read.tensors().size(), 2u);
  EXPECT_EQ(read.get("b").bytes[1], std::byte{4});
  struct Case {
    const char *map, *says;
  };
  for (const Case& c : {
           Case{R"({"a":"../s1.safetensors"})", "outside the model's folder"},
           Case{R"({"a":"deep/../../s1.safetensors"})", "outside the model's folder"},
           Case{R"({"a":"/etc/passwd"})", "outside the model's folder"},
           Case{R"({"a":""})", "outside the model's folder"},
           Case{R"({"a":7})", "weight_map.a is 7"},
           Case{R"({"a":"s3.safetensors"})", "s3.safetensors"},
           Case{R"({"c":"s1.safetensors"})", "\"c\" is not in s1.safetensors"},
           Case{R"({"a":"deep/s2.safetensors","b":"s1.safetensors"})", "is not in"},
       })
    EXPECT_NE(error_of([&] { index(c.map); }).find(c.says), std::string::npos)
        << c.map << error_of([&] { index(c.map); });
  write_safetensors(folder.path() / "deep" / "s2.safetensors", first);
  EXPECT_NE(error_of([&] { index(R"({"a":"s1.safetensors","b":"deep/s2.safetensors"})"); }).find("in two shards"),
            std::string::npos);
}

// Files that Hugging Face's library wrote.
TEST(SafeTensors, FilesOfModels) {
  const fs::path example = fs::path(SATOR_SOURCE_DIR) / "examples" / "gpt2-stories";
  struct Case {
    fs::path folder;
    DType dtype;
    int64_t parameters;  // 8,546,816 says the model's training run; the other's follow from its config.json
  };
  // Two layers 66 wide, 6 heads and 2 pairs of keys and values of 16, 176 wide inside; 256 tokens, head of its own.
  constexpr int64_t kLlama = 2 * 256 * 66 + 66 + 2 * (2 * 66 + 66 * 16 * (6 + 2 + 2 + 6) + 3 * 66 * 176);
  for (const Case& c : {Case{example, f16, 8'546'816}, Case{reference_data("models/tiny/llama-a"), f32, kLlama}}) {
    SafeTensors weights = SafeTensors::open_folder(c.folder);
    int64_t parameters = 0;
    for (const SafeTensor& t : weights.tensors()) {
      EXPECT_EQ(t.dtype, c.dtype) << t.name;
      parameters += t.elements();
    }
    EXPECT_EQ(parameters, c.parameters);
  }
  // The ids of the expected prompts are stored twice, as JSON and, of the first three, as tensors.
  const fs::path models = reference_data("models");
  SafeTensors expected = SafeTensors::open(models / "gpt2-stories" / "expected_logits.safetensors");
  Json json = parse_json(read_file(models / "gpt2-stories" / "expected.json"), "expected.json");
  ASSERT_EQ(json.size(), 5u);
  for (size_t k = 0; k < 3; ++k) {
    const Json& listed = json[k]["input_ids"];
    const SafeTensor& ids = expected.get(text("input_ids_", k));
    ASSERT_EQ(ids.elements(), static_cast<int64_t>(listed.size()));
    size_t width = static_cast<size_t>(ids.dtype.bytes());
    for (size_t i = 0; i < listed.size(); ++i) {
      int64_t id = 0;
      std::memcpy(&id, ids.bytes.data() + i * width, width);
      EXPECT_EQ(id, listed[i].get<int64_t>());
    }
  }
}

}  // namespace
}  // namespace sator
