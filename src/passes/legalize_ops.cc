#include "passes/legalize_ops.h"

#include <algorithm>

#include "passes/check_sizes.h"
#include "passes/fold_constant.h"
#include "passes/library_form.h"
#include "passes/wide_sums.h"
#include "relax/bind.h"
#include "relax/builder.h"
#include "relax/ops/table.h"
#include "relax/rebind.h"
#include "relax/struct_info.h"

namespace sator::passes {

using namespace relax;

namespace {

enum class Form {
  checked,  ///< ops stay; what they need of symbolic sizes is checked before them
  own,      ///< tensor functions that compute as NumPy does, behind the checks
  library,  ///< extents as the library spells them, not as the graph did; no checks
};

/// The local functions inside with a match_cast first of each captured value whose sizes only the functions around them define:
/// a tensor program is called with sizes that are known where the call stands.
FuncRef with_own_sizes(const FuncRef& f) {
  return transform(f, [](const LocalFunction& local) -> NodeRef {
    const Function& inner = *local.function;
    std::vector<VarRef> defined = sizes_defined_by(inner.params);
    auto defines_its_sizes = [](const StructInfo& info) { return vars_of(info) == definable_vars(info); };
    auto is_known = [&](const StructInfo& info) {
      return std::ranges::all_of(vars_of(info),
                                 [&](const VarRef& v) { return std::ranges::find(defined, v) != defined.end(); });
    };
    std::vector<RVarRef> captured = captured_variables(inner);
    std::erase_if(captured, [&](const RVarRef& v) { return !v->sinfo || is_known(v->sinfo); });
    if (captured.empty()) return ref(local);
    // Each cast computes with sizes of those before it.
    std::ranges::stable_partition(captured, [&](const RVarRef& v) { return defines_its_sizes(v->sinfo); });
    std::vector<Binding> casts;
    NodeMap own;
    for (const RVarRef& v : captured) {
      const StructInfo info = with_defined_sizes({v->sinfo}, defined)[0];
      for (const VarRef& size : definable_vars(info)) defined.push_back(size);
      RVarRef cast = make_rvar(v->name, info);
      casts.push_back(bind_match_cast(cast, v, info));
      own[v] = cast;
    }
    FuncRef out = replaced(local.function, own);
    const SeqExpr& body = *out->body.as<SeqExpr>();
    std::vector<BindingBlockRef> blocks = body.blocks;
    blocks.insert(blocks.begin(), make<BindingBlock>(std::move(casts), false));
    out = sator::with(out, &Function::body, RExpr(sator::with(body, &SeqExpr::blocks, joined_blocks(blocks))));
    return sator::with(local, &LocalFunction::function, out);
  });
}

class Legalizer {
 public:
  Legalizer(BlockBuilder& builder, const PassContext& ctx, Form form, const Legalizations& given)
      : builder_(builder), ctx_(ctx), checks_(builder), form_(form), given_(given) {}

  /// A function of the module.
  FuncRef run(const FuncRef& f) {
    const FuncRef prepared = with_own_sizes(f);
    FuncRef out = function(*prepared);
    return out == prepared ? f : out;
  }

 private:
  FuncRef function(const Function& f) {
    // What a group of ops needs was checked before it became a group: it becomes one tensor function, which checks nothing.
    const bool checks = !library_form() && int_attr(f.attrs, "Primitive").value_or(0) == 0;
    const bool outer = std::exchange(is_checking_, checks);
    SizeChecks::Facts facts = checks_.facts;
    const VarMap outer_sizes = sizes_;
    for (const RVarRef& p : f.params)
      for (const VarRef& v : definable_vars(p->sinfo)) sizes_.emplace(v, v);
    builder_.begin_scope(f.params);
    RExpr body = sequence(f.body);
    builder_.end_scope();
    sizes_ = outer_sizes;
    checks_.facts = std::move(facts);
    is_checking_ = outer;
    if (body == f.body) return ref(f);
    FuncRef out = sator::with(f, &Function::body, body);
    // What the function was declared to return stays where the body tells no more.
    const bool stays = !body->sinfo || is_base_of(body->sinfo, f.ret, builder_.arith());
    if (library_form()) return sator::with(out, &Function::ret, result_info(*out));
    return stays ? out : sator::with(out, &Function::ret, body->sinfo);
  }

  bool library_form() const { return form_ == Form::library; }

  /// What the result tells outside of the function, whatever was declared; what was declared where it tells nothing.
  StructInfo result_info(const Function& f) {
    const SeqExpr* seq = f.body.as<SeqExpr>();
    if (!seq || !seq->body->sinfo) return f.ret;
    VarMap sizes;
    for (const RVarRef& p : f.params)
      for (const VarRef& v : definable_vars(p->sinfo)) sizes.emplace(v, v);
    return erase_to_well_defined(seq->body->sinfo, sizes, {}, builder_.arith());
  }

  /// Sizes that the parameters do not define are not known outside.
  StructInfo seen_outside(const StructInfo& info) {
    return info ? erase_to_well_defined(info, sizes_, {}, builder_.arith()) : info;
  }

  /// The body of a function or branch.
  RExpr sequence(const RExpr& e) {
    const SeqExpr* seq = e.as<SeqExpr>();
    if (!seq) return replaced(e, rebound_);
    std::vector<BindingBlockRef> blocks;
    for (const BindingBlockRef& block : seq->blocks) {
      builder_.begin_block(block->is_dataflow);
      for (const Binding& b : block->bindings) builder_.emit_binding(binding(b));
      blocks.push_back(builder_.end_block());
    }
    RExpr body = renewed(builder_, replaced(seq->body, rebound_));
    if (blocks == seq->blocks && body == seq->body) return e;
    // More may be known of the result now.
    StructInfo sinfo = body->sinfo == seq->body->sinfo ? seq->sinfo : seen_outside(body->sinfo);
    return make<SeqExpr>(std::move(blocks), std::move(body), std::move(sinfo));
  }

  Binding binding(const Binding& b) {
    const VarBinding* v = b.as<VarBinding>();
    if (!v) {
      Binding cast = replaced(b, rebound_);
      if (is_checking_) checks_.note(*cast.as<MatchCast>());
      return cast;
    }
    RExpr value = v->value;
    if (const If* branch = value.as<If>()) {
      value = sator::with(*branch, &If::condition, RExpr(replaced(branch->condition, rebound_)));
      value = sator::with(*value.as<If>(), &If::true_branch, scoped(branch->true_branch));
      value = sator::with(*value.as<If>(), &If::false_branch, scoped(branch->false_branch));
      return bound(*v, value);
    }
    if (const LocalFunction* inner = value.as<LocalFunction>())
      return bound(*v, sator::with(*inner, &LocalFunction::function, function(*inner->function)));
    value = replaced(value, rebound_);
    if (value != v->value) value = renewed(builder_, value);
    if (is_checking_) value = checks_.checked(value);
    if (form_ == Form::checked) return bound(*v, value);
    // The library computes these on the way, whatever their size.
    if (library_form() && (is_op(value, "arange") || is_op(value, "astype"))) {
      if (RExpr result = constant_of(builder_.module(), cast<RCall>(value))) return bound(*v, result);
    }
    if (RExpr program = legalized(value)) return bound(*v, program);
    const std::string& op = op_name(value);
    if (!op.empty() && value->sinfo.as<DTensorInfo>())
      fail({.what = text("LegalizeOps: ", v->var->name, " is computed on several devices, by R.", op),
            .needs = "tensors of one device: programs of several are read and checked, not built",
            .hint = "declare R.Tensor in place of R.DTensor"});
    if (const OpDef* def = op.empty() ? nullptr : find_op(op); def && def->compute) {
      const std::string why = def->unsupported ? def->unsupported(value.as<RCall>()->attrs, *value.as<RCall>()) : "";
      ctx_.say("LegalizeOps", text(v->var->name, ": ", op, " stays, ", why.empty() ? "a shape is not known" : why));
    }
    return bound(*v, value);
  }

  /// What takes the place of an op's call, normalized; null where it stays. A call of another op that takes it is replaced
  /// too, and so are the calls that had to be bound before it.
  RExpr legalized(const RExpr& value) {
    RCallRef call = cast<RCall>(value);
    const Op* op = call ? call->op.as<Op>() : nullptr;
    const OpDef* def = op ? find_op(op->name) : nullptr;
    if (!def) return nullptr;
    builder_.begin_block(builder_.in_dataflow());
    RExpr made = replacement(call, *def);
    while (const SeqExpr* seq = made.as<SeqExpr>()) {
      for (const BindingBlockRef& block : seq->blocks)
        for (const Binding& b : block->bindings) builder_.emit_binding(b);
      made = RExpr(seq->body);
    }
    if (made) made = builder_.normalize(made);
    const BindingBlockRef before = builder_.end_block();
    if (!made || made == value) return nullptr;
    for (const Binding& b : before->bindings) builder_.emit_binding(binding(b));
    made = pure_as(*def, replaced(made, rebound_));
    if (op_name(made).empty() || op_name(made) == op->name) return made;
    RExpr further = legalized(made);
    return further ? further : made;
  }

  RExpr replacement(const RCallRef& call, const OpDef& def) {
    if (const auto own = given_.by_op.find(def.name); own != given_.by_op.end()) return own->second(call, builder_);
    if (def.legalize) return def.legalize(call, builder_);
    if (def.compute) return builder_.legalize_by_formula(call);
    if (given_.missing && !def.name.starts_with("call_")) given_.missing(def.name);
    return nullptr;
  }

  /// A call of a function that may have effects, in the place of an op that has none.
  RExpr pure_as(const OpDef& def, const RExpr& made) {
    const RCallRef call = cast<RCall>(made);
    if (!call || call->op.as<Op>() || !def.pure || !is_impure_call(made)) return made;
    std::vector<RExpr> args{call->op};
    args.insert(args.end(), call->args.begin(), call->args.end());
    return builder_.normalize(relax::call(op_ref("call_pure_packed"), std::move(args), call->attrs, call->sinfo_args));
  }

  /// The binding with its new value: of a new variable where more is known of the value than before.
  Binding bound(const VarBinding& b, const RExpr& value) {
    if (value == b.value) return ref(b);
    const bool known =
        !value->sinfo.get() ||
        (library_form() ? equal(value->sinfo, b.var->sinfo) : is_base_of(value->sinfo, b.var->sinfo, builder_.arith()));
    if (known) return make<VarBinding>(value, b.var);
    RVarRef var = with(b.var, &RVar::sinfo, value->sinfo);
    rebound_.emplace(b.var, var);
    return make<VarBinding>(value, var);
  }

  RExpr scoped(const RExpr& branch) {
    SizeChecks::Facts facts = checks_.facts;
    builder_.begin_scope();
    RExpr out = sequence(branch);
    builder_.end_scope();
    checks_.facts = std::move(facts);
    return out;
  }

  BlockBuilder& builder_;
  const PassContext& ctx_;
  SizeChecks checks_;
  bool is_checking_ = false;
  VarMap sizes_;  ///< those of the parameters
  Form form_;
  const Legalizations& given_;
  NodeMap rebound_;  // the variables that took the place of others
};

}  // namespace

ModuleRef check_sizes(const ModuleRef& module, const PassContext& ctx) {
  BlockBuilder builder(module);
  const Legalizations none;
  for (const auto& [name, func] : module->functions) {
    if (FuncRef f = sator::cast<Function>(func))
      builder.update_function(name, Legalizer(builder, ctx, Form::checked, none).run(f));
  }
  return builder.module();
}

ModuleRef legalize_ops(const ModuleRef& module, const PassContext& ctx, const Legalizations& given) {
  const std::string form = string_attr(ctx.config, "LegalizeOps.form").value_or("");
  if (!form.empty() && form != "topi")
    fail({.what = text("LegalizeOps: the form ", form),
          .needs = "topi, or none",
          .hint = "leave the option out for programs that compute as NumPy does"});
  BlockBuilder builder(module);
  for (const auto& [name, func] : module->functions) {
    if (FuncRef f = sator::cast<Function>(func))
      builder.update_function(name, Legalizer(builder, ctx, form.empty() ? Form::own : Form::library, given).run(f));
  }
  ModuleRef out = builder.module();
  for (const auto& [name, func] : builder.module()->functions) {
    tir::PrimFuncRef f = cast<tir::PrimFunc>(func);
    if (!f || module->functions.contains(name)) continue;
    tir::PrimFuncRef other = form.empty() ? with_wide_sums(f) : in_library_form(f);
    if (other != f) out = with_function(std::move(out), name, other);
  }
  return out;
}

}  // namespace sator::passes
