#include "dataflow/cost/composer.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/cost/array_cost.h"
#include "dataflow/cost/latency.h"
#include "dataflow/cost/totals.h"
#include "dataflow/mapping/beside.h"
#include "dataflow/mapping/lanes.h"
#include "dataflow/programs/masks.h"
#include "dataflow/programs/merged.h"
#include "dataflow/programs/pipeline.h"
#include "dataflow/programs/regions.h"

namespace sator::dataflow {

namespace {

/// That sums of so many products of signed integers fit in.
int accumulator_bits(int weight_bits, int activation_bits, double terms) {
  return weight_bits + activation_bits - 1 + static_cast<int>(std::ceil(std::log2(std::max(1.0, terms))));
}

int64_t whole_cycles(double v) { return static_cast<int64_t>(std::ceil(v - 1e-9)); }

bool contains(const std::vector<VectorWork>& list, VectorWork work) {
  return std::find(list.begin(), list.end(), work) != list.end();
}

}  // namespace

struct Composer::Impl {
 public:
  Impl(const Kernel& kernel, const Chip& chip, const std::vector<Chip>& by_class, CountMemo& counts,
       const TenetArray* tenet)
      : kernel_(kernel), chip_(chip), by_class_(by_class), counts_(counts), tenet_(tenet) {
    for (const Work& work : kernel.work)
      if (work.operands.size() != work.statement.accesses.size())
        fail({.what = text("statement ",
                           work.statement.name,
                           " has ",
                           work.statement.accesses.size(),
                           " accesses and ",
                           work.operands.size(),
                           " operands"),
              .needs = "one operand per access",
              .hint = "describe every access"});
    merged_ = merge_producers(kernel, chip);
    if (!has_vector_unit()) need_product();
    touched_.resize(merged_.works.size());
    pass_of_ = pipeline_.passes();
    for (size_t i = 0; i < merged_.works.size(); ++i)
      if (merged_.products[i]) products_.push_back(i);
  }

  size_t products() const { return tenet_ ? 0 : products_.size(); }

  MappingProblem problem(size_t number, const std::vector<Placement>& before) {
    start();
    for (size_t earlier = 0; earlier < number; ++earlier)
      for (const std::string& tensor : before.at(earlier).stored_outside) store_outside(tensor);
    const size_t i = products_.at(number);
    return {as_stored(i), *merged_.products[i], mapped(i), pace_for(i, precision_of(i)), beside(i)};
  }

  std::variant<KernelCost, Refusal> run(const std::vector<Placement>& placements) {
    if (placements.size() != products())
      internal_error(text(kernel_.name, " has ", products(), " products to map and ", placements.size(), " mappings"));
    start();
    total_ = {};
    total_.kernel = kernel_.name;
    total_.chip = chip_.name;
    total_.notes = notes_;
    total_.statements.reserve(merged_.works.size() + merged_.made.size());
    product_costs_.assign(merged_.works.size(), 0);
    for (size_t p = 0; p < products_.size(); ++p)
      if (auto why_not = add_product(products_[p], tenet_ ? nullptr : &placements[p]))
        return Refusal{p, std::move(*why_not)};
    find_stages();
    for (size_t i = 0; i < merged_.works.size(); ++i)
      if (on_vector_unit(i) && has_vector_unit()) add_vector_statement(i);
    time_vector_unit();
    if (tenet_)
      find_tenet_latency(total_, chip_);
    else
      find_latency(total_, chip_);
    sum_up(total_, chip_);
    return std::move(total_);
  }

 private:
  /// How a vector statement's work can be cut: the parts in which other units hand it what it needs, or take what it makes.
  struct Stage {
    int64_t parts = INT64_MAX;  // no unit beside it so far
    double waits = 0;           // until its first part can be done: share of the array's time

    void join(int64_t other_parts, double other_waits) {
      parts = std::min(parts, other_parts);
      waits = std::max(waits, other_waits);
    }
    bool beside_array() const { return parts != INT64_MAX; }
  };

  /// Forgets what mappings decide.
  void start() {
    brought_in_ = sent_out_ = {};
    outside_.clear(), stored_.clear();
    stages_.assign(merged_.works.size(), {});
  }

  bool has_vector_unit() const { return chip_.vector.lanes > 0; }

  /// Without a vector unit there must be work for the array; what else there is has no cost, by name.
  void need_product() {
    std::vector<std::string> without;
    for (size_t i = 0; i < merged_.works.size(); ++i)
      if (!merged_.products[i]) without.push_back(merged_.works[i].statement.name);
    if (without.size() == merged_.works.size())
      fail({.what = text("nothing of it is a product of i, j, k, and ", chip_.name, " has no vector unit"),
            .needs = "a vector unit, or a product",
            .hint = "give the chip's folder a chip.toml with a vector unit"});
    if (!without.empty())
      notes_.push_back(
          text(chip_.name, " has no vector unit: no cost for ", join(without, ", "), " of ", kernel_.name));
  }

  bool on_vector_unit(size_t i) const { return around_.on_vector_unit(i); }

  /// Per access and iterator of product i: whether the tensor's tiles along it come, or are taken, one by one.
  std::vector<std::vector<bool>> in_parts(size_t i) const {
    const Work& work = merged_.works[i];
    std::vector<std::vector<bool>> result;
    for (size_t a = 0; a < work.operands.size(); ++a) {
      const Access& access = work.statement.accesses[a];
      const Map& at = access.references[0];
      std::vector<bool> along(at.size(), true);
      if (access.role == Role::write) {
        along = pipeline_.flows_on(access.tensor, i + 1, at.size());
      } else if (const size_t maker = pipeline_.writer_of(access.tensor, i);
                 maker < i && on_vector_unit(maker) && !work.operands[a].on_the_way) {
        along = pipeline_.made_apart(maker);
      }
      std::vector<bool> iterators(work.statement.domain.extent.size(), true);
      for (size_t x = 0; x < iterators.size(); ++x)
        for (size_t p = 0; p < std::min(at.size(), along.size()); ++p)
          if (!along[p] && mentions(at[p], static_cast<int>(x))) iterators[x] = false;
      result.push_back(std::move(iterators));
    }
    return result;
  }

  /// Of one instance of a statement on the vector unit; none where it is done at the array's edge.
  double vector_cycles_each(const Work& work) const {
    if (contains(chip_.inline_work, work.vector_work) || !has_vector_unit()) return 0;
    return work.vector_ops / (static_cast<double>(chip_.vector.lanes) * chip_.vector.ops_per_lane_per_cycle);
  }

  const Chip& mapped(size_t i) const {
    return by_class_[static_cast<size_t>(class_of(merged_.works[i], *merged_.products[i]))];
  }

  /// The factors of product i: the weight and the input.
  std::pair<Operand, Operand> factors_of(size_t i) const {
    const Work& work = merged_.works[i];
    const Product& product = *merged_.products[i];
    const size_t weight = weight_of(work, product);
    return {work.operands[weight], work.operands[weight == product.first ? product.second : product.first]};
  }

  PrecisionChoice precision_of(size_t i) const {
    const auto [w, a] = factors_of(i);
    return choose_precision(chip_, w.bits, w.is_float, a.bits, a.is_float);
  }

  Pace pace_for(size_t i, const PrecisionChoice& choice) const {
    Pace pace = pace_of(choice);
    pace.making_cycles.assign(merged_.works[i].operands.size(), 0);
    for (const Merged::Made& made : merged_.made)
      if (made.consumer == i) pace.making_cycles[made.access] = vector_cycles_each(kernel_.work[made.producer]);
    return pace;
  }

  /// Why the product cannot run under its mapping; nothing if it is added.
  ///   placement   null on a chip with TENET's files
  std::optional<Reason> add_product(size_t i, const Placement* placement) {
    const Work& work = merged_.works[i];
    const Product& product = *merged_.products[i];
    const auto [w, a] = factors_of(i);
    PrecisionChoice choice = precision_of(i);
    if (tenet_) choice.passes = 1, choice.note = "by TENET's formula: items have 16 bits, whatever their widths";
    note(choice.note);
    StatementCost cost;
    if (tenet_) {
      cost = cost_on_tenet_array(work, product, choice, chip_, *tenet_, counts_);
    } else {
      for (const std::string& tensor : placement->stored_outside)
        if (store_outside(tensor)) note_stored_outside(tensor, work);
      auto tried = cost_on_array(as_stored(i), product, *placement, choice, mapped(i), counts_, in_parts(i));
      if (auto* why_not = std::get_if<Reason>(&tried)) return std::move(*why_not);
      cost = std::get<StatementCost>(std::move(tried));
    }
    if (cost.counts->outside_array)
      note(text("the mapping of ", chip_.name, " puts work of ", work.statement.name, " on PEs that the array lacks"));
    if (chip_.tile && !tenet_ && !cost.placement->tiled)
      note(text(work.statement.name, " has its default tiles: it is no product of one i, one j and one k"));
    if (!w.is_float && !a.is_float) {
      double terms = 1;
      for (size_t x = 0; x < product.uses.size(); ++x)
        if (!product.uses[x].output) terms *= static_cast<double>(work.statement.domain.extent[x]);
      cost.accumulator_bits_needed = accumulator_bits(w.bits, a.bits, terms);
      if (const Precision& runs = choice.precision;
          !tenet_ && !runs.is_float && runs.accumulator_bits < cost.accumulator_bits_needed)
        note(text("sums of ",
                  work.statement.name,
                  " need ",
                  cost.accumulator_bits_needed,
                  " bits and accumulators have ",
                  runs.accumulator_bits,
                  ": they can overflow"));
    }
    if (cost.counts->enumerated) note(text("counts of ", work.statement.name, " were listed one by one"));
    for (size_t a = 0; a < work.statement.accesses.size(); ++a) brought_in_.add(work, a);
    for (const Merged::Made& made : merged_.made) {
      if (made.consumer != i || !has_vector_unit()) continue;
      // The elements are made each time the array takes them in, fold by fold.
      const Work& maker = kernel_.work[made.producer];
      StatementCost making;
      making.name = maker.statement.name;
      making.vector_work = maker.vector_work;
      making.instances = cost.counts->tensors[made.access].unique;
      making.vector_ops = whole_cycles(static_cast<double>(making.instances) * maker.vector_ops);
      making.vector_parts = cost.folds;
      total_.statements.push_back(std::move(making));
    }
    product_costs_[i] = total_.statements.size();
    total_.statements.push_back(std::move(cost));
    return {};
  }

  /// The statement with the kernel's own tensors that stand outside as tensors from there.
  const Work& as_stored(size_t i) {
    if (outside_.empty()) return merged_.works[i];
    Work& work = stored_.emplace_back(merged_.works[i]);
    for (size_t a = 0; a < work.operands.size(); ++a)
      if (outside_.contains(work.statement.accesses[a].tensor)) work.operands[a].internal = false;
    return work;
  }

  /// Whether the tensor is one of the kernel's own that was inside so far.
  bool store_outside(const std::string& tensor) {
    bool internal = false;
    for (const Work& work : merged_.works)
      for (size_t a = 0; a < work.operands.size(); ++a)
        internal |= work.operands[a].internal && work.statement.accesses[a].tensor == tensor;
    return internal && outside_.insert(tensor).second;
  }

  void note_stored_outside(const std::string& tensor, const Work& product) {
    note(text(tensor,
              ", made and used inside of ",
              kernel_.name,
              ", has no room on ",
              chip_.name,
              " beside the tiles of ",
              product.statement.name,
              ": it goes out to ",
              chip_.memories[0].name,
              " and comes back"));
  }

  const StatementCost& product_cost(size_t i) const { return total_.statements[product_costs_[i]]; }

  /// What the vector unit does after a product, and before one, in the parts that the array finishes or needs.
  void find_stages() {
    const std::vector<Work>& works = merged_.works;
    auto each_read = [&](size_t i, auto visit) {
      for (size_t a = 0; a < works[i].operands.size(); ++a)
        if (works[i].statement.accesses[a].role == Role::read)
          if (const size_t maker = pipeline_.writer_of(works[i].statement.accesses[a].tensor, i); maker < i)
            visit(a, maker);
    };
    for (size_t i = 0; i < works.size(); ++i)
      if (on_vector_unit(i))
        each_read(i, [&](size_t, size_t maker) {
          if (!merged_.products[maker]) {
            if (stages_[maker].beside_array()) stages_[i].join(stages_[maker].parts, stages_[maker].waits);
            return;
          }
          const StatementCost& cost = product_cost(maker);
          stages_[i].join(cost.parts[merged_.products[maker]->output], cost.until_output());
        });
    for (size_t i = works.size(); i-- > 0;) {
      if (merged_.gone[i]) continue;
      each_read(i, [&](size_t a, size_t maker) {
        if (merged_.products[maker]) return;
        if (merged_.products[i])
          stages_[maker].join(product_cost(i).parts[a], 0);
        else if (stages_[i].beside_array() && stages_[i].waits == 0)
          stages_[maker].join(stages_[i].parts, 0);
      });
    }
    // Without a product beside them statements hand each other the parts of what comes from outside.
    own_parts_ = INT64_MAX;
    for (bool activations : {true, false})
      for (size_t i = 0; i < works.size(); ++i)
        for (size_t a = 0; a < works[i].operands.size(); ++a) {
          const Operand& o = works[i].operands[a];
          const bool counts = activations ? o.kind == OperandKind::activation : own_parts_ == INT64_MAX;
          if (works[i].statement.accesses[a].role == Role::read && !o.internal && counts)
            own_parts_ = std::min(own_parts_, pipeline_.parts_of(works[i].statement.accesses[a].tensor));
        }
    if (own_parts_ == INT64_MAX) own_parts_ = 1;
  }

  /// What statement i on the vector unit touches: no mapping of a product changes it.
  struct Touched {
    const Counts* counts = nullptr;
    std::vector<int64_t> by_lanes;  // elements that its lanes read, per access
  };
  const Touched& touched(size_t i) {
    Touched& known = touched_[i];
    if (known.counts) return known;
    const Work& work = merged_.works[i];
    known.counts = &counts_.of(at_once(work), text("statement ", work.statement.name, " for chip ", chip_.name));
    return known;
  }
  int64_t reads_of(size_t i, size_t access) {
    Touched& known = touched_[i];
    if (known.by_lanes.empty()) known.by_lanes = reads_of_lanes(merged_.works[i], chip_, counts_);
    return known.by_lanes[access];
  }

  /// All instances at one stamp of one place: what counts is how many there are and what they touch. Tensors of other
  /// kernels come from outside once; those of this one lie in a memory beside the vector unit, unless they are made and
  /// taken element by element.
  void add_vector_statement(size_t i) {
    const Work& work = merged_.works[i];
    const Stage& stage = stages_[i];
    StatementCost cost;
    cost.name = work.statement.name;
    cost.work = work;
    cost.vector_work = work.vector_work;
    cost.counts = *touched(i).counts;
    cost.instances = cost.counts->macs;
    cost.vector_parts = stage.beside_array() ? stage.parts : own_parts_;
    cost.waits = stage.waits;
    if (work.multiply_accumulate) cost.macs = work.only_where.empty() ? cost.instances : unmasked_instances(work);
    cost.vector_ops =
        whole_cycles(static_cast<double>(cost.instances) * (work.vector_ops + (work.multiply_accumulate ? 2 : 0)));
    for (size_t a = 0; a < work.operands.size(); ++a)
      if (!work.operands[a].on_the_way) move_beside_vector_unit(i, a, cost.vector_parts, cost.traffic);
    total_.statements.push_back(std::move(cost));
  }

  void move_beside_vector_unit(size_t i, size_t a, int64_t parts, std::vector<Traffic>& traffic) {
    const Work& work = merged_.works[i];
    const Access& access = work.statement.accesses[a];
    const Operand& operand = work.operands[a];
    const TensorCounts& elements = touched(i).counts->tensors[a];
    const bool reads = access.role == Role::read;
    const size_t maker = reads ? pipeline_.writer_of(access.tensor, i) : i, near = around_.memory_of(access.tensor, i);
    if (maker < merged_.works.size() && on_vector_unit(maker) && pipeline_.stays_in_registers(maker, pass_of_)) return;
    const int64_t instances = chip_.memories[near].per_core ? chip_.cores : 1;
    Traffic beside{.memory = near, .tensor = access.tensor, .kind = operand.kind, .instances = instances};
    // What an earlier statement of the pass has read or made for the same element is at hand.
    if (!reads)
      beside.write_bits = bits_of(elements.footprint, operand.bits);  // sums stay in registers until they are complete
    else if (!around_.at_hand(i, access))
      beside.read_bits = bits_of(reads_of(i, a), operand.bits);
    // A tensor of the kernel's own that stands outside comes in again for each pass that reads it.
    const bool outside = outside_.contains(access.tensor);
    const bool passes =
        outside ? !reads || beside.read_bits > 0 : !operand.internal && (reads ? brought_in_ : sent_out_).add(work, a);
    if (passes && near > 0) {
      const int64_t bits = bits_of(elements.footprint, operand.bits);
      Traffic outside{.memory = 0, .tensor = access.tensor, .kind = operand.kind};
      (reads ? outside.read_bits : outside.write_bits) = bits;
      beside.parts = stages_[i].beside_array() || !reads ? parts : pipeline_.parts_of(access.tensor);
      beside.waits = stages_[i].waits;
      beside.refill(0, reads ? bits : 0, reads ? 0 : bits);
      traffic.push_back(std::move(outside));
    }
    if (!reads) brought_in_.add(work, a);
    traffic.push_back(std::move(beside));
  }

  /// What the vector unit does beside product i, in parts of which tensors of it. Other products are left out.
  Beside beside(size_t product) {
    Beside beside{.steps = {}, .standing = {}, .in_parts = in_parts(product)};
    beside.kernel_class = class_of(merged_.works[products_[0]], *merged_.products[products_[0]]);
    beside.standing = standing_beside(around_, product, beside.in_parts, outside_);
    const std::vector<Work>& works = merged_.works;
    for (size_t i = 0; i < works.size(); ++i)
      if (merged_.products[i])
        for (size_t a = 0; a < works[i].statement.accesses.size(); ++a) brought_in_.add(works[i], a);
    std::vector<std::vector<Traffic>> moves(works.size());
    for (size_t i = 0; i < works.size(); ++i)
      for (size_t a = 0; on_vector_unit(i) && a < works[i].operands.size(); ++a)
        if (!works[i].operands[a].on_the_way) move_beside_vector_unit(i, a, 1, moves[i]);
    // Tensors that come from the product, directly or not; and, per tensor, accesses of the product that come from it.
    std::set<std::string> made = {write_of(works[product]).tensor};
    std::map<std::string, std::set<size_t>> needed;
    for (size_t a = 0; a < works[product].operands.size(); ++a)
      if (works[product].statement.accesses[a].role == Role::read)
        needed[works[product].statement.accesses[a].tensor].insert(a);
    for (size_t i = product; i-- > 0;)
      if (auto feeds = needed.find(write_of(works[i]).tensor); on_vector_unit(i) && feeds != needed.end())
        for (const Access& access : works[i].statement.accesses)
          if (access.role == Role::read) needed[access.tensor].insert(feeds->second.begin(), feeds->second.end());
    for (size_t i = 0; i < works.size(); ++i) {
      if (!on_vector_unit(i)) continue;
      Beside::Step step{.vector_cycles = static_cast<double>(touched(i).counts->macs) * vector_cycles_each(works[i])};
      for (const Access& access : works[i].statement.accesses)
        step.after |= i > product && access.role == Role::read && made.contains(access.tensor);
      if (step.after) {
        made.insert(write_of(works[i]).tensor);
        step.accesses = {merged_.products[product]->output};
      } else if (auto feeds = needed.find(write_of(works[i]).tensor); i < product && feeds != needed.end()) {
        step.accesses.assign(feeds->second.begin(), feeds->second.end());
      }
      for (const Traffic& t : moves[i]) {
        const double instances = static_cast<double>(t.instances);
        step.moves.push_back({.memory = t.memory,
                              .read_bits = static_cast<double>(t.read_bits) / instances,
                              .write_bits = static_cast<double>(t.write_bits) / instances,
                              .from = t.filled_from,
                              .in_bits = static_cast<double>(t.refill_in_bits),
                              .out_bits = static_cast<double>(t.refill_out_bits)});
      }
      beside.steps.push_back(std::move(step));
    }
    return beside;
  }

  void time_vector_unit() {
    for (StatementCost& cost : total_.statements) {
      if (cost.vector_ops == 0 || contains(chip_.inline_work, cost.vector_work)) continue;
      if (!contains(chip_.vector.does, cost.vector_work))
        note(text(chip_.name,
                  " states no unit for ",
                  name_of(cost.vector_work),
                  " (vector.does); its vector unit is assumed to do it"));
      cost.vector_cycles =
          whole_cycles(static_cast<double>(cost.vector_ops) /
                       (static_cast<double>(chip_.vector.lanes) * chip_.vector.ops_per_lane_per_cycle));
    }
  }

  void note(const std::string& words) {
    if (!words.empty() && std::find(total_.notes.begin(), total_.notes.end(), words) == total_.notes.end())
      total_.notes.push_back(words);
  }

  const Kernel& kernel_;
  const Chip& chip_;
  const std::vector<Chip>& by_class_;
  CountMemo& counts_;
  const TenetArray* tenet_;
  Merged merged_;
  Pipeline pipeline_{merged_.works, merged_.gone};
  Surroundings around_{merged_, pipeline_, pass_of_, chip_};
  std::vector<size_t> products_;       // statements that are products
  std::vector<Touched> touched_;       // per statement
  std::vector<size_t> pass_of_;        // per statement
  std::vector<Stage> stages_;          // per statement
  std::vector<size_t> product_costs_;  // per statement: where its cost stands
  int64_t own_parts_ = 1;              // of statements that no product is beside
  Regions brought_in_, sent_out_;      // of tensors of other kernels
  std::set<std::string> outside_;      // the kernel's own tensors for which the chip has no room
  std::deque<Work> stored_;            // products whose tensors are among these
  std::vector<std::string> notes_;     // that every mapping shares
  KernelCost total_;
};

Composer::Composer(const Kernel& kernel, const Chip& chip, const std::vector<Chip>& by_class, CountMemo& counts,
                   const TenetArray* tenet)
    : impl_(std::make_unique<Impl>(kernel, chip, by_class, counts, tenet)) {}
Composer::~Composer() = default;

size_t Composer::products() const { return impl_->products(); }

MappingProblem Composer::problem(size_t product, const std::vector<Placement>& before) {
  return impl_->problem(product, before);
}

std::variant<KernelCost, Refusal> Composer::cost(const std::vector<Placement>& placements) {
  return impl_->run(placements);
}

}  // namespace sator::dataflow
