#include "dataflow/mapping/space_plan.h"

#include <algorithm>

#include "base/text.h"
#include "dataflow/mapping/sharing.h"

namespace sator::dataflow {

namespace {

class Planner {
 public:
  explicit Planner(const CoreShare& share) : s_(share) {}

  /// An output axis of each factor, or the reduction and an output axis of the factor that stays.
  SpacePlan on_axes(size_t stationary, bool swapped, int64_t most_rows, int64_t most_columns) const {
    const Product& product = s_.product;
    SpacePlan plan{.stationary = stationary,
                   .swapped = swapped,
                   .most_rows = most_rows,
                   .most_columns = most_columns,
                   .space = {},
                   .cover = std::vector<int64_t>(s_.rank(), 1)};
    std::vector<size_t> rows, columns;
    for (size_t x = 0; x < s_.rank(); ++x) {
      const Product::Use& u = product.uses[x];
      if (s_.extent[x] < 2) continue;
      if (stationary == product.output) {
        if (u.output && u.first != u.second) (u.first != swapped ? rows : columns).push_back(x);
      } else {
        const bool in_other = product.in(x, stationary == product.first ? product.second : product.first);
        if (!product.in(x, stationary)) continue;
        if (!u.output)
          rows.push_back(x);
        else if (!in_other)
          columns.push_back(x);
      }
    }
    QuasiAffine row, column;
    plan.words = "rows ";
    plan.rows_used = pack(rows, most_rows, stationary != product.output, plan, row, plan.rows);
    plan.words += ", columns ";
    plan.columns_used = pack(columns, most_columns, false, plan, column, plan.columns);
    plan.space = {row, column};
    if (stationary == product.output && s_.pace.macs_per_stamp > 1) stream_lanes(plan);
    return plan;
  }

  /// A filter's row lies along a column of PEs, which sums it up for one row of outputs; neighbours do the next rows. Where
  /// PEs are left below, further strips of rows lie there, then further output channels.
  /// Source: Chen et al., "Eyeriss", ISCA 2016.
  std::optional<SpacePlan> on_filter_rows() const {
    const Product& product = s_.product;
    const Chip& chip = s_.chip;
    const std::vector<int64_t>& extent = s_.extent;
    const size_t weight = weight_of(s_.work, product), input = weight == product.first ? product.second : product.first;
    const size_t none = s_.rank();
    size_t filter = none, output = none, channel = none;
    for (const QuasiAffine& e : s_.work.statement.accesses[input].references[0])
      for (size_t r = 0; r < none && filter == none; ++r)
        for (size_t p = 0; p < none; ++p) {
          const bool window = mentions(e, static_cast<int>(r)) && mentions(e, static_cast<int>(p));
          if (!window || !product.in(r, weight) || product.uses[r].output || !product.uses[p].output) continue;
          if (extent[r] < 2 || extent[r] > chip.rows) continue;
          filter = r, output = p;
        }
    if (filter == none) return {};
    for (size_t x = 0; x < none; ++x)
      if (product.in(x, weight) && product.uses[x].output && !product.in(x, input) &&
          (channel == none || extent[x] > extent[channel]))
        channel = x;
    SpacePlan plan{.stationary = weight, .space = {}, .cover = std::vector<int64_t>(none, 1)};
    const int64_t columns = std::min(chip.columns, extent[output]), high = extent[filter];
    const int64_t strips = std::min(ceil_div(extent[output], columns), chip.rows / high);
    plan.columns_used = columns;
    plan.rows_used = high * strips;
    plan.rows.push_back({.loop = filter, .values = high});
    if (strips > 1) plan.rows.push_back({.loop = output, .values = strips});
    if (columns > 1) plan.columns.push_back({.loop = output, .values = columns});
    QuasiAffine row = s_.from_zero(filter) + mod(floor_div(s_.from_zero(output), columns), strips) * high;
    plan.cover[filter] = high;
    plan.cover[output] = std::min(columns * strips, extent[output]);
    plan.words = text("rows ", s_.name(filter), ", columns ", s_.name(output));
    if (const int64_t sets = chip.rows / plan.rows_used; channel < none && sets > 1 && extent[channel] > 1) {
      plan.cover[channel] = std::min(sets, extent[channel]);
      row = row + mod(s_.from_zero(channel), plan.cover[channel]) * plan.rows_used;
      plan.rows.push_back({.loop = channel, .values = plan.cover[channel]});
      plan.rows_used *= plan.cover[channel];
      plan.words += text(", ", s_.name(channel), "%", plan.cover[channel], " below each other");
    }
    plan.space = {row, mod(s_.from_zero(output), columns)};
    return plan;
  }

 private:
  /// Puts iterators on an axis of `size` PEs, the longest first: as many values as fit, then parts of the next.
  int64_t pack(std::vector<size_t> iterators, int64_t size, bool reduces, SpacePlan& plan, QuasiAffine& coordinate,
               std::vector<rules::ArrayNest::Side>& sides) const {
    const std::vector<int64_t>& extent = s_.extent;
    std::stable_sort(iterators.begin(), iterators.end(), [&](size_t a, size_t b) { return extent[a] > extent[b]; });
    int64_t used = 1;
    std::vector<std::string> parts;
    for (size_t x : iterators) {
      const int64_t lanes = reduces && used == 1 ? std::min(s_.pace.macs_per_stamp, extent[x]) : 1;
      const int64_t blocks = ceil_div(extent[x], lanes), take = std::min(size / used, blocks);
      if (take < 2 && lanes == 1) continue;
      QuasiAffine e = floor_div(s_.from_zero(x), lanes);
      if (take < blocks) e = mod(e, take);
      coordinate = coordinate + e * used;
      plan.cover[x] = take < blocks ? take * lanes : extent[x];
      sides.push_back({.loop = x, .values = take, .at_once = lanes});
      parts.push_back(text(s_.name(x), take < blocks ? text("%", take * lanes) : ""));
      used *= take;
      if (take < blocks) break;
    }
    plan.words += parts.empty() ? "-" : join(parts, "+");
    return used;
  }

  /// A reduction that streams through the PEs takes several values per stamp.
  void stream_lanes(SpacePlan& plan) const {
    size_t longest = s_.rank();
    for (size_t x = 0; x < s_.rank(); ++x)
      if (!s_.product.uses[x].output && (longest == s_.rank() || s_.extent[x] > s_.extent[longest])) longest = x;
    if (longest == s_.rank()) return;
    plan.cover[longest] = std::min(s_.pace.macs_per_stamp, s_.extent[longest]);
    plan.at_once.push_back({.loop = longest, .at_once = plan.cover[longest]});
  }

  const CoreShare& s_;
};

}  // namespace

std::vector<SpacePlan> space_plans(const CoreShare& share) {
  const Product& product = share.product;
  const Chip& chip = share.chip;
  const size_t weight = weight_of(share.work, product);
  const size_t input = weight == product.first ? product.second : product.first;
  const bool named = share.work.operands[weight].kind != OperandKind::activation;
  const Planner planner(share);
  std::vector<SpacePlan> plans;
  auto add = [&](size_t stationary, bool swapped = false) {
    plans.push_back(planner.on_axes(stationary, swapped, chip.rows, chip.columns));
  };
  switch (chip.dataflow) {
    case Stationary::output:
    case Stationary::schedule:
      add(product.output);
      add(product.output, true);
      break;
    case Stationary::weight:
      add(weight);
      if (!named) add(input);  // two activations: either may stay
      break;
    case Stationary::input:
      add(input);
      if (!named) add(weight);
      break;
    case Stationary::row:
      if (auto plan = planner.on_filter_rows())
        plans.push_back(std::move(*plan));
      else
        add(weight);
      break;
  }
  return plans;
}

SpacePlan on_part(const CoreShare& share, const SpacePlan& plan, int64_t rows, int64_t columns) {
  if (plan.most_rows == 0) return plan;
  return Planner(share).on_axes(plan.stationary, plan.swapped, rows, columns);
}

size_t weight_under(const CoreShare& share, const SpacePlan& plan) {
  const Product& product = share.product;
  if (plan.stationary == product.output) return weight_of(share.work, product);
  if (share.chip.dataflow != Stationary::input) return plan.stationary;
  return plan.stationary == product.first ? product.second : product.first;
}

}  // namespace sator::dataflow
