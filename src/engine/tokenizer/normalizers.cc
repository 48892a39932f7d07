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
  return [](std::string s) { return normalized(s, form); };
}

Normalizer read_lowercase(const JsonAt&) {
  return [](std::string s) { return lowercased(s); };
}

Normalizer read_strip_accents(const JsonAt&) {
  return [](std::string s) {
    if (is_ascii(s)) return s;
    std::string out;
    for (size_t i = 0; i < s.size();)
      if (char32_t c = next_char(s, i); !is_mark(c)) append_char(out, c);
    return out;
  };
}

Normalizer read_strip(const JsonAt& at) {
  bool left = at.boolean_or("strip_left", true), right = at.boolean_or("strip_right", true);
  return [=](std::string s) {
    size_t begin = s.size(), end = 0;
    for (size_t i = 0; i < s.size();) {
      size_t at = i;
      if (is_white_space(next_char(s, i))) continue;
      if (begin == s.size()) begin = at;
      end = i;
    }
    if (!left) begin = 0;
    if (!right) end = s.size();
    return begin < end ? s.substr(begin, end - begin) : std::string();
  };
}

Normalizer read_prepend(const JsonAt& at) {
  return [prefix = at.at("prepend").string()](std::string s) { return s.empty() ? s : prefix + s; };
}

Normalizer read_replace(const JsonAt& at) {
  return [pattern = read_pattern(at.at("pattern")), content = at.at("content").string()](std::string s) {
    return replaced(s, pattern, content);
  };
}

Normalizer read_byte_level(const JsonAt&) {
  return [](std::string s) {
    std::string out;
    for (char c : s) append_char(out, byte_alphabet().char_of[static_cast<unsigned char>(c)]);
    return out;
  };
}

Normalizer read_sequence(const JsonAt& at) {
  std::vector<Normalizer> steps;
  at.at("normalizers").each([&](const JsonAt& step) { steps.push_back(read_normalizer(step)); });
  return [steps](std::string s) {
    for (const Normalizer& step : steps) s = step(std::move(s));
    return s;
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
    {"Strip", read_strip},
    {"Prepend", read_prepend},
    {"Replace", read_replace},
    {"ByteLevel", read_byte_level},
    {"Sequence", read_sequence},
};

}  // namespace

Normalizer read_normalizer(const JsonAt& at) { return find_kind(kNormalizers, at, "normalizer").read(at); }

}  // namespace sator
