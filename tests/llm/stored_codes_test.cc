// Codes of other programs that do not fit each other, or stand for nothing.
#include "llm/stored_codes.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "codegen/run_kernel.h"
#include "frontend/hf_config.h"
#include "frontend/stored_quantization.h"
#include "llm/open.h"
#include "llm/program.h"
#include "llm/quantized_ops.h"
#include "llm/small_floats.h"
#include "reference_data.h"
#include "temp_folder.h"

namespace sator::llm {
namespace {

/// What a change of one tensor of a model leads to, and of what its quantization_config says.
std::string error_with(const std::string& tensor,
                       const std::function<void(SafeTensor&, std::vector<std::byte>&)>& change,
                       const std::string& model = "mxfp4", const std::function<void(Json&)>& say = {}) {
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
  Json config = parse_json(read_file(from / "config.json"), "config.json");
  if (say) say(config["quantization_config"]);
  folder.write("config.json", config.dump());
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

/// The weights of a folder whose MLPs' last matrices are used by heads of `stride` rows, of which `rows` from `first` on, and all
/// of them turned.
std::vector<StoredWeight> cut_by_head(const char* model, int64_t rows, int64_t first, int64_t stride) {
  const fs::path folder = reference_data(text("models/quantized/", model));
  ModelConfig config = read_model_config(folder);
  config.names.expert_stacks = {
      {.all = "mlp.down_proj.weight", .each = "turned.*.weight", .transposed = true, .rows = stride, .stride = stride},
      {.all = "mlp.down_proj.weight", .each = "part.*.weight", .rows = rows, .first = first, .stride = stride}};
  return weights_with_codes(SafeTensors::open_folder(folder), config);
}

// What is used head by head is cut by rows: rows that end within a block of scales.
TEST(StoredCodes, OfAllHeadsInOneMatrix) {
  for (const char* model : {"fp8-block", "gptq-int4-act-order", "awq-int4", "packed-int8"}) {
    SCOPED_TRACE(model);
    const fs::path folder = reference_data(text("models/quantized/", model));
    const std::vector<StoredWeight> whole =
        weights_with_codes(SafeTensors::open_folder(folder), read_model_config(folder));
    const StoredWeight& first = *std::ranges::find_if(
        whole, [](const StoredWeight& w) { return w.name.ends_with("layers.0.mlp.down_proj.weight"); });
    const std::vector<float> all = values_of(first);
    const int64_t cols = first.shape[1], stride = first.shape[0] / 2;
    int parts = 0;
    for (const StoredWeight& part : cut_by_head(model, 3, 2, stride)) {
      const size_t turned = part.name.find("layers.0.turned."), cut = part.name.find("layers.0.part.");
      if (turned == std::string::npos && cut == std::string::npos) continue;
      const int64_t head = part.name.ends_with(".1.weight") ? 1 : 0;
      const std::vector<float> values = values_of(part);
      const auto begin = all.begin() + (head * stride + (cut != std::string::npos ? 2 : 0)) * cols;
      ++parts;
      if (cut != std::string::npos) {
        EXPECT_EQ(part.shape, (std::vector<int64_t>{3, cols}));
        EXPECT_TRUE(std::equal(values.begin(), values.end(), begin)) << part.name;
        continue;
      }
      EXPECT_EQ(part.shape, (std::vector<int64_t>{cols, stride}));
      int64_t wrong = 0;
      for (int64_t r = 0; r < stride; ++r)
        for (int64_t c = 0; c < cols; ++c) wrong += values[static_cast<size_t>(c * stride + r)] != begin[r * cols + c];
      EXPECT_EQ(wrong, 0) << part.name;
    }
    EXPECT_EQ(parts, 4);
  }
}

// Without the list the inputs' groups are anybody's guess: read in their order, logits were off by several units.
TEST(StoredCodesErrors, InputsOutOfOrderWithoutTheirGroups) {
  const std::string layer = "model.layers.0.mlp.down_proj.g_idx";
  EXPECT_NE(error_with(
                layer, [](SafeTensor& t, auto&) { t.name = "model.g_idx"; }, "gptq-int4-act-order")
                .find("down_proj.g_idx is missing\n  needs: the group of each input"),
            std::string::npos);
}

// What compressed-tensors' files say twice: of symmetric codes its library writes no zero points, and of old files it follows a list of
// groups that vLLM, by the configuration, does not.
TEST(StoredCodesErrors, TensorsThatContradictTheConfiguration) {
  const std::string layer = "model.layers.0.mlp.down_proj.";
  auto weights = [](Json& quantization) -> Json& { return quantization["config_groups"]["group_0"]["weights"]; };
  auto symmetric = [&](Json& q) { weights(q)["symmetric"] = true; };
  auto none = [](SafeTensor&, auto&) {};
  const std::string zeros = error_with(layer + "weight_zero_point", none, "packed-int4-asym", symmetric);
  EXPECT_NE(zeros.find(".weight_zero_point has the zero point "), std::string::npos) << zeros;
  EXPECT_NE(zeros.find("quantization_config says symmetric: true"), std::string::npos) << zeros;

  auto unordered = [&](Json& q) { weights(q).erase("actorder"); };
  const std::string groups = error_with(layer + "weight_g_idx", none, "packed-int4-act-order", unordered);
  EXPECT_NE(groups.find("weight_g_idx puts inputs that lie apart into one group"), std::string::npos) << groups;
  EXPECT_NE(groups.find("actorder"), std::string::npos) << groups;

  const std::string shape =
      error_with(layer + "weight_shape", [](SafeTensor&, auto& bytes) { bytes[8] = std::byte{90}; }, "packed-int4");
  EXPECT_NE(shape.find(layer + "weight_shape says [64, 90], and " + layer + "weight_packed holds [64, 96]"),
            std::string::npos)
      << shape;
  EXPECT_NE(
      error_with(
          layer + "weight_shape", [&](SafeTensor& t, auto&) { t.name = layer + "weight_global_scale"; }, "packed-int4")
          .find("weight_global_scale scales the weights once more"),
      std::string::npos);
  EXPECT_NE(error_with(
                layer + "weight_shape", [](SafeTensor& t, auto&) { t.shape = {1, 2}; }, "packed-int4")
                .find("weight_shape is [1, 2]"),
            std::string::npos);
}

// And what says the same twice is read.
TEST(StoredCodes, TensorsThatRepeatTheConfiguration) {
  const fs::path from = reference_data("models/quantized/packed-int4");
  const SafeTensors given = SafeTensors::open_folder(from);
  const std::vector<uint32_t> middle(8 * 3, 0x88888888);
  const std::vector<std::byte> zero(64 * 3);
  const std::vector<int32_t> unset(96, -1);
  std::vector<int32_t> in_order;
  for (int32_t i = 0; i < 96; ++i) in_order.push_back(i / 32);
  const std::string layer = "model.layers.0.mlp.down_proj.";
  for (const SafeTensor& more :
       {SafeTensor{.name = layer + "weight_zero_point",
                   .dtype = i32,
                   .shape = {8, 3},
                   .bytes = std::as_bytes(std::span(middle))},
        SafeTensor{.name = layer + "weight_zero_point", .dtype = i8, .shape = {64, 3}, .bytes = zero},
        SafeTensor{
            .name = layer + "weight_g_idx", .dtype = i32, .shape = {96}, .bytes = std::as_bytes(std::span(unset))},
        SafeTensor{.name = layer + "weight_g_idx",
                   .dtype = i32,
                   .shape = {96},
                   .bytes = std::as_bytes(std::span(in_order))}}) {
    const TempFolder folder;
    fs::copy_file(from / "config.json", folder.path() / "config.json");
    std::vector<SafeTensor> tensors(given.tensors().begin(), given.tensors().end());
    tensors.push_back(more);
    write_safetensors(folder.path() / "model.safetensors", tensors);
    EXPECT_EQ(error_of([&] {
                weights_with_codes(SafeTensors::open_folder(folder.path()), read_model_config(folder.path()));
              }),
              "")
        << more.name;
  }
}

TEST(StoredCodesErrors, CodesThatAreNoWholeHeads) {
  EXPECT_NE(error_of([] { cut_by_head("fp8-block", 1, 0, 7); }).find("needs: a matrix with 7 rows a head"),
            std::string::npos)
      << error_of([] { cut_by_head("fp8-block", 1, 0, 7); });
}

TEST(StoredCodesErrors, SmallFloatsWithoutTheirScales) {
  const TempFolder folder;
  const fs::path from = reference_data("models/quantized/fp8-tensor");
  Json config = parse_json(read_file(from / "config.json"), "config.json");
  config.erase("quantization_config");
  folder.write("config.json", config.dump());
  fs::copy_file(from / "model.safetensors", folder.path() / "model.safetensors");
  const std::string error = error_of([&] { open_model(folder.path(), {}); });
  EXPECT_NE(error.find("is F8_E5M2, and config.json has no quantization_config"), std::string::npos) << error;
}

/// A folder of int8 codes [out, in] with zero points [out, 1], and the same as compressed-tensors packs them: four in a word, from
/// its low byte on, 128 added to each; zero points [out / 4, 1].
std::vector<StoredWeight> int8_codes(const TempFolder& folder, bool in_words) {
  const fs::path from = reference_data("models/quantized/packed-int8");
  Json config = parse_json(read_file(from / "config.json"), "config.json");
  Json& said = config["quantization_config"];
  said["format"] = in_words ? "pack-quantized" : "int-quantized";
  for (Json& group : said["config_groups"]) group["weights"]["symmetric"] = false;
  folder.write("config.json", config.dump());
  const SafeTensors given = SafeTensors::open_folder(from);
  std::vector<SafeTensor> tensors;
  std::vector<std::vector<std::byte>> bytes;
  auto add = [&](const std::string& name, std::vector<std::byte> codes, std::vector<int64_t> shape, size_t dim) {
    for (std::byte& code : codes) code ^= in_words ? std::byte{128} : std::byte{0};
    if (in_words) shape[dim] /= 4;
    bytes.push_back(std::move(codes));
    tensors.push_back({.name = name, .dtype = in_words ? i32 : i8, .shape = shape, .bytes = bytes.back()});
  };
  for (const SafeTensor& t : given.tensors()) {
    if (t.dtype != i8) {
      tensors.push_back(t);
      continue;
    }
    const std::string layer = t.name.substr(0, t.name.rfind('.'));
    add(layer + (in_words ? ".weight_packed" : ".weight"), {t.bytes.begin(), t.bytes.end()}, t.shape, 1);
    std::vector<std::byte> zeros(static_cast<size_t>(t.shape[0]));
    for (size_t i = 0; i < zeros.size(); ++i) zeros[i] = static_cast<std::byte>(static_cast<int>(i * 7 % 23) - 11);
    add(layer + ".weight_zero_point", std::move(zeros), {t.shape[0], 1}, 0);
  }
  write_safetensors(folder.path() / "model.safetensors", tensors);
  return weights_with_codes(SafeTensors::open_folder(folder.path()), read_model_config(folder.path()));
}

// Source: pack_to_int32 of compressed-tensors.
TEST(StoredCodes, EightBitsInWordsAreInt8) {
  const TempFolder plain, packed;
  const std::vector<StoredWeight> bytes = int8_codes(plain, false), words = int8_codes(packed, true);
  ASSERT_EQ(bytes.size(), words.size());
  int codes = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(bytes[i].name, words[i].name);
    EXPECT_EQ(bytes[i].format, words[i].format);
    if (!bytes[i].format) continue;
    EXPECT_TRUE(bytes[i].format->asymmetric);
    EXPECT_EQ(values_of(bytes[i]), values_of(words[i])) << bytes[i].name;
    ++codes;
  }
  EXPECT_EQ(codes, 14);
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

// The kernels make codes the values that ggml's tables have (kvalues_iq4nl, kvalues_mxfp4 of ggml-common.h).
TEST(StoredCodes, KernelsOfTables) {
  const std::vector<float> nl4 = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113},
                           fp4 = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  for (const auto& [codebook, expected] : {std::pair{Codebook::nl4, nl4}, {Codebook::fp4, fp4}}) {
    IntegerFormat format = mxfp4_format();
    format.codebook = codebook;
    for (const target::CpuLevel* level : target::host_levels()) {
      codegen::Data<uint32_t> codes(2);
      codes[0] = 0x76543210, codes[1] = 0xfedcba98;
      codegen::Data<float> out(16);
      ASSERT_EQ(codegen::run_kernel(dequantize_function(format, 1, 16, false, f32), *level, {codes.raw(), out.raw()}),
                0);
      EXPECT_EQ(std::vector<float>(out.memory, out.memory + 16), expected) << level->name;
    }
  }
}

// Subnormal codes and zeros of either sign are in every run of codes.
TEST(StoredCodes, KernelsOfSmallFloats) {
  constexpr int64_t kCols = 256;
  std::mt19937 random(3);
  for (const int bits : {6, 7, 12, 13, 17, 28}) {
    const IntegerFormat format{.bits = bits, .exponent_bits = 4};
    const SmallFloat small{bits, 4};
    codegen::Data<uint32_t> codes(static_cast<size_t>(words_per_row(kCols, bits)));
    std::fill(codes.memory, codes.memory + codes.size, 0u);
    std::vector<uint32_t> expected;
    for (int64_t c = 0; c < kCols; ++c) {
      const uint32_t any = static_cast<uint32_t>(random()) & (small.sign() | small.largest());
      const uint32_t code = c % 4 == 0 ? any & (small.sign() | small.largest() >> 4) : c < 2 ? 0 : any;
      put_code(codes.memory, c, bits, code);
      expected.push_back(std::bit_cast<uint32_t>(small.value(code)));
    }
    for (const target::CpuLevel* level : target::host_levels()) {
      codegen::Data<uint32_t> out(kCols);
      ASSERT_EQ(
          codegen::run_kernel(dequantize_function(format, 1, kCols, false, f32), *level, {codes.raw(), out.raw()}), 0);
      EXPECT_EQ(std::vector<uint32_t>(out.memory, out.memory + kCols), expected) << level->name << " " << bits;
    }
  }
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
  const std::string integers =
      R"({"quant_method":"compressed-tensors","format":"int-quantized","config_groups":{"a":
          {"weights":{"type":"int","num_bits":8,"strategy":"channel"},"input_activations":{"num_bits":8,"dynamic":true}}}})";
  EXPECT_EQ(remark(integers.c_str()), "dynamic");
  auto error = [&](const std::string& config) { return error_of([&] { remark(config.c_str()); }); };
  EXPECT_NE(error(group + R"({"weights":{"type":"int","num_bits":8}}}})").find("is no float"), std::string::npos);
  EXPECT_NE(error(group + R"({"weights":{"type":"float","num_bits":4}}}})").find("is 4"), std::string::npos);
  EXPECT_NE(error(R"({"quant_method":"fp8","weight_block_size":[128]})").find("has 1 numbers"), std::string::npos);
  EXPECT_NE(error(R"({"quant_method":"fp8","fmt":"e3m4"})").find("\"e3m4\""), std::string::npos);
}

/// Where the weights are not there, config.json alone gives the matrices and the formats that the file has.
TEST(StoredCodes, ImpliedByTheConfiguration) {
  for (const char* model : {"awq-int4",
                            "gptq-int3",
                            "gptq-int4",
                            "gptq-int8",
                            "packed-int4",
                            "packed-int4-asym",
                            "packed-int8",
                            "fp8-block",
                            "fp8-channel",
                            "mxfp4"}) {
    SCOPED_TRACE(model);
    const fs::path folder = reference_data(text("models/quantized/", model));
    const ModelConfig config = read_model_config(folder);
    auto codes_of = [&](const Scheme& scheme) {
      std::map<std::string, IntegerFormat> out;
      for (const ParamSpec& p : build_program(config, scheme, {}).params)
        if (p.format)
          for (const std::string& tensor : p.source.tensors) out.emplace(tensor, *p.format);
      return out;
    };
    const std::optional<Scheme> own = stored_scheme(folder), implied = implied_scheme(config);
    ASSERT_TRUE(own && implied);
    EXPECT_EQ(implied->name, own->name);
    std::map<std::string, IntegerFormat> there = codes_of(*own), said = codes_of(*implied);
    EXPECT_FALSE(there.empty());
    for (auto& [tensor, format] : said) {
      const auto at = there.find(tensor);
      ASSERT_NE(at, there.end()) << tensor;
      format.scale_dtype = at->second.scale_dtype;  // these small models' differ from published ones'
      EXPECT_EQ(format, at->second) << tensor;
    }
    EXPECT_EQ(said.size(), there.size());
  }
}

}  // namespace
}  // namespace sator::llm
