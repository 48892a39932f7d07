#include <algorithm>

#include "passes/fuse_ops.h"
#include "passes/outline.h"
#include "tir/nodes.h"

namespace sator::passes {

using namespace relax;

namespace {

/// The tensors of a value, tuples opened: buffers of the function that is being built.
using Buffers = std::vector<BufferRef>;

class TirFuser {
 public:
  TirFuser(const ModuleRef& module, const Function& func) : module_(module), func_(func) {}

  tir::PrimFuncRef run() {
    for (const RVarRef& p : func_.params) add_parameter(p, p->sinfo, p->name);
    const SeqExpr* seq = func_.body.as<SeqExpr>();
    std::vector<Binding> bindings;
    for (const BindingBlockRef& block : seq->blocks)
      bindings.insert(bindings.end(), block->bindings.begin(), block->bindings.end());
    name_results(bindings, seq->body);
    for (const Binding& b : bindings) add_binding(b);
    // The results in the order in which the function returns them, whoever was computed first.
    for (const RVarRef& v : is_result_) {
      for (const BufferRef& buffer : values_.at(v)) add_buffer_parameter(params_, buffer);
    }
    params_.insert(params_.end(), scalars_.begin(), scalars_.end());

    tir::BlockRef root = make<tir::Block>(std::vector<tir::IterVarRef>{}, allocations_, std::vector<tir::MatchBufferRef>{},
                                          std::vector<tir::BufferRegionRef>{}, std::vector<tir::BufferRegionRef>{},
                                          tir::block_name("root"), Attrs{}, tir::Stmt(), tir::seq(body_));
    Attrs attrs;
    for (const auto& [key, value] : func_.attrs) {
      if (key != "Primitive" && key != "Composite") attrs[key] = value;
    }
    attrs["tir.noalias"] = bool_imm(true);
    attrs.erase("op_pattern");
    return make<tir::PrimFunc>(params_, buffer_map_, DType::Void(), attrs,
                               tir::Stmt(make<tir::BlockRealize>(std::vector<Expr>{}, bool_imm(true), root)));
  }

 private:
  BufferRef tensor_buffer(const TensorInfo& info, const std::string& name) {
    auto shape = relax::shape_of(info);
    if (!shape)
      internal_error(text("FuseTIR: the shape of ", name, " is not known"));
    return make_buffer(name, *shape, info.dtype);
  }

  void add_parameter(const RVarRef& var, const StructInfo& info, const std::string& name) {
    if (const TensorInfo* t = info.as<TensorInfo>()) {
      BufferRef buffer = tensor_buffer(*t, name);
      add_buffer_parameter(params_, buffer);
      values_[var].push_back(buffer);
    } else if (const TupleInfo* tuple = info.as<TupleInfo>()) {
      for (size_t i = 0; i < tuple->items.size(); ++i) add_parameter(var, tuple->items[i], text(name, "_", i));
    } else if (const ShapeInfo* s = info.as<ShapeInfo>()) {
      for (const Expr& e : s->values.value_or(std::vector<Expr>{})) {
        if (VarRef v = cast<Var>(e)) scalars_.push_back(v);
      }
    } else {
      internal_error(text("FuseTIR: parameter ", name, " is neither a tensor nor a shape"));
    }
  }

  void add_buffer_parameter(std::vector<VarRef>& params, const BufferRef& buffer) {
    VarRef handle = make_var("p_" + buffer->name, DType::Handle());
    params.push_back(handle);
    buffer_map_.emplace_back(handle, buffer);
  }

  /// The tensors that the function returns are its output buffers; all others between its calls are allocated.
  void name_results(const std::vector<Binding>& bindings, const RExpr& body) {
    std::vector<RExpr> results = {body};
    std::map<RVarRef, RExpr> definition;
    for (const Binding& b : bindings) definition[bound_var(b)] = bound_value(b);
    while (!results.empty()) {
      RExpr e = results.back();
      results.pop_back();
      if (const relax::Tuple* t = e.as<relax::Tuple>()) {
        for (size_t i = t->items.size(); i-- > 0;) results.push_back(t->items[i]);
      } else if (RVarRef v = cast<RVar>(e)) {
        auto at = definition.find(v);
        if (at == definition.end()) internal_error("FuseTIR: a function returns its own parameter");
        if (at->second.as<RVar>() || at->second.as<relax::Tuple>()) results.push_back(at->second);
        else is_result_.push_back(v);
      }
    }
  }

  void add_binding(const Binding& b) {
    RExpr value = bound_value(b);
    RVarRef var = bound_var(b);
    if (called_prim_func(b)) {
      add_call(var, *value.as<RCall>());
    } else if (RVarRef v = cast<RVar>(value)) {
      values_[var] = values_.at(v);
    } else if (value.as<relax::Tuple>()) {
      values_[var] = buffers_of(value);
    } else if (const TupleGetItem* get = value.as<TupleGetItem>()) {
      const TupleInfo* info = get->tuple->sinfo.as<TupleInfo>();
      Buffers all = buffers_of(get->tuple);
      if (!info || all.size() != info->items.size()) internal_error("FuseTIR: an item of a nested tuple");
      values_[var] = {all[static_cast<size_t>(get->index)]};
    } else {
      internal_error("FuseTIR: a primitive function holds something that is no call_tir");
    }
  }

  Buffers buffers_of(const RExpr& e) {
    if (RVarRef v = cast<RVar>(e)) return values_.at(v);
    if (const relax::Tuple* t = e.as<relax::Tuple>()) {
      Buffers all;
      for (const RExpr& item : t->items) {
        Buffers part = buffers_of(item);
        all.insert(all.end(), part.begin(), part.end());
      }
      return all;
    }
    internal_error("FuseTIR: an argument that is no variable");
  }

  Buffers make_results(const RVarRef& var, const StructInfo& info, const tir::PrimFunc& callee, size_t first_output) {
    std::vector<StructInfo> items = {info};
    if (const TupleInfo* t = info.as<TupleInfo>()) items = t->items;
    bool is_result = std::find(is_result_.begin(), is_result_.end(), var) != is_result_.end();
    Buffers out;
    for (size_t i = 0; i < items.size(); ++i) {
      BufferRef formal = callee.buffer_of(callee.params[first_output + i]);
      if (is_result) {
        auto position = std::find(is_result_.begin(), is_result_.end(), var) - is_result_.begin() + static_cast<int64_t>(i);
        out.push_back(tensor_buffer(*items[i].as<TensorInfo>(), text("p_output", position)));
      } else {
        BufferRef buffer = tensor_buffer(*items[i].as<TensorInfo>(), formal->name + "_intermediate");
        allocations_.push_back(buffer);
        out.push_back(buffer);
      }
    }
    return out;
  }

  void add_call(const RVarRef& var, const RCall& call) {
    const GlobalVar* gv = call.args[0].as<GlobalVar>();
    Ref<const tir::PrimFunc> callee = cast<tir::PrimFunc>(module_->functions.at(gv->name));
    Buffers actual;
    for (const RExpr& arg : call_tir_inputs(call)) {
      Buffers part = buffers_of(arg);
      actual.insert(actual.end(), part.begin(), part.end());
    }
    Buffers results = make_results(var, call.sinfo_args.front(), *callee, actual.size());
    values_[var] = results;
    actual.insert(actual.end(), results.begin(), results.end());

    // The callee's own variables: its buffers become ours, its sizes the extents they stand for, the rest is renewed.
    NodeMap map;
    size_t next = 0;
    for (const VarRef& param : callee->params) {
      BufferRef formal = callee->buffer_of(param);
      if (!formal) continue;
      if (next == actual.size()) internal_error(text("FuseTIR: ", gv->name, " has more tensors than its call"));
      const BufferRef& given = actual[next++];
      map.emplace(formal, given);
      map.emplace(formal->data, given->data);
      for (size_t d = 0; d < formal->shape.size(); ++d) {
        if (VarRef size = cast<Var>(formal->shape[d])) map.emplace(size, given->shape[d]);
      }
    }
    if (call.args.size() > 2) {
      std::vector<Expr> sizes = *relax::shape_values(call.args[2]);
      size_t s = 0;
      for (const VarRef& param : callee->params) {
        if (!callee->buffer_of(param)) map.emplace(param, sizes.at(s++));
      }
    }
    tir::BlockRealizeRef root = tir::root_of(*callee);
    if (!root) internal_error(text("FuseTIR: ", gv->name, " is not in block form"));
    auto renew = [&](const VarRef& v) { map.emplace(v, NodeRef(new Var(*v))); };
    walk(root, [&](const tir::For& loop) { renew(loop.var); }, [&](const tir::LetStmt& let) { renew(let.var); },
         [&](const Let& let) { renew(let.var); },
         [&](const tir::Block& block) {
           for (const tir::IterVarRef& iter : block.iter_vars) renew(iter->var);
           for (const BufferRef& buffer : block.alloc_buffers) renew(buffer->data);
           for (const tir::MatchBufferRef& m : block.match_buffers) renew(m->buffer->data);
           map.emplace(block.name, tir::block_name(fresh_block_name(block.name->text)));
         });
    tir::BlockRef block = replaced(root->block, map);
    allocations_.insert(allocations_.end(), block->alloc_buffers.begin(), block->alloc_buffers.end());
    body_.push_back(block->body);
  }

  std::string fresh_block_name(const std::string& name) {
    int64_t seen = block_names_[name]++;
    return seen == 0 ? name : text(name, "_", seen);
  }

  const ModuleRef& module_;
  const Function& func_;
  std::map<RVarRef, Buffers> values_;
  std::vector<VarRef> params_, scalars_;
  std::vector<std::pair<VarRef, BufferRef>> buffer_map_;
  std::vector<BufferRef> allocations_;
  std::vector<RVarRef> is_result_;
  std::vector<tir::Stmt> body_;
  std::map<std::string, int64_t> block_names_;
};

/// The arguments of a call of a fused function, tuples opened; shapes come apart into the last argument of call_tir.
void flatten(const RExpr& arg, std::vector<RExpr>& tensors, std::vector<Expr>& sizes) {
  if (arg->sinfo.as<ShapeInfo>()) {
    std::vector<Expr> extents = *relax::shape_values(arg);
    for (const Expr& e : extents) sizes.push_back(e);
  } else if (const relax::Tuple* t = arg.as<relax::Tuple>()) {
    for (const RExpr& item : t->items) flatten(item, tensors, sizes);
  } else if (const TupleInfo* info = arg->sinfo.as<TupleInfo>()) {
    for (size_t i = 0; i < info->items.size(); ++i) flatten(tuple_get(arg, static_cast<int>(i)), tensors, sizes);
  } else {
    tensors.push_back(arg);
  }
}

}  // namespace

ModuleRef fuse_tir(const ModuleRef& module, const PassContext&) {
  ModuleRef out = module;
  std::vector<std::string> fused;
  for (const auto& [name, func] : module->functions) {
    const Function* f = func.as<Function>();
    if (!f || int_attr(f->attrs, "Primitive").value_or(0) == 0) continue;
    out = with_function(out, name, TirFuser(module, *f).run());
    fused.push_back(name);
  }
  if (fused.empty()) return module;
  const ModuleRef functions = out;  // what is walked while `out` changes
  for (const auto& [name, func] : functions->functions) {
    if (!func.as<Function>()) continue;
    Func rewritten = transform(func, [&](const RCall& call) -> NodeRef {
      const GlobalVar* callee = call.op.as<GlobalVar>();
      if (!callee || std::find(fused.begin(), fused.end(), callee->name) == fused.end()) return ref(call);
      std::vector<RExpr> tensors;
      std::vector<Expr> sizes;
      for (const RExpr& arg : call.args) flatten(arg, tensors, sizes);
      std::vector<RExpr> args = {global_var(callee->name, info_of(*functions->functions.at(callee->name))), relax::tuple(tensors)};
      if (!sizes.empty()) args.push_back(shape_expr(sizes));
      return with_sinfo(relax::call(op_ref("call_tir"), args, {}, {call.sinfo}), call.sinfo);
    });
    if (rewritten != func) out = with_function(out, name, rewritten);
  }
  return out;
}

}  // namespace sator::passes
