#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/unicode.h"
#include "frontend/gguf.h"
#include "frontend/hf_config.h"
#include "frontend/mlc_config.h"
#include "frontend/safetensors.h"
#include "fuzz/readers/readers.h"
#include "llm/checkpoint.h"
#include "llm/gguf_codes.h"
#include "llm/mlc_weights.h"

namespace sator::fuzz {
namespace {

void check_tensors(const SafeTensors& file) {
  for (const SafeTensor& t : file.tensors())
    require(static_cast<size_t>(t.elements() * t.dtype.bytes()) == t.bytes.size(), "a tensor's bytes are its shape's");
}

/// Two float32 numbers under a name: "{"NAME":{"dtype":"F32",...}}" behind its length.
std::string small_shard(const std::string& name) {
  const std::string header = "{\"" + name + "\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";
  std::string out(8, '\0');
  out[0] = static_cast<char>(header.size());
  return out + header + std::string(8, 'x');
}

constexpr std::string_view kSmallTokenizer =
    R"json({"added_tokens":[{"id":4,"content":"<s>","special":true}],"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},
"decoder":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2,"c":3},"merges":["a b"]}})json";

/// replaced   how many bytes may stand in place of one: the file's size where it has a table of replacements
void use(const Tokenizer& tokenizer, std::string_view sample, size_t replaced = 0) {
  const std::vector<int32_t> ids = tokenizer.encode(sample, true);
  require(is_valid_utf8(tokenizer.decode(ids)), "decoded text is UTF-8");
  require(ids.size() <= 100 + (100 + replaced) * sample.size(), "ids of a text are bounded");
  StreamDecoder stream(tokenizer);
  for (int32_t id : ids) require(is_valid_utf8(stream.push(id)), "streamed text is UTF-8");
  require(is_valid_utf8(stream.finish()), "the rest of streamed text is UTF-8");
  tokenizer.decode(std::vector<int32_t>{-1, 0, 1, 1 << 20, INT32_MAX, INT32_MIN}, true);
}

/// Values of all that is small, once more by their names.
void use_weights(const llm::Checkpoint& checkpoint) {
  for (const llm::StoredWeight& w : checkpoint.weights()) {
    require(checkpoint.find(w.name) != nullptr, "a weight has its name");
    if (w.elements() > 1 << 20 || !(w.format || llm::is_storage_dtype(w.dtype))) continue;
    require(std::ssize(values_of(w)) == w.elements(), "values are as many as the shape says");
  }
}

}  // namespace

void read_safetensors(std::string_view bytes, const fs::path& folder) {
  put_file(folder / "model.safetensors", bytes);
  check_tensors(SafeTensors::open(folder / "model.safetensors"));
}

void read_gguf(std::string_view bytes, const fs::path& folder) {
  const fs::path path = folder / "m.gguf";
  put_file(path, bytes);
  const GgufFile file = GgufFile::open(path);
  for (const GgufTensor& t : file.tensors()) {
    const llm::GgufFormat* format = llm::gguf_format(t.type->name);
    if (format && t.shape.size() == 2 && t.bytes.size() < 1 << 20) dequantize(read_gguf_codes(t, *format, {}));
  }
  if (file.find_value("tokenizer.ggml.model")) use(load_tokenizer(path), "ab\n a<s>");
  const ModelConfig config = read_model_config(path);
  use_weights(llm::Checkpoint::open(path, config));
}

/// A byte that says how (method, bits, symmetric, groups of 32), then model.safetensors.
void read_stored_codes(std::string_view bytes, const fs::path& folder) {
  const auto how = static_cast<unsigned char>(bytes.empty() ? 0 : bytes[0]);
  constexpr int kBits[] = {2, 3, 4, 8};
  ModelConfig config;
  config.quantization = StoredQuantization{.method = static_cast<StoredQuantization::Method>(how & 3),
                                           .bits = kBits[how >> 2 & 3],
                                           .group = how & 32 ? 32 : 0,
                                           .symmetric = (how & 16) != 0,
                                           .block_rows = how & 16 ? 24 : 0,
                                           .zeros_less_one = (how & 64) == 0};
  put_file(folder / "model.safetensors", bytes.substr(std::min<size_t>(1, bytes.size())));
  use_weights(llm::Checkpoint::open(folder, config));
}

void read_safetensors_index(std::string_view bytes, const fs::path& folder) {
  put_file(folder / "s1.safetensors", small_shard("a"));
  put_file(folder / "s2.safetensors", small_shard("b"));
  put_file(folder / "model.safetensors.index.json", bytes);
  check_tensors(SafeTensors::open_folder(folder));
}

void read_config(std::string_view bytes, const fs::path& folder) {
  put_file(folder / "config.json", bytes);
  read_model_config(folder);
}

void read_generation_config_file(std::string_view bytes, const fs::path& folder) {
  put_file(folder / "generation_config.json", bytes);
  read_generation_config(folder);
}

void read_mlc_config_file(std::string_view bytes, const fs::path& folder) {
  put_file(folder / kMlcConfigFile, bytes);
  read_mlc_model(folder);
  read_model_config(folder);
}

void read_mlc_index(std::string_view bytes, const fs::path& folder) {
  const std::vector<std::string> texts = texts_of(bytes, 2);
  put_file(folder / "params_shard_0.bin", texts[1].empty() ? std::string(64, 'x') : texts[1]);
  put_file(folder / "tensor-cache.json", texts[0]);
  llm::MlcWriter(folder, true);  // takes what an earlier conversion wrote for its own
  const llm::MlcWeights weights = llm::MlcWeights::open(folder);
  const std::vector<llm::ParamSpec> spec = {{.name = "a", .shape = {2, 2}, .dtype = f32}};
  weights.params(spec);
  weights.verify();
}

/// A byte that says which scheme, then tensor-cache.json and its shard, of a Llama.
void read_mlc_codes(std::string_view bytes, const fs::path& folder) {
  constexpr const char* kSchemes[] = {"q4f16_1",
                                      "q4f16_0",
                                      "q3f16_1",
                                      "q4f32_1",
                                      "q4f16_autoawq",
                                      "e4m3_e4m3_f16",
                                      "fp8_e4m3fn_bf16_block_scale",
                                      "q0f16"};
  const std::string scheme = kSchemes[bytes.empty() ? 0 : static_cast<unsigned char>(bytes[0]) % std::size(kSchemes)];
  const std::vector<std::string> texts = texts_of(bytes.substr(std::min<size_t>(1, bytes.size())), 2);
  put_file(folder / "params_shard_0.bin", texts[1]);
  put_file(folder / "tensor-cache.json", texts[0]);
  put_file(
      folder / kMlcConfigFile,
      text(R"({"model_type":"llama","vocab_size":5,"quantization":")",
           scheme,
           R"(","model_config":{"hidden_size":8,"intermediate_size":8,"num_attention_heads":2,"num_key_value_heads":1,
                "num_hidden_layers":1,"head_dim":4,"rms_norm_eps":1e-5,"context_window_size":16}})"));
  use_weights(llm::Checkpoint::open(folder, read_model_config(folder)));
}

void read_tokenizer(std::string_view bytes, const fs::path&) {
  const Tokenizer tokenizer = Tokenizer::from_json(bytes);
  for (std::string_view sample :
       {"", "he's 12 \xc3\xa9\n\n", "a <s>\xe2\x96\x81 b  \xf0\x9f\x98\x80", "e\xcc\x81\xff\xe2\x82 x\xed\xa0\x80"})
    use(tokenizer, sample, bytes.size());
}

/// SentencePiece's file, or ranks of tiktoken.
void read_tokenizer_model(std::string_view bytes, const fs::path& folder) {
  put_file(folder / "tokenizer.model", bytes);
  put_file(folder / "tokenizer_config.json", R"({"bos_token":"<s>","pat_str":"\\w+|\\W"})");
  const Tokenizer tokenizer = Tokenizer::load(folder);
  for (std::string_view sample : {"", "he's 12 \xc3\xa9\n\n", "a <s>\xe2\x96\x81 b  \xf0\x9f\x98\x80\xff"})
    use(tokenizer, sample, bytes.size());
}

void read_tokenizer_config(std::string_view bytes, const fs::path& folder) {
  put_file(folder / "tokenizer.json", kSmallTokenizer);
  put_file(folder / "tokenizer_config.json", bytes);
  use(Tokenizer::load(folder), "ab<s>c");
}

void read_vocab_and_merges(std::string_view bytes, const fs::path& folder) {
  constexpr const char* kNames[] = {
      "vocab.json", "merges.txt", "tokenizer_config.json", "added_tokens.json", "special_tokens_map.json"};
  const std::vector<std::string> texts = texts_of(bytes, std::size(kNames));
  for (size_t i = 0; i < texts.size(); ++i)
    if (i < 2 || !texts[i].empty()) put_file(folder / kNames[i], texts[i]);
  use(Tokenizer::load(folder), "ab<s> c\xc3\xa9");
}

}  // namespace sator::fuzz
