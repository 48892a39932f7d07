// The text of a program, and errors that quote it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/node.h"

namespace sator::script {

/// A stretch of a text: the bytes [begin, end).
struct Place {
  uint32_t begin = 0, end = 0;
};

/// An Error that says where in a text it is.
class SourceError final : public Error {
 public:
  SourceError(Reason reason, Span at) : Error(std::move(reason)), at(at) {}
  Span at;
};

/// A text and its name (a file, or empty); knows its lines. `indent`: characters that were taken away before each line.
class Source : public Object {
 public:
  explicit Source(std::string text, std::string name = "", int32_t indent = 0);

  std::string_view text() const { return text_; }
  const std::string& name() const { return name_; }
  /// Line and column, both from 1; the column counts characters, not bytes.
  Span span(Place place) const;
  /// `reason` with `where` ("line 3, column 5") and the source line with the place underlined.
  Reason located(Place place, Reason reason) const;
  /// Throws it as a SourceError.
  [[noreturn]] void fail(Place place, Reason reason) const;

 private:
  std::string_view line(int number) const;
  std::string text_, name_;
  int32_t indent_;
  std::vector<uint32_t> line_starts_;
};
using SourceRef = Ref<const Source>;

}  // namespace sator::script
