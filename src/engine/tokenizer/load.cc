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

}  // namespace

AddedToken read_added_token(const JsonAt& at) {
  AddedToken token{.content = at.at("content").string()};
  token.special = at.boolean_or("special", false);
  token.single_word = at.boolean_or("single_word", false);
  token.lstrip = at.boolean_or("lstrip", false);
  token.rstrip = at.boolean_or("rstrip", false);
  token.normalized = at.boolean_or("normalized", !token.special);
  return token;
}

std::shared_ptr<Tokenizer::Parts> read_tokenizer_parts(const Json& tree, std::string_view source) {
  JsonAt root(tree, source);
  auto parts = std::make_shared<Tokenizer::Parts>();
  parts->model = read_token_model(root.at("model"));
  if (auto at = root.find("normalizer")) parts->normalize = read_normalizer(*at);
  if (auto at = root.find("pre_tokenizer")) parts->pre_tokenize = read_pre_tokenizer(*at);
  if (auto at = root.find("decoder")) {
    parts->decode = read_decoder(*at);
    parts->bytes = read_token_bytes(*at);
  }
  if (auto at = root.find("post_processor")) {
    Around around = read_post_processor(*at);
    parts->before = std::move(around.before), parts->after = std::move(around.after);
  }
  if (auto at = root.find("added_tokens"))
    at->each([&](const JsonAt& token) { parts->added.add(read_added_token(token), parts->model->vocabulary()); });
  parts->added.finish(parts->normalize);
  return parts;
}

Tokenizer Tokenizer::from_json(std::string_view json, std::string_view source) {
  return Tokenizer(read_tokenizer_parts(parse_json(json, source, DuplicateNames::last_wins, Decimals::serde), source));
}

Tokenizer Tokenizer::from_tree(const Json& tree, std::string_view source, std::optional<int32_t> bos,
                               std::optional<int32_t> eos) {
  std::shared_ptr<Parts> parts = read_tokenizer_parts(tree, source);
  parts->bos = bos, parts->eos = eos;
  return Tokenizer(parts);
}

}  // namespace sator
