// Codes of other programs that do not fit each other, or stand for nothing.
#include "llm/stored_codes.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "frontend/hf_config.h"
#include "frontend/stored_quantization.h"
#include "reference_data.h"
#include "temp_folder.h"

namespace sator::llm {
namespace {

/// What a change of one tensor of a model leads to.
std::string error_with(const std::string& tensor,
                       const std::function<void(SafeTensor&, std::vector<std::byte>&)>& change,
                       const std::string& model = "mxfp4") {
  const fs::path from = reference_data("models/quantized/" + model);
  const SafeTensors given = SafeTensors::open_folder(from);
  std::vector<SafeTensor> tensors;
  std::vector<std::byte> bytes;
  bool found = false;
  for (SafeTensor t : given.tensors()) {
    if (t.name == tensor) {
      found = true;
      bytes.assign(t.bytes.begin(), t.bytes.end());
      change(t, bytes);
      t.bytes = bytes;
    }
    if (!t.name.empty()) tensors.push_back(t);
  }
  EXPECT_TRUE(found) << tensor;
  TempFolder folder;
  fs::copy_file(from / "config.json", folder.path() / "config.json");
  write_safetensors(folder.path() / "model.safetensors", tensors);
  return error_of([&] {
    const Checkpoint checkpoint = Checkpoint::open(folder.path(), read_model_config(folder.path()));
    for (const StoredWeight& w : checkpoint.weights())
      if (w.format) w.codes();
  });
}

TEST(StoredCodesErrors, MicroscaledExperts) {
  const std::string stack = "model.layers.1.mlp.experts.down_proj";
  auto none = [](SafeTensor&, std::vector<std::byte>&) {};
  EXPECT_EQ(error_with(stack + "_scales", none), "");
  EXPECT_NE(error_with(stack + "_scales", [](SafeTensor&, auto& bytes) { bytes[17] = std::byte{255}; })
                .find(stack + "_scales has the scale 255"),
            std::string::npos);
  EXPECT_NE(error_with(stack + "_scales", [](SafeTensor& t, auto&) { t.name = ""; }).find(stack + "_scales is missing"),
            std::string::npos);
  EXPECT_NE(error_with(stack + "_scales", [](SafeTensor& t, auto&) { t.shape = {t.shape[0], t.shape[2], t.shape[1]}; })
                .find("as the layer's codes say"),
            std::string::npos);
  EXPECT_NE(
      error_with(stack + "_blocks", [](SafeTensor& t, auto&) { t.shape = {t.shape[0] * t.shape[1], t.shape[2], 16}; })
          .find("four dimensions"),
      std::string::npos);
  EXPECT_NE(error_with(stack + "_blocks", [](SafeTensor& t, auto&) { t.dtype = i8; }).find("is int8"),
            std::string::npos);
  EXPECT_NE(error_with(stack + "_bias", [](SafeTensor& t, auto&) { t.shape = {t.shape[0] * t.shape[1]}; })
                .find("a matrix or a vector for each expert"),
            std::string::npos);
}

TEST(StoredCodesErrors, SmallFloats) {
  const std::string layer = "model.layers.1.mlp.down_proj.weight", model = "fp8-block";
  auto none = [](SafeTensor&, std::vector<std::byte>&) {};
  EXPECT_EQ(error_with(layer, none, model), "");
  EXPECT_NE(error_with(
                layer, [](SafeTensor&, auto& bytes) { bytes[5] = std::byte{0xff}; }, model)
                .find(layer + " has the code 255 at element 5"),
            std::string::npos);
  EXPECT_NE(error_with(
                layer + "_scale_inv", [](SafeTensor& t, auto&) { t.name = ""; }, model)
                .find(layer + "_scale is missing"),
            std::string::npos);
  EXPECT_NE(error_with(
                layer + "_scale_inv", [](SafeTensor& t, auto&) { std::swap(t.shape[0], t.shape[1]); }, model)
                .find("as the layer's codes say"),
            std::string::npos);
  EXPECT_NE(error_with(
                layer, [](SafeTensor& t, auto&) { t.shape = {t.shape[0] * t.shape[1]}; }, model)
                .find("of 8-bit floats"),
            std::string::npos);
  EXPECT_NE(error_with(
                "model.layers.0.mlp.up_proj.weight", [](SafeTensor& t, auto&) { t.name = "model.up"; }, model)
                .find("model.up is [96, 64] of 8-bit floats"),
            std::string::npos);
  // Infinities of the other kind.
  EXPECT_NE(error_with(
                layer, [](SafeTensor&, auto& bytes) { bytes[0] = std::byte{0x7c}; }, "fp8-tensor")
                .find("the code 124 at element 0"),
            std::string::npos);
  EXPECT_EQ(error_with(layer, [](SafeTensor&, auto& bytes) { bytes[0] = std::byte{0x7b}; }, "fp8-tensor"), "");
}

// What is used head by head is cut by rows, and codes are not.
TEST(StoredCodesErrors, CodesOfAllHeadsInOne) {
  const fs::path folder = reference_data("models/quantized/fp8-block");
  ModelConfig config = read_model_config(folder);
  config.names.expert_stacks = {
      {.all = "mlp.down_proj.weight", .each = "mlp.by_head.*.weight", .rows = 1, .stride = 2}};
  EXPECT_NE(error_of([&] {
              weights_with_codes(SafeTensors::open_folder(folder), config);
            }).find("mlp.down_proj.weight is quantized, and is used head by head"),
            std::string::npos);
}

// The values of the published formats: the largest, the least normal and the least of all, with their signs.
TEST(StoredCodes, ValuesOfSmallFloats) {
  const std::vector<float>&e4m3 = values_of(Codebook::e4m3), &e5m2 = values_of(Codebook::e5m2);
  EXPECT_EQ(e4m3[0x7e], 448);
  EXPECT_EQ(e4m3[0xfe], -448);
  EXPECT_EQ(e4m3[0x08], 0x1p-6f);
  EXPECT_EQ(e4m3[0x01], 0x1p-9f);
  EXPECT_EQ(e5m2[0x7b], 57344);
  EXPECT_EQ(e5m2[0x04], 0x1p-14f);
  EXPECT_EQ(e5m2[0x81], -0x1p-16f);
  EXPECT_EQ(e5m2[0x3c], 1);
}

// What the file asks of activations is said, and is no part of what runs.
TEST(StoredCodes, RemarksOnActivations) {
  auto remark = [](const char* config) {
    const Json tree = Json::parse(config);
    return read_stored_quantization(JsonAt(tree, "config.json")).activations;
  };
  EXPECT_EQ(remark(R"({"quant_method":"fp8","activation_scheme":"dynamic"})"), "dynamic");
  EXPECT_EQ(remark(R"({"quant_method":"fp8"})"), "");
  EXPECT_EQ(remark(R"({"quant_method":"fbgemm_fp8","activation_scale_ub":1200.0})"), "dynamic");
  const std::string group = R"({"quant_method":"compressed-tensors","format":"float-quantized","config_groups":{"a":)";
  const std::string weights = R"({"weights":{"type":"float","num_bits":8,"strategy":"tensor"})";
  EXPECT_EQ(remark((group + weights + R"(,"input_activations":{"dynamic":false}}}})").c_str()), "static");
  auto error = [&](const std::string& config) { return error_of([&] { remark(config.c_str()); }); };
  EXPECT_NE(error(group + R"({"weights":{"type":"int","num_bits":8}}}})").find("is no float"), std::string::npos);
  EXPECT_NE(error(group + R"({"weights":{"type":"float","num_bits":4}}}})").find("is 4"), std::string::npos);
  EXPECT_NE(error(R"({"quant_method":"fp8","weight_block_size":[128]})").find("has 1 numbers"), std::string::npos);
  EXPECT_NE(error(R"({"quant_method":"fp8","fmt":"e3m4"})").find("\"e3m4\""), std::string::npos);
}

}  // namespace
}  // namespace sator::llm
