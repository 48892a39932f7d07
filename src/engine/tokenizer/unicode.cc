#include "engine/tokenizer/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace sator {

void append_char(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  }
}

/// The bytes of the well-formed character at s[i]; 0 if there is none, and then `bad` is the length of the
/// maximal subpart.
static size_t well_formed(std::string_view s, size_t i, size_t& bad) {
  auto byte = [&](size_t k) { return static_cast<unsigned char>(s[k]); };
  unsigned char first = byte(i);
  bad = 1;
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  // The second byte's range excludes overlong forms, surrogates and what lies beyond U+10FFFF (Unicode, table
  // 3-7).
  unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  for (size_t k = 1; k < length; ++k) {
    if (i + k == s.size() || byte(i + k) < low || byte(i + k) > high) return 0;
    bad = k + 1;
    low = 0x80, high = 0xbf;
  }
  return length;
}

bool is_valid_utf8(std::string_view bytes) {
  size_t bad = 0;
  for (size_t i = 0; i < bytes.size();) {
    size_t length = well_formed(bytes, i, bad);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

void require_utf8(std::string_view bytes, const std::string& where) {
  size_t bad = 0, line = 1;
  for (size_t i = 0; i < bytes.size();) {
    size_t length = well_formed(bytes, i, bad);
    if (length == 0) {
      static constexpr char kDigits[] = "0123456789abcdef";
      auto byte = static_cast<unsigned char>(bytes[i]);
      fail({.what = text("the byte 0x", kDigits[byte >> 4], kDigits[byte & 15], " at offset ", i, " is not UTF-8"),
            .needs = "text in UTF-8",
            .hint = "convert it, as with iconv -t UTF-8",
            .where = text(where, " line ", line)});
    }
    line += bytes[i] == '\n';
    i += length;
  }
}

std::string lossy_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  size_t bad = 0;
  for (size_t i = 0; i < bytes.size();) {
    if (size_t length = well_formed(bytes, i, bad)) {
      out.append(bytes.substr(i, length));
      i += length;
    } else {
      append_char(out, 0xfffd);
      i += bad;
    }
  }
  return out;
}

bool is_ascii(std::string_view s) {
  return std::all_of(s.begin(), s.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

static utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

bool is_white_space(char32_t c) {
  return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
         c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool is_numeric(char32_t c) {
  auto k = category(c);
  return k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(char32_t c) {
  if (c < 0x80)
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
  auto k = category(c);
  return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
}

bool is_mark(char32_t c) {
  auto k = category(c);
  return k >= UTF8PROC_CATEGORY_MN && k <= UTF8PROC_CATEGORY_ME;
}

size_t grapheme_bytes(std::string_view s) {
  size_t end = 0;
  utf8proc_int32_t before = static_cast<utf8proc_int32_t>(next_char(s, end)), state = 0;
  while (end < s.size()) {
    size_t behind = end;
    auto c = static_cast<utf8proc_int32_t>(next_char(s, behind));
    if (utf8proc_grapheme_break_stateful(before, c, &state)) break;
    before = c, end = behind;
  }
  return end;
}

bool is_word(char32_t c) {
  if (c < 0x80) return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
  if (c == 0x200c || c == 0x200d) return true;  // Join_Control
  // Other_Alphabetic that is neither a mark nor a letter: circled and squared Latin letters.
  if ((c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) || (c >= 0x1f150 && c <= 0x1f169) ||
      (c >= 0x1f170 && c <= 0x1f189))
    return true;
  auto k = category(c);
  return (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO) || is_mark(c) || k == UTF8PROC_CATEGORY_ND ||
         k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_PC;
}

std::string normalized(std::string_view s, NormalForm form) {
  if (is_ascii(s)) return std::string(s);
  bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  bool composed = form == NormalForm::nfc || form == NormalForm::nfkc;
  auto options =
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0));
  std::vector<utf8proc_int32_t> chars;
  chars.reserve(s.size());
  for (size_t i = 0; i < s.size();) {
    utf8proc_int32_t parts[32];  // the longest decomposition, of U+FDFA, has 18
    utf8proc_int32_t c = static_cast<utf8proc_int32_t>(next_char(s, i));
    if (c < 0x80) {
      chars.push_back(c);
      continue;
    }
    int boundary = 0;
    utf8proc_ssize_t n = utf8proc_decompose_char(c, parts, 32, options, &boundary);
    if (n < 0 || n > 32) internal_error(text("utf8proc: ", utf8proc_errmsg(n)));
    chars.insert(chars.end(), parts, parts + n);
  }
  auto combining = [](utf8proc_int32_t c) { return c < 0x300 ? 0 : utf8proc_get_property(c)->combining_class; };
  for (size_t i = 0; i < chars.size();) {
    size_t end = i;
    while (end < chars.size() && combining(chars[end]) != 0) ++end;
    if (end - i > 1)
      std::stable_sort(chars.begin() + static_cast<ptrdiff_t>(i),
                       chars.begin() + static_cast<ptrdiff_t>(end),
                       [&](utf8proc_int32_t a, utf8proc_int32_t b) { return combining(a) < combining(b); });
    i = end + 1;
  }
  size_t count = chars.size();
  if (composed) {
    auto n = utf8proc_normalize_utf32(chars.data(),
                                      static_cast<utf8proc_ssize_t>(count),
                                      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    if (n < 0) internal_error(text("utf8proc: ", utf8proc_errmsg(n)));
    count = static_cast<size_t>(n);
  }
  std::string out;
  out.reserve(s.size());
  for (size_t i = 0; i < count; ++i) append_char(out, static_cast<char32_t>(chars[i]));
  return out;
}

std::string lowercased(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (size_t i = 0; i < s.size();) {
    char32_t c = next_char(s, i);
    if (c == 0x130) {  // the one character whose lower case is two: i and a dot above (SpecialCasing.txt)
      append_char(out, 'i');
      append_char(out, 0x307);
    } else {
      append_char(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
    }
  }
  return out;
}

std::string uppercased(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (size_t i = 0; i < s.size();) {
    const char32_t c = next_char(s, i);
    if (c == 0xdf)
      out += "SS";
    else
      append_char(out, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
  }
  return out;
}

ByteAlphabet::ByteAlphabet() {
  byte_of.fill(-1);
  char32_t next = 0x100;
  for (int b = 0; b < 256; ++b) {
    bool itself = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
    char_of[static_cast<size_t>(b)] = itself ? static_cast<char32_t>(b) : next++;
    byte_of[char_of[static_cast<size_t>(b)]] = static_cast<int16_t>(b);
  }
}

const ByteAlphabet& byte_alphabet() {
  static const ByteAlphabet alphabet;
  return alphabet;
}

}  // namespace sator
