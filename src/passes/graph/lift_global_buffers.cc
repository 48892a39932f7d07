// What a tensor program allocates in global memory becomes a further result of its calls, which memory planning then places:
//   gv = R.call_tir(cls.f, (x,), out_sinfo=A)  =>  t = R.call_tir(cls.f, (x,), out_sinfo=[A, B]); gv = t[0]
#include "passes/graph/graph.h"
#include "relax/rewrite.h"
#include "tir/nodes.h"

namespace sator::passes {

using namespace relax;

namespace {

bool is_lifted(const BufferRef& b) { return b->scope() == "global" || b->scope().empty(); }

std::vector<BufferRef> lifted_of(const tir::PrimFunc& f) {
  const tir::BlockRealizeRef root = tir::root_of(f);
  std::vector<BufferRef> out;
  if (root)
    for (const BufferRef& b : root->block->alloc_buffers)
      if (is_lifted(b)) out.push_back(b);
  return out;
}

/// The program with these buffers as parameters, behind its other buffers.
tir::PrimFuncRef with_parameters(const tir::PrimFunc& f, const std::vector<BufferRef>& lifted) {
  const tir::BlockRealizeRef root = tir::root_of(f);
  std::vector<BufferRef> kept = root->block->alloc_buffers;
  std::erase_if(kept, is_lifted);
  const tir::BlockRef block = with(root->block, &tir::Block::alloc_buffers, std::move(kept));
  std::vector<VarRef> params = f.params;
  auto buffers = f.buffer_map;
  auto place = std::ranges::find_if(params, [](const VarRef& p) { return !p->dtype.is_handle(); }) - params.begin();
  for (const BufferRef& b : lifted) {
    const VarRef handle = make_var("var_" + b->name, DType::Handle());
    params.insert(params.begin() + place++, handle);
    buffers.emplace_back(handle, b);
  }
  tir::PrimFuncRef out = with(f, &tir::PrimFunc::params, std::move(params));
  out = with(out, &tir::PrimFunc::buffer_map, std::move(buffers));
  return with(out, &tir::PrimFunc::body, tir::Stmt(with(root, &tir::BlockRealize::block, block)));
}

/// What the sizes of a program stand for in a call of it.
VarMap sizes_of(const tir::PrimFunc& f, const RCall& call) {
  std::vector<StructInfo> tensors;
  std::function<void(const StructInfo&)> gather = [&](const StructInfo& s) {
    if (const TupleInfo* t = s.as<TupleInfo>())
      for (const StructInfo& item : t->items) gather(item);
    else
      tensors.push_back(s);
  };
  gather(call.args[1]->sinfo);
  gather(call.sinfo_args[0]);
  VarMap out;
  size_t next = 0, scalar = 0;
  const auto scalars = call.args.size() > 2 ? shape_values(call.args[2]) : std::nullopt;
  for (const VarRef& p : f.params) {
    const BufferRef buffer = f.buffer_of(p);
    if (!buffer) {
      if (scalars && scalar < scalars->size()) out.emplace(p, cast_to(p->dtype, (*scalars)[scalar++]));
      continue;
    }
    const TensorInfo* t = next < tensors.size() ? tensors[next++].as<TensorInfo>() : nullptr;
    const auto shape = t ? shape_of(*t) : std::nullopt;
    for (size_t d = 0; shape && d < buffer->shape.size() && d < shape->size(); ++d)
      if (VarRef size = cast<Var>(buffer->shape[d])) out.emplace(size, cast_to(size->dtype, (*shape)[d]));
  }
  return out;
}

class BufferLifter final : public GraphRewriter {
 public:
  BufferLifter(BlockBuilder& builder, const std::map<std::string, tir::PrimFuncRef>& programs)
      : GraphRewriter(builder), programs_(programs) {}

 private:
  RExpr value(const RVarRef& var, const RExpr& value) override {
    const RCall* call = is_op(value, "call_tir") ? value.as<RCall>() : nullptr;
    const GlobalVar* callee = call ? call->args[0].as<GlobalVar>() : nullptr;
    const auto at = callee ? programs_.find(callee->name) : programs_.end();
    if (at == programs_.end()) return value;
    const TupleInfo* several = call->sinfo_args[0].as<TupleInfo>();
    std::vector<StructInfo> results = several ? several->items : std::vector<StructInfo>{call->sinfo_args[0]};
    const size_t own = results.size();
    const VarMap sizes = sizes_of(*at->second, *call);
    for (const BufferRef& b : lifted_of(*at->second)) {
      std::vector<Expr> shape;
      for (const Expr& e : b->shape) shape.push_back(builder().arith().simplify(cast_to(i64, substitute(e, sizes))));
      results.push_back(tensor_info(std::move(shape), b->dtype));
    }
    const RVarRef all =
        builder().emit(relax::call(call->op, call->args, Attrs(call->attrs), {tuple_info(results)}), var->name);
    if (!several) return tuple_get(all, 0);
    std::vector<RExpr> items;
    for (size_t i = 0; i < own; ++i) items.push_back(builder().emit(tuple_get(all, static_cast<int>(i))));
    return relax::tuple(std::move(items));
  }

  const std::map<std::string, tir::PrimFuncRef>& programs_;
};

}  // namespace

ModuleRef lift_global_buffers(const ModuleRef& module, const PassContext&) {
  std::map<std::string, tir::PrimFuncRef> programs;
  for (const auto& [name, func] : module->functions) {
    const tir::PrimFuncRef f = cast<tir::PrimFunc>(func);
    // A function that others may call keeps its parameters.
    if (f && !has_attr(f->attrs, "global_symbol") && !lifted_of(*f).empty()) programs.emplace(name, f);
  }
  // Nor does one that is a value, or that is called in another way.
  for (const auto& [name, func] : module->functions) {
    walk(func, [&](const RCall& c) {
      const bool lifts = is_op(ref(c), "call_tir");
      for (size_t i = 0; i < c.args.size(); ++i)
        if (const GlobalVar* g = c.args[i].as<GlobalVar>(); g && !(lifts && i == 0)) programs.erase(g->name);
      if (const GlobalVar* g = c.op.as<GlobalVar>()) programs.erase(g->name);
    });
    walk(func, [&](const Call& c) { programs.erase(c.op); });
  }
  if (programs.empty()) return module;
  ModuleRef out = module;
  for (const auto& [name, f] : programs) out = with_function(std::move(out), name, with_parameters(*f, lifted_of(*f)));
  return rewrite_functions(
      out, [&](const FuncRef& f, BlockBuilder& builder) { return BufferLifter(builder, programs).function(*f); });
}

}  // namespace sator::passes
