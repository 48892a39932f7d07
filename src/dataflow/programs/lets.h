#pragma once

#include <vector>

#include "dataflow/programs/tir_arithmetic.h"
#include "dataflow/programs/tir_places.h"

namespace sator::dataflow {

/// The values that lets around a place of a program name, each computed once per iteration of the loops around its let.
class Lets {
 public:
  /// Notes a value that a let in this scope names; gives it back.
  const Expr& add(const Expr& value, const Scope& scope);
  /// For the end of a scope: `leave(size())` of its beginning.
  size_t size() const { return lets_.size(); }
  void leave(size_t size) { lets_.resize(size); }

  /// How often each is to be counted per instance of a statement in this scope: as a part of one in loops inside of its let; not again
  /// after a statement that always runs. Where only some iterations use it, each use counts: an upper bound.
  NamedValues in(const Scope& scope) const;
  /// What is `left` to be counted after a statement of this scope.
  void note_counted(const NamedValues& left, const Scope& scope);

 private:
  struct Named {
    Expr value;
    size_t loops, guards;  ///< around the let
    bool counted = false;
  };
  std::vector<Named> lets_;
};

}  // namespace sator::dataflow
