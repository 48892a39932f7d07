#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dataflow/counts/relation.h"

namespace sator::dataflow {

/// A line of a file, and how to complain about a place in it.
struct Source {
  std::string_view content;
  std::string file;
  int64_t line = 1;
  /// Throws an Error that shows the line with `column` (from 0) underlined.
  [[noreturn]] void fail_at(size_t column, std::string what, std::string needs, std::string hint) const;
};

/// name[element, ...]; on the left of an arrow the elements are plain variables.
struct Tuple {
  std::string name;
  std::vector<QuasiAffine> elements;
  size_t column = 0;
};

/// One part of a union: from -> to : constraints. Variables are those of `from`, then free ones that only
/// `to` names.
struct RelationPiece {
  Tuple from, to;
  std::vector<std::string> variables;
  int free_variables = 0;
  std::vector<QuasiAffine> constraints;  // each >= 0
  size_t constraint_column = 0;
};

/// Reads `{ S[i,j] -> A[i,j] : 0 <= i < 8 ; ... }`, or sets without an arrow, as isl writes them.
std::vector<RelationPiece> read_relation(const Source& source, bool is_map);

/// A set as a box with guards. Errors: an iterator whose bounds do not follow from the constraints.
Domain to_domain(const Source& source, const RelationPiece& set);

/// Reads tokens of one line; the place of each is known.
class RelationReader {
 public:
  explicit RelationReader(const Source& source) : source_(source) { skip_spaces(); }
  bool at_end() const { return at_ >= source_.content.size(); }
  int64_t integer();
  [[noreturn]] void fail_here(std::string what, std::string needs) const;
  std::vector<RelationPiece> relation(bool is_map);

 private:
  /// numerator / denominator: division is only allowed on the way into floor().
  struct Ratio {
    QuasiAffine numerator;
    int64_t denominator = 1;
  };
  enum class Compare { less, less_equal, greater, greater_equal, equal };

  void skip_spaces();
  char peek() const { return at_end() ? '\0' : source_.content[at_]; }
  bool accept(std::string_view token);
  bool accept_word(std::string_view word);
  void expect(std::string_view token, std::string_view where);
  std::string_view word();
  int64_t literal();
  Tuple tuple(RelationPiece& piece, bool defines);
  RelationPiece piece(bool is_map);
  void constraints(RelationPiece& piece);
  void chain(RelationPiece& piece);
  bool comparison(Compare& op);
  Ratio sum(RelationPiece& piece);
  Ratio product(RelationPiece& piece);
  Ratio factor(RelationPiece& piece);
  bool at_keyword() const;
  Ratio scaled(Ratio ratio, int64_t by, size_t column) const;
  QuasiAffine whole(const Ratio& ratio, size_t column) const;
  Ratio checked(Ratio ratio, size_t column) const;

  const Source& source_;
  size_t at_ = 0;
  int depth_ = 0;
  bool free_allowed_ = false;
};

}  // namespace sator::dataflow
