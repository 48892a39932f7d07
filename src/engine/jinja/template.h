// Templates in the language of Jinja2, as chat templates use it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "engine/jinja/syntax.h"

namespace sator::jinja {

/// A template that has been read. It means what it means in the environment that Transformers gives chat templates: trim_blocks and
/// lstrip_blocks, `break` and `continue`, `{% generation %}`, `tojson`, `raise_exception`, `strftime_now`, values that do not
/// change.
class Template {
 public:
  /// Errors: no template, by line and column.
  ///   name  what errors call it: "chat_template"
  static Template read(const std::string& source, std::string name);

  /// The text that the template makes of some variables.
  ///   variables  an object; its members are the template's global names
  /// Errors, by line and column: what raise_exception says; a value of another type than asked for; a name that is called and
  /// not there; more than 10 million steps, 64 MB of text, 200 macros inside of each other.
  std::string render(const nlohmann::ordered_json& variables) const;

 private:
  std::string name_;
  std::shared_ptr<const Stmt::Body> body_;
};

}  // namespace sator::jinja
