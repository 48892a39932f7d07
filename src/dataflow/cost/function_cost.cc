#include "dataflow/cost/function_cost.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace sator::dataflow {

namespace {

/// The function's work with its choices on indices as masks. Nothing where it has none.
std::optional<TirWork> as_masked(const tir::PrimFuncRef& func, const FunctionFacts& facts, const Chip& chip) {
  Attrs attrs = func->attrs;
  attrs[kOnePass] = int_imm(1);
  TirWork masked = work_of(*with(func, &tir::PrimFunc::attrs, std::move(attrs)), facts, &chip);
  for (const Work& work : masked.kernel.work)
    if (!work.only_where.empty()) return masked;
  return {};
}

}  // namespace

FunctionCost cost_of_function(CostEngine& engine, const tir::PrimFuncRef& func, const FunctionFacts& facts,
                              const Goal& goal) {
  const TirWork work = work_of(*func, facts, &engine.chip());
  const bool mapped =
      std::any_of(work.placements.begin(), work.placements.end(), [](const auto& p) { return p.has_value(); });
  try {
    return {engine.cost(work.kernel, work.placements), work.notes};
  } catch (const Error& refused) {
    std::optional<TirWork> masked;
    if (!mapped && !work.kernel.one_pass) masked = as_masked(func, facts, engine.chip());
    if (!masked) throw;
    Chip storing = engine.chip();
    storing.one_pass.reset();  // the function says itself that what lies between its products is stored
    try {
      FunctionCost out{CostEngine(std::move(storing), goal).cost(masked->kernel, {}), std::move(masked->notes)};
      out.notes.push_back(
          text("what the masks of ",
               facts.name,
               " leave is too ragged to be mapped as it is: rows run in blocks, each over the columns that it sees"));
      return out;
    } catch (const Error&) {
      throw Error(refused);
    }
  }
}

}  // namespace sator::dataflow
