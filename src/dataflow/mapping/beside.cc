#include "dataflow/mapping/beside.h"

#include <algorithm>
#include <map>

#include "dataflow/mapping/nest_time.h"

namespace sator::dataflow {

size_t Surroundings::memory_of(const std::string& tensor, size_t statement) const {
  const size_t maker = pipeline.writer_of(tensor, statement);
  const bool output = maker < statement && merged.products[maker];
  size_t near = chip.memories.size() - 1;
  while (near > 0 && !(output ? chip.memories[near].holds_outputs : chip.memories[near].holds_activations)) --near;
  return near;
}

bool Surroundings::at_hand(size_t statement, const Access& access) const {
  for (size_t s = 0; s < statement; ++s) {
    if (!on_vector_unit(s) || pass_of[s] != pass_of[statement]) continue;
    for (const Access& earlier : merged.works[s].statement.accesses)
      if (earlier.tensor == access.tensor && earlier.references.size() == 1 && access.references.size() == 1 &&
          in_step(merged.works[s], earlier.references[0], merged.works[statement], access.references[0]))
        return true;
  }
  return false;
}

namespace {

/// Iterators of a product, a bit each.
using Bits = uint64_t;

class Stands {
 public:
  Stands(const Surroundings& around, size_t product, const std::vector<std::vector<bool>>& in_parts,
         const std::set<std::string>& outside)
      : around_(around),
        product_(product),
        work_(around.merged.works[product]),
        of_(*around.merged.products[product]),
        in_parts_(in_parts),
        outside_(outside) {}

  std::vector<Beside::Standing> run() {
    for (size_t a = 0; a < work_.operands.size(); ++a) add_access(a);
    const Access& output = work_.statement.accesses[of_.output];
    chosen_by_[output.tensor] = {};
    for (const QuasiAffine& e : output.references[0]) chosen_by_[output.tensor].push_back(iterators_of(e, work_));
    for (size_t s = product_ + 1; s < around_.merged.works.size(); ++s)
      if (around_.on_vector_unit(s)) follow(s);
    if (found_.size() > kMostStanding) found_.resize(kMostStanding);
    return std::move(found_);
  }

 private:
  static Bits iterators_of(const QuasiAffine& e, const Work& work) {
    Bits bits = 0;
    for (size_t x = 0; x < work.statement.domain.extent.size(); ++x)
      if (work.statement.domain.extent[x] > 1 && mentions(e, static_cast<int>(x))) bits |= Bits{1} << x;
    return bits;
  }

  /// Statements that read the tensor from a memory.
  std::vector<size_t> readers_of(const std::string& tensor) const {
    std::vector<size_t> readers;
    for (size_t s = 0; s < around_.merged.works.size(); ++s) {
      if (around_.merged.gone[s] || s == product_) continue;
      for (const Access& access : around_.merged.works[s].statement.accesses)
        if (access.role == Role::read && access.tensor == tensor &&
            !(around_.on_vector_unit(s) && around_.at_hand(s, access)))
          readers.push_back(s);
    }
    return readers;
  }
  int64_t reads_of_vector_unit(const std::string& tensor) const {
    const std::vector<size_t> readers = readers_of(tensor);
    return std::count_if(readers.begin(), readers.end(), [&](size_t s) { return around_.on_vector_unit(s); });
  }

  /// Whether what the product makes is used up as it comes, element by element.
  bool used_at_once(const std::string& tensor) const {
    const std::vector<size_t> readers = readers_of(tensor);
    return std::all_of(readers.begin(), readers.end(), [&](size_t s) {
      return around_.on_vector_unit(s) && around_.pass_of[s] == around_.pass_of[readers[0]];
    });
  }

  void add_access(size_t a) {
    const Access& access = work_.statement.accesses[a];
    const Operand& operand = work_.operands[a];
    const bool output = a == of_.output;
    if (!operand.internal || operand.on_the_way || outside_.contains(access.tensor)) return;
    if (!output && access.tensor == work_.statement.accesses[of_.output].tensor) return;  // the sum read back
    const std::vector<size_t> path = memory_path(work_, of_, weight_of(work_, of_), a, around_.chip);
    if (path.empty()) return;
    Beside::Standing standing{
        .tensor = access.tensor, .memory = path[0], .bits = static_cast<double>(operand.bits), .access = a};
    for (const Map& reference : access.references)
      for (const QuasiAffine& e : reference) standing.indexes |= iterators_of(e, work_);
    const bool at_once = output && used_at_once(access.tensor);
    for (size_t x = 0; x < in_parts_[a].size(); ++x)
      if ((standing.indexes >> x & 1) && (at_once || in_parts_[a][x])) standing.in_parts |= Bits{1} << x;
    const size_t maker = around_.pipeline.writer_of(access.tensor, product_);
    standing.beside_vector_unit = around_.memory_of(access.tensor, output ? product_ + 1 : product_);
    standing.made_by_vector_unit = !output && maker < product_ && around_.on_vector_unit(maker);
    standing.after = output;
    standing.reads = reads_of_vector_unit(access.tensor);
    found_.push_back(std::move(standing));
  }

  /// What statement s of the vector unit makes of what the product makes.
  void follow(size_t s) {
    const Work& work = around_.merged.works[s];
    const std::vector<int64_t>& extent = work.statement.domain.extent;
    std::vector<Bits> of_iterator(extent.size(), 0);
    bool follows = false;
    for (const Access& access : work.statement.accesses) {
      const auto chosen = chosen_by_.find(access.tensor);
      if (access.role != Role::read || chosen == chosen_by_.end()) continue;
      follows = true;
      for (const Map& at : access.references)
        for (size_t p = 0; p < std::min(at.size(), chosen->second.size()); ++p)
          for (size_t x = 0; x < extent.size(); ++x)
            if (extent[x] > 1 && mentions(at[p], static_cast<int>(x))) of_iterator[x] |= chosen->second[p];
    }
    if (!follows) return;
    const Access& write = write_of(work);
    const Operand& operand = work.operands[static_cast<size_t>(&write - work.statement.accesses.data())];
    Beside::Standing standing{.tensor = write.tensor,
                              .memory = around_.memory_of(write.tensor, s),
                              .bits = static_cast<double>(operand.bits),
                              .after = true};
    std::vector<Bits> chosen;
    Bits written = 0;  // iterators of this statement
    for (const QuasiAffine& e : write.references[0]) {
      Bits bits = 0;
      for (size_t x = 0; x < extent.size(); ++x) {
        if (extent[x] < 2 || !mentions(e, static_cast<int>(x))) continue;
        bits |= of_iterator[x];
        if (of_iterator[x] == 0 && !(written >> x & 1)) standing.others *= static_cast<double>(extent[x]);
        written |= Bits{1} << x;
      }
      chosen.push_back(bits);
      standing.indexes |= bits;
    }
    for (size_t x = 0; x < extent.size(); ++x)
      if (of_iterator[x] != 0 && !(written >> x & 1)) standing.running = true;
    standing.in_parts = standing.indexes;
    if (operand.internal) {
      const std::vector<bool> flows = around_.pipeline.flows_on(write.tensor, s + 1, chosen.size());
      for (size_t q = 0; q < chosen.size(); ++q)
        if (!flows[q]) standing.in_parts &= ~chosen[q];
    }
    const bool stays = operand.internal ? !around_.pipeline.stays_in_registers(s, around_.pass_of) : standing.running;
    if (chosen_by_.emplace(write.tensor, std::move(chosen)).second && stays && standing.memory > 0 &&
        !outside_.contains(write.tensor)) {
      standing.beside_vector_unit = standing.memory;
      standing.made_by_vector_unit = true;
      standing.reads = reads_of_vector_unit(write.tensor);
      found_.push_back(std::move(standing));
    }
  }

  const Surroundings& around_;
  const size_t product_;
  const Work& work_;
  const Product& of_;
  const std::vector<std::vector<bool>>& in_parts_;
  const std::set<std::string>& outside_;
  /// Per tensor that comes of the product, and its coordinate: the product's iterators that choose it.
  std::map<std::string, std::vector<Bits>> chosen_by_;
  std::vector<Beside::Standing> found_;
};

}  // namespace

std::vector<Beside::Standing> standing_beside(const Surroundings& around, size_t product,
                                              const std::vector<std::vector<bool>>& in_parts,
                                              const std::set<std::string>& outside) {
  return Stands(around, product, in_parts, outside).run();
}

}  // namespace sator::dataflow
