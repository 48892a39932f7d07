#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sator {

/// The code point that begins at byte i of valid UTF-8; i moves past it.
inline char32_t next_char(std::string_view s, size_t& i) {
  auto byte = [&](size_t k) { return static_cast<char32_t>(static_cast<unsigned char>(s[k])); };
  char32_t c = byte(i++);
  if (c < 0x80) return c;
  int more = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
  c &= 0x3f >> more;
  while (more-- > 0) c = c << 6 | (byte(i++) & 0x3f);
  return c;
}

/// The bytes of the UTF-8 character that begins with this byte.
inline size_t char_bytes(char first) {
  auto c = static_cast<unsigned char>(first);
  return c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

void append_char(std::string& out, char32_t c);
bool is_valid_utf8(std::string_view bytes);
/// Errors: the bytes are not UTF-8, with the offset of the first that is not; `where` says what they are.
void require_utf8(std::string_view bytes, const std::string& where);

/// Any bytes as valid UTF-8: each maximal part of an ill-formed sequence becomes one U+FFFD.
/// Source: Unicode 15, section 3.9, "U+FFFD Substitution of Maximal Subparts", as most lossy readers do.
std::string lossy_utf8(std::string_view bytes);

bool is_ascii(std::string_view s);

// Character classes by the Unicode properties that the tokenizers' own matchers use.
bool is_white_space(char32_t c);  // White_Space
bool is_numeric(char32_t c);      // general category N
bool is_punctuation(char32_t c);  // general category P, and ASCII's symbols
bool is_mark(char32_t c);         // general category M
bool is_word(char32_t c);         // Alphabetic, M, Nd, Pc, Join_Control

// The same by Unicode 8: unicode8.cc.
bool is_nonspacing_mark(char32_t c);  // Mn
bool is_control(char32_t c);          // Cc, Cf, Co

/// The bytes of the first extended grapheme cluster of valid UTF-8 that is not empty.
/// Source: Unicode Standard Annex 29; the tables are utf8proc's.
size_t grapheme_bytes(std::string_view s);

enum class NormalForm { nfc, nfd, nfkc, nfkd };
/// Cost: linear, whatever the text (marks are sorted stably run by run).
/// Source: Unicode Standard Annex 15; the tables are utf8proc's.
std::string normalized(std::string_view s, NormalForm form);
/// Each character's full lower case, without context (a final sigma is not special).
std::string lowercased(std::string_view s);
/// Each character's full upper case, as far as that is one character, and SS of a sharp s.
std::string uppercased(std::string_view s);

/// GPT-2's alphabet: each byte as a printable character. 0x21-0x7E, 0xA1-0xAC and 0xAE-0xFF stand for
/// themselves, the other 68 bytes in their order for U+0100 and up; so a space is U+0120.
struct ByteAlphabet {
  std::array<char32_t, 256> char_of;
  std::array<int16_t, 0x144> byte_of;  // -1: no byte has that character

  ByteAlphabet();
  std::optional<uint8_t> byte(char32_t c) const {
    if (c >= byte_of.size() || byte_of[c] < 0) return {};
    return static_cast<uint8_t>(byte_of[c]);
  }
};
const ByteAlphabet& byte_alphabet();

}  // namespace sator
