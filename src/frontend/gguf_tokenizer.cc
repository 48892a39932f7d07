// The tokenizer of a GGUF file as the tokenizer.json that it was made from.
#include <algorithm>
#include <cmath>
#include <span>

#include "base/error.h"
#include "engine/tokenizer/unicode.h"
#include "frontend/gguf_model.h"

namespace sator {

namespace {

constexpr std::string_view kQwen2[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::string_view kLlama3[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::string_view kDeepseekLlm[] = {
    R"([\r\n])",
    R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)",
    R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)",
    R"(\s+$)",
    R"([一-龥ࠀ-一가-퟿]+)"};
constexpr std::string_view kDeepseekCoder[] = {
    R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", R"([一-龥ࠀ-一가-퟿]+)"};
constexpr std::string_view kDeepseekV3[] = {
    R"(\p{N}{1,3})",
    R"([一-龥぀-ゟ゠-ヿ]+)",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::string_view kBloom[] = {R"( ?[^(\s|[.,!?…。，、।۔،])]+)"};

/// How text is cut before byte-level BPE, by the name that llama.cpp gives it. Sources: the tokenizer.json of the models that files of
/// the name are made from.
struct Cutting {
  std::string_view pre;
  std::span<const std::string_view> patterns = {};  ///< before the bytes, one after the other; empty: GPT-2's own
  bool single_digits = false;                       ///< each digit by itself, behind the patterns, before GPT-2's own
  bool ignore_merges = false;                       ///< a piece that is a token is one
  bool nfc = false;
  bool falcon = false;    ///< punctuation apart before all; of the bytes' characters digits apart, by three
  bool adds_bos = false;  ///< where the file does not say
};
constexpr Cutting kCuttings[] = {{.pre = "gpt-2"},
                                 {.pre = "gpt2"},
                                 {.pre = "olmo", .nfc = true},
                                 {.pre = "phi-2"},
                                 {.pre = "jina-en"},
                                 {.pre = "llama-bpe", .patterns = kLlama3, .ignore_merges = true, .adds_bos = true},
                                 {.pre = "llama3", .patterns = kLlama3, .ignore_merges = true, .adds_bos = true},
                                 {.pre = "dbrx", .patterns = kLlama3},
                                 {.pre = "smaug-bpe", .patterns = kLlama3},
                                 {.pre = "qwen2", .patterns = kQwen2, .nfc = true},
                                 {.pre = "deepseek-r1-qwen", .patterns = kQwen2},
                                 {.pre = "deepseek-llm", .patterns = kDeepseekLlm, .single_digits = true},
                                 {.pre = "deepseek-coder", .patterns = kDeepseekCoder, .single_digits = true},
                                 {.pre = "deepseek-v3", .patterns = kDeepseekV3},
                                 {.pre = "stablelm2", .patterns = kQwen2},
                                 {.pre = "bloom", .patterns = kBloom},
                                 {.pre = "falcon", .falcon = true},
                                 {.pre = "starcoder", .single_digits = true},
                                 {.pre = "refact", .single_digits = true},
                                 {.pre = "command-r", .single_digits = true, .nfc = true},
                                 {.pre = "smollm", .single_digits = true},
                                 {.pre = "codeshell", .single_digits = true},
                                 {.pre = "exaone", .single_digits = true}};

// tokenizer.ggml.token_type
constexpr int64_t kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4;

[[noreturn]] void fail_at(const GgufFile& file, const std::string& key, const std::string& problem,
                          const std::string& needs) {
  fail({.what = text(file.path().string(), ": tokenizer.ggml.", key, " ", problem), .needs = needs});
}

const Json* find(const GgufFile& file, const std::string& key) { return file.find_value("tokenizer.ggml." + key); }

const Json& list(const GgufFile& file, const std::string& key, size_t size = 0) {
  const Json* v = find(file, key);
  if (!v || !v->is_array()) fail_at(file, key, "is missing", "a list");
  if (size > 0 && v->size() != size)
    fail_at(file, key, text("has ", v->size(), " entries"), text(size, ", one for each token"));
  return *v;
}

bool flag(const GgufFile& file, const std::string& key, bool otherwise) {
  const Json* v = find(file, key);
  return v && v->is_boolean() ? v->get<bool>() : otherwise;
}

/// Positions at which the characters of UTF-8 text begin, but its first.
std::vector<size_t> inner_boundaries(const std::string& s) {
  std::vector<size_t> out;
  for (size_t i = 1; i < s.size(); ++i)
    if ((static_cast<unsigned char>(s[i]) & 0xc0) != 0x80) out.push_back(i);
  return out;
}

/// SentencePiece joins the neighbours whose joint piece has the best score. As merges: every way to put a piece together
/// from two, in the order of the pieces' scores, those of one piece in the order of their parts' numbers.
/// Source: the conversion of SentencePiece models by which Mistral's and Llama 2's tokenizer.json were made.
Json merges_of_scores(const std::vector<std::string>& tokens, const Json& scores, const std::vector<int64_t>& types) {
  std::map<std::string_view, size_t> id_of;
  for (size_t i = 0; i < tokens.size(); ++i) id_of.emplace(tokens[i], i);
  struct Merge {
    double score;
    size_t whole, left, right;
  };
  std::vector<Merge> merges;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (types[i] != kNormal && types[i] != kUserDefined) continue;
    const std::string_view whole = tokens[i];
    for (size_t cut : inner_boundaries(tokens[i])) {
      const auto left = id_of.find(whole.substr(0, cut)), right = id_of.find(whole.substr(cut));
      if (left == id_of.end() || right == id_of.end()) continue;
      merges.push_back({scores[i].get<double>(), i, left->second, right->second});
    }
  }
  std::ranges::sort(merges, {}, [](const Merge& m) { return std::tuple(-m.score, m.whole, m.left, m.right); });
  Json out = Json::array();
  for (const Merge& m : merges) out.push_back(Json::array({tokens[m.left], tokens[m.right]}));
  return out;
}

Json replace(const char* from, const char* to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

void add_sentencepiece(const GgufFile& file, Json& out) {
  constexpr const char* kSpace = "\u2581";
  Json &model = out["model"], normalizers = Json::array();
  model["byte_fallback"] = model["fuse_unk"] = true;
  const bool prefix = flag(file, "add_space_prefix", true);
  if (prefix) normalizers.push_back({{"type", "Prepend"}, {"prepend", kSpace}});
  normalizers.push_back(replace(" ", kSpace));
  out["normalizer"] = {{"type", "Sequence"}, {"normalizers", normalizers}};
  Json decoders = Json::array({replace(kSpace, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}});
  if (prefix) decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  out["decoder"] = {{"type", "Sequence"}, {"decoders", decoders}};
}

const Cutting& cutting_of(const GgufFile& file) {
  const Json* pre = find(file, "pre");
  const std::string name = pre && pre->is_string() ? pre->get<std::string>() : "gpt-2";
  const Cutting* cutting = std::ranges::find(kCuttings, name, &Cutting::pre);
  if (cutting != std::end(kCuttings)) return *cutting;
  std::vector<std::string_view> known;
  for (const Cutting& c : kCuttings) known.push_back(c.pre);
  fail_at(file,
          "pre",
          text("is ", string_literal(name), ", a cutting of text that is not supported"),
          text("one of ", join(known, ", ")));
}

Json split_by(std::string_view pattern) {
  return {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}};
}
Json digits(bool single) { return {{"type", "Digits"}, {"individual_digits", single}}; }

void add_byte_level(const GgufFile& file, const Cutting& cutting, Json& out) {
  Json bytes = {
      {"type", "ByteLevel"}, {"add_prefix_space", flag(file, "add_space_prefix", false)}, {"use_regex", true}};
  out["decoder"] = bytes;
  bytes["use_regex"] = cutting.patterns.empty();
  Json steps = Json::array();
  if (cutting.falcon) steps.push_back({{"type", "Punctuation"}, {"behavior", "Contiguous"}});
  for (std::string_view pattern : cutting.patterns) steps.push_back(split_by(pattern));
  if (cutting.single_digits) steps.push_back(digits(true));
  steps.push_back(bytes);
  if (cutting.falcon) steps.push_back(digits(false)), steps.push_back(split_by("[0-9][0-9][0-9]"));
  out["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", steps}};
  if (cutting.nfc) out["normalizer"] = {{"type", "NFC"}};
  out["model"]["ignore_merges"] = cutting.ignore_merges;
}

}  // namespace

Json tokenizer_of_gguf(const GgufFile& file) {
  const Json* kind = find(file, "model");
  const std::string name = kind && kind->is_string() ? kind->get<std::string>() : "";
  if (name.empty() || name == "none" || name == "no_vocab")  // as llama.cpp calls it
    fail({.what = text(file.path().string(), " holds no tokenizer (tokenizer.ggml.model)"),
          .needs = "one, to read and write texts",
          .hint = "`sator logits` of --ids and `sator bench` run without; for texts take a file that holds one"});
  if (name != "gpt2" && name != "llama")
    fail_at(file, "model", text("is ", string_literal(name), ", which is not supported"), "gpt2 or llama");
  std::vector<std::string> tokens;
  for (const Json& t : list(file, "tokens")) {
    if (!t.is_string() || !is_valid_utf8(t.get_ref<const std::string&>()))
      fail_at(file, "tokens", text("has an entry that is no text, number ", tokens.size()), "texts in UTF-8");
    tokens.push_back(t.get<std::string>());
  }
  std::vector<int64_t> types(tokens.size(), kNormal);
  if (find(file, "token_type")) {
    const Json& given = list(file, "token_type", tokens.size());
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (!given[i].is_number_integer()) fail_at(file, "token_type", "has an entry that is no number", "numbers");
      types[i] = given[i].get<int64_t>();
    }
  }

  Json out, vocab = Json::object(), added = Json::array();
  std::optional<std::string> unknown;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!vocab.emplace(tokens[i], i).second) {
      // Padding of the vocabulary, which text never becomes.
      vocab.emplace(text(tokens[i], "#", i), i);
      continue;
    }
    if (types[i] == kUnknown) unknown = tokens[i];
    if (types[i] == kControl || types[i] == kUserDefined || types[i] == kUnknown)
      added.push_back(
          {{"id", i}, {"content", tokens[i]}, {"special", types[i] != kUserDefined}, {"normalized", false}});
  }
  out["model"] = {{"type", "BPE"}, {"unk_token", unknown ? Json(*unknown) : Json()}};
  bool adds_bos = true;
  if (name == "llama") {
    const Json& scores = list(file, "scores", tokens.size());
    if (!std::ranges::all_of(scores, [](const Json& s) { return s.is_number() && !std::isnan(s.get<double>()); }))
      fail_at(file, "scores", "has an entry that is no number", "numbers");
    out["model"]["merges"] = merges_of_scores(tokens, scores, types);
    add_sentencepiece(file, out);
  } else {
    out["model"]["merges"] = list(file, "merges");
    const Cutting& cutting = cutting_of(file);
    add_byte_level(file, cutting, out);
    adds_bos = cutting.adds_bos;
  }
  out["model"]["vocab"] = std::move(vocab);
  out["added_tokens"] = std::move(added);

  // What stands around a text.
  Json single = Json::array(), special = Json::object();
  auto put = [&](const char* id_key, const char* flag_key, bool otherwise) {
    const Json* id = find(file, id_key);
    if (!id || !flag(file, flag_key, otherwise)) return;
    if (!id->is_number_integer() || id->get<int64_t>() < 0 || id->get<int64_t>() >= std::ssize(tokens))
      fail_at(file, id_key, text("is ", id->dump()), "a token's number");
    const std::string& token = tokens[id->get<size_t>()];
    single.push_back({{"SpecialToken", {{"id", token}, {"type_id", 0}}}});
    special[token] = {{"id", token}, {"ids", {*id}}, {"tokens", {token}}};
  };
  put("bos_token_id", "add_bos_token", adds_bos);
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  put("eos_token_id", "add_eos_token", false);
  if (single.size() > 1)
    out["post_processor"] = {{"type", "TemplateProcessing"}, {"single", single}, {"special_tokens", special}};
  return out;
}

}  // namespace sator
