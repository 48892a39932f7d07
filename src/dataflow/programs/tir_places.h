#pragma once

#include <map>

#include "dataflow/programs/tir_cases.h"
#include "tir/nodes.h"

namespace sator::dataflow {

constexpr int64_t kLargestExtent = int64_t{1} << 50;

/// The loops, bindings and conditions around a statement.
struct Scope {
  struct Loop {
    VarRef var;
    std::string thread;
    bool at_once = false;  // all of it in one stamp
  };
  std::vector<Loop> loops;  // one per iterator of the domain
  Domain domain;
  std::vector<QuasiAffine> only_where;  // as Work::only_where
  VarValues values;
  Attrs annotations;             // of the block
  VarMap looked_up;              // variables whose values are no quasi-affine functions of the loops
  std::vector<Expr> conditions;  // that ask data

  void bind(const VarRef& v, const Expr& value, const VarValues& around) {
    if (auto known = to_quasi_affine(value, around))
      values[v] = *known;
    else
      looked_up[v] = value;
  }
  void unbind(const VarRef& v) {
    values.erase(v);
    looked_up.erase(v);
  }
};

/// A load or store as (buffer, coordinates).
struct Place {
  BufferRef buffer;
  Map at;
};

/// Where the loads and stores of a function go.
class Places {
 public:
  ///   function   what messages call it
  explicit Places(std::string function) : function_(std::move(function)) {}

  /// A matched buffer is the box of its source.
  void alias(const BufferRef& buffer, tir::BufferRegionRef source) { aliases_[buffer] = std::move(source); }

  /// The element that `indices` pick. An index that is itself loaded picks rows that are taken as distinct, for all places
  /// that are looked up and for all values of the rest of the index, which number them; these places are appended to
  /// `looked_up` if it is given. Errors: an index that is neither quasi-affine nor loaded.
  Place of(BufferRef buffer, const std::vector<Expr>& indices, const Scope& scope, std::vector<Place>* looked_up);

  /// Whether an index was looked up so far.
  bool has_looked_up() const { return has_looked_up_; }

 private:
  QuasiAffine looked_up_index(const Expr& index, const Scope& scope, std::vector<Place>* looked_up);

  std::string function_;
  std::map<BufferRef, tir::BufferRegionRef> aliases_;
  bool has_looked_up_ = false;
};

/// Fails in the reading of a function.
[[noreturn]] void refuse_work(const std::string& function, std::string what, std::string needs, std::string hint);

}  // namespace sator::dataflow
