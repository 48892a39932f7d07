// Statements as closures: blocks, loops, stores, memory.
#include <algorithm>
#include <cstring>

#include "tir/interp_machine.h"
#include "tir/print.h"

namespace sator::tir::interp {

void Address::out_of_bounds(Machine& m, size_t dim, int64_t index) const {
  int64_t extent = m.buffers[static_cast<size_t>(buffer)].shape[dim];
  m.fail({.what = text(
              "index ", index, " is outside of dimension ", dim, " of the buffer ", name, ", whose extent is ", extent),
          .needs = "0 <= index < extent",
          .hint = "check the bounds of the loops, or guard the access with T.where or T.if_then_else"});
}
void Address::out_of_memory(Machine& m) const {
  m.fail({.what = text("an element of the buffer ", name, " lies outside of the memory behind its pointer"),
          .needs = "a buffer no larger than its memory",
          .hint = "check shape, strides and elem_offset"});
}
void Address::unwritten(Machine& m) const {
  m.fail({.what = text("an element of the buffer ", name, " is read before anything was written to it"),
          .needs = "a write before each read",
          .hint = "check init blocks and the order of blocks"});
}

void Address::race(Machine& m) const {
  m.fail({.what = text("iterations that may run at the same time touch one element of the buffer ",
                       name,
                       ", and one of them changes it"),
          .needs = "iterations of parallel, vectorized and bound loops that do not wait for each other",
          .hint = "run the loop serially, or give each iteration memory of its own"});
}

void Machine::fail(Reason reason) const {
  const std::string& name = counters[block].name;
  std::string where = text("in func ", *function);
  if (!name.empty()) where += text(", block \"", name, "\"");
  reason.where = reason.where.empty() ? where : where + ", " + reason.where;
  sator::fail(std::move(reason));
}
void Machine::out_of_steps() const {
  fail({.what = text("more than ", options->max_iterations, " loop iterations"),
        .needs = "a program that ends within the limit",
        .hint = "raise max_iterations, or use smaller shapes"});
}

namespace {

template <class T>
void write(uint8_t* p, T v) {
  std::memcpy(p, &v, sizeof v);
}

}  // namespace

void write_int(uint8_t* p, int64_t v, DType d) {
  switch (d.element_bytes()) {
    case 1: return write(p, static_cast<uint8_t>(v));
    case 2: return write(p, static_cast<uint16_t>(v));
    case 4: return write(p, static_cast<uint32_t>(v));
    default: return write(p, v);
  }
}
void write_float(uint8_t* p, double v, DType d) {
  if (d.bits == 32)
    write(p, static_cast<float>(v));
  else if (d.bits == 64)
    write(p, v);
  else if (d.is_float8())
    write(p, f32_to_f8(static_cast<float>(v), d.code));
  else
    write(p, d.is_bfloat() ? f32_to_bf16(static_cast<float>(v)) : f32_to_f16(static_cast<float>(v)));
}

namespace {

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
  fail({.what = text(what, " has no meaning in the interpreter"),
        .needs = "an operation that a single thread of a CPU can do",
        .hint = "run the program before it is lowered for its target",
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
    if (!p.memory)
      m.fail({.what = text("the buffer ", name, " has no memory"),
              .needs = "a pointer that was allocated or passed",
              .hint = "check the order of allocations"});
    s.begin = p.memory->data;
    s.end = s.begin + p.memory->size_bytes;
    s.written = p.memory->written.empty() ? nullptr : p.memory->written.data();
    s.accesses = p.memory->accesses.empty() ? nullptr : p.memory->accesses.data();
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
        place->write(m, p, [&] { write(p, x); });
        if (counts) ++m.counters[m.block].count.multiply_adds;
      });
    if (v.f)
      return exec_code([place, f = std::move(v.f), counts, d](Machine& m) {
        double x = f->eval(m, 0);
        uint8_t* p = place->at(m, 0);
        place->write(m, p, [&] { write_float(p, x, d); });
        if (counts) ++m.counters[m.block].count.multiply_adds;
      });
    return exec_code([place, i = std::move(v.i), counts, d](Machine& m) {
      int64_t x = i->eval(m, 0);
      uint8_t* p = place->at(m, 0);
      place->write(m, p, [&] { write_int(p, x, d); });
      if (counts) ++m.counters[m.block].count.multiply_adds;
    });
  }
  auto held = std::make_shared<Value>(std::move(v));
  return exec_code([place, held, counts, d, lanes, per_element, bytes](Machine& m) {
    std::vector<Slot> values(static_cast<size_t>(lanes));
    for (int l = 0; l < lanes; ++l) {
      if (!m.runs(l, lanes)) continue;
      if (held->f)
        values[static_cast<size_t>(l)].f = held->f->eval(m, l);
      else
        values[static_cast<size_t>(l)].i = held->i->eval(m, l);
    }
    for (int l = 0; l < lanes; ++l) {
      if (!m.runs(l, lanes)) continue;
      uint8_t* element = place->at(m, l / per_element);
      uint8_t* p = element + (l % per_element) * bytes;
      place->write(m, element, [&] {
        if (held->f)
          write_float(p, values[static_cast<size_t>(l)].f, d);
        else
          write_int(p, values[static_cast<size_t>(l)].i, d);
      });
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
        m.fail({.what = text("the allocation ", name, " is larger than ", m.options->max_bytes, " bytes, or negative"),
                .needs = "an allocation within max_bytes",
                .hint = "use smaller shapes"});
    }
    Memory& memory = m.allocations[index];
    // Memory stays with its allocation: blocks inside loops allocate at each instance.
    if (static_cast<int64_t>(memory.owned.size()) < bytes) memory.owned.resize(static_cast<size_t>(bytes));
    memory.data = memory.owned.data();
    memory.size_bytes = bytes;
    const auto tracked = static_cast<size_t>(std::max<int64_t>(bytes, 1));
    if (m.options->detect_uninitialised) memory.written.assign(tracked, 0);
    if (m.strands) memory.accesses.assign(tracked, {});
    m.slots[pointer].p = {&memory, 0};
  });
}

Exec Compiler::evaluate(const Expr& e) {
  if (e.as<StringImm>()) return exec_code([](Machine&) {});
  Value v = value(e);
  int lanes = std::max<int>(1, e->dtype.lanes);
  auto held = std::make_shared<Value>(std::move(v));
  return exec_code([held, lanes](Machine& m) {
    for (int l = 0; l < lanes; ++l) {
      if (held->i)
        held->i->eval(m, l);
      else if (held->f)
        held->f->eval(m, l);
      else if (held->p)
        held->p->eval(m, l);
    }
  });
}

/// Each lane takes its branch: both branches run, each with the lanes that take it.
static Exec branch_by_lane(Int condition, int lanes, Exec then, Exec otherwise) {
  return exec_code(
      [condition = std::move(condition), lanes, then = std::move(then), otherwise = std::move(otherwise)](Machine& m) {
        const std::vector<bool>* outer = m.mask;
        const int width = std::max(lanes, outer ? static_cast<int>(outer->size()) : 0);
        std::vector<bool> yes(static_cast<size_t>(width)), no(static_cast<size_t>(width));
        for (int l = 0; l < width; ++l) {
          if (!m.runs(l, width)) continue;
          const bool holds = condition->eval(m, l / (width / lanes)) != 0;
          yes[static_cast<size_t>(l)] = holds;
          no[static_cast<size_t>(l)] = !holds;
        }
        m.mask = &yes;
        then->run(m);
        m.mask = &no;
        if (otherwise) otherwise->run(m);
        m.mask = outer;
      });
}

Exec Compiler::stmt(const Stmt& s) {
  return match(
      s,
      [&](const Block& n) { return block(n, nullptr); },
      [&](const BlockRealize& n) { return block(*n.block, &n); },
      [&](const For& n) -> Exec {
        Int min = integer(n.min), extent = integer(n.extent);
        auto index = static_cast<size_t>(slot(*n.var));
        const bool at_once = n.kind == LoopKind::parallel || n.kind == LoopKind::vectorized ||
                             (n.kind == LoopKind::thread_binding && n.thread.starts_with("blockIdx."));
        return exec_code(
            [min = std::move(min), extent = std::move(extent), index, at_once, body = stmt(n.body)](Machine& m) {
              int64_t low = min->eval(m, 0), count = extent->eval(m, 0);
              Strands::Run run(at_once ? m.strands : nullptr);
              for (int64_t i = 0; i < count; ++i) {
                run.begin_iteration();
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
        if (const int lanes = n.condition->dtype.lanes; lanes > 1)
          return branch_by_lane(std::move(condition), lanes, std::move(then), std::move(otherwise));
        return exec_code(
            [condition = std::move(condition), then = std::move(then), otherwise = std::move(otherwise)](Machine& m) {
              if (condition->eval(m, 0))
                then->run(m);
              else if (otherwise)
                otherwise->run(m);
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
          if (!condition->eval(m, 0))
            m.fail({.what = text("the assertion ", what, " does not hold", words.empty() ? "" : ": ", words),
                    .needs = what,
                    .hint = "check the arguments"});
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
