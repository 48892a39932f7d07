#include "dataflow/programs/pipeline.h"

#include <algorithm>

#include "base/error.h"

namespace sator::dataflow {

namespace {

bool mentions(const Map& map, size_t iterator) {
  return std::any_of(
      map.begin(), map.end(), [&](const QuasiAffine& e) { return mentions(e, static_cast<int>(iterator)); });
}

}  // namespace

const Access& write_of(const Work& work) {
  for (const Access& access : work.statement.accesses)
    if (access.role == Role::write) return access;
  internal_error("a statement that writes nothing");
}

namespace {

/// Iterators that run over more than one value.
std::vector<int> running(const Work& work) {
  std::vector<int> out;
  for (size_t x = 0; x < work.statement.domain.extent.size(); ++x)
    if (work.statement.domain.extent[x] > 1) out.push_back(static_cast<int>(x));
  return out;
}

bool same_shape(const Work& a, const Work& b) {
  const std::vector<int> x = running(a), y = running(b);
  const Domain &da = a.statement.domain, &db = b.statement.domain;
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [&](int i, int j) {
    return da.extent[static_cast<size_t>(i)] == db.extent[static_cast<size_t>(j)];
  });
}

/// The map over the running iterators, numbered from 0 and starting there.
Map over_running(const Work& work, const Map& map) {
  const Domain& domain = work.statement.domain;
  std::vector<QuasiAffine> numbers;
  int next = 0;
  for (size_t x = 0; x < domain.extent.size(); ++x)
    numbers.push_back(domain.extent[x] > 1 ? variable(next++) + domain.lower[x] : number(domain.lower[x]));
  Map out;
  for (const QuasiAffine& e : map) out.push_back(substitute(e, numbers));
  return out;
}

bool reduces(const Work& work) {
  const std::vector<int> all = running(work);
  return !std::all_of(
      all.begin(), all.end(), [&](int x) { return mentions(write_of(work).references[0], static_cast<size_t>(x)); });
}

}  // namespace

bool in_step(const Work& a, const Map& at_a, const Work& b, const Map& at_b) {
  return same_shape(a, b) && over_running(a, at_a) == over_running(b, at_b);
}

std::vector<size_t> Pipeline::passes() const {
  std::vector<size_t> pass_of(works_.size(), 0);
  size_t first = works_.size(), pass = 0;  // of the present pass
  bool ended = true;
  for (size_t s = 0; s < works_.size(); ++s) {
    if (gone_[s]) continue;
    const Work& work = works_[s];
    bool joins = !ended && !work.multiply_accumulate && same_shape(works_[first], work);
    for (const Access& access : work.statement.accesses) {
      const size_t maker = writer_of(access.tensor, s);
      if (!joins || access.role != Role::read || maker < first || maker >= works_.size()) continue;
      for (const Map& at : access.references)
        joins &= in_step(works_[maker], write_of(works_[maker]).references[0], work, at);
    }
    if (!joins) first = s, ++pass;
    pass_of[s] = pass;
    ended = work.multiply_accumulate || reduces(work);
  }
  return pass_of;
}

bool Pipeline::stays_in_registers(size_t made_by, const std::vector<size_t>& pass_of) const {
  const Work& maker = works_[made_by];
  const Access& made = write_of(maker);
  if (!maker.operands[static_cast<size_t>(&made - maker.statement.accesses.data())].internal || reduces(maker))
    return false;
  for (size_t s = made_by + 1; s < works_.size(); ++s)
    for (const Access& access : works_[s].statement.accesses)
      if (!gone_[s] && access.role == Role::read && access.tensor == made.tensor && pass_of[s] != pass_of[made_by])
        return false;
  return true;
}

size_t Pipeline::writer_of(const std::string& tensor, size_t before) const {
  for (size_t s = before; s-- > 0;)
    if (!gone_[s] && write_of(works_[s]).tensor == tensor) return s;
  return works_.size();
}

std::vector<bool> Pipeline::flows_on(const std::string& tensor, size_t since, size_t rank) const {
  auto known = flows_.find({tensor, since});
  if (known == flows_.end()) known = flows_.emplace(std::pair(tensor, since), find_flows(tensor, since, rank)).first;
  return known->second;
}

std::vector<bool> Pipeline::find_flows(const std::string& tensor, size_t since, size_t rank) const {
  std::vector<bool> flows(rank, true);
  for (size_t s = since; s < works_.size(); ++s) {
    if (gone_[s]) continue;
    const Work& work = works_[s];
    const Access& write = write_of(work);
    for (const Access& access : work.statement.accesses) {
      if (access.role != Role::read || access.tensor != tensor || write.tensor == tensor) continue;
      const Map& made = write.references[0];
      const size_t own = static_cast<size_t>(&write - work.statement.accesses.data());
      const std::vector<bool> onward = work.operands[own].internal ? flows_on(write.tensor, s + 1, made.size())
                                                                   : std::vector<bool>(made.size(), true);
      for (const Map& at : access.references)
        for (size_t p = 0; p < std::min(rank, at.size()); ++p)
          for (size_t x = 0; x < work.statement.domain.extent.size(); ++x) {
            if (work.statement.domain.extent[x] < 2 || !dataflow::mentions(at[p], static_cast<int>(x))) continue;
            if (!mentions(made, x)) flows[p] = false;
            for (size_t q = 0; q < made.size(); ++q)
              if (!onward[q] && dataflow::mentions(made[q], static_cast<int>(x))) flows[p] = false;
          }
    }
  }
  return flows;
}

std::vector<bool> Pipeline::made_apart(size_t made_by) const {
  auto known = apart_.find(made_by);
  if (known == apart_.end()) known = apart_.emplace(made_by, find_made_apart(made_by)).first;
  return known->second;
}

std::vector<bool> Pipeline::find_made_apart(size_t made_by) const {
  const Work& work = works_[made_by];
  const Map& made = write_of(work).references[0];
  std::vector<bool> apart(made.size(), true);
  for (size_t a = 0; a < work.operands.size(); ++a) {
    const Access& access = work.statement.accesses[a];
    if (access.role != Role::read || !work.operands[a].internal || work.operands[a].on_the_way) continue;
    const Map& at = access.references[0];
    const size_t maker = writer_of(access.tensor, made_by);
    const bool by_vector_unit = maker < works_.size() && !works_[maker].multiply_accumulate;
    const std::vector<bool> before = by_vector_unit ? made_apart(maker) : std::vector<bool>(at.size(), true);
    for (size_t p = 0; p < made.size(); ++p)
      for (size_t x = 0; x < work.statement.domain.extent.size(); ++x) {
        if (work.statement.domain.extent[x] < 2 || !dataflow::mentions(made[p], static_cast<int>(x))) continue;
        if (!mentions(at, x)) apart[p] = false;
        for (size_t q = 0; q < std::min(at.size(), before.size()); ++q)
          if (!before[q] && dataflow::mentions(at[q], static_cast<int>(x))) apart[p] = false;
      }
  }
  return apart;
}

int64_t Pipeline::parts_of(const std::string& tensor) const {
  int64_t parts = 1;
  for (size_t s = 0; s < works_.size(); ++s) {
    if (gone_[s]) continue;
    const Work& work = works_[s];
    for (const Access& access : work.statement.accesses) {
      if (access.tensor != tensor || access.role != Role::read) continue;
      const Map& at = access.references[0];
      const std::vector<bool> flows = flows_on(tensor, 0, at.size());
      int64_t slices = 1;
      for (size_t x = 0; x < work.statement.domain.extent.size(); ++x) {
        bool sliced = false;
        for (size_t p = 0; p < at.size(); ++p) sliced |= flows[p] && dataflow::mentions(at[p], static_cast<int>(x));
        if (sliced && slices < (int64_t{1} << 40)) slices *= std::max<int64_t>(1, work.statement.domain.extent[x]);
      }
      parts = std::max(parts, slices);
    }
  }
  return parts;
}

}  // namespace sator::dataflow
