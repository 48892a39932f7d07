#include "engine/tokenizer/normalizers.h"

#include <optional>
#include <vector>

#include "base/error.h"
#include "engine/tokenizer/charsmap.h"
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

/// SentencePiece's table, as `tokenizers` applies it: to each grapheme of fewer than 6 bytes, of which the first entry
/// that it begins with replaces all; else to each of its characters.
Normalizer read_precompiled(const JsonAt& at) {
  JsonAt encoded = at.at("precompiled_charsmap");
  auto bytes = base64_decoded(encoded.string());
  if (!bytes) encoded.fail("is no base64", "base64");
  return [map = Charsmap::read(*bytes, encoded.where())](NormalText& s) {
    std::string out;
    out.reserve(s.text.size());
    for (size_t i = 0; i < s.text.size();) {
      const size_t length = grapheme_bytes(std::string_view(s.text).substr(i));
      const std::string_view grapheme = std::string_view(s.text).substr(i, length);
      i += length;
      if (length < 6)
        if (auto match = map.shortest(grapheme)) {
          out += match->text;
          continue;
        }
      for (size_t k = 0; k < length;) {
        const std::string_view c = grapheme.substr(k, char_bytes(grapheme[k]));
        auto match = map.shortest(c);
        out += match ? match->text : c;
        k += c.size();
      }
    }
    s.text = std::move(out);
  };
}

/// The text with each character dropped (nothing returned), kept or replaced.
template <class Map>
void map_chars(NormalText& s, const Map& map) {
  std::string out;
  out.reserve(s.text.size());
  for (size_t i = 0; i < s.text.size();) {
    const bool at_begin = i == 0;
    const std::optional<char32_t> c = map(next_char(s.text, i));
    if (c)
      append_char(out, *c);
    else if (at_begin)
      s.keeps_begin = false;
  }
  s.text = std::move(out);
}

/// SentencePiece's `nmt` rules: some control characters go, others and odd spaces become spaces.
Normalizer read_nmt(const JsonAt&) {
  return [](NormalText& s) {
    map_chars(s, [](char32_t c) -> std::optional<char32_t> {
      const bool goes =
          (c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f || c == 0x9f;
      if (goes) return {};
      const bool space = c == 9 || c == 0xa || c == 0xc || c == 0xd || c == 0x1680 || (c >= 0x200b && c <= 0x200f) ||
                         c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xfeff || c == 0xfffd;
      return space ? U' ' : c;
    });
  };
}

/// The blocks that BERT's cleaning takes for Chinese: CJK ideographs, their extensions A to E, compatibility.
bool is_ideograph(char32_t c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
         (c >= 0x2a700 && c <= 0x2b73f) || (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
         (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

/// BERT's: control characters go, whitespace becomes a space, ideographs stand alone, accents go, lower case.
Normalizer read_bert_normalizer(const JsonAt& at) {
  const bool clean = at.boolean_or("clean_text", true), ideographs = at.boolean_or("handle_chinese_chars", true);
  const bool lower = at.boolean_or("lowercase", true), strip = at.boolean_or("strip_accents", lower);
  return [=](NormalText& s) {
    if (clean)
      map_chars(s, [](char32_t c) -> std::optional<char32_t> {
        if (c == '\t' || c == '\n' || c == '\r') return U' ';
        if (c == 0 || c == 0xfffd || is_control(c)) return {};
        return is_white_space(c) ? U' ' : c;
      });
    if (ideographs && !is_ascii(s.text)) {
      std::string out;
      for (size_t i = 0; i < s.text.size();) {
        const char32_t c = next_char(s.text, i);
        if (is_ideograph(c)) out += ' ';
        append_char(out, c);
        if (is_ideograph(c)) out += ' ';
      }
      s.text = std::move(out);
    }
    if (strip) {
      s.text = normalized(s.text, NormalForm::nfd);
      map_chars(s, [](char32_t c) { return is_nonspacing_mark(c) ? std::nullopt : std::optional(c); });
    }
    if (lower) s.text = lowercased(s.text);
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
    {"Precompiled", read_precompiled},
    {"Nmt", read_nmt},
    {"BertNormalizer", read_bert_normalizer},
    {"Sequence", read_sequence_normalizer},
};

}  // namespace

Normalizer read_normalizer(const JsonAt& at) { return find_kind(kNormalizers, at, "normalizer").read(at); }

}  // namespace sator
