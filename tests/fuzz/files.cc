// ./dev fuzz files: damaged safetensors, config.json and tokenizer.json files. Each must be read or refused with an Error;
// a crash, an InternalError or a hang is a finding. What is read must also hold together.

#include <unistd.h>

#include <iostream>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/app.h"
#include "engine/sampling.h"
#include "engine/tokenizer/tokenizer.h"
#include "frontend/hf_config.h"
#include "frontend/safetensors.h"

namespace sator {
namespace {

/// Random damage to a file's bytes.
class Damage {
 public:
  explicit Damage(uint64_t seed) : random_(seed) {}

  size_t below(size_t n) { return n == 0 ? 0 : random_.next() % n; }

  std::string apply(std::string bytes) {
    for (size_t steps = below(4); steps-- > 0;) step(bytes);
    return bytes;
  }

  /// Bytes of which many are no UTF-8.
  std::string text() {
    static const std::string_view kParts[] = {"a",
                                              "he",
                                              " ",
                                              "\n",
                                              "'s",
                                              "12",
                                              "\xc3\xa9",
                                              "\xe2\x96\x81",
                                              "\xf0\x9f\x98\x80",
                                              "e\xcc\x81",
                                              "<s>",
                                              "\xff",
                                              "\xe2\x82",
                                              "\xed\xa0\x80"};
    std::string out;
    for (size_t n = below(40); n-- > 0;) out += kParts[below(std::size(kParts))];
    return out;
  }

 private:
  void step(std::string& bytes) {
    static const std::string_view kInserts[] = {"-1",
                                                "0",
                                                "1e999",
                                                "18446744073709551616",
                                                "9223372036854775807",
                                                "null",
                                                "true",
                                                "\"\"",
                                                "{}",
                                                "[]",
                                                "[[",
                                                "{\"a\":",
                                                "\\u0000",
                                                "\xff",
                                                ",",
                                                "F8_E4M3"};
    size_t at = below(bytes.size() + 1);
    switch (below(6)) {
      case 0: bytes.resize(at); break;
      case 1:
        if (at < bytes.size()) bytes[at] = static_cast<char>(random_.next());
        break;
      case 2: bytes.insert(at, kInserts[below(std::size(kInserts))]); break;
      case 3: bytes.erase(at, below(20)); break;
      case 4: bytes.insert(at, bytes.substr(below(bytes.size() + 1), below(60))); break;
      case 5:  // a number, or whatever stands there, by another
        bytes.replace(at, std::min<size_t>(1 + below(3), bytes.size() - at), kInserts[below(5)]);
        break;
    }
  }

  Random random_;
};

std::string tensor_file(const fs::path& scratch) {
  std::vector<std::byte> data(24);
  SafeTensor tensors[] = {{"model.a", f32, {2, 2}, std::span(data).first(16)},
                          {"b", i64, {1}, std::span(data).last(8)}};
  write_safetensors(scratch, tensors, {{"format", "pt"}});
  return read_file(scratch);
}

constexpr std::string_view kConfig = R"({"model_type":"llama","vocab_size":100,"hidden_size":48,"intermediate_size":96,
"num_hidden_layers":2,"num_attention_heads":6,"num_key_value_heads":2,"eos_token_id":[7,8],"torch_dtype":"bfloat16",
"rope_scaling":{"rope_type":"llama3","factor":8.0,"low_freq_factor":1,"high_freq_factor":4,"original_max_position_embeddings":64}})";

constexpr std::string_view kTokenizer = R"json({"added_tokens":[
{"id":9,"content":"<s>","special":true,"lstrip":true,"rstrip":true},
{"id":5,"content":"he","normalized":true,"single_word":true}],
"normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},
{"type":"Replace","pattern":{"Regex":"[a-z&&[^b]]{2,3}+|\\s+(?!\\S)"},"content":"x"},{"type":"Strip","strip_left":true}]},
"pre_tokenizer":{"type":"Sequence","pretokenizers":[
{"type":"Split","pattern":{"Regex":"(?i:'s)|[^\\s\\p{L}]?\\p{L}+|\\W"},"behavior":"MergedWithNext","invert":false},
{"type":"Metaspace","replacement":"_","prepend_scheme":"first"}]},
"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},{"Sequence":{"id":"A"}}],
"special_tokens":{"<s>":{"id":"<s>","ids":[9],"tokens":["<s>"]}}},
"decoder":{"type":"Sequence","decoders":[{"type":"ByteFallback"},{"type":"Strip","content":" ","start":1,"stop":1},{"type":"Fuse"}]},
"model":{"type":"BPE","unk_token":"<unk>","byte_fallback":true,"fuse_unk":true,
"vocab":{"<unk>":0,"a":1,"h":2,"e":3,"_":4,"he":5,"_he":6,"<0xC3>":7,"x":8},"merges":["h e",["_","he"]]}})json";

void require(bool holds, std::string_view what) {
  if (!holds) internal_error(text("does not hold: ", what));
}

void read_tensors(const fs::path& file) {
  SafeTensors tensors = SafeTensors::open(file);
  for (const SafeTensor& t : tensors.tensors())
    require(static_cast<size_t>(t.elements() * t.dtype.bytes()) == t.bytes.size(), "a tensor's bytes are its shape's");
}

void read_tokenizer(const fs::path& file, Damage& damage) {
  Tokenizer tokenizer = Tokenizer::from_json(read_file(file));
  for (int i = 0; i < 4; ++i) {
    std::vector<int32_t> ids = tokenizer.encode(damage.text(), i % 2 == 0);
    std::string text = tokenizer.decode(ids, i < 2);
    require(tokenizer.encode(text).size() <= 1000 + 100 * text.size(), "ids of a text are bounded");
    StreamDecoder stream(tokenizer);
    for (int32_t id : ids) stream.push(id);
    stream.finish();
  }
}

void one_case(uint64_t seed, const fs::path& folder) {
  Damage damage(seed);
  fs::path file = folder / "file";
  try {
    switch (damage.below(3)) {
      case 0: write_file(file, damage.apply(tensor_file(file))), read_tensors(file); break;
      case 1: write_file(file, damage.apply(std::string(kConfig))), read_model_config(file); break;
      case 2: write_file(file, damage.apply(std::string(kTokenizer))), read_tokenizer(file, damage); break;
    }
  } catch (const Error& error) {
    require(*error.what() != '\0', "an error has words");
  }
}

cli::Command command() {
  static int64_t seed = 1, count = INT64_MAX;
  return {.name = "fuzz_files",
          .does = "reads damaged model files until one is neither read nor refused",
          .options = {{"--seed N", "of the first case", &seed}, {"--count N", "how many cases", &count}},
          .run = [](cli::Streams& io) {
            fs::path folder = fs::temp_directory_path() / text("sator_fuzz_files_", static_cast<int64_t>(::getpid()));
            for (int64_t i = 0; i < count; ++i) {
              uint64_t now = static_cast<uint64_t>(seed + i);
              if (i % 10'000 == 0) io.notes << text("case ", i, ", seed ", now, "\n") << std::flush;
              try {
                one_case(now, folder);
              } catch (const std::exception& finding) {
                internal_error(text(
                    finding.what(), "\n  repeat: --seed ", now, " --count 1; the file: ", (folder / "file").string()));
              }
            }
            fs::remove_all(folder);
          }};
}

}  // namespace
}  // namespace sator

int main(int argc, char** argv) {
  return sator::cli::run_single({argv + 1, argv + argc}, sator::command(), std::cin, std::cout, std::cerr);
}
