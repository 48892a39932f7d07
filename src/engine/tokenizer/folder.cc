// The tokenizer of a folder: tokenizer.json, or one of the files that came before it, with the settings beside them.
#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/tokenizer/bpe.h"
#include "engine/tokenizer/parts.h"
#include "engine/tokenizer/sentencepiece.h"
#include "engine/tokenizer/tiktoken.h"
#include "engine/tokenizer/unicode.h"

namespace sator {

namespace {

std::optional<Json> read_json_if_there(const fs::path& file) {
  if (!fs::exists(file)) return {};
  return parse_json(read_regular_file(file), file.string());
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
  std::string lines = read_regular_file(merges_file);
  if (!is_valid_utf8(lines)) fail({.what = text(merges_file.string(), " is no UTF-8"), .needs = "UTF-8 text"});
  for (std::string_view line : split(lines, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && !line.starts_with("#version")) merges.push_back(line);
  }
  Json tokenizer;
  tokenizer["model"] = {{"type", "BPE"}, {"merges", std::move(merges)}};
  tokenizer["model"]["vocab"] =
      parse_json(read_regular_file(vocab_file), vocab_file.string(), DuplicateNames::last_wins);
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

/// tokenizer_config.json, with what special_tokens_map.json adds, and added_tokens.json.
struct Settings {
  Json tree = Json::object();
  std::string source;
  std::optional<Json> added;
  std::string added_source;

  JsonAt at() const { return {tree, source}; }
  std::optional<std::string> role(std::string_view name) const { return token_text(tree, source, name); }
  std::string tokenizer_class() const {
    std::string name = at().string_or("tokenizer_class", "");
    if (name.ends_with("Fast")) name.resize(name.size() - 4);
    return name;
  }
};

constexpr std::string_view kRoles[] = {"bos_token", "eos_token", "unk_token", "pad_token"};

Settings read_settings(const fs::path& folder) {
  Settings s{.source = (folder / "tokenizer_config.json").string(),
             .added_source = (folder / "added_tokens.json").string()};
  if (auto tree = read_json_if_there(s.source)) s.tree = std::move(*tree);
  if (!s.tree.is_object()) s.at().fail("is no object", "a JSON object");
  if (auto roles = read_json_if_there(folder / "special_tokens_map.json"); roles && roles->is_object())
    for (auto& [name, token] : roles->items())
      if (!s.tree.contains(name)) s.tree[name] = token;
  s.added = read_json_if_there(s.added_source);
  return s;
}

/// The tokens that the settings add to a vocabulary, with the ids that they state, in the order of these.
std::vector<AddedToken> added_by(const Settings& s) {
  std::vector<AddedToken> out;
  if (s.added)
    JsonAt(*s.added, s.added_source).each_member([&](const std::string& content, const JsonAt& id) {
      out.push_back({.content = content, .id = static_cast<int32_t>(id.integer(0, Vocabulary::kMaxId))});
    });
  if (auto decoder = s.at().find("added_tokens_decoder"))
    decoder->each_member([&](const std::string& name, const JsonAt& entry) {
      AddedToken token = read_added_token(entry);
      auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), token.id);
      if (error != std::errc() || end != name.data() + name.size() || token.id < 0 || token.id > Vocabulary::kMaxId)
        entry.fail("has a name that is no id", text("ids from 0 to ", Vocabulary::kMaxId));
      out.push_back(std::move(token));
    });
  std::ranges::stable_sort(out, {}, &AddedToken::id);
  auto add_special = [&](const std::string& content) {
    for (AddedToken& token : out)
      if (token.content == content) {
        token.special = true;
        return;
      }
    out.push_back({.content = content, .special = true});
  };
  for (std::string_view role : kRoles)
    if (auto content = s.role(role)) add_special(*content);
  if (auto more = s.at().find("additional_special_tokens"))
    more->each([&](const JsonAt& t) { add_special(t.is_object() ? t.at("content").string() : t.string()); });
  return out;
}

/// What the classes that come as tokenizer.model put around a text where the settings do not say.
struct SentencePieceClass {
  std::string_view name;
  bool adds_bos;
};
const SentencePieceClass kSentencePieceClasses[] = {
    {"LlamaTokenizer", true},
    {"GemmaTokenizer", true},
    {"MistralTokenizer", true},
    {"PreTrainedTokenizer", true},
    {"TokenizersBackend", true},
    {"", true},
};

std::shared_ptr<Tokenizer::Parts> read_sentencepiece(const fs::path& path, std::string_view bytes,
                                                     const Settings& settings) {
  const std::string name = settings.tokenizer_class();
  const auto* row = std::ranges::find(kSentencePieceClasses, name, &SentencePieceClass::name);
  if (row == std::end(kSentencePieceClasses)) {
    std::vector<std::string_view> names;
    for (const SentencePieceClass& c : kSentencePieceClasses)
      if (!c.name.empty()) names.push_back(c.name);
    settings.at()
        .at("tokenizer_class")
        .fail(text("is ", string_literal(name), ", whose way to number a tokenizer.model is not known here"),
              text("one of ", join(names, ", "), ", or a tokenizer.json"),
              "save the tokenizer with transformers' AutoTokenizer(...).save_pretrained: that writes tokenizer.json");
  }
  SentencePieceFile file = SentencePieceFile::read(bytes, path.string());
  if (!settings.at().boolean_or("add_prefix_space", true)) file.add_dummy_prefix = false;
  auto parts = std::make_shared<Tokenizer::Parts>();
  parts->model = model_of(file);
  parts->normalize = normalizer_of(file, settings.at().boolean_or("legacy", true));
  std::vector<std::string> shown;
  for (const AddedToken& token : added_by(settings)) {
    // Found in the text as it stands, before the normalizer sees it.
    AddedToken found = token;
    found.normalized = false;
    parts->added.add(found, parts->model->vocabulary());
    shown.push_back(token.content);
  }
  parts->added.finish(parts->normalize);
  parts->decode = decoder_of(file, shown);
  const Json mark = {{"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}};
  const Json pieces = {{"type", "Sequence"}, {"decoders", {mark, {{"type", "ByteFallback"}}}}};
  parts->bytes = read_token_bytes(JsonAt(pieces, "the decoder"));
  auto token_id = [&](const char* role, int32_t otherwise) -> std::optional<int32_t> {
    if (auto content = settings.role(role)) {
      if (auto id = parts->added.id_of(*content)) return id;
      return parts->model->vocabulary().id_of(*content);
    }
    return otherwise < 0 ? std::nullopt : std::optional(otherwise);
  };
  parts->bos = token_id("bos_token", file.bos), parts->eos = token_id("eos_token", file.eos);
  if (parts->bos && settings.at().boolean_or("add_bos_token", row->adds_bos)) parts->before = {*parts->bos};
  if (parts->eos && settings.at().boolean_or("add_eos_token", false)) parts->after = {*parts->eos};
  return parts;
}

/// The encoding that the settings state (`pat_str`, tiktoken's own word for the pattern) or name.
TiktokenEncoding encoding_of(const fs::path& path, const Settings& settings) {
  TiktokenEncoding encoding;
  const std::string stem = path.extension() == ".tiktoken" ? path.stem().string() : "";
  for (const std::string& name : {settings.tokenizer_class(), stem})
    if (auto known = tiktoken_encoding(name)) encoding = std::move(*known);
  if (auto pattern = settings.at().find("pat_str")) encoding.pattern = pattern->string();
  if (encoding.pattern.empty())
    fail({.what = text(path.string(), " does not say how text is cut, and its encoding is not known by name"),
          .needs = text("a file named as one of ", join(tiktoken_encodings(), ", "), ", or the pattern"),
          .hint = R"(put "pat_str": "..." into tokenizer_config.json, as tiktoken's Encoding has it)"});
  return encoding;
}

std::shared_ptr<Tokenizer::Parts> read_ranks(const fs::path& path, std::string_view bytes, const Settings& settings) {
  const TiktokenEncoding encoding = encoding_of(path, settings);
  auto parts = std::make_shared<Tokenizer::Parts>();
  parts->model = Bpe::of_ranks(read_tiktoken(bytes, path.string()));
  parts->pre_tokenize = matches_as_bytes(Pattern(Regex::of_rust(encoding.pattern)));
  const Json decoder = {{"type", "ByteLevel"}};
  parts->decode = read_decoder(JsonAt(decoder, "the decoder"));
  parts->bytes = read_token_bytes(JsonAt(decoder, "the decoder"));
  std::vector<AddedToken> added = added_by(settings);
  if (!settings.tree.contains("added_tokens_decoder"))
    for (const auto& [content, id] : encoding.special)
      if (std::ranges::find(added, content, &AddedToken::content) == added.end() || id >= 0) {
        std::erase_if(added, [&](const AddedToken& t) { return t.content == content; });
        added.push_back({.content = content, .id = id, .special = true});
      }
  for (AddedToken& token : added) {
    token.normalized = false;
    parts->added.add(token, parts->model->vocabulary());
  }
  parts->added.finish({});
  return parts;
}

/// The first file of the folder that ends so, in the order of names.
std::optional<fs::path> file_with(const fs::path& folder, std::string_view extension) {
  std::vector<fs::path> found;
  if (fs::is_directory(folder))
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().extension() == extension) found.push_back(entry.path());
  if (found.empty()) return {};
  return *std::ranges::min_element(found);
}

std::shared_ptr<Tokenizer::Parts> read_folder(const fs::path& folder, const Settings& settings) {
  const fs::path json = folder / "tokenizer.json", model = folder / "tokenizer.model";
  if (fs::exists(json))
    return read_tokenizer_parts(
        parse_json(read_regular_file(json), json.string(), DuplicateNames::last_wins, Decimals::serde), json.string());
  if (fs::exists(folder / "vocab.json") && fs::exists(folder / "merges.txt"))
    return read_tokenizer_parts(from_vocab_and_merges(folder, settings.tree),
                                (folder / "vocab.json and merges.txt").string());
  if (fs::exists(model)) {
    const std::string bytes = read_regular_file(model);
    return looks_like_tiktoken(bytes) ? read_ranks(model, bytes, settings) : read_sentencepiece(model, bytes, settings);
  }
  if (auto ranks = file_with(folder, ".tiktoken")) return read_ranks(*ranks, read_regular_file(*ranks), settings);
  fail({.what = text("there is no tokenizer in ", folder.string()),
        .needs = "tokenizer.json, or vocab.json and merges.txt, tokenizer.model, or a file *.tiktoken",
        .hint = "copy the tokenizer's files into the model's folder"});
}

}  // namespace

Tokenizer Tokenizer::load(const fs::path& folder) {
  const Settings settings = read_settings(folder);
  std::shared_ptr<Parts> parts = read_folder(folder, settings);
  Tokenizer tokenizer(parts);
  auto role = [&](std::string_view name, std::optional<int32_t>& id) {
    if (auto content = settings.role(name)) id = tokenizer.id_of(*content);
  };
  role("bos_token", parts->bos), role("eos_token", parts->eos);
  return tokenizer;
}

}  // namespace sator
