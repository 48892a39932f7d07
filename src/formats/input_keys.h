#pragma once

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace sator::formats {

/// The object `input` of a format, read key by key.
class InputKeys {
 public:
  /// Errors: the input is not an object.
  InputKeys(const nlohmann::json& input, std::string_view format);
  /// Errors: the input has another key, with a file's text or near to one of these, which it lacks.
  void only(std::initializer_list<std::string_view> known) const;
  /// The text under a key. Errors: the key is missing, is not a string, or holds more than 64 MiB.
  std::string text(const char* key) const;
  /// The same, or nothing where the key is missing.
  std::string text_or_empty(const char* key) const;
  /// True or false; false where the key is missing. Errors: it is something else.
  bool flag(const char* key) const;
  /// One of the words, or nothing where the key is missing. Errors: another value.
  std::string choice(const char* key, std::initializer_list<std::string_view> words) const;

 private:
  [[noreturn]] void fail_key(const char* key, std::string what, std::string needs) const;
  const nlohmann::json& input_;
  std::string format_;
};

}  // namespace sator::formats
