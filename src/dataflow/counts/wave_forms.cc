#include "dataflow/counts/wave_forms.h"

#include <algorithm>
#include <array>

#include "dataflow/counts/boxes.h"
#include "dataflow/counts/nest_digits.h"

namespace sator::dataflow {

namespace {

// Positions of the digits that make a wave, behind those of the loops around it.
constexpr size_t kStep = 1 << 20, kRow = kStep + 1, kColumn = kStep + 2;
// The part of such a digit within which a tensor's coordinate does not change, behind it: kInner + kRow - kStep.
constexpr size_t kInner = kStep + 3;

bool in_wave(const Digit& digit) { return digit.position >= kStep; }

class WaveCounts {
 public:
  explicit WaveCounts(const Problem& problem)
      : p_(problem), domain_(problem.statement.domain), time_(problem.mapping.time), space_(problem.mapping.space) {}

  std::optional<Counts> run() {
    if (!fits_array() || !read_domain()) return {};
    for (size_t c = 0; c < 2; ++c)
      if (!read_side(c)) return {};
    for (size_t c = 0; c + 1 < time_.size(); ++c)
      if (!read_digit(time_[c], c)) return {};
    if (!read_digit(time_.back() - space_[0] - space_[1], kStep)) return {};
    for (size_t x = 0; x < rank(); ++x)
      if (!digits_[x].nested() || !waves_lie_inside(x)) return {};
    if (!ends_elsewhere() || !count_stamps()) return {};
    for (const Access& access : p_.statement.accesses)
      if (!count_tensor(access)) return {};
    return std::move(out_);
  }

 private:
  size_t rank() const { return domain_.extent.size(); }

  bool fits_array() const {
    const Domain& pes = p_.array.pes;
    const std::vector<Link>& wires = p_.array.interconnect;
    if (pes.rank() != 2 || space_.size() != 2 || time_.empty() || !pes.guards.empty() || wires.size() != 2)
      return false;
    auto shifts = [](const Link& wire, int64_t row, int64_t column) {
      return wire.free_variables == 0 && wire.guards.empty() && wire.source.size() == 2 &&
             wire.source[0] == variable(0) + row && wire.source[1] == variable(1) + column;
    };
    return pes.lower[0] == 0 && pes.lower[1] == 0 && shifts(wires[0], -1, 0) && shifts(wires[1], 0, -1);
  }

  bool read_domain() {
    const std::optional<int64_t> macs = read_extents(domain_, digits_);
    if (!macs) return false;
    out_.macs = *macs;
    return true;
  }

  bool read_side(size_t c) {
    const QuasiAffine& e = space_[c];
    if (e.is_constant()) return e.constant == 0;
    if (e.constant != 0 || e.terms.size() != 1) return false;
    const std::optional<Part> part = part_of(e.terms[0], 0, domain_);
    if (!part || part->offset != 0) return false;
    const int64_t values = ceil_div(std::min(domain_.extent[part->iterator], part->modulus), part->block);
    return values <= p_.array.pes.extent[c] && read_digit(e, c == 0 ? kRow : kColumn);
  }

  bool read_digit(const QuasiAffine& e, size_t position) {
    if (e.is_constant()) return true;
    if (e.terms.size() != 1 || e.terms[0].coefficient != 1) return false;
    const std::optional<Part> part = part_of(e.terms[0], e.constant, domain_);
    return part && digits_[part->iterator].add(
                       {.modulus = part->modulus, .block = part->block, .in_time = true, .position = position});
  }

  /// Whether the digits of the wave are the innermost that the iterator shows, that of t outside of the PEs'.
  bool waves_lie_inside(size_t x) const {
    const Digits& d = digits_[x];
    for (size_t i = 1; i < d.count; ++i)
      if (in_wave(d.at[i - 1]) && (!in_wave(d.at[i]) || d.at[i].position == kStep)) return false;
    return true;
  }

  /// The fewest values of digit `i` within any values of the coarser ones.
  static int64_t fewest(const Digits& d, size_t i, int64_t length, size_t from = 0) {
    const Digit& digit = d.at[from];
    length = std::min(length, digit.modulus);
    if (from == i) return ceil_div(length, digit.block);
    const int64_t rest = length % digit.block;
    int64_t least = INT64_MAX;
    if (length >= digit.block) least = fewest(d, i, digit.block, from + 1);
    if (rest > 0) least = std::min(least, fewest(d, i, rest, from + 1));
    return least;
  }

  /// Whether no wave ends at the first PE, where the next begins.
  bool ends_elsewhere() const {
    bool one_wave = true;
    for (size_t x = 0; x < rank(); ++x) one_wave &= waves_of(x) == 1;
    if (one_wave) return true;
    for (size_t x = 0; x < rank(); ++x)
      for (size_t i = 0; i < digits_[x].count; ++i)
        if (digits_[x].at[i].position > kStep && fewest(digits_[x], i, digits_[x].extent) > 1) return true;
    return false;
  }

  int64_t waves_of(size_t x) const {
    return digits_[x].distinct(digits_[x].extent, [](const Digit& digit) { return !in_wave(digit); });
  }

  /// Sum, over the waves of an iterator's own loops, of the last stamp that its digits reach.
  static int64_t last_stamps(const Digits& d, int64_t length, size_t i = 0) {
    if (length == 0) return 0;
    if (i == d.count) return 0;
    length = std::min(length, d.at[i].modulus);
    const int64_t block = d.at[i].block, whole = length / block, rest = length % block;
    if (in_wave(d.at[i])) {
      int64_t last = 0;
      if (whole > 0) last = whole - 1 + last_stamps(d, block, i + 1);
      if (rest > 0) last = std::max(last, whole + last_stamps(d, rest, i + 1));
      return last;
    }
    return (whole > 0 ? whole * last_stamps(d, block, i + 1) : 0) + last_stamps(d, rest, i + 1);
  }

  bool count_stamps() {
    Wide waves = 1, last = 0;
    out_.space = out_.spacetime = 1;
    for (size_t x = 0; x < rank(); ++x) {
      const Digits& d = digits_[x];
      // A PE's instances at a stamp are as many everywhere.
      if (d.count > 0 && d.extent > d.at[d.count - 1].block && d.extent % d.at[d.count - 1].block != 0) return false;
      for (size_t i = 0; i < d.count; ++i)
        if (i == 0 ? d.at[i].modulus < d.extent : d.at[i].modulus != d.at[i - 1].block) return false;
      out_.space *= d.distinct(d.extent, [](const Digit& digit) { return digit.position > kStep; });
      out_.spacetime *= d.distinct(d.extent, [](const Digit&) { return true; });
      const int64_t own = waves_of(x);
      last = last * own + waves * last_stamps(d, d.extent);
      waves *= own;
    }
    out_.pe_array = p_.array.pes.extent[0] * p_.array.pes.extent[1];
    if (waves + last >= Wide{1} << 61) return false;
    out_.time = static_cast<int64_t>(waves + last);
    const Wide work = static_cast<Wide>(out_.time) * (out_.macs / out_.spacetime);
    if (work >= Wide{1} << 62) return false;
    out_.work_cycles = static_cast<int64_t>(work);
    return true;
  }

  /// Tuples of an iterator's digits, those at positions that `zero` names being 0; each times the blocks of `grain` values
  /// in it, where there is a grain.
  template <class Zero>
  static int64_t tuples(const Digits& d, int64_t grain, const Zero& zero, int64_t length, size_t i = 0) {
    if (length == 0) return 0;
    if (i == d.count) return grain > 0 ? ceil_div(length, grain) : 1;
    const int64_t block = d.at[i].block, whole = length / block;
    if (zero(d.at[i].position)) return tuples(d, grain, zero, std::min(length, block), i + 1);
    return (whole > 0 ? whole * tuples(d, grain, zero, block, i + 1) : 0) +
           tuples(d, grain, zero, length % block, i + 1);
  }

  /// The digits with the one that a grain cuts as two: blocks of the grain, and values within one. Nothing where a grain
  /// does not begin where digits' blocks do.
  static std::optional<Digits> cut(const Digits& digits, int64_t grain) {
    Digits out;
    out.extent = digits.extent;
    for (size_t i = 0; i < digits.count; ++i) {
      Digit digit = digits.at[i];
      if (digit.block % grain != 0) {
        const bool begins = digit.modulus >= digits.extent || digit.modulus % grain == 0 || grain % digit.modulus == 0;
        if (grain % digit.block != 0 || !begins) return {};
        if (digit.modulus > grain && out.count + 1 < kMostDigits) {
          Digit outer = digit;
          outer.block = digit.modulus = grain;
          out.at[out.count++] = outer;
        } else if (digit.modulus > grain) {
          return {};
        }
        if (in_wave(digit)) digit.position += kInner - kStep;
      }
      if (out.count == kMostDigits) return {};
      out.at[out.count++] = digit;
    }
    return out;
  }

  bool count_tensor(const Access& access) {
    const std::optional<Grains> grains = grains_of(access, domain_);
    if (!grains) return false;
    const Grains& grain = *grains;
    std::array<std::optional<Digits>, kMostIterators> own;              // of iterators whose digits a grain cuts
    std::array<bool, 6> shared = {true, true, true, true, true, true};  // along t, r, c, and within grains there
    for (size_t x = 0; x < rank(); ++x) {
      if (grain[x] == 0) continue;
      for (size_t i = 0; i < digits_[x].count && !own[x]; ++i)
        if (digits_[x].at[i].block % grain[x] != 0) {
          own[x] = cut(digits_[x], grain[x]);
          if (!own[x]) return false;
        }
      const Digits& digits = own[x] ? *own[x] : digits_[x];
      for (size_t i = 0; i < digits.count; ++i)
        if (in_wave(digits.at[i]) && digits.at[i].position < kInner) shared[digits.at[i].position - kStep] = false;
    }
    auto all = [&](auto zero) {
      int64_t product = 1;
      for (size_t x = 0; x < rank(); ++x)
        product *= tuples(own[x] ? *own[x] : digits_[x], grain[x], zero, digits_[x].extent);
      return product;
    };
    auto is_step = [](size_t position) { return position == kStep || position == kInner; };
    TensorCounts counts{.tensor = access.tensor, .role = access.role, .total = out_.macs};
    counts.assigned = all([](size_t) { return false; });
    counts.unique = all([&](size_t position) { return position >= kStep && shared[position - kStep]; });
    counts.temporal_hits =
        counts.assigned - all([&](size_t position) { return is_step(position) && shared[position - kStep]; });
    counts.spatial_hits = counts.assigned - all([&](size_t position) {
                            return position > kStep && !is_step(position) && shared[position - kStep];
                          });
    counts.footprint = footprint_of(grain, domain_);
    out_.tensors.push_back(std::move(counts));
    return true;
  }

  const Problem& p_;
  const Domain& domain_;
  const Map& time_;
  const Map& space_;
  IteratorDigits digits_;
  Counts out_;
};

}  // namespace

std::optional<Counts> wave_counts(const Problem& problem) { return WaveCounts(problem).run(); }

}  // namespace sator::dataflow
