// Statements as closures: blocks, loops, stores, memory.
#include <algorithm>
#include <cstring>

#include "tir/interp_machine.h"
#include "tir/print.h"

namespace sator::tir::interp {

void Address::out_of_bounds(Machine& m, size_t dim, int64_t index) const {
  int64_t extent = m.buffers[static_cast<size_t>(buffer)].shape[dim];
  m.fail({.what = text("index ", index, " is outside of dimension ", dim, " of the buffer ", name, ", whose extent is ", extent),
          .needs = "0 <= index < extent", .hint = "check the bounds of the loops, or guard the access with T.where or T.if_then_else"});
}
void Address::out_of_memory(Machine& m) const {
  m.fail({.what = text("an element of the buffer ", name, " lies outside of the memory behind its pointer"), .needs = "a buffer no larger than its memory",
          .hint = "check shape, strides and elem_offset"});
}
void Address::unwritten(Machine& m) const {
  m.fail({.what = text("an element of the buffer ", name, " is read before anything was written to it"), .needs = "a write before each read",
          .hint = "check init blocks and the order of blocks"});
}

void Machine::fail(Reason reason) const {
  const std::string& name = counters[block].name;
  std::string where = text("in func ", *function);
  if (!name.empty()) where += text(", block \"", name, "\"");
  reason.where = reason.where.empty() ? where : where + ", " + reason.where;
  sator::fail(std::move(reason));
}
void Machine::out_of_steps() const {
  fail({.what = text("more than ", options->max_iterations, " loop iterations"), .needs = "a program that ends within the limit", .hint = "raise max_iterations, or use smaller shapes"});
}

namespace {

template <class T>
void write(uint8_t* p, T v) {
  std::memcpy(p, &v, sizeof v);
}

/// The element of a dtype written from an integer or a real.
void write_int(uint8_t* p, int64_t v, DType d) {
  switch (d.element_bytes()) {
    case 1: return write(p, static_cast<uint8_t>(v));
    case 2: return write(p, static_cast<uint16_t>(v));
    case 4: return write(p, static_cast<uint32_t>(v));
    default: return write(p, v);
  }
}
void write_float(uint8_t* p, double v, DType d) {
  if (d.bits == 32) write(p, static_cast<float>(v));
  else if (d.bits == 64) write(p, v);
  else write(p, d.is_bfloat() ? f32_to_bf16(static_cast<float>(v)) : f32_to_f16(static_cast<float>(v)));
}

/// Whether a store is x = x + a * b.
bool is_multiply_add(const BufferStore& n) {
  auto is_same_place = [&](const Expr& e) {
    const BufferLoad* l = e.as<BufferLoad>();
    if (!l || l->buffer != n.buffer || l->indices.size() != n.indices.size()) return false;
    for (size_t i = 0; i < l->indices.size(); ++i) {
      if (!equal(l->indices[i], n.indices[i])) return false;
    }
    return true;
  };
  auto is_product = [](const Expr& e) {
    const Cast* c = e.as<Cast>();
    return (c ? c->value : e).as<Mul>() != nullptr;
  };
  const Add* sum = n.value.as<Add>();
  if (sum) return (is_same_place(sum->a) && is_product(sum->b)) || (is_same_place(sum->b) && is_product(sum->a));
  const Call* c = n.value.as<Call>();
  return c && c->op == "tir.fma" && c->args.size() == 3 && is_same_place(c->args[2]);
}

}  // namespace

void Compiler::unsupported(std::string what) const {
  fail({.what = text(what, " has no meaning in the interpreter"), .needs = "an operation that a single thread of a CPU can do", .hint = "run the program before it is lowered for its target",
        .where = text("in func ", string_attr(func_.attrs, "global_symbol").value_or("main"))});
}

size_t Compiler::counter(const std::string& block) {
  auto at = std::find(counters.begin(), counters.end(), block);
  if (at != counters.end()) return static_cast<size_t>(at - counters.begin());
  counters.push_back(block);
  return counters.size() - 1;
}

int Compiler::buffer(const Buffer& b) {
  auto [at, is_new] = buffers_.emplace(&b, buffers);
  if (is_new) ++buffers;
  return at->second;
}

Exec Compiler::declare(const Buffer& b) {
  auto index = static_cast<size_t>(buffer(b)), data = static_cast<size_t>(slot(*b.data));
  auto shape = std::make_shared<std::vector<Int>>(), strides = std::make_shared<std::vector<Int>>();
  for (const Expr& e : b.shape) shape->push_back(integer(e));
  for (const Expr& e : b.strides) strides->push_back(integer(e));
  std::shared_ptr<IntCode> offset;
  if (b.elem_offset) offset = integer(b.elem_offset);
  int64_t bytes = b.dtype.bytes();
  bool is_constant = !b.elem_offset;
  for (const auto* list : {&b.shape, &b.strides}) {
    for (const Expr& e : *list) is_constant &= as_int(e).has_value();
  }
  std::string name = b.name;
  return exec_code([=](Machine& m) {
    BufferState& s = m.buffers[index];
    Pointer p = m.slots[data].p;
    if (!p.memory) m.fail({.what = text("the buffer ", name, " has no memory"), .needs = "a pointer that was allocated or passed", .hint = "check the order of allocations"});
    s.begin = p.memory->data;
    s.end = s.begin + p.memory->size_bytes;
    s.written = p.memory->written.empty() ? nullptr : p.memory->written.data();
    int64_t first = offset ? offset->eval(m, 0) : 0;
    s.base = s.begin + p.offset_bytes + first * bytes;
    if (is_constant && s.shape.size() == shape->size() && !s.strides.empty()) return;
    s.shape.resize(shape->size());
    s.strides.resize(shape->size());
    for (size_t d = 0; d < shape->size(); ++d) s.shape[d] = (*shape)[d]->eval(m, 0);
    int64_t step = 1;
    for (size_t d = shape->size(); d-- > 0;) {
      s.strides[d] = strides->empty() ? step : (*strides)[d]->eval(m, 0);
      step *= s.shape[d];
    }
  });
}

Exec Compiler::store(const BufferStore& n) {
  auto place = std::make_shared<Address>(address(*n.buffer, n.indices));
  Value v = value(n.value);
  DType d = n.buffer->dtype.element();
  int lanes = n.value->dtype.lanes, per_element = n.buffer->dtype.lanes;
  int64_t bytes = d.element_bytes();
  bool counts = is_multiply_add(n);
  if (v.p) unsupported("a store of a pointer");
  if (lanes == 1) {
    if (v.f && d == f32)
      return exec_code([place, f = std::move(v.f), counts](Machine& m) {
        auto x = static_cast<float>(f->eval(m, 0));
        uint8_t* p = place->at(m, 0);
        write(p, x);
        place->mark_written(m, p);
        if (counts) ++m.counters[m.block].count.multiply_adds;
      });
    if (v.f)
      return exec_code([place, f = std::move(v.f), counts, d](Machine& m) {
        double x = f->eval(m, 0);
        uint8_t* p = place->at(m, 0);
        write_float(p, x, d);
        place->mark_written(m, p);
        if (counts) ++m.counters[m.block].count.multiply_adds;
      });
    return exec_code([place, i = std::move(v.i), counts, d](Machine& m) {
      int64_t x = i->eval(m, 0);
      uint8_t* p = place->at(m, 0);
      write_int(p, x, d);
      place->mark_written(m, p);
      if (counts) ++m.counters[m.block].count.multiply_adds;
    });
  }
  auto held = std::make_shared<Value>(std::move(v));
  return exec_code([place, held, counts, d, lanes, per_element, bytes](Machine& m) {
    std::vector<Slot> values(static_cast<size_t>(lanes));
    for (int l = 0; l < lanes; ++l) {
      if (held->f) values[static_cast<size_t>(l)].f = held->f->eval(m, l);
      else values[static_cast<size_t>(l)].i = held->i->eval(m, l);
    }
    for (int l = 0; l < lanes; ++l) {
      uint8_t* element = place->at(m, l / per_element);
      uint8_t* p = element + (l % per_element) * bytes;
      if (held->f) write_float(p, values[static_cast<size_t>(l)].f, d);
      else write_int(p, values[static_cast<size_t>(l)].i, d);
      place->mark_written(m, element);
      if (counts) ++m.counters[m.block].count.multiply_adds;
    }
  });
}

Exec Compiler::allocate(const VarRef& data, DType dtype, const std::vector<Expr>& extents, int allocation) {
  auto sizes = std::make_shared<std::vector<Int>>();
  for (const Expr& e : extents) sizes->push_back(integer(e));
  auto pointer = static_cast<size_t>(slot(*data));
  auto index = static_cast<size_t>(allocation);
  std::string name = data->name;
  return exec_code([=](Machine& m) {
    int64_t bytes = dtype.bytes();
    for (const Int& size : *sizes) {
      int64_t extent = size->eval(m, 0);
      if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes) || bytes > m.options->max_bytes)
        m.fail({.what = text("the allocation ", name, " is larger than ", m.options->max_bytes, " bytes, or negative"), .needs = "an allocation within max_bytes", .hint = "use smaller shapes"});
    }
    Memory& memory = m.allocations[index];
    // Memory stays with its allocation: blocks inside loops allocate at each instance.
    if (static_cast<int64_t>(memory.owned.size()) < bytes) memory.owned.resize(static_cast<size_t>(bytes));
    memory.data = memory.owned.data();
    memory.size_bytes = bytes;
    if (m.options->detect_uninitialised) memory.written.assign(static_cast<size_t>(std::max<int64_t>(bytes, 1)), 0);
    m.slots[pointer].p = {&memory, 0};
  });
}

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
        m.fail({.what = text("the region of ", name, " leaves its source in dimension ", d, ": ", low, " to ", low + size, " of ", view.shape[d]), .needs = "a region inside the buffer", .hint = "check the bindings"});
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
        m.fail({.what = text("the buffer ", name, " has extent ", (*shape)[d]->eval(m, 0), " for a region of ", view.shape[d]), .needs = "the shape of the region", .hint = "check the shape"});
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
    if (realize) out.value = integer(realize->values[k]);
    else unsupported("a block with iterators that is not realized");
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
    setup->push_back(allocate(a->data, a->dtype, a->strides.empty() ? a->shape : std::vector<Expr>{a->strides[0] * a->shape[0]}, allocations++));
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
        m.fail({.what = text("iterator ", iter.name, " is ", v[k], ", outside of its domain [", low, ", ", low + iter.extent->eval(m, 0), ")"),
                .needs = "bindings inside the domain wherever the predicate holds", .hint = "add the missing T.where"});
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

Exec Compiler::evaluate(const Expr& e) {
  if (e.as<StringImm>()) return exec_code([](Machine&) {});
  Value v = value(e);
  int lanes = std::max<int>(1, e->dtype.lanes);
  auto held = std::make_shared<Value>(std::move(v));
  return exec_code([held, lanes](Machine& m) {
    for (int l = 0; l < lanes; ++l) {
      if (held->i) held->i->eval(m, l);
      else if (held->f) held->f->eval(m, l);
      else if (held->p) held->p->eval(m, l);
    }
  });
}

Exec Compiler::stmt(const Stmt& s) {
  return match(
      s, [&](const Block& n) { return block(n, nullptr); }, [&](const BlockRealize& n) { return block(*n.block, &n); },
      [&](const For& n) -> Exec {
        Int min = integer(n.min), extent = integer(n.extent);
        auto index = static_cast<size_t>(slot(*n.var));
        return exec_code([min = std::move(min), extent = std::move(extent), index, body = stmt(n.body)](Machine& m) {
          int64_t low = min->eval(m, 0), count = extent->eval(m, 0);
          for (int64_t i = 0; i < count; ++i) {
            m.slots[index].i = low + i;
            m.step();
            body->run(m);
          }
        });
      },
      [&](const Seq& n) -> Exec {
        std::vector<Exec> stmts;
        for (const Stmt& inner : n.stmts) stmts.push_back(stmt(inner));
        return exec_code([stmts = std::move(stmts)](Machine& m) {
          for (const Exec& e : stmts) e->run(m);
        });
      },
      [&](const BufferStore& n) { return store(n); },
      [&](const IfThenElse& n) -> Exec {
        Exec otherwise;
        Int condition = integer(n.condition);
        Exec then = stmt(n.then_case);
        if (n.else_case) otherwise = stmt(n.else_case);
        return exec_code([condition = std::move(condition), then = std::move(then), otherwise = std::move(otherwise)](Machine& m) {
          if (condition->eval(m, 0)) then->run(m);
          else if (otherwise) otherwise->run(m);
        });
      },
      [&](const While& n) -> Exec {
        return exec_code([condition = integer(n.condition), body = stmt(n.body)](Machine& m) {
          while (condition->eval(m, 0)) {
            m.step();
            body->run(m);
          }
        });
      },
      [&](const LetStmt& n) -> Exec {
        Exec bind = assign(*n.var, value(n.value));
        return exec_code([bind = std::move(bind), body = stmt(n.body)](Machine& m) {
          bind->run(m);
          body->run(m);
        });
      },
      [&](const AttrStmt& n) -> Exec {
        // A launched thread axis is a loop over the threads.
        const ThreadAxis* axis = n.node.as<ThreadAxis>();
        if (!axis || (n.key != "thread_extent" && n.key != "virtual_thread")) return stmt(n.body);
        Int extent = integer(n.value);
        auto index = static_cast<size_t>(slot(*axis->var));
        return exec_code([extent = std::move(extent), index, body = stmt(n.body)](Machine& m) {
          int64_t count = extent->eval(m, 0);
          for (int64_t i = 0; i < count; ++i) {
            m.slots[index].i = i;
            m.step();
            body->run(m);
          }
        });
      },
      [&](const AssertStmt& n) -> Exec {
        std::string what = text(n.condition);
        const StringImm* message = n.message.as<StringImm>();
        std::string words = message ? message->value : "";
        return exec_code([condition = integer(n.condition), what, words, body = stmt(n.body)](Machine& m) {
          if (!condition->eval(m, 0)) m.fail({.what = text("the assertion ", what, " does not hold", words.empty() ? "" : ": ", words), .needs = what, .hint = "check the arguments"});
          body->run(m);
        });
      },
      [&](const Evaluate& n) { return evaluate(n.value); },
      [&](const Allocate& n) -> Exec {
        Exec memory = allocate(n.data, n.dtype, n.extents, allocations++);
        return exec_code([memory = std::move(memory), body = stmt(n.body)](Machine& m) {
          memory->run(m);
          body->run(m);
        });
      },
      [&](const AllocateConst& n) -> Exec {
        auto pointer = static_cast<size_t>(slot(*n.data));
        auto index = static_cast<size_t>(allocations++);
        return exec_code([pointer, index, bytes = n.bytes, body = stmt(n.body)](Machine& m) {
          Memory& memory = m.allocations[index];
          memory.owned.assign(bytes.begin(), bytes.end());
          memory.data = memory.owned.data();
          memory.size_bytes = static_cast<int64_t>(bytes.size());
          m.slots[pointer].p = {&memory, 0};
          body->run(m);
        });
      },
      [&](const DeclBuffer& n) -> Exec {
        Exec declaration = declare_once(*n.buffer);
        return exec_code([declaration = std::move(declaration), body = stmt(n.body)](Machine& m) {
          declaration->run(m);
          body->run(m);
        });
      });
}

}  // namespace sator::tir::interp
