// Whole models against reference results that were computed elsewhere (torch, f32).
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/float16.h"
#include "base/json.h"
#include "engine/evaluate.h"
#include "engine/generate.h"
#include "engine/tokenizer/tokenizer.h"
#include "llm/open.h"
#include "reference_data.h"
#include "temp_folder.h"

namespace sator::llm {
namespace {

fs::path example() { return fs::path(SATOR_SOURCE_DIR) / "examples" / "gpt2-stories"; }

/// Compiled models of a test run are kept in a folder of their own.
class Home : public testing::Environment {
 public:
  void SetUp() override {
    home_ = fs::temp_directory_path() / text("sator-model-test-", static_cast<int64_t>(::getpid()));
    ::setenv("SATOR_HOME", home_.c_str(), 1);
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(home_, ignored);
  }

 private:
  fs::path home_;
};
const auto* const kHome = testing::AddGlobalTestEnvironment(new Home);

std::vector<int32_t> ids_of(const SafeTensor& t) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < t.elements(); ++i) {
    if (t.dtype == i64) {
      int64_t v;
      std::memcpy(&v, t.bytes.data() + 8 * i, 8);
      ids.push_back(static_cast<int32_t>(v));
    } else {
      int32_t v;
      std::memcpy(&v, t.bytes.data() + 4 * i, 4);
      ids.push_back(v);
    }
  }
  return ids;
}

fs::path reference_model(const std::string& name) { return reference_data("models/" + name); }

/// The largest difference of our logits to the reference's, over all sequences of a file.
///   all   the reference has every position's logits; else only the last one's
double largest_difference(const fs::path& folder, const fs::path& file, bool all, std::optional<int64_t> chunk = {},
                          const std::optional<Scheme>& scheme = {}, const std::optional<fs::path>& adapter = {}) {
  OpenOptions options{.adapter = adapter};
  if (scheme) options.scheme = *scheme;
  options.program.prefill_chunk = chunk;
  OpenModel opened = open_model(folder, options);
  Session session = opened.session();
  SafeTensors expected = SafeTensors::open(file);
  double largest = 0;
  int sequences = 0;
  for (const SafeTensor& t : expected.tensors()) {
    if (!t.name.starts_with("input_ids_")) continue;
    std::string number = t.name.substr(10);
    const SafeTensor& want = expected.get((all ? "logits_" : "last_logits_") + number);
    std::vector<int32_t> ids = ids_of(t);
    int64_t vocab = opened.limits.vocab_size, last = static_cast<int64_t>(ids.size()) - 1;
    session.reset();
    session.append_all(ids, [&](int64_t i, std::span<const float> row) {
      if (!all && i != last) return;
      for (int64_t v = 0; v < vocab; ++v) {
        float w;
        std::memcpy(&w, want.bytes.data() + 4 * ((all ? i * vocab : 0) + v), 4);
        largest = std::max(largest, std::fabs(static_cast<double>(row[static_cast<size_t>(v)]) - w));
      }
    });
    // The last token's logits alone, prefilled and decoded token by token, are the same numbers.
    session.reset();
    std::span<const float> prefilled = session.append(ids);
    std::vector<float> at_once(prefilled.begin(), prefilled.end());
    session.reset();
    std::span<const float> decoded;
    for (int32_t id : ids) decoded = session.append({&id, 1});
    for (size_t v = 0; v < at_once.size(); ++v)
      largest = std::max(largest, std::fabs(static_cast<double>(at_once[v]) - decoded[v]));
    ++sequences;
  }
  EXPECT_GE(sequences, 3);
  return largest;
}

/// The same of a model that lies beside its reference.
double tiny_difference(const char* name, std::optional<int64_t> chunk = {}) {
  const fs::path folder = reference_model(text("tiny/", name));
  return largest_difference(folder, folder / "expected.safetensors", true, chunk);
}

// The references' own distance to a float64 run is 1e-6 to 3e-5 (their README); logits spread over 1.5 to 5.
TEST(Model, TinyGpt2Logits) { EXPECT_LT(tiny_difference("gpt2-a"), 1e-4); }
TEST(Model, TinyGpt2LogitsInChunksOfFive) { EXPECT_LT(tiny_difference("gpt2-a", 5), 1e-4); }
TEST(Model, TinyLlamaLogits) { EXPECT_LT(tiny_difference("llama-a"), 1e-4); }

/// A family and its model of random weights, each of which makes the family's own parts visible.
class TinyFamilies : public testing::TestWithParam<const char*> {};
TEST_P(TinyFamilies, LogitsOfTransformers) {
  if (!fs::exists(reference_model(text("tiny/", GetParam())) / "model.safetensors"))
    GTEST_SKIP() << "its weights are among the complete sets alone: ./dev test --reference DIR";
  EXPECT_LT(tiny_difference(GetParam()), 1e-4);
}
INSTANTIATE_TEST_SUITE_P(Model, TinyFamilies,
                         testing::Values("qwen2-a", "phi3-a", "opt-a", "starcoder2-a", "gemma2-a", "falcon-a"));

double largest_logit(const fs::path& file) {
  double largest = 0;
  const SafeTensors expected = SafeTensors::open(file);
  for (const SafeTensor& t : expected.tensors())
    if (t.name.starts_with("logits_"))
      for (float v : to_f32(t.bytes, t.dtype)) largest = std::max(largest, std::fabs(static_cast<double>(v)));
  return largest;
}

/// References in float64 (tools/make_family_references.py): the distance is ours, up to the rounding of float32.
class Families : public testing::TestWithParam<const char*> {
 protected:
  void expect_near(std::optional<int64_t> chunk) {
    const fs::path folder = reference_model(text("families/", GetParam())), file = folder / "expected.safetensors";
    const double largest = largest_logit(file);
    EXPECT_GT(largest, 1);
    EXPECT_LE(largest_difference(folder, file, true, chunk), 2e-5 * largest + 1e-5);
  }
};
TEST_P(Families, LogitsOfTransformers) {
  expect_near({});
  // Chunks are the cache's business: a window, a scaled rotary embedding, linear biases and layers that differ stand for all.
  // The last chunk has two tokens: of experts, fewer rows than there are experts.
  static const std::set<std::string> kInChunks = {
      "mistral", "phi3-longrope", "bloom", "gemma3", "cohere2", "qwen3-moe", "gpt-oss", "deepseek-v3"};
  if (kInChunks.contains(GetParam())) expect_near(5);
}
INSTANTIATE_TEST_SUITE_P(Model, Families,
                         testing::Values("qwen2", "qwen3", "mistral", "phi3-longrope", "llama-yarn", "gemma", "gemma2",
                                         "opt", "opt-350m", "starcoder2", "olmo2", "granite", "stablelm",
                                         "stablelm-parallel", "gemma3", "smollm3", "glm4", "cohere", "cohere-qk-norm",
                                         "cohere2", "phi", "gpt-neox", "gpt-neox-sequential", "gptj", "falcon-7b",
                                         "falcon-40b", "falcon-11b", "falcon-rw", "bloom", "qwen2-moe", "qwen3-moe",
                                         "mixtral", "gpt-oss", "deepseek-v2", "deepseek-v3"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// Transformers 5.24 gives the logits of the untied model too where config.json says otherwise (seen to 3e-7).
TEST(Model, AHeadThatDiffersIsNotTied) {
  const fs::path from = reference_model("families/mistral"), file = from / "expected.safetensors";
  const TempFolder folder;
  fs::copy_file(from / "model.safetensors", folder.path() / "model.safetensors");
  nlohmann::json config = nlohmann::json::parse(read_file(from / "config.json"));
  config["tie_word_embeddings"] = true;
  folder.write("config.json", config.dump());
  EXPECT_LE(largest_difference(folder.path(), file, true, {}), 2e-5 * largest_logit(file) + 1e-5);
}

// A text of many windows: in steps that give pages back, and in one step, which gives back none.
TEST(Model, LayersWithAWindowForget) {
  for (const char* family : {"mistral", "gemma3"}) {
    SCOPED_TRACE(family);
    const fs::path from = reference_model(text("families/", family));
    const TempFolder folder;
    fs::copy_file(from / "model.safetensors", folder.path() / "model.safetensors");
    nlohmann::json config = nlohmann::json::parse(read_file(from / "config.json"));
    config["max_position_embeddings"] = 500;
    folder.write("config.json", config.dump());
    OpenModel opened = open_model(folder.path(), {});
    Session session = opened.session();
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < 400; ++i) ids.push_back(3 + i * i % 89);
    const std::span<const float> once = session.append(ids);
    const std::vector<float> want(once.begin(), once.end());
    session.reset();
    std::span<const float> got;
    for (size_t at = 0; at < ids.size(); at += at < 350 ? 50 : 1)
      got = session.append(std::span(ids).subspan(at, at < 350 ? 50 : 1));
    double largest = 0, difference = 0;
    for (size_t v = 0; v < want.size(); ++v) {
      largest = std::max(largest, std::fabs(static_cast<double>(want[v])));
      difference = std::max(difference, std::fabs(static_cast<double>(want[v]) - got[v]));
    }
    EXPECT_LE(difference, 2e-5 * largest + 1e-5);
    EXPECT_EQ(session.keep(395), 395);
    session.append(std::span(ids).subspan(395));
    EXPECT_EQ(session.keep(100), 0);  // what position 100 sees is gone
    EXPECT_EQ(session.position(), 0);
  }
}

/// Codes of other programs, packed by a script of NumPy (tools/make_quantized_references.py), kept as they are; and the values
/// that they stand for as a checkpoint of floats.
class StoredCodes : public testing::TestWithParam<const char*> {};
TEST_P(StoredCodes, LogitsOfTransformers) {
  const fs::path folder = reference_model(text("quantized/", GetParam())), file = folder / "expected.safetensors";
  const double bound = 2e-5 * largest_logit(file) + 1e-5;
  const Scheme own = scheme_for(folder, {});
  ASSERT_TRUE(own.stored);
  // Seven matrices of two layers; of experts two of each, which are three.
  EXPECT_EQ(own.stored->codes.size(), own.name == "mxfp4" ? 12 : 14);
  EXPECT_LE(largest_difference(folder, file, true, {}, own), bound);
  // Of each layout one: the values as floats.
  if (const std::string name = GetParam(); name.ends_with("-asym") || name.ends_with("order") || name == "awq-int4" ||
                                           name == "mxfp4" || name == "fp8-block")
    EXPECT_LE(largest_difference(folder, file, true, {}, parse_scheme("f32")), bound);
}
INSTANTIATE_TEST_SUITE_P(Model, StoredCodes,
                         testing::Values("gptq-int4", "gptq-int4-asym", "gptq-int4-v2", "gptq-int4-v2-unsaid",
                                         "gptq-int4-act-order", "gptq-int3", "gptq-int8", "awq-int4", "packed-int4",
                                         "packed-int4-asym", "packed-int8", "packed-int4-act-order", "fp8-block",
                                         "fp8-tensor", "fp8-channel", "mxfp4"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// The text part of a model of pictures, by the names that Transformers 4 wrote, and those that 5 has.
TEST(Model, TheTextPartOfAModelOfPictures) {
  const fs::path from = reference_model("families/gemma3"), file = from / "expected.safetensors";
  const TempFolder folder;
  folder.write("config.json",
               Json{{"model_type", "gemma3"},
                    {"vision_config", {{"hidden_size", 16}}},
                    {"text_config", Json::parse(read_file(from / "config.json"))}}
                   .dump());
  for (const char* prefix : {"language_model.model.", "model.language_model."}) {
    std::vector<SafeTensor> tensors;
    const SafeTensors given = SafeTensors::open_folder(from);
    for (SafeTensor t : given.tensors()) {
      ASSERT_TRUE(t.name.starts_with("model.")) << t.name;
      t.name = prefix + t.name.substr(6);
      tensors.push_back(std::move(t));
    }
    tensors.push_back(tensors.front());
    tensors.back().name = "vision_tower.vision_model.head.probe";
    write_safetensors(folder.path() / "model.safetensors", tensors);
    EXPECT_LE(largest_difference(folder.path(), file, true), 2e-5 * largest_logit(file) + 1e-5) << prefix;
  }
}

// GPTQModel's rules "-:" leave layers out: the tensors say which. Here one holds the values of its codes.
TEST(Model, LayersThatRulesLeaveOutAreFloats) {
  const fs::path from = reference_model("quantized/gptq-int4");
  const std::string layer = "model.layers.1.mlp.down_proj.";
  const SafeTensors given = SafeTensors::open_folder(from);
  const Checkpoint checkpoint = Checkpoint::open(from, read_model_config(from));
  const StoredWeight& codes = checkpoint.get(layer + "weight");
  const std::vector<float> values = values_of(codes);
  std::vector<SafeTensor> tensors;
  for (const SafeTensor& t : given.tensors())
    if (!t.name.starts_with(layer)) tensors.push_back(t);
  tensors.push_back(
      {.name = layer + "weight", .dtype = f32, .shape = codes.shape, .bytes = std::as_bytes(std::span(values))});
  const TempFolder folder;
  write_safetensors(folder.path() / "model.safetensors", tensors);
  Json config = Json::parse(read_file(from / "config.json"));
  auto write_rule = [&](const char* rule, const Json& as) {
    config["quantization_config"]["dynamic"] = {{rule, as}};
    folder.write("config.json", config.dump());
  };
  write_rule("-:.*1.mlp.down.*", Json::object());
  const Scheme own = scheme_for(folder.path(), {});
  ASSERT_TRUE(own.stored);
  EXPECT_EQ(own.stored->codes.size(), 13);
  const fs::path file = from / "expected.safetensors";
  EXPECT_LE(largest_difference(folder.path(), file, true, {}, own), 2e-5 * largest_logit(file) + 1e-5);
  write_rule("+:.*up.*", {{"bits", 8}});
  EXPECT_NE(error_of([&] { read_model_config(folder.path()); }).find("gives some layers a format of their own"),
            std::string::npos);
}

/// Folders as MLC-LLM writes them, one for each of its schemes and for other names of layers (tools/make_mlc_references.py).
class MlcFolders : public testing::TestWithParam<const char*> {};
TEST_P(MlcFolders, LogitsOfTransformers) {
  const std::string name = GetParam();
  const fs::path folder = reference_model("mlc/" + name), file = folder / "expected.safetensors";
  const double bound = 2e-5 * largest_logit(file) + 1e-5;
  const Scheme own = scheme_for(folder, {});
  ASSERT_TRUE(own.stored);
  EXPECT_EQ(own.stored->codes.empty(), name.starts_with("q0"));
  EXPECT_EQ(own.remark.empty(), name.starts_with("q"));
  EXPECT_LE(largest_difference(folder, file, true, {}, own), bound);
  // The values as floats.
  if (name == "q3f16_0-llama" || name == "q4f16_autoawq-llama")
    EXPECT_LE(largest_difference(folder, file, true, {}, parse_scheme("f32")), bound);
}
INSTANTIATE_TEST_SUITE_P(Model, MlcFolders,
                         testing::Values("q0f16-gpt2", "q0f32-gemma", "q3f16_0-llama", "q3f16_1-gemma",
                                         "q4f16_0-mistral", "q4f16_1-qwen2", "q4f16_1-gpt2", "q4f16_1-mixtral",
                                         "q4f16_2-llama", "q4bf16_1-qwen3", "q4f32_1-llama", "q4f16_autoawq-llama",
                                         "e4m3-llama", "fp8-block-qwen3"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });
/// W + s B A by a script (tools/make_quantized_references.py): a Llama, and a GPT-2 with rslora and weights [in, out].
TEST(Model, AdaptersAreAddedToTheWeights) {
  for (const char* name : {"llama", "gpt2"}) {
    const fs::path adapter = reference_model(text("quantized/adapter-", name)), file = adapter / "expected.safetensors";
    const fs::path folder = reference_model(text("tiny/", name, "-a"));
    EXPECT_LE(largest_difference(folder, file, true, {}, {}, adapter), 2e-5 * largest_logit(file) + 1e-5) << name;
    EXPECT_GT(largest_difference(folder, file, true), 0.1) << name;
  }
}
// A file of Qwen 3 that calls itself a Llama has norms of queries and keys, of which a Llama has none.
TEST(Model, AGgufFileHoldsItsModelAlone) {
  TempFolder folder;
  std::string bytes = read_file(reference_model("gguf/qwen3.gguf"));
  for (size_t at; (at = bytes.find("qwen3")) != bytes.npos;) bytes.replace(at, 5, "llama");
  write_file(folder.path() / "m.gguf", bytes);
  const fs::path file = folder.path() / "m.gguf";
  const std::string error = error_of([&] { open_model(file, {.scheme = scheme_for(file, {})}); });
  EXPECT_NE(error.find("no part of the model is made of tensor"), std::string::npos) << error;
  EXPECT_NE(error.find("q_norm"), std::string::npos) << error;
}
/// A GGUF file of float32 tensors.
class GgufWriter {
 public:
  void add(const std::string& key, uint32_t value) { field(key, 4), number(keys_, value); }
  void add(const std::string& key, float value) { field(key, 6), number(keys_, value); }
  void add(const std::string& key, const std::string& value) { field(key, 8), words(keys_, value); }
  void add(const std::string& key, const std::vector<bool>& values) {
    field(key, 9), number(keys_, uint32_t{7}), number(keys_, uint64_t{values.size()});
    for (bool value : values) number(keys_, value);
  }
  void add(const std::string& name, const std::vector<int64_t>& shape, const std::vector<float>& values) {
    words(tensors_, name), number(tensors_, static_cast<uint32_t>(shape.size()));
    for (auto dim = shape.rbegin(); dim != shape.rend(); ++dim) number(tensors_, *dim);
    number(tensors_, uint32_t{0}), number(tensors_, uint64_t{data_.size()});
    data_.append(reinterpret_cast<const char*>(values.data()), 4 * values.size());
    data_.resize((data_.size() + 31) / 32 * 32);
    ++tensor_count_;
  }
  std::string bytes() const {
    std::string out = "GGUF";
    number(out, uint32_t{3}), number(out, tensor_count_), number(out, key_count_);
    out += keys_ + tensors_;
    out.resize((out.size() + 31) / 32 * 32);
    return out + data_;
  }

 private:
  template <typename T>
  static void number(std::string& to, T value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  static void words(std::string& to, const std::string& value) { number(to, uint64_t{value.size()}), to += value; }
  void field(const std::string& key, uint32_t type) { words(keys_, key), number(keys_, type), ++key_count_; }

  std::string keys_, tensors_, data_;
  uint64_t key_count_ = 0, tensor_count_ = 0;
};

/// The last token's logits.
std::vector<float> last_logits(const fs::path& model, std::span<const int32_t> ids) {
  Session session = open_model(model, {.scheme = scheme_for(model, {})}).session();
  const std::span<const float> logits = session.append(ids);
  return {logits.begin(), logits.end()};
}

/// What a converter does to the values of a tensor, by its name in GGUF. False: it has written what it makes of them.
using Conversion =
    std::function<bool(const std::string& name, const std::vector<int64_t>& shape, std::vector<float>& values)>;

/// Adds the tensors of a folder under GGUF's names. Norms grow by `in_norms`.
void add_tensors(GgufWriter& gguf, const fs::path& folder, const std::map<std::string, std::string>& norms,
                 float in_norms, const Conversion& convert = {}) {
  std::map<std::string, std::string> names = {{"model.embed_tokens", "token_embd"},
                                              {"lm_head", "output"},
                                              {"model.norm", "output_norm"},
                                              {"self_attn.q_norm", "attn_q_norm"},
                                              {"self_attn.k_norm", "attn_k_norm"},
                                              {"self_attn.q_proj", "attn_q"},
                                              {"self_attn.k_proj", "attn_k"},
                                              {"self_attn.v_proj", "attn_v"},
                                              {"self_attn.o_proj", "attn_output"},
                                              {"mlp.gate_proj", "ffn_gate"},
                                              {"mlp.up_proj", "ffn_up"},
                                              {"mlp.gate_up_proj", "ffn_up"},
                                              {"mlp.down_proj", "ffn_down"},
                                              {"input_layernorm", "attn_norm"}};
  names.insert(norms.begin(), norms.end());
  const SafeTensors given = SafeTensors::open_folder(folder);
  for (const SafeTensor& t : given.tensors()) {
    const size_t dot = t.name.rfind('.');
    std::string name = t.name.substr(0, dot), block;
    for (const std::string prefix : {"model.layers.", "transformer.h."})
      if (name.starts_with(prefix)) {
        const size_t end = name.find('.', prefix.size());
        block = text("blk.", name.substr(prefix.size(), end - prefix.size()), ".");
        name = name.substr(end + 1);
        break;
      }
    std::vector<float> values = to_f32(t.bytes, t.dtype);
    if (t.name.ends_with("norm.weight"))
      for (float& v : values) v += in_norms;
    const std::string called = text(block, names.at(name), t.name.substr(dot));
    if (!convert || convert(called, t.shape, values)) gguf.add(called, t.shape, values);
  }
}

/// Begins a file with the numbers of a config.json that all have.
GgufWriter begun(const std::string& architecture, const Json& config) {
  GgufWriter gguf;
  gguf.add("general.architecture", architecture);
  gguf.add("general.file_type", uint32_t{0});
  for (const auto& [key, hf] : {std::pair{"context_length", "max_position_embeddings"},
                                {"embedding_length", "hidden_size"},
                                {"block_count", "num_hidden_layers"},
                                {"feed_forward_length", "intermediate_size"},
                                {"attention.head_count", "num_attention_heads"},
                                {"attention.head_count_kv", "num_key_value_heads"}})
    gguf.add(text(architecture, ".", key), config.at(hf).get<uint32_t>());
  return gguf;
}

// The random Gemma 3 as llama.cpp's converter writes it: norms hold 1 + w, scores are scaled by head_dim, and keys stand where its
// gemma3.cpp reads them. Its config.json gives the same logits.
TEST(Model, AGgufOfGemma3) {
  const fs::path from = reference_model("families/gemma3");
  const TempFolder folder;
  Json config = Json::parse(read_file(from / "config.json"));
  config["query_pre_attn_scalar"] = 10;  // its head_dim
  config["final_logit_softcapping"] = 3.0;
  folder.write("config.json", config.dump());
  fs::copy_file(from / "model.safetensors", folder.path() / "model.safetensors");
  GgufWriter gguf = begun("gemma3", config);
  for (const char* key : {"key", "value"}) gguf.add(text("gemma3.attention.", key, "_length"), uint32_t{10});
  gguf.add("gemma3.attention.sliding_window", uint32_t{6});
  gguf.add("gemma3.attention.sliding_window_pattern", std::vector<bool>{true, false, true});
  gguf.add("gemma3.attention.layer_norm_rms_epsilon", 1e-6f);
  gguf.add("gemma3.final_logit_softcapping", 3.f);
  gguf.add("gemma3.rope.freq_base", 50000.f);
  gguf.add("gemma3.rope.freq_base_swa", 300.f);
  gguf.add("gemma3.rope.scaling.type", std::string("linear"));
  gguf.add("gemma3.rope.scaling.factor", 4.f);
  add_tensors(gguf,
              from,
              {{"post_attention_layernorm", "post_attention_norm"},
               {"pre_feedforward_layernorm", "ffn_norm"},
               {"post_feedforward_layernorm", "post_ffw_norm"}},
              1);
  const fs::path file = folder.write("m.gguf", gguf.bytes());
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 40; ++i) ids.push_back((i * 37 + 11) % 97);
  const std::vector<float> want = last_logits(folder.path(), ids), got = last_logits(file, ids);
  ASSERT_EQ(want.size(), got.size());
  for (size_t v = 0; v < want.size(); ++v) EXPECT_NEAR(want[v], got[v], 1e-4) << v;
}

// Other families whose tensors llama.cpp's converter leaves as they are.
TEST(Model, AGgufOfCohere2AndGlm4) {
  for (const std::string family : {"cohere2", "glm4"}) {
    SCOPED_TRACE(family);
    const fs::path from = reference_model("families/" + family), file = from / "expected.safetensors";
    const Json config = Json::parse(read_file(from / "config.json"));
    GgufWriter gguf = begun(family, config);
    const double theta = config["rope_parameters"]["rope_theta"], head_dim = config["head_dim"];
    gguf.add(family + ".rope.freq_base", static_cast<float>(theta));
    for (const char* key : {"key", "value"})
      gguf.add(text(family, ".attention.", key, "_length"), static_cast<uint32_t>(head_dim));
    if (family == "cohere2") {
      std::vector<bool> slides;
      for (const Json& type : config["layer_types"]) slides.push_back(type == "sliding_attention");
      gguf.add("cohere2.attention.sliding_window", config["sliding_window"].get<uint32_t>());
      gguf.add("cohere2.attention.sliding_window_pattern", slides);
      gguf.add("cohere2.attention.layer_norm_epsilon", config["layer_norm_eps"].get<float>());
      gguf.add("cohere2.logit_scale", config["logit_scale"].get<float>());
    } else {
      const double share = config["rope_parameters"]["partial_rotary_factor"];
      gguf.add("glm4.rope.dimension_count", static_cast<uint32_t>(head_dim * share));
      gguf.add("glm4.attention.layer_norm_rms_epsilon", config["rms_norm_eps"].get<float>());
    }
    add_tensors(gguf,
                from,
                {{"post_self_attn_layernorm", "post_attention_norm"},
                 {"post_attention_layernorm", "ffn_norm"},
                 {"post_mlp_layernorm", "post_ffw_norm"}},
                0);
    const TempFolder folder;
    const fs::path made = folder.write("m.gguf", gguf.bytes());
    EXPECT_LE(largest_difference(made, file, true, {}, scheme_for(made, {})), 2e-5 * largest_logit(file) + 1e-5);
  }
}

/// The largest difference of a file's last logits to those of a folder.
double difference_of_files(const fs::path& folder, const fs::path& file) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 40; ++i) ids.push_back((i * 37 + 11) % 97);
  const std::vector<float> want = last_logits(folder, ids), got = last_logits(file, ids);
  double largest = want.size() == got.size() ? 0 : 1e9;
  for (size_t v = 0; v < want.size() && v < got.size(); ++v)
    largest = std::max(largest, std::fabs(static_cast<double>(want[v]) - got[v]));
  return largest;
}

/// Rows of a matrix, or elements of a vector, in another order.
std::vector<float> in_order(const std::vector<float>& values, const std::vector<int64_t>& order) {
  const size_t width = values.size() / order.size();
  std::vector<float> out;
  for (int64_t row : order) {
    const auto from = values.begin() + row * static_cast<ptrdiff_t>(width);
    out.insert(out.end(), from, from + static_cast<ptrdiff_t>(width));
  }
  return out;
}

// Command-R: with norms of queries and keys, and without; the head is the embedding.
TEST(Model, AGgufOfCommandR) {
  for (const char* name : {"cohere", "cohere-qk-norm"}) {
    SCOPED_TRACE(name);
    const fs::path from = reference_model(text("families/", name)), file = from / "expected.safetensors";
    const Json config = Json::parse(read_file(from / "config.json"));
    GgufWriter gguf = begun("command-r", config);
    gguf.add("command-r.rope.freq_base", 500000.f);
    gguf.add("command-r.rope.scaling.type", std::string("none"));
    gguf.add("command-r.attention.layer_norm_epsilon", 1e-5f);
    gguf.add("command-r.logit_scale", config["logit_scale"].get<float>());
    add_tensors(gguf, from, {}, 0);
    const TempFolder folder;
    const fs::path made = folder.write("m.gguf", gguf.bytes());
    EXPECT_LE(largest_difference(made, file, true, {}, scheme_for(made, {})), 2e-5 * largest_logit(file) + 1e-5);
  }
}

// BLOOM's queries, keys and values of each head stand apart in the file.
TEST(Model, AGgufOfBloom) {
  const fs::path from = reference_model("families/bloom"), file = from / "expected.safetensors";
  GgufWriter gguf;
  gguf.add("general.architecture", std::string("bloom"));
  for (const auto& [key, value] : {std::pair{"context_length", 64},
                                   {"embedding_length", 60},
                                   {"feed_forward_length", 240},
                                   {"block_count", 2},
                                   {"attention.head_count", 6},
                                   {"attention.head_count_kv", 6}})
    gguf.add(text("bloom.", key), static_cast<uint32_t>(value));
  gguf.add("bloom.attention.layer_norm_epsilon", 1e-5f);
  std::vector<int64_t> order;
  for (int64_t part = 0; part < 3; ++part)
    for (int64_t head = 0; head < 6; ++head)
      for (int64_t i = 0; i < 10; ++i) order.push_back(head * 30 + part * 10 + i);
  add_tensors(gguf,
              from,
              {{"transformer.word_embeddings", "token_embd"},
               {"transformer.word_embeddings_layernorm", "token_embd_norm"},
               {"transformer.ln_f", "output_norm"},
               {"self_attention.query_key_value", "attn_qkv"},
               {"self_attention.dense", "attn_output"},
               {"post_attention_layernorm", "ffn_norm"},
               {"mlp.dense_h_to_4h", "ffn_up"},
               {"mlp.dense_4h_to_h", "ffn_down"}},
              0,
              [&](const std::string& name, const std::vector<int64_t>&, std::vector<float>& values) {
                if (name.find("attn_qkv") != name.npos) values = in_order(values, order);
                return true;
              });
  const TempFolder folder;
  const fs::path made = folder.write("m.gguf", gguf.bytes());
  EXPECT_LE(largest_difference(made, file, true, {}, scheme_for(made, {})), 2e-5 * largest_logit(file) + 1e-5);
}

// SmolLM3 as llama.cpp knows it: every fourth layer is not rotated. The fourth of this is the first once more. Rows of queries and keys
// are those of neighbouring pairs.
TEST(Model, AGgufOfSmolLm3) {
  const fs::path from = reference_model("families/smollm3");
  const TempFolder folder;
  Json config = Json::parse(read_file(from / "config.json"));
  config["num_hidden_layers"] = 4;
  for (const char* key : {"no_rope_layers", "no_rope_layer_interval", "layer_types"}) config.erase(key);
  folder.write("config.json", config.dump());
  const SafeTensors given = SafeTensors::open_folder(from);
  std::vector<SafeTensor> tensors(given.tensors().begin(), given.tensors().end());
  for (SafeTensor t : given.tensors())
    if (t.name.starts_with("model.layers.0.")) t.name.replace(13, 1, "3"), tensors.push_back(t);
  write_safetensors(folder.path() / "model.safetensors", tensors);
  GgufWriter gguf = begun("smollm3", config);
  gguf.add("smollm3.rope.freq_base", 2e6f);
  gguf.add("smollm3.rope.dimension_count", uint32_t{16});
  gguf.add("smollm3.attention.layer_norm_rms_epsilon", 1e-6f);
  add_tensors(gguf,
              folder.path(),
              {{"post_attention_layernorm", "ffn_norm"}},
              0,
              [](const std::string& name, const std::vector<int64_t>& shape, std::vector<float>& values) {
                if (name.find("attn_q.") == name.npos && name.find("attn_k.") == name.npos) return true;
                std::vector<int64_t> order;
                for (int64_t row = 0; row < shape[0]; ++row)
                  order.push_back(row - row % 16 + row % 2 * 8 + row % 16 / 2);
                values = in_order(values, order);
                return true;
              });
  const fs::path file = folder.write("m.gguf", gguf.bytes());
  EXPECT_LE(difference_of_files(folder.path(), file), 1e-5);
  config["no_rope_layer_interval"] = 8;
  folder.write("config.json", config.dump());
  EXPECT_GT(difference_of_files(folder.path(), file), 1e-2);
}

// Phi 2, its queries, keys and values apart, and as one as files of the model's first program have them.
TEST(Model, AGgufOfPhi2) {
  const fs::path from = reference_model("families/phi");
  const TempFolder folder;
  Json config = Json::parse(read_file(from / "config.json"));
  config["qk_layernorm"] = false;
  folder.write("config.json", config.dump());
  const SafeTensors given = SafeTensors::open_folder(from);
  std::vector<SafeTensor> tensors;
  for (const SafeTensor& t : given.tensors())
    if (t.name.find("q_layernorm") == t.name.npos && t.name.find("k_layernorm") == t.name.npos) tensors.push_back(t);
  write_safetensors(folder.path() / "model.safetensors", tensors);
  for (const bool as_one : {false, true}) {
    GgufWriter gguf = begun("phi2", config);
    gguf.add("phi2.rope.dimension_count", uint32_t{8});
    gguf.add("phi2.attention.layer_norm_epsilon", 1e-5f);
    std::map<std::string, std::vector<float>> parts;
    add_tensors(gguf,
                folder.path(),
                {{"model.final_layernorm", "output_norm"},
                 {"self_attn.dense", "attn_output"},
                 {"mlp.fc1", "ffn_up"},
                 {"mlp.fc2", "ffn_down"}},
                0,
                [&](const std::string& name, const std::vector<int64_t>&, std::vector<float>& values) {
                  const bool is_part =
                      as_one &&
                      (name[6] == 'a' && (name[11] == 'q' || name[11] == 'k' || name[11] == 'v') && name[12] == '.');
                  if (is_part) parts[name] = values;
                  return !is_part;
                });
    for (const auto& [name, queries] : parts) {
      if (name[11] != 'q') continue;
      std::vector<float> all = queries;
      for (const char* part : {"k", "v"}) {
        std::string other = name;
        other.replace(11, 1, part);
        all.insert(all.end(), parts.at(other).begin(), parts.at(other).end());
      }
      std::string called = name;
      called.replace(11, 1, "qkv");
      if (name.ends_with(".bias"))
        gguf.add(called, {144}, all);
      else
        gguf.add(called, {144, 48}, all);
    }
    EXPECT_LE(difference_of_files(folder.path(), folder.write("m.gguf", gguf.bytes())), 1e-5);
  }
}

/// The tensors of a DeepSeek: experts in one, keys and values of each head apart (`by_head`) or as the checkpoint has them.
void add_deepseek_tensors(GgufWriter& gguf, const fs::path& from, bool by_head) {
  std::map<std::string, std::vector<float>> stacks;
  std::map<std::string, std::string> names = {{"post_attention_layernorm", "ffn_norm"},
                                              {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
                                              {"self_attn.kv_a_layernorm", "attn_kv_a_norm"},
                                              {"self_attn.kv_b_proj", "attn_kv_b"},
                                              {"mlp.gate", "ffn_gate_inp"}};
  for (const auto& [hf, role] : {std::pair{"gate_proj", "gate"}, {"up_proj", "up"}, {"down_proj", "down"}}) {
    names[text("mlp.shared_experts.", hf)] = text("ffn_", role, "_shexp");
    for (int e = 0; e < 12; ++e) names[text("mlp.experts.", e, ".", hf)] = text("ffn_", role, "#", e);
  }
  add_tensors(
      gguf, from, names, 0, [&](const std::string& name, const std::vector<int64_t>&, std::vector<float>& values) {
        if (name.find("#") != name.npos) {
          stacks[name] = values;
          return false;
        }
        const size_t at = name.find("attn_kv_b");
        if (at == name.npos || !by_head) return true;
        // Of 10 rows of a head's key and 12 of its value, 18 numbers each.
        std::vector<float> keys, value_rows;
        for (size_t head = 0; head < 3; ++head) {
          for (size_t c = 0; c < 18; ++c)
            for (size_t r = 0; r < 10; ++r) keys.push_back(values[(head * 22 + r) * 18 + c]);
          for (size_t i = 0; i < 12 * 18; ++i) value_rows.push_back(values[(head * 22 + 10) * 18 + i]);
        }
        gguf.add(name.substr(0, at) + "attn_k_b.weight", {3, 18, 10}, keys);
        gguf.add(name.substr(0, at) + "attn_v_b.weight", {3, 12, 18}, value_rows);
        return false;
      });
  for (const char* layer : {"1", "2"})
    for (const char* role : {"gate", "up", "down"}) {
      std::vector<float> all;
      for (int e = 0; e < 12; ++e) {
        const std::vector<float>& one = stacks.at(text("blk.", layer, ".ffn_", role, "#", e, ".weight"));
        all.insert(all.end(), one.begin(), one.end());
      }
      const bool down = role == std::string("down");
      gguf.add(text("blk.", layer, ".ffn_", role, "_exps.weight"), {12, down ? 42 : 22, down ? 22 : 42}, all);
    }
}

// DeepSeek-V2 without groups, whose score llama.cpp makes in another way, and with one mscale, which is all that files hold. What
// config.json says gives the same logits; so does a file of a time when keys and values of all heads were one tensor.
TEST(Model, AGgufOfDeepseekV2) {
  const fs::path from = reference_model("families/deepseek-v2");
  const TempFolder folder;
  Json config = Json::parse(read_file(from / "config.json"));
  config["topk_method"] = "greedy";
  config["rope_parameters"]["mscale"] = 1.2;
  folder.write("config.json", config.dump());
  fs::copy_file(from / "model.safetensors", folder.path() / "model.safetensors");
  for (const bool by_head : {true, false}) {
    SCOPED_TRACE(by_head);
    Json written = config;
    if (by_head) written["num_key_value_heads"] = 1;
    GgufWriter gguf = begun("deepseek2", written);
    auto add = [&](const char* key, uint32_t value) { gguf.add(text("deepseek2.", key), value); };
    add("attention.kv_lora_rank", 18), add("rope.dimension_count", 8);
    add("attention.key_length", by_head ? 26 : 18), add("attention.value_length", by_head ? 18 : 12);
    if (by_head) add("attention.key_length_mla", 18), add("attention.value_length_mla", 12);
    add("leading_dense_block_count", 1), add("expert_count", 12), add("expert_used_count", 3);
    add("expert_feed_forward_length", 22), add("expert_shared_count", 2);
    gguf.add("deepseek2.expert_weights_scale", 1.7f);
    gguf.add("deepseek2.attention.layer_norm_rms_epsilon", 1e-6f);
    gguf.add("deepseek2.rope.freq_base", 10000.f);
    gguf.add("deepseek2.rope.scaling.type", std::string("yarn"));
    gguf.add("deepseek2.rope.scaling.factor", 4.f);
    add("rope.scaling.original_context_length", 16);
    gguf.add("deepseek2.rope.scaling.yarn_log_multiplier", 0.12f);
    add_deepseek_tensors(gguf, from, by_head);
    EXPECT_LE(difference_of_files(folder.path(), folder.write("m.gguf", gguf.bytes())), 2e-5);
  }
}

TEST(Model, AdaptersOfAnotherKindAreRefused) {
  TempFolder folder;
  const fs::path from = reference_model("quantized/adapter-llama"), model = reference_model("tiny/llama-a");
  fs::copy(from, folder.path(), fs::copy_options::recursive);
  Json config = Json::parse(read_file(from / "adapter_config.json"));
  auto error_with = [&](const char* key, const Json& value) {
    Json changed = config;
    changed[key] = value;
    write_file(folder.path() / "adapter_config.json", changed.dump());
    return error_of([&] { open_model(model, {.adapter = folder.path()}); });
  };
  EXPECT_NE(error_with("use_dora", true).find("use_dora is given"), std::string::npos);
  EXPECT_NE(error_with("peft_type", "IA3").find("no LoRA"), std::string::npos);
  EXPECT_NE(error_with("bias", "all").find("trained biases"), std::string::npos);
  EXPECT_NE(error_with("rank_pattern", {{"q_proj", 8}}).find("rank_pattern is given"), std::string::npos);
  EXPECT_NE(error_with("use_some_day", true).find("use_some_day is given"), std::string::npos);
  EXPECT_NE(error_with("init_lora_weights", "pissa").find("training changed the model's own weights"),
            std::string::npos);
  // How a layer holds its weight, the model knows: PEFT corrects the flag too. What does nothing is no error.
  for (const auto& [key, value] : {std::pair<const char*, Json>{"fan_in_fan_out", true},
                                   {"init_lora_weights", "gaussian"},
                                   {"use_some_day", false},
                                   {"layer_replication", nullptr},
                                   {"rank_pattern", Json::object()}})
    EXPECT_EQ(error_with(key, value), "") << key;
  EXPECT_NE(error_of([&] { open_model(model, {.adapter = model}); }).find("holds no adapter"), std::string::npos);
  write_file(folder.path() / "adapter_config.json", config.dump());
  write_safetensors(folder.path() / "adapter_model.safetensors", {});
  EXPECT_NE(error_of([&] { open_model(model, {.adapter = folder.path()}); }).find("the adapter would change nothing"),
            std::string::npos);
  EXPECT_NE(error_of([&] { open_model(reference_model("tiny/gpt2-a"), {.adapter = from}); }).find("there is no tensor"),
            std::string::npos);
  const fs::path quantized = reference_model("quantized/gptq-int4");
  EXPECT_NE(error_of([&] {
              open_model(quantized, {.scheme = scheme_for(quantized, {}), .adapter = from});
            }).find("holds codes"),
            std::string::npos);
}

/// GGUF files as llama.cpp's package writes them (tools/make_gguf_references.py): each matrix of another block format.
class Gguf : public testing::TestWithParam<const char*> {};
TEST_P(Gguf, LogitsOfTransformers) {
  const fs::path file = reference_model(text("gguf/", GetParam(), ".gguf"));
  fs::path expected = file;
  expected.replace_extension(".safetensors");
  const double bound = 2e-5 * largest_logit(expected) + 1e-5;
  const Scheme own = scheme_for(file, {});
  ASSERT_TRUE(own.stored);
  EXPECT_EQ(own.name, "Q4_K_M");
  EXPECT_LE(largest_difference(file, expected, true, {}, own), bound);
  if (const std::string name = GetParam(); name == "llama" || name == "gpt2" || name == "gpt-oss")
    EXPECT_LE(largest_difference(file, expected, true, {}, parse_scheme("f32")), bound);
}
INSTANTIATE_TEST_SUITE_P(Model, Gguf,
                         testing::Values("llama", "llama3-rope", "qwen2", "qwen3", "gemma2", "phi3", "gpt2",
                                         "starcoder2", "olmo2", "granite", "stablelm", "qwen2moe", "qwen3moe",
                                         "mixtral", "mixtral-by-expert", "gpt-oss", "gptneox", "falcon", "deepseek2"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });
// Sizes as the makers state them: every tensor of a family is there once, in its shape.
TEST(Model, ParametersOfPublishedModels) {
  struct Row {
    const char* name;
    double billions, active = 0;  // of experts those that a token takes
  };
  for (const Row& row : {Row{"gemma-2-27b", 27.23},
                         Row{"gemma-7b", 8.54},
                         Row{"granite-3.1-8b", 8.17},
                         Row{"mistral-7b", 7.24},
                         Row{"mixtral-8x7b", 46.70, 12.88},
                         Row{"olmo-2-13b", 13.72},
                         Row{"opt-66b", 65.72},
                         Row{"phi-3-medium", 13.96},
                         Row{"qwen1.5-moe-a2.7b", 14.32, 2.69},
                         Row{"qwen2.5-7b", 7.62},
                         Row{"qwen3-30b-a3b", 30.53, 3.35},
                         Row{"qwen3-8b", 8.19},
                         Row{"stablelm-2-1.6b", 1.64},
                         Row{"starcoder2-15b", 15.96},
                         Row{"gemma-3-27b", 27.01},  // without the part that sees
                         Row{"smollm3-3b", 3.075},
                         Row{"glm-4-9b", 9.40},
                         Row{"command-r-plus", 103.81},
                         Row{"command-r7b", 8.03},
                         Row{"phi-2", 2.78},
                         Row{"gpt-neox-20b", 20.555},
                         Row{"gpt-j-6b", 6.053},
                         // The files of these hold the tied head a second time: 7.217 and 41.836.
                         Row{"falcon-7b", 6.922},
                         Row{"falcon-40b", 41.303},
                         Row{"falcon-rw-1b", 1.312},
                         Row{"bloom-176b", 176.247},
                         // Active ones with the embedding, of which the maker leaves 0.579 out.
                         Row{"gpt-oss-20b", 20.91, 4.19},
                         Row{"gpt-oss-120b", 116.83, 5.71},
                         // Active ones with embedding and head; the makers leave the embedding out (2.4, 21, 37).
                         Row{"deepseek-v2-lite", 15.706, 2.661},
                         Row{"deepseek-v2", 235.743, 21.375},
                         Row{"deepseek-v3", 671.028, 37.550}}) {
    const ModelConfig config = read_model_config(reference_model(text("published/", row.name)));
    double count = 0, active = 0;
    for (const ParamSpec& p : build_program(config, parse_scheme("f16")).params) {
      double elements = 1;
      for (int64_t d : p.shape) elements *= static_cast<double>(d);
      count += elements;
      active += elements * p.read_share;
    }
    EXPECT_NEAR(count / 1e9, row.billions, 0.005) << row.name;
    EXPECT_NEAR(active / 1e9, row.active > 0 ? row.active : row.billions, 0.005) << row.name;
  }
}
TEST(Model, TrainedQwen3Logits) {
  const fs::path folder = reference_model("qwen3-tiny");
  EXPECT_LT(largest_difference(folder, folder / "expected.safetensors", true), 2e-4);
}
TEST(Model, StoriesLogits) {
  const fs::path expected = reference_model("gpt2-stories") / "expected_logits.safetensors";
  EXPECT_LT(largest_difference(example(), expected, false), 2e-4);
}

double perplexity_of(const fs::path& folder, const std::string& scheme, int64_t windows) {
  OpenOptions options;
  options.scheme = parse_scheme(scheme);
  options.program.cache_dtype = f32;  // the references keep keys and values as they are computed
  OpenModel model = open_model(folder, options);
  Session session = model.session();
  std::vector<int32_t> stream = token_stream_of(folder, example() / "validation.txt");
  return evaluate_perplexity(session, windows_of(stream, kWindowTokens, windows), [](int64_t) {}).perplexity();
}

// quant_reference.json of the model: first 32 windows, torch.
TEST(Model, PerplexityOfQuantizedWeights) {
  EXPECT_NEAR(perplexity_of(example(), "f32", 32), 32.46836805, 3e-4);
  EXPECT_NEAR(perplexity_of(example(), "int8-channel", 32), 32.45962448, 5e-4);
  EXPECT_NEAR(perplexity_of(example(), "int4-group32", 32), 35.49332292, 5e-4);
}

/// A checkpoint whose matrices have the values that a scheme's codes stand for, the rest rounded as the scheme stores it.
fs::path write_dequantized(const fs::path& from, const fs::path& folder, const Scheme& scheme) {
  fs::create_directories(folder);
  fs::copy_file(from / "config.json", folder / "config.json");
  const SafeTensors stored = SafeTensors::open_folder(from);
  std::vector<std::vector<float>> data;
  std::vector<SafeTensor> tensors;
  for (const SafeTensor& t : stored.tensors()) {
    std::vector<float>& out = data.emplace_back(to_f32(t.bytes, t.dtype));
    if (t.name.ends_with("_proj.weight"))
      out = dequantize(quantize(out, t.shape[0], t.shape[1], *scheme.linear));
    else
      out = to_f32(*to_dtype(out, {std::ssize(out)}, scheme.storage));
    tensors.push_back({t.name, f32, t.shape, std::as_bytes(std::span(out))});
  }
  write_safetensors(folder / "model.safetensors", tensors, {});
  return folder;
}

// Each expert's matrix is quantized by itself, whatever shares a scale; the product of its codes is that of their values.
TEST(Model, QuantizedExpertsAreTheValuesOfTheirCodes) {
  const fs::path original = reference_model("families/qwen3-moe");
  const std::vector<int32_t> ids = {3, 71, 15, 15, 92, 6, 53, 58, 97 - 1, 9, 32, 38};
  auto logits_of = [&](const fs::path& folder, const char* scheme) {
    OpenOptions options;
    options.scheme = parse_scheme(scheme);
    OpenModel model = open_model(folder, options);
    Session session = model.session();
    std::vector<float> all;
    session.append_all(ids,
                       [&](int64_t, std::span<const float> row) { all.insert(all.end(), row.begin(), row.end()); });
    return all;
  };
  for (const char* scheme : {"int8-tensor", "int6-input", "int5-group32-asym"}) {
    const TempFolder temp;
    const std::vector<float> own = logits_of(original, scheme),
                             want =
                                 logits_of(write_dequantized(original, temp.path() / "m", parse_scheme(scheme)), "f32");
    double largest = 0, difference = 0;
    for (size_t i = 0; i < own.size(); ++i) {
      largest = std::max(largest, std::fabs(static_cast<double>(want[i])));
      difference = std::max(difference, std::fabs(static_cast<double>(own[i]) - want[i]));
    }
    EXPECT_LE(difference, 2e-5 * largest + 1e-5) << scheme;
  }
}

/// The example with weights in bfloat16, rounded to nearest even.
fs::path write_bfloat16_example(const fs::path& folder) {
  fs::create_directories(folder);
  for (const char* file : {"tokenizer.json", "tokenizer_config.json", "generation_config.json"})
    if (fs::exists(example() / file)) fs::copy_file(example() / file, folder / file);
  Json config = parse_json(read_file(example() / "config.json"), "config.json");
  config["torch_dtype"] = config["dtype"] = "bfloat16";
  write_file(folder / "config.json", config.dump());
  const SafeTensors stored = SafeTensors::open_folder(example());
  std::vector<std::vector<uint16_t>> data;
  std::vector<SafeTensor> tensors;
  for (const SafeTensor& t : stored.tensors()) {
    std::vector<uint16_t>& out = data.emplace_back();
    for (int64_t i = 0; i < t.elements(); ++i) {
      uint16_t half;
      std::memcpy(&half, t.bytes.data() + 2 * i, 2);
      const uint32_t bits = std::bit_cast<uint32_t>(f16_to_f32(half));
      out.push_back(static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16));
    }
    tensors.push_back({t.name, bf16, t.shape, std::as_bytes(std::span(out))});
  }
  write_safetensors(folder / "model.safetensors", tensors, {});
  return folder;
}

// The same of a checkpoint in bfloat16, where weights half a step from two codes are common: reference/bfloat16_perplexity.json.
TEST(Model, PerplexityOfQuantizedBfloat16Weights) {
  const TempFolder temp;
  const fs::path folder = write_bfloat16_example(temp.path() / "bfloat16");
  const Json reference =
      parse_json(read_file(fs::path(SATOR_SOURCE_DIR) / "tests/llm/reference/bfloat16_perplexity.json"),
                 "bfloat16_perplexity.json");
  ASSERT_EQ(reference["perplexity"].size(), 3u);
  for (const auto& [scheme, perplexity] : reference["perplexity"].items())
    EXPECT_NEAR(perplexity_of(folder, scheme, reference["windows"].get<int64_t>()), perplexity.get<double>(), 5e-4)
        << scheme;
}

/// Greedy tokens after each prompt of a reference, in which no step's two best logits are closer than rounding.
///   →   how many tokens were compared
size_t compare_greedy(const fs::path& folder, const Json& prompts, const char* tokens_key) {
  OpenModel model = open_model(folder, {});
  Session session = model.session();
  size_t tokens = 0;
  for (const Json& item : prompts) {
    const std::vector<int32_t> prompt = item.at("input_ids"), want = item.at(tokens_key);
    session.reset();
    std::vector<int32_t> got;
    generate(session, prompt, {.max_tokens = static_cast<int64_t>(want.size())}, [&](int32_t id) {
      got.push_back(id);
      return true;
    });
    EXPECT_EQ(got, want) << folder;
    tokens += want.size();
  }
  return tokens;
}

TEST(Model, GreedyTextIsTheReferences) {
  const auto expected = [](const char* name) {
    return parse_json(read_file(reference_model(name) / "expected.json"), name);
  };
  // Five prompts of 64 tokens, three of eight; the margins are 0.006 and more.
  EXPECT_EQ(compare_greedy(example(), expected("gpt2-stories"), "greedy64_ids"), 320u);
  for (const char* name : {"tiny/gpt2-a", "tiny/llama-a"})
    EXPECT_EQ(compare_greedy(reference_model(name), expected(name)["sequences"], "greedy8"), 24u) << name;
}

TEST(Model, MistakesAreSaidInWords) {
  OpenModel model = open_model(example(), {});
  Session session = model.session();
  auto message = [&](std::vector<int32_t> ids) {
    try {
      session.append(ids);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(message({}).find("no token"), std::string::npos);
  EXPECT_NE(message({8192}).find("outside of the vocabulary"), std::string::npos);
  EXPECT_NE(message(std::vector<int32_t>(513, 1)).find("context window"), std::string::npos);
  EXPECT_TRUE(message({1, 2, 3}).empty());  // and the session goes on
  OpenOptions options;
  options.scheme = parse_scheme("int8-channel+a8-tensor");
  try {
    open_model(example(), options);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("--calibration"), std::string::npos);
  }
}

}  // namespace
}  // namespace sator::llm
