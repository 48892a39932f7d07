#include "passes/graph/graph.h"
#include "relax/ops/table.h"
#include "relax/rewrite.h"
#include "tir/copy.h"
#include "tir/nodes.h"

namespace sator::passes {

using namespace relax;

namespace {

class PrimValues final : public GraphRewriter {
 public:
  using GraphRewriter::GraphRewriter;

 private:
  RExpr value(const RVarRef&, const RExpr& value) override {
    if (value.as<PrimValue>()) return computed(value, /*bind=*/false);
    if (const If* branch = value.as<If>()) {
      RExpr condition = computed(branch->condition, true);
      return condition == branch->condition ? value : RExpr(with(*branch, &If::condition, condition));
    }
    const RCall* call = value.as<RCall>();
    if (!call || takes_written_scalars(*call)) return value;
    std::vector<RExpr> args;
    for (const RExpr& a : call->args) args.push_back(computed(a, true));
    return args == call->args ? value : RExpr(with(*call, &RCall::args, std::move(args)));
  }

  /// The scalars of an op that becomes a tensor program are part of its formula, and say its shape: the program computes them.
  static bool takes_written_scalars(const RCall& call) {
    return call.op.as<Op>() && op_named(op_name(ref(call))).has_formula();
  }

  /// A scalar that takes a computation, as a call of a host function that does it.
  RExpr computed(const RExpr& e, bool bind) {
    const PrimValue* p = e.as<PrimValue>();
    if (!p || p->value.as<IntImm>() || p->value.as<FloatImm>() || p->value.as<Var>()) return e;
    std::vector<VarRef> sizes = vars_in(p->value);
    tir::Stmt body = make<tir::Evaluate>(sator::call(p->value->dtype, "tir.ret", {p->value}));
    tir::PrimFuncRef func = tir::fresh_function(make<tir::PrimFunc>(sizes,
                                                                    std::vector<std::pair<VarRef, BufferRef>>{},
                                                                    p->value->dtype,
                                                                    Attrs{{"tir.is_host_func", bool_imm(true)}},
                                                                    body));
    std::vector<RExpr> args;
    for (const VarRef& v : sizes) args.push_back(prim_value(Expr(v)));
    RExpr callee = builder().add_function(func, "compute_symbolic_expr");
    // What a tensor program returns is told at the call.
    RExpr call = with_sinfo(relax::call(callee, std::move(args)), prim_info(p->value->dtype));
    return bind ? RExpr(builder().emit(call)) : call;
  }
};

}  // namespace

ModuleRef compute_prim_value(const ModuleRef& module, const PassContext&) {
  return rewrite_functions(module,
                           [](const FuncRef& f, BlockBuilder& builder) { return PrimValues(builder).function(*f); });
}

}  // namespace sator::passes
