#include "formats/misspelt.h"

#include <algorithm>

namespace sator::formats {

/// Letters that are missing, added or wrong, and exchanges of neighbours, between two names.
static int slips(std::string_view a, std::string_view b) {
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

std::string meant(std::string_view key, const std::vector<std::string>& known) {
  if (key.size() > 100) return {};
  for (int most : {1, 2})
    for (const std::string& name : known)
      if (name.size() >= (most == 1 ? 4 : 8) && slips(key, name) <= most) return name;
  return {};
}

}  // namespace sator::formats
