#include "formats/timeloop/of_product.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "base/text.h"

namespace sator::formats::timeloop {

using namespace dataflow;

namespace {

Reason cannot(std::string what, std::string needs, std::string hint) {
  return {.what = std::move(what), .needs = std::move(needs), .hint = std::move(hint)};
}

/// Letters, digits and underscores, as Timeloop's names are.
std::string name_of(const std::string& tensor) {
  std::string name;
  for (char c : tensor) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

class Writer {
 public:
  Writer(const StatementCost& product, const Chip& chip) : s_(product), chip_(chip) {}

  std::variant<Input, Reason> write() {
    if (!s_.placement || !s_.placement->nest)
      return cannot(text("the mapping of ", s_.name, " has no loops of its own"),
                    "a mapping that the engine chose",
                    "TENET's files state it");
    if (!s_.placement->held_by_access.empty())
      return cannot("tensors have tiles of their own in a memory",
                    "tiles that all tensors of a memory share",
                    "Timeloop has one tile per level");
    if (!s_.work.statement.domain.guards.empty())
      return cannot(text("the domain of ", s_.name, " has conditions"), "a box of loops", "Timeloop has no others");
    state_problem();
    if (why_not_) return *why_not_;
    state_levels();
    state_loops();
    if (why_not_) return *why_not_;
    return std::move(out_);
  }

 private:
  struct Chain {
    int64_t block = 1;  // consecutive values of the loops that are still to come
    int64_t rest = 1;   // of them, where all loops around are at their last pass
  };

  void state_problem() {
    const Statement& statement = s_.work.statement;
    Workload& w = out_.workload;
    w.name = name_of(statement.name);
    for (const std::string& name : statement.domain.names) {
      std::string upper = name_of(name);
      for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      w.dimensions.push_back(upper);
    }
    w.bounds = statement.domain.extent;
    const std::string& output = statement.accesses[s_.product->output].tensor;
    for (size_t a = 0; a < statement.accesses.size(); ++a) {
      const Access& access = statement.accesses[a];
      const bool writes = a == s_.product->output;
      if (s_.work.operands[a].on_the_way || (!writes && access.tensor == output)) continue;
      DataSpace space{.name = name_of(access.tensor), .read_write = writes, .ranks = {}};
      if (access.references.size() != 1) {
        why_not_ = cannot(text(access.tensor, " has several references"), "one index per tensor", "none");
        return;
      }
      for (const QuasiAffine& e : access.references[0]) add_rank(e, access.tensor, space);
      if (space.ranks.empty()) continue;
      accesses_.push_back(a);
      w.spaces.push_back(std::move(space));
    }
  }

  /// A coordinate that no loop moves is left out, and so is where it begins: neither changes what moves.
  void add_rank(const QuasiAffine& e, const std::string& tensor, DataSpace& space) {
    std::vector<ProjectionTerm> rank;
    for (const Term& t : e.terms) {
      if (t.division || t.coefficient != 1)
        why_not_ = cannot(text("an index of ", tensor, " is no sum of loops"),
                          "indices that are sums of loops",
                          "scales of groups lie at floor(k / group), which Timeloop cannot say");
      rank.push_back({.dimension = t.variable});
    }
    if (!rank.empty()) space.ranks.push_back(std::move(rank));
  }

  SpaceSet kept_in(size_t memory) const {
    SpaceSet set = 0;
    for (size_t s = 0; s < accesses_.size(); ++s) {
      const std::vector<size_t> path = memory_path(s_.work, *s_.product, weight(), accesses_[s], chip_);
      if (memory == 0 || std::find(path.begin(), path.end(), memory) != path.end()) set |= SpaceSet{1} << s;
    }
    return set;
  }
  size_t weight() const { return s_.placement->weight.value_or(weight_of(s_.work, *s_.product)); }

  /// One level per memory, or several where its loops name a dimension twice; the outermost first until the end.
  void state_levels() {
    const rules::ArrayNest& nest = *s_.placement->nest;
    const SpaceSet all = (SpaceSet{1} << out_.workload.spaces.size()) - 1;
    // Memories side by side (of weights, of inputs) stand in the order of the loops around what they hold.
    for (size_t m = 0; m < chip_.memories.size(); ++m) order_.push_back(m);
    std::stable_sort(
        order_.begin(), order_.end(), [&](size_t a, size_t b) { return nest.held_since[a] < nest.held_since[b]; });
    if (!std::is_sorted(order_.begin(), order_.end(), [&](size_t a, size_t b) {
          return chip_.memories[a].per_core < chip_.memories[b].per_core;
        }))
      why_not_ = cannot("a memory of one core holds tiles for longer than one that cores share",
                        "levels that lie inside of each other",
                        "give --tile");
    level_of_turn_.resize(nest.time.size());
    for (size_t m : order_) {
      std::set<size_t> seen;
      add_level(chip_.memories[m].name, kept_in(m));
      for (size_t t = 0; t < nest.time.size(); ++t) {
        if (memory_around(t) != m) continue;
        if (!seen.insert(nest.time[t].loop).second) {
          add_level(text(chip_.memories[m].name, "_", ++extra_), 0);
          seen = {nest.time[t].loop};
        }
        level_of_turn_[t] = names_.size() - 1;
      }
      last_level_.push_back(names_.size() - 1);
    }
    // Cores and PEs are loops of their own.
    if (!nest.cores.empty() && !chip_.memories.back().per_core) add_level("array", 0);
    add_level("registers", all);
  }

  void add_level(std::string name, SpaceSet keep) {
    names_.push_back(std::move(name));
    LevelMapping level;
    level.keep = keep;
    loops_.push_back(std::move(level));
  }

  /// The memory whose tile the turn runs over: the innermost that holds the same during it.
  size_t memory_around(size_t turn) const {
    const std::vector<int64_t>& since = s_.placement->nest->held_since;
    size_t around = order_.front();
    for (size_t m : order_)
      if (since[m] <= static_cast<int64_t>(turn)) around = m;
    return around;
  }

  /// Adds a loop over blocks of `block` values of dimension d.
  Loop loop_over(size_t d, int64_t block) {
    Chain& c = chains_[d];
    if (c.block % block != 0 && c.block != out_.workload.bounds[d])
      why_not_ = cannot(text("tiles of ", c.block, " along ", out_.workload.dimensions[d], " have tiles of ", block),
                        "tiles that divide those around them",
                        "a last tile of Timeloop is smaller in the whole problem, not in each tile: give --tile");
    Loop loop{.dimension = static_cast<int>(d), .bound = ceil_div(c.block, block)};
    loop.last = ceil_div(c.rest, block);
    c.rest -= (loop.last - 1) * block;
    if (loop.last == loop.bound) loop.last = 0;
    c.block = block;
    return loop;
  }

  static void push(std::vector<Loop>& loops, const Loop& loop) {
    if (loop.bound > 1) loops.push_back(loop);
  }

  void state_loops() {
    const rules::ArrayNest& nest = *s_.placement->nest;
    for (int64_t extent : out_.workload.bounds) chains_.push_back({extent, extent});
    std::vector<int64_t> covered(chains_.size(), 1);
    for (const auto& sides : {nest.rows, nest.columns})
      for (const rules::ArrayNest::Side& side : sides) covered[side.loop] *= side.values * side.at_once;
    for (const rules::ArrayNest::Side& side : nest.at_once) covered[side.loop] *= side.at_once;

    // Cores take their blocks inside of the innermost memory that they share.
    const size_t shared = shared_memories() - 1;
    int64_t cores = 1;
    for (const rules::ArrayNest::Share& share : nest.cores) {
      const Chain& c = chains_[share.loop];
      if (share.parts > 1 && share.parts * share.block != c.block) {
        why_not_ = cannot(text(out_.workload.dimensions[share.loop],
                               " of ",
                               c.block,
                               " is shared by cores in blocks of ",
                               share.block,
                               ", the last of which is smaller"),
                          "equal shares",
                          "take an extent that the cores divide");
        return;
      }
      push(loops_[last_level_[shared]].spatial, loop_over(share.loop, share.block));
      cores *= share.parts;
    }
    for (size_t t = 0; t < nest.time.size(); ++t)
      push(loops_[level_of_turn_[t]].temporal,
           loop_over(nest.time[t].loop, std::max(nest.time[t].block, covered[nest.time[t].loop])));
    LevelMapping& array = loops_[loops_.size() - 2];
    for (const auto* sides : {&nest.rows, &nest.columns})
      for (const rules::ArrayNest::Side& side : *sides) {
        covered[side.loop] /= side.values;
        Loop loop = loop_over(side.loop, covered[side.loop]);
        loop.on_y = sides == &nest.rows;
        push(array.spatial, loop);
      }
    // What one PE takes at a stamp it takes one after the other here.
    for (size_t d = 0; d < chains_.size(); ++d) push(loops_.back().temporal, loop_over(d, 1));
    for (const LevelMapping& level : loops_) {
      std::set<int> seen;
      for (const Loop& loop : level.spatial)
        if (!seen.insert(loop.dimension).second)
          why_not_ = cannot(text(out_.workload.dimensions[loop.dimension], " lies along both axes of the array"),
                            "one axis per loop",
                            "Timeloop has one spatial factor per dimension and level");
    }
    finish(cores);
  }

  void finish(int64_t cores) {
    for (size_t l = names_.size(); l-- > 0;) {
      LevelMapping& level = loops_[l];
      std::reverse(level.temporal.begin(), level.temporal.end());
      // Loops along the X axis stand before those along Y.
      std::stable_sort(
          level.spatial.begin(), level.spatial.end(), [](const Loop& a, const Loop& b) { return a.on_y < b.on_y; });
      out_.mapping.levels.push_back(level);
      StorageLevel storage{.name = names_[l]};
      const bool registers = l + 1 == names_.size();
      if (registers) {
        storage.mesh_x = chip_.columns * cores, storage.mesh_y = chip_.rows;
      } else if (l > last_level_[shared_memories() - 1]) {
        storage.mesh_x = cores;
      }
      storage.instances = storage.mesh_x * storage.mesh_y;
      storage.word_bits = widest(level.keep);
      out_.architecture.levels.push_back(std::move(storage));
    }
    const StorageLevel& pes = out_.architecture.levels.front();
    out_.architecture.compute = {
        .name = "mac", .instances = pes.instances, .mesh_x = pes.mesh_x, .mesh_y = pes.mesh_y, .energy_pj = {}};
  }

  size_t shared_memories() const {
    return static_cast<size_t>(
        std::count_if(chip_.memories.begin(), chip_.memories.end(), [](const Memory& m) { return !m.per_core; }));
  }

  int64_t widest(SpaceSet keep) const {
    int64_t bits = 8;
    for (size_t s = 0; s < accesses_.size(); ++s)
      if (keep >> s & 1) bits = std::max<int64_t>(bits, s_.work.operands[accesses_[s]].bits);
    return bits;
  }

  const StatementCost& s_;
  const Chip& chip_;
  Input out_;
  std::optional<Reason> why_not_;
  std::vector<size_t> accesses_;  // per data space
  std::vector<std::string> names_;
  std::vector<LevelMapping> loops_;  // as names_: the outermost first, and so are the loops until the end
  std::vector<size_t> order_;        // of the memories
  std::vector<size_t> level_of_turn_, last_level_;  // the latter in that order
  std::vector<Chain> chains_;
  int extra_ = 0;
};

}  // namespace

std::variant<Input, Reason> input_of(const StatementCost& product, const Chip& chip) {
  return Writer(product, chip).write();
}

}  // namespace sator::formats::timeloop
