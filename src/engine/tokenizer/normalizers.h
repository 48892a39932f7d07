#pragma once

#include <functional>
#include <string>

#include "base/json.h"
#include "base/text.h"
#include "engine/tokenizer/pieces.h"

namespace sator {

/// A text on its way through the normalizers.
struct NormalText {
  std::string text;
  /// Nothing was taken off the begin: the text starts where it started before. (Metaspace's "first" asks.)
  bool keeps_begin = true;
  /// The text begins where the whole input begins.
  bool at_start = true;
};

/// Rewrites text before it is cut.
using Normalizer = std::function<void(NormalText&)>;

/// The `normalizer` of a tokenizer.json.
/// Errors: a kind that is not supported, named with the place; malformed members.
Normalizer read_normalizer(const JsonAt& at);

/// A `pattern` of a tokenizer.json: {"String": s} or {"Regex": r}.
Pattern read_pattern(const JsonAt& at);

/// What a table of kinds does with one that it lacks: an Error that names it and lists the kinds it has.
template <class Row, size_t n>
const Row& find_kind(const Row (&rows)[n], const JsonAt& at, std::string_view what) {
  const std::string& kind = at.at("type").string();
  std::vector<std::string> names;
  for (const Row& row : rows) {
    if (row.type == kind) return row;
    names.emplace_back(row.type);
  }
  at.fail(text("is of type ", string_literal(kind), ", a ", what, " that is not supported"),
          text("one of ", join(names, ", ")));
}

}  // namespace sator
