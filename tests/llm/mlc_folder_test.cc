// Folders in MLC-LLM's format: written, read back, run.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "frontend/hf_config.h"
#include "frontend/mlc_config.h"
#include "llm/mlc_weights.h"
#include "llm/open.h"
#include "reference_data.h"
#include "temp_folder.h"

namespace sator::llm {
namespace {

fs::path example() { return fs::path(SATOR_SOURCE_DIR) / "examples/gpt2-stories"; }

void convert(const fs::path& model, const std::string& scheme, const fs::path& out) {
  convert_weights(model, {.scheme = parse_scheme(scheme)}, out);
  write_file(out / kMlcConfigFile, mlc_chat_config(model, {.quantization = scheme}, {}).dump());
}

std::vector<float> logits(const fs::path& folder, const OpenOptions& options) {
  OpenModel model = open_model(folder, options);
  Session session = model.session();
  std::span<const float> l = session.append(std::vector<int32_t>{5, 17, 3, 99});
  return {l.begin(), l.end()};
}

TEST(MlcFolder, RunsLikeTheCheckpointItWasMadeFrom) {
  for (const char* scheme : {"f32", "int8-channel+embed", "q4f16_1", "int4-group32+a8"}) {
    SCOPED_TRACE(scheme);
    TempFolder folder;
    convert(example(), scheme, folder.path());
    EXPECT_EQ(scheme_for(folder.path(), std::nullopt).name, parse_scheme(scheme).name);
    OpenOptions options{.scheme = parse_scheme(scheme), .threads = 2};
    const std::vector<float> want = logits(example(), options);
    options.verify = true;
    EXPECT_EQ(logits(folder.path(), options), want);
  }
}

// A folder with converted weights is read as these alone: written into the model's folder they would stand for it.
TEST(MlcFolder, AreNotWrittenOverACheckpoint) {
  TempFolder folder;
  const fs::path model = folder.path() / "models/m";
  fs::create_directories(model);
  for (const auto& entry : fs::directory_iterator(example()))
    fs::copy_file(entry.path(), model / entry.path().filename());
  fs::create_directory_symlink(folder.path() / "models", folder.path() / "by_link");
  fs::create_directory(folder.path() / "other");
  write_file(folder.path() / "other/model.safetensors", "another model");
  auto refused = [&](const fs::path& out) {
    return error_of([&] { convert_weights(model, {.scheme = parse_scheme("q4f16_1")}, out); });
  };
  EXPECT_NE(refused(model).find("is the model's own folder"), std::string::npos);
  EXPECT_NE(refused(folder.path() / "by_link/m").find("is the model's own folder"), std::string::npos);
  EXPECT_NE(refused(folder.path() / "by_link/m/new/..").find("is the model's own folder"), std::string::npos);
  EXPECT_NE(refused(folder.path() / "models").find("contains the model's folder"), std::string::npos);
  EXPECT_NE(refused(folder.path() / "other").find("holds another checkpoint"), std::string::npos);
  EXPECT_FALSE(MlcWeights::is_in(model) || MlcWeights::is_in(folder.path() / "models"));
  EXPECT_EQ(refused(folder.path() / "models/m-MLC"), "");  // beside it
  EXPECT_TRUE(MlcWeights::is_in(folder.path() / "models/m-MLC"));
  EXPECT_EQ(refused(model / "mlc"), "");  // a folder of its own within
  EXPECT_TRUE(MlcWeights::is_in(model / "mlc") && !MlcWeights::is_in(model));
}

TEST(MlcFolder, WithNarrowFactorsToo) {
  TempFolder folder;
  convert(example(), "q4f16_1", folder.path());
  OpenOptions options{.scheme = scheme_for(folder.path(), "q4f16_1+a16"), .threads = 2};
  EXPECT_EQ(logits(folder.path(), options), logits(example(), options));
}

// Programs round products of scales and codes without a look at what float16 cannot hold: every way that weights come in looks.
TEST(MlcFolder, ValuesThatFloat16CannotHoldAreRefused) {
  const fs::path model = reference_data("models/tiny/llama-a");
  TempFolder folder;
  // The largest float16 is the largest weight; a seventh of it, rounded to float16, times 7 is more.
  const fs::path large = folder.path() / "large", converted = folder.path() / "converted";
  fs::create_directories(large);
  fs::copy_file(model / "config.json", large / "config.json");
  const SafeTensors given = SafeTensors::open_folder(model);
  std::vector<SafeTensor> tensors(given.tensors().begin(), given.tensors().end());
  const auto changed = std::ranges::find(tensors, "model.layers.1.mlp.down_proj.weight", &SafeTensor::name);
  ASSERT_NE(changed, tensors.end());
  std::vector<float> values = to_f32(changed->bytes, changed->dtype);
  values.back() = 65504;
  changed->dtype = f32, changed->bytes = std::as_bytes(std::span(values));
  write_safetensors(large / "model.safetensors", tensors);
  const OpenOptions options{.scheme = parse_scheme("q4f16_1")};
  const char* says = "model.layers.1.mlp.down_proj.weight: the value of the code at row ";
  EXPECT_NE(error_of([&] { logits(large, options); }).find(says), std::string::npos);

  // An infinite scale in converted weights, which any program may have written.
  convert(model, "q4f16_1", converted);
  EXPECT_EQ(error_of([&] { logits(converted, options); }), "");
  const Json index = Json::parse(read_file(converted / "tensor-cache.json"));
  for (const Json& shard : index.at("records"))
    for (const Json& record : shard.at("records"))
      if (record.at("name") == "model.layers.1.mlp.down_proj.q_scale") {
        std::string bytes = read_file(converted / shard.at("dataPath").get<std::string>());
        bytes.replace(record.at("byteOffset").get<size_t>() + 2, 2, std::string("\x00\x7c", 2));
        write_file(converted / shard.at("dataPath").get<std::string>(), bytes);
      }
  EXPECT_NE(error_of([&] { logits(converted, options); }).find(says), std::string::npos);
}

TEST(MlcFolder, ItsContextWindowHolds) {
  TempFolder folder;
  convert_weights(example(), {.scheme = parse_scheme("int8-channel")}, folder.path());
  Json config = mlc_chat_config(example(), {.quantization = "int8-channel", .context_window_size = 64}, {});
  write_file(folder.path() / kMlcConfigFile, config.dump());
  const OpenOptions options{.scheme = parse_scheme("int8-channel")};
  EXPECT_EQ(program_of(folder.path(), options).limits.context_window, 64);
  EXPECT_EQ(program_of(folder.path(), options).limits.prefill_chunk, 64);
  OpenOptions asked = options;
  asked.program.context_window = 32;
  EXPECT_EQ(program_of(folder.path(), asked).limits.context_window, 32);
  EXPECT_EQ(open_model(folder.path(), options).limits.context_window, 64);
}

// A rotary embedding that is stretched takes more positions than max_position_embeddings: by YaRN at once, else where they are asked for.
TEST(Program, StretchedContexts) {
  const fs::path model = reference_data("models/tiny/llama-a");
  Json config = Json::parse(read_file(model / "config.json"));
  config["max_position_embeddings"] = 24;
  TempFolder folder;
  fs::copy_file(model / "model.safetensors", folder.path() / "model.safetensors");
  const std::vector<int32_t> ids(40, 5);
  auto read = [&](const char* type, std::optional<int64_t> context) {
    config["rope_scaling"] = {{"rope_type", type}, {"factor", 2.0}};
    folder.write("config.json", config.dump());
    OpenOptions options{.scheme = parse_scheme("f32")};
    options.program.context_window = context;
    return error_of([&] { open_model(folder.path(), options).session().append(ids); });
  };
  EXPECT_EQ(read("yarn", {}), "");
  EXPECT_NE(read("linear", {}).find("the context window of 24"), std::string::npos);
  EXPECT_EQ(read("linear", 48), "");
  EXPECT_EQ(read("dynamic", 41), "");
  for (const char* type : {"yarn", "linear", "dynamic"})
    EXPECT_NE(read(type, 49).find("1 to 48 tokens"), std::string::npos) << type;
}

TEST(MlcFolder, ALibraryRunsItsOwnModelAlone) {
  TempFolder folder;
  OpenOptions options{.scheme = parse_scheme("int8-channel"), .threads = 2};
  options.program.prefill_chunk = 3;
  const fs::path library = folder.path() / "model.so";
  compile_model(example(), options, library);
  OpenOptions plain{.scheme = options.scheme, .threads = 2}, with_lib = plain;
  with_lib.model_lib = library;
  std::vector<float> a = logits(example(), with_lib), b = logits(example(), plain);
  ASSERT_EQ(a.size(), b.size());
  // Four tokens in steps of three: the same sums in other chunks.
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-3);
  with_lib.scheme = parse_scheme("int8-tensor");
  EXPECT_THROW(open_model(example(), with_lib), Error);
}

// A scheme's name says how every tensor is stored, whatever the checkpoint has: here three dtypes, mixed within a merged matrix
// and its bias.
TEST(MlcFolder, StoresTheSameTensorsAlikeInAllSchemes) {
  const char* config = R"({"model_type": "llama", "vocab_size": 100, "hidden_size": 32, "intermediate_size": 48,
    "num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 16, "attention_bias": true})";
  TempFolder folder, converted;
  folder.write("config.json", config);
  std::vector<SafeTensor> tensors;
  std::vector<Ref<runtime::Tensor>> keep;
  auto add = [&](const std::string& name, std::vector<int64_t> shape, DType dtype) {
    std::vector<float> values;
    for (int64_t i = 0; i < shape.front() * (shape.size() == 2 ? shape[1] : 1); ++i)
      values.push_back(static_cast<float>((i * 7 + static_cast<int64_t>(name.size())) % 23 - 11) / 16);
    keep.push_back(to_dtype(values, runtime::Dims(std::span<const int64_t>(shape)), dtype));
    const auto* bytes = keep.back()->data_as<std::byte>();
    tensors.push_back({name, dtype, shape, {bytes, static_cast<size_t>(keep.back()->size_bytes())}});
  };
  const std::string layer = "model.layers.0.";
  add("model.embed_tokens.weight", {100, 32}, bf16);
  add("lm_head.weight", {100, 32}, f16);
  add("model.norm.weight", {32}, f32);
  for (const char* norm : {"input_layernorm", "post_attention_layernorm"}) add(layer + norm + ".weight", {32}, bf16);
  for (const char* p : {"q", "k", "v", "o"}) {
    add(layer + "self_attn." + p + "_proj.weight", {32, 32}, *p == 'k' ? f32 : f16);
    add(layer + "self_attn." + p + "_proj.bias", {32}, *p == 'q' ? bf16 : f16);
  }
  for (const char* p : {"gate", "up"}) add(layer + "mlp." + p + "_proj.weight", {48, 32}, bf16);
  add(layer + "mlp.down_proj.weight", {32, 48}, f16);
  write_safetensors(folder.path() / "model.safetensors", tensors);

  const std::vector<std::pair<std::string, DType>> stored = {{"f32", f32},
                                                             {"f16", f16},
                                                             {"bf16", bf16},
                                                             {"int4-group32", f16},
                                                             {"int8-channel+a8", f16},
                                                             {"embed-int8-tensor", f16},
                                                             {"q4f16_1", f16}};
  for (const auto& [scheme, dtype] : stored) {
    SCOPED_TRACE(scheme);
    size_t plain = 0;
    for (const ParamSpec& spec : program_of(folder.path(), {.scheme = parse_scheme(scheme)}).params) {
      if (spec.part != ParamPart::plain) continue;
      EXPECT_EQ(spec.dtype, dtype) << spec.name;
      ++plain;
    }
    EXPECT_GE(plain, 4u);  // three norms and a bias at least
  }
  const OpenOptions options{.scheme = parse_scheme("int4-group32"), .threads = 1};
  convert(folder.path(), options.scheme.name, converted.path());
  EXPECT_EQ(logits(folder.path(), options), logits(converted.path(), options));
}

// Names without the model's prefix are used too; masks, and a head that is tied, may lie there in vain.
TEST(Params, TensorsThatNothingIsMadeFrom) {
  TempFolder folder;
  const float value = 1;
  std::vector<SafeTensor> tensors;
  for (const char* name : {"wte.weight", "h.0.attn.bias", "h.0.attn.c_attn.bias", "lm_head.weight", "h.0.ls.gamma"})
    tensors.push_back({name, f32, {1}, {reinterpret_cast<const std::byte*>(&value), 4}});
  write_safetensors(folder.path() / "model.safetensors", tensors);
  const std::vector<ParamSpec> specs = {{.name = "wte", .source = {{"transformer.wte.weight"}}}};
  EXPECT_EQ(unused_tensors(specs, Checkpoint::of(SafeTensors::open_folder(folder.path()))),
            (std::vector<std::string>{"h.0.attn.c_attn.bias", "h.0.ls.gamma"}));
}

// 65519 is the largest integer that rounds to a float16; an infinite weight makes every logit nan.
TEST(Params, WhatFloat16DoesNotHoldIsSaid) {
  TempFolder folder;
  const float values[] = {-65519, 65520};
  const std::vector<SafeTensor> tensors = {{"near", f32, {1}, std::as_bytes(std::span(values).first(1))},
                                           {"beyond", f32, {1}, std::as_bytes(std::span(values).last(1))}};
  write_safetensors(folder.path() / "model.safetensors", tensors);
  const Checkpoint checkpoint = Checkpoint::of(SafeTensors::open_folder(folder.path()));
  auto made = [&](const char* name, DType dtype) {
    return make_params({{.name = name, .shape = {1}, .dtype = dtype, .source = {{name}}}}, checkpoint, {});
  };
  EXPECT_EQ(to_f32(*made("near", f16)[0]), std::vector{-65504.f});
  for (DType dtype : {f32, bf16}) EXPECT_NEAR(to_f32(*made("beyond", dtype)[0])[0], 65520, 256);
  const std::string error = error_of([&] { made("beyond", f16); });
  EXPECT_NE(error.find("beyond has the value 65520, which float16 does not hold"), std::string::npos) << error;
}

TEST(MlcFolder, ReadsFloatsOfWhichTheUpperHalfIsStored) {
  TempFolder folder;
  const float values[] = {1.5f, -2.0f, 0.15625f};
  std::string bytes;
  for (float v : values) {
    uint32_t bits;
    std::memcpy(&bits, &v, 4);
    bytes += static_cast<char>(bits >> 16 & 255);
    bytes += static_cast<char>(bits >> 24);
  }
  write_file(folder.path() / "params_shard_0.bin", bytes);
  const Json record = {
      {"name", "w"}, {"shape", {3}}, {"dtype", "float32"}, {"format", "f32-to-bf16"}, {"nbytes", 6}, {"byteOffset", 0}};
  const Json index = {{"records", {{{"dataPath", "params_shard_0.bin"}, {"records", {record}}}}}};
  write_file(folder.path() / "ndarray-cache.json", index.dump());
  auto params = MlcWeights::open(folder.path()).params({{.name = "w", .shape = {3}, .dtype = f32}});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(params[0]->data_as<float>()[i], values[i]);
}

TEST(MlcFolder, DamageIsNamed) {
  TempFolder folder;
  EXPECT_NE(error_of([&] { MlcWeights::open(folder.path()); }).find("tensor-cache.json"), std::string::npos);
  convert(example(), "int8-channel", folder.path());
  const fs::path shard = folder.path() / "params_shard_0.bin";
  std::string whole = read_file(shard), flipped = whole;
  flipped[whole.size() / 2] ^= 1;
  write_file(shard, flipped);
  EXPECT_NE(error_of([&] { MlcWeights::open(folder.path()).verify(); }).find("md5"), std::string::npos);
  OpenOptions verify{.scheme = parse_scheme("int8-channel")};
  verify.verify = true;
  EXPECT_NE(error_of([&] { open_model(folder.path(), verify); }).find("md5"), std::string::npos);
  EXPECT_NE(error_of([&] { open_model(example(), verify); }).find("no sums"), std::string::npos);
  write_file(shard, whole.substr(0, whole.size() - 100));
  EXPECT_NE(error_of([&] { MlcWeights::open(folder.path()); }).find("beyond the end"), std::string::npos);
  write_file(shard, whole);
  EXPECT_NE(error_of([&] { scheme_for(folder.path(), "int4-group32"); }).find("are converted to int8-channel"),
            std::string::npos);
  EXPECT_EQ(scheme_for(folder.path(), "int8-channel+a16").name, "int8-channel+a16");  // the same weights
}

// Earlier versions left norms and biases in the checkpoint's dtype; here it is float32.
TEST(MlcFolder, OfAnEarlierVersionSaysHowToConvertAgain) {
  TempFolder folder;
  convert(example(), "f32", folder.path());
  write_file(folder.path() / kMlcConfigFile, mlc_chat_config(example(), {.quantization = "int8-channel"}, {}).dump());
  const MlcWeights weights = MlcWeights::open(folder.path());
  const auto error = [&](const ParamSpec& spec) { return error_of([&] { weights.require({spec}); }); };
  const std::string again = error({.name = "transformer.ln_f.weight", .shape = {256}, .dtype = f16});
  EXPECT_NE(again.find("transformer.ln_f.weight is float32[256]"), std::string::npos) << again;
  const std::string command =
      text("`sator convert_weight MODEL --quantization int8-channel -o ", folder.path().string(), "`");
  EXPECT_NE(again.find(command), std::string::npos) << again;
  const std::string other = error({.name = "transformer.ln_f.weight", .shape = {255}, .dtype = f16});
  EXPECT_EQ(other.find("earlier version"), std::string::npos) << other;
  EXPECT_NE(other.find("mlc-chat-config.json"), std::string::npos) << other;
}

// A record that no parameter is made of says that weights and configuration are of two models.
TEST(MlcFolder, WeightsThatNothingReadsAreRefused) {
  const fs::path model = reference_data("models/tiny/llama-a");
  TempFolder folder;
  convert(model, "int8-channel", folder.path());
  const Json chat = Json::parse(read_file(folder.path() / kMlcConfigFile));
  auto error_with = [&](const char* key, const Json& value) {
    Json changed = chat;
    changed["model_config"][key] = value;
    write_file(folder.path() / kMlcConfigFile, changed.dump());
    return error_of([&] { open_model(folder.path(), {.scheme = parse_scheme("int8-channel"), .threads = 1}); });
  };
  const int64_t layers = chat["model_config"]["num_hidden_layers"];
  EXPECT_EQ(error_with("num_hidden_layers", layers), "");
  EXPECT_NE(error_with("num_hidden_layers", layers - 1)
                .find(text("no part of the model is made of tensor model.layers.", layers - 1, ".")),
            std::string::npos);
  EXPECT_NE(error_with("tie_word_embeddings", true).find("no part of the model is made of tensor lm_head."),
            std::string::npos);
}

TEST(MlcFolder, SizesThatNoModelHasAreRefused) {
  TempFolder folder;
  convert(example(), "int8-channel", folder.path());
  const Json chat = Json::parse(read_file(folder.path() / kMlcConfigFile));
  std::vector<std::string> remarks;
  auto error_with = [&](const char* key, const Json& value) {
    Json changed = chat;
    changed[key] = value;
    write_file(folder.path() / kMlcConfigFile, changed.dump());
    remarks.clear();
    OpenOptions options{.scheme = parse_scheme("int8-channel"), .threads = 1};
    options.remark = [&](const std::string& words) { remarks.push_back(words); };
    return error_of([&] { open_model(folder.path(), options); });
  };
  for (const char* key :
       {"context_window_size", "prefill_chunk_size", "tensor_parallel_shards", "pipeline_parallel_stages"}) {
    EXPECT_NE(error_with(key, 0).find(text(key, " is 0")), std::string::npos) << key;
    EXPECT_NE(error_with(key, -5).find(text(key, " is -5")), std::string::npos) << key;
    EXPECT_NE(error_with(key, int64_t{1} << 40).find(key), std::string::npos) << key;
  }
  for (const char* key : {"context_window_size", "prefill_chunk_size"}) {
    EXPECT_EQ(error_with(key, -1), "");  // not stated
    Json model = chat["model_config"];
    model[key] = -5;
    EXPECT_NE(error_with("model_config", model).find(text("model_config.", key, " is -5")), std::string::npos) << key;
  }
  EXPECT_EQ(error_with("tensor_parallel_shards", 1), "");
  EXPECT_EQ(remarks, std::vector<std::string>());
  EXPECT_EQ(error_with("tensor_parallel_shards", 3), "");
  ASSERT_EQ(remarks.size(), 1);
  EXPECT_NE(remarks[0].find("is for 3 devices (tensor_parallel_shards"), std::string::npos);
}

/// What a change of one folder of MLC-LLM's own leads to.
std::string error_of_mlc(const char* name, const std::function<void(Json& chat, Json& index)>& change) {
  const fs::path from = reference_data(std::string("models/mlc/") + name);
  TempFolder folder;
  fs::copy(from, folder.path(), fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  Json chat = Json::parse(read_file(from / kMlcConfigFile)), index = Json::parse(read_file(from / "tensor-cache.json"));
  change(chat, index);
  write_file(folder.path() / kMlcConfigFile, chat.dump());
  write_file(folder.path() / "tensor-cache.json", index.dump());
  return error_of([&] {
    const Checkpoint checkpoint = Checkpoint::open(folder.path(), read_model_config(folder.path()));
    for (const StoredWeight& w : checkpoint.weights()) values_of(w);
    require_sources(program_of(folder.path(), {.scheme = scheme_for(folder.path(), {})}).params, checkpoint);
  });
}

TEST(MlcFolder, OfMlcItselfIsRefusedInWords) {
  auto record = [](Json& index, const std::string& name) -> Json& {
    for (Json& r : index["records"][0]["records"])
      if (r["name"] == name) return r;
    throw std::runtime_error(name);
  };
  const std::string qkv = "model.layers.0.self_attn.qkv_proj";
  auto error = [](auto change) { return error_of_mlc("q4f16_0-mistral", change); };
  EXPECT_EQ(error([](Json&, Json&) {}), "");
  EXPECT_NE(error([](Json& chat, Json&) { chat["quantization"] = "q4f16_ft"; }).find("permuted for one kind of GPU"),
            std::string::npos);
  EXPECT_NE(error([](Json& chat, Json&) { chat["quantization"] = "q4f16_1"; }).find("as the configuration says"),
            std::string::npos);
  EXPECT_NE(error([](Json& chat, Json&) {
              chat["quantization"] = "q4f16_autoawq";
            }).find("holds codes that q4f16_autoawq has not"),
            std::string::npos);
  EXPECT_NE(error([&](Json&, Json& index) {
              record(index, qkv + ".q_scale")["name"] = "other.q_scale";
            }).find(qkv + ".q_scale is missing"),
            std::string::npos);
  EXPECT_NE(error([&](Json&, Json& index) {
              record(index, qkv + ".q_scale")["dtype"] = "bfloat16";
            }).find(qkv + ".q_scale is bfloat16"),
            std::string::npos);
  EXPECT_NE(error([](Json& chat, Json&) { chat["model_config"]["num_key_value_heads"] = 4; }).find("has 64 outputs"),
            std::string::npos);
  EXPECT_NE(error_of_mlc("q4f16_1-mixtral", [](Json& chat, Json&) { chat["model_config"]["num_local_experts"] = 2; })
                .find("has 288 outputs"),
            std::string::npos);
  EXPECT_NE(error([](Json& chat, Json&) { chat["model_config"]["num_hidden_layers"] = 0; }).find("num_hidden_layers"),
            std::string::npos);
  EXPECT_NE(error([&](Json&, Json& index) {
              record(index, "model.norm.weight")["name"] = "model.layers.1.input_layernorm.weight";
            }).find("no tensor \"model.norm.weight\""),
            std::string::npos);
  auto one_more = [&](const std::string& name) {
    return error([&](Json&, Json& index) {
      Json more = record(index, "model.norm.weight");
      more["name"] = name;
      index["records"][0]["records"].push_back(more);
    });
  };
  EXPECT_NE(one_more("model.layers.1.input_layernorm.weight").find("is made of tensor model.layers.1.input_layernorm"),
            std::string::npos);
  EXPECT_NE(one_more("model.layers.1.mlp.down_proj.q_scale").find("is a part of model.layers.1.mlp.down_proj.q_weight"),
            std::string::npos);
}

// MLC-LLM's GPT-2 repeats its embedding as a head; another head contradicts the configuration.
TEST(MlcFolder, OfMlcItselfWithATiedHead) {
  for (const char* name : {"q0f16-gpt2", "q4f16_1-gpt2"})
    EXPECT_EQ(error_of_mlc(name, [](Json&, Json&) {}), "") << name;
  for (const char* name : {"q4f16_0-mistral", "q4f16_2-llama"}) {
    const std::string error =
        error_of_mlc(name, [](Json& chat, Json&) { chat["model_config"]["tie_word_embeddings"] = true; });
    EXPECT_NE(error.find("holds lm_head.weight, and tie_word_embeddings is true"), std::string::npos) << name << error;
  }
}

}  // namespace
}  // namespace sator::llm
