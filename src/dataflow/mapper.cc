#include "dataflow/mapper.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/array_cost.h"
#include "dataflow/sharing.h"

namespace sator::dataflow {

namespace {

constexpr int64_t kTileChoices = 4;  // sizes tried per iterator beside the whole, then refined
constexpr size_t kMaxLoops = 32;
constexpr size_t kMaxAccesses = 16, kMaxMemories = 16;

/// A loop over blocks of consecutive values of an iterator.
struct Loop {
  size_t iterator = 0;
  int64_t block = 1, count = 1;
};

/// How the array's two axes are used: PE coordinates, and how many values of each iterator one stamp covers.
struct SpatialPlan {
  size_t stationary;  // the access that stays in the PEs
  Map space;
  std::vector<int64_t> cover;  // per iterator
  std::vector<rules::ArrayNest::Side> rows, columns, at_once;
  bool has_nest = true;  // it can be written as splits of loops
  int64_t rows_used = 1, columns_used = 1;
  std::string words;
};

struct Candidate {
  double score = 0;
  size_t depth = 0;
  std::array<Loop, kMaxLoops> loops;
  std::array<size_t, kMaxMemories> held_since{};
  size_t plan = 0;
  std::vector<size_t> order;   // of the tiled iterators
  std::vector<int64_t> sizes;  // of their tiles
  bool folds_reversed = false;

  void add(size_t iterator, int64_t block, int64_t extent) {
    if (block < extent && depth < kMaxLoops) loops[depth++] = {iterator, block, ceil_div(extent, block)};
  }
};

/// Finds the mapping of the part of a product that one core does.
class Mapper {
 public:
  ///   block   per iterator: consecutive values that one core takes
  Mapper(const Work& work, const Product& product, const Chip& chip, const Pace& pace,
         const std::vector<int64_t>& block)
      : work_(work), product_(product), chip_(chip), pace_(pace) {
    const size_t accesses = work.statement.accesses.size();
    for (size_t x = 0; x < block.size(); ++x) {
      const int64_t whole = work.statement.domain.extent[x];
      extent_.push_back(block[x]);
      parts_.push_back(block[x] > 0 ? ceil_div(whole, block[x]) : 1);
      cores_ *= parts_[x];
    }
    relevant_.assign(accesses, std::vector<bool>(extent_.size(), false));
    for (size_t a = 0; a < accesses; ++a) {
      for (const Map& reference : work.statement.accesses[a].references)
        for (const QuasiAffine& e : reference)
          for (size_t x = 0; x < extent_.size(); ++x)
            if (mentions(e, static_cast<int>(x))) relevant_[a][x] = true;
      footprint_.push_back(elements_of(work.statement.accesses[a], extent_));
      double spread = 1;
      for (size_t x = 0; x < extent_.size(); ++x)
        if (relevant_[a][x]) spread *= static_cast<double>(parts_[x]);
      spread_.push_back(spread);
    }
  }

  /// Finds the best mapping; its score, in cycles.
  double run() {
    make_plans();
    for (size_t p = 0; p < plans_.size(); ++p) search(p);
    refine();
    return best_.score;
  }

 private:
  std::string name(size_t x) const { return work_.statement.domain.names[x]; }
  QuasiAffine from_zero(size_t x) const {
    const QuasiAffine value = variable(static_cast<int>(x)) - work_.statement.domain.lower[x];
    return parts_[x] > 1 ? mod(value, extent_[x]) : value;
  }

  /// How many times the part of access a in memory m that one core needs, for all cores: each has its own, or they share it.
  double copies(size_t a, size_t m) const {
    return m < chip_.memories.size() && !chip_.memories[m].per_core ? spread_[a] : static_cast<double>(cores_);
  }

  /// Puts iterators on an axis of `size` PEs, the longest first: as many values as fit, then parts of the next.
  int64_t pack(std::vector<size_t> iterators, int64_t size, bool reduces, SpatialPlan& plan, QuasiAffine& coordinate,
               std::vector<rules::ArrayNest::Side>& sides) {
    std::stable_sort(iterators.begin(), iterators.end(), [&](size_t a, size_t b) { return extent_[a] > extent_[b]; });
    int64_t used = 1;
    std::vector<std::string> parts;
    for (size_t x : iterators) {
      const int64_t lanes = reduces && used == 1 ? std::min(pace_.macs_per_stamp, extent_[x]) : 1;
      const int64_t blocks = ceil_div(extent_[x], lanes), take = std::min(size / used, blocks);
      if (take < 2 && lanes == 1) continue;
      QuasiAffine e = floor_div(from_zero(x), lanes);
      if (take < blocks) e = mod(e, take);
      coordinate = coordinate + e * used;
      plan.cover[x] = take < blocks ? take * lanes : extent_[x];
      sides.push_back({.loop = x, .values = take, .at_once = lanes});
      parts.push_back(text(name(x), take < blocks ? text("%", take * lanes) : ""));
      used *= take;
      if (take < blocks) break;
    }
    plan.words += parts.empty() ? "-" : join(parts, "+");
    return used;
  }

  void make_plan(size_t stationary, bool swapped) {
    SpatialPlan plan{.stationary = stationary, .space = {}, .cover = std::vector<int64_t>(extent_.size(), 1)};
    std::vector<size_t> rows, columns;
    for (size_t x = 0; x < extent_.size(); ++x) {
      const Product::Use& u = product_.uses[x];
      if (extent_[x] < 2) continue;
      if (stationary == product_.output) {
        if (u.output && u.first != u.second) (u.first != swapped ? rows : columns).push_back(x);
      } else {
        const bool in_other = product_.in(x, stationary == product_.first ? product_.second : product_.first);
        if (!product_.in(x, stationary)) continue;
        if (!u.output)
          rows.push_back(x);
        else if (!in_other)
          columns.push_back(x);
      }
    }
    QuasiAffine row, column;
    plan.words = "rows ";
    plan.rows_used = pack(rows, chip_.rows, stationary != product_.output, plan, row, plan.rows);
    plan.words += ", columns ";
    plan.columns_used = pack(columns, chip_.columns, false, plan, column, plan.columns);
    plan.space = {row, column};
    // A reduction that streams through the PEs takes several values per stamp.
    if (stationary == product_.output && pace_.macs_per_stamp > 1) {
      size_t longest = extent_.size();
      for (size_t x = 0; x < extent_.size(); ++x)
        if (!product_.uses[x].output && (longest == extent_.size() || extent_[x] > extent_[longest])) longest = x;
      if (longest < extent_.size()) {
        plan.cover[longest] = std::min(pace_.macs_per_stamp, extent_[longest]);
        plan.at_once.push_back({.loop = longest, .at_once = plan.cover[longest]});
      }
    }
    plans_.push_back(std::move(plan));
  }

  /// A filter's row lies along a column of PEs, which sums it up for one row of outputs; neighbours do the next rows. Where
  /// PEs are left below, further strips of rows lie there, then further output channels.
  /// Source: Chen et al., "Eyeriss", ISCA 2016.
  bool make_row_plan() {
    const size_t weight = weight_of(work_, product_),
                 input = weight == product_.first ? product_.second : product_.first;
    size_t filter = extent_.size(), output = filter, channel = filter;
    for (const QuasiAffine& e : work_.statement.accesses[input].references[0])
      for (size_t r = 0; r < extent_.size() && filter == extent_.size(); ++r)
        for (size_t p = 0; p < extent_.size(); ++p) {
          const bool window = mentions(e, static_cast<int>(r)) && mentions(e, static_cast<int>(p));
          if (!window || !product_.in(r, weight) || product_.uses[r].output || !product_.uses[p].output) continue;
          if (extent_[r] < 2 || extent_[r] > chip_.rows) continue;
          filter = r, output = p;
        }
    if (filter == extent_.size()) return false;
    for (size_t x = 0; x < extent_.size(); ++x)
      if (product_.in(x, weight) && product_.uses[x].output && !product_.in(x, input) &&
          (channel == extent_.size() || extent_[x] > extent_[channel]))
        channel = x;
    SpatialPlan plan{.stationary = weight, .space = {}, .cover = std::vector<int64_t>(extent_.size(), 1)};
    const int64_t columns = std::min(chip_.columns, extent_[output]), high = extent_[filter];
    const int64_t strips = std::min(ceil_div(extent_[output], columns), chip_.rows / high);
    plan.columns_used = columns;
    plan.rows_used = high * strips;
    plan.has_nest = false;
    QuasiAffine row = from_zero(filter) + mod(floor_div(from_zero(output), columns), strips) * high;
    plan.cover[filter] = high;
    plan.cover[output] = std::min(columns * strips, extent_[output]);
    plan.words = text("rows ", name(filter), ", columns ", name(output));
    if (const int64_t sets = chip_.rows / plan.rows_used;
        channel < extent_.size() && sets > 1 && extent_[channel] > 1) {
      plan.cover[channel] = std::min(sets, extent_[channel]);
      row = row + mod(from_zero(channel), plan.cover[channel]) * plan.rows_used;
      plan.rows_used *= plan.cover[channel];
      plan.words += text(", ", name(channel), "%", plan.cover[channel], " below each other");
    }
    plan.space = {row, mod(from_zero(output), columns)};
    plans_.push_back(std::move(plan));
    return true;
  }

  void make_plans() {
    const size_t weight = weight_of(work_, product_);
    const size_t input = weight == product_.first ? product_.second : product_.first;
    const bool named = work_.operands[weight].kind != OperandKind::activation;
    switch (chip_.dataflow) {
      case Stationary::output:
      case Stationary::schedule:
        make_plan(product_.output, false);
        make_plan(product_.output, true);
        break;
      case Stationary::weight:
        make_plan(weight, false);
        if (!named) make_plan(input, false);  // two activations: either may stay
        break;
      case Stationary::input:
        make_plan(input, false);
        if (!named) make_plan(weight, false);
        break;
      case Stationary::row:
        if (!make_row_plan()) make_plan(weight, false);
        break;
    }
  }

  /// Doublings of `cover` below `extent`, at most kTileChoices of them, and the whole.
  /// Where cores share the iterator, sizes that divide a core's part: its digits then stay apart.
  std::vector<int64_t> tile_sizes(size_t x, int64_t cover) const {
    const int64_t extent = extent_[x];
    if (parts_[x] > 1) {
      std::vector<int64_t> sizes;
      for (int64_t blocks = 1; extent % cover == 0 && cover * blocks < extent; ++blocks)
        if (extent % (cover * blocks) == 0) sizes.push_back(cover * blocks);
      while (sizes.size() > static_cast<size_t>(kTileChoices))
        sizes.erase(sizes.begin() + static_cast<long>(sizes.size()) / 2);
      sizes.push_back(extent);
      return sizes;
    }
    int64_t doublings = 0;
    while (doublings < 40 && cover << (doublings + 1) < extent) ++doublings;
    const int64_t step = doublings / kTileChoices + 1;
    std::vector<int64_t> sizes;
    for (int64_t d = 0; d <= doublings; d += step)
      if (cover << d < extent) sizes.push_back(cover << d);
    sizes.push_back(extent);
    return sizes;
  }

  /// Sorts the iterators that still run in time under one plan by what they do.
  void sort_iterators(size_t plan_number) {
    const SpatialPlan& plan = plans_[plan_number];
    batch_.clear(), main_.clear(), folds_.clear(), stream_.clear();
    for (auto [first, second, output] : {std::tuple{true, false, true}, {false, true, true}, {true, true, false}}) {
      size_t best = extent_.size();
      for (size_t x = 0; x < extent_.size(); ++x) {
        const Product::Use& u = product_.uses[x];
        if (u.first != first || u.second != second || u.output != output || extent_[x] <= plan.cover[x]) continue;
        if (best == extent_.size() || extent_[x] > extent_[best]) best = x;
      }
      if (best < extent_.size()) main_.push_back(best);
    }
    for (size_t x = 0; x < extent_.size(); ++x) {
      if (extent_[x] <= plan.cover[x]) continue;
      const Product::Use& u = product_.uses[x];
      if (u.first && u.second && u.output)
        batch_.push_back(x);
      else
        (relevant_[plan.stationary][x] ? folds_ : stream_).push_back(x);
    }
    // Of the iterators that stream, the longest runs innermost: the array fills once per run.
    std::stable_sort(stream_.begin(), stream_.end(), [&](size_t a, size_t b) { return extent_[a] < extent_[b]; });
    const size_t weight = weight_under(plan);
    paths_.clear();
    for (size_t a = 0; a < relevant_.size(); ++a) paths_.push_back(memory_path(work_, product_, weight, a, chip_));
  }

  /// Tries sizes and orders of tiles of the longest iterator of each class; what is left runs inside.
  void search(size_t plan_number) {
    const SpatialPlan& plan = plans_[plan_number];
    sort_iterators(plan_number);
    std::vector<std::vector<int64_t>> choices;
    for (size_t x : main_) choices.push_back(tile_sizes(x, plan.cover[x]));
    std::vector<size_t> pick(main_.size(), 0);
    while (true) {
      std::vector<size_t> tiled;
      std::vector<int64_t> size_of(extent_.size(), 0);
      for (size_t i = 0; i < main_.size(); ++i) {
        size_of[main_[i]] = choices[i][pick[i]];
        if (size_of[main_[i]] < extent_[main_[i]]) tiled.push_back(main_[i]);
      }
      std::sort(tiled.begin(), tiled.end());
      do {
        for (bool reversed : {false, true}) {
          if (reversed && folds_.size() < 2) continue;
          Candidate c;
          c.plan = plan_number;
          c.order = tiled;
          for (size_t x : tiled) c.sizes.push_back(size_of[x]);
          c.folds_reversed = reversed;
          consider(c);
        }
      } while (std::next_permutation(tiled.begin(), tiled.end()));
      size_t i = 0;
      while (i < pick.size() && ++pick[i] == choices[i].size()) pick[i++] = 0;
      if (i == pick.size()) return;
    }
  }

  /// Walks from the best candidate to better neighbours: one tile twice or half as large.
  void refine() {
    sort_iterators(best_.plan);
    for (bool improved = true; improved;) {
      improved = false;
      const Candidate from = best_;
      for (size_t i = 0; i < from.sizes.size(); ++i)
        for (bool larger : {false, true}) {
          const int64_t cover = plans_[from.plan].cover[from.order[i]];
          const int64_t blocks = from.sizes[i] / cover;
          Candidate c;
          c.plan = from.plan, c.order = from.order, c.sizes = from.sizes, c.folds_reversed = from.folds_reversed;
          c.sizes[i] = larger ? from.sizes[i] * 2 : blocks % 2 == 0 ? from.sizes[i] / 2 : from.sizes[i];
          if (c.sizes[i] == from.sizes[i] || c.sizes[i] >= extent_[c.order[i]]) continue;
          if (parts_[c.order[i]] > 1 && extent_[c.order[i]] % c.sizes[i] != 0) continue;
          improved |= consider(c);
        }
    }
  }

  /// Completes the loops of a candidate and keeps it if it is the best so far.
  bool consider(Candidate& c) {
    const SpatialPlan& plan = plans_[c.plan];
    std::vector<int64_t> left = extent_;
    for (size_t x : batch_) c.add(x, plan.cover[x], extent_[x]);
    for (size_t i = 0; i < c.order.size(); ++i) {
      c.add(c.order[i], c.sizes[i], extent_[c.order[i]]);
      left[c.order[i]] = c.sizes[i];
    }
    for (size_t i = 0; i < folds_.size(); ++i) {
      const size_t x = folds_[c.folds_reversed ? folds_.size() - 1 - i : i];
      c.add(x, plan.cover[x], left[x]);
    }
    for (size_t x : stream_) c.add(x, plan.cover[x], left[x]);
    judge(c);
    if (found_ && c.score >= best_.score) return false;
    best_ = c;
    found_ = true;
    return true;
  }

  /// Chooses what each memory holds, the most that fits; estimates cycles of the array and of every memory.
  void judge(Candidate& c) {
    const size_t accesses = paths_.size(), depth = c.depth;
    // held_[a][d]: bits of access a that the loops after the first d touch.
    std::vector<int64_t>& block = block_;
    block = extent_;
    for (size_t d = 0; d <= depth; ++d) {
      if (d > 0) block[c.loops[d - 1].iterator] = std::min(block[c.loops[d - 1].iterator], c.loops[d - 1].block);
      for (size_t a = 0; a < accesses; ++a)
        held_[a][d] = d > 0 && !relevant_[a][c.loops[d - 1].iterator]
                          ? held_[a][d - 1]
                          : elements_of(work_.statement.accesses[a], block) * bits_of(a);
    }
    hold_most(c);
    const size_t outer = fold_loops(c);
    std::array<double, kMaxMemories> read_bits{}, write_bits{};
    double first_part = 0, out_bits = 0, serial_bits = 0;  // of the outermost memory
    double before_output = 0, out_parts = 1;
    for (size_t d = 0; d < outer; ++d) {
      const bool moves_output = relevant_[product_.output][c.loops[d].iterator];
      const double turns = static_cast<double>(c.loops[d].count);
      before_output = before_output * turns + (moves_output ? 0 : turns - 1);
      if (moves_output) out_parts *= turns;
    }
    for (size_t a = 0; a < accesses; ++a) {
      const bool output = a == product_.output;
      if (!output && is_running_sum(a)) continue;
      double parts = 1;
      for (size_t d = 0; d < outer; ++d)
        if (relevant_[a][c.loops[d].iterator]) parts *= static_cast<double>(c.loops[d].count);
      for (size_t i = 0; i < paths_[a].size(); ++i) {
        const bool last = i + 1 == paths_[a].size();
        const double bits = times_fetched(c, a, last ? depth : c.held_since[paths_[a][i + 1]]) * bits_of(a);
        const double again = output ? bits - footprint_[a] * bits_of(a) : 0;
        const double all = copies(a, last ? chip_.memories.size() : paths_[a][i + 1]);
        const double here = all / sharers(paths_[a][i]), inside = last ? 0 : all / sharers(paths_[a][i + 1]);
        (output ? write_bits : read_bits)[paths_[a][i]] += bits * here;
        (output ? read_bits : write_bits)[paths_[a][i]] += again * here;
        if (last) continue;
        (output ? read_bits : write_bits)[paths_[a][i + 1]] += bits * inside;
        (output ? write_bits : read_bits)[paths_[a][i + 1]] += again * inside;
        if (paths_[a][i] > 0) continue;
        if (!chip_.memories[paths_[a][i + 1]].double_buffered)
          serial_bits += (bits + again) * here;
        else if (output)
          out_bits += (bits + again) * here;
        else
          first_part += bits / parts * here;
      }
    }
    const double array = array_cycles(c), folds = turns(c, 0, outer);
    double longest = array, outside = 0, all = 0, each = 0;
    for (size_t m = 0; m < chip_.memories.size(); ++m) {
      const Memory& memory = chip_.memories[m];
      double r = read_bits[m] / 8 / memory.read_bytes_per_cycle, w = write_bits[m] / 8 / memory.write_bytes_per_cycle;
      double cycles = memory.shared_port ? r + w : std::max(r, w);
      all += cycles;
      if (m == 0) {
        outside = cycles;
        each = cycles / std::max(1.0, read_bits[0] + write_bits[0]);
        cycles -= serial_bits * each;
      }
      longest = std::max(longest, cycles);
    }
    double making = 0;
    for (size_t a = 0; a < std::min(accesses, pace_.making_cycles.size()); ++a)
      if (pace_.making_cycles[a] > 0)
        making += times_fetched(c, a, depth) * pace_.making_cycles[a] * static_cast<double>(cores_);
    const double waits = (before_output + 1) / folds, vector = making + pace_.vector_cycles;
    longest = std::max(longest, vector);
    auto rest = [&](double cycles) { return std::max(cycles / out_parts, cycles - longest * (1 - waits)); };
    double ends = serial_bits * each;
    if (longest != array) ends += std::max(array / folds, longest == vector ? array * waits - making : 0);
    if (longest != vector) ends += making / folds + rest(pace_.vector_cycles);
    if (longest == array || longest == vector) ends += first_part * each + rest(out_bits * each);
    // The latency of cost.h. Of near equals the one that moves and makes less wins: traffic outside adds a 32nd of its time
    // and so does making, traffic inside a 256th.
    c.score = longest + ends + (outside + making) / 32 + all / 256;
  }

  /// Loops outside of the innermost run of streaming ones: they number the folds of the array.
  size_t fold_loops(const Candidate& c) const {
    size_t outer = c.depth;
    while (outer > 0 && std::find(stream_.begin(), stream_.end(), c.loops[outer - 1].iterator) != stream_.end())
      --outer;
    return outer;
  }

  static double turns(const Candidate& c, size_t from, size_t to) {
    double turns = 1;
    for (size_t d = from; d < to; ++d) turns *= static_cast<double>(c.loops[d].count);
    return turns;
  }

  void hold_most(Candidate& c) const {
    for (size_t m = 1; m < chip_.memories.size(); ++m) {
      const Memory& memory = chip_.memories[m];
      const double room = 8.0 * static_cast<double>(memory.capacity_bytes.value_or(INT64_MAX / 16));
      size_t since = 0;
      for (; since < c.depth; ++since) {
        double bits = 0;
        for (size_t a = 0; a < paths_.size(); ++a)
          if (std::find(paths_[a].begin(), paths_[a].end(), m) != paths_[a].end())
            bits += held_[a][since] * (memory.per_core ? 1 : spread_[a]);
        if (bits <= (memory.double_buffered && since > 0 ? room / 2 : room)) break;
      }
      c.held_since[m] = since;
    }
  }

  /// Cycles of the array: stamps, the wave of operands at the start of each tile, the stationary tiles.
  double array_cycles(const Candidate& c) const {
    const SpatialPlan& plan = plans_[c.plan];
    const size_t outer = fold_loops(c);
    const double folds = turns(c, 0, outer), streamed = turns(c, outer, c.depth), stamps = folds * streamed;
    const double reach = static_cast<double>(plan.rows_used + plan.columns_used - 2);
    double cycles = stamps * static_cast<double>(pace_.cycles_per_stamp);
    if (chip_.wires == Wires::systolic) cycles += chip_.tiles_overlap ? reach : reach * folds;
    if (plan.stationary == product_.output) return cycles;
    const double load = static_cast<double>(plan.rows_used);
    return cycles + (chip_.stationary_load_hidden ? load + (folds - 1) * std::max(0.0, load - streamed) : load * folds);
  }

  bool is_running_sum(size_t access) const {
    return work_.statement.accesses[access].tensor == work_.statement.accesses[product_.output].tensor;
  }

  /// The factor that lies where weights are held: the one that stays, under a dataflow where a factor stays. Where the
  /// dataflow keeps the input, that is the other one.
  size_t weight_under(const SpatialPlan& plan) const {
    if (plan.stationary == product_.output) return weight_of(work_, product_);
    if (chip_.dataflow != Stationary::input) return plan.stationary;
    return plan.stationary == product_.first ? product_.second : product_.first;
  }

  double bits_of(size_t access) const {
    return access == product_.output ? std::max(pace_.sum_bits, work_.operands[access].bits)
                                     : work_.operands[access].bits;
  }

  /// Elements of access a that a memory below the first `since` loops takes in: the whole tensor once, again for every
  /// turn of a loop that does not move it but lies outside of one that does.
  double times_fetched(const Candidate& c, size_t a, size_t since) const {
    size_t last = since;
    while (last > 0 && !relevant_[a][c.loops[last - 1].iterator]) --last;
    double elements = footprint_[a];
    for (size_t d = 0; d < last; ++d)
      if (!relevant_[a][c.loops[d].iterator]) elements *= static_cast<double>(c.loops[d].count);
    return elements;
  }

  /// Cores that share the bits of memory m evenly, each with a memory of its own.
  double sharers(size_t m) const { return chip_.memories[m].per_core ? static_cast<double>(cores_) : 1; }

  void choose_cores(Placement& placement) const {
    placement.cores_used = cores_;
    if (chip_.cores == 1) return;
    QuasiAffine core = number(0);
    int64_t stride = 1;
    std::vector<std::string> parts;
    for (size_t x = 0; x < extent_.size(); ++x) {
      if (parts_[x] == 1) continue;
      core = core + floor_div(variable(static_cast<int>(x)) - work_.statement.domain.lower[x], extent_[x]) * stride;
      stride *= parts_[x];
      parts.push_back(text(name(x), " in ", parts_[x]));
    }
    placement.core = core;
    placement.words += text("; cores ", parts.empty() ? "one" : join(parts, ", "));
  }

 public:
  /// The best mapping found.
  Placement build() const {
    const SpatialPlan& plan = plans_[best_.plan];
    Placement placement;
    placement.mapping.space = plan.space;
    placement.weight = weight_under(plan);
    placement.held_since.assign(best_.held_since.begin(),
                                best_.held_since.begin() + static_cast<long>(chip_.memories.size()));
    rules::ArrayNest nest{.time = {}, .rows = plan.rows, .columns = plan.columns, .at_once = plan.at_once};
    nest.held_since.assign(placement.held_since.begin(), placement.held_since.end());
    std::vector<int64_t> parent(extent_.size(), 0);
    std::vector<std::string> words;
    for (size_t d = 0; d < best_.depth; ++d) {
      const Loop& loop = best_.loops[d];
      QuasiAffine e = floor_div(from_zero(loop.iterator), loop.block);
      if (parent[loop.iterator] > 0) e = mod(e, parent[loop.iterator] / loop.block);
      parent[loop.iterator] = loop.block;
      placement.mapping.time.push_back(e);
      nest.time.push_back({.loop = loop.iterator, .block = loop.block});
      words.push_back(loop.block == 1 ? name(loop.iterator) : text(name(loop.iterator), " by ", loop.block));
    }
    if (placement.mapping.time.empty()) placement.mapping.time.push_back(number(0));
    placement.words = text("for ", words.empty() ? "one stamp" : join(words, ", "), "; ", plan.words);
    if (plan.has_nest && chip_.cores == 1) placement.nest = std::move(nest);
    choose_cores(placement);
    return placement;
  }

 private:
  const Work& work_;
  const Product& product_;
  const Chip& chip_;
  Pace pace_;
  std::vector<int64_t> extent_, parts_;      // of one core; and how many of these there are
  int64_t cores_ = 1;                        // at work
  std::vector<std::vector<bool>> relevant_;  // [access][iterator]
  std::vector<double> footprint_;            // elements, per access, of one core
  std::vector<double> spread_;               // per access: how many of these all cores need
  std::vector<SpatialPlan> plans_;
  std::vector<size_t> batch_, main_, folds_, stream_;  // iterators of the plan under search
  std::vector<std::vector<size_t>> paths_;             // memories, per access
  std::array<std::array<double, kMaxLoops + 1>, kMaxAccesses> held_{};
  std::vector<int64_t> block_;
  Candidate best_;
  bool found_ = false;
};

}  // namespace

Placement place(const Work& work, const Product& product, const Chip& chip, const Pace& pace) {
  if (work.statement.accesses.size() > kMaxAccesses || chip.memories.size() > kMaxMemories ||
      work.statement.domain.extent.size() + 3 > kMaxLoops)
    fail(
        {.what = text("statement ", work.statement.name, " has too many iterators or accesses for the default mapping"),
         .needs =
             text("at most ", kMaxLoops - 3, " iterators, ", kMaxAccesses, " accesses, ", kMaxMemories, " memories"),
         .hint = "give a mapping"});
  if (chip.cores == 1) {
    Mapper mapper(work, product, chip, pace, work.statement.domain.extent);
    mapper.run();
    return mapper.build();
  }
  std::vector<std::pair<double, Placement>> found;
  for (const std::vector<int64_t>& block : ways_to_share(work, product, chip)) {
    Mapper mapper(work, product, chip, pace, block);
    const double score = mapper.run();
    found.emplace_back(score, mapper.build());
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  // The best whose stamps can be counted: a way to share may cut an axis where its tiles do not end.
  Statement bare = work.statement;
  bare.accesses.clear();
  for (const auto& [score, placement] : found)
    if (std::holds_alternative<Counts>(count(problem_at_pes(bare, placement.mapping, chip, placement.core))))
      return placement;
  Mapper mapper(work, product, chip, pace, work.statement.domain.extent);
  mapper.run();
  return mapper.build();
}

}  // namespace sator::dataflow
