#pragma once

#include <yaml-cpp/yaml.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sator::formats::timeloop {

/// A YAML value that knows its file and its place there, so that every refusal names them. `-` in keys reads as `_`
/// (v0.3 wrote `data-spaces`).
class Value {
 public:
  Value(YAML::Node node, std::string_view file, std::string path) : node_(node), file_(file), path_(std::move(path)) {}

  Value(const Value&) = default;
  Value& operator=(const Value&) = delete;  // assigning a YAML::Node changes the document that it belongs to

  bool is_map() const { return node_.IsMap(); }
  bool is_list() const { return node_.IsSequence(); }
  bool is_scalar() const { return node_.IsScalar(); }
  bool is_null() const { return node_.IsNull(); }
  std::string tag() const { return node_.Tag(); }
  const std::string& path() const { return path_; }

  /// The value of a key of this map. Errors: this is no map; the key stands twice.
  std::optional<Value> find(std::string_view key) const;
  /// The same where it must be there.
  Value at(std::string_view key, std::string_view meaning) const;
  /// The value of the first of these keys that is there and not null.
  std::optional<Value> any_of(std::initializer_list<std::string_view> keys) const;
  /// The entries of a map, in its order. Errors, here and below: there are more than any specification has.
  std::vector<std::pair<std::string, Value>> entries() const;
  /// A refusal at a key of this map.
  [[noreturn]] void fail_key(std::string_view key, std::string what, std::string needs, std::string hint) const;
  /// The elements of a list.
  std::vector<Value> items() const;

  std::string string() const;
  int64_t integer(int64_t lowest) const;
  double real(double lowest) const;
  bool boolean() const;
  /// A list of names, or one text with names between spaces or commas.
  std::vector<std::string> names() const;

  [[noreturn]] void fail_here(std::string what, std::string needs, std::string hint) const;

 private:
  YAML::Node node_;
  std::string_view file_;
  std::string path_;

  void refuse_long() const;
};

/// The document of a text, below `root` where the file has that key (one of the given). Errors: the text is no YAML, is a
/// Jinja template, is empty, or larger than any specification is.
Value document(std::string_view text, std::string_view file, std::initializer_list<std::string_view> roots);

/// A whole number without sign. Nothing if the text is something else or does not fit 63 bits.
std::optional<int64_t> whole_number(std::string_view text);

}  // namespace sator::formats::timeloop
