#include "dataflow/cost/pass_form.h"

#include <algorithm>
#include <map>
#include <set>

#include "dataflow/programs/masks.h"

namespace sator::dataflow {

namespace {

/// The iterators of a product with more than one value, by what they do.
struct Axes {
  std::vector<size_t> batch, rows, columns, reduced;
  bool known = true;  // false: one of them does something else
};

Axes axes_of(const PassForm::Part& part, const Domain& domain) {
  Axes axes;
  for (size_t x = 0; x < domain.extent.size(); ++x) {
    if (domain.extent[x] < 2) continue;
    const bool input = part.product.in(x, part.input), weight = part.product.in(x, part.weight),
               output = part.product.uses[x].output;
    if (input && weight)
      (output ? axes.batch : axes.reduced).push_back(x);
    else if (output && (input || weight))
      (input ? axes.rows : axes.columns).push_back(x);
    else
      axes.known = false;
  }
  return axes;
}

std::vector<int64_t> extents(const std::vector<size_t>& iterators, const Domain& domain) {
  std::vector<int64_t> all;
  for (size_t x : iterators) all.push_back(domain.extent[x]);
  return all;
}

int64_t product_of_all(const std::vector<int64_t>& values) {
  int64_t all = 1;
  for (int64_t v : values) all *= v;
  return all;
}

/// Whether statements hand the first product's output on to the second's input, and nothing else comes between.
bool hands_on(const PassForm& form) {
  std::set<std::string> made = {form.work(form.first).statement.accesses[form.first.output].tensor};
  for (size_t s : form.between) {
    const Work& work = form.merged.works[s];
    bool takes = false;
    for (size_t a = 0; a < work.operands.size(); ++a) {
      if (!work.operands[a].internal) return false;
      takes |= work.statement.accesses[a].role == Role::read && made.contains(work.statement.accesses[a].tensor);
    }
    if (!takes) return false;
    for (const Access& access : work.statement.accesses)
      if (access.role == Role::write) made.insert(access.tensor);
  }
  return made.contains(form.work(form.second).statement.accesses[form.second.input].tensor);
}

/// Statements around the products: those before make the first one's input, those after take what the others have made.
bool surrounds(const PassForm& form) {
  for (size_t s : form.before)
    for (size_t a = 0; a < form.merged.works[s].operands.size(); ++a)
      if (form.merged.works[s].statement.accesses[a].role == Role::write && !form.merged.works[s].operands[a].internal)
        return false;
  for (size_t s : form.after)
    for (size_t a = 0; a < form.merged.works[s].operands.size(); ++a)
      if (form.merged.works[s].statement.accesses[a].role == Role::read && !form.merged.works[s].operands[a].internal)
        return false;
  return true;
}

}  // namespace

std::optional<PassForm> pass_form_of(const Kernel& kernel, const Chip& chip) {
  if (!kernel.one_pass) return {};
  PassForm form{.merged = merge_producers(kernel, chip)};
  const Merged& merged = form.merged;
  if (!merged.made.empty()) return {};
  std::vector<PassForm::Part> parts;
  for (size_t s = 0; s < merged.works.size(); ++s) {
    if (merged.gone[s]) return {};
    if (!merged.products[s]) {
      (parts.empty() ? form.before : parts.size() == 1 ? form.between : form.after).push_back(s);
      continue;
    }
    PassForm::Part& part = parts.emplace_back(PassForm::Part{.statement = s, .product = *merged.products[s]});
    part.weight = weight_of(merged.works[s], part.product);
    part.input = part.weight == part.product.first ? part.product.second : part.product.first;
    part.output = part.product.output;
    if (merged.works[s].operands.size() != 3) return {};  // factors and output alone
  }
  if (parts.size() != 2) return {};
  form.first = parts[0], form.second = parts[1];
  const Work &first = form.work(form.first), &second = form.work(form.second);
  if (!first.operands[form.first.output].internal || !second.operands[form.second.input].internal) return {};
  const Axes a = axes_of(form.first, first.statement.domain), b = axes_of(form.second, second.statement.domain);
  if (!a.known || !b.known || a.columns.size() > 1 || b.reduced.size() > 1) return {};
  const auto in_first = [&](const std::vector<size_t>& x) { return extents(x, first.statement.domain); };
  const auto in_second = [&](const std::vector<size_t>& x) { return extents(x, second.statement.domain); };
  if (in_first(a.rows) != in_second(b.rows) || in_first(a.batch) != in_second(b.batch) ||
      in_first(a.columns) != in_second(b.reduced))
    return {};
  if (!hands_on(form) || !surrounds(form)) return {};
  form.rows = a.rows;
  if (!a.columns.empty()) form.column = a.columns[0];
  form.batches = product_of_all(in_first(a.batch));
  form.row_count = product_of_all(in_first(a.rows));
  form.columns = product_of_all(in_first(a.columns));
  form.depth = product_of_all(in_first(a.reduced));
  form.values = product_of_all(in_second(b.columns));
  for (size_t s : form.between) form.reduces_between |= merged.works[s].vector_work == VectorWork::reduce;
  return form;
}

std::vector<RowBlock> row_blocks(const PassForm& form, int64_t rows) {
  const Work& work = form.work(form.first);
  const Domain& domain = work.statement.domain;
  std::vector<int64_t> block = domain.extent, from = domain.lower;
  int64_t left = rows;
  for (auto x = form.rows.rbegin(); x != form.rows.rend(); ++x) {
    block[*x] = std::min(domain.extent[*x], std::max<int64_t>(1, left));
    left = block[*x] == domain.extent[*x] ? left / block[*x] : 1;
  }
  std::vector<RowBlock> all;
  for (bool more = true; more;) {
    std::vector<int64_t> size = block;
    RowBlock found{.rows = 1, .begin = 0, .end = 1};
    for (size_t x : form.rows) {
      size[x] = std::min(block[x], domain.lower[x] + domain.extent[x] - from[x]);
      found.rows *= size[x];
    }
    if (form.column) {
      const Span span = unmasked_span(work, *form.column, from, size);
      found.begin = span.begin - domain.lower[*form.column], found.end = span.end - domain.lower[*form.column];
    }
    all.push_back(found);
    more = false;
    for (auto x = form.rows.rbegin(); x != form.rows.rend() && !more; ++x) {
      from[*x] += block[*x];
      more = from[*x] < domain.lower[*x] + domain.extent[*x];
      if (!more) from[*x] = domain.lower[*x];
    }
  }
  return all;
}

}  // namespace sator::dataflow
