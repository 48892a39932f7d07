#include "dataflow/cost/pass_tiles.h"

#include "base/error.h"
#include "base/text.h"
#include "dataflow/mapping/tiles.h"

namespace sator::dataflow {

namespace {

/// Rows x columns of the first product, or rows x values of the second, over `tiles` tiles: Y[i,j] = X[i,k] * W[j,k].
Work work_on(const PassForm& form, bool second, int64_t rows, int64_t columns) {
  const PassForm::Part& part = second ? form.second : form.first;
  const Work& whole = form.work(part);
  const QuasiAffine i = variable(0), j = variable(1), k = variable(2);
  Work work{.statement = {.name = whole.statement.name,
                          .domain = Domain::box({"i", "j", "k"},
                                                {rows, second ? form.values : columns, second ? columns : form.depth}),
                          .accesses = {}},
            .operands = {whole.operands[part.input], whole.operands[part.weight], whole.operands[part.output]},
            .multiply_accumulate = true};
  const auto name = [&](size_t a) { return whole.statement.accesses[a].tensor; };
  work.statement.accesses = {{name(part.input), Role::read, {{i, k}}},
                             {name(part.weight), Role::read, {second ? Map{k, j} : Map{j, k}}},
                             {name(part.output), Role::write, {{i, j}}}};
  work.operands[second ? 0 : 2].on_the_way = true;
  return work;
}

/// What passes between the PEs and the innermost memory of each access: its traffic without what refills that memory.
void find_beside(const Work& work, const StatementCost& cost, bool first, std::array<ProductTiles::Beside, 3>& beside) {
  for (size_t a = 0; a < 3; ++a)
    for (const Traffic& t : cost.traffic) {
      if (t.tensor != work.statement.accesses[a].tensor) continue;
      if (beside[a].memory && t.memory < *beside[a].memory) continue;
      beside[a].memory = t.memory;
      const ProductTiles::Bits bits{t.read_bits - t.refill_out_bits, t.write_bits - t.refill_in_bits};
      (first ? beside[a].first : beside[a].next) = bits;
    }
}

}  // namespace

PassTiles::PassTiles(const Chip& chip, const std::vector<Chip>& by_class, CountMemo& counts)
    : one_core_(by_class), counts_(counts) {
  for (Chip& one : one_core_) {
    if (one.fill_bytes_per_cycle) *one.fill_bytes_per_cycle /= static_cast<double>(chip.cores);
    one.cores = 1;
    one.tile.reset();
  }
}

ProductTiles PassTiles::tiles_of(const PassForm& form, bool second, int64_t rows, int64_t columns) const {
  const PassForm::Part& part = second ? form.second : form.first;
  const Chip& chip = one_core_[static_cast<size_t>(class_of(form.work(part), part.product))];
  ProductTiles found;
  for (int64_t tiles : {1, 2}) {
    const Work work = work_on(form, second, rows, tiles * columns);
    const Operand &w = work.operands[1], &x = work.operands[0];
    const PrecisionChoice choice = choose_precision(chip, w.bits, w.is_float, x.bits, x.is_float);
    const std::optional<Product> product = product_of(work);
    if (!product) internal_error(text(work.statement.name, " is no product tile by tile"));
    const std::array<int64_t, 3> tile = {0, second ? 0 : columns, second ? columns : 0};
    const std::optional<Placement> placement = tiled_placement(work, *product, chip, pace_of(choice), {}, tile);
    if (!placement) internal_error(text("tiles of ", work.statement.name, " have no mapping"));
    const std::vector<std::vector<bool>> in_parts(3, std::vector<bool>(3, true));
    auto tried = cost_on_array(work, *product, *placement, choice, chip, counts_, in_parts);
    if (auto* why_not = std::get_if<Reason>(&tried)) fail(std::move(*why_not));
    StatementCost& cost = tiles == 1 ? found.first : found.two;
    cost = std::get<StatementCost>(std::move(tried));
    find_beside(work, cost, tiles == 1, found.beside);
  }
  for (ProductTiles::Beside& b : found.beside) b.next = {b.next.read - b.first.read, b.next.write - b.first.write};
  return found;
}

const std::array<ProductTiles, 2>* PassTiles::of(const PassForm& form, int64_t rows, int64_t columns) {
  const auto& a = form.work(form.first).operands;
  const auto& b = form.work(form.second).operands;
  const std::array<const Operand*, 4> four = {
      &a[form.first.input], &a[form.first.weight], &b[form.second.input], &b[form.second.weight]};
  std::array<int, 4> bits{};
  std::array<bool, 4> floats{};
  for (size_t o = 0; o < 4; ++o) bits[o] = four[o]->bits, floats[o] = four[o]->is_float;
  const int classes = static_cast<int>(class_of(form.work(form.first), form.first.product)) * 8 +
                      static_cast<int>(class_of(form.work(form.second), form.second.product));
  const auto [at, fresh] = known_.try_emplace(Key{rows, columns, form.depth, form.values, classes, bits, floats});
  if (fresh) {
    try {
      at->second = {tiles_of(form, false, rows, columns), tiles_of(form, true, rows, columns)};
    } catch (const Error&) {  // tiles that do not fit, or that the engine refuses to count
    }
  }
  return at->second ? &*at->second : nullptr;
}

}  // namespace sator::dataflow
