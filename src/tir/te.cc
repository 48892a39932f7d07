#include "tir/te.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "arith/analyzer.h"
#include "ir/builtins.h"
#include "tir/regions.h"

namespace sator::te {

using tir::IterKind;
using tir::IterVar;
using tir::IterVarRef;
using tir::Stmt;

Stage::Stage() = default;
Stage::~Stage() = default;

const std::vector<Expr>& Tensor::shape() const { return stage_->outputs[output_].shape; }
DType Tensor::dtype() const { return stage_->outputs[output_].dtype; }
const std::string& Tensor::name() const { return stage_->outputs[output_].name; }

Expr Tensor::operator()(Indices indices) const {
  if (static_cast<int64_t>(indices.size()) != rank())
    internal_error(text("tensor ", name(), " of rank ", rank(), " indexed by ", indices.size(), " expressions"));
  return make<TensorLoad>(stage_, int{output_}, std::move(indices));
}

void TensorLoad::finish() { dtype = stage->outputs[output].dtype; }

// ---- Reductions ----

IterVarRef reduce_axis(Expr min, Expr extent, std::string name) {
  VarRef var = make_var(std::move(name), extent->dtype);
  return make<IterVar>(make<Range>(std::move(min), std::move(extent)), var, IterKind::reduce);
}
IterVarRef reduce_axis(Expr extent, std::string name) {
  Expr zero = int_imm(0, extent->dtype);
  return reduce_axis(zero, std::move(extent), std::move(name));
}

Expr is_nan(const Expr& x) { return call(boolean, "tir.isnan", {x->dtype.bits <= 16 ? cast_to(f32, x) : x}); }

Expr min_value(DType d) {
  if (d.is_float()) {
    double lowest = d.is_bfloat()                 ? -0x1.FEp127
                    : d.code == DType::Code::e4m3 ? -448.0
                    : d.code == DType::Code::e5m2 ? -57344.0
                    : d.bits == 16                ? -65504.0
                    : d.bits == 32                ? -static_cast<double>(std::numeric_limits<float>::max())
                                                  : std::numeric_limits<double>::lowest();
    return float_imm(lowest, d);
  }
  return int_imm(d.is_bool() ? 0 : min_int(d), d);
}
Expr max_value(DType d) {
  if (d.is_float()) return float_imm(-min_value(d).as<FloatImm>()->value, d);
  return int_imm(d.is_bool() ? 1 : max_int(d), d);
}

Expr max_identity(DType d) {
  return d.is_float() ? float_imm(-std::numeric_limits<double>::infinity(), d) : min_value(d);
}
Expr min_identity(DType d) {
  return d.is_float() ? float_imm(std::numeric_limits<double>::infinity(), d) : max_value(d);
}

namespace {
Reduction single(Expr source, std::vector<IterVarRef> axes, Expr identity, Expr (*combine)(Expr, Expr)) {
  Reducer reducer{{std::move(identity)}, [combine](const std::vector<Expr>& l, const std::vector<Expr>& r) {
                    return std::vector<Expr>{combine(l[0], r[0])};
                  }};
  return {std::move(reducer), {std::move(source)}, std::move(axes)};
}
}  // namespace

Reduction reduce_sum(Expr source, std::vector<IterVarRef> axes) {
  Expr zero = constant(0, source->dtype);
  return single(std::move(source), std::move(axes), zero, [](Expr a, Expr b) { return std::move(a) + std::move(b); });
}
Reduction reduce_prod(Expr source, std::vector<IterVarRef> axes) {
  Expr one = constant(1, source->dtype);
  return single(std::move(source), std::move(axes), one, [](Expr a, Expr b) { return std::move(a) * std::move(b); });
}
Reduction reduce_max(Expr source, std::vector<IterVarRef> axes) {
  Expr least = max_identity(source->dtype);
  return single(
      std::move(source), std::move(axes), least, [](Expr a, Expr b) { return max(std::move(a), std::move(b)); });
}
Reduction reduce_min(Expr source, std::vector<IterVarRef> axes) {
  Expr greatest = min_identity(source->dtype);
  return single(
      std::move(source), std::move(axes), greatest, [](Expr a, Expr b) { return min(std::move(a), std::move(b)); });
}

namespace {

Reducer arg_reducer(DType position, DType value, Expr identity, Expr (*better)(Expr, Expr)) {
  auto combine = [better, is_float = value.is_float()](const std::vector<Expr>& l, const std::vector<Expr>& r) {
    Expr wins = better(l[1], r[1]), same = eq(l[1], r[1]);
    if (is_float) {
      wins = logical_or(wins, logical_and(is_nan(l[1]), logical_not(is_nan(r[1]))));
      same = logical_or(same, logical_and(is_nan(l[1]), is_nan(r[1])));
    }
    Expr first = logical_or(wins, logical_and(same, lt(l[0], r[0])));
    return std::vector<Expr>{select(first, l[0], r[0]), select(wins, l[1], r[1])};
  };
  // A position that loses against all others where the values are equal.
  return {{int_imm(max_int(position), position), std::move(identity)}, combine};
}

}  // namespace

Reducer argmax_reducer(DType position, DType value) { return arg_reducer(position, value, max_identity(value), gt); }
Reducer argmin_reducer(DType position, DType value) { return arg_reducer(position, value, min_identity(value), lt); }

// ---- Stages ----

namespace {

void collect_inputs(const Expr& body, std::vector<Tensor>& inputs) {
  walk(body, [&](const TensorLoad& load) {
    Tensor t(load.stage, load.output);
    if (std::find(inputs.begin(), inputs.end(), t) == inputs.end()) inputs.push_back(t);
  });
}

Ref<Stage> stage_with_axes(const Naming& naming, const std::vector<Expr>& shape) {
  Ref<Stage> stage(new Stage);
  stage->name = naming.name;
  stage->annotations = naming.annotations;
  stage->tag = naming.tag;
  for (size_t i = 0; i < shape.size(); ++i) {
    std::string name = i < naming.axes.size() ? naming.axes[i] : text(naming.axis, i);
    VarRef var = make_var(name, shape[i]->dtype);
    stage->axes.push_back(make<IterVar>(range_of(shape[i]), var, IterKind::spatial));
  }
  return stage;
}

Indices indices_of(const Stage& stage) {
  Indices indices;
  for (const IterVarRef& axis : stage.axes) indices.push_back(axis->var);
  return indices;
}

Ref<Stage> reduction_stage(const Naming& naming, const std::vector<Expr>& shape,
                           FunctionRef<Reduction(const Indices&)> body) {
  Ref<Stage> stage = stage_with_axes(naming, shape);
  stage->reduction = body(indices_of(*stage));
  for (const Expr& source : stage->reduction->sources) collect_inputs(source, stage->inputs);
  return stage;
}

std::vector<Tensor> outputs_of(const Ref<Stage>& stage) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < stage->outputs.size(); ++i) tensors.emplace_back(stage, static_cast<int>(i));
  return tensors;
}

}  // namespace

Tensor placeholder(std::vector<Expr> shape, DType dtype, std::string name) {
  Ref<Stage> stage(new Stage);
  stage->name = name;
  stage->outputs = {{std::move(shape), dtype, std::move(name)}};
  return Tensor(stage, 0);
}

Tensor compute(const Naming& naming, std::vector<Expr> shape, FunctionRef<Expr(const Indices&)> body) {
  Ref<Stage> stage = stage_with_axes(naming, shape);
  stage->bodies = {body(indices_of(*stage))};
  collect_inputs(stage->bodies[0], stage->inputs);
  stage->outputs = {{std::move(shape), stage->bodies[0]->dtype, naming.name}};
  return Tensor(stage, 0);
}

std::vector<Tensor> compute_together(const Naming& naming, std::vector<Expr> shape,
                                     FunctionRef<std::vector<Expr>(const Indices&)> body) {
  Ref<Stage> stage = stage_with_axes(naming, shape);
  stage->bodies = body(indices_of(*stage));
  for (const Expr& e : stage->bodies) {
    collect_inputs(e, stage->inputs);
    stage->outputs.push_back({shape, e->dtype, text(naming.name, ".v", stage->outputs.size())});
  }
  return outputs_of(stage);
}

Tensor tagged(const Tensor& t, std::string tag) {
  Ref<Stage> stage(new Stage(*t.stage()));
  stage->tag = std::move(tag);
  return Tensor(stage, t.output());
}

Tensor reduce(const Naming& naming, std::vector<Expr> shape, FunctionRef<Reduction(const Indices&)> body) {
  Ref<Stage> stage = reduction_stage(naming, shape, body);
  if (stage->reduction->sources.size() != 1)
    internal_error(text("stage ", naming.name, " reduces several values: use reduce_together"));
  stage->outputs = {{std::move(shape), stage->reduction->sources[0]->dtype, naming.name}};
  return Tensor(stage, 0);
}

std::vector<Tensor> reduce_together(const Naming& naming, std::vector<Expr> shape,
                                    FunctionRef<Reduction(const Indices&)> body) {
  Ref<Stage> stage = reduction_stage(naming, shape, body);
  for (const Expr& source : stage->reduction->sources)
    stage->outputs.push_back({shape, source->dtype, text(naming.name, ".v", stage->outputs.size())});
  return outputs_of(stage);
}

std::vector<Tensor> extern_stage(std::string name, std::vector<Tensor> inputs, std::vector<ExternOutput> outputs,
                                 std::function<Stmt(const std::vector<BufferRef>&)> body) {
  Ref<Stage> stage(new Stage);
  stage->name = std::move(name);
  stage->inputs = std::move(inputs);
  stage->statement = std::move(body);
  std::vector<Tensor> tensors;
  for (ExternOutput& o : outputs) {
    tensors.emplace_back(stage, static_cast<int>(stage->outputs.size()));
    stage->outputs.push_back({std::move(o.shape), o.dtype, std::move(o.name)});
  }
  return tensors;
}

// ---- The function ----

namespace {

using tir::Block;
using tir::BlockRealize;
using tir::BufferRegionRef;

/// The buffers of one function, stage by stage.
class FunctionBuilder {
 public:
  FunctionBuilder(const std::vector<Arg>& args, DType index) : index_(index) {
    for (const Arg& arg : args) {
      if (const Tensor* t = std::get_if<Tensor>(&arg)) tensors_.push_back(*t);
    }
  }

  tir::PrimFuncRef build(const std::vector<Arg>& args) {
    for (const Tensor& t : tensors_) note_offsets(t.stage());
    for (const Tensor& t : tensors_) visit(t.stage());
    std::vector<VarRef> params;
    std::vector<std::pair<VarRef, BufferRef>> buffer_map;
    for (const Arg& arg : args) {
      if (const VarRef* scalar = std::get_if<VarRef>(&arg)) {
        params.push_back(*scalar);
        continue;
      }
      const Tensor& t = std::get<Tensor>(arg);
      params.push_back(make_var(text("var_", t.name()), DType::Handle()));
      buffer_map.emplace_back(params.back(), buffer_of(t));
    }
    Attrs attrs{{"global_symbol", string_imm("main")}, {"tir.noalias", bool_imm(true)}};
    return make<tir::PrimFunc>(std::move(params), std::move(buffer_map), DType::Void(), std::move(attrs), root());
  }

 private:
  const BufferRef& buffer_of(const Tensor& t) {
    auto at = buffers_.find(t.stage().get());
    if (at == buffers_.end()) internal_error(text("tensor ", t.name(), " is used before its stage was visited"));
    return at->second[static_cast<size_t>(t.output())];
  }

  bool is_arg(const Ref<const Stage>& stage, size_t output) const {
    Tensor t(stage, static_cast<int>(output));
    return std::find(tensors_.begin(), tensors_.end(), t) != tensors_.end();
  }

  /// What a statement of the user's accesses may lie anywhere in the memory behind its pointer.
  void note_offsets(const Ref<const Stage>& stage) {
    if (!noted_.insert(stage.get()).second) return;
    if (stage->statement) offset_.insert(stage.get());
    for (const Tensor& input : stage->inputs) {
      if (stage->statement) offset_.insert(input.stage().get());
      note_offsets(input.stage());
    }
  }

  /// A buffer of a stage; an argument that a statement accesses has an offset, of which the caller decides.
  BufferRef new_buffer(const Ref<const Stage>& stage, size_t output) const {
    const Stage::Output& o = stage->outputs[output];
    BufferRef made = make_buffer(o.name, o.shape, o.dtype);
    if (!offset_.contains(stage.get()) || !is_arg(stage, output)) return made;
    return with(
        made, &Buffer::elem_offset, Expr(make_var("elem_offset", o.shape.empty() ? i32 : o.shape.front()->dtype)));
  }

  /// Producers first, each stage once.
  void visit(const Ref<const Stage>& stage) {
    if (!visited_.insert(stage.get()).second) return;
    for (const Tensor& input : stage->inputs) visit(input.stage());
    std::vector<BufferRef>& buffers = buffers_[stage.get()];
    for (size_t i = 0; i < stage->outputs.size(); ++i) {
      buffers.push_back(new_buffer(stage, i));
      if (is_arg(stage, i)) continue;
      (stage->is_placeholder() ? missing_ : allocated_).push_back(buffers.back());
    }
    if (stage->is_placeholder()) return;
    body_.push_back(stage->statement ? extern_block(*stage) : loop_nest(*stage));
  }

  std::string fresh_block_name(const std::string& base) {
    std::string name = base;
    for (int i = 1; !block_names_.insert(name).second; ++i) name = text(base, "_", i);
    return name;
  }

  /// The expression over the function's buffers and the block's iterators.
  Expr placed(const Expr& e, const VarMap& iterators) {
    Expr loaded = transform(e, [&](const TensorLoad& load) -> NodeRef {
      return sator::load(buffer_of(Tensor(load.stage, load.output)), load.indices);
    });
    return simplified(substitute(loaded, iterators));
  }
  /// Integers that memory holds wrap around, and the simplifier takes it that none does: what reads some is left as it is written.
  Expr simplified(const Expr& e) {
    bool reads_integers = false;
    walk(e, [&](const BufferLoad& load) { reads_integers |= load.dtype.is_integer(); });
    if (!reads_integers) return arith_.simplify(e);
    const Expr out = cast<ExprNode>(e->info().map_children(*e, [&](const NodeRef& child) -> NodeRef {
      const Expr part = cast<ExprNode>(child);
      return part ? NodeRef(simplified(part)) : child;
    }));
    // A condition that is known now chooses, or tells of others.
    auto either_known = [](const auto& n) { return n.a.template as<IntImm>() || n.b.template as<IntImm>(); };
    if (const And* n = out.as<And>()) return either_known(*n) ? logical_and(n->a, n->b) : out;
    if (const Or* n = out.as<Or>()) return either_known(*n) ? logical_or(n->a, n->b) : out;
    if (const Select* s = out.as<Select>())
      return s->condition.as<IntImm>() ? select(s->condition, s->true_value, s->false_value) : out;
    if (const Call* c = out.as<Call>(); c && c->op == "tir.if_then_else")
      return c->args[0].as<IntImm>() ? if_then_else(c->args[0], c->args[1], c->args[2]) : out;
    return out;
  }
  RangeRef simplified(const RangeRef& r) { return make<Range>(arith_.simplify(r->min), arith_.simplify(r->extent)); }

  Stmt loop_nest(const Stage& stage) {
    std::vector<IterVarRef> axes = stage.axes;
    // What is reduced over nothing is the identity: no iteration would run the block's init.
    const bool is_empty = stage.reduction && std::ranges::any_of(stage.reduction->axes, [&](const IterVarRef& axis) {
                            return is_zero(arith_.simplify(axis->dom->extent));
                          });
    if (stage.reduction && !is_empty)
      axes.insert(axes.end(), stage.reduction->axes.begin(), stage.reduction->axes.end());
    std::vector<Expr> loops;
    for (const IterVarRef& axis : axes) loops.push_back(make_var(axis->var->name, axis->dom->extent->dtype));
    std::vector<Stmt> blocks;
    if (stage.reduction) blocks.push_back(leaf(stage, axes, loops, is_empty, 0));
    for (size_t i = 0; i < stage.bodies.size(); ++i) blocks.push_back(leaf(stage, axes, loops, false, i));
    Stmt nest = tir::seq(blocks);
    for (size_t i = axes.size(); i-- > 0;) {
      const RangeRef dom = simplified(axes[i]->dom);
      nest = make<tir::For>(
          cast<Var>(loops[i]), dom->min, dom->extent, tir::LoopKind::serial, std::string(), Attrs{}, nest);
    }
    return nest;
  }

  /// The block inside of the loops: of a reduction, or of one formula.
  Stmt leaf(const Stage& stage, const std::vector<IterVarRef>& axes, std::vector<Expr> values, bool is_empty,
            size_t output) {
    std::vector<IterVarRef> iter_vars;
    VarMap iterators;
    for (const IterVarRef& axis : axes) {
      VarRef iterator = make_var(text("v_", axis->var->name), axis->var->dtype);
      iterators.emplace(axis->var, iterator);
      iter_vars.push_back(make<IterVar>(simplified(axis->dom), iterator, axis->kind));
    }
    std::vector<Expr> indices;
    for (size_t i = 0; i < stage.axes.size(); ++i) indices.push_back(iter_vars[i]->var);
    std::vector<Stmt> init;
    Stmt body = is_empty ? identities(stage, indices)
                : stage.reduction
                    ? reduction_body(stage, iterators, indices, init)
                    : tir::store(buffers_[&stage][output], placed(stage.bodies[output], iterators), indices);
    if (iter_vars.empty()) {
      iter_vars.push_back(make<IterVar>(range_of(int_imm(1, index_)), make_var("vi", index_), IterKind::spatial));
      values.push_back(int_imm(0, index_));
    }
    return block(fresh_block_name(stage.bodies.size() > 1 ? stage.outputs[output].name : stage.name),
                 std::move(iter_vars),
                 std::move(values),
                 init.empty() ? Stmt() : tir::seq(init),
                 std::move(body),
                 stage.annotations);
  }

  Stmt identities(const Stage& stage, const std::vector<Expr>& indices) {
    std::vector<Stmt> stores;
    const std::vector<BufferRef>& buffers = buffers_[&stage];
    for (size_t i = 0; i < buffers.size(); ++i)
      stores.push_back(tir::store(buffers[i], stage.reduction->reducer.identity[i], indices));
    return tir::seq(stores);
  }

  Stmt reduction_body(const Stage& stage, const VarMap& iterators, const std::vector<Expr>& indices,
                      std::vector<Stmt>& init) {
    const std::vector<BufferRef>& buffers = buffers_[&stage];
    std::vector<Expr> so_far, next;
    for (size_t i = 0; i < buffers.size(); ++i) {
      so_far.push_back(sator::load(buffers[i], indices));
      next.push_back(placed(stage.reduction->sources[i], iterators));
      init.push_back(tir::store(buffers[i], stage.reduction->reducer.identity[i], indices));
    }
    std::vector<Expr> combined = stage.reduction->reducer.combine(so_far, next);
    if (buffers.size() == 1) return tir::store(buffers[0], combined[0], indices);
    // All new values are computed before the first is stored.
    std::vector<VarRef> held;
    std::vector<Stmt> stores;
    for (size_t i = 0; i < buffers.size(); ++i) {
      held.push_back(make_var(text("v_", buffers[i]->name), buffers[i]->dtype));
      stores.push_back(tir::store(buffers[i], held[i], indices));
    }
    Stmt body = tir::seq(stores);
    for (size_t i = buffers.size(); i-- > 0;) body = make<tir::LetStmt>(combined[i], held[i], body);
    return body;
  }

  Stmt block(std::string name, std::vector<IterVarRef> iter_vars, std::vector<Expr> values, Stmt init, Stmt body,
             Attrs annotations = {}) {
    using Buffers = std::vector<BufferRegionRef>;
    tir::BlockRef made = make<Block>(std::move(iter_vars),
                                     std::vector<BufferRef>{},
                                     std::vector<tir::MatchBufferRef>{},
                                     Buffers{},
                                     Buffers{},
                                     tir::block_name(std::move(name)),
                                     std::move(annotations),
                                     std::move(init),
                                     std::move(body));
    tir::VisibleBuffers visible;
    for (const auto& [stage, buffers] : buffers_) {
      for (const BufferRef& b : buffers) visible.emplace(b->data, b);
    }
    tir::BlockRegions regions = tir::block_regions(*made, visible);
    made = with(with(made, &Block::reads, std::move(regions.reads)), &Block::writes, std::move(regions.writes));
    return make<BlockRealize>(std::move(values), bool_imm(true), made);
  }

  Stmt extern_block(const Stage& stage) {
    std::vector<BufferRef> buffers;
    for (const Tensor& input : stage.inputs) buffers.push_back(buffer_of(input));
    for (const BufferRef& output : buffers_[&stage]) buffers.push_back(output);
    return block(fresh_block_name(stage.name), {}, {}, nullptr, stage.statement(buffers));
  }

  /// Errors: a placeholder that is no argument is read; one that only simplified parts of a formula read is not.
  void need_placeholders(const Stmt& body) const {
    walk(body, [&](const BufferLoad& l) {
      if (std::find(missing_.begin(), missing_.end(), l.buffer) == missing_.end()) return;
      fail({.what = text("the function needs placeholder ", l.buffer->name, ", which is not among its arguments"),
            .needs = "every placeholder that a result depends on is an argument",
            .hint = text("add ", l.buffer->name, " to the arguments")});
    });
  }

  Stmt root() {
    Stmt body = tir::seq(body_);
    need_placeholders(body);
    // One opaque block is the root itself, which lists no regions.
    using Buffers = std::vector<BufferRegionRef>;
    if (const BlockRealize* only = body.as<BlockRealize>(); only && only->values.empty() && allocated_.empty()) {
      tir::BlockRef root = with(with(only->block, &Block::reads, Buffers{}), &Block::writes, Buffers{});
      return with(*only, &BlockRealize::block, root);
    }
    auto root = make<Block>(std::vector<IterVarRef>{},
                            allocated_,
                            std::vector<tir::MatchBufferRef>{},
                            std::vector<BufferRegionRef>{},
                            std::vector<BufferRegionRef>{},
                            tir::block_name("root"),
                            Attrs{},
                            Stmt(),
                            body);
    return make<BlockRealize>(std::vector<Expr>{}, bool_imm(true), root);
  }

  DType index_;
  arith::Analyzer arith_;
  std::vector<Tensor> tensors_;
  std::unordered_set<const Stage*> visited_, noted_, offset_;
  std::unordered_map<const Stage*, std::vector<BufferRef>> buffers_;
  std::unordered_set<std::string> block_names_;
  std::vector<BufferRef> allocated_, missing_;
  std::vector<Stmt> body_;
};

}  // namespace

tir::PrimFuncRef create_prim_func(const std::vector<Arg>& args, DType index) {
  return FunctionBuilder(args, index).build(args);
}

}  // namespace sator::te
