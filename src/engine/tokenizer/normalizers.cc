#include "engine/tokenizer/normalizers.h"

#include <vector>

#include "base/error.h"
#include "engine/tokenizer/unicode.h"

namespace sator {

Pattern read_pattern(const JsonAt& at) {
  if (at.is_string()) return Pattern(Regex::literal(at.string()));  // as old files write it
  if (auto literal = at.find("String")) return Pattern(Regex::literal(literal->string()));
  return Pattern(Regex(at.at("Regex").string()));
}

namespace {

template <NormalForm form>
Normalizer read_form(const JsonAt&) {
  return [](NormalText& s) { s.text = normalized(s.text, form); };
}

Normalizer read_lowercase(const JsonAt&) {
  return [](NormalText& s) { s.text = lowercased(s.text); };
}

Normalizer read_strip_accents(const JsonAt&) {
  return [](NormalText& s) {
    if (is_ascii(s.text)) return;
    std::string out;
    for (size_t i = 0; i < s.text.size();) {
      bool at_begin = i == 0;
      char32_t c = next_char(s.text, i);
      if (!is_mark(c))
        append_char(out, c);
      else if (at_begin)
        s.keeps_begin = false;
    }
    s.text = std::move(out);
  };
}

Normalizer read_strip_normalizer(const JsonAt& at) {
  bool left = at.boolean_or("strip_left", true), right = at.boolean_or("strip_right", true);
  return [=](NormalText& s) {
    size_t begin = s.text.size(), end = 0;
    for (size_t i = 0; i < s.text.size();) {
      size_t at = i;
      if (is_white_space(next_char(s.text, i))) continue;
      if (begin == s.text.size()) begin = at;
      end = i;
    }
    if (!left) begin = 0;
    if (!right) end = s.text.size();
    s.text = begin < end ? s.text.substr(begin, end - begin) : std::string();
    s.keeps_begin &= begin == 0;
  };
}

Normalizer read_prepend(const JsonAt& at) {
  return [prefix = at.at("prepend").string()](NormalText& s) {
    if (!s.text.empty()) s.text.insert(0, prefix);
  };
}

Normalizer read_replace_normalizer(const JsonAt& at) {
  return [pattern = read_pattern(at.at("pattern")), content = at.at("content").string()](NormalText& s) {
    std::vector<Stretch> stretches;
    pattern.stretches(s.text, stretches);
    bool takes_begin = content.empty() && stretches[0].is_match && stretches[0].end > 0;
    s.text = replaced(s.text, stretches, content);
    s.keeps_begin &= !takes_begin;
  };
}

Normalizer read_byte_level_normalizer(const JsonAt&) {
  return [](NormalText& s) {
    std::string out;
    for (char c : s.text) append_char(out, byte_alphabet().char_of[static_cast<unsigned char>(c)]);
    s.text = std::move(out);
  };
}

Normalizer read_sequence_normalizer(const JsonAt& at) {
  std::vector<Normalizer> steps;
  at.at("normalizers").each([&](const JsonAt& step) { steps.push_back(read_normalizer(step)); });
  return [steps](NormalText& s) {
    for (const Normalizer& step : steps) step(s);
  };
}

struct NormalizerRow {
  std::string_view type;
  Normalizer (*read)(const JsonAt& at);
};
const NormalizerRow kNormalizers[] = {
    {"NFC", read_form<NormalForm::nfc>},
    {"NFD", read_form<NormalForm::nfd>},
    {"NFKC", read_form<NormalForm::nfkc>},
    {"NFKD", read_form<NormalForm::nfkd>},
    {"Lowercase", read_lowercase},
    {"StripAccents", read_strip_accents},
    {"Strip", read_strip_normalizer},
    {"Prepend", read_prepend},
    {"Replace", read_replace_normalizer},
    {"ByteLevel", read_byte_level_normalizer},
    {"Sequence", read_sequence_normalizer},
};

}  // namespace

Normalizer read_normalizer(const JsonAt& at) { return find_kind(kNormalizers, at, "normalizer").read(at); }

}  // namespace sator
