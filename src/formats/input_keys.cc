#include "formats/input_keys.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "formats/misspelt.h"

namespace sator::formats {

InputKeys::InputKeys(const nlohmann::json& input, std::string_view format) : input_(input), format_(format) {
  if (!input.is_object())
    fail({.what = sator::text("the input of format ", string_literal(format), " is not an object"),
          .needs = "input: an object that holds the texts of the tool's files",
          .hint = "write \"input\": {...}"});
}

void InputKeys::fail_key(const char* key, std::string what, std::string needs) const {
  fail({.what = std::move(what),
        .needs = std::move(needs),
        .hint = sator::text("look at the keys of format ", string_literal(format_), " in docs/formats.md"),
        .where = sator::text("input.", key)});
}

void InputKeys::only(std::initializer_list<std::string_view> known) const {
  for (const auto& [key, value] : input_.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    // A further file would change the answer; words and numbers are remarks of whoever wrote the row.
    const std::string near = meant(key, {known.begin(), known.end()});
    const bool is_file = value.is_string() && value.get_ref<const std::string&>().find('\n') != std::string::npos;
    if (!is_file && (near.empty() || input_.contains(near))) continue;
    fail({.what = sator::text("the input has an unknown key, ", string_literal(key.substr(0, 60))),
          .needs = sator::text("the keys ", join(std::vector<std::string_view>(known), ", ")),
          .hint = near.empty() ? "remove the file" : sator::text("did you mean ", near, "?"),
          .where = "input"});
  }
}

std::string InputKeys::text(const char* key) const {
  const auto it = input_.find(key);
  const std::string needs = sator::text(string_literal(key), ": the file's text, a string");
  if (it == input_.end()) fail_key(key, sator::text("there is no ", string_literal(key)), needs);
  if (!it->is_string()) fail_key(key, sator::text(string_literal(key), " is not a string"), needs);
  std::string out = it->get<std::string>();
  if (out.size() > size_t{64} << 20)
    fail_key(key, sator::text(string_literal(key), " is longer than 64 MiB"), "texts up to 64 MiB");
  return out;
}

std::string InputKeys::text_or_empty(const char* key) const { return input_.contains(key) ? text(key) : std::string(); }

bool InputKeys::flag(const char* key) const {
  const auto it = input_.find(key);
  if (it == input_.end()) return false;
  if (!it->is_boolean()) fail_key(key, sator::text(string_literal(key), " is not true or false"), "true or false");
  return it->get<bool>();
}

std::string InputKeys::choice(const char* key, std::initializer_list<std::string_view> words) const {
  if (!input_.contains(key)) return {};
  const std::string value = text(key);
  for (std::string_view word : words)
    if (value == word) return value;
  fail_key(key,
           sator::text(string_literal(key), " is ", string_literal(value)),
           join(std::vector<std::string_view>(words), " or "));
}

}  // namespace sator::formats
