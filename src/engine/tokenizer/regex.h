#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace sator {

/// A regular expression of a tokenizer.json. Those are written for Oniguruma in its Ruby syntax, which
/// Hugging Face's `tokenizers` uses; it is translated to PCRE2's and compiled by that. Safe to use from
/// several threads.
class Regex {
 public:
  /// Errors: the pattern is malformed, or uses what the translation does not cover (named in the message).
  explicit Regex(std::string_view pattern);
  /// The same of a pattern in the syntax of Rust's `fancy_regex`, which tiktoken uses.
  static Regex of_rust(std::string_view pattern);
  /// The expression that matches this text literally.
  static Regex literal(std::string_view text);

  /// Calls `visit(begin, end)` for each match in valid UTF-8, from left to right without overlap. An empty
  /// match right behind the match before it is skipped, as Oniguruma's iterator does. Errors: matching needs
  /// more steps than PCRE2 allows (10 million).
  void each_match(std::string_view subject, const std::function<void(size_t begin, size_t end)>& visit) const;
  /// The first match at or after `from`; the end of the text in front of `from` is seen by lookbehinds.
  std::optional<std::pair<size_t, size_t>> find(std::string_view subject, size_t from) const;

 private:
  struct Compiled;
  explicit Regex(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
  /// lines: ^ and $ match at every line's ends, else at the text's only.
  static std::shared_ptr<const Compiled> compile(const std::string& pcre, std::string_view shown, bool lines = true);
  std::shared_ptr<const Compiled> compiled_;
};

/// An Oniguruma (Ruby) expression in PCRE2's syntax, for matching with UTF, UCP and MULTILINE. What differs:
///   \s \w \d \h \b   by Oniguruma's Unicode sets; \h is a hexadecimal digit
///   (?m)             lets the dot match a newline (PCRE2's s)
///   x{n,m}+          repeats the repetition; it is not possessive
///   \p{Script}       the script itself, without its extensions
///   [a-z&&[^x]]      set operations, which PCRE2 10.42 lacks, by lookahead
/// Errors: syntax that the translation does not cover.
std::string pcre_from_oniguruma(std::string_view pattern);
/// The same of an expression of Rust's `fancy_regex`: x{n,m}+ is possessive, \w knows Join_Control and no superscripts.
/// Errors: syntax that the translation does not cover; the options m and s.
std::string pcre_from_rust(std::string_view pattern);

}  // namespace sator
