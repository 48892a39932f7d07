#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

namespace sator {

using Json = nlohmann::json;

/// What parse_json does with an object that gives one name twice: the later value wins (as most readers do),
/// or Error.
enum class DuplicateNames { last_wins, refused };

/// Which double a number becomes that is no integer of 64 bits: the nearest one; the nearest one, and an integer is refused; or the
/// one that Rust's serde_json makes of it, which rounds the digits and then once more where it scales them by a power of ten. Sums of
/// such numbers that are equal with the ones differ with the others.
/// Source: serde_json 1.0, src/de.rs, f64_from_parts without the feature float_roundtrip.
enum class Decimals { nearest, nearest_but_integers, serde };

/// JSON text as a tree.
///   source   names the text in errors: "config.json"
/// Errors: malformed JSON, invalid UTF-8, numbers beyond a double, nesting deeper than 128, and, if asked,
/// duplicate names and integers beyond 64 bits.
Json parse_json(std::string_view text, std::string_view source, DuplicateNames duplicates = DuplicateNames::refused,
                Decimals decimals = Decimals::nearest);

/// Which members of a tree were asked for by their name, so that what nobody reads can be found afterwards.
class JsonReads {
 public:
  void add(const Json& member) { read_.insert(&member); }
  bool contains(const Json& member) const { return read_.contains(&member); }

 private:
  std::unordered_set<const Json*> read_;
};

/// One value of a parsed JSON file together with its place in it. What is missing or of another type is an
/// Error that names the place: `config.json: rope_scaling.factor is a string`. It looks into the tree and
/// must not outlive it.
class JsonAt {
 public:
  ///   reads  gets every member that is asked for by its name, below this value too; it may be absent
  JsonAt(const Json& value, std::string_view source, JsonReads* reads = nullptr)
      : value_(&value), reads_(reads), source_(source) {}

  const Json& json() const { return *value_; }
  bool is_object() const;
  bool is_array() const;
  bool is_string() const;
  bool is_boolean() const;
  bool is_integer() const;

  /// The member with that name; an absent one is an Error, and so is a null.
  JsonAt at(std::string_view name) const;
  /// The member with that name; nothing if it is absent or null.
  std::optional<JsonAt> find(std::string_view name) const;
  /// Whether there is a member with that name, a null too.
  bool has(std::string_view name) const;
  /// Calls `visit` for each element of an array, in order.
  void each(const std::function<void(const JsonAt& element)>& visit) const;
  /// Calls `visit` for each member of an object, in the order of their names. Members do not count as read by this.
  void each_member(const std::function<void(const std::string& name, const JsonAt& member)>& visit) const;

  bool boolean() const;
  int64_t integer(int64_t min = INT64_MIN, int64_t max = INT64_MAX) const;
  double number() const;
  const std::string& string() const;

  /// The member's value, or `otherwise` if it is absent or null.
  bool boolean_or(std::string_view name, bool otherwise) const;
  int64_t integer_or(std::string_view name, int64_t otherwise, int64_t min = INT64_MIN, int64_t max = INT64_MAX) const;
  double number_or(std::string_view name, double otherwise) const;
  std::string string_or(std::string_view name, std::string_view otherwise) const;

  /// The place as a reader says it: "config.json: rope_scaling.factor".
  std::string where() const;
  /// Throws an Error about this value: "<where> <problem>".
  [[noreturn]] void fail(std::string_view problem, std::string_view needs, std::string_view hint = "") const;

 private:
  JsonAt(const Json& value, const JsonAt& around, std::string path)
      : value_(&value), reads_(around.reads_), source_(around.source_), path_(std::move(path)) {}
  /// The member with that name, which counts as read; null if there is none.
  const Json* look_up(std::string_view name) const;
  [[noreturn]] void wrong_type(std::string_view needs) const;

  const Json* value_;
  JsonReads* reads_ = nullptr;
  std::string source_, path_;
};

}  // namespace sator
