#include "dataflow/counts/stamps.h"

#include <map>
#include <set>

#include "base/text.h"
#include "dataflow/counts/image.h"
#include "dataflow/counts/lattice.h"
#include "dataflow/counts/links.h"
#include "dataflow/counts/timeline.h"

namespace sator::dataflow {

namespace {

constexpr size_t kCellLimit = 1 << 14;

std::vector<int64_t> pick(const std::vector<int64_t>& all, const std::vector<size_t>& which) {
  std::vector<int64_t> some;
  some.reserve(which.size());
  for (size_t k : which) some.push_back(all[k]);
  return some;
}

Box pick(const Box& all, const std::vector<size_t>& which) {
  Box some;
  some.reserve(which.size());
  for (size_t k : which) some.push_back(all[k]);
  return some;
}

/// The declared array as disjoint boxes.
std::variant<std::vector<Box>, Reason> array_boxes(const Domain& pes) {
  std::vector<QuasiAffine> coordinates;
  for (int i = 0; i < pes.rank(); ++i) coordinates.push_back(variable(i));
  std::vector<const QuasiAffine*> expressions;
  for (const QuasiAffine& e : coordinates) expressions.push_back(&e);
  auto digits = to_digits(pes, expressions, {.pieces = 1 << 14});
  if (auto* reason = std::get_if<Reason>(&digits)) return *reason;
  const DigitForm& form = std::get<DigitForm>(digits);
  std::vector<Box> boxes;
  for (const DigitForm::Piece& piece : form.pieces) {
    BoxList image(pes.rank());
    if (!image_boxes(form.rows, {piece.box, piece.constants}, kCellLimit, image))
      return Reason{.what = "the PE set is no union of boxes", .needs = "a PE set given by bounds", .hint = {}};
    for (size_t i = 0; i < image.size(); ++i) boxes.emplace_back(image[i].begin(), image[i].end());
  }
  return boxes;
}

class Stamper {
 public:
  Stamper(const DigitForm& form, size_t space_rows, size_t time_rows, const Array& array, const StampLimits& limits)
      : form_(form), array_(array), limits_(limits), space_rows_(space_rows), time_rows_(time_rows) {}

  std::variant<StampForm, Reason> run() {
    choose_digits();
    if (out_.pieces.empty()) return count_array() ? std::variant<StampForm, Reason>(std::move(out_)) : *refusal_;
    if (!count_space() || !count_array() || !lay_out_time() || !find_shifts()) return *refusal_;
    count_stamps();
    return std::move(out_);
  }

 private:
  bool refuse(Reason reason) {
    if (!refusal_) refusal_ = std::move(reason);
    return false;
  }

  void choose_digits() {
    for (size_t k = 0; k < form_.digits.size(); ++k) {
      bool seen = false;
      for (size_t r = 0; r < space_rows_ + time_rows_; ++r) seen |= form_.rows[r][k] != 0;
      (seen ? out_.visible : out_.hidden).push_back(k);
    }
    for (size_t r = 0; r < space_rows_; ++r) space_.push_back(pick(form_.rows[r], out_.visible));
    for (size_t r = 0; r < time_rows_; ++r) time_.push_back(pick(form_.rows[space_rows_ + r], out_.visible));
    for (const DigitForm::Piece& piece : form_.pieces) {
      out_.pieces.push_back({pick(piece.box, out_.visible), pick(piece.box, out_.hidden)});
      out_.macs += volume(piece.box);
      const auto first = piece.constants.begin();
      space_patches_.push_back({out_.pieces.back().visible, {first, first + static_cast<long>(space_rows_)}});
      time_patches_.push_back(
          {out_.pieces.back().visible,
           {first + static_cast<long>(space_rows_), first + static_cast<long>(space_rows_ + time_rows_)}});
    }
  }

  bool count_space() {
    auto size = image_size(space_, space_patches_);
    if (auto* reason = std::get_if<Reason>(&size)) return refuse(*reason);
    out_.space = std::get<Wide>(size);
    reach_.assign(space_rows_, {INT64_MAX, INT64_MIN});
    for (const Patch& p : space_patches_)
      for (size_t r = 0; r < space_rows_; ++r) {
        Range range = range_of(space_[r], p.constants[r], p.box);
        reach_[r] = {std::min(reach_[r].lo, static_cast<int64_t>(range.lo)),
                     std::max(reach_[r].hi, static_cast<int64_t>(range.hi))};
      }
    return true;
  }

  bool count_array() {
    if (array_.pes.rank() != static_cast<int>(space_rows_))
      return refuse({.what = text("the space map has ", space_rows_, " coordinates, but PEs have ", array_.pes.rank()),
                     .needs = "a space map of the PEs' rank",
                     .hint = "give the space map one coordinate per PE coordinate"});
    auto boxes = array_boxes(array_.pes);
    if (auto* reason = std::get_if<Reason>(&boxes)) return refuse(*reason);
    inside_ = std::get<std::vector<Box>>(boxes);
    BoxList list(static_cast<int>(space_rows_));
    for (const Box& box : inside_) list.push(box);
    out_.pe_array = union_volume(list);
    // Work lies inside if it adds nothing to the array.
    for (const Patch& p : space_patches_)
      if (!image_boxes(space_, p, kCellLimit, list)) {
        // Scattered PEs: the bounding box decides, which can only report too much.
        for (size_t r = 0; r < space_rows_; ++r)
          out_.outside_array |=
              reach_[r].lo < array_.pes.lower[r] || reach_[r].hi >= array_.pes.lower[r] + array_.pes.extent[r];
        if (!out_.outside_array) list.push(reach_);
      }
    out_.outside_array |= !space_patches_.empty() && union_volume(list) != out_.pe_array;
    return true;
  }

  bool lay_out_time() {
    separate_rows(time_, time_patches_, true);
    reduce_rows(time_, time_patches_);
    BoxList cells(static_cast<int>(time_rows_));
    for (const Patch& p : time_patches_) {
      size_t first = cells.size();
      if (!image_boxes(time_, p, kCellLimit, cells))
        return refuse(
            {.what = "the time stamps form too many boxes",
             .needs = "a time map whose coordinates run without gaps and have digits of their own",
             .hint = "let each iterator's digits appear in one time coordinate; write gaps as a further one"});
      cells_of_.emplace_back(first, cells.size());
    }
    auto built = Timeline::build(cells);
    if (auto* reason = std::get_if<Reason>(&built)) return refuse(*reason);
    timeline_ = std::move(std::get<Timeline>(built));
    out_.time = timeline_.count();
    cells_ = std::move(cells);
    return true;
  }

  /// Constants of a piece over all stamp rows; pieces with equal ones share their equations.
  std::vector<int64_t> stamp_constants(size_t p) const {
    std::vector<int64_t> c = space_patches_[p].constants;
    c.insert(c.end(), time_patches_[p].constants.begin(), time_patches_[p].constants.end());
    return c;
  }

  /// A way from a PE to one that supplies it, with its part in the three counts.
  struct Route {
    std::vector<int64_t> offset;
    Box when;
    uint8_t kinds_now, kinds_before;  // supplying at the same stamp, at the one before
  };

  bool find_routes(std::vector<Route>& routes) {
    auto hops = hops_of(array_.interconnect, reach_);
    if (auto* reason = std::get_if<Reason>(&hops)) return refuse(*reason);
    const std::vector<int64_t> zero(space_rows_, 0);
    const Box anywhere(space_rows_, kAnyValue);
    uint8_t self = kSelfBefore;
    if (!out_.outside_array) self |= kSupplies;
    routes.push_back({zero, anywhere, kSameStamp, self});
    // A PE that the array does not have keeps nothing for itself, unless a wire leads from it to itself.
    if (out_.outside_array)
      for (const Box& box : inside_) routes.push_back({zero, box, 0, kSupplies});
    for (Hop& hop : std::get<std::vector<Hop>>(hops)) {
      if (hop.offset == zero)
        routes.push_back({zero, std::move(hop.when), 0, kSupplies});
      else
        routes.push_back({std::move(hop.offset), std::move(hop.when), kNeighbour | kSupplies, kNeighbour | kSupplies});
    }
    return true;
  }

  static bool conditional(const Box& when) {
    return std::any_of(when.begin(), when.end(), [](Interval i) { return i != kAnyValue; });
  }

  /// The parts of boxes on which rows lie in `when`.
  bool restrict(std::vector<Box>& boxes, const Rows& rows, const std::vector<int64_t>& constants, const Box& when) {
    for (size_t r = 0; r < rows.size(); ++r) {
      if (when[r] == kAnyValue) continue;
      std::vector<Box> parts;
      for (const Box& box : boxes)
        if (!slice(box, rows[r], constants[r], when[r], kCellLimit, parts))
          return refuse({.what = "a condition on the stamps cuts the domain into too many boxes",
                         .needs = "stamp coordinates of few digits",
                         .hint = "use tile sizes that divide the extents"});
      boxes.swap(parts);
    }
    return true;
  }

  bool find_shifts() {
    std::vector<Route> routes;
    if (!find_routes(routes)) return false;
    const size_t digits = out_.visible.size();
    Rows rows = space_;
    rows.insert(rows.end(), time_.begin(), time_.end());
    std::vector<int64_t> extents(digits, 1);
    for (const StampForm::Piece& piece : out_.pieces)
      for (size_t k = 0; k < digits; ++k) extents[k] = std::max(extents[k], piece.visible[k].hi + 1);
    auto reduced = Lattice::reduce(rows, digits, extents);
    if (auto* reason = std::get_if<Reason>(&reduced)) return refuse(*reason);
    lattice_ = std::move(std::get<Lattice>(reduced));
    std::map<std::vector<int64_t>, size_t> known;
    for (size_t p = 0; p < out_.pieces.size(); ++p) {
      auto [at, fresh] = known.try_emplace(stamp_constants(p), classes_.size());
      if (fresh)
        classes_.push_back({.constants = at->first, .pieces = {}, .hull = out_.pieces[p].visible, .reached = {}});
      Class& c = classes_[at->second];
      c.pieces.push_back(p);
      for (size_t k = 0; k < digits; ++k)
        c.hull[k] = {std::min(c.hull[k].lo, out_.pieces[p].visible[k].lo),
                     std::max(c.hull[k].hi, out_.pieces[p].visible[k].hi)};
    }
    for (Class& c : classes_) sort_class(c);
    const std::vector<int64_t> now(time_rows_, 0);
    if (!follow(routes, now, nullptr)) return false;
    for (const Timeline::Step& step : timeline_.steps())
      if (!follow(routes, step.shift, &step.when)) return false;
    return true;
  }

  /// All shifts for one move in time (none: `when` is null) and every route in space.
  bool follow(const std::vector<Route>& routes, const std::vector<int64_t>& time_shift, const Box* when) {
    if (whole_.empty())
      for (const StampForm::Piece& piece : out_.pieces) whole_.push_back({piece.visible});
    std::vector<std::vector<Box>> restricted;
    if (when && conditional(*when)) {
      restricted = whole_;
      for (size_t p = 0; p < out_.pieces.size(); ++p)
        if (!restrict(restricted[p], time_, time_patches_[p].constants, *when)) return false;
    }
    const std::vector<std::vector<Box>>& here = restricted.empty() ? whole_ : restricted;
    for (const Route& route : routes) {
      const uint8_t kinds = when ? route.kinds_before : route.kinds_now;
      if (kinds == 0) continue;
      std::vector<std::vector<Box>> narrowed;
      const bool in_part = conditional(route.when);
      if (in_part) {
        narrowed = here;
        for (size_t p = 0; p < out_.pieces.size(); ++p)
          if (!restrict(narrowed[p], space_, space_patches_[p].constants, route.when)) return false;
      }
      const std::vector<std::vector<Box>>& from = in_part ? narrowed : here;
      for (const Class& a : classes_)
        for (const Class& b : classes_)
          if (!connect(a, b, from, route.offset, time_shift, kinds)) return false;
    }
    return true;
  }

  /// Pieces whose stamps have the same constants, and the box around them.
  struct Class {
    std::vector<int64_t> constants;
    std::vector<size_t> pieces;  // by their lower end on `axis`
    Box hull;
    size_t axis = 0;               // the digit on which the pieces lie apart most
    std::vector<int64_t> reached;  // the farthest upper end on it, up to each piece
  };

  void sort_class(Class& c) const {
    if (out_.visible.empty()) return;
    size_t most = 0;
    for (size_t k = 0; k < out_.visible.size() && c.pieces.size() > 1; ++k) {
      std::set<int64_t> ends;
      for (size_t p : c.pieces) ends.insert(out_.pieces[p].visible[k].lo);
      if (ends.size() > most) c.axis = k, most = ends.size();
    }
    auto lower = [&](size_t p) { return out_.pieces[p].visible[c.axis].lo; };
    std::stable_sort(c.pieces.begin(), c.pieces.end(), [&](size_t a, size_t b) { return lower(a) < lower(b); });
    int64_t far = INT64_MIN;
    for (size_t p : c.pieces) c.reached.push_back(far = std::max(far, out_.pieces[p].visible[c.axis].hi));
  }

  /// The pieces of a class that may meet `span` on its axis: positions first .. last-1.
  std::pair<size_t, size_t> near(const Class& c, Interval span) const {
    if (c.reached.empty()) return {0, c.pieces.size()};
    auto first = std::lower_bound(c.reached.begin(), c.reached.end(), span.lo) - c.reached.begin();
    size_t last = static_cast<size_t>(first);
    while (last < c.pieces.size() && out_.pieces[c.pieces[last]].visible[c.axis].lo <= span.hi) ++last;
    return {static_cast<size_t>(first), last};
  }

  bool connect(const Class& a, const Class& b, const std::vector<std::vector<Box>>& from,
               const std::vector<int64_t>& offset, const std::vector<int64_t>& time_shift, uint8_t kinds) {
    if (++meetings_ > limits_.meetings)
      return refuse({.what = "the wires, the ways from stamp to stamp and the ragged edges are too many together",
                     .needs = text("at most ", limits_.meetings, " combinations"),
                     .hint = "use a smaller array or fewer wires, or tile sizes that divide the extents"});
    const size_t digits = out_.visible.size();
    where_.resize(digits);
    rhs_.clear();
    for (size_t r = 0; r < space_rows_; ++r) rhs_.push_back(offset[r] - b.constants[r] + a.constants[r]);
    for (size_t r = 0; r < time_rows_; ++r)
      rhs_.push_back(time_shift[r] - b.constants[space_rows_ + r] + a.constants[space_rows_ + r]);
    bounds_.clear();
    for (size_t k = 0; k < digits; ++k) bounds_.push_back({b.hull[k].lo - a.hull[k].hi, b.hull[k].hi - a.hull[k].lo});
    solutions_.clear();
    if (!lattice_.solve(rhs_, bounds_, limits_.tries, solutions_))
      return refuse({.what = "too many instances share a stamp without being tiled",
                     .needs = text("at most ", limits_.tries, " ways from one stamp to the next"),
                     .hint = "give the iterators that overlap in the stamps a coordinate of their own"});
    const size_t found = digits == 0 ? (solvable(rhs_) ? 1 : 0) : solutions_.size() / digits;
    for (size_t s = 0; s < found; ++s) {
      const std::span<const int64_t> d(solutions_.data() + s * digits, digits);
      for (size_t p : a.pieces)
        for (const Box& source : from[p]) {
          Interval span{0, 0};
          if (digits > 0) span = {source[b.axis].lo + d[b.axis], source[b.axis].hi + d[b.axis]};
          const auto [first, last] = near(b, span);
          for (size_t at = first; at < last; ++at) {
            const size_t q = b.pieces[at];
            const Box& target = out_.pieces[q].visible;
            size_t k = 0;
            for (; k < digits; ++k) {
              where_[k] = intersect(source[k], {target[k].lo - d[k], target[k].hi - d[k]});
              if (where_[k].empty()) break;
            }
            if (k < digits) continue;
            if (out_.shifts.size() >= limits_.shifts)
              return refuse({.what = text("more than ", limits_.shifts, " ways of reuse"),
                             .needs = "fewer wires or fewer ragged edges",
                             .hint = "choose tile sizes that divide the extents"});
            out_.shifts.push_back({p, q, {d.begin(), d.end()}, where_, kinds});
          }
        }
    }
    return true;
  }

  static bool solvable(const std::vector<int64_t>& rhs) {
    return std::all_of(rhs.begin(), rhs.end(), [](int64_t v) { return v == 0; });
  }

  void count_stamps() {
    std::vector<BoxList> doubled(out_.pieces.size(), BoxList(static_cast<int>(out_.visible.size())));
    bool overlaps = false;
    const std::vector<int64_t> zero(out_.visible.size(), 0);
    for (const Shift& s : out_.shifts) {
      // Of several instances on one stamp the first counts: the one of an earlier piece, or of smaller
      // digits.
      if (!(s.kinds & kSameStamp) || (s.from == s.to ? !(s.d < zero) : s.to > s.from)) continue;
      doubled[s.from].push(s.where);
      overlaps = true;
    }
    for (size_t p = 0; p < out_.pieces.size(); ++p)
      out_.spacetime += volume(out_.pieces[p].visible) - union_volume(doubled[p]);
    if (overlaps) return;
    // PEs that run more instances at a stamp hold the stamp up: sum over v of the stamps where some PE runs
    // >= v.
    std::map<Wide, std::vector<size_t>> by_work;
    for (size_t p = 0; p < out_.pieces.size(); ++p) by_work[volume(out_.pieces[p].hidden)].push_back(p);
    BoxList busy(static_cast<int>(time_rows_));
    Wide cycles = 0;
    for (auto level = by_work.rbegin(); level != by_work.rend(); ++level) {
      for (size_t p : level->second)
        for (size_t c = cells_of_[p].first; c < cells_of_[p].second; ++c) busy.push(cells_[c]);
      auto below = std::next(level);
      cycles += union_volume(busy) * (level->first - (below == by_work.rend() ? Wide{0} : below->first));
    }
    out_.work_cycles = cycles;
  }

  const DigitForm& form_;
  const Array& array_;
  StampLimits limits_;
  size_t space_rows_, time_rows_;
  StampForm out_;
  Rows space_, time_;  // over visible digits
  std::vector<Patch> space_patches_, time_patches_;
  Box reach_;                            // bounding box of the working PEs
  std::vector<Box> inside_;              // the declared array
  std::vector<std::vector<Box>> whole_;  // per piece: its visible box
  BoxList cells_;                        // time stamps of the pieces
  std::vector<std::pair<size_t, size_t>> cells_of_;
  Timeline timeline_;
  Lattice lattice_;
  std::vector<Class> classes_;
  std::vector<int64_t> rhs_, solutions_;
  Box bounds_, where_;
  size_t meetings_ = 0;
  std::optional<Reason> refusal_;
};

}  // namespace

std::variant<StampForm, Reason> to_stamps(const DigitForm& form, size_t space_rows, size_t time_rows,
                                          const Array& array, const StampLimits& limits) {
  return Stamper(form, space_rows, time_rows, array, limits).run();
}

}  // namespace sator::dataflow
