#include "dataflow/programs/masked_rows.h"

#include <algorithm>
#include <map>
#include <set>

namespace sator::dataflow {

namespace {

enum class Axis : uint8_t { row, column };

/// The iterator that a coordinate is, if it is nothing else.
std::optional<size_t> plain_iterator(const QuasiAffine& e) {
  if (e.constant != 0 || e.terms.size() != 1 || e.terms[0].division || e.terms[0].coefficient != 1) return {};
  return static_cast<size_t>(e.terms[0].variable);
}

/// Which iterators of a kernel's statements are its rows and its columns: what indexes a tensor where one of them does in another
/// statement is the same axis.
class RowAxes {
 public:
  explicit RowAxes(const Kernel& kernel) : kernel_(kernel), iterators_(kernel.work.size()) {}

  /// Whether all coordinates agree, from the rows and columns of one statement on.
  bool follow(size_t statement, size_t row, size_t column) {
    iterators_[statement] = {{row, Axis::row}, {column, Axis::column}};
    for (bool more = true; more && fits_;) {
      more = false;
      for (size_t s = 0; s < kernel_.work.size(); ++s)
        for (const Access& access : kernel_.work[s].statement.accesses)
          for (const Map& reference : access.references)
            for (size_t d = 0; d < reference.size() && fits_; ++d) more |= join(s, access.tensor, d, reference[d]);
    }
    return fits_;
  }

  std::optional<size_t> iterator(size_t statement, Axis axis) const {
    for (const auto& [x, of] : iterators_[statement])
      if (of == axis) return x;
    return {};
  }

 private:
  /// Takes what is known of a coordinate over to its iterator, or from there. Whether something became known.
  bool join(size_t s, const std::string& tensor, size_t dim, const QuasiAffine& e) {
    const auto coordinate = coordinates_.find({tensor, dim});
    const std::optional<size_t> x = plain_iterator(e);
    if (!x) {
      fits_ &= coordinate == coordinates_.end();
      for (const auto& [labelled, axis] : iterators_[s]) fits_ &= !mentions(e, static_cast<int>(labelled));
      return false;
    }
    const auto iterator = iterators_[s].find(*x);
    const bool knows_iterator = iterator != iterators_[s].end(), knows_coordinate = coordinate != coordinates_.end();
    if (knows_iterator && knows_coordinate) fits_ &= iterator->second == coordinate->second;
    if (knows_iterator == knows_coordinate) return false;
    if (knows_iterator) {
      coordinates_[{tensor, dim}] = iterator->second;
    } else {
      fits_ &= !this->iterator(s, coordinate->second);  // a statement goes over an axis once
      iterators_[s].emplace(*x, coordinate->second);
    }
    return true;
  }

  const Kernel& kernel_;
  std::vector<std::map<size_t, Axis>> iterators_;  // per statement
  std::map<std::pair<std::string, size_t>, Axis> coordinates_;
  bool fits_ = true;
};

/// Whether each element that the statement makes is one row's.
bool writes_row(const Work& work, size_t row) {
  for (const Access& access : work.statement.accesses) {
    if (access.role != Role::write) continue;
    for (const Map& reference : access.references)
      if (std::none_of(
              reference.begin(), reference.end(), [&](const QuasiAffine& e) { return plain_iterator(e) == row; }))
        return false;
  }
  return true;
}

std::optional<MaskedRows> along(const Kernel& kernel, size_t statement, size_t row, size_t column) {
  RowAxes axes(kernel);
  if (!axes.follow(statement, row, column)) return {};
  const Domain& domain = kernel.work[statement].statement.domain;
  MaskedRows found{.rows = domain.extent[row], .columns = domain.extent[column]};
  for (size_t s = 0; s < kernel.work.size(); ++s) {
    const Work& work = kernel.work[s];
    const Domain& own = work.statement.domain;
    const std::optional<size_t> r = axes.iterator(s, Axis::row), c = axes.iterator(s, Axis::column);
    if (!r || !writes_row(work, *r)) return {};
    if (own.lower[*r] != 0 || own.extent[*r] != found.rows) return {};
    if (c && (own.lower[*c] != 0 || own.extent[*c] != found.columns)) return {};
    found.row.push_back(*r);
    found.column.push_back(c);
  }
  return found;
}

}  // namespace

std::optional<MaskedRows> masked_rows_of(const Kernel& kernel) {
  for (size_t s = 0; s < kernel.work.size(); ++s) {
    const Work& work = kernel.work[s];
    std::set<size_t> masked;
    for (size_t x = 0; x < work.statement.domain.extent.size(); ++x)
      for (const QuasiAffine& e : work.only_where)
        if (mentions(e, static_cast<int>(x))) masked.insert(x);
    if (masked.empty()) continue;
    for (size_t row : masked)
      for (size_t column : masked)
        if (row != column)
          if (auto found = along(kernel, s, row, column)) return found;
    return {};
  }
  return {};
}

std::vector<RowsOfKernel> in_blocks(const Kernel& kernel, const MaskedRows& masked, int64_t rows) {
  std::vector<RowsOfKernel> blocks;
  for (int64_t first = 0; first < masked.rows; first += rows) {
    RowsOfKernel block{.kernel = kernel, .rows = {first, std::min(first + rows, masked.rows)}};
    // A statement whose columns nothing masks goes over all of them.
    Span& columns = block.columns;
    columns = {masked.columns, 0};
    for (size_t s = 0; s < kernel.work.size(); ++s) {
      if (!masked.column[s]) continue;
      const Domain& domain = kernel.work[s].statement.domain;
      std::vector<int64_t> from = domain.lower, size = domain.extent;
      from[masked.row[s]] = block.rows.begin, size[masked.row[s]] = block.rows.size();
      const Span seen = unmasked_span(kernel.work[s], *masked.column[s], from, size);
      if (seen.size() > 0) columns = {std::min(columns.begin, seen.begin), std::max(columns.end, seen.end)};
    }
    if (columns.end <= columns.begin) continue;
    for (size_t s = 0; s < kernel.work.size(); ++s) {
      Work& work = block.kernel.work[s];
      Domain& domain = work.statement.domain;
      std::vector<QuasiAffine> moved;
      for (int x = 0; x < domain.rank(); ++x) moved.push_back(variable(x));
      auto cut = [&](size_t x, const Span& to) {
        domain.extent[x] = to.size();
        moved[x] = moved[x] + to.begin;
      };
      cut(masked.row[s], block.rows);
      if (masked.column[s]) cut(*masked.column[s], columns);
      auto move = [&](std::vector<QuasiAffine>& all) {
        for (QuasiAffine& e : all) e = substitute(e, moved);
      };
      move(domain.guards), move(work.only_where);
      for (Operand& o : work.operands) move(o.lies_outside_where);
    }
    blocks.push_back(std::move(block));
  }
  return blocks;
}

}  // namespace sator::dataflow
