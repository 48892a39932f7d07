#include "dataflow/counts/counts.h"

#include <map>

#include "base/text.h"
#include "dataflow/counts/digits.h"
#include "dataflow/counts/enumerate.h"
#include "dataflow/counts/image.h"
#include "dataflow/counts/nest_forms.h"
#include "dataflow/counts/stamps.h"
#include "dataflow/counts/wave_forms.h"

namespace sator::dataflow {

namespace {

constexpr size_t kItemLimit = 1 << 14;  // pieces x references x listed windows

/// Offsets lo, lo + step, ... of which there are `count`.
struct Progression {
  int64_t lo = 0, step = 1, count = 1;
};

/// One piece of the domain seen by one access: element = base + F . visible digits + window.
/// The window is what the hidden digits, several instances at one stamp, add per row.
struct Item {
  size_t piece;
  std::vector<Progression> window;  // per row; base included
  bool operator==(const Item& o) const {
    auto same = [](const Progression& a, const Progression& b) {
      return a.lo == b.lo && a.step == b.step && a.count == b.count;
    };
    return piece == o.piece && std::equal(window.begin(), window.end(), o.window.begin(), o.window.end(), same);
  }
};

/// Per piece: the shifts that leave it.
using ShiftsByPiece = std::vector<std::vector<const Shift*>>;

ShiftsByPiece shifts_by_piece(const StampForm& stamps) {
  ShiftsByPiece leaving(stamps.pieces.size());
  for (const Shift& s : stamps.shifts) leaving[s.from].push_back(&s);
  return leaving;
}

class AccessCounter {
 public:
  AccessCounter(const DigitForm& digits, const StampForm& stamps, const ShiftsByPiece& leaving)
      : digits_(digits), stamps_(stamps), leaving_(leaving) {}

  /// rows[first + ref * rank + r] is coordinate r of reference ref.
  std::optional<Reason> count(const Access& access, size_t first, TensorCounts& out) {
    const size_t rank = access.references[0].size();
    if (auto reason = gather(access, first, rank)) return reason;
    Wide total = 0;
    for (size_t p = 0; p < stamps_.pieces.size(); ++p) total += whole_volume(p) * distinct_[p];
    auto footprint = image_size(rows_, patches_);
    if (auto* reason = std::get_if<Reason>(&footprint)) return *reason;
    if (auto reason = list_windows()) return reason;
    Wide assigned = 0, unique = 0, temporal = 0, spatial = 0;
    cover(assigned, unique, temporal, spatial);
    bool fits = true;
    auto store = [&](Wide v, int64_t& to) {
      auto n = narrow(v);
      to = n.value_or(0);
      fits &= n.has_value();
    };
    store(total, out.total);
    store(assigned, out.assigned);
    store(unique, out.unique);
    store(temporal, out.temporal_hits);
    store(spatial, out.spatial_hits);
    store(std::get<Wide>(footprint), out.footprint);
    if (!fits)
      return Reason{.what = text("a count of tensor ", access.tensor, " does not fit 64 bits"),
                    .needs = "counts below 2^63",
                    .hint = "use smaller extents"};
    return {};
  }

 private:
  Wide whole_volume(size_t p) const { return volume(stamps_.pieces[p].visible) * volume(stamps_.pieces[p].hidden); }

  /// rows_ and patches_: the access over all digits, one patch per piece and distinct reference.
  std::optional<Reason> gather(const Access& access, size_t first, size_t rank) {
    rows_.assign(digits_.rows.begin() + static_cast<long>(first),
                 digits_.rows.begin() + static_cast<long>(first + rank));
    for (size_t ref = 1; ref < access.references.size(); ++ref)
      for (size_t r = 0; r < rank; ++r)
        if (digits_.rows[first + ref * rank + r] != rows_[r])
          return Reason{.what = text("references to tensor ", access.tensor, " differ by more than constants"),
                        .needs = "references of one access that are shifts of each other",
                        .hint = "name the differing references as separate tensors"};
    distinct_.assign(digits_.pieces.size(), 0);
    for (size_t p = 0; p < digits_.pieces.size(); ++p) {
      std::vector<std::vector<int64_t>> seen;
      for (size_t ref = 0; ref < access.references.size(); ++ref) {
        auto at = digits_.pieces[p].constants.begin() + static_cast<long>(first + ref * rank);
        std::vector<int64_t> constants(at, at + static_cast<long>(rank));
        if (std::find(seen.begin(), seen.end(), constants) != seen.end()) continue;
        patches_.push_back({digits_.pieces[p].box, constants});
        piece_of_.push_back(p);
        seen.push_back(std::move(constants));
      }
      distinct_[p] = static_cast<int64_t>(seen.size());
    }
    separate_rows(rows_, patches_, false);
    return {};
  }

  /// items_: each patch with its window as progressions; hidden digits that make none are listed value by
  /// value.
  std::optional<Reason> list_windows() {
    steps_.assign(rows_.size(), 0);
    for (size_t i = 0; i < patches_.size(); ++i)
      if (!add_items(patches_[i], piece_of_[i]))
        return Reason{.what = "the elements that one stamp touches form too many groups",
                      .needs = text("at most ", kItemLimit, " groups that are no arithmetic progressions"),
                      .hint = "give the iterators that share a stamp coordinates of their own in the tensor"};
    by_piece_.assign(stamps_.pieces.size(), {});
    for (size_t i = 0; i < items_.size(); ++i) by_piece_[items_[i].piece].push_back(i);
    for (size_t r = 0; r < rows_.size(); ++r) {
      bool wide = std::any_of(items_.begin(), items_.end(), [&](const Item& i) { return i.window[r].count > 1; });
      if (wide) wide_rows_.push_back(r);
    }
    return {};
  }

  bool add_items(const Patch& patch, size_t piece) {
    std::vector<Progression> window;
    for (int64_t c : patch.constants) window.push_back({.lo = c});
    std::vector<size_t> listed;
    std::vector<std::vector<size_t>> own(rows_.size());
    for (size_t h : stamps_.hidden) {
      size_t uses = 0, row = 0;
      for (size_t r = 0; r < rows_.size(); ++r)
        if (rows_[r][h] != 0) row = r, ++uses;
      if (uses == 0) continue;
      if (patch.box[h].size() == 1) {
        for (size_t r = 0; r < rows_.size(); ++r) window[r].lo += rows_[r][h] * patch.box[h].lo;
      } else if (uses > 1) {
        listed.push_back(h);
      } else {
        own[row].push_back(h);
      }
    }
    for (size_t r = 0; r < rows_.size(); ++r) {
      const std::vector<int64_t>& row = rows_[r];
      std::sort(own[r].begin(), own[r].end(), [&](size_t a, size_t b) { return std::abs(row[a]) < std::abs(row[b]); });
      Progression& w = window[r];
      for (size_t h : own[r]) {
        const int64_t c = std::abs(row[h]), size = patch.box[h].size();
        const bool starts = w.count == 1 && (steps_[r] == 0 || steps_[r] == c);
        const bool extends = w.count > 1 && c % w.step == 0 && c / w.step <= w.count;
        if (!starts && !extends) {
          listed.push_back(h);
          continue;
        }
        if (starts)
          w.step = steps_[r] = c, w.count = size;
        else
          w.count += c / w.step * (size - 1);
        w.lo += row[h] * (row[h] > 0 ? patch.box[h].lo : patch.box[h].hi);
      }
    }
    Wide lists = 1;
    for (size_t h : listed) lists *= patch.box[h].size();
    if (lists + items_.size() > static_cast<Wide>(kItemLimit)) return false;
    list_rest(patch, listed, 0, {piece, window});
    return true;
  }

  void list_rest(const Patch& patch, const std::vector<size_t>& listed, size_t next, const Item& item) {
    if (next == listed.size()) {
      if (std::find(items_.begin(), items_.end(), item) == items_.end()) items_.push_back(item);
      return;
    }
    const size_t h = listed[next];
    for (int64_t v = patch.box[h].lo; v <= patch.box[h].hi; ++v) {
      Item moved = item;
      for (size_t r = 0; r < rows_.size(); ++r) moved.window[r].lo += rows_[r][h] * v;
      list_rest(patch, listed, next + 1, moved);
    }
  }

  /// Triples of each item, less those that shifts find elsewhere.
  void cover(Wide& assigned, Wide& unique, Wide& temporal, Wide& spatial) {
    const size_t axes = stamps_.visible.size() + wide_rows_.size();
    std::vector<int64_t> moved;  // per shift: what d adds to each row
    const std::vector<int64_t> zero(stamps_.visible.size(), 0);
    BoxList copies(static_cast<int>(axes)), before = copies, neighbours = copies, supplied = copies;
    Box hit(axes), whole(axes);
    for (size_t p = 0; p < stamps_.pieces.size(); ++p) {
      moved.clear();
      for (const Shift* s : leaving_[p])
        for (const std::vector<int64_t>& row : rows_) {
          int64_t by = 0;
          for (size_t k = 0; k < stamps_.visible.size(); ++k) by += row[stamps_.visible[k]] * s->d[k];
          moved.push_back(by);
        }
      for (size_t i : by_piece_[p]) {
        copies.clear(), before.clear(), neighbours.clear(), supplied.clear();
        for (size_t s = 0; s < leaving_[p].size(); ++s) {
          const Shift& shift = *leaving_[p][s];
          const std::span<const int64_t> by(moved.data() + s * rows_.size(), rows_.size());
          for (size_t j : by_piece_[shift.to]) {
            if (!overlap(items_[i], items_[j], by, hit)) continue;
            std::copy(shift.where.begin(), shift.where.end(), hit.begin());
            if (shift.kinds & kSameStamp) {
              // A triple that several instances make counts at the first: an earlier item, or smaller digits.
              if (j < i || (j == i && shift.d < zero)) copies.push(hit);
              continue;
            }
            if (shift.kinds & kSelfBefore) before.push(hit);
            if (shift.kinds & kNeighbour) neighbours.push(hit);
            if (shift.kinds & kSupplies) supplied.push(hit);
          }
        }
        std::copy(stamps_.pieces[p].visible.begin(), stamps_.pieces[p].visible.end(), whole.begin());
        for (size_t w = 0; w < wide_rows_.size(); ++w)
          whole[stamps_.visible.size() + w] = {0, items_[i].window[wide_rows_[w]].count - 1};
        const Wide all = volume(whole), twice = union_volume(copies);
        auto with_copies = [&](BoxList& list) {
          for (size_t c = 0; c < copies.size(); ++c) list.push(copies[c]);
          return union_volume(list) - twice;
        };
        assigned += all - twice;
        unique += all - twice - with_copies(supplied);
        temporal += with_copies(before);
        spatial += with_copies(neighbours);
      }
    }
  }

  /// Whether an instance of item a finds elements of item b when its own row values are moved; the part of
  /// a's window where it does goes to the last axes of `hit`.
  bool overlap(const Item& a, const Item& b, std::span<const int64_t> moved, Box& hit) const {
    size_t axis = stamps_.visible.size();
    for (size_t r = 0; r < rows_.size(); ++r) {
      const Progression &mine = a.window[r], &theirs = b.window[r];
      const int64_t distance = theirs.lo + moved[r] - mine.lo;  // their first element, counted from mine
      if (mine.count == 1 && theirs.count == 1) {
        if (distance != 0) return false;
        if (axis < hit.size() && wide_rows_[axis - stamps_.visible.size()] == r) hit[axis++] = {0, 0};
        continue;
      }
      const int64_t step = mine.count > 1 ? mine.step : theirs.step;
      if (distance % step != 0) return false;
      Interval shared = intersect({0, mine.count - 1}, {distance / step, distance / step + theirs.count - 1});
      if (shared.empty()) return false;
      hit[axis++] = shared;
    }
    return true;
  }

  const DigitForm& digits_;
  const StampForm& stamps_;
  const ShiftsByPiece& leaving_;
  Rows rows_;
  std::vector<Patch> patches_;
  std::vector<size_t> piece_of_;   // of each patch
  std::vector<int64_t> distinct_;  // elements per instance, per piece
  std::vector<int64_t> steps_;     // common step of the windows, per row
  std::vector<Item> items_;
  std::vector<std::vector<size_t>> by_piece_;
  std::vector<size_t> wide_rows_;  // rows where some window holds more than one element
};

}  // namespace

std::optional<Reason> mismatch(const Problem& problem) {
  const Domain& domain = problem.statement.domain;
  if (domain.lower.size() != domain.extent.size())
    return Reason{
        .what = "a domain names other lower bounds than extents", .needs = "one of each per iterator", .hint = {}};
  auto points = [](const Domain& d) {
    Wide product = 1;
    for (int64_t extent : d.extent) product = std::min(product * std::max(extent, int64_t{0}), Wide{1} << 63);
    return std::find(d.extent.begin(), d.extent.end(), 0) == d.extent.end() ? product : Wide{0};
  };
  for (int64_t extent : domain.extent)
    if (extent < 0)
      return Reason{
          .what = text("an iterator has extent ", extent), .needs = "extents >= 0", .hint = "check the bounds"};
  if (points(domain) > INT64_MAX || points(problem.array.pes) > INT64_MAX)
    return Reason{.what = text(points(domain) > INT64_MAX ? "the domain" : "the array", " has more than 2^63 points"),
                  .needs = "counts below 2^63",
                  .hint = "use smaller extents"};
  if (problem.mapping.space.size() != static_cast<size_t>(problem.array.pes.rank()))
    return Reason{.what = text("the space map has ",
                               problem.mapping.space.size(),
                               " coordinates, but the array's PEs have ",
                               problem.array.pes.rank()),
                  .needs = "a space map of the array's rank",
                  .hint = "give the space map one coordinate per PE coordinate"};
  for (const Access& access : problem.statement.accesses) {
    if (access.references.empty())
      return Reason{
          .what = text("access to tensor ", access.tensor, " has no reference"), .needs = "one or more", .hint = {}};
    for (const Map& reference : access.references)
      if (reference.size() != access.references[0].size())
        return Reason{.what = text("tensor ",
                                   access.tensor,
                                   " is referenced with ",
                                   access.references[0].size(),
                                   " and ",
                                   reference.size(),
                                   " coordinates"),
                      .needs = "references of one rank",
                      .hint = "write each tensor with all of its coordinates"};
  }
  return {};
}

std::variant<Counts, Reason> count_by_boxes(const Problem& problem) {
  if (auto reason = mismatch(problem)) return *reason;
  std::vector<const QuasiAffine*> expressions;
  for (const QuasiAffine& e : problem.mapping.space) expressions.push_back(&e);
  for (const QuasiAffine& e : problem.mapping.time) expressions.push_back(&e);
  for (const Access& access : problem.statement.accesses)
    for (const Map& reference : access.references)
      for (const QuasiAffine& e : reference) expressions.push_back(&e);
  auto digits = to_digits(problem.statement.domain, expressions);
  if (auto* reason = std::get_if<Reason>(&digits)) return *reason;
  const DigitForm& form = std::get<DigitForm>(digits);
  auto stamped = to_stamps(form, problem.mapping.space.size(), problem.mapping.time.size(), problem.array);
  if (auto* reason = std::get_if<Reason>(&stamped)) return *reason;
  const StampForm& stamps = std::get<StampForm>(stamped);
  Counts counts;
  bool fits = true;
  auto store = [&](Wide v) {
    auto n = narrow(v);
    fits &= n.has_value();
    return n.value_or(0);
  };
  counts.macs = store(stamps.macs);
  counts.pe_array = store(stamps.pe_array);
  counts.space = store(stamps.space);
  counts.time = store(stamps.time);
  counts.spacetime = store(stamps.spacetime);
  if (stamps.work_cycles) counts.work_cycles = store(*stamps.work_cycles);
  counts.outside_array = stamps.outside_array;
  if (!fits)
    return Reason{.what = "a count of the domain does not fit 64 bits",
                  .needs = "fewer than 2^63 instances",
                  .hint = "use smaller extents"};
  const ShiftsByPiece leaving = shifts_by_piece(stamps);
  size_t row = problem.mapping.space.size() + problem.mapping.time.size();
  for (const Access& access : problem.statement.accesses) {
    TensorCounts tensor{.tensor = access.tensor, .role = access.role};
    if (auto reason = AccessCounter(form, stamps, leaving).count(access, row, tensor)) return *reason;
    counts.tensors.push_back(std::move(tensor));
    row += access.references.size() * access.references[0].size();
  }
  return counts;
}

std::variant<Counts, Reason> count(const Problem& problem, const CountOptions& options) {
  if (auto reason = mismatch(problem)) return *reason;
  if (auto counts = nest_counts(problem)) return std::move(*counts);
  if (auto counts = wave_counts(problem)) return std::move(*counts);
  auto counted = count_by_boxes(problem);
  Reason* why = std::get_if<Reason>(&counted);
  if (!why) return counted;
  Wide points = 1;
  for (int64_t extent : problem.statement.domain.extent) points = std::min(points * extent, Wide{1} << 62);
  if (points > options.enumerate_up_to) {
    why->hint = text(why->hint,
                     why->hint.empty() ? "" : "; ",
                     "or at most ",
                     options.enumerate_up_to,
                     " instances, which are then counted one by one");
    return counted;
  }
  return enumerate(problem, options.enumerate_up_to);
}

}  // namespace sator::dataflow
