#include "target/chip_file.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace sator {

namespace {

std::string range_text(const Unit& unit) { return text("from ", unit.least, " to ", unit.most, " ", unit.name); }

std::string_view kind_of(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string: return "a string";
    case toml::node_type::integer: return "an integer";
    case toml::node_type::floating_point: return "a number";
    case toml::node_type::boolean: return "a truth value";
    case toml::node_type::array: return "an array";
    case toml::node_type::table: return "a table";
    default: return "a date or time";
  }
}

std::string quoted_list(std::span<const std::string_view> words) {
  std::vector<std::string> out;
  for (std::string_view w : words) out.push_back(string_literal(w));
  return join(out, ", ");
}

}  // namespace

namespace {

/// The first line up to which the text cannot be parsed: where the parser gives no place.
size_t line_refused(std::string_view source) {
  size_t line = 0;
  for (size_t end = 0; end < source.size();) {
    end = std::min(source.find('\n', end), source.size() - 1) + 1;
    ++line;
    try {
      (void)toml::parse(source.substr(0, end));
    } catch (const toml::parse_error&) {
    } catch (const TomlAssertion&) {
      return line;
    }
  }
  return line;
}

}  // namespace

toml::table parse_toml(std::string_view source, const std::string& file, const std::string& hint) {
  try {
    return toml::parse(source, file);
  } catch (const toml::parse_error& e) {
    fail({.what = std::string(e.description()),
          .needs = "a TOML file",
          .hint = hint,
          .where = text(file, " line ", e.source().begin.line, ", column ", e.source().begin.column)});
  } catch (const TomlAssertion&) {
    fail({.what = "a table's or a key's name is not closed, or holds what no name may hold",
          .needs = "a TOML file",
          .hint = hint,
          .where = text(file, " line ", line_refused(source))});
  }
}

std::string KeyReader::full(std::string_view key) const {
  return path_.empty() ? std::string(key) : text(path_, ".", key);
}

const toml::source_region& KeyReader::region(std::string_view key, std::optional<size_t> element) const {
  const toml::node* node = table_.get(key);
  const toml::array* list = node && element ? node->as_array() : nullptr;
  if (list && *element < list->size()) node = list->get(*element);
  return node ? node->source() : table_.source();
}

void KeyReader::fail_there(const toml::source_region& there, std::string_view key, std::string what, std::string needs,
                           std::string hint) const {
  fail({.what = text(full(key), ": ", what),
        .needs = std::move(needs),
        .hint = hint.empty() ? text("correct ", full(key)) : std::move(hint),
        .where = text(file_, " line ", there.begin.line, ", column ", there.begin.column)});
}

void KeyReader::fail_at(std::string_view key, std::string what, std::string needs, std::string hint) const {
  fail_there(region(key), key, std::move(what), std::move(needs), std::move(hint));
}

void KeyReader::fail_in(std::string_view key, size_t element, std::string what, std::string needs,
                        std::string hint) const {
  fail_there(region(key, element), key, std::move(what), std::move(needs), std::move(hint));
}

const toml::node* KeyReader::find(std::string_view key) {
  asked_.emplace(key);
  return table_.get(key);
}

const toml::node& KeyReader::need(std::string_view key, std::string_view what) {
  const toml::node* node = find(key);
  if (!node) {
    // A misspelt key explains a missing one better.
    std::vector<std::string> present;
    for (const auto& [k, v] : table_) present.emplace_back(k.str());
    std::string hint = text("add ", key, " = ...");
    for (const std::string& near : nearest_names(key, present))
      if (!asked_.contains(near)) hint = text("is ", near, " meant to be ", key, "?");
    fail_at(key, "the key is missing", text(full(key), ": ", what), hint);
  }
  return *node;
}

bool KeyReader::has(std::string_view key) { return find(key) != nullptr; }

double KeyReader::checked(std::string_view key, const toml::node& node, const Unit& unit) const {
  std::optional<double> value = node.is_number() ? node.value<double>() : std::nullopt;
  if (!value && node.is_integer())
    value = static_cast<double>(node.as_integer()->get());  // has more digits than a double
  if (!value)
    fail_at(key,
            text("the value is ", kind_of(node)),
            text(full(key), ": a number ", range_text(unit)),
            text("write a plain number, counted in ", unit.name));
  if (!std::isfinite(*value) || *value < unit.least || *value > unit.most)
    fail_at(key,
            text("the value is ", *value),
            text(full(key), ": ", range_text(unit)),
            text("the figure counts ", unit.name, ": is it in another unit?"));
  return *value;
}

double KeyReader::number(std::string_view key, const Unit& unit) {
  return checked(key, need(key, text("a number ", range_text(unit))), unit);
}

double KeyReader::number_or(std::string_view key, const Unit& unit, double otherwise) {
  const toml::node* node = find(key);
  return node ? checked(key, *node, unit) : otherwise;
}

int64_t KeyReader::integer(std::string_view key, const Unit& unit) {
  const toml::node& node = need(key, text("an integer ", range_text(unit)));
  if (!node.is_integer())
    fail_at(key, text("the value is ", kind_of(node)), text(full(key), ": an integer ", range_text(unit)));
  return static_cast<int64_t>(checked(key, node, unit));
}

int64_t KeyReader::integer_or(std::string_view key, const Unit& unit, int64_t otherwise) {
  return has(key) ? integer(key, unit) : otherwise;
}

std::string KeyReader::string(std::string_view key) {
  const toml::node& node = need(key, "a string");
  if (!node.is_string()) fail_at(key, text("the value is ", kind_of(node)), text(full(key), ": a string"));
  return std::string(*node.value<std::string_view>());
}

std::string KeyReader::name(std::string_view key) {
  std::string value = string(key);
  const bool printable =
      std::none_of(value.begin(), value.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (value.empty() || !printable)
    fail_at(key,
            value.empty() ? "the name is empty" : "the name has control characters",
            text(full(key), ": a name of printable characters"),
            "write what tables and files shall call it");
  return value;
}

std::string KeyReader::string_or(std::string_view key, std::string otherwise) {
  return has(key) ? string(key) : otherwise;
}

bool KeyReader::flag_or(std::string_view key, bool otherwise) {
  const toml::node* node = find(key);
  if (!node) return otherwise;
  if (!node->is_boolean()) fail_at(key, text("the value is ", kind_of(*node)), text(full(key), ": true or false"));
  return *node->value<bool>();
}

std::vector<std::string> KeyReader::strings(std::string_view key) {
  const toml::node* node = find(key);
  if (!node) return {};
  const toml::array* list = node->as_array();
  if (!list) fail_at(key, text("the value is ", kind_of(*node)), text(full(key), ": a list of strings"));
  std::vector<std::string> out;
  for (const toml::node& element : *list) {
    if (!element.is_string())
      fail_at(key, text("an element is ", kind_of(element)), text(full(key), ": a list of strings"));
    out.emplace_back(*element.value<std::string_view>());
  }
  return out;
}

std::vector<int64_t> KeyReader::integers(std::string_view key, const Unit& unit) {
  const std::string needs = text(full(key), ": a list of integers ", range_text(unit));
  const toml::node& node = need(key, needs);
  const toml::array* list = node.as_array();
  if (!list) fail_at(key, text("the value is ", kind_of(node)), needs);
  std::vector<int64_t> out;
  for (const toml::node& element : *list) {
    if (!element.is_integer()) fail_at(key, text("an element is ", kind_of(element)), needs);
    out.push_back(static_cast<int64_t>(checked(key, element, unit)));
  }
  return out;
}

std::string KeyReader::place(std::string_view key) const { return text(file_, " line ", region(key).begin.line); }

std::string KeyReader::place_in(std::string_view key, size_t element) const {
  return text(file_, " line ", region(key, element).begin.line);
}

size_t KeyReader::position_of(std::string_view key, const toml::node& node,
                              std::span<const std::string_view> allowed) const {
  std::optional<std::string_view> word = node.is_string() ? node.value<std::string_view>() : std::nullopt;
  if (!word) fail_at(key, text("the value is ", kind_of(node)), text(full(key), ": one of ", quoted_list(allowed)));
  for (size_t i = 0; i < allowed.size(); ++i)
    if (allowed[i] == *word) return i;
  std::vector<std::string> near = nearest_names(*word, {allowed.begin(), allowed.end()});
  fail_at(key,
          text("the value is ", string_literal(*word)),
          text(full(key), ": one of ", quoted_list(allowed)),
          near.empty() ? "" : text("did you mean ", string_literal(near[0]), "?"));
}

size_t KeyReader::choice(std::string_view key, std::span<const std::string_view> allowed) {
  return position_of(key, need(key, text("one of ", quoted_list(allowed))), allowed);
}

std::vector<size_t> KeyReader::choices_or(std::string_view key, std::span<const std::string_view> allowed,
                                          std::vector<size_t> otherwise) {
  const toml::node* node = find(key);
  if (!node) return otherwise;
  const toml::array* list = node->as_array();
  if (!list) fail_at(key, text("the value is ", kind_of(*node)), text(full(key), ": a list of ", quoted_list(allowed)));
  std::vector<size_t> chosen;
  for (const toml::node& element : *list) chosen.push_back(position_of(key, element, allowed));
  return chosen;
}

KeyReader KeyReader::table(std::string_view key) {
  const toml::node& node = need(key, "a table");
  const toml::table* inner = node.as_table();
  if (!inner) fail_at(key, text("the value is ", kind_of(node)), text("a table [", full(key), "]"));
  return KeyReader(*inner, file_, full(key));
}

std::vector<KeyReader> KeyReader::tables(std::string_view key) {
  const toml::node& node = need(key, text("one table [[", key, "]] or more"));
  const toml::array* list = node.as_array();
  if (!list || list->empty() || !list->is_homogeneous(toml::node_type::table))
    fail_at(key, text("the value is ", kind_of(node)), text("one table [[", full(key), "]] or more"));
  std::vector<KeyReader> readers;
  for (size_t i = 0; i < list->size(); ++i)
    readers.emplace_back(*list->get(i)->as_table(), file_, text(full(key), "[", i, "]"));
  return readers;
}

void KeyReader::finish() const {
  std::vector<std::string> known(asked_.begin(), asked_.end());
  for (const auto& [key, node] : table_) {
    if (asked_.contains(key.str())) continue;
    std::vector<std::string> near = nearest_names(key.str(), known);
    fail_at(key.str(),
            "there is no such key",
            text("keys ", join(known, ", ")),
            near.empty() ? "remove the line" : text("did you mean ", join(near, " or "), "?"));
  }
}

}  // namespace sator
