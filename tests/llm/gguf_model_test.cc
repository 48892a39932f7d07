// Whole models from GGUF files, which llama.cpp's package wrote or the tests write as its converter does, against reference results.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json.h"
#include "llm/logits.h"
#include "llm/open.h"
#include "temp_folder.h"

namespace sator::llm {
namespace {

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

// Products of codes by inputs of integers, of all types of codes: the script's logits are of single tokens, whose inputs are far from ties,
// and its attention rounds nothing.
TEST(GgufCodes, MeetInputsOfIntegers) {
  for (const char* name : {"llama", "qwen2", "gpt2", "qwen2moe"})
    for (const char* inputs : {"a8", "a8-group"}) {
      const fs::path file = reference_model(text("gguf/", name, ".gguf"));
      const fs::path expected = reference_model(text("gguf/", name, "-", inputs, ".safetensors"));
      const Scheme scheme = scheme_for(file, text("Q4_K_M+", inputs));
      EXPECT_LE(largest_difference(file, expected, true, {}, scheme, {}, f32), 2e-5 * largest_logit(expected) + 1e-5)
          << name << " " << inputs;
    }
  const fs::path file = reference_model("gguf/gpt2.gguf"), expected = reference_model("gguf/gpt2-a8.safetensors");
  EXPECT_GE(largest_difference(file, expected, true, {}, scheme_for(file, {})), 1e-3 * largest_logit(expected));
}

// A file states no dtype: its codes leave the cache float32, inputs of integers make it bfloat16.
TEST(GgufModel, CachesSixteenBitsBesideInputsOfIntegers) {
  const fs::path file = reference_model("gguf/gpt2.gguf");
  const ModelConfig config = read_model_config(file);
  EXPECT_EQ(cache_dtype_of(config, scheme_for(file, {}), {}), f32);
  EXPECT_EQ(cache_dtype_of(config, scheme_for(file, "f32"), {}), f32);
  EXPECT_EQ(cache_dtype_of(config, scheme_for(file, "Q4_K_M+a8-group"), {}), bf16);
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
  // Of a file of float32 the dtype is known.
  EXPECT_EQ(cache_dtype_of(read_model_config(file), parse_scheme("int8-channel+a8"), {}), f32);
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

}  // namespace
}  // namespace sator::llm
