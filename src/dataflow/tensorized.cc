#include "dataflow/tensorized.h"

#include <algorithm>

#include "base/text.h"
#include "ir/visit.h"
#include "rules/array_intrin.h"
#include "schedule/schedule.h"

namespace sator::dataflow {

namespace {

/// The function with constants for its symbolic sizes.
tir::PrimFuncRef at_sizes(const tir::PrimFuncRef& func, const std::map<std::string, int64_t>& sizes) {
  NodeMap values;
  for (const VarRef& v : vars_in(func))
    if (auto at = sizes.find(v->name);
        at != sizes.end() && std::find(func->params.begin(), func->params.end(), v) == func->params.end())
      values.emplace(v, int_imm(at->second, v->dtype));
  return replaced(func, values);
}

/// The two loads that a block's store multiplies, in the order of the program; nothing if it is no multiply-accumulate of two.
struct Factors {
  const tir::BufferStore* store = nullptr;
  const BufferLoad *first = nullptr, *second = nullptr;
};
std::optional<Factors> factors_of(const tir::Block& block) {
  Factors out{.store = block.body.as<tir::BufferStore>()};
  const Add* sum = out.store ? out.store->value.as<Add>() : nullptr;
  const Mul* product = sum ? sum->b.as<Mul>() : nullptr;
  auto load = [](const Expr& e) {
    const Cast* cast = e.as<Cast>();
    return (cast ? cast->value : e).as<BufferLoad>();
  };
  if (!product) return {};
  out.first = load(product->a), out.second = load(product->b);
  if (!out.first || !out.second) return {};
  return out;
}

using Why = std::string;

/// The iterators of the block that run inside of a stamp, and where each block iterator stands among them (-1: outside).
std::variant<rules::ArrayStamp, Why> stamp_of(const tir::BlockRealize& realize,
                                              const std::vector<schedule::Loop>& loops, const rules::ArrayNest& nest,
                                              const Chip& chip) {
  using Stamp = rules::ArrayStamp;
  const tir::Block& block = *realize.block;
  if (nest.rows.size() != 1 || nest.columns.size() != 1)
    return Why("several loops of it run along one axis of the array");
  Stamp stamp;
  std::map<VarRef, int> number_of;
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    const auto loop =
        std::find_if(loops.begin(), loops.end(), [&](const schedule::Loop& l) { return Expr(l) == realize.values[i]; });
    if (loop == loops.end()) return Why("an iterator of it is no plain loop");
    const auto l = static_cast<size_t>(loop - loops.begin());
    Stamp::Iter iter{.reduces = block.iter_vars[i]->kind == tir::IterKind::reduce};
    auto take = [&](const std::vector<rules::ArrayNest::Side>& sides, char axis) {
      for (const rules::ArrayNest::Side& side : sides)
        if (side.loop == l) iter = {iter.reduces, axis ? side.values / side.at_once : 1, side.at_once, axis};
    };
    take(nest.rows, 'r');
    take(nest.columns, 'c');
    take(nest.at_once, 0);
    if (iter.axis == 0 && iter.at_once == 1) continue;
    const int64_t whole = iter.axis == 'r' ? chip.rows : iter.axis == 'c' ? chip.columns : 1;
    if (iter.axis != 0 && iter.on_axis != whole)
      return Why(text("it puts ",
                      iter.on_axis,
                      iter.on_axis == 1 ? " value" : " values",
                      " on the array's ",
                      whole,
                      iter.axis == 'r' ? " rows" : " columns"));
    const IntImm* extent = block.iter_vars[i]->dom->extent.as<IntImm>();
    if (!extent) return Why(text("the extent of ", block.iter_vars[i]->var->name, " is not known"));
    if (extent->value % (iter.on_axis * iter.at_once) != 0)
      return Why(text("its ",
                      extent->value,
                      iter.reduces ? " summands" : " outputs",
                      " along an axis are no whole number of tiles of ",
                      iter.on_axis * iter.at_once));
    number_of.emplace(block.iter_vars[i]->var, static_cast<int>(stamp.iters.size()));
    stamp.iters.push_back(iter);
  }
  const std::optional<Factors> factors = factors_of(block);
  if (!factors) return Why("it is not of the form c = c + a * b");
  auto tile = [&](const BufferRef& buffer, const std::vector<Expr>& indices) {
    Stamp::Tile out{.dtype = buffer->dtype, .dims = {}};
    for (const Expr& index : indices) {
      const VarRef var = cast<Var>(index);
      auto at = var ? number_of.find(var) : number_of.end();
      const int number = at == number_of.end() ? -1 : at->second;
      if (number >= 0 || !out.dims.empty()) out.dims.push_back(number);
    }
    if (out.dims.empty()) out.dims.push_back(-1);
    return out;
  };
  stamp.first = tile(factors->first->buffer, factors->first->indices);
  stamp.second = tile(factors->second->buffer, factors->second->indices);
  stamp.output = tile(factors->store->buffer, factors->store->indices);
  return stamp;
}

}  // namespace

std::variant<ScheduledFunction, Reason> tensorize_as_costed(const tir::PrimFuncRef& func, const FunctionFacts& facts,
                                                            const KernelCost& cost, const Chip& chip) {
  schedule::Schedule s(at_sizes(func, facts.sizes), facts.name);
  s.work_on(facts.name);
  for (const StatementCost& statement : cost.statements) {
    if (!statement.on_array()) continue;
    auto refuse = [&](const std::string& why) {
      return Reason{.what = text("product ", statement.name, " of ", facts.name, " is not tensorized: ", why),
                    .needs = text("whole tiles for an array of ", chip.rows, " x ", chip.columns),
                    .hint = "bind its loops to pe.x and pe.y instead, or pad what it multiplies"};
    };
    const Placement& placement = *statement.placement;
    if (!placement.nest || !placement.weight) return refuse("its mapping is no nest of the program's loops");
    rules::ArrayNest nest = *placement.nest;
    nest.weight = statement.work.statement.accesses[*placement.weight].tensor;
    try {
      const schedule::BlockHandle block = s.block_named(statement.name);
      std::vector<schedule::Loop> loops;
      const schedule::Sites& sites = s.sites();
      for (int i = sites[s.site(block)].parent; i >= 0 && sites[i].loop(); i = sites[i].parent)
        loops.insert(loops.begin(), sites[i].loop()->var);
      auto stamp = stamp_of(s.realize(block), loops, nest, chip);
      if (const Why* why = std::get_if<Why>(&stamp)) return refuse(*why);
      rules::tensorize_on_array(
          s, statement.name, nest, rules::register_array_intrin(chip.name, std::get<rules::ArrayStamp>(stamp)));
    } catch (const Error& error) {
      return refuse(error.reason.what);
    }
  }
  return ScheduledFunction{s.func(), s.trace().as_python()};
}

}  // namespace sator::dataflow
