#include "cli/suggest.h"

#include <algorithm>

#include "base/text.h"

namespace sator::cli {

std::vector<std::string> meant_names(const std::string& given, const std::vector<KnownName>& known) {
  std::vector<std::string> called_so, begin_so, names;
  for (const KnownName& k : known) {
    if (std::ranges::count(k.also, given) > 0) called_so.push_back(k.name);
    constexpr size_t kLeast = 3;  // letters that say something, dashes among them
    if (given.size() >= kLeast && k.name.starts_with(given)) begin_so.push_back(k.name);
    names.push_back(k.name);
  }
  if (!called_so.empty()) return called_so;
  constexpr size_t kMost = 3;
  if (begin_so.size() > kMost) begin_so.resize(kMost);
  return begin_so.empty() ? nearest_names(given, names) : begin_so;
}

std::string did_you_mean(const std::vector<std::string>& names, const std::string& otherwise) {
  return names.empty() ? otherwise : text("did you mean ", join(names, ", "), "?");
}

}  // namespace sator::cli
