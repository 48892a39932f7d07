// Blocks as closures: bindings, domains, init, matched buffers.
#include "tir/interp_machine.h"
#include "tir/print.h"

namespace sator::tir::interp {

Exec Compiler::match_buffer(const MatchBuffer& n) {
  const Buffer &b = *n.buffer, &source = *n.source->buffer;
  Exec redeclare;
  if (!declared_.count(&source)) redeclare = declare(source);
  auto from = static_cast<size_t>(buffer(source)), to = static_cast<size_t>(buffer(b));
  auto source_data = static_cast<size_t>(slot(*source.data)), data = static_cast<size_t>(slot(*b.data));
  auto begin = std::make_shared<std::vector<Int>>(), extent = std::make_shared<std::vector<Int>>();
  for (const RangeRef& r : n.source->region) {
    begin->push_back(integer(r->min));
    extent->push_back(integer(r->extent));
  }
  struct Bound {
    size_t dim, slot;
  };
  std::vector<Bound> shape_vars, stride_vars;
  auto note = [&](const std::vector<Expr>& list, std::vector<Bound>& out) {
    for (size_t d = 0; d < list.size(); ++d) {
      if (const Var* v = list[d].as<Var>(); v && !slots_.count(v)) out.push_back({d, static_cast<size_t>(slot(*v))});
    }
  };
  note(b.shape, shape_vars);
  note(b.strides, stride_vars);
  const Var* offset_var = b.elem_offset ? b.elem_offset.as<Var>() : nullptr;
  std::optional<size_t> offset_slot;
  if (offset_var && !slots_.count(offset_var)) offset_slot = static_cast<size_t>(slot(*offset_var));
  declared_.emplace(&b, true);
  size_t rank = b.shape.size(), skipped = n.source->region.size() - std::min(rank, n.source->region.size());
  auto shape = std::make_shared<std::vector<Int>>();
  for (const Expr& e : b.shape) shape->push_back(e.as<Var>() ? nullptr : integer(e));
  int64_t bytes = source.dtype.bytes();
  std::string name = b.name;
  auto again = std::shared_ptr<Code>(std::move(redeclare));
  return exec_code([=](Machine& m) {
    if (again) again->run(m);
    BufferState view = m.buffers[from];
    int64_t offset = 0;
    std::vector<int64_t> extents;
    for (size_t d = 0; d < begin->size(); ++d) {
      int64_t low = (*begin)[d]->eval(m, 0), size = (*extent)[d]->eval(m, 0);
      if (low < 0 || size < 0 || low > view.shape[d] - size)
        m.fail({.what = text("the region of ",
                             name,
                             " leaves its source in dimension ",
                             d,
                             ": ",
                             low,
                             " to ",
                             low + size,
                             " of ",
                             view.shape[d]),
                .needs = "a region inside the buffer",
                .hint = "check the bindings"});
      offset += low * view.strides[d];
      extents.push_back(size);
    }
    view.base += offset * bytes;
    view.shape.assign(extents.begin() + static_cast<std::ptrdiff_t>(skipped), extents.end());
    view.strides.erase(view.strides.begin(), view.strides.begin() + static_cast<std::ptrdiff_t>(skipped));
    m.slots[data].p = m.slots[source_data].p;
    for (const Bound& v : shape_vars) m.slots[v.slot].i = view.shape[v.dim];
    for (const Bound& v : stride_vars) m.slots[v.slot].i = view.strides[v.dim];
    if (offset_slot) m.slots[*offset_slot].i = (view.base - view.begin) / bytes;
    for (size_t d = 0; d < shape->size(); ++d) {
      if ((*shape)[d] && (*shape)[d]->eval(m, 0) != view.shape[d])
        m.fail({.what = text(
                    "the buffer ", name, " has extent ", (*shape)[d]->eval(m, 0), " for a region of ", view.shape[d]),
                .needs = "the shape of the region",
                .hint = "check the shape"});
    }
    m.buffers[to] = std::move(view);
  });
}

Exec Compiler::block(const Block& b, const BlockRealize* realize) {
  struct Iter {
    size_t slot;
    Int value, min, extent;
    bool is_reduction;
    std::string name;
  };
  auto iters = std::make_shared<std::vector<Iter>>();
  // Bindings, domains and predicate stand outside of the block.
  for (size_t k = 0; k < b.iter_vars.size(); ++k) {
    const IterVar& iter = *b.iter_vars[k];
    Iter out;
    if (realize)
      out.value = integer(realize->values[k]);
    else
      unsupported("a block with iterators that is not realized");
    out.min = integer(iter.dom->min);
    out.extent = integer(iter.dom->extent);
    out.is_reduction = iter.kind == IterKind::reduce;
    out.name = iter.var->name;
    iters->push_back(std::move(out));
  }
  std::shared_ptr<IntCode> predicate;
  if (realize && !is_one(realize->predicate)) predicate = integer(realize->predicate);
  for (size_t k = 0; k < b.iter_vars.size(); ++k) (*iters)[k].slot = static_cast<size_t>(slot(*b.iter_vars[k]->var));
  auto setup = std::make_shared<std::vector<Exec>>();
  for (const BufferRef& a : b.alloc_buffers) {
    setup->push_back(allocate(a->data,
                              a->dtype,
                              a->strides.empty() ? a->shape : std::vector<Expr>{a->strides[0] * a->shape[0]},
                              allocations++));
    setup->push_back(declare_once(*a));
  }
  for (const MatchBufferRef& m : b.match_buffers) setup->push_back(match_buffer(*m));
  std::shared_ptr<Code> init;
  if (b.init) init = stmt(b.init);
  std::shared_ptr<Code> body = stmt(b.body);
  size_t count = counter(b.iter_vars.empty() && b.name->text == "root" ? "" : b.name->text);
  return exec_code([=](Machine& m) {
    if (predicate && !predicate->eval(m, 0)) return;
    bool is_first = true;
    int64_t values[16];
    std::vector<int64_t> more;
    int64_t* v = values;
    if (iters->size() > 16) {
      more.resize(iters->size());
      v = more.data();
    }
    for (size_t k = 0; k < iters->size(); ++k) {
      const Iter& iter = (*iters)[k];
      v[k] = iter.value->eval(m, 0);
      int64_t low = iter.min->eval(m, 0);
      if (v[k] < low || v[k] - low >= iter.extent->eval(m, 0))
        m.fail({.what = text("iterator ",
                             iter.name,
                             " is ",
                             v[k],
                             ", outside of its domain [",
                             low,
                             ", ",
                             low + iter.extent->eval(m, 0),
                             ")"),
                .needs = "bindings inside the domain wherever the predicate holds",
                .hint = "add the missing T.where"});
      if (iter.is_reduction) is_first &= v[k] == low;
    }
    for (size_t k = 0; k < iters->size(); ++k) m.slots[(*iters)[k].slot].i = v[k];
    size_t outer = std::exchange(m.block, count);
    ++m.counters[count].count.instances;
    for (const Exec& e : *setup) e->run(m);
    if (init && is_first) init->run(m);
    body->run(m);
    m.block = outer;
  });
}

}  // namespace sator::tir::interp
