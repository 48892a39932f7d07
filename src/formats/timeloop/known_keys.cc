#include "formats/timeloop/known_keys.h"

#include <algorithm>

#include "base/text.h"
#include "formats/misspelt.h"

namespace sator::formats::timeloop {

namespace {

bool is_one_of(std::string_view key, const std::vector<std::string>& known) {
  return std::find(known.begin(), known.end(), key) != known.end();
}

}  // namespace

void only_known(const Value& map, const std::vector<std::string>& known) {
  for (const auto& [key, value] : map.entries()) {
    if (is_one_of(key, known)) continue;
    std::vector<std::string> near = nearest_names(key.substr(0, 100), known);
    map.fail_key(
        key,
        text(map.path().empty() ? "the file" : map.path(), " has an unknown key, ", string_literal(key.substr(0, 60))),
        text("the keys ", join(known, ", ")),
        near.empty() ? text("remove the key") : text("did you mean ", near[0], "?"));
  }
}

void no_misspelt(const Value& map, const std::vector<std::string>& known) {
  for (const auto& [key, value] : map.entries()) {
    if (is_one_of(key, known)) continue;
    std::string name = meant(key, known);
    if (name.empty() || map.find(name)) continue;
    map.fail_key(
        key,
        text(map.path().empty() ? "the file" : map.path(), " has a key ", string_literal(key), ", which is not ", name),
        text(name, ", or a key that cannot be taken for it"),
        text("did you mean ", name, "?"));
  }
}

}  // namespace sator::formats::timeloop
