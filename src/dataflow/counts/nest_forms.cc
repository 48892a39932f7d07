#include "dataflow/counts/nest_forms.h"

#include <algorithm>
#include <array>

#include "dataflow/counts/boxes.h"
#include "dataflow/counts/nest_digits.h"

namespace sator::dataflow {

namespace {

constexpr size_t kMostParts = 12;

class NestCounts {
 public:
  NestCounts(const Domain& domain, const Map& time) : domain_(domain), time_(time) {}

  std::optional<Counts> run(const Problem& p) {
    const Domain& pes = p.array.pes;
    const bool tensors = !p.statement.accesses.empty();
    if (!pes.guards.empty() || (tensors && !p.array.interconnect.empty())) return {};
    if (p.mapping.space.size() != pes.extent.size() || !read_domain()) return {};
    out_.pe_array = 1;
    for (int64_t extent : pes.extent) out_.pe_array *= extent;
    bool one_pe = true;
    for (size_t c = 0; c < pes.extent.size(); ++c) {
      const QuasiAffine& e = p.mapping.space[c];
      one_pe &= e.is_constant();
      if (e.is_constant() ? !holds(pes, c, e.constant) : tensors || !read_space(pes, c, e)) return {};
    }
    if (!read_all_time(one_pe && !tensors)) return {};
    for (const Access& access : p.statement.accesses)
      if (!count_tensor(access)) return {};
    return std::move(out_);
  }

  std::optional<int64_t> stamps() {
    if (!read_domain() || !read_all_time(true)) return {};
    return out_.time;
  }

 private:
  bool read_domain() {
    const std::optional<int64_t> macs = read_extents(domain_, digits_);
    if (!macs) return false;
    out_.macs = *macs;
    return true;
  }

  static bool holds(const Domain& pes, size_t c, int64_t at) {
    return at >= pes.lower[c] && at - pes.lower[c] < pes.extent[c];
  }

  int64_t values_of(const Part& part) const {
    return ceil_div(std::min(domain_.extent[part.iterator], part.modulus), part.block);
  }

  /// The largest value of a sum of digits times positive factors, if it tells them apart (else, if `overlap` is allowed,
  /// if every value up to it occurs).
  std::optional<int64_t> reach_of(const QuasiAffine& e, bool overlap, std::array<Part, kMostParts>& parts) const {
    if (e.constant != 0 || e.terms.size() > kMostParts) return {};
    std::array<std::pair<int64_t, int64_t>, kMostParts> steps;  // factor, values
    for (size_t t = 0; t < e.terms.size(); ++t) {
      const std::optional<Part> part = part_of(e.terms[t], 0, domain_);
      if (!part || part->offset != 0 || e.terms[t].coefficient < 1) return {};
      for (size_t o = 0; overlap && o < t; ++o)
        if (parts[o].iterator == part->iterator) return {};  // not independent of each other
      parts[t] = *part;
      steps[t] = {e.terms[t].coefficient, values_of(*part)};
    }
    std::sort(steps.begin(), steps.begin() + static_cast<long>(e.terms.size()));
    Wide reach = 0;
    for (size_t t = 0; t < e.terms.size(); ++t) {
      if (overlap ? steps[t].first > reach + 1 : steps[t].first <= reach) return {};
      reach += static_cast<Wide>(steps[t].first) * (steps[t].second - 1);
    }
    if (reach >= Wide{1} << 61) return {};
    return static_cast<int64_t>(reach);
  }

  bool read_space(const Domain& pes, size_t c, const QuasiAffine& e) {
    std::array<Part, kMostParts> parts;
    const std::optional<int64_t> reach = reach_of(e, false, parts);
    if (!reach || !holds(pes, c, 0) || !holds(pes, c, *reach)) return false;
    for (size_t t = 0; t < e.terms.size(); ++t)
      if (!digits_[parts[t].iterator].add({.modulus = parts[t].modulus, .block = parts[t].block, .in_space = true}))
        return false;
    return true;
  }

  bool read_time(const QuasiAffine& e, size_t c) {
    if (e.is_constant()) return true;
    if (e.terms.size() != 1 || e.terms[0].coefficient != 1) return false;
    const std::optional<Part> part = part_of(e.terms[0], e.constant, domain_);
    return part && digits_[part->iterator].add(
                       {.modulus = part->modulus, .block = part->block, .in_time = true, .position = c});
  }

  /// Of one PE, the only coordinate may be a sum: operands on their way across an array.
  bool read_all_time(bool or_sum) {
    if (or_sum && time_.size() == 1 && time_[0].terms.size() > 1) return contiguous(time_[0]);
    for (size_t c = 0; c < time_.size(); ++c)
      if (!read_time(time_[c], c)) return false;
    for (size_t x = 0; x < domain_.extent.size(); ++x)
      if (!digits_[x].nested()) return false;
    count_stamps();
    return true;
  }

  bool contiguous(const QuasiAffine& e) {
    std::array<Part, kMostParts> parts;
    const std::optional<int64_t> reach = reach_of(e, true, parts);
    if (!reach) return false;
    out_.space = 1;
    out_.time = out_.spacetime = *reach + 1;
    out_.work_cycles = out_.macs;
    return true;
  }

  void count_stamps() {
    out_.space = out_.time = out_.spacetime = 1;
    int64_t work = 1;
    for (size_t x = 0; x < domain_.extent.size(); ++x) {
      const Digits& d = digits_[x];
      out_.space *= d.distinct(d.extent, [](const Digit& digit) { return digit.in_space; });
      out_.time *= d.distinct(d.extent, [](const Digit& digit) { return digit.in_time; });
      out_.spacetime *= d.distinct(d.extent, [](const Digit&) { return true; });
      work *= d.at_first_pe(d.extent);
    }
    out_.work_cycles = work;
  }

  /// All digits are time's here: there is one PE.
  bool count_tensor(const Access& access) {
    const std::optional<Grains> grains = grains_of(access, domain_);
    if (!grains) return false;
    const Grains& grain = *grains;
    for (size_t x = 0; x < domain_.extent.size(); ++x)
      if (grain[x] > 0 && !digits_[x].cuts_no(grain[x])) return false;
    TensorCounts counts{.tensor = access.tensor, .role = access.role, .total = out_.macs};
    counts.assigned = at_hand(grain, SIZE_MAX);
    counts.footprint = footprint_of(grain, domain_);
    for (size_t c = 0; c < time_.size(); ++c) counts.temporal_hits += at_hand(grain, c);
    counts.unique = counts.assigned - counts.temporal_hits;
    out_.tensors.push_back(std::move(counts));
    return true;
  }

  /// Pairs of a stamp and an element that it needs, where the step to the stamp turns loop `turned` (all loops inside of it
  /// begin anew) and leaves the element; SIZE_MAX: all pairs.
  int64_t at_hand(const Grains& grain, size_t turned) const {
    int64_t pairs = 1;
    bool turns = turned == SIZE_MAX;
    for (size_t x = 0; x < domain_.extent.size() && pairs > 0; ++x) {
      const Digits& d = digits_[x];
      bool own = false;
      for (size_t i = 0; i < d.count; ++i) own |= d.at[i].position == turned;
      auto before = [&](const Digit& digit) { return digit.position < turned; };
      if (grain[x] > 0) {
        pairs *= own ? 0 : d.met(d.extent, grain[x], turned);
      } else if (own) {
        turns = true;
        pairs *= d.distinct(d.extent, [&](const Digit& digit) { return digit.position <= turned; }) -
                 d.distinct(d.extent, before);
      } else {
        pairs *= d.distinct(d.extent, before);
      }
    }
    return turns ? pairs : 0;
  }

  const Domain& domain_;
  const Map& time_;
  IteratorDigits digits_;
  Counts out_;
};

}  // namespace

std::optional<Counts> nest_counts(const Problem& problem) {
  return NestCounts(problem.statement.domain, problem.mapping.time).run(problem);
}

std::optional<int64_t> nest_stamps(const Domain& domain, const Map& map) { return NestCounts(domain, map).stamps(); }

}  // namespace sator::dataflow
