#include <algorithm>
#include <set>

#include "passes/dead_code_elimination.h"
#include "passes/fuse_ops.h"
#include "passes/graph/graph.h"
#include "passes/lower/lower.h"
#include "relax/bind.h"
#include "relax/outline.h"
#include "relax/rebind.h"
#include "relax/struct_info.h"
#include "tir/copy.h"

namespace sator::passes {

using namespace relax;

namespace {

/// The tensors of a value, tuples opened: buffers of the function that is being built.
using Buffers = std::vector<BufferRef>;

bool casts_to_float16(const tir::PrimFunc& f) {
  bool found = false;
  walk(f.body, [&](const Cast& c) { found |= c.dtype.with_lanes(1) == f16; });
  return found;
}

class TirFuser {
 public:
  TirFuser(const ModuleRef& module, const Function& func) : module_(module), func_(func) {}

  tir::PrimFuncRef run() {
    for (const RVarRef& p : func_.params) {
      used_.push_back(fields_read(p));
      add_parameter(p, p->sinfo, p->name, used_.back());
    }
    const SeqExpr* seq = func_.body.as<SeqExpr>();
    std::vector<Binding> bindings;
    for (const BindingBlockRef& block : seq->blocks)
      bindings.insert(bindings.end(), block->bindings.begin(), block->bindings.end());
    name_results(bindings, seq->body);
    for (const Binding& b : bindings) add_binding(b);
    // The results in the order in which the function returns them, whoever was computed first.
    const auto inputs = std::ssize(buffer_map_);
    for (const RVarRef& v : is_result_) {
      for (const BufferRef& buffer : values_.at(v)) add_result(buffer);
    }
    for (const BufferRef& buffer : overwritten_)
      if (const auto at = tensor_parameter(buffer);
          at && *at < inputs && std::ranges::find(in_place_, *at) == in_place_.end())
        refuse(text("a group overwrites its parameter ", buffer->name, " and returns something else"),
               "a group that returns what it overwrites of its parameters",
               "leave the call_tir_inplace out of the group, or its argument in it");

    tir::BlockRef root = make<tir::Block>(std::vector<tir::IterVarRef>{},
                                          allocations_,
                                          std::vector<tir::MatchBufferRef>{},
                                          std::vector<tir::BufferRegionRef>{},
                                          std::vector<tir::BufferRegionRef>{},
                                          tir::block_name("root"),
                                          Attrs{},
                                          tir::Stmt(),
                                          tir::seq(body_));
    add_undefined_sizes(*root);
    params_.insert(params_.end(), scalars_.begin(), scalars_.end());
    Attrs attrs;
    for (const auto& [key, value] : func_.attrs) {
      if (key != "Primitive" && key != "Composite" && key != "global_symbol") attrs[key] = value;
    }
    attrs["tir.noalias"] = bool_imm(true);
    attrs.erase("op_pattern");
    if (has_finite_casts_ && !has_other_casts_) attrs[kFiniteCasts] = int_imm(1, i64);
    tir::PrimFuncRef f =
        make<tir::PrimFunc>(params_,
                            buffer_map_,
                            DType::Void(),
                            attrs,
                            tir::Stmt(make<tir::BlockRealize>(std::vector<Expr>{}, bool_imm(true), root)));
    if (by_schedule_) f = with(f, &tir::PrimFunc::by_schedule, true);
    return each_region_once(with_separators(f));
  }

  const std::vector<std::optional<std::set<int>>>& used() const { return used_; }
  const std::vector<int64_t>& in_place() const { return in_place_; }
  const std::vector<VarRef>& sizes() const { return sizes_; }

 private:
  /// The fields of a tuple that the function reads, if it reads no more than fields of it.
  std::optional<std::set<int>> fields_read(const RVarRef& param) const {
    if (!param->sinfo.as<TupleInfo>()) return {};
    std::set<int> fields;
    bool as_whole = false;
    walk(
        func_.body,
        [&](const TupleGetItem& get) {
          if (get.tuple != param) return true;
          fields.insert(get.index);
          return false;
        },
        [&](const RVar& v) { as_whole |= &v == param.get(); });
    if (as_whole) return {};
    return fields;
  }

  /// The function whose buffers have the axis separators of the buffers that they stand for.
  tir::PrimFuncRef with_separators(const tir::PrimFuncRef& f) const {
    NodeMap map;
    for (const auto& [buffer, separators] : separators_) {
      if (!separators.empty()) map.emplace(buffer, with(buffer, &Buffer::axis_separators, separators));
    }
    return map.empty() ? f : replaced(f, map);
  }

  /// One tensor may stand for several of a callee's: its blocks then list a region once.
  static tir::PrimFuncRef each_region_once(const tir::PrimFuncRef& f) {
    return transform(f, [](const tir::Block& block) -> NodeRef {
      std::vector<tir::BufferRegionRef> reads;
      for (const tir::BufferRegionRef& r : block.reads) {
        if (std::ranges::none_of(reads, [&](const tir::BufferRegionRef& seen) { return equal(seen, r); }))
          reads.push_back(r);
      }
      return reads.size() == block.reads.size() ? ref(block) : with(block, &tir::Block::reads, std::move(reads));
    });
  }

  /// Records that the tensor is laid out as the callee's buffer says.
  void lay_out(const BufferRef& given, const Buffer& formal, const std::string& callee) {
    auto [at, is_first] = separators_.emplace(given, formal.axis_separators);
    if (is_first || at->second == formal.axis_separators) return;
    fail({.what = text("FuseTIR: the tensor ", given->name, " has two layouts: ", callee, " takes it as ", formal.name),
          .needs = "the same axis separators wherever a tensor of a group is used",
          .hint = "give the buffers of the functions the same axis_separators, or leave them in two groups"});
  }

  /// Sizes of the graph function that no buffer of this one defines, as where fields of a tuple are left out, are parameters.
  void add_undefined_sizes(const tir::Block& root) {
    std::set<VarRef> defined(scalars_.begin(), scalars_.end()), used;
    for (const auto& [param, buffer] : buffer_map_) {
      for (const Expr& extent : buffer->shape) {
        if (VarRef v = cast<Var>(extent)) defined.insert(v);
        for (const VarRef& v : vars_in(extent)) used.insert(v);
      }
    }
    for (const VarRef& v : vars_in(ref(root))) used.insert(v);
    for (const VarRef& v : defined_sizes(func_)) {
      if (!used.contains(v) || defined.contains(v)) continue;
      sizes_.push_back(v);
      scalars_.push_back(v);
    }
  }

  std::optional<int64_t> tensor_parameter(const BufferRef& buffer) const {
    const auto at = std::ranges::find(buffer_map_, buffer, &std::pair<VarRef, BufferRef>::second);
    return at == buffer_map_.end() ? std::nullopt : std::optional<int64_t>(at - buffer_map_.begin());
  }

  /// A result is a parameter of its own, unless it overwrites a tensor argument.
  void add_result(const BufferRef& buffer) {
    const auto given = tensor_parameter(buffer);
    in_place_.push_back(given.value_or(-1));
    if (given) return;
    std::erase(allocations_, buffer);
    add_buffer_parameter(params_, buffer);
  }

  BufferRef tensor_buffer(const TensorInfo& info, const std::string& name) {
    auto shape = relax::shape_of(info);
    if (!shape)
      refuse(text("the shape of ", name, " is not known"),
             "tensors of known shape",
             "declare it as R.Tensor((...), dtype)");
    return make_buffer(name, *shape, info.dtype);
  }

  void add_parameter(const RVarRef& var, const StructInfo& info, const std::string& name,
                     const std::optional<std::set<int>>& used = {}) {
    if (const TensorInfo* t = info.as<TensorInfo>()) {
      BufferRef buffer = tensor_buffer(*t, name);
      add_buffer_parameter(params_, buffer);
      values_[var].push_back(buffer);
    } else if (const TupleInfo* tuple = info.as<TupleInfo>()) {
      for (size_t i = 0; i < tuple->items.size(); ++i) {
        if (used && !used->count(static_cast<int>(i)))
          values_[var].insert(values_[var].end(), static_cast<size_t>(tensors_in(tuple->items[i])), nullptr);
        else
          add_parameter(var, tuple->items[i], text(name, "_", i));
      }
    } else if (const ShapeInfo* s = info.as<ShapeInfo>()) {
      for (const Expr& e : s->values.value_or(std::vector<Expr>{})) {
        if (VarRef v = cast<Var>(e)) scalars_.push_back(v);
      }
    } else {
      refuse(text("parameter ", name, " is neither a tensor nor a shape"),
             "tensors, tuples of them, and shapes",
             "leave it out of the group");
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
        if (at == definition.end())
          refuse("a group returns its own parameter", "results that the group computes", "return it from the caller");
        if (at->second.as<RVar>() || at->second.as<relax::Tuple>() || at->second.as<Constant>())
          results.push_back(at->second);
        else
          is_result_.push_back(v);
      } else {
        refuse("a group returns a constant", "results that the group computes", "return it from the caller");
      }
    }
  }

  void add_binding(const Binding& b) {
    RExpr value = bound_value(b);
    RVarRef var = bound_var(b);
    if (called_prim_func(b) || is_op(value, "call_tir_inplace")) {
      add_call(var, *value.as<RCall>());
    } else if (RVarRef v = cast<RVar>(value)) {
      values_[var] = values_.at(v);
    } else if (value.as<relax::Tuple>()) {
      values_[var] = buffers_of(value);
    } else if (const TupleGetItem* get = value.as<TupleGetItem>()) {
      const TupleInfo* info = get->tuple->sinfo.as<TupleInfo>();
      if (!info)
        refuse(
            "a group takes an item of what is no tuple", "an item of a tuple", "match_cast it to R.Tuple(...) first");
      const Buffers all = buffers_of(get->tuple);
      auto begin = all.begin();
      for (int i = 0; i < get->index; ++i) begin += tensors_in(info->items[static_cast<size_t>(i)]);
      values_[var] = Buffers(begin, begin + tensors_in(info->items[static_cast<size_t>(get->index)]));
    } else {
      refuse(text("a group holds ",
                  op_name(value).empty() ? "something" : "R." + op_name(value),
                  ", which is no call of a tensor program"),
             "functions with the attribute Primitive that call tensor programs alone",
             "run LegalizeOps before FuseOps");
    }
  }

  /// How many buffers a value of this struct info is: of nested tuples those of all parts.
  static int64_t tensors_in(const StructInfo& info) {
    if (info.as<ShapeInfo>()) return 0;
    const TupleInfo* tuple = info.as<TupleInfo>();
    if (!tuple) return 1;
    int64_t count = 0;
    for (const StructInfo& item : tuple->items) count += tensors_in(item);
    return count;
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
    refuse("a group calls a program with something else than a variable",
           "variables as arguments",
           "pass it as a parameter of the group");
  }

  Buffers make_results(const RVarRef& var, const RCall& call, const tir::PrimFunc& callee, const Buffers& inputs) {
    const StructInfo& info = call.sinfo_args.front();
    std::vector<StructInfo> items = {info};
    if (const TupleInfo* t = info.as<TupleInfo>()) items = t->items;
    std::vector<int64_t> overwritten = overwritten_inputs(call, items.size());
    size_t next = inputs.size();
    bool is_result = std::find(is_result_.begin(), is_result_.end(), var) != is_result_.end();
    Buffers out;
    for (size_t i = 0; i < items.size(); ++i) {
      if (overwritten[i] >= 0) {
        out.push_back(inputs.at(static_cast<size_t>(overwritten[i])));
        overwritten_.push_back(out.back());
        continue;
      }
      BufferRef formal = callee.buffer_of(callee.params[next++]);
      if (is_result) {
        auto position =
            std::find(is_result_.begin(), is_result_.end(), var) - is_result_.begin() + static_cast<int64_t>(i);
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
    by_schedule_ |= callee->by_schedule;
    if (callee->attrs.contains(kFiniteCasts))
      has_finite_casts_ = true;
    else
      has_other_casts_ |= casts_to_float16(*callee);
    Buffers actual;
    for (const RExpr& arg : call_tir_inputs(call)) {
      Buffers part = buffers_of(arg);
      actual.insert(actual.end(), part.begin(), part.end());
    }
    values_[var] = make_results(var, call, *callee, actual);
    for (const BufferRef& result : values_[var]) {
      if (std::ranges::find(actual, result) == actual.end()) actual.push_back(result);
    }

    // The callee's own variables: its buffers become ours, its sizes the extents they stand for, the rest is renewed.
    NodeMap map;
    size_t next = 0;
    for (const VarRef& param : callee->params) {
      BufferRef formal = callee->buffer_of(param);
      if (!formal) continue;
      if (next == actual.size())
        refuse(text(gv->name, " has more tensors than its call"),
               "as many tensors as buffers",
               "compare the call with the function");
      const BufferRef& given = actual[next++];
      lay_out(given, *formal, gv->name);
      map.emplace(formal, given);
      map.emplace(formal->data, given->data);
      for (size_t d = 0; d < formal->shape.size(); ++d) {
        if (VarRef size = cast<Var>(formal->shape[d])) {
          require_same_dtype(*size, given->shape[d]->dtype, gv->name);
          map.emplace(size, given->shape[d]);
        }
      }
    }
    if (call.args.size() > 2) {
      std::vector<Expr> sizes = *relax::shape_values(call.args[2]);
      size_t s = 0;
      for (const VarRef& param : callee->params) {
        if (callee->buffer_of(param)) continue;
        require_same_dtype(*param, sizes.at(s)->dtype, gv->name);
        map.emplace(param, sizes[s++]);
      }
    }
    tir::BlockRealizeRef root = tir::root_of(*callee);
    if (!root)
      refuse(text(gv->name, " is no program of blocks"),
             "tensor programs with a root block",
             "put its loops into blocks, or leave it out of the group");
    walk(root, [&](const tir::Block& block) {
      map.emplace(block.name, tir::block_name(fresh_block_name(block.name->text)));
    });
    tir::BlockRef block = cast<tir::Block>(tir::fresh_copy(root->block, std::move(map)));
    allocations_.insert(allocations_.end(), block->alloc_buffers.begin(), block->alloc_buffers.end());
    body_.push_back(block->body);
  }

  [[noreturn]] static void refuse(const std::string& what, const std::string& needs, const std::string& hint) {
    fail({.what = text("FuseTIR: ", what), .needs = needs, .hint = hint});
  }

  static void require_same_dtype(const Var& size, DType given, const std::string& callee) {
    if (size.dtype == given) return;
    fail({.what = text("FuseTIR: ", callee, " counts ", size.name, " in ", size.dtype, ", its caller in ", given),
          .needs = "sizes of one dtype in a group of functions",
          .hint = "run passes that narrow indices (ForceNarrowIndexToInt32, NarrowDataType) after FuseTIR"});
  }

  std::string fresh_block_name(const std::string& name) {
    int64_t seen = block_names_[name]++;
    return seen == 0 ? name : text(name, "_", seen);
  }

  const ModuleRef& module_;
  const Function& func_;
  std::map<RVarRef, Buffers> values_;
  std::vector<VarRef> params_, scalars_;
  std::vector<VarRef> sizes_;  ///< of the scalars those that a tensor of the graph function defines
  std::vector<std::pair<VarRef, BufferRef>> buffer_map_;
  std::vector<BufferRef> allocations_;
  std::map<BufferRef, std::vector<int>> separators_;  ///< of the buffers, as their users have them
  std::vector<RVarRef> is_result_;
  std::vector<tir::Stmt> body_;
  std::vector<std::optional<std::set<int>>> used_;
  std::vector<BufferRef> overwritten_;
  std::vector<int64_t> in_place_;
  bool by_schedule_ = false;       ///< one of the functions was rewritten by a schedule
  bool has_finite_casts_ = false;  ///< one promises kFiniteCasts
  bool has_other_casts_ = false;   ///< one casts to float16 and does not
  std::map<std::string, int64_t> block_names_;
};

/// What a fused function became, and how its calls are rewritten.
struct Fused {
  std::vector<std::optional<std::set<int>>> used;  ///< per parameter that is a tuple: its fields that are read
  std::vector<int64_t> in_place;                   ///< per result: the tensor argument that it overwrites, or -1
  std::vector<RVarRef> params;                     ///< of the graph function
  std::vector<VarRef> sizes;                       ///< sizes of these that follow those of the call's shapes
};

/// The arguments of a call of a fused function, tuples opened; shapes come apart into the last argument of call_tir.
class Arguments {
 public:
  explicit Arguments(Bindings& list, bool is_dataflow) : list_(list), is_dataflow_(is_dataflow) {}
  std::vector<RExpr> tensors;
  std::vector<Expr> sizes;

  void add(const RExpr& arg, const std::optional<std::set<int>>& used = {}) {
    if (arg->sinfo.as<ShapeInfo>()) {
      std::vector<Expr> extents = *relax::shape_values(arg);
      sizes.insert(sizes.end(), extents.begin(), extents.end());
      return;
    }
    const TupleInfo* info = arg->sinfo.as<TupleInfo>();
    if (!info) {
      tensors.push_back(arg);
      return;
    }
    const relax::Tuple* written = arg.as<relax::Tuple>();
    for (int i = 0; i < static_cast<int>(info->items.size()); ++i) {
      if (used && !used->count(i)) continue;
      if (written) {
        add(written->items[static_cast<size_t>(i)]);
        continue;
      }
      const StructInfo& item = info->items[static_cast<size_t>(i)];
      RVarRef var = variable(item);
      list_.bind(var, with_sinfo(tuple_get(arg, i), item));
      add(var);
    }
  }

  /// Sizes that the arguments have, as the parameters spell them.
  void add_sizes(const std::vector<VarRef>& wanted, const std::vector<RVarRef>& params,
                 const std::vector<RExpr>& args) {
    const VarMap values = sizes_of_arguments(params, args, wanted, [&](const RExpr& value, const StructInfo& sinfo) {
      list_.keep(bind_match_cast(variable(sinfo), value, sinfo));
    });
    for (const VarRef& v : wanted) sizes.push_back(values.at(v));
  }

 private:
  RVarRef variable(const StructInfo& sinfo) const {
    return is_dataflow_ ? make_dataflow_var("lv", sinfo) : make_rvar("lv", sinfo);
  }

  Bindings& list_;
  bool is_dataflow_;
};

RExpr call_of(const std::string& name, const Fused& fused, const RCall& call, const Func& func, Arguments args) {
  for (size_t i = 0; i < call.args.size(); ++i) args.add(call.args[i], fused.used[i]);
  args.add_sizes(fused.sizes, fused.params, call.args);
  std::vector<RExpr> all = {global_var(name, info_of(*func)), relax::tuple(args.tensors)};
  if (!args.sizes.empty()) all.push_back(shape_expr(args.sizes));
  bool is_in_place = std::ranges::any_of(fused.in_place, [](int64_t i) { return i >= 0; });
  Attrs attrs;
  if (is_in_place) {
    std::vector<NodeRef> indices;
    for (int64_t i : fused.in_place) indices.push_back(int_imm(i, i64));
    attrs["inplace_indices"] = make<Array>(std::move(indices));
  }
  RExpr op = op_ref(is_in_place ? "call_tir_inplace" : "call_tir");
  return with_sinfo(relax::call(op, std::move(all), std::move(attrs), {call.sinfo}), call.sinfo);
}

}  // namespace

namespace {

/// Why a group cannot become one tensor function; nothing if it can.
std::string cannot_fuse(const Function& f) {
  auto is_known = [](const StructInfo& info) {
    if (const TensorInfo* t = info.as<TensorInfo>()) return relax::shape_of(*t).has_value();
    return info.as<TupleInfo>() || info.as<ShapeInfo>();
  };
  for (const RVarRef& p : f.params) {
    if (!is_known(p->sinfo)) return text("the shape of ", p->name, " is not known");
  }
  std::string why;
  walk(f.body, [&](const VarBinding& b) {
    const RExpr& value = b.value;
    const bool is_call = is_op(value, "call_tir") || is_op(value, "call_tir_inplace");
    if (!is_call && !value.as<RVar>() && !value.as<relax::Tuple>() && !value.as<TupleGetItem>())
      why = text(b.var->name, " is no call of a tensor function: run LegalizeOps before");
    else if (!is_known(b.var->sinfo))
      why = text("the shape of ", b.var->name, " is not known");
  });
  return why;
}

}  // namespace

ModuleRef fuse_tir(const ModuleRef& given, const PassContext& ctx) {
  const bool has_groups = std::ranges::any_of(given->functions, [](const auto& entry) {
    const Function* f = entry.second.template as<Function>();
    return f && int_attr(f->attrs, "Primitive").value_or(0) != 0;
  });
  if (!has_groups) return given;
  // What only renames a group's result would stay a copy of it.
  const ModuleRef module = canonicalize_bindings(given, ctx);
  ModuleRef out = module;
  std::map<std::string, Fused> fused;
  for (const auto& [name, func] : module->functions) {
    const Function* f = func.as<Function>();
    if (!f || int_attr(f->attrs, "Primitive").value_or(0) == 0) continue;
    if (std::string why = cannot_fuse(*f); !why.empty()) {
      ctx.say("FuseTIR", text(name, " stays a group: ", why));
      continue;
    }
    TirFuser fuser(module, *f);
    out = with_function(std::move(out), name, fuser.run());
    fused.emplace(name, Fused{fuser.used(), fuser.in_place(), f->params, fuser.sizes()});
  }
  if (fused.empty()) return given;
  const ModuleRef functions = out;  // what is walked while `out` changes
  for (const auto& [name, func] : functions->functions) {
    if (!func.as<Function>()) continue;
    Func rewritten = transform(func, [&](const BindingBlock& block) -> NodeRef {
      Bindings list;
      for (const Binding& b : block.bindings) {
        const VarBinding* v = b.as<VarBinding>();
        const RCall* call = v ? v->value.as<RCall>() : nullptr;
        const GlobalVar* callee = call ? call->op.as<GlobalVar>() : nullptr;
        auto at = callee ? fused.find(callee->name) : fused.end();
        if (at == fused.end())
          list.keep(b);
        else
          list.bind(v->var,
                    call_of(at->first,
                            at->second,
                            *call,
                            functions->functions.at(at->first),
                            Arguments(list, block.is_dataflow)));
      }
      return list.list() == block.bindings ? ref(block) : with(block, &BindingBlock::bindings, std::move(list.list()));
    });
    if (rewritten != func) out = with_function(std::move(out), name, rewritten);
  }
  return without_unused_functions(out);
}

}  // namespace sator::passes
