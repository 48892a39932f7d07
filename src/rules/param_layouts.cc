#include "rules/param_layouts.h"

#include <algorithm>
#include <set>

#include "relax/builder.h"
#include "relax/ops/op.h"
#include "relax/outline.h"
#include "rules/cpu.h"
#include "rules/rule.h"
#include "schedule/primitives.h"
#include "tir/te.h"

namespace sator::rules {

using namespace relax;
namespace {

/// Whether a block of the function reduces over what it reads of the buffer, or of what another block makes of it.
bool feeds_product(const tir::PrimFunc& f, const BufferRef& weight) {
  std::set<BufferRef> derived = {weight};
  bool product = false;
  walk(f.body, [&](const tir::Block& block) {
    if (block.iter_vars.empty()) return true;
    bool reads = false;
    walk(block.body, [&](const BufferLoad& l) { reads |= derived.count(l.buffer) > 0; });
    bool reduces = block.init && std::any_of(block.iter_vars.begin(),
                                             block.iter_vars.end(),
                                             [](const tir::IterVarRef& i) { return i->kind == tir::IterKind::reduce; });
    if (reads && reduces) product = true;
    if (reads && !reduces) {
      for (const tir::BufferRegionRef& w : block.writes) derived.insert(w->buffer);
    }
    return true;
  });
  return product;
}

/// Of [rows, cols], or of a stack of such matrices.
Ref<const arith::IndexMap> panel_map(int64_t rank, DType dtype) {
  return arith::index_map(
      static_cast<int>(rank),
      [](const std::vector<VarRef>& i) {
        std::vector<Expr> at(i.begin(), i.end() - 2);
        const VarRef &row = i[i.size() - 2], &col = i.back();
        at.insert(at.end(), {floordiv(row, kPanel), Expr(col), floormod(row, kPanel)});
        return at;
      },
      dtype);
}

/// The shape of panels of a matrix, or of a stack of them.
std::vector<Expr> panel_shape(const std::vector<Expr>& shape) {
  std::vector<Expr> out(shape.begin(), shape.end() - 2);
  const int64_t rows = *as_int(shape[shape.size() - 2]);
  out.insert(out.end(), {int_imm((rows + kPanel - 1) / kPanel, i64), shape.back(), int_imm(kPanel, i64)});
  return out;
}

/// W [.., rows, cols] -> P [.., ceil(rows / 32), cols, 32].
tir::PrimFuncRef pack_function(const std::vector<Expr>& shape, DType dtype) {
  const int64_t rows = *as_int(shape[shape.size() - 2]);
  te::Tensor w = te::placeholder(shape, dtype, "w");
  te::Tensor p = te::compute({.name = "pack", .axis = "i"}, panel_shape(shape), [&](const te::Indices& i) {
    te::Indices at(i.begin(), i.end() - 3);
    const Expr row = i[i.size() - 3] * kPanel + i.back();
    at.insert(at.end(), {row, i[i.size() - 2]});
    if (rows % kPanel == 0) return w(at);
    return sator::call(dtype, "tir.if_then_else", {lt(row, int_imm(rows, i64)), w(at), constant(0, dtype)});
  });
  return tir::without_symbol(te::create_prim_func({w, p}));
}

/// The function with some of its tensor parameters in panels; it notes the steps.
tir::PrimFuncRef with_panels(const tir::PrimFuncRef& f, const std::string& name, const std::vector<size_t>& packed) {
  schedule::Schedule s = named_schedule(f, name);
  for (size_t i : packed) {
    BufferRef buffer = tensor_parameter(*s.func(), i);
    schedule::BlockHandle reader;
    int64_t region_of = 0;
    for (int b = 0; b < s.sites().count(); ++b) {
      const tir::BlockRealize* r = s.sites()[b].realize();
      if (!r || r->block->iter_vars.empty()) continue;
      for (size_t k = 0; k < r->block->reads.size(); ++k) {
        if (r->block->reads[k]->buffer != buffer) continue;
        reader = r->block->name;
        region_of = static_cast<int64_t>(k);
      }
    }
    if (!reader) internal_error("a packed parameter that nobody reads");
    schedule::transform_layout(s,
                               reader,
                               schedule::BufferSelector{false, region_of},
                               panel_map(buffer->rank(), buffer->shape[0]->dtype),
                               schedule::Value(),
                               true);
  }
  tir::PrimFuncRef done = s.func();
  Attrs attrs = done->attrs;
  attrs[kLayoutTrace] = string_imm(s.trace().as_python());
  return sator::with(done, &tir::PrimFunc::attrs, std::move(attrs));
}

class Packer {
 public:
  explicit Packer(const ModuleRef& module) : module_(module), builder_(module) {}

  ModuleRef run() {
    for (const auto& [name, func] : module_->functions) find_uses(func);
    for (const auto& [name, func] : module_->functions) find_patterns(func);
    for (const auto& [name, func] : module_->functions) {
      if (FuncRef f = cast<Function>(func); f && params_of(*f)) builder_.update_function(name, rewritten(*f));
    }
    return builder_.module();
  }

 private:
  static RVarRef params_of(const Function& f) {
    auto inputs = int_attr(f.attrs, "num_input");
    if (!inputs || *inputs >= static_cast<int64_t>(f.params.size())) return nullptr;
    return f.params[static_cast<size_t>(*inputs)];
  }

  /// Rows that fill a panel, or a stack of such matrices.
  static bool is_matrix(const Buffer& b) {
    const bool known = std::ranges::all_of(b.shape, [](const Expr& e) { return as_int(e).has_value(); });
    return known && (b.rank() == 2 || b.rank() == 3) && *as_int(b.shape[b.shape.size() - 2]) >= kPanel;
  }

  /// Which items of the parameter tuple products read as matrices.
  void find_uses(const Func& func) {
    const Function* f = func.as<Function>();
    RVarRef params = f ? params_of(*f) : nullptr;
    if (!params) return;
    std::map<RVarRef, int> item_of;
    walk(f->body, [&](const BindingBlock& block) {
      for (const Binding& b : block.bindings) {
        const TupleGetItem* get = bound_value(b).as<TupleGetItem>();
        if (get && get->tuple == params) item_of[bound_var(b)] = get->index;
        auto callee = called_prim_func(b);
        if (!callee) continue;
        const tir::PrimFunc* reader = module_->functions.at(*callee).as<tir::PrimFunc>();
        std::vector<RExpr> inputs = call_tir_inputs(*bound_value(b).as<RCall>());
        for (size_t i = 0; i < inputs.size(); ++i) {
          auto at = item_of.find(cast<RVar>(inputs[i]));
          if (at == item_of.end()) continue;
          BufferRef buffer = tensor_parameter(*reader, i);
          if (is_matrix(*buffer) && feeds_product(*reader, buffer)) wanted_.insert(at->second);
        }
      }
      return false;
    });
  }

  /// Which arguments each function is given in panels; more than one way where it is called with different ones.
  void find_patterns(const Func& func) {
    const Function* f = func.as<Function>();
    RVarRef params = f ? params_of(*f) : nullptr;
    if (!params) return;
    std::set<RVarRef> packed;
    walk(f->body, [&](const BindingBlock& block) {
      for (const Binding& b : block.bindings) {
        const TupleGetItem* get = bound_value(b).as<TupleGetItem>();
        if (get && get->tuple == params && wanted_.count(get->index)) packed.insert(bound_var(b));
        auto callee = called_prim_func(b);
        if (!callee) continue;
        std::vector<RExpr> inputs = call_tir_inputs(*bound_value(b).as<RCall>());
        std::vector<size_t> which;
        for (size_t i = 0; i < inputs.size(); ++i)
          if (packed.count(cast<RVar>(inputs[i]))) which.push_back(i);
        patterns_[*callee].insert(which);
      }
      return false;
    });
  }

  FuncRef rewritten(const Function& f) {
    RVarRef params = params_of(f);
    std::map<RVarRef, RExpr> packed;  // the panels of an item
    std::map<RVarRef, int> item_of;
    const SeqExpr* seq = f.body.as<SeqExpr>();
    std::vector<BindingBlockRef> blocks;
    builder_.begin_scope(f.params);
    for (const BindingBlockRef& block : seq->blocks) {
      builder_.begin_block(block->is_dataflow);
      for (const Binding& b : block->bindings) {
        builder_.emit_binding(packed_call(b, packed));
        const TupleGetItem* get = bound_value(b).as<TupleGetItem>();
        if (!get || get->tuple != params || !wanted_.count(get->index)) continue;
        const TensorInfo* info = bound_var(b)->sinfo.as<TensorInfo>();
        std::vector<Expr> shape = *relax::shape_of(*info);
        RExpr callee = builder_.add_function(pack_function(shape, info->dtype), "pack");
        StructInfo out = tensor_info(panel_shape(shape), info->dtype);
        RExpr call =
            with_sinfo(relax::call(op_ref("call_tir"), {callee, relax::tuple({RExpr(bound_var(b))})}, {}, {out}), out);
        packed.emplace(bound_var(b), builder_.emit(call));
      }
      blocks.push_back(builder_.end_block());
    }
    builder_.end_scope();
    return sator::with(f, &Function::body, RExpr(sator::with(*seq, &SeqExpr::blocks, std::move(blocks))));
  }

  Binding packed_call(const Binding& b, const std::map<RVarRef, RExpr>& packed) {
    auto callee = called_prim_func(b);
    if (!callee) return b;
    const RCall& call = *bound_value(b).as<RCall>();
    std::vector<RExpr> inputs = call_tir_inputs(call);
    std::vector<size_t> which;
    for (size_t i = 0; i < inputs.size(); ++i) {
      auto at = packed.find(cast<RVar>(inputs[i]));
      if (at == packed.end()) continue;
      inputs[i] = at->second;
      which.push_back(i);
    }
    if (which.empty()) return b;
    auto key = std::pair(*callee, which);
    auto made = functions_.find(key);
    if (made == functions_.end()) {
      tir::PrimFuncRef f = with_panels(cast<tir::PrimFunc>(module_->functions.at(*callee)), *callee, which);
      // A function that is always called so keeps its name: a kernel is called as its phase-3 function is.
      RExpr name = call.args[0];
      if (patterns_.at(*callee).size() == 1)
        builder_.update_function(*callee, f);
      else
        name = builder_.add_function(f, *callee);
      made = functions_.emplace(key, name).first;
    }
    std::vector<RExpr> args = call.args;
    args[0] = made->second;
    args[1] = relax::tuple(inputs);
    return make<VarBinding>(with_sinfo(relax::call(call.op, args, call.attrs, call.sinfo_args), call.sinfo),
                            bound_var(b));
  }

  const ModuleRef& module_;
  BlockBuilder builder_;
  std::set<int> wanted_;
  std::map<std::string, std::set<std::vector<size_t>>> patterns_;
  std::map<std::pair<std::string, std::vector<size_t>>, RExpr> functions_;
};

}  // namespace

ModuleRef attach_param_layouts(const ModuleRef& module, const passes::PassContext&) { return Packer(module).run(); }

}  // namespace sator::rules
