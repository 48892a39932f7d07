#include "dataflow/formats/timeloop/known_keys.h"

#include <algorithm>
#include <cstdint>

#include "base/text.h"

namespace sator::dataflow::timeloop {

namespace {

/// Letters that are missing, added or wrong, and exchanges of neighbours, between two names.
int slips(std::string_view a, std::string_view b) {
  std::vector<std::vector<int>> d(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i)
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = static_cast<int>(i + j);
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

bool is_one_of(std::string_view key, const std::vector<std::string>& known) {
  return std::find(known.begin(), known.end(), key) != known.end();
}

}  // namespace

std::string meant(std::string_view key, const std::vector<std::string>& known) {
  if (key.size() > 100) return {};
  for (int most : {1, 2})
    for (const std::string& name : known)
      if (name.size() >= (most == 1 ? 4 : 8) && slips(key, name) <= most) return name;
  return {};
}

void only_known(const Value& map, const std::vector<std::string>& known) {
  for (const auto& [key, value] : map.entries()) {
    if (is_one_of(key, known)) continue;
    std::vector<std::string> near = nearest_names(key.substr(0, 100), known);
    map.fail_key(key,
                 text(map.path().empty() ? "the file" : map.path(), " has an unknown key, ", quoted(key.substr(0, 60))),
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
        text(map.path().empty() ? "the file" : map.path(), " has a key ", quoted(key), ", which is not ", name),
        text(name, ", or a key that cannot be taken for it"),
        text("did you mean ", name, "?"));
  }
}

}  // namespace sator::dataflow::timeloop
