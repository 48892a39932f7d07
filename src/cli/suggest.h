// What a user may have meant.
#pragma once

#include <string>
#include <vector>

namespace sator::cli {

/// A name that exists, and what it is called elsewhere.
struct KnownName {
  std::string name;
  std::vector<std::string> also;
};

/// The names that may be meant, best first, at most three: what is called so elsewhere; else those that begin so (--temp is
/// --temperature); else the nearest by edit distance.
std::vector<std::string> meant_names(const std::string& given, const std::vector<KnownName>& known);

/// "did you mean a, b?"; `otherwise` where there is none.
std::string did_you_mean(const std::vector<std::string>& names, const std::string& otherwise);

}  // namespace sator::cli
