#include "dataflow/pipeline.h"

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

size_t Pipeline::writer_of(const std::string& tensor, size_t before) const {
  for (size_t s = before; s-- > 0;)
    if (!gone_[s] && write_of(works_[s]).tensor == tensor) return s;
  return works_.size();
}

std::vector<bool> Pipeline::flows_on(const std::string& tensor, size_t since, size_t rank) const {
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
