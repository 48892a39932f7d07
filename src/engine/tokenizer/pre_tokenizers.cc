#include "engine/tokenizer/pre_tokenizers.h"

#include "base/error.h"
#include "engine/tokenizer/normalizers.h"
#include "engine/tokenizer/unicode.h"

namespace sator {

Metaspace read_metaspace(const JsonAt& at) {
  Metaspace m{at.string_or("replacement", "▁"), PrependScheme::always, at.boolean_or("split", true)};
  if (m.replacement.empty() || char_bytes(m.replacement[0]) != m.replacement.size())
    at.at("replacement").fail("is not one character", "one character");
  auto legacy = at.find("add_prefix_space");  // the spelling before prepend_scheme
  if (legacy && !legacy->boolean()) m.scheme = PrependScheme::never;
  if (auto scheme = at.find("prepend_scheme")) {
    const std::string& name = scheme->string();
    if (name != "always" && name != "first" && name != "never")
      scheme->fail(text("is ", string_literal(name)), "always, first or never");
    m.scheme = name == "always" ? PrependScheme::always : name == "first" ? PrependScheme::first : PrependScheme::never;
    if (legacy && !legacy->boolean() && m.scheme != PrependScheme::never)
      scheme->fail(text("is ", string_literal(name), " while add_prefix_space is false"),
                   "never, or no add_prefix_space");
  }
  return m;
}

namespace {

SplitBehavior read_behavior(const JsonAt& at) {
  struct Row {
    std::string_view name;
    SplitBehavior behavior;
  };
  static const Row kRows[] = {
      {"Isolated", SplitBehavior::isolated},
      {"Removed", SplitBehavior::removed},
      {"MergedWithPrevious", SplitBehavior::merged_with_previous},
      {"MergedWithNext", SplitBehavior::merged_with_next},
      {"Contiguous", SplitBehavior::contiguous},
  };
  std::vector<std::string> names;
  for (const Row& row : kRows) {
    if (row.name == at.string()) return row.behavior;
    names.emplace_back(row.name);
  }
  at.fail(text("is ", string_literal(at.string())), text("one of ", join(names, ", ")));
}

PreTokenizer splitter(Pattern pattern, SplitBehavior behavior) {
  return [pattern = std::move(pattern), behavior](Pieces& pieces) { split_pieces(pieces, pattern, behavior); };
}

PreTokenizer read_split(const JsonAt& at) {
  Pattern pattern = read_pattern(at.at("pattern"));
  return splitter(at.boolean_or("invert", false) ? pattern.inverted() : pattern, read_behavior(at.at("behavior")));
}

void spell_bytes(Pieces& pieces) {
  rewrite_pieces(pieces, [](std::string_view piece, bool, std::string& out) {
    for (char c : piece) append_char(out, byte_alphabet().char_of[static_cast<unsigned char>(c)]);
  });
}

PreTokenizer read_byte_level_splitter(const JsonAt& at) {
  bool prefix = at.at("add_prefix_space").boolean(), use_regex = at.boolean_or("use_regex", true);
  Pattern words{Regex(kGpt2Pattern)};
  return [=](Pieces& pieces) {
    if (prefix)
      rewrite_pieces(pieces, [](std::string_view piece, bool, std::string& out) {
        if (!piece.starts_with(' ')) out += ' ';
        out += piece;
      });
    if (use_regex) split_pieces(pieces, words, SplitBehavior::isolated);
    spell_bytes(pieces);
  };
}

PreTokenizer read_metaspace_step(const JsonAt& at) {
  Metaspace m = read_metaspace(at);
  Pattern words{Regex::literal(m.replacement)};
  return [=](Pieces& pieces) {
    rewrite_pieces(pieces, [&](std::string_view piece, bool at_start, std::string& out) {
      bool prepend = m.scheme == PrependScheme::always || (m.scheme == PrependScheme::first && at_start);
      if (prepend && !piece.starts_with(' ') && !piece.starts_with(m.replacement)) out += m.replacement;
      for (char c : piece) {
        if (c == ' ')
          out += m.replacement;
        else
          out += c;
      }
    });
    if (m.split) split_pieces(pieces, words, SplitBehavior::merged_with_next);
  };
}

PreTokenizer read_digits(const JsonAt& at) {
  bool individual = at.boolean_or("individual_digits", false);
  return splitter(Pattern(is_numeric), individual ? SplitBehavior::isolated : SplitBehavior::contiguous);
}

/// Runs of word characters, and runs of what is neither that nor whitespace.
PreTokenizer read_whitespace(const JsonAt&) {
  Pattern space(is_white_space), word(is_word);
  return [=](Pieces& pieces) {
    split_pieces(pieces, space, SplitBehavior::removed);
    split_pieces(pieces, word, SplitBehavior::contiguous);
  };
}

PreTokenizer read_whitespace_split(const JsonAt&) { return splitter(Pattern(is_white_space), SplitBehavior::removed); }

PreTokenizer read_punctuation(const JsonAt& at) {
  auto behavior = at.find("behavior");
  return splitter(Pattern(is_punctuation), behavior ? read_behavior(*behavior) : SplitBehavior::isolated);
}

PreTokenizer read_bert(const JsonAt&) {
  return [space = Pattern(is_white_space), punctuation = Pattern(is_punctuation)](Pieces& pieces) {
    split_pieces(pieces, space, SplitBehavior::removed);
    split_pieces(pieces, punctuation, SplitBehavior::isolated);
  };
}

PreTokenizer read_delimiter(const JsonAt& at) {
  return splitter(Pattern(Regex::literal(at.at("delimiter").string())), SplitBehavior::removed);
}

PreTokenizer read_splitter_sequence(const JsonAt& at) {
  std::vector<PreTokenizer> steps;
  at.at("pretokenizers").each([&](const JsonAt& step) { steps.push_back(read_pre_tokenizer(step)); });
  return [steps](Pieces& pieces) {
    for (const PreTokenizer& step : steps) step(pieces);
  };
}

struct PreTokenizerRow {
  std::string_view type;
  PreTokenizer (*read)(const JsonAt& at);
};
const PreTokenizerRow kPreTokenizers[] = {
    {"ByteLevel", read_byte_level_splitter},
    {"Split", read_split},
    {"Metaspace", read_metaspace_step},
    {"Digits", read_digits},
    {"Whitespace", read_whitespace},
    {"WhitespaceSplit", read_whitespace_split},
    {"Punctuation", read_punctuation},
    {"BertPreTokenizer", read_bert},
    {"CharDelimiterSplit", read_delimiter},
    {"Sequence", read_splitter_sequence},
};

}  // namespace

PreTokenizer matches_as_bytes(const Pattern& pattern) {
  return [others = pattern.inverted()](Pieces& pieces) {
    split_pieces(pieces, others, SplitBehavior::removed);
    spell_bytes(pieces);
  };
}

PreTokenizer read_pre_tokenizer(const JsonAt& at) { return find_kind(kPreTokenizers, at, "pre-tokenizer").read(at); }

}  // namespace sator
