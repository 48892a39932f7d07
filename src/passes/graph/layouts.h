// In which order the axes of a graph's tensors lie in memory, and what each op makes of it.
#pragma once

#include "relax/nodes.h"

namespace sator::passes {

/// The axes of a tensor in the order in which they lie: axis i of memory is axis order[i] of the graph. Nothing where the rank
/// is not known.
using AxisOrder = std::optional<std::vector<int>>;
/// Of each tensor of a value, in the order in which they stand in its tuples.
using AxisOrders = std::vector<AxisOrder>;

/// The order of a tensor as the graph has it: 0, 1, ...
AxisOrder plain_order(int rank);
AxisOrders plain_orders(const relax::StructInfo& info);

/// The axes that permute_dims takes from one order to another.
std::vector<int64_t> axes_between(const std::vector<int>& from, const std::vector<int>& to);

/// What a call is after its inputs changed their orders.
struct OrderedCall {
  std::vector<AxisOrders> inputs;  ///< the orders that it takes its arguments in; arguments beyond are as they were
  AxisOrders outputs;
  Attrs attrs;
  std::map<size_t, relax::RExpr> args;  ///< arguments that name axes, replaced
};

/// Layouts that are wished for, by op: of data and kernel (and of the result), as letters ("NHWC", "OHWI").
using WishedLayouts = std::map<std::string, std::vector<std::string>>;

/// How the call computes in other orders of axes: in the wished one, else in the one that its first input has. Nothing where the
/// op has no rule: it takes its inputs as the graph has them.
///   have   the present orders of each argument
std::optional<OrderedCall> ordered_call(const relax::RCall& call, const std::vector<AxisOrders>& have,
                                        const WishedLayouts& wished);

}  // namespace sator::passes
