#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text_line.h"

namespace sator::formats {

/// A file of sections and options with the rules of Python's ConfigParser, which SCALE-Sim reads its .cfg with:
/// `[section]`; `option = value` or `option: value`, the first delimiter counts; option names ignore case, section
/// names do not; lines that start with # or ; are comments; a line indented deeper than its option continues the
/// value; [DEFAULT] holds options of every section; %(option)s in a value is replaced and %% is a percent sign;
/// nothing may stand twice.
class IniFile {
 public:
  IniFile(const IniFile&) = delete;  // its values speak of it
  IniFile& operator=(const IniFile&) = delete;

  struct Value {
    std::string text;
    TextLine line;
    size_t column = 0;  // where the value starts
  };

  /// Errors: a line that is neither, an option before any section, a section or option given twice.
  IniFile(std::string_view text, std::string_view file);

  /// Errors: a section that is none of these, at its header.
  void only_sections(const std::vector<std::string>& known) const;
  bool has_section(const std::string& section) const { return sections_.contains(section); }
  /// The option of the section, or of [DEFAULT]; nothing where neither has it.
  /// Errors: a % that starts no replacement, an unknown name in one, replacements inside of each other without end.
  std::optional<Value> find(const std::string& section, std::string_view option) const;
  /// The same. Errors: there is no such option.
  Value get(const std::string& section, std::string_view option) const;

 private:
  using Options = std::map<std::string, Value>;
  const Value* raw(const std::string& section, const std::string& option) const;
  std::string replaced(const std::string& section, const Value& value, std::string_view text, int depth,
                       int& left) const;

  std::string file_;
  std::map<std::string, Options> sections_;
  Options defaults_;
  std::map<std::string, TextLine> headers_;
  TextLine last_line_;
};

}  // namespace sator::formats
