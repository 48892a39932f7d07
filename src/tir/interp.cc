#include "tir/interp.h"

#include "runtime/tensor.h"
#include "tir/empty_reductions.h"
#include "tir/interp_machine.h"

namespace sator::tir {

using interp::BlockCounter, interp::Compiler, interp::Exec, interp::Int, interp::Machine, interp::Memory,
    interp::Returned, interp::Round, interp::Slot, interp::Strands, interp::Wrap;

ArrayView view(const runtime::Tensor& tensor) {
  ArrayView out;
  out.data = tensor.data();
  out.dtype = tensor.dtype();
  for (size_t i = 0; i < static_cast<size_t>(tensor.rank()); ++i) out.shape.push_back(tensor.dim(i));
  return out;
}

struct Interpreter::Compiled {
  /// A size that an argument's shape gives, or that it must have.
  struct Extent {
    size_t param, dim;
    bool is_stride, binds;
    size_t slot;
    Int expected;
  };
  PrimFuncRef func;
  std::string name;
  int slots = 0, vectors = 0, buffers = 0, allocations = 0;
  std::vector<std::string> counters;
  std::vector<Extent> extents;
  std::vector<size_t> param_slots;       ///< of scalars and of the pointers behind buffers
  std::vector<size_t> offset_slots;      ///< symbolic offsets of buffers: 0
  std::vector<BufferRef> param_buffers;  ///< null for scalars
  std::vector<Exec> declarations;
  Exec body;
};

Interpreter::Interpreter(Interpreter&&) noexcept = default;
Interpreter::~Interpreter() = default;

Interpreter::Interpreter(PrimFuncRef func) : compiled_(std::make_unique<Compiled>()) {
  Compiled& c = *compiled_;
  if (Stmt body = with_empty_reductions(func->body); body != func->body) func = with(func, &PrimFunc::body, body);
  c.func = func;
  c.name = string_attr(func->attrs, "global_symbol").value_or("main");
  Compiler compiler(*func);
  std::unordered_map<const Var*, bool> known;
  for (const VarRef& p : func->params) {
    BufferRef buffer = func->buffer_of(p);
    c.param_buffers.push_back(buffer);
    c.param_slots.push_back(static_cast<size_t>(compiler.slot(buffer ? *buffer->data : *p)));
    known[p.get()] = true;
  }
  // Sizes that stand alone are bound first; what is computed from them is compared after.
  for (bool binds : {true, false}) {
    for (size_t k = 0; k < c.param_buffers.size(); ++k) {
      if (!c.param_buffers[k]) continue;
      const Buffer& b = *c.param_buffers[k];
      auto visit = [&](const std::vector<Expr>& list, bool is_stride) {
        for (size_t d = 0; d < list.size(); ++d) {
          const Var* v = list[d].as<Var>();
          bool is_binding = binds && v && !known.count(v);
          if (is_binding) {
            known[v] = true;
            c.extents.push_back({k, d, is_stride, true, static_cast<size_t>(compiler.slot(*v)), nullptr});
          } else if (!binds) {
            c.extents.push_back({k, d, is_stride, false, 0, compiler.integer(list[d])});
          }
        }
      };
      visit(b.shape, false);
      visit(b.strides, true);
      const Var* offset = b.elem_offset ? b.elem_offset.as<Var>() : nullptr;
      if (binds && offset && !known.count(offset)) {
        known[offset] = true;
        c.offset_slots.push_back(static_cast<size_t>(compiler.slot(*offset)));
      }
    }
  }
  for (const BufferRef& b : c.param_buffers) {
    if (b) c.declarations.push_back(compiler.declare_once(*b));
  }
  c.body = compiler.stmt(func->body);
  c.slots = compiler.slots;
  c.vectors = compiler.vectors;
  c.buffers = compiler.buffers;
  c.allocations = compiler.allocations;
  c.counters = std::move(compiler.counters);
}

std::optional<Scalar> Interpreter::run(std::span<const Argument> args, const RunOptions& options) const {
  const Compiled& c = *compiled_;
  Machine m;
  m.slots.resize(static_cast<size_t>(c.slots));
  m.vectors.resize(static_cast<size_t>(c.vectors));
  m.buffers.resize(static_cast<size_t>(c.buffers));
  m.allocations.resize(static_cast<size_t>(c.allocations));
  for (const std::string& name : c.counters) m.counters.push_back({name, {}});
  m.options = &options;
  Strands strands;
  if (options.detect_races) m.strands = &strands;
  m.iterations_left = options.max_iterations > 0 ? options.max_iterations : INT64_MAX;
  m.function = &c.name;

  if (args.size() != c.param_slots.size())
    m.fail({.what = text(args.size(), " arguments for ", c.param_slots.size(), " parameters"),
            .needs = "one argument per parameter",
            .hint = "count them"});
  std::vector<Memory> memories(args.size());
  std::vector<std::vector<int64_t>> strides(args.size());
  for (size_t k = 0; k < args.size(); ++k) {
    const VarRef& param = c.func->params[k];
    const BufferRef& buffer = c.param_buffers[k];
    const ArrayView* array = std::get_if<ArrayView>(&args[k]);
    if (!buffer) {
      Slot& slot = m.slots[c.param_slots[k]];
      const int64_t* i = std::get_if<int64_t>(&args[k]);
      const double* d = std::get_if<double>(&args[k]);
      if (array && param->dtype.is_handle()) {
        memories[k] = {static_cast<uint8_t*>(array->data), 0, {}, {}, {}};
        memories[k].size_bytes = array->dtype.bytes();
        for (int64_t extent : array->shape) memories[k].size_bytes *= extent;
        slot.p = {&memories[k], 0};
      } else if (d && param->dtype.is_float()) {
        slot.f = Round(param->dtype)(*d);
      } else if (i && !param->dtype.is_float() && !param->dtype.is_handle()) {
        slot.i = Wrap(param->dtype)(static_cast<uint64_t>(*i));
      } else {
        m.fail({.what = text("the argument for ", param->name, " is no ", param->dtype),
                .needs = "a number of the parameter's kind",
                .hint = "check the order of the arguments"});
      }
      continue;
    }
    if (!array || array->dtype != buffer->dtype || array->shape.size() != buffer->shape.size())
      m.fail(
          {.what = array
                       ? text("the argument for ", buffer->name, " is ", array->dtype, " of rank ", array->shape.size())
                       : text("the argument for ", buffer->name, " is no array"),
           .needs = text(buffer->dtype, " of rank ", buffer->rank()),
           .hint = "check the order of the arguments"});
    // From the first to the last element that strides and shape reach.
    int64_t step = 1, last = 0;
    strides[k].resize(array->shape.size());
    bool is_compact = array->strides.empty();
    if (!is_compact && array->strides.size() != array->shape.size())
      m.fail({.what = text("the argument for ", buffer->name, " has ", array->strides.size(), " strides"),
              .needs = "one per dimension, or none",
              .hint = "correct the view"});
    for (size_t d = array->shape.size(); d-- > 0;) {
      strides[k][d] = is_compact ? step : array->strides[d];
      if (buffer->strides.empty() && strides[k][d] != step && array->shape[d] != 1)
        m.fail({.what = text("the argument for ", buffer->name, " is not compact"),
                .needs = "a row-major array, since the buffer declares no strides",
                .hint = "copy it"});
      step *= array->shape[d];
      last += (array->shape[d] - 1) * strides[k][d];
    }
    memories[k] = {static_cast<uint8_t*>(array->data), step == 0 ? 0 : (last + 1) * array->dtype.bytes(), {}, {}, {}};
    if (options.detect_uninitialised && !array->is_initialised)
      memories[k].written.assign(static_cast<size_t>(memories[k].size_bytes), 0);
    if (options.detect_races) memories[k].accesses.resize(static_cast<size_t>(memories[k].size_bytes));
    m.slots[c.param_slots[k]].p = {&memories[k], 0};
  }
  for (const Compiled::Extent& e : c.extents) {
    const ArrayView& array = std::get<ArrayView>(args[e.param]);
    int64_t have = e.is_stride ? strides[e.param][e.dim] : array.shape[e.dim];
    if (e.binds) {
      m.slots[e.slot].i = have;
      continue;
    }
    int64_t want = e.expected->eval(m, 0);
    if (want != have)
      m.fail({.what = text(e.is_stride ? "stride " : "extent ",
                           e.dim,
                           " of the argument for ",
                           c.param_buffers[e.param]->name,
                           " is ",
                           have,
                           ", not ",
                           want),
              .needs = "the shape that the function declares, with one value per symbolic size",
              .hint = "check the arguments' shapes"});
  }
  for (const Exec& e : c.declarations) e->run(m);
  std::optional<Scalar> result;
  try {
    c.body->run(m);
  } catch (const Returned& returned) {
    result = returned.value;
  }
  if (options.counts) {
    for (const BlockCounter& counter : m.counters) {
      BlockCount& out = (*options.counts)[counter.name];
      out.instances += counter.count.instances;
      out.multiply_adds += counter.count.multiply_adds;
    }
  }
  return result;
}

void run(const PrimFunc& func, std::span<const Ref<runtime::Tensor>> args, const RunOptions& options) {
  std::vector<Argument> views;
  for (const Ref<runtime::Tensor>& t : args) views.push_back(view(*t));
  Interpreter(ref(func)).run(views, options);
}

}  // namespace sator::tir
