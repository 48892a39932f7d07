#include "dataflow/cost/cost.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/cost/array_cost.h"
#include "dataflow/cost/composer.h"
#include "dataflow/cost/one_pass.h"
#include "dataflow/cost/row_blocks.h"
#include "dataflow/mapping/nest_search.h"
#include "dataflow/mapping/sharing.h"
#include "dataflow/mapping/tiles.h"

namespace sator::dataflow {

namespace {

/// Mappings of a product whose kernel is costed to find the quickest: the estimate that orders them leaves out ragged edges.
constexpr size_t kJudged = 4;
constexpr size_t kMostCounted = 64;  // where none before could be counted

/// A kernel without its name: equal keys have equal costs.
std::string structure_key(const Kernel& kernel) {
  std::string key = kernel.one_pass ? "one pass;" : "";
  for (const Work& work : kernel.work) {
    key += sator::dataflow::structure_key({work.statement, {}, one_pe()});
    for (const Access& access : work.statement.accesses) key += access.tensor + ",";
    for (const Operand& o : work.operands) {
      for (const QuasiAffine& e : o.lies_outside_where) key += text("[", to_text(e, work.statement.domain.names), "]");
      key += text(o.bits,
                  o.is_float ? "f" : "",
                  o.on_the_way ? "w"
                  : o.internal ? "i"
                               : "",
                  static_cast<int>(o.kind),
                  ",");
    }
    for (const QuasiAffine& e : work.only_where) key += text("{", to_text(e, work.statement.domain.names), "}");
    key += join(work.statement.domain.names, ",");  // the mapping's words have them
    key += text(";", work.multiply_accumulate, ",", work.vector_ops, ",", static_cast<int>(work.vector_work), ";");
  }
  return key;
}

/// Whether the estimate by which a product's mapping was chosen holds, resource by resource: then the next ones are no better.
/// Counts that take long are not made again.
bool as_estimated(const StatementCost& product, const Chip& chip) {
  if (product.counts->enumerated) return true;
  const Placement::Estimate& estimate = product.placement->estimate;
  const double allowed = 0.002 * estimate.cycles, array = static_cast<double>(product.array_cycles());
  if (std::abs(array - estimate.array_cycles) > allowed) return false;
  if (std::abs(array / static_cast<double>(product.folds) - estimate.fold_cycles) > allowed) return false;
  for (size_t m = 0; m < chip.memories.size(); ++m) {
    double read = 0, write = 0;
    for (const Traffic& t : product.traffic) {
      if (t.memory != m) continue;
      read += static_cast<double>(t.read_bits) / static_cast<double>(t.instances);
      write += static_cast<double>(t.write_bits) / static_cast<double>(t.instances);
    }
    if (std::abs(transfer_cycles(chip.memories[m], read, write) - estimate.memory_cycles.at(m)) > allowed) return false;
  }
  return true;
}

/// Of two mappings the quicker; of two as quick, within a thousandth, the one of less energy.
bool is_better(const KernelCost& a, const KernelCost& b) {
  if (a.unrounded_cycles < b.unrounded_cycles * 0.9995) return true;
  return a.unrounded_cycles <= b.unrounded_cycles * 1.0005 && a.energy_j < b.energy_j;
}

}  // namespace

struct CostEngine::Memo {
  CountMemo counts;
  std::optional<TenetArray> tenet;                                     // the chip's files, read
  std::unordered_map<std::string, std::vector<Placement>> placements;  // of a kernel's products
  std::optional<OnePass> one_pass;
  std::unordered_map<std::string, KernelCost> passes;                 // of kernels that run in one pass
  std::unordered_map<std::string, std::optional<KernelCost>> blocks;  // of kernels that run block of rows by block
};

CostEngine::CostEngine(Chip chip, const Goal& goal)
    : chip_(std::move(chip)), goal_(goal), memo_(std::make_unique<Memo>()) {
  if (chip_.tenet) memo_->tenet = tenet_array_of(chip_);
  for (ProductClass c : kProductClasses) {
    by_class_.push_back(chip_);
    by_class_.back().dataflow = chip_.dataflow_for(c);
  }
}
CostEngine::~CostEngine() = default;

/// The kernel in one pass, where it and the chip run so.
const KernelCost* CostEngine::in_one_pass(const Kernel& kernel, const std::string& key) {
  if (!kernel.one_pass || !chip_.one_pass) return nullptr;
  if (!memo_->one_pass) memo_->one_pass.emplace(chip_, by_class_, memo_->counts);
  if (auto known = memo_->passes.find(key); known != memo_->passes.end()) return &known->second;
  std::optional<KernelCost> cost = memo_->one_pass->cost(kernel);
  return cost ? &memo_->passes.emplace(key, std::move(*cost)).first->second : nullptr;
}

KernelCost CostEngine::cost(const Kernel& kernel) { return cost(kernel, {}); }

namespace {

/// The mappings that a kernel's products may have, and which of them they have.
class Mappings {
 public:
  ///   given   per product; absent ones are searched
  Mappings(const Kernel& kernel, const Chip& chip, const std::vector<Chip>& by_class, CountMemo& counts,
           const TenetArray* tenet, const std::vector<std::optional<Placement>>& given, const Goal& goal)
      : composer_(kernel, chip, by_class, counts, tenet),
        chip_(chip),
        given_(given),
        goal_(goal),
        options_(composer_.products()),
        chosen_(composer_.products(), 0) {}

  /// Mappings found before.
  void start_from(const std::vector<Placement>& known) {
    for (size_t i = 0; i < known.size(); ++i) options_.at(i) = {known[i]};
  }
  std::vector<Placement> chosen() const { return chosen(options_.size()); }

  /// The kernel under the quickest of the mappings that are judged.
  /// Errors: the reason of the last one, where the engine refuses to count under any.
  KernelCost best() {
    find_options();
    std::variant<KernelCost, Refusal> tried = composer_.cost(chosen());
    // A mapping that cannot be counted gives way to the next.
    while (auto* refusal = std::get_if<Refusal>(&tried)) {
      const size_t p = refusal->product;
      if (p >= options_.size()) fail(std::move(refusal->reason));
      if (++chosen_[p] >= options_[p].size() && !find_more(p)) fail(std::move(refusal->reason));
      find_options(p + 1);
      tried = composer_.cost(chosen());
    }
    KernelCost best = std::get<KernelCost>(std::move(tried));
    for (size_t i = 0; i < options_.size() && goal_.only_latency(); ++i) judge(i, best);
    return best;
  }

 private:
  std::vector<Placement> chosen(size_t products) const {
    std::vector<Placement> all;
    for (size_t i = 0; i < products; ++i) all.push_back(options_[i][chosen_[i]]);
    return all;
  }

  /// Options of the products from number `first` on, which depend on the choices for those before them.
  void find_options(size_t first = 0) {
    for (size_t i = first; i < options_.size(); ++i) {
      const bool given = i < given_.size() && given_[i];
      if (given) options_[i] = {*given_[i]};
      if (first > 0 && !given) options_[i].clear(), chosen_[i] = 0;
      if (options_[i].empty()) options_[i] = options_of(composer_.problem(i, chosen(i)));
    }
  }

  std::vector<Placement> options_of(const MappingProblem& p, size_t most = kJudged) const {
    if (chip_.tile)
      if (auto tiled = tiled_placement(p.work, p.product, p.chip, p.pace, p.beside, *chip_.tile))
        return {std::move(*tiled)};
    return placements(p.work, p.product, p.chip, p.pace, p.beside, most, goal_);
  }

  /// Whether product i has mappings beyond those tried, none of which could be counted.
  bool find_more(size_t i) {
    const size_t tried = options_[i].size();
    if ((i < given_.size() && given_[i]) || tried < kJudged || tried >= kMostCounted) return false;
    options_[i] = options_of(composer_.problem(i, chosen(i)), 4 * tried);
    return options_[i].size() > tried;
  }

  /// Costs the kernel under the next mappings of product i, as long as they may be better than the best so far.
  void judge(size_t i, KernelCost& best) {
    size_t best_choice = chosen_[i];
    const double within = 1.25 * options_[i][best_choice].estimate.cycles;
    for (++chosen_[i]; chosen_[i] < options_[i].size() && !as_estimated(product_of(best, i), chip_); ++chosen_[i]) {
      if (options_[i][chosen_[i]].estimate.cycles > within) break;
      std::variant<KernelCost, Refusal> tried = composer_.cost(chosen());
      if (auto* cost = std::get_if<KernelCost>(&tried))
        if (is_better(*cost, best)) best = std::move(*cost), best_choice = chosen_[i];
    }
    chosen_[i] = best_choice;
  }

  static const StatementCost& product_of(const KernelCost& cost, size_t i) {
    for (const StatementCost& s : cost.statements)
      if (s.on_array() && i-- == 0) return s;
    internal_error(text(cost.kernel, " has a mapping for a product that it lacks"));
  }

  Composer composer_;
  const Chip& chip_;
  const std::vector<std::optional<Placement>>& given_;
  const Goal& goal_;
  std::vector<std::vector<Placement>> options_;  // per product: the given one, or some, the quickest by estimate first
  std::vector<size_t> chosen_;
};

}  // namespace

namespace {

/// The number of the best of one kernel's costs for a goal.
size_t best_for(const Goal& goal, const std::vector<KernelCost>& all) {
  auto measure = [&](const KernelCost& c) {
    if (goal.objective == Objective::energy) return c.energy_j;
    return goal.objective == Objective::edp ? c.energy_j * c.unrounded_cycles : c.unrounded_cycles;
  };
  size_t best = 0;
  for (size_t c = 1; c < all.size(); ++c)
    if (goal.only_latency() ? is_better(all[c], all[best]) : measure(all[c]) < measure(all[best])) best = c;
  if (goal.energy_within) {
    const double limit = all[best].unrounded_cycles * (1 + *goal.energy_within);
    for (size_t c = 0; c < all.size(); ++c)
      if (all[c].unrounded_cycles <= limit && all[c].energy_j < all[best].energy_j) best = c;
  }
  return best;
}

}  // namespace

/// The kernel under mappings that are chosen for it.
KernelCost CostEngine::mapped(const Kernel& kernel, const std::string& key) {
  const std::vector<std::optional<Placement>> none;
  Mappings mappings(kernel, chip_, by_class_, memo_->counts, memo_->tenet ? &*memo_->tenet : nullptr, none, goal_);
  const auto [known, fresh] = memo_->placements.try_emplace(key);
  if (!fresh) mappings.start_from(known->second);
  std::vector<KernelCost> all = {mappings.best()};
  if (fresh) known->second = mappings.chosen();
  if (goal_.only_latency() || !fresh) return std::move(all[0]);
  // The search judges energy by a closed form, which is off where windows of inputs overlap: the quickest mapping, counted
  // too, may need less.
  Goal latency;
  latency.limits = goal_.limits;
  Mappings quickest(kernel, chip_, by_class_, memo_->counts, memo_->tenet ? &*memo_->tenet : nullptr, none, latency);
  all.push_back(quickest.best());
  const size_t best = best_for(goal_, all);
  if (best == 1) known->second = quickest.chosen();
  return std::move(all[best]);
}

/// The kernel block of rows by block, each over the columns that its mask leaves: in the blocks that suit the goal best, one of all
/// rows among them. Nothing where it has no such mask.
const KernelCost* CostEngine::in_blocks_of_rows(const Kernel& kernel, const std::string& key) {
  const auto [known, fresh] = memo_->blocks.try_emplace(key);
  std::optional<KernelCost>& best = known->second;
  const std::optional<MaskedRows> masked = fresh ? masked_rows_of(kernel) : std::nullopt;
  if (!masked) return best ? &*best : nullptr;
  auto in_blocks_of = [&](int64_t rows) -> std::optional<KernelCost> {
    const std::vector<RowsOfKernel> cut = in_blocks(kernel, *masked, rows);
    if (cut.size() == 1 && cut[0].columns.size() == masked->columns) return mapped(kernel, key);  // nothing is left out
    // Alike blocks are costed once. Of the others the longer ones come first: shorter ones take over their mapping.
    std::unordered_map<std::string, KernelCost> costed;
    std::vector<SearchedRows> searched;
    std::vector<CostedRows> blocks(cut.size());
    for (size_t b = cut.size(); b-- > 0;) {
      const RowsOfKernel& block = cut[b];
      const std::string own = structure_key(block.kernel);
      auto at = costed.find(own);
      if (at == costed.end()) {
        std::optional<KernelCost> cost;
        for (const SearchedRows& s : searched)
          if (!cost && s.suits(block)) {
            auto tried = Composer(block.kernel, chip_, by_class_, memo_->counts, nullptr)
                             .cost(s.placements_for(block.kernel, chip_, memo_->counts));
            if (auto* counted = std::get_if<KernelCost>(&tried)) cost = std::move(*counted);
          }
        if (!cost) {
          cost = mapped(block.kernel, own);
          if (!chip_.tenet) searched.emplace_back(block, *masked, *cost);
        }
        at = costed.emplace(own, std::move(*cost)).first;
      }
      blocks[b] = {block.rows, block.columns, &at->second};
    }
    return added_up(kernel, *masked, blocks, chip_);
  };
  // Blocks that the engine refuses to count, or that fit no memory, give way to others.
  std::vector<KernelCost> all;
  std::optional<Error> refused;
  for (int64_t rows : block_sizes(*masked)) {
    try {
      if (auto cost = in_blocks_of(rows)) all.push_back(std::move(*cost));
    } catch (const Error& error) {
      if (!refused) refused = error;
    }
  }
  if (all.empty() && refused) throw Error(*refused);
  if (!all.empty()) best = std::move(all[best_for(goal_, all)]);
  return best ? &*best : nullptr;
}

KernelCost CostEngine::cost(const Kernel& kernel, const std::vector<std::optional<Placement>>& given) {
  if (std::any_of(given.begin(), given.end(), [](const auto& p) { return p.has_value(); }))
    return Mappings(kernel, chip_, by_class_, memo_->counts, memo_->tenet ? &*memo_->tenet : nullptr, given, goal_)
        .best();
  const std::string key = structure_key(kernel);
  const KernelCost* known = in_one_pass(kernel, key);
  if (!known && kernel.one_pass) known = in_blocks_of_rows(kernel, key);
  if (!known) return mapped(kernel, key);
  KernelCost cost = *known;
  cost.kernel = kernel.name;
  return cost;
}

std::vector<Placement> CostEngine::mappings(const Kernel& kernel, size_t most) {
  if (chip_.tenet)
    fail({.what = text("the mapping of ", chip_.name, " is that of ", chip_.tenet->mapping_file),
          .needs = "a chip whose mapping is not fixed by files",
          .hint = "take another chip"});
  Composer composer(kernel, chip_, by_class_, memo_->counts, nullptr);
  std::vector<Placement> first, chosen;
  for (size_t i = 0; i < composer.products(); ++i) {
    const MappingProblem p = composer.problem(i, chosen);
    std::vector<Placement> found = placements_with_own_tiles(p.work, p.product, p.chip, p.pace, p.beside, most, goal_);
    chosen.push_back(found[0]);
    if (i == 0) first = std::move(found);
  }
  const auto tried = composer.cost(chosen);
  if (auto* refusal = std::get_if<Refusal>(&tried)) fail(refusal->reason);
  return first;
}

}  // namespace sator::dataflow
