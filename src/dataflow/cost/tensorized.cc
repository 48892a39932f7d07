#include "dataflow/cost/tensorized.h"

#include <algorithm>

#include "base/text.h"
#include "dataflow/mapping/sharing.h"
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

/// An intrinsic computes whole tiles: of a function that runs in one pass also what the program masks.
tir::PrimFuncRef without_masks(const tir::PrimFuncRef& func) {
  if (int_attr(func->attrs, kOnePass).value_or(0) == 0) return func;
  return transform(func,
                   [](const tir::IfThenElse& n) -> tir::Stmt { return n.else_case ? tir::Stmt(ref(n)) : n.then_case; });
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

using Stamp = rules::ArrayStamp;

int64_t whole_tiles(int64_t n, int64_t tile) { return ceil_div(n, tile) * tile; }

int64_t tile_of(const Stamp::Iter& iter) { return iter.on_axis * iter.at_once; }

/// What of each iterator of the block runs inside of a stamp: of those outside of it one value.
std::variant<std::vector<Stamp::Iter>, Why> iterators_of(const tir::BlockRealize& realize,
                                                         const std::vector<schedule::Loop>& loops,
                                                         const rules::ArrayNest& nest) {
  const tir::Block& block = *realize.block;
  if (nest.rows.size() != 1 || nest.columns.size() != 1)
    return Why("none of its loops runs along an axis of the array");
  std::vector<Stamp::Iter> out;
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    const auto loop =
        std::find_if(loops.begin(), loops.end(), [&](const schedule::Loop& l) { return Expr(l) == realize.values[i]; });
    if (loop == loops.end()) return Why("an iterator of it is no plain loop");
    const auto l = static_cast<size_t>(loop - loops.begin());
    Stamp::Iter iter{.reduces = block.iter_vars[i]->kind == tir::IterKind::reduce};
    auto take = [&](const std::vector<rules::ArrayNest::Side>& sides, char axis) {
      for (const rules::ArrayNest::Side& side : sides)
        if (side.loop == l) iter = {iter.reduces, axis ? side.values : 1, side.at_once, axis};
    };
    take(nest.rows, 'r');
    take(nest.columns, 'c');
    take(nest.at_once, 0);
    if (tile_of(iter) > 1 && !block.iter_vars[i]->dom->extent.as<IntImm>())
      return Why(text("the extent of ", block.iter_vars[i]->var->name, " is not known"));
    out.push_back(iter);
  }
  return out;
}

/// Rounds what is no whole number of tiles up; "50257 outputs to 50272", nothing where all are whole.
std::string pad_to_tiles(schedule::Schedule& s, const schedule::BlockHandle& block,
                         const std::vector<Stamp::Iter>& iters) {
  std::vector<int64_t> tiles;
  std::vector<std::string> grown;
  for (size_t i = 0; i < iters.size(); ++i) {
    const int64_t tile = tile_of(iters[i]);
    tiles.push_back(tile);
    if (tile == 1) continue;
    const int64_t extent = *as_int(s.realize(block).block->iter_vars[i]->dom->extent);
    if (extent % tile == 0) continue;
    grown.push_back(
        text(extent, iters[i].reduces ? " summands" : " outputs", " along an axis to ", whole_tiles(extent, tile)));
  }
  if (!grown.empty()) rules::pad_for_array(s, block->text, tiles);
  return join(grown, ", ");
}

/// The stamp with those iterators of the block that have a part in it.
std::variant<Stamp, Why> stamp_of(const tir::Block& block, const std::vector<Stamp::Iter>& iters) {
  Stamp stamp;
  std::map<VarRef, int> number_of;
  for (size_t i = 0; i < iters.size(); ++i) {
    if (iters[i].axis == 0 && iters[i].at_once == 1) continue;
    number_of.emplace(block.iter_vars[i]->var, static_cast<int>(stamp.iters.size()));
    stamp.iters.push_back(iters[i]);
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

rules::ArrayNest on_both_axes(rules::ArrayNest nest, const StatementCost& statement, const Chip& chip) {
  const Product& product = *statement.product;
  const size_t weight = *statement.placement->weight, input = weight == product.first ? product.second : product.first;
  // i: of the input and the output; j: of the weight and the output; k: summed up.
  auto role_of = [&](size_t loop) {
    if (!product.uses[loop].output) return 'k';
    const bool in_weight = product.in(loop, weight), in_input = product.in(loop, input);
    return in_weight && in_input ? 'b' : in_weight ? 'j' : 'i';
  };
  const Stationary stays = chip.dataflow_for(class_of(statement.work, product));
  const char roles[2] = {stays == Stationary::output ? 'i' : 'k', stays == Stationary::input ? 'i' : 'j'};
  std::vector<rules::ArrayNest::Side>* axes[2] = {&nest.rows, &nest.columns};
  for (size_t a : {size_t{0}, size_t{1}}) {
    if (!axes[a]->empty()) continue;
    const auto& other = *axes[1 - a];
    const char role = !other.empty() && role_of(other[0].loop) == roles[a] ? roles[1 - a] : roles[a];
    std::optional<size_t> longest;
    for (size_t l = 0; l < product.uses.size(); ++l) {
      const auto& extent = statement.work.statement.domain.extent;
      if (role_of(l) == role && (!longest || extent[l] > extent[*longest])) longest = l;
    }
    if (longest) axes[a]->push_back({.loop = *longest});
  }
  return nest;
}

rules::ArrayNest on_whole_array(rules::ArrayNest nest, int64_t rows, int64_t columns) {
  using Side = rules::ArrayNest::Side;
  for (auto [axis, pes] : {std::pair{&nest.rows, rows}, std::pair{&nest.columns, columns}}) {
    if (axis->empty()) continue;
    const auto longest = std::ranges::max_element(*axis, {}, &Side::values);
    Side kept = *longest;
    axis->erase(longest);
    for (const Side& side : *axis) {
      if (side.values > 1) nest.time.push_back({.loop = side.loop, .block = side.at_once});
      if (side.at_once > 1) nest.at_once.push_back({.loop = side.loop, .values = 1, .at_once = side.at_once});
    }
    kept.values = pes;
    *axis = {kept};
    int64_t inside = pes * kept.at_once;
    for (auto turn = nest.time.rbegin(); turn != nest.time.rend(); ++turn)
      if (turn->loop == kept.loop) inside = turn->block = (turn->block + inside - 1) / inside * inside;
  }
  return nest;
}

namespace {

/// One more loop over tiles of the array, outside of those during which what stays in it does not change.
void add_fold(rules::ArrayNest& nest, const rules::ArrayNest::Turn& fold, const Product& product, size_t stays) {
  size_t at = nest.time.size();
  while (at > 0 && !product.in(nest.time[at - 1].loop, stays)) --at;
  nest.time.insert(nest.time.begin() + static_cast<std::ptrdiff_t>(at), fold);
  for (int64_t& since : nest.held_since)
    if (since > static_cast<int64_t>(at)) ++since;
}

}  // namespace

rules::ArrayNest share_whole_tiles(rules::ArrayNest nest, const StatementCost& statement, const Chip& chip) {
  if (nest.cores.empty()) return nest;
  const Product& product = *statement.product;
  Work padded = statement.work;
  std::vector<int64_t>& extent = padded.statement.domain.extent;
  std::vector<int64_t> tile(extent.size(), 1);
  std::vector<bool> on_axis(extent.size());
  for (const auto* sides : {&nest.rows, &nest.columns, &nest.at_once})
    for (const rules::ArrayNest::Side& side : *sides) {
      tile[side.loop] = side.values * side.at_once;
      on_axis[side.loop] = sides != &nest.at_once;
    }
  auto is_whole = [&](const rules::ArrayNest::Share& share) { return share.block % tile[share.loop] == 0; };
  if (std::ranges::all_of(nest.cores, is_whole)) return nest;

  // Batches that the mapping leaves to one core may be summed up later.
  Beside beside;
  beside.in_parts.assign(padded.statement.accesses.size(), std::vector<bool>(extent.size(), false));
  for (const rules::ArrayNest::Share& share : nest.cores) beside.in_parts[product.output][share.loop] = true;
  for (size_t x = 0; x < extent.size(); ++x) extent[x] = whole_tiles(extent[x], tile[x]);
  const std::vector<int64_t> block = ways_to_share(padded, product, chip, beside, tile).front();
  const size_t weight = *statement.placement->weight;
  const Stationary dataflow = chip.dataflow_for(class_of(statement.work, product));
  const size_t stays = dataflow == Stationary::weight  ? weight
                       : dataflow != Stationary::input ? product.output
                       : weight == product.first       ? product.second
                                                       : product.first;
  nest.cores.clear();
  for (size_t x = 0; x < extent.size(); ++x) {
    if (block[x] < extent[x])
      nest.cores.push_back({.loop = x, .block = block[x], .parts = ceil_div(extent[x], block[x])});
    int64_t inside = block[x];
    for (rules::ArrayNest::Turn& turn : nest.time)
      if (turn.loop == x) inside = turn.block = std::min(turn.block, inside);
    if (on_axis[x] && inside > tile[x]) add_fold(nest, {.loop = x, .block = tile[x]}, product, stays);
  }
  return nest;
}

std::variant<ScheduledFunction, Reason> tensorize_as_costed(const tir::PrimFuncRef& func, const FunctionFacts& facts,
                                                            const KernelCost& cost, const Chip& chip) {
  schedule::Schedule s(without_masks(at_sizes(func, facts.sizes)), facts.name);
  s.work_on(facts.name);
  std::vector<std::string> padded;
  for (const StatementCost& statement : cost.statements) {
    if (!statement.on_array()) continue;
    auto refuse = [&](const std::string& why) {
      return Reason{
          .what = text("product ", statement.name, " of ", facts.name, " is not tensorized: ", why),
          .needs = text("a product c = c + a * b of plain loops for one array of ", chip.rows, " x ", chip.columns),
          .hint = "bind its loops to pe.x and pe.y instead"};
    };
    const Placement& placement = *statement.placement;
    if (chip.tenet) return refuse("its mapping is that of TENET's files");
    if (!placement.nest || !placement.weight) return refuse("its mapping is no nest of the program's loops");
    for (const rules::ArrayNest::Side& row : placement.nest->rows)
      for (const rules::ArrayNest::Side& column : placement.nest->columns)
        if (row.loop == column.loop) return refuse("one of its loops lies along both axes of the array");
    rules::ArrayNest nest = share_whole_tiles(
        on_whole_array(on_both_axes(*placement.nest, statement, chip), chip.rows, chip.columns), statement, chip);
    nest.weight = statement.work.statement.accesses[*placement.weight].tensor;
    try {
      const schedule::BlockHandle block = s.block_named(statement.name);
      std::vector<schedule::Loop> loops;
      const schedule::Sites& sites = s.sites();
      for (int i = sites[s.site(block)].parent; i >= 0 && sites[i].loop(); i = sites[i].parent)
        loops.insert(loops.begin(), sites[i].loop()->var);
      const auto iters = iterators_of(s.realize(block), loops, nest);
      if (const Why* why = std::get_if<Why>(&iters)) return refuse(*why);
      const auto& of_stamp = std::get<std::vector<Stamp::Iter>>(iters);
      if (const std::string grown = pad_to_tiles(s, block, of_stamp); !grown.empty())
        padded.push_back(text("product ", statement.name, " of ", facts.name, ": ", grown));
      auto stamp = stamp_of(*s.realize(block).block, of_stamp);
      if (const Why* why = std::get_if<Why>(&stamp)) return refuse(*why);
      rules::tensorize_on_array(
          s, statement.name, nest, rules::register_array_intrin(chip.name, std::get<rules::ArrayStamp>(stamp)));
    } catch (const Error& error) {
      return refuse(error.reason.what);
    }
  }
  return ScheduledFunction{s.func(), s.trace().as_python(), std::move(padded)};
}

}  // namespace sator::dataflow
