#include "dataflow/counts/image.h"

#include <numeric>
#include <set>

#include "base/text.h"
#include "dataflow/counts/relation.h"

namespace sator::dataflow {

namespace {

constexpr size_t kBoxLimit = 1 << 12;    // boxes of a union
constexpr int64_t kListLimit = 1 << 20;  // points listed one by one

size_t digits_in(const std::vector<int64_t>& row) {
  return static_cast<size_t>(std::count_if(row.begin(), row.end(), [](int64_t c) { return c != 0; }));
}

/// Digits that take more than one value in some patch.
std::vector<bool> moving_digits(size_t digits, const std::vector<Patch>& patches) {
  std::vector<bool> moves(digits, false);
  for (const Patch& p : patches)
    for (size_t k = 0; k < digits; ++k)
      if (p.box[k] != patches[0].box[k] || p.box[k].size() > 1) moves[k] = true;
  return moves;
}

}  // namespace

void separate_rows(Rows& rows, std::vector<Patch>& patches, bool ordered) {
  bool changed = true;
  while (changed) {
    changed = false;
    for (size_t j = 0; j < rows.size(); ++j)
      for (size_t i = 0; i < (ordered ? j : rows.size()); ++i) {
        if (i == j) continue;
        for (size_t k = 0; k < rows[i].size(); ++k) {
          if (rows[i][k] == 0 || rows[j][k] == 0 || rows[j][k] % rows[i][k] != 0) continue;
          const int64_t factor = rows[j][k] / rows[i][k];
          std::vector<int64_t> less = rows[j];
          bool small = true;
          for (size_t d = 0; d < less.size(); ++d) {
            auto value = narrow(less[d] - static_cast<Wide>(factor) * rows[i][d]);
            small &= value.has_value() && std::abs(*value) < (int64_t{1} << 60);
            less[d] = value.value_or(0);
          }
          for (const Patch& p : patches) {
            auto value = narrow(p.constants[j] - static_cast<Wide>(factor) * p.constants[i]);
            small &= value.has_value() && std::abs(*value) < (int64_t{1} << 60);
          }
          if (!small || digits_in(less) >= digits_in(rows[j])) continue;
          rows[j] = std::move(less);
          for (Patch& p : patches) p.constants[j] -= factor * p.constants[i];
          changed = true;
        }
      }
  }
}

void reduce_rows(Rows& rows, std::vector<Patch>& patches) {
  if (patches.empty()) return;
  for (size_t r = 0; r < rows.size(); ++r) {
    int64_t divisor = 0;
    for (int64_t c : rows[r]) divisor = std::gcd(divisor, c);
    for (const Patch& p : patches) divisor = std::gcd(divisor, p.constants[r] - patches[0].constants[r]);
    if (divisor <= 1) continue;
    for (int64_t& c : rows[r]) c /= divisor;
    for (Patch& p : patches) p.constants[r] = floor_quotient(p.constants[r], divisor);
  }
}

bool image_boxes(const Rows& rows, const Patch& patch, size_t limit, BoxList& out) {
  const size_t digits = patch.box.size();
  // Per row the interval that its own digits span; digits that do not fit into it are listed.
  Box span;
  std::vector<size_t> listed;
  std::vector<bool> is_listed(digits, false);
  for (size_t k = 0; k < digits; ++k) {
    if (patch.box[k].size() <= 1) continue;
    size_t uses = 0;
    for (const auto& row : rows) uses += row[k] != 0;
    if (uses > 1) is_listed[k] = true;
  }
  for (size_t r = 0; r < rows.size(); ++r) {
    int64_t base = patch.constants[r];
    std::vector<size_t> own;
    for (size_t k = 0; k < digits; ++k) {
      if (rows[r][k] == 0) continue;
      if (patch.box[k].size() == 1)
        base += rows[r][k] * patch.box[k].lo;
      else if (!is_listed[k])
        own.push_back(k);
    }
    std::sort(own.begin(), own.end(), [&](size_t a, size_t b) { return std::abs(rows[r][a]) < std::abs(rows[r][b]); });
    Interval values{base, base};
    for (size_t k : own) {
      const int64_t c = rows[r][k];
      if (std::abs(c) > values.size()) {
        is_listed[k] = true;
        continue;
      }
      int64_t a = c * patch.box[k].lo, b = c * patch.box[k].hi;
      values = {values.lo + std::min(a, b), values.hi + std::max(a, b)};
    }
    span.push_back(values);
  }
  Wide lists = 1;
  for (size_t k = 0; k < digits; ++k)
    if (is_listed[k]) {
      listed.push_back(k);
      lists *= patch.box[k].size();
    }
  if (lists + out.size() > static_cast<Wide>(limit)) return false;
  std::vector<int64_t> value;
  for (size_t k : listed) value.push_back(patch.box[k].lo);
  while (true) {
    Box at = span;
    for (size_t r = 0; r < rows.size(); ++r)
      for (size_t i = 0; i < listed.size(); ++i) {
        at[r].lo += rows[r][listed[i]] * value[i];
        at[r].hi += rows[r][listed[i]] * value[i];
      }
    out.push(at);
    size_t i = 0;
    for (; i < listed.size(); ++i) {
      if (++value[i] <= patch.box[listed[i]].hi) break;
      value[i] = patch.box[listed[i]].lo;
    }
    if (i == listed.size()) return true;
  }
}

namespace {

/// A row f whose small steps span less than its next larger step g says the same as the pair (floor(f/g), f
/// mod g). Splits where all patches agree on it and values would otherwise have gaps.
void split_rows(Rows& rows, std::vector<Patch>& patches) {
  const std::vector<bool> moves = moving_digits(rows.empty() ? 0 : rows[0].size(), patches);
  for (size_t r = 0; r < rows.size(); ++r) {
    std::set<int64_t> steps;
    for (size_t k = 0; k < moves.size(); ++k)
      if (moves[k] && rows[r][k] != 0) steps.insert(std::abs(rows[r][k]));
    for (int64_t g : steps) {
      if (g == 1) continue;
      std::vector<int64_t> high(moves.size(), 0), low = rows[r];
      bool divides = true;
      for (size_t k = 0; k < moves.size(); ++k) {
        if (rows[r][k] == 0 || (moves[k] && std::abs(rows[r][k]) < g)) continue;
        if (moves[k] && rows[r][k] % g != 0) divides = false;
        if (rows[r][k] % g == 0) high[k] = rows[r][k] / g, low[k] = 0;
      }
      if (!divides) continue;
      std::vector<Range> below;
      for (const Patch& p : patches) below.push_back(range_of(low, p.constants[r], p.box));
      Wide origin = below[0].lo;
      std::vector<int64_t> quotient;
      bool fits = true;
      for (const Range& range : below) {
        auto floor_of = [&](Wide v) { return (v - origin) / g - ((v - origin) % g < 0); };
        fits &= floor_of(range.lo) == floor_of(range.hi);
        quotient.push_back(static_cast<int64_t>(floor_of(range.lo)));
      }
      if (!fits) continue;
      rows[r] = low;
      rows.push_back(high);
      for (size_t p = 0; p < patches.size(); ++p) {
        patches[p].constants[r] -= g * quotient[p];
        patches[p].constants.push_back(quotient[p]);
      }
      break;  // what remains in `low` is smaller than g; the new row is visited later
    }
  }
}

bool list_points(const Rows& rows, const std::vector<Patch>& patches, Wide& size) {
  std::set<std::vector<int64_t>> points;
  int64_t visited = 0;
  for (const Patch& p : patches) {
    std::vector<size_t> active;
    std::vector<int64_t> point = p.constants;
    Wide count = 1;
    for (size_t k = 0; k < p.box.size(); ++k) {
      bool used = std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return row[k] != 0; });
      if (!used) continue;
      for (size_t r = 0; r < rows.size(); ++r) point[r] += rows[r][k] * p.box[k].lo;
      if (p.box[k].size() > 1) active.push_back(k), count *= p.box[k].size();
    }
    if (count + visited > kListLimit) return false;
    visited += static_cast<int64_t>(count);
    std::vector<int64_t> value(active.size(), 0);
    while (true) {
      points.insert(point);
      size_t i = 0;
      for (; i < active.size(); ++i) {
        const size_t k = active[i];
        int64_t by = 1;
        if (++value[i] == p.box[k].size()) by = 1 - value[i], value[i] = 0;
        for (size_t r = 0; r < rows.size(); ++r) point[r] += rows[r][k] * by;
        if (by == 1) break;
      }
      if (i == active.size()) break;
    }
  }
  size = static_cast<Wide>(points.size());
  return true;
}

}  // namespace

std::variant<Wide, Reason> image_size(Rows rows, std::vector<Patch> patches) {
  std::erase_if(patches, [](const Patch& p) { return is_empty(p.box); });
  if (patches.empty()) return Wide{0};
  separate_rows(rows, patches, false);
  reduce_rows(rows, patches);
  for (bool split : {false, true}) {
    if (split) split_rows(rows, patches);
    BoxList boxes(static_cast<int>(rows.size()));
    bool fits = std::all_of(patches.begin(), patches.end(), [&](const Patch& p) {
      return image_boxes(rows, p, split ? kBoxLimit : patches.size(), boxes);
    });
    if (fits) return union_volume(boxes);
  }
  Wide size = 0;
  if (list_points(rows, patches, size)) return size;
  return Reason{.what = "the points that a map reaches form no boxes",
                .needs = text("coordinates with digits of their own, or at most ", kListLimit, " points"),
                .hint = "use a smaller domain, or give each iterator its own coordinate"};
}

}  // namespace sator::dataflow
