#include "relax/builder.h"

#include <algorithm>
#include <unordered_set>

#include "relax/ops/families.h"
#include "relax/ops/table.h"
#include "relax/struct_info.h"
#include "tir/nodes.h"

namespace sator::relax {

bool is_leaf(const RExpr& e) {
  return !e.as<Tuple>() && !e.as<TupleGetItem>() && !e.as<RCall>() && !e.as<SeqExpr>() && !e.as<If>() &&
         !e.as<LocalFunction>();
}

bool is_impure_call(const RExpr& e) {
  const RCall* c = e.as<RCall>();
  if (!c) return false;
  if (const Op* op = c->op.as<Op>()) {
    const OpDef* def = find_op(op->name);
    return def && !def->pure;
  }
  const FuncInfo* f = c->op->sinfo.as<FuncInfo>();
  return !f || !f->pure;
}

BlockBuilder::BlockBuilder(ModuleRef module)
    : module_(module ? std::move(module) : make<Module>(std::map<std::string, Func>(), Attrs(), Attrs())),
      arith_(std::make_unique<arith::Analyzer>()) {}
BlockBuilder::~BlockBuilder() = default;

// ---- The module ----

RExpr BlockBuilder::function(const std::string& name) const {
  auto at = module_->functions.find(name);
  if (at == module_->functions.end()) internal_error(text("the module has no function ", name));
  return global_var(name, info_of(*at->second));
}

RExpr BlockBuilder::add_function(Func func, const std::string& name) {
  // Many builders add nothing: the module's functions are hashed when one does.
  if (known_functions_.empty())
    for (const auto& [known, its] : module_->functions) known_functions_.emplace(structural_hash(its), known);
  const uint64_t hash = structural_hash(func);
  std::vector<std::string> same;
  auto [first, last] = known_functions_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    auto known = module_->functions.find(at->second);
    if (known != module_->functions.end() && equal(known->second, func)) same.push_back(at->second);
  }
  if (!same.empty()) return function(*std::ranges::min_element(same));
  std::string fresh = sator::fresh_name(module_, name);
  module_ = with_function(std::move(module_), fresh, std::move(func));
  known_functions_.emplace(hash, fresh);
  return function(fresh);
}

void BlockBuilder::update_function(const std::string& name, Func func) {
  if (!known_functions_.empty()) known_functions_.emplace(structural_hash(func), name);
  module_ = with_function(std::move(module_), name, std::move(func));
}

// ---- Scopes and blocks ----

namespace {

void require_known(const RVar& v) {
  if (v.sinfo) return;
  fail({.what = text("nothing is known of the variable ", v.name),
        .needs = "variables with struct info",
        .hint = text("declare it: relax.Var(\"", v.name, "\", R.Tensor((4,), \"float32\"))")});
}

}  // namespace

void BlockBuilder::begin_scope(const std::vector<RVarRef>& params) {
  VarMap sizes = params.empty() && !scopes_.empty() ? scopes_.back().known : VarMap();
  for (const RVarRef& p : params) {
    require_known(*p);
    for (const VarRef& v : definable_vars(p->sinfo)) {
      sizes.emplace(v, v);
      if (v->dtype.is_int()) arith_->assume_size(v);
    }
  }
  scopes_.push_back({sizes, sizes});
}
void BlockBuilder::end_scope() { scopes_.pop_back(); }

void BlockBuilder::begin_block(bool is_dataflow) { blocks_.push_back({is_dataflow, {}, {}}); }
BindingBlockRef BlockBuilder::end_block() {
  require_block("end_block");
  Block block = std::move(blocks_.back());
  blocks_.pop_back();
  return make<BindingBlock>(std::move(block.bindings), bool{block.is_dataflow});
}
bool BlockBuilder::in_dataflow() const { return !blocks_.empty() && blocks_.back().is_dataflow; }

StructInfo BlockBuilder::erased(const StructInfo& info, VarMap Scope::* sizes) {
  static const VarMap none;
  return erase_to_well_defined(info, scopes_.empty() ? none : scopes_.back().*sizes, {}, *arith_);
}
void BlockBuilder::define_sizes(const StructInfo& info) {
  if (scopes_.empty()) return;
  for (const VarRef& v : definable_vars(info)) scopes_.back().known.emplace(v, v);
}

FuncRef BlockBuilder::end_function(const std::vector<RVarRef>& params, std::vector<BindingBlockRef> blocks,
                                   RExpr result, Attrs attrs, bool is_pure, StructInfo declared) {
  RExpr body = normalize(make<SeqExpr>(std::move(blocks), std::move(result), StructInfo()));
  BaseCheck fit = declared ? base_check(declared, body->sinfo, *arith_) : BaseCheck::pass;
  if (fit == BaseCheck::disjoint)
    fail({.what = text("the result is ", body->sinfo, ", declared as ", declared),
          .needs = "a declaration that holds for the result",
          .hint = "correct the annotation of the function"});
  // What the body tells is finer than what it fits.
  StructInfo ret = fit == BaseCheck::pass ? body->sinfo : declared;
  end_scope();
  return make<Function>(params, body, ret, bool{is_pure}, std::move(attrs));
}

// ---- Bindings ----

std::string BlockBuilder::fresh_name(const std::string& hint) {
  auto [at, fresh] = names_.emplace(hint, 0);
  if (fresh) return hint;
  std::string name;
  do {
    name = text(hint, ++at->second);
  } while (names_.count(name));
  names_.emplace(name, 0);
  return name;
}

RVarRef BlockBuilder::bind(RExpr value, bool is_dataflow, const std::string& name, const std::string& layer) {
  value = normalize(value);
  std::string unique = fresh_name(!name.empty() ? name : is_dataflow ? "lv" : "gv");
  RVarRef var = make<RVar>(std::move(unique), bool{is_dataflow}, value->sinfo, layer);
  values_[var.get()] = value;
  blocks_.back().bindings.push_back(bind_value(var, std::move(value)));
  return var;
}

void BlockBuilder::require_block(const char* step) const {
  if (blocks_.empty())
    fail({.what = text(step, " outside of a block"),
          .needs = "a block of a function, which takes the binding",
          .hint = "call it in `with bb.function(...):`"});
}

RVarRef BlockBuilder::emit(RExpr value, const std::string& name, const std::string& layer) {
  require_block("emit");
  return bind(std::move(value), in_dataflow(), name, layer);
}
RVarRef BlockBuilder::emit_output(RExpr value, const std::string& name, const std::string& layer) {
  if (!in_dataflow())
    fail({.what = "emit_output outside of a dataflow block",
          .needs = "a dataflow block, whose result it is",
          .hint = "call it in `with bb.dataflow():`; elsewhere emit does"});
  return bind(std::move(value), false, name, layer);
}

RVarRef BlockBuilder::emit_match_cast(RExpr value, StructInfo sinfo, const std::string& name) {
  require_block("match_cast");
  value = normalize(value);
  if (base_check(value->sinfo, sinfo, *arith_) == BaseCheck::disjoint)
    fail({.what = text("match_cast of ", value->sinfo, " to ", sinfo),
          .needs = "struct info that the value can have",
          .hint = "check dtype and rank"});
  std::string unique = fresh_name(!name.empty() ? name : in_dataflow() ? "lv" : "gv");
  RVarRef var = in_dataflow() ? make_dataflow_var(std::move(unique), sinfo) : make_rvar(std::move(unique), sinfo);
  define_sizes(sinfo);
  blocks_.back().bindings.push_back(bind_match_cast(var, std::move(value), std::move(sinfo)));
  return var;
}

void BlockBuilder::emit_binding(Binding binding) {
  require_block("emit_normalized");
  if (const VarBinding* b = binding.as<VarBinding>()) values_[b->var.get()] = b->value;
  if (const MatchCast* m = binding.as<MatchCast>()) define_sizes(m->sinfo);
  blocks_.back().bindings.push_back(std::move(binding));
}

RExpr BlockBuilder::bound_value(const RExpr& var) const {
  const RVar* v = var.as<RVar>();
  auto at = v ? values_.find(v) : values_.end();
  return at == values_.end() ? nullptr : at->second;
}

// ---- Normal form ----

RExpr BlockBuilder::normalize(const RExpr& e) {
  if (!blocks_.empty()) {
    auto at = blocks_.back().bound.find(e);
    if (at != blocks_.back().bound.end()) return at->second;
  }
  auto leaf = [&](const auto&) { return e; };
  return match(
      e,
      [&](const RVar& v) -> RExpr {
        require_known(v);
        const TupleInfo* t = v.sinfo.as<TupleInfo>();
        return t && t->items.empty() && !v.is_dataflow ? tuple({}) : e;
      },
      [&](const Tuple& t) { return normalize_tuple(t); },
      [&](const RCall& c) { return normalize_call(c); },
      [&](const TupleGetItem& t) -> RExpr {
        RExpr from = argument(t.tuple);
        if (!from->sinfo.as<TupleInfo>())
          fail({.what = text("item ", t.index, " of a value that is ", from->sinfo),
                .needs = "a tuple",
                .hint = "match_cast it to R.Tuple(...) first"});
        return from == t.tuple && t.sinfo ? e : tuple_get(from, t.index);
      },
      [&](const SeqExpr& s) -> RExpr {
        std::vector<BindingBlockRef> blocks;
        for (const BindingBlockRef& b : s.blocks) blocks.push_back(normalize_block(*b));
        begin_block(in_dataflow());
        RExpr body = argument(s.body);
        blocks.push_back(end_block());
        blocks = joined_blocks(blocks);
        if (blocks == s.blocks && body == s.body && s.sinfo) return e;
        StructInfo sinfo = s.sinfo ? s.sinfo : erased(body->sinfo, &Scope::outside);
        return make<SeqExpr>(std::move(blocks), std::move(body), std::move(sinfo));
      },
      [&](const If& n) { return normalize_if(n); },
      [&](const LocalFunction& f) { return normalize_function(f); },
      [&](const GlobalVar& n) { return leaf(n); },
      [&](const Constant& n) { return leaf(n); },
      [&](const ShapeExpr& n) { return leaf(n); },
      [&](const PrimValue& n) { return leaf(n); },
      [&](const RString& n) { return leaf(n); },
      [&](const DTypeImm& n) { return leaf(n); },
      [&](const Op& n) { return leaf(n); },
      [&](const ExternFunc& n) { return leaf(n); });
}

RExpr BlockBuilder::argument(const RExpr& e) {
  if (!blocks_.empty()) {
    auto at = blocks_.back().bound.find(e);
    if (at != blocks_.back().bound.end()) return at->second;
  }
  RExpr normal = normalize(e);
  if (is_leaf(e) || e.as<Tuple>()) return normal;
  require_block("binding a nested expression");
  RVarRef var = emit(normal);
  blocks_.back().bound.emplace(e, var);
  return var;
}

RExpr BlockBuilder::normalize_tuple(const Tuple& t) {
  std::vector<RExpr> items;
  for (const RExpr& item : t.items) items.push_back(argument(item));
  return items == t.items && t.sinfo ? RExpr(&t) : tuple(std::move(items));
}

/// call_tir holds its arguments as an inline tuple: one that is behind a variable is opened.
RExpr BlockBuilder::with_inline_arguments(const RCall& c) {
  const std::string& op = op_name(ref(c));
  if ((op != "call_tir" && op != "call_tir_inplace" && op != "call_tir_with_grad") || c.args.size() < 2 ||
      c.args[1].as<Tuple>() || (c.sinfo && !normal_forms))
    return ref(c);
  RExpr args = c.args[1];
  while (RExpr value = bound_value(args)) args = value;
  const TupleInfo* info = args->sinfo.as<TupleInfo>();
  if (!info)
    fail({.what = text(op, ": the arguments are ", args->sinfo),
          .needs = "a tuple",
          .hint = "write the arguments as (a, b)"});
  if (!args.as<Tuple>()) {
    std::vector<RExpr> items;
    for (size_t i = 0; i < info->items.size(); ++i) items.push_back(tuple_get(args, static_cast<int>(i)));
    args = tuple(std::move(items));
  }
  std::vector<RExpr> all = c.args;
  all[1] = args;
  return make<RCall>(c.op, std::move(all), c.attrs, c.sinfo_args, StructInfo());
}

/// The call in the normal form of its op; one that the op's row does not take for normal is inferred anew.
RExpr BlockBuilder::in_normal_form(const RCall& c) {
  const Op* op = normal_forms ? c.op.as<Op>() : nullptr;
  const OpDef* def = op ? find_op(op->name) : nullptr;
  return def && def->normalize ? def->normalize(ref(c), *this) : RExpr(&c);
}

RExpr BlockBuilder::normalize_call(const RCall& given) {
  const RExpr normal = in_normal_form(given);
  if (!normal.as<RCall>()) return normalize(normal);
  const RCall& c = *normal.as<RCall>();
  RExpr inlined = with_inline_arguments(c);
  const RCall& call = *inlined.as<RCall>();
  RExpr op = argument(call.op);
  std::vector<RExpr> args;
  for (const RExpr& a : call.args) args.push_back(argument(a));
  if (op == call.op && args == call.args && call.sinfo) return inlined;
  RCallRef out = make<RCall>(op, std::move(args), call.attrs, call.sinfo_args, call.sinfo);
  out = spanned(out, c.span);
  return out->sinfo ? RExpr(out) : spanned(with(out, &RCall::sinfo, infer(*out)), c.span);
}

namespace {

/// Of an elementwise op on tensors of several devices that lie alike (scalars, of which each device has a copy, apart):
/// the result lies like them. Null for other calls. Errors: they lie differently, or the op is another one.
StructInfo infer_distributed(const OpDef& def, const RCall& c, arith::Analyzer& arith) {
  if (std::ranges::none_of(c.args, [](const RExpr& arg) { return arg->sinfo.as<DTensorInfo>() != nullptr; }))
    return nullptr;
  static const auto elementwise = [] {
    std::unordered_set<std::string> names;
    for (const auto& family : {unary_ops(), binary_ops()})
      for (const OpDef& op : family) names.insert(op.name);
    return names;
  }();
  const DTensorInfo* place = nullptr;
  bool is_alike = elementwise.contains(def.name);
  std::vector<RExpr> parts;
  for (const RExpr& arg : c.args) {
    const DTensorInfo* d = arg->sinfo.as<DTensorInfo>();
    parts.push_back(d ? with_sinfo(arg, d->tensor) : arg);
    if (!d || d->tensor->ndim == 0) continue;
    is_alike &= !place || (place->placement == d->placement && equal(place->mesh, d->mesh) &&
                           place->tensor->ndim == d->tensor->ndim);
    place = d;
  }
  if (!place || def.name.starts_with("dist.") || def.name.starts_with("ccl.") || def.name.starts_with("call_"))
    return nullptr;
  if (!is_alike)
    fail({.what = text(def.name, " of tensors on several devices"),
          .needs = "an elementwise op whose tensors lie alike",
          .hint = "R.dist.redistribute lays a tensor otherwise; R.dist.call_tir_local_view computes with parts"});
  const StructInfo whole = def.infer(CallInfo(def, *with(c, &RCall::args, std::move(parts)), arith));
  return dtensor_info(cast<TensorInfo>(whole), place->mesh, place->placement);
}

}  // namespace

StructInfo BlockBuilder::infer(const RCall& c) {
  if (const Op* op = c.op.as<Op>()) {
    const OpDef& def = op_named(op->name);
    if (StructInfo distributed = infer_distributed(def, c, *arith_)) return distributed;
    if (!def.infer) internal_error(text("op ", op->name, " has no rule for its struct info"));
    return def.infer(CallInfo(def, c, *arith_));
  }
  const FuncInfo* f = c.op->sinfo.as<FuncInfo>();
  if (!f)
    fail({.what = text("a call of a value that is ", c.op->sinfo),
          .needs = "a function",
          .hint = "call a function of the module"});
  // What an outer function returns is said at each call.
  if (!f->params && !c.sinfo_args.empty()) return c.sinfo_args.size() == 1 ? c.sinfo_args[0] : tuple_info(c.sinfo_args);
  return result_of_call(*f, c.args, *arith_);
}

RExpr BlockBuilder::in_new_scope(const RExpr& e, const std::vector<RVarRef>& params) {
  begin_scope(params);
  RExpr out;
  if (e.as<SeqExpr>()) {
    out = normalize(e);
  } else {
    begin_block(false);
    RExpr body = argument(e);
    std::vector<BindingBlockRef> blocks = joined_blocks({end_block()});
    StructInfo sinfo = erased(body->sinfo, &Scope::outside);
    out = make<SeqExpr>(std::move(blocks), std::move(body), std::move(sinfo));
  }
  end_scope();
  return out;
}

RExpr BlockBuilder::normalize_if(const If& n) {
  RExpr condition = argument(n.condition);
  RExpr then_branch = in_new_scope(n.true_branch, {}), else_branch = in_new_scope(n.false_branch, {});
  if (condition == n.condition && then_branch == n.true_branch && else_branch == n.false_branch && n.sinfo)
    return ref(n);
  StructInfo sinfo = n.sinfo;
  if (!sinfo) {
    auto result = [&](const RExpr& branch) { return erased(branch.as<SeqExpr>()->body->sinfo, &Scope::known); };
    sinfo = common_base(result(then_branch), result(else_branch), *arith_);
  }
  return make<If>(std::move(condition), std::move(then_branch), std::move(else_branch), std::move(sinfo));
}

RExpr BlockBuilder::normalize_function(const LocalFunction& f) {
  // The variables bound so far may be used inside; the bindings inside are its own.
  std::vector<Block> outer = std::exchange(blocks_, {});
  RExpr body = in_new_scope(f.function->body, f.function->params);
  blocks_ = std::move(outer);
  if (body == f.function->body && f.sinfo && f.function->ret) return ref(f);
  FuncRef function = with(f.function, &Function::body, body);
  if (!function->ret) function = with(function, &Function::ret, body->sinfo);
  StructInfo sinfo = info_of(*function);
  return make<LocalFunction>(std::move(function), std::move(sinfo));
}

BindingBlockRef BlockBuilder::normalize_block(const BindingBlock& block) {
  begin_block(block.is_dataflow);
  for (const Binding& binding : block.bindings) {
    if (const MatchCast* m = binding.as<MatchCast>()) {
      RExpr value = argument(m->value);
      emit_binding(value == m->value ? binding : (bind_match_cast(m->var, value, m->sinfo)));
    } else {
      const VarBinding& b = *binding.as<VarBinding>();
      RExpr value = normalize(b.value);
      emit_binding(value == b.value ? binding : (bind_value(b.var, value)));
    }
  }
  BindingBlockRef out = end_block();
  return out->bindings == block.bindings ? ref(block) : out;
}

std::vector<BindingBlockRef> joined_blocks(const std::vector<BindingBlockRef>& blocks) {
  std::vector<BindingBlockRef> flat;
  for (const BindingBlockRef& block : blocks) {
    std::vector<Binding> current;
    for (const Binding& binding : block->bindings) {
      const VarBinding* b = binding.as<VarBinding>();
      const SeqExpr* seq = b ? b->value.as<SeqExpr>() : nullptr;
      if (!seq) {
        current.push_back(binding);
        continue;
      }
      flat.push_back(make<BindingBlock>(std::exchange(current, {}), bool{block->is_dataflow}));
      flat.insert(flat.end(), seq->blocks.begin(), seq->blocks.end());
      current.push_back(bind_value(b->var, seq->body));
    }
    bool unchanged = current == block->bindings;
    flat.push_back(unchanged ? block : make<BindingBlock>(std::move(current), bool{block->is_dataflow}));
  }
  std::vector<BindingBlockRef> out;
  for (const BindingBlockRef& block : flat) {
    if (block->bindings.empty()) continue;
    if (out.empty() || out.back()->is_dataflow != block->is_dataflow) {
      out.push_back(block);
      continue;
    }
    std::vector<Binding> both = out.back()->bindings;
    both.insert(both.end(), block->bindings.begin(), block->bindings.end());
    out.back() = make<BindingBlock>(std::move(both), bool{block->is_dataflow});
  }
  return out;
}

}  // namespace sator::relax
