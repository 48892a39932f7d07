#include "dataflow/programs/tir_places.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "ir/visit.h"

namespace sator::dataflow {

void refuse_work(const std::string& function, std::string what, std::string needs, std::string hint) {
  fail({.what = std::move(what),
        .needs = std::move(needs),
        .hint = std::move(hint),
        .where = text("reading the work of ", function)});
}

Place Places::of(BufferRef buffer, const std::vector<Expr>& indices, const Scope& scope,
                 std::vector<Place>* looked_up) {
  auto coordinate = [&](const Expr& index) {
    auto e = to_quasi_affine(index, scope.values);
    return e ? *e : looked_up_index(index, scope, looked_up);
  };
  Map at;
  for (const Expr& index : indices) at.push_back(coordinate(index));
  auto alias = aliases_.find(buffer);
  if (alias == aliases_.end() || alias->second->region.size() < at.size()) return {std::move(buffer), std::move(at)};
  Map shifted;
  const auto& region = alias->second->region;
  const size_t fixed = region.size() - at.size();
  for (size_t d = 0; d < region.size(); ++d) {
    QuasiAffine base = coordinate(region[d]->min);
    shifted.push_back(d < fixed ? base : base + at[d - fixed]);
  }
  return {alias->second->buffer, std::move(shifted)};
}

QuasiAffine Places::looked_up_index(const Expr& index, const Scope& scope, std::vector<Place>* looked_up) {
  Map parts;
  auto add_part = [&](const QuasiAffine& part) {
    if (!part.is_constant() && std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(part);
  };
  bool loaded = false;
  auto collect = [&](const Expr& whole, auto& self) -> void {
    walk(
        whole,
        [&](const BufferLoad& load) {
          loaded = true;
          Place p = of(load.buffer, load.indices, scope, looked_up);
          for (const QuasiAffine& coordinate : p.at) add_part(coordinate);
          if (looked_up) looked_up->push_back(std::move(p));
          return false;
        },
        [&](const ExprNode& e) {
          if (auto part = to_quasi_affine(ref(e), scope.values)) {
            add_part(*part);
            return false;
          }
          const Var* v = e.as<Var>();
          if (!v) return true;
          auto value = scope.looked_up.find(ref(*v));
          if (value == scope.looked_up.end())
            refuse_work(function_,
                        text("index ", index, " has ", v->name, ", whose value is not known"),
                        "indices of loops and known sizes",
                        text("give the size ", v->name));
          self(value->second, self);
          return false;
        });
  };
  collect(index, collect);
  if (!loaded)
    refuse_work(function_,
                text("index ", index, " is no quasi-affine function of the loops"),
                "sums of loops times constants, floors and remainders of these by constants, or a loaded index",
                "name a function with affine indices that states the work");
  has_looked_up_ = true;
  QuasiAffine row = number(0);
  int64_t weight = 1;
  for (const QuasiAffine& part : parts) {
    const int64_t low = smallest(part, scope.domain), high = largest(part, scope.domain);
    row = row + (part - low) * weight;
    if (low < -kLargestExtent || high > kLargestExtent || high - low + 1 > kLargestExtent / weight)
      refuse_work(
          function_, text("index ", index, " may pick more than 2^50 rows"), "smaller tables", "check the sizes");
    weight *= high - low + 1;
  }
  return row;
}

}  // namespace sator::dataflow
