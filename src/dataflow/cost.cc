#include "dataflow/cost.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/array_cost.h"
#include "dataflow/count_memo.h"
#include "dataflow/latency.h"
#include "dataflow/nest_search.h"
#include "dataflow/pipeline.h"
#include "dataflow/product_axes.h"
#include "dataflow/tenet_array.h"
#include "dataflow/tiles.h"

namespace sator::dataflow {

namespace {

/// Mappings of a product whose kernel is costed to find the quickest: the estimate that orders them leaves out ragged edges.
constexpr size_t kJudged = 4;

/// A kernel without its name: equal keys have equal costs.
std::string structure_key(const Kernel& kernel) {
  std::string key;
  for (const Work& work : kernel.work) {
    key += sator::dataflow::structure_key({work.statement, {}, one_pe()});
    for (const Access& access : work.statement.accesses) key += access.tensor + ",";
    for (const Operand& o : work.operands)
      key += text(o.bits,
                  o.is_float ? "f" : "",
                  o.on_the_way ? "w"
                  : o.internal ? "i"
                               : "",
                  static_cast<int>(o.kind),
                  ",");
    key += join(work.statement.domain.names, ",");  // the mapping's words have them
    key += text(";", work.multiply_accumulate, ",", work.vector_ops, ",", static_cast<int>(work.vector_work), ";");
  }
  return key;
}

/// Whether the estimate by which a mapping was chosen holds: then the next ones are no better. Counts that take long are
/// not made again.
bool as_estimated(const KernelCost& cost, const Placement& placement, const Chip& chip) {
  for (const StatementCost& s : cost.statements)
    if (s.counts && s.counts->enumerated) return true;
  const double off = cost.unrounded_cycles - static_cast<double>(chip.launch_cycles) - placement.estimated_cycles;
  return std::abs(off) <= 0.002 * placement.estimated_cycles;
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
};

CostEngine::CostEngine(Chip chip) : chip_(std::move(chip)), memo_(std::make_unique<Memo>()) {
  if (chip_.tenet) memo_->tenet = tenet_array_of(chip_);
  for (ProductClass c : kProductClasses) {
    by_class_.push_back(chip_);
    by_class_.back().dataflow = chip_.dataflow_for(c);
  }
}
CostEngine::~CostEngine() = default;

ProductClass class_of(const Work& work, const Product& product) {
  const size_t weight = weight_of(work, product);
  bool batched = work.operands[weight].kind == OperandKind::activation || work.operands[weight].kind == OperandKind::kv;
  bool has_batch = false;
  double rows = 1;  // of outputs that share a weight
  for (size_t x = 0; x < product.uses.size(); ++x) {
    const Product::Use& u = product.uses[x];
    const int64_t extent = work.statement.domain.extent[x];
    has_batch |= u.first && u.second && u.output && extent > 1;
    if (u.output && !product.in(x, weight)) rows *= static_cast<double>(extent);
  }
  if (batched && has_batch) return ProductClass::batched;
  return rows < 8 ? ProductClass::gemv : ProductClass::gemm;
}

namespace {

/// That sums of so many products of signed integers fit in.
int accumulator_bits(int weight_bits, int activation_bits, double terms) {
  return weight_bits + activation_bits - 1 + static_cast<int>(std::ceil(std::log2(std::max(1.0, terms))));
}

int64_t whole_cycles(double v) { return static_cast<int64_t>(std::ceil(v - 1e-9)); }

bool contains(const std::vector<VectorWork>& list, VectorWork work) {
  return std::find(list.begin(), list.end(), work) != list.end();
}

/// A kernel's statements with the dequantize statements of its products taken into them.
struct Merged {
  struct Made {
    size_t consumer, producer, access;  // of the consumer: the stream of made elements
  };
  std::vector<Work> works;
  std::vector<std::optional<Product>> products;  // per statement
  std::vector<bool> gone;                        // taken into another
  std::vector<Made> made;
};

double volume_of(const Work& work) {
  double volume = 1;
  for (int64_t extent : work.statement.domain.extent) volume *= static_cast<double>(extent);
  return volume;
}

/// Puts the dequantize statements that make what statement `consumer` reads in the places of these reads: a product has
/// them made on their way into the array, and a smaller statement (rows taken of a table) makes just what it reads.
void take_in_makers(Merged& merged, const Kernel& kernel, size_t consumer) {
  const std::vector<Operand>& operands = kernel.work[consumer].operands;
  for (size_t p = 0; p < consumer; ++p) {
    const Work& producer = kernel.work[p];
    Work& work = merged.works[consumer];
    if (producer.vector_work != VectorWork::dequantize || producer.multiply_accumulate) continue;
    if (!merged.products[consumer] && (merged.gone[p] || volume_of(work) >= volume_of(producer))) continue;
    for (size_t a = 0; a < operands.size(); ++a) {
      if (work.statement.accesses[a].role != Role::read || !operands[a].internal) continue;
      auto joined = inline_producer(work, a, producer);
      if (!joined) continue;
      work = std::move(*joined);
      merged.gone[p] = true;
      if (merged.products[consumer]) {
        merged.made.push_back({consumer, p, a});
      } else {
        work.vector_ops += producer.vector_ops;
        work.vector_work = VectorWork::dequantize;
      }
    }
  }
}

/// The product of a statement, as far as the chip's array takes it: TENET's files are for products of i, j, k.
std::optional<Product> product_on(const Chip& chip, const Work& work) {
  std::optional<Product> product = product_of(work);
  if (product && chip.tenet && !axes_of(work, *product)) return {};
  return product;
}

/// Reads that are put in behind a product's own leave its factors and its output where they are.
Merged merge_producers(const Kernel& kernel, const Chip& chip) {
  Merged merged{.works = kernel.work, .products = {}, .gone = std::vector<bool>(kernel.work.size(), false), .made = {}};
  for (const Work& work : kernel.work) merged.products.push_back(product_on(chip, work));
  for (size_t i = 0; i < kernel.work.size(); ++i) take_in_makers(merged, kernel, i);
  return merged;
}

/// Puts a kernel's cost together, part by part.
class Composer {
 public:
  ///   by_class   the chip as it maps each class of products
  ///   tenet      TENET's files of the chip; null if it has none
  Composer(const Kernel& kernel, const Chip& chip, const std::vector<Chip>& by_class, CountMemo& counts,
           const TenetArray* tenet)
      : kernel_(kernel), chip_(chip), by_class_(by_class), counts_(counts), tenet_(tenet) {
    total_.kernel = kernel.name;
    total_.chip = chip.name;
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
    pass_of_ = pipeline_.passes();
    stages_.resize(merged_.works.size());
    product_costs_.resize(merged_.works.size());
  }

  template <class PlaceProduct>
  KernelCost run(PlaceProduct place_product) {
    for (size_t i = 0; i < merged_.works.size(); ++i)
      if (merged_.products[i]) add_product(i, place_product);
    find_stages();
    for (size_t i = 0; i < merged_.works.size(); ++i)
      if (on_vector_unit(i) && has_vector_unit()) add_vector_statement(i);
    time_vector_unit();
    sum_traffic();
    if (tenet_)
      find_tenet_latency(total_, chip_);
    else
      find_latency(total_, chip_);
    rate_memories();
    rate_array();
    sum_energy();
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
      note(text(chip_.name, " has no vector unit: no cost for ", join(without, ", "), " of ", kernel_.name));
  }

  bool on_vector_unit(size_t i) const { return !merged_.products[i] && !merged_.gone[i]; }

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

  template <class PlaceProduct>
  void add_product(size_t i, PlaceProduct place_product) {
    const Work& work = merged_.works[i];
    const Product& product = *merged_.products[i];
    const size_t weight = weight_of(work, product), input = weight == product.first ? product.second : product.first;
    const Operand &w = work.operands[weight], &a = work.operands[input];
    PrecisionChoice choice = choose_precision(chip_, w.bits, w.is_float, a.bits, a.is_float);
    if (tenet_) choice.passes = 1, choice.note = "by TENET's formula: items have 16 bits, whatever their widths";
    note(choice.note);
    Pace pace = pace_of(choice);
    pace.making_cycles.assign(work.operands.size(), 0);
    for (const Merged::Made& made : merged_.made)
      if (made.consumer == i) pace.making_cycles[made.access] = vector_cycles_each(kernel_.work[made.producer]);
    const Chip& mapped = by_class_[static_cast<size_t>(class_of(work, product))];
    StatementCost cost = tenet_ ? cost_on_tenet_array(work, product, choice, chip_, *tenet_, counts_)
                                : cost_on_array(work,
                                                product,
                                                place_product(work, product, mapped, pace, [&] { return beside(i); }),
                                                choice,
                                                mapped,
                                                counts_,
                                                in_parts(i));
    if (cost.counts->outside_array)
      note(text("the mapping of ", chip_.name, " puts work of ", work.statement.name, " on PEs that the array lacks"));
    if (chip_.tile && !tenet_ && !cost.placement->tiled)
      note(text(work.statement.name, " has its default tiles: it is no product of one i, one j and one k"));
    if (!w.is_float && !a.is_float) {
      double terms = 1;
      for (size_t x = 0; x < product.uses.size(); ++x)
        if (!product.uses[x].output) terms *= static_cast<double>(work.statement.domain.extent[x]);
      cost.accumulator_bits_needed = accumulator_bits(w.bits, a.bits, terms);
    }
    if (cost.counts->enumerated) note(text("counts of ", work.statement.name, " were listed one by one"));
    for (const Access& access : work.statement.accesses) brought_in_.insert(access.tensor);
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

  /// The memory that the vector unit reads and writes a tensor in: what a product makes lies with the array's outputs.
  size_t beside_vector_unit(const std::string& tensor, size_t statement) const {
    const size_t maker = pipeline_.writer_of(tensor, statement);
    const bool output = maker < statement && merged_.products[maker];
    size_t near = chip_.memories.size() - 1;
    while (near > 0 && !(output ? chip_.memories[near].holds_outputs : chip_.memories[near].holds_activations)) --near;
    return near;
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
    cost.counts = counts_.of(at_once(work), text("statement ", work.statement.name, " for chip ", chip_.name));
    cost.instances = cost.counts->macs;
    cost.vector_parts = stage.beside_array() ? stage.parts : own_parts_;
    cost.waits = stage.waits;
    if (work.multiply_accumulate) cost.macs = cost.instances;
    cost.vector_ops =
        whole_cycles(static_cast<double>(cost.instances) * (work.vector_ops + (work.multiply_accumulate ? 2 : 0)));
    for (size_t a = 0; a < work.operands.size(); ++a)
      if (!work.operands[a].on_the_way) move_beside_vector_unit(i, a, cost);
    total_.statements.push_back(std::move(cost));
  }

  void move_beside_vector_unit(size_t i, size_t a, StatementCost& cost) {
    const Work& work = merged_.works[i];
    const Access& access = work.statement.accesses[a];
    const Operand& operand = work.operands[a];
    const TensorCounts& touched = cost.counts->tensors[a];
    const bool reads = access.role == Role::read;
    const size_t maker = reads ? pipeline_.writer_of(access.tensor, i) : i, near = beside_vector_unit(access.tensor, i);
    if (maker < merged_.works.size() && on_vector_unit(maker) && pipeline_.stays_in_registers(maker, pass_of_)) return;
    const int64_t instances = chip_.memories[near].per_core ? chip_.cores : 1;
    Traffic beside{.memory = near, .tensor = access.tensor, .kind = operand.kind, .instances = instances};
    // What an earlier statement of the pass has read or made for the same element is at hand.
    if (!reads)
      beside.write_bits = bits_of(touched.footprint, operand.bits);  // sums stay in registers until they are complete
    else if (!at_hand(i, access))
      beside.read_bits = bits_of(reads_of_lanes(work)[a], operand.bits);
    const bool passes = !operand.internal && (reads ? brought_in_ : sent_out_).insert(access.tensor).second;
    if (passes && near > 0) {
      const int64_t bits = bits_of(touched.footprint, operand.bits);
      Traffic outside{.memory = 0, .tensor = access.tensor, .kind = operand.kind};
      (reads ? outside.read_bits : outside.write_bits) = bits;
      beside.parts = stages_[i].beside_array() || !reads ? cost.vector_parts : pipeline_.parts_of(access.tensor);
      beside.waits = stages_[i].waits;
      beside.refill(0, reads ? bits : 0, reads ? 0 : bits);
      cost.traffic.push_back(std::move(outside));
    }
    if (!reads) brought_in_.insert(access.tensor);
    cost.traffic.push_back(std::move(beside));
  }

  /// Elements of each access that the vector unit reads, its lanes along the last iterator (or the longest): a lane keeps what it needs again
  /// at the next stamp, and what all lanes need at one stamp is read once.
  std::vector<int64_t> reads_of_lanes(const Work& work) {
    const Domain& domain = work.statement.domain;
    size_t last = domain.extent.size();
    for (size_t x = 0; x < domain.extent.size(); ++x) {
      if (domain.extent[x] < 2) continue;
      const bool longer = last == domain.extent.size() || domain.extent[x] > domain.extent[last];
      if (chip_.lanes_along == LanesAlong::last || longer) last = x;
    }
    Problem lanes{
        work.statement, {{number(0)}, {}}, {Domain::box({"lane"}, {chip_.vector.lanes}), {link::shift({-1})}}};
    if (last < domain.extent.size()) {
      const QuasiAffine x = variable(static_cast<int>(last)) - domain.lower[last];
      lanes.mapping.space = {mod(x, chip_.vector.lanes)};
      lanes.mapping.time = {floor_div(x, chip_.vector.lanes)};
    }
    for (size_t x = 0; x < domain.extent.size(); ++x)
      if (domain.extent[x] > 1 && x != last) lanes.mapping.time.push_back(variable(static_cast<int>(x)));
    const Counts* counts = counts_.find(lanes);
    std::vector<int64_t> reads;
    for (const TensorCounts& t : counts ? counts->tensors : counts_.of(at_once(work), "").tensors)
      reads.push_back(counts ? t.unique : t.total);
    return reads;
  }

  /// All instances at one stamp of one place.
  static Problem at_once(const Work& work) { return {work.statement, {{number(0)}, {}}, one_pe()}; }

  bool at_hand(size_t i, const Access& access) const {
    for (size_t s = 0; s < i; ++s) {
      if (!on_vector_unit(s) || pass_of_[s] != pass_of_[i]) continue;
      for (const Access& earlier : merged_.works[s].statement.accesses)
        if (earlier.tensor == access.tensor && earlier.references.size() == 1 && access.references.size() == 1 &&
            in_step(merged_.works[s], earlier.references[0], merged_.works[i], access.references[0]))
          return true;
    }
    return false;
  }

  /// What the vector unit does beside product i, in parts of which tensors of it. Other products are left out.
  Beside beside(size_t product) {
    Beside beside{.steps = {}, .in_parts = in_parts(product)};
    const std::vector<Work>& works = merged_.works;
    const auto taken = brought_in_, sent = sent_out_;
    for (size_t i = 0; i < works.size(); ++i)
      if (merged_.products[i])
        for (const Access& access : works[i].statement.accesses) brought_in_.insert(access.tensor);
    std::vector<StatementCost> moves(works.size());
    for (size_t i = 0; i < works.size(); ++i)
      for (size_t a = 0; on_vector_unit(i) && a < works[i].operands.size(); ++a) {
        moves[i].counts = counts_.of(at_once(works[i]), text("statement ", works[i].statement.name));
        if (!works[i].operands[a].on_the_way) move_beside_vector_unit(i, a, moves[i]);
      }
    brought_in_ = taken, sent_out_ = sent;
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
      Beside::Step step{.vector_cycles = static_cast<double>(moves[i].counts->macs) * vector_cycles_each(works[i])};
      for (const Access& access : works[i].statement.accesses)
        step.after |= i > product && access.role == Role::read && made.contains(access.tensor);
      if (step.after) {
        made.insert(write_of(works[i]).tensor);
        step.accesses = {merged_.products[product]->output};
      } else if (auto feeds = needed.find(write_of(works[i]).tensor); i < product && feeds != needed.end()) {
        step.accesses.assign(feeds->second.begin(), feeds->second.end());
      }
      for (const Traffic& t : moves[i].traffic) {
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
        note(text(chip_.name, " has no unit to ", name_of(cost.vector_work), "; its vector unit is assumed to"));
      cost.vector_cycles =
          whole_cycles(static_cast<double>(cost.vector_ops) /
                       (static_cast<double>(chip_.vector.lanes) * chip_.vector.ops_per_lane_per_cycle));
    }
  }

  void sum_traffic() {
    read_bits_.assign(chip_.memories.size(), 0);
    write_bits_ = read_bits_;
    for (const StatementCost& cost : total_.statements) {
      total_.macs += cost.macs;
      for (const Traffic& t : cost.traffic) {
        read_bits_[t.memory] += t.read_bits;
        write_bits_[t.memory] += t.write_bits;
        if (t.memory == 0) total_.outside.push_back(t);
      }
    }
  }

  void rate_memories() {
    const int64_t work = std::max({int64_t{1}, total_.resources[0].cycles, total_.resources[1].cycles});
    for (size_t m = 0; m < chip_.memories.size(); ++m) {
      const Memory& memory = chip_.memories[m];
      MemoryCost cost{
          .name = memory.name, .read_bytes = (read_bits_[m] + 7) / 8, .write_bytes = (write_bits_[m] + 7) / 8};
      const double bytes = static_cast<double>(cost.read_bytes + cost.write_bytes);
      cost.required_bytes_per_s = bytes / static_cast<double>(work) * chip_.clock_hz;
      if (total_.latency_s > 0) cost.achieved_bytes_per_s = bytes / total_.latency_s;
      cost.available_bytes_per_s = available_bytes_per_s(memory, chip_);
      total_.memories.push_back(std::move(cost));
    }
  }

  void rate_array() {
    double pe_cycles = 0, at_work = 0, cycles = 0;
    for (const StatementCost& cost : total_.statements) {
      if (!cost.on_array()) continue;
      pe_cycles +=
          static_cast<double>(cost.macs) * static_cast<double>(cost.passes) / cost.precision->macs_per_pe_per_cycle;
      at_work += cost.pes_used * static_cast<double>(cost.stream_cycles);
      cycles += static_cast<double>(cost.stream_cycles);
    }
    if (cycles > 0) total_.mac_units_used = at_work / cycles;
    if (total_.latency_cycles > 0)
      total_.utilization = pe_cycles / static_cast<double>(chip_.pes()) / static_cast<double>(total_.latency_cycles);
  }

  void sum_energy() {
    for (const StatementCost& cost : total_.statements) {
      if (cost.on_array())
        spend("mac", static_cast<double>(cost.macs) * static_cast<double>(cost.passes), cost.precision->energy_per_mac);
      spend("registers", static_cast<double>(cost.register_bits), chip_.pe.energy_per_bit);
      spend("wires", static_cast<double>(cost.hop_bits), chip_.energy_per_hop_bit);
      spend("vector", static_cast<double>(cost.vector_ops), chip_.vector.energy_per_op);
    }
    for (size_t m = 0; m < chip_.memories.size(); ++m) {
      spend(chip_.memories[m].name, static_cast<double>(read_bits_[m]), chip_.memories[m].read_energy_per_bit);
      spend(chip_.memories[m].name, static_cast<double>(write_bits_[m]), chip_.memories[m].write_energy_per_bit);
    }
    spend("static", total_.latency_s, {chip_.static_watts * 1e12, chip_.static_source});
    for (const EnergyPart& e : total_.energy_parts) total_.energy_j += e.joules;
    total_.energy_node_nm = chip_.energy_node_nm;
  }

  void spend(const std::string& name, double times, const EnergyFigure& each) {
    const double joules = times * each.picojoules * 1e-12;
    if (joules == 0) return;
    for (EnergyPart& known : total_.energy_parts)
      if (known.name == name && known.source == each.source) {
        known.joules += joules;
        return;
      }
    total_.energy_parts.push_back({name, joules, each.source});
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
  std::vector<size_t> pass_of_;                  // per statement
  std::vector<Stage> stages_;                    // per statement
  std::vector<size_t> product_costs_;            // per statement: where its cost stands
  int64_t own_parts_ = 1;                        // of statements that no product is beside
  std::set<std::string> brought_in_, sent_out_;  // tensors
  std::vector<int64_t> read_bits_, write_bits_;  // per memory
  KernelCost total_;
};

}  // namespace

KernelCost CostEngine::cost(const Kernel& kernel) { return cost(kernel, {}); }

KernelCost CostEngine::cost(const Kernel& kernel, const std::vector<std::optional<Placement>>& given) {
  std::vector<std::vector<Placement>> options;  // per product
  std::vector<size_t> chosen;
  auto run = [&] {
    size_t next = 0;
    return Composer(kernel, chip_, by_class_, memo_->counts, memo_->tenet ? &*memo_->tenet : nullptr)
        .run([&](const Work& work, const Product& product, const Chip& mapped, const Pace& pace, auto beside) {
          const size_t i = next++;
          if (i < given.size() && given[i]) return *given[i];
          if (i >= options.size()) options.resize(i + 1), chosen.resize(i + 1, 0);
          if (options[i].empty() && chip_.tile)
            if (auto tiled = tiled_placement(work, product, mapped, pace, *chip_.tile))
              options[i] = {std::move(*tiled)};
          if (options[i].empty())
            options[i] = sator::dataflow::placements(work, product, mapped, pace, beside(), kJudged);
          return options[i][chosen[i]];
        });
  };
  const bool free = std::none_of(given.begin(), given.end(), [](const auto& p) { return p.has_value(); });
  const std::string key = free ? structure_key(kernel) : "";
  if (auto known = memo_->placements.find(key); free && known != memo_->placements.end())
    for (const Placement& p : known->second) options.push_back({p}), chosen.push_back(0);
  // A mapping that cannot be counted gives way to the next; the last product that has options is the one that stopped.
  auto first = [&] {
    while (true) {
      try {
        return run();
      } catch (const Error&) {
        if (options.empty() || chosen.back() + 1 >= options.back().size()) throw;
        ++chosen.back();
      }
    }
  };
  KernelCost best = first();
  for (size_t i = 0; i < options.size(); ++i) {
    size_t best_choice = chosen[i];
    const double within = 1.25 * options[i][chosen[i]].estimated_cycles;
    for (++chosen[i]; chosen[i] < options[i].size() && !as_estimated(best, options[i][best_choice], chip_);
         ++chosen[i]) {
      if (options[i][chosen[i]].estimated_cycles > within) break;
      try {
        KernelCost cost = run();
        if (is_better(cost, best)) best = std::move(cost), best_choice = chosen[i];
      } catch (const Error&) {  // not counted
      }
    }
    chosen[i] = best_choice;
  }
  if (free && !memo_->placements.contains(key)) {
    std::vector<Placement>& keep = memo_->placements[key];
    for (size_t i = 0; i < options.size(); ++i) keep.push_back(options[i][chosen[i]]);
  }
  return best;
}

std::vector<Placement> CostEngine::mappings(const Kernel& kernel, size_t most) {
  if (chip_.tenet)
    fail({.what = text("the mapping of ", chip_.name, " is that of ", chip_.tenet->mapping_file),
          .needs = "a chip whose mapping is not fixed by files",
          .hint = "take another chip"});
  std::vector<Placement> first;
  Composer(kernel, chip_, by_class_, memo_->counts, nullptr)
      .run([&](const Work& work, const Product& product, const Chip& mapped, const Pace& pace, auto beside) {
        std::vector<Placement> found = placements_with_own_tiles(work, product, mapped, pace, beside(), most);
        Placement best = found[0];
        if (first.empty()) first = std::move(found);
        return best;
      });
  return first;
}

}  // namespace sator::dataflow
