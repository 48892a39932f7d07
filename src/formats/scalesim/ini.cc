#include "formats/scalesim/ini.h"

#include <algorithm>

#include "base/error.h"

namespace sator::formats {
namespace {

constexpr std::string_view kSpaces = " \t\v\f\r";

std::string_view stripped(std::string_view s) {
  const size_t from = s.find_first_not_of(kSpaces);
  if (from == s.npos) return {};
  return s.substr(from, s.find_last_not_of(kSpaces) - from + 1);
}

constexpr const char* kLineNeeds = "each line is [section], option = value, option: value, or a comment after # or ;";

}  // namespace

IniFile::IniFile(std::string_view text, std::string_view file) : file_(file) {
  last_line_ = {"", file_, 1};
  Options* section = nullptr;
  Value* open = nullptr;  // the option that an indented line continues
  size_t indent = 0;
  for (const TextLine& line : text_lines(text, file_)) {
    const size_t column = std::min(line.content.find_first_not_of(kSpaces), line.content.size());
    const std::string_view body = stripped(line.content);
    if (!body.empty()) last_line_ = line;
    if (body.starts_with('#') || body.starts_with(';')) continue;
    if (body.empty()) {
      if (open) open->text += '\n';
      continue;
    }
    if (open && column > indent) {
      open->text += '\n';
      open->text += body;
      continue;
    }
    indent = column;
    if (body.starts_with('[') && body.find(']') != body.npos && body.rfind(']') > 1) {
      const std::string name(body.substr(1, body.rfind(']') - 1));
      if (name == "DEFAULT") {
        section = &defaults_;
      } else {
        if (auto first = headers_.find(name); first != headers_.end())
          line.fail(column,
                    sator::text("section [", shown(name), "] stands in line ", first->second.number, " already"),
                    "each section once",
                    "join the two sections");
        headers_[name] = line;
        section = &sections_[name];
      }
      open = nullptr;
      continue;
    }
    if (!section)
      line.fail(column,
                sator::text(shown(body), " stands before any section"),
                "the first line is a [section]",
                "begin with [general]");
    const size_t delimiter = body.find_first_of("=:");
    const std::string_view name = stripped(body.substr(0, std::min(delimiter, body.size())));
    if (delimiter == body.npos || name.empty())
      line.fail(column,
                sator::text(shown(body), " is no option"),
                kLineNeeds,
                "write the option's name, a colon and its value");
    const std::string_view value = stripped(body.substr(delimiter + 1));
    const size_t at = value.empty() ? column + delimiter + 1 : static_cast<size_t>(value.data() - line.content.data());
    auto [entry, fresh] = section->try_emplace(lower_case(std::string(name)), Value{std::string(value), line, at});
    if (!fresh)
      line.fail(column,
                sator::text("option ", shown(name), " stands in line ", entry->second.line.number, " already"),
                "each option once in a section (upper and lower case are the same)",
                "remove one of the two");
    open = &entry->second;
  }
  const auto trim_ends = [](Options& options) {
    for (auto& [name, value] : options) value.text.erase(value.text.find_last_not_of(" \t\v\f\r\n") + 1);
  };
  trim_ends(defaults_);
  for (auto& [name, options] : sections_) trim_ends(options);
}

const IniFile::Value* IniFile::raw(const std::string& section, const std::string& option) const {
  if (auto s = sections_.find(section); s != sections_.end())
    if (auto o = s->second.find(option); o != s->second.end()) return &o->second;
  auto o = defaults_.find(option);
  return o == defaults_.end() || !sections_.contains(section) ? nullptr : &o->second;
}

std::string IniFile::replaced(const std::string& section, const Value& value, std::string_view text, int depth,
                              int& left) const {
  constexpr int kDeepest = 10;
  const auto fail_here = [&](std::string what) {
    value.line.fail(value.column,
                    std::move(what),
                    "%% for a percent sign, %(option)s for another option's value",
                    "double the percent sign");
  };
  std::string out;
  while (!text.empty()) {
    const size_t at = text.find('%');
    out += text.substr(0, at);
    if (at == text.npos) break;
    text.remove_prefix(at + 1);
    if (text.starts_with('%')) {
      out += '%';
      text.remove_prefix(1);
      continue;
    }
    const size_t close = text.find(')');
    if (!text.starts_with('(') || close == text.npos || !text.substr(close + 1).starts_with('s'))
      fail_here("a % starts no replacement");
    const std::string name = lower_case(std::string(text.substr(1, close - 1)));
    const Value* other = raw(section, name);
    if (!other) fail_here(sator::text("%(", shown(name), ")s names no option of this section"));
    if (depth == kDeepest) fail_here("replacements go deeper than ten");
    if (left-- == 0) fail_here("the value needs more than 1000 replacements");
    out += replaced(section, value, other->text, depth + 1, left);
    text.remove_prefix(close + 2);
  }
  return out;
}

void IniFile::only_sections(const std::vector<std::string>& known) const {
  for (const auto& [name, header] : headers_) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::vector<std::string> near = nearest_names(name.substr(0, 100), known);
    header.fail(header.content.find('['),
                sator::text("the section ", shown("[" + name + "]"), " is unknown"),
                sator::text("the sections ", join(known, ", ")),
                near.empty() ? "remove the section" : sator::text("did you mean [", near[0], "]?"));
  }
}

std::optional<IniFile::Value> IniFile::find(const std::string& section, std::string_view option) const {
  const Value* value = raw(section, lower_case(std::string(option)));
  if (!value) return {};
  Value out = *value;
  int left = 1000;
  if (out.text.find('%') != std::string::npos) out.text = replaced(section, *value, value->text, 1, left);
  return out;
}

IniFile::Value IniFile::get(const std::string& section, std::string_view option) const {
  if (std::optional<Value> value = find(section, option)) return *std::move(value);
  const auto header = headers_.find(section);
  const TextLine& at = header == headers_.end() ? last_line_ : header->second;
  at.fail(0,
          header == headers_.end() ? text("there is no section [", section, "]")
                                   : text("section [", section, "] has no option ", option),
          text("option ", option, " in section [", section, "]"),
          text("write ", option, ": and its value below [", section, "]"));
}

}  // namespace sator::formats
