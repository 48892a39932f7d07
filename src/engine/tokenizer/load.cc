#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/tokenizer/parts.h"
#include "engine/tokenizer/unicode.h"

namespace sator {

namespace {

/// The ids that a post-processor puts around a text.
struct Around {
  std::vector<int32_t> before, after;
};

/// A "single" template: special tokens around the sequence $A.
Around read_template(const JsonAt& at) {
  Around around;
  int sequences = 0;
  JsonAt known = at.at("special_tokens"), single = at.at("single");
  single.each([&](const JsonAt& piece) {
    if (auto sequence = piece.find("Sequence")) {
      if (sequence->at("id").string() != "A") sequence->fail("is not sequence A", "sequence A in the single template");
      ++sequences;
      return;
    }
    const std::string& name = piece.at("SpecialToken").at("id").string();
    auto& ids = sequences == 0 ? around.before : around.after;
    known.at(name).at("ids").each(
        [&](const JsonAt& id) { ids.push_back(static_cast<int32_t>(id.integer(0, INT32_MAX))); });
  });
  if (sequences != 1) single.fail(text("has sequence A ", sequences, " times"), "sequence A once");
  return around;
}

/// BERT's and RoBERTa's: <cls> text <sep>.
Around read_cls_sep(const JsonAt& at) {
  auto id = [&](std::string_view name) {
    const Json& pair = at.at(name).json();
    if (!pair.is_array() || pair.size() != 2 || !pair[1].is_number_unsigned())
      at.at(name).fail("is no token", "[token, id]");
    return JsonAt(pair[1], at.at(name).where()).integer(0, INT32_MAX);
  };
  return {{static_cast<int32_t>(id("cls"))}, {static_cast<int32_t>(id("sep"))}};
}

/// It changes offsets only, which we do not keep.
Around read_byte_level_processor(const JsonAt&) { return {}; }

Around read_post_processor(const JsonAt& at);

Around read_processor_sequence(const JsonAt& at) {
  Around all;
  at.at("processors").each([&](const JsonAt& step) {
    Around outer = read_post_processor(step);
    all.before.insert(all.before.begin(), outer.before.begin(), outer.before.end());
    all.after.insert(all.after.end(), outer.after.begin(), outer.after.end());
  });
  return all;
}

struct PostProcessorRow {
  std::string_view type;
  Around (*read)(const JsonAt& at);
};
const PostProcessorRow kPostProcessors[] = {
    {"TemplateProcessing", read_template},
    {"ByteLevel", read_byte_level_processor},
    {"RobertaProcessing", read_cls_sep},
    {"BertProcessing", read_cls_sep},
    {"Sequence", read_processor_sequence},
};

Around read_post_processor(const JsonAt& at) { return find_kind(kPostProcessors, at, "post-processor").read(at); }

AddedToken read_added_token(const JsonAt& at) {
  AddedToken token{.content = at.at("content").string()};
  token.special = at.boolean_or("special", false);
  token.single_word = at.boolean_or("single_word", false);
  token.lstrip = at.boolean_or("lstrip", false);
  token.rstrip = at.boolean_or("rstrip", false);
  token.normalized = at.boolean_or("normalized", !token.special);
  return token;
}

std::shared_ptr<Tokenizer::Parts> read_parts(const Json& tree, std::string_view source) {
  JsonAt root(tree, source);
  auto parts = std::make_shared<Tokenizer::Parts>();
  parts->model = Bpe::read(root.at("model"));
  if (auto at = root.find("normalizer")) parts->normalize = read_normalizer(*at);
  if (auto at = root.find("pre_tokenizer")) parts->pre_tokenize = read_pre_tokenizer(*at);
  if (auto at = root.find("decoder")) parts->decode = read_decoder(*at);
  if (auto at = root.find("post_processor")) {
    Around around = read_post_processor(*at);
    parts->before = std::move(around.before), parts->after = std::move(around.after);
  }
  if (auto at = root.find("added_tokens"))
    at->each([&](const JsonAt& token) { parts->added.add(read_added_token(token), parts->model); });
  parts->added.finish(parts->normalize);
  return parts;
}

std::optional<Json> read_json_if_there(const fs::path& file) {
  if (!fs::exists(file)) return {};
  return parse_json(read_file(file), file.string());
}

/// A token of tokenizer_config.json: its text, or an object with the text and flags.
std::optional<std::string> token_text(const Json& tree, std::string_view source, std::string_view name) {
  auto at = JsonAt(tree, source).find(name);
  if (!at) return {};
  return at->is_object() ? at->at("content").string() : at->string();
}

constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// How the classes that come as vocab.json and merges.txt cut text; the name may end in "Fast".
struct ClassRow {
  std::string_view name;
  bool qwen2;
};
const ClassRow kClasses[] = {
    {"GPT2Tokenizer", false},
    {"Qwen2Tokenizer", true},
    {"CodeGenTokenizer", false},
    {"PreTrainedTokenizer", false},
    {"TokenizersBackend", false},
    {"", false},
};

/// vocab.json and merges.txt as the tokenizer.json that they stand for.
Json from_vocab_and_merges(const fs::path& folder, const Json& config) {
  fs::path vocab_file = folder / "vocab.json", merges_file = folder / "merges.txt";
  std::string source = (folder / "tokenizer_config.json").string();
  JsonAt settings(config, source);
  std::string name = settings.string_or("tokenizer_class", "");
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  const ClassRow* found =
      std::find_if(std::begin(kClasses), std::end(kClasses), [&](const ClassRow& r) { return r.name == name; });
  if (found == std::end(kClasses))
    settings.at("tokenizer_class")
        .fail(text("is ", string_literal(name), ", which is not supported without a tokenizer.json"),
              "GPT2Tokenizer or Qwen2Tokenizer, or a tokenizer.json",
              "save the tokenizer with transformers' AutoTokenizer(...).save_pretrained: that writes "
              "tokenizer.json");

  Json merges = Json::array();
  std::string lines = read_file(merges_file);
  if (!is_valid_utf8(lines)) fail({.what = text(merges_file.string(), " is no UTF-8"), .needs = "UTF-8 text"});
  for (std::string_view line : split(lines, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && !line.starts_with("#version")) merges.push_back(line);
  }
  Json tokenizer;
  tokenizer["model"] = {{"type", "BPE"}, {"merges", std::move(merges)}};
  tokenizer["model"]["vocab"] = parse_json(read_file(vocab_file), vocab_file.string(), DuplicateNames::last_wins);
  Json bytes = {
      {"type", "ByteLevel"}, {"add_prefix_space", settings.boolean_or("add_prefix_space", false)}, {"use_regex", true}};
  tokenizer["decoder"] = bytes;
  if (found->qwen2) {
    bytes["use_regex"] = false;
    Json cut = {{"type", "Split"}, {"pattern", {{"Regex", kQwen2Pattern}}}, {"behavior", "Isolated"}};
    tokenizer["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {cut, bytes}}};
    tokenizer["normalizer"] = {{"type", "NFC"}};
  } else {
    tokenizer["pre_tokenizer"] = bytes;
  }

  // Added tokens in the order of their ids: added_tokens.json, then those that the settings name.
  std::vector<std::pair<int64_t, Json>> added;
  fs::path added_file = folder / "added_tokens.json";
  if (auto tree = read_json_if_there(added_file))
    JsonAt(*tree, added_file.string()).each_member([&](const std::string& content, const JsonAt& id) {
      added.emplace_back(id.integer(0, INT32_MAX),
                         Json{{"content", content}, {"special", false}, {"normalized", true}});
    });
  if (auto decoder = settings.find("added_tokens_decoder"))
    decoder->each_member([&](const std::string& id, const JsonAt& token) {
      int64_t value = -1;
      std::from_chars(id.data(), id.data() + id.size(), value);
      token.at("content").string();
      added.emplace_back(value, token.json());
    });
  std::stable_sort(added.begin(), added.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  tokenizer["added_tokens"] = Json::array();
  for (auto& [id, token] : added) tokenizer["added_tokens"].push_back(std::move(token));
  auto add_special = [&](const std::string& content) {
    for (const Json& token : tokenizer["added_tokens"])
      if (token["content"] == content && token.value("special", false)) return;
    tokenizer["added_tokens"].push_back({{"content", content}, {"special", true}, {"normalized", false}});
  };
  bool named = false;
  for (const char* role : {"bos_token", "eos_token", "unk_token", "pad_token"})
    if (auto content = token_text(config, source, role)) add_special(*content), named = true;
  if (auto more = settings.find("additional_special_tokens"))
    more->each(
        [&](const JsonAt& token) { add_special(token.is_object() ? token.at("content").string() : token.string()); });
  // GPT-2's class takes <|endoftext|> for all roles where nothing is said.
  if (!named && added.empty() && tokenizer["model"]["vocab"].contains("<|endoftext|>")) add_special("<|endoftext|>");
  return tokenizer;
}

}  // namespace

Tokenizer Tokenizer::from_json(std::string_view json, std::string_view source) {
  return Tokenizer(read_parts(parse_json(json, source, DuplicateNames::last_wins), source));
}

Tokenizer Tokenizer::from_tree(const Json& tree, std::string_view source, std::optional<int32_t> bos,
                               std::optional<int32_t> eos) {
  std::shared_ptr<Parts> parts = read_parts(tree, source);
  parts->bos = bos, parts->eos = eos;
  return Tokenizer(parts);
}

Tokenizer Tokenizer::load(const fs::path& folder) {
  fs::path config_file = folder / "tokenizer_config.json", roles_file = folder / "special_tokens_map.json";
  Json config = Json::object();
  if (auto tree = read_json_if_there(config_file)) config = std::move(*tree);
  if (!config.is_object()) JsonAt(config, config_file.string()).fail("is no object", "a JSON object");
  if (auto roles = read_json_if_there(roles_file); roles && roles->is_object())
    for (auto& [name, token] : roles->items())
      if (!config.contains(name)) config[name] = token;

  fs::path file = folder / "tokenizer.json";
  std::shared_ptr<Parts> parts;
  if (fs::exists(file)) {
    parts = read_parts(parse_json(read_file(file), file.string(), DuplicateNames::last_wins), file.string());
  } else if (fs::exists(folder / "vocab.json") && fs::exists(folder / "merges.txt")) {
    parts = read_parts(from_vocab_and_merges(folder, config), (folder / "vocab.json and merges.txt").string());
  } else {
    fail({.what = text("there is no tokenizer in ", folder.string()),
          .needs = "tokenizer.json, or vocab.json and merges.txt",
          .hint = fs::exists(folder / "tokenizer.model") ? "tokenizer.model is not read: convert it with transformers' "
                                                           "AutoTokenizer(...).save_pretrained"
                                                         : "copy the tokenizer's files into the model's folder"});
  }
  Tokenizer tokenizer(parts);
  auto role = [&](std::string_view name) -> std::optional<int32_t> {
    auto content = token_text(config, config_file.string(), name);
    return content ? tokenizer.id_of(*content) : std::nullopt;
  };
  parts->bos = role("bos_token"), parts->eos = role("eos_token");
  return tokenizer;
}

}  // namespace sator
