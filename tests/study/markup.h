#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sator::study {

/// Why tags of HTML or SVG do not nest; empty if they do. Attribute values must be quoted and free of '<'.
inline std::string nesting_error(std::string_view markup) {
  std::vector<std::string> open;
  for (size_t at = markup.find('<'); at != std::string_view::npos; at = markup.find('<', at + 1)) {
    size_t end = at + 1;
    for (bool quoted = false; end < markup.size() && (quoted || markup[end] != '>'); ++end) {
      if (markup[end] == '"') quoted = !quoted;
      if (markup[end] == '<') return "'<' inside of a tag at " + std::string(markup.substr(at, 60));
    }
    if (end == markup.size()) return "a tag does not end: " + std::string(markup.substr(at, 60));
    const std::string_view tag = markup.substr(at + 1, end - at - 1);
    const bool closes = tag.starts_with("/");
    const size_t name_at = closes ? 1 : 0;
    const std::string name(tag.substr(name_at, tag.find_first_of(" /\n", name_at) - name_at));
    if (tag.starts_with("!") || tag.ends_with("/") || name == "meta") continue;
    if (!closes) {
      open.push_back(name);
      if (name != "style") continue;
      end = markup.find("</style>", end);  // its text is no markup
      if (end == std::string_view::npos) return "style does not end";
      at = end - 1;
      continue;
    }
    if (open.empty() || open.back() != name)
      return "</" + name + "> closes " + (open.empty() ? "nothing" : open.back());
    open.pop_back();
  }
  return open.empty() ? "" : "<" + open.back() + "> is not closed";
}

}  // namespace sator::study
