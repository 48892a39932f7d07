#include "dataflow/mapping/loop_limits.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace sator::dataflow {

std::string LoopLimits::words() const {
  std::vector<std::string> parts, bounds;
  if (!order.empty()) parts.push_back("order " + join(order, ", "));
  for (const TileBounds& b : tiles) {
    const bool open = b.most == std::numeric_limits<int64_t>::max();
    if (b.least == b.most)
      bounds.push_back(text(b.iterator, " = ", b.least));
    else if (open)
      bounds.push_back(text(b.iterator, " >= ", b.least));
    else
      bounds.push_back(text(b.least > 1 ? text(b.least, " <= ") : "", b.iterator, " <= ", b.most));
  }
  if (!bounds.empty()) parts.push_back("tiles " + join(bounds, ", "));
  return join(parts, "; ");
}

IteratorLimits::IteratorLimits(const LoopLimits& limits, const std::vector<std::string>& names) : of_(names.size()) {
  auto limit_of = [&](const std::string& name) -> Limit& {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end())
      fail({.what = text("a limit is on iterator ", string_literal(name)),
            .needs = text("an iterator of the product: ", join(names, ", ")),
            .hint = "they are named as in the mapping that is printed without limits"});
    none_ = false;
    return of_[static_cast<size_t>(at - names.begin())];
  };
  for (size_t i = 0; i < limits.order.size(); ++i) {
    Limit& limit = limit_of(limits.order[i]);
    if (limit.place >= 0)
      fail({.what = text("iterator ", string_literal(limits.order[i]), " stands twice in the order of loops"),
            .needs = "each iterator once",
            .hint = "a loop over tiles stands at one place"});
    limit.place = static_cast<int>(i);
  }
  for (const LoopLimits::TileBounds& b : limits.tiles) {
    Limit& limit = limit_of(b.iterator);
    limit.least = std::max(limit.least, b.least);
    limit.most = std::min(limit.most, b.most);
    if (limit.least > limit.most)
      fail({.what = text("tiles of ", b.iterator, " are to be at least ", limit.least, " and at most ", limit.most),
            .needs = "a least that is no more than the most",
            .hint = "leave one of them out"});
  }
}

}  // namespace sator::dataflow
