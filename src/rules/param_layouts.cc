#include "rules/param_layouts.h"

#include <algorithm>
#include <set>

#include "relax/builder.h"
#include "relax/ops/op.h"
#include "relax/outline.h"
#include "rules/cpu.h"
#include "rules/grouped.h"
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

/// How a matrix of weights lies: in panels of 32 rows, [ceil(rows / 32), cols, 32], or those in pairs of columns, as
/// vdpbf16ps reads them, [ceil(rows / 32), cols / 2, 32, 2].
enum class Panels : uint8_t { columns, pairs };
size_t rank_of(Panels p) { return p == Panels::pairs ? 4 : 3; }

/// Of [rows, cols], or of a stack of such matrices.
Ref<const arith::IndexMap> panel_map(int64_t rank, DType dtype, Panels panels) {
  return arith::index_map(
      static_cast<int>(rank),
      [panels](const std::vector<VarRef>& i) {
        std::vector<Expr> at(i.begin(), i.end() - 2);
        const VarRef &row = i[i.size() - 2], &col = i.back();
        if (panels == Panels::pairs)
          at.insert(at.end(), {floordiv(row, kPanel), floordiv(col, 2), floormod(row, kPanel), floormod(col, 2)});
        else
          at.insert(at.end(), {floordiv(row, kPanel), Expr(col), floormod(row, kPanel)});
        return at;
      },
      dtype);
}

/// The shape of panels of a matrix, or of a stack of them.
std::vector<Expr> panel_shape(const std::vector<Expr>& shape, Panels panels) {
  std::vector<Expr> out(shape.begin(), shape.end() - 2);
  const int64_t rows = *as_int(shape[shape.size() - 2]);
  const Expr count = int_imm((rows + kPanel - 1) / kPanel, i64), panel = int_imm(kPanel, i64);
  if (panels == Panels::pairs)
    out.insert(out.end(), {count, int_imm(*as_int(shape.back()) / 2, i64), panel, int_imm(2, i64)});
  else
    out.insert(out.end(), {count, shape.back(), panel});
  return out;
}

/// W [.., rows, cols] -> its panels.
tir::PrimFuncRef pack_function(const std::vector<Expr>& shape, DType dtype, Panels panels) {
  const int64_t rows = *as_int(shape[shape.size() - 2]);
  te::Tensor w = te::placeholder(shape, dtype, "w");
  te::Tensor p = te::compute({.name = "pack", .axis = "i"}, panel_shape(shape, panels), [&](const te::Indices& i) {
    const auto own = i.end() - static_cast<int64_t>(rank_of(panels));
    te::Indices at(i.begin(), own);
    const Expr row = own[0] * kPanel + own[2];
    at.insert(at.end(), {row, panels == Panels::pairs ? own[1] * 2 + own[3] : own[1]});
    if (rows % kPanel == 0) return w(at);
    return sator::call(dtype, "tir.if_then_else", {lt(row, int_imm(rows, i64)), w(at), constant(0, dtype)});
  });
  return tir::without_symbol(te::create_prim_func({w, p}));
}

/// Whether what the function does with the weight is a sum of products of two bfloat16.
bool multiplies_bf16(const tir::PrimFuncRef& f, const std::string& name) {
  const std::optional<GroupedFunction> grouped = grouped_function(f);
  schedule::Schedule s = named_schedule(grouped ? grouped->one : f, name);
  return bf16_product_block(s) != nullptr;
}

/// Arguments of a function that come in panels.
using PanelArguments = std::vector<std::pair<size_t, Panels>>;

/// The function with some of its tensor parameters in panels; it notes the steps.
tir::PrimFuncRef with_panels(const tir::PrimFuncRef& f, const std::string& name, const PanelArguments& packed) {
  schedule::Schedule s = named_schedule(f, name);
  for (const auto& [i, panels] : packed) {
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
                               panel_map(buffer->rank(), buffer->shape[0]->dtype, panels),
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
  /// in_pairs: whether weights that are only multiplied as bfloat16 lie in pairs
  Packer(const ModuleRef& module, bool in_pairs) : module_(module), builder_(module), in_pairs_(in_pairs) {}

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
          if (!is_matrix(*buffer) || !feeds_product(*reader, buffer)) continue;
          const bool pairs = in_pairs_ && buffer->dtype == bf16 && multiplies_bf16(ref(*reader), *callee);
          const auto [known, is_new] = wanted_.emplace(at->second, pairs ? Panels::pairs : Panels::columns);
          if (!is_new && !pairs) known->second = Panels::columns;
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
    std::map<RVarRef, Panels> packed;
    walk(f->body, [&](const BindingBlock& block) {
      for (const Binding& b : block.bindings) {
        const TupleGetItem* get = bound_value(b).as<TupleGetItem>();
        if (get && get->tuple == params && wanted_.count(get->index))
          packed.emplace(bound_var(b), wanted_.at(get->index));
        auto callee = called_prim_func(b);
        if (!callee) continue;
        std::vector<RExpr> inputs = call_tir_inputs(*bound_value(b).as<RCall>());
        PanelArguments which;
        for (size_t i = 0; i < inputs.size(); ++i)
          if (const auto at = packed.find(cast<RVar>(inputs[i])); at != packed.end()) which.emplace_back(i, at->second);
        patterns_[*callee].insert(which);
      }
      return false;
    });
  }

  FuncRef rewritten(const Function& f) {
    RVarRef params = params_of(f);
    std::map<RVarRef, PackedItem> packed;
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
        const Panels panels = wanted_.at(get->index);
        RExpr callee = builder_.add_function(pack_function(shape, info->dtype, panels), "pack");
        StructInfo out = tensor_info(panel_shape(shape, panels), info->dtype);
        RExpr call =
            with_sinfo(relax::call(op_ref("call_tir"), {callee, relax::tuple({RExpr(bound_var(b))})}, {}, {out}), out);
        packed.emplace(bound_var(b), PackedItem{builder_.emit(call), panels});
      }
      blocks.push_back(builder_.end_block());
    }
    builder_.end_scope();
    return sator::with(f, &Function::body, RExpr(sator::with(*seq, &SeqExpr::blocks, std::move(blocks))));
  }

  /// An item of the parameters, in panels.
  struct PackedItem {
    RExpr value;
    Panels panels;
  };

  Binding packed_call(const Binding& b, const std::map<RVarRef, PackedItem>& packed) {
    auto callee = called_prim_func(b);
    if (!callee) return b;
    const RCall& call = *bound_value(b).as<RCall>();
    std::vector<RExpr> inputs = call_tir_inputs(call);
    PanelArguments which;
    for (size_t i = 0; i < inputs.size(); ++i) {
      auto at = packed.find(cast<RVar>(inputs[i]));
      if (at == packed.end()) continue;
      inputs[i] = at->second.value;
      which.emplace_back(i, at->second.panels);
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
  bool in_pairs_;
  std::map<int, Panels> wanted_;
  std::map<std::string, std::set<PanelArguments>> patterns_;
  std::map<std::pair<std::string, PanelArguments>, RExpr> functions_;
};

}  // namespace

ModuleRef attach_param_layouts(const ModuleRef& module, const passes::PassContext& ctx) {
  const bool in_pairs =
      ctx.target && ctx.target->is_cpu() &&
      std::ranges::any_of(ctx.target->levels(), [](const auto* level) { return level->dot_bf16 || level->tiles; });
  return Packer(module, in_pairs).run();
}

}  // namespace sator::rules
