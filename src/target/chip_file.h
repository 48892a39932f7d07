#pragma once

#define TOML_EXCEPTIONS 1
// The parser states some of what it expects of a file as assertions: those are the file's mistakes, and not the end.
#define TOML_ASSERT(holds)                        \
  do {                                            \
    if (!(holds)) throw ::sator::TomlAssertion(); \
  } while (false)
namespace sator {
struct TomlAssertion {};
}  // namespace sator

#include <toml++/toml.h>

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sator {

/// What a number may be, and what it counts.
struct Unit {
  std::string_view name;  // "bytes", "Hz"
  double least;
  double most;
};

/// Errors: not TOML, with line and column; `hint` is the way on.
toml::table parse_toml(std::string_view source, const std::string& file, const std::string& hint);

struct Chip;
class KeyReader;

/// The table [vector] of a chip's file. Energies must name their source.
void read_vector_unit(KeyReader in, Chip& chip);

/// Reads the keys of one TOML table. Each question names a key; what was never asked for is unknown.
class KeyReader {
 public:
  KeyReader(const toml::table& table, std::string file, std::string path)
      : table_(table), file_(std::move(file)), path_(std::move(path)) {}

  bool has(std::string_view key);
  double number(std::string_view key, const Unit& unit);
  double number_or(std::string_view key, const Unit& unit, double otherwise);
  int64_t integer(std::string_view key, const Unit& unit);
  int64_t integer_or(std::string_view key, const Unit& unit, int64_t otherwise);
  std::string string(std::string_view key);
  std::string string_or(std::string_view key, std::string otherwise);
  bool flag_or(std::string_view key, bool otherwise);
  /// A list of strings; empty if the key is absent.
  std::vector<std::string> strings(std::string_view key);
  /// A list of integers, each within the unit's range.
  std::vector<int64_t> integers(std::string_view key, const Unit& unit);
  /// The position of the value in `allowed`.
  size_t choice(std::string_view key, std::span<const std::string_view> allowed);
  std::vector<size_t> choices_or(std::string_view key, std::span<const std::string_view> allowed,
                                 std::vector<size_t> otherwise);
  KeyReader table(std::string_view key);
  /// [[key]] tables, at least one.
  std::vector<KeyReader> tables(std::string_view key);

  /// Errors on the first key that was never asked for.
  void finish() const;
  [[noreturn]] void fail_at(std::string_view key, std::string what, std::string needs, std::string hint = "") const;
  /// The same at an element of a list.
  [[noreturn]] void fail_in(std::string_view key, size_t element, std::string what, std::string needs,
                            std::string hint = "") const;
  /// "FILE line N", where the key stands, or its table.
  std::string place(std::string_view key) const;
  /// The same of an element of a list.
  std::string place_in(std::string_view key, size_t element) const;

 private:
  const toml::node* find(std::string_view key);
  const toml::node& need(std::string_view key, std::string_view what);
  double checked(std::string_view key, const toml::node& node, const Unit& unit) const;
  std::string full(std::string_view key) const;
  const toml::source_region& region(std::string_view key, std::optional<size_t> element = {}) const;
  [[noreturn]] void fail_there(const toml::source_region& there, std::string_view key, std::string what,
                               std::string needs, std::string hint) const;
  size_t position_of(std::string_view key, const toml::node& node, std::span<const std::string_view> allowed) const;

  const toml::table& table_;
  std::string file_, path_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace sator
