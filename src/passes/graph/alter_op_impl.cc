#include "arith/index_map.h"
#include "passes/graph/graph.h"
#include "passes/graph/rewrite_calls.h"
#include "passes/option.h"
#include "relax/ops/table.h"
#include "tir/te.h"

namespace sator::passes {

using namespace relax;
using arith::IndexMap;
using arith::IndexMapRef;

namespace {

/// What takes the place of the programs of one operator; one entry of each list per parameter of the program.
struct Replacement {
  tir::PrimFuncRef func;
  std::vector<IndexMapRef> maps;  ///< null: the tensor stays as it is
  std::vector<Axes> separators, input_separators;
};

/// A dictionary, or a list of pairs of a text and a value, as name and value.
std::map<std::string, NodeRef> entries(const PassContext& ctx, const std::string& name) {
  const NodeRef given = option(ctx, name);
  std::map<std::string, NodeRef> out;
  if (!given) return out;
  if (const Dict* d = given.as<Dict>()) return {d->items.begin(), d->items.end()};
  const Array* list = given.as<Array>();
  for (const NodeRef& item : list ? list->items : std::vector<NodeRef>{nullptr}) {
    const Array* pair = item.as<Array>();
    if (!pair || pair->items.size() != 2 || !pair->items[0].as<StringImm>())
      refuse_option(ctx, name, "a dictionary from names of operators", "as in {\"relax.add\": ...}");
    out[pair->items[0].as<StringImm>()->value] = pair->items[1];
  }
  return out;
}

/// One list of axes for each parameter, empty where nothing is said of it.
std::vector<Axes> axes_of(const PassContext& ctx, const std::string& name, const NodeRef& given, size_t count) {
  if (!given) return std::vector<Axes>(count);
  const Array* lists = given.as<Array>();
  if (!lists || lists->items.size() != count)
    refuse_option(ctx, name, text("one list of axes for each of ", count, " parameters"), "write [] for no separators");
  std::vector<Axes> out;
  for (const NodeRef& item : lists->items) {
    Axes axes;
    if (item && !item.as<Array>()) refuse_option(ctx, name, "lists of axes", "as in [[1], []]");
    if (item) axes = AttrType<Axes>::load(item);
    out.push_back(std::move(axes));
  }
  return out;
}

std::map<std::string, Replacement> replacements_of(const ModuleRef& module, const PassContext& ctx) {
  const std::string programs = "AlterOpImpl.op_impl_map", transforms = "AlterOpImpl.op_buffer_transforms";
  const std::string outer = "AlterOpImpl.op_buffer_axis_separators";
  const std::string inner = "AlterOpImpl.op_buffer_input_axis_separators";
  std::map<std::string, NodeRef> maps = entries(ctx, transforms);
  std::map<std::string, NodeRef> separators = entries(ctx, outer), input_separators = entries(ctx, inner);
  std::map<std::string, Replacement> out;
  for (const auto& [op, given] : entries(ctx, programs)) {
    Replacement r;
    if (const auto* name = given.as<StringImm>()) {
      auto at = module->functions.find(name->value);
      if (at != module->functions.end()) r.func = sator::cast<tir::PrimFunc>(at->second);
    } else {
      r.func = sator::cast<tir::PrimFunc>(given);
    }
    if (!r.func)
      refuse_option(ctx, programs, "tensor programs, or names of those of the module", "check the entry of " + op);
    const size_t count = r.func->params.size();
    if (const NodeRef& listed = maps[op]) {
      const Array* list = listed.as<Array>();
      if (!list || (!list->items.empty() && list->items.size() != count))
        refuse_option(ctx,
                      transforms,
                      text("one map of indices for each of ", count, " parameters"),
                      "write None for a tensor that stays as it is");
      for (NodeRef item : list->items) {
        // A map may come with its separators, as a pair.
        if (const Array* pair = item.as<Array>(); pair && !pair->items.empty()) item = pair->items[0];
        r.maps.push_back(sator::cast<IndexMap>(item));
        if (item && !r.maps.back())
          refuse_option(ctx, transforms, "maps of indices", "as in T.index_map(lambda i: (i // 4, i % 4))");
      }
    }
    r.maps.resize(count);
    r.separators = axes_of(ctx, outer, separators[op], count);
    r.input_separators = axes_of(ctx, inner, input_separators[op], count);
    r.func = with(*r.func, &tir::PrimFunc::attrs, Attrs{{"operator_name", string_imm(op)}});
    out.emplace(op, std::move(r));
  }
  return out;
}

bool is_identity(const IndexMap& map) {
  if (map.initial_indices.size() != map.final_indices.size()) return false;
  for (size_t i = 0; i < map.initial_indices.size(); ++i)
    if (map.final_indices[i] != Expr(map.initial_indices[i])) return false;
  return true;
}

/// The map over variables of its own: each is bound once in a function.
IndexMapRef fresh_map(const IndexMap& map) {
  VarMap fresh;
  std::vector<VarRef> inputs;
  for (const VarRef& v : map.initial_indices) {
    inputs.push_back(make_var(v->name, v->dtype));
    fresh.emplace(v, inputs.back());
  }
  std::vector<Expr> outputs;
  for (const Expr& e : map.final_indices) outputs.push_back(substitute(e, fresh));
  return make<IndexMap>(std::move(inputs), std::move(outputs), map.inverse_index_map);
}

RExpr layout_transform(const RExpr& x, const IndexMapRef& map, const Axes& separators, const Axes& input_separators) {
  auto list = [](const Axes& axes) { return Value(Value::List(axes.begin(), axes.end())); };
  return make_call("layout_transform",
                   {x},
                   {{"index_map", Value(NodeRef(fresh_map(*map)))},
                    {"axis_separators", list(separators)},
                    {"input_axis_separators", list(input_separators)}});
}

class AlterOps final : public GraphRewriter {
 public:
  AlterOps(BlockBuilder& builder, const std::map<std::string, Replacement>& replacements)
      : GraphRewriter(builder), replacements_(replacements) {}

 private:
  RExpr value(const RVarRef& var, const RExpr& value) override {
    const RCall* call = value.as<RCall>();
    if (!call || !is_op(value, "call_tir")) return value;
    const GlobalVar* callee = call->args[0].as<GlobalVar>();
    auto program = builder().module()->functions.find(callee ? callee->name : "");
    if (program == builder().module()->functions.end()) return value;
    const std::string op = string_attr(program->second->attrs, "operator_name").value_or("");
    auto at = replacements_.find(op);
    if (at == replacements_.end()) return value;
    return replaced_call(*call, var, op, at->second);
  }

  RExpr replaced_call(const RCall& call, const RVarRef& var, const std::string& op, const Replacement& r) {
    const Tuple* inputs = call.args[1].as<Tuple>();
    const TupleInfo* results = call.sinfo_args[0].as<TupleInfo>();
    std::vector<StructInfo> outputs = results ? std::vector<StructInfo>(results->items.begin(), results->items.end())
                                              : std::vector{call.sinfo_args[0]};
    if (!inputs || inputs->items.size() + outputs.size() != r.maps.size())
      fail({.what = text("AlterOpImpl: ",
                         var->name,
                         " calls a program of ",
                         op,
                         " with ",
                         (inputs ? inputs->items.size() : 0) + outputs.size(),
                         " tensors, the replacement takes ",
                         r.maps.size()),
            .needs = "a replacement of the same inputs and outputs",
            .hint = "give another program for the operator"});
    std::vector<RExpr> args;
    for (size_t i = 0; i < inputs->items.size(); ++i)
      args.push_back(moves(r, i) ? RExpr(builder().emit(layout_transform(
                                       inputs->items[i], r.maps[i], r.separators[i], r.input_separators[i])))
                                 : inputs->items[i]);
    const size_t first = args.size();
    std::vector<StructInfo> infos;
    for (size_t i = 0; i < outputs.size(); ++i) infos.push_back(moved(outputs[i], r.maps[first + i], op));

    std::string name = op + "_replacement";
    std::ranges::replace(name, '.', '_');
    std::vector<RExpr> call_args{builder().add_function(r.func, name), relax::tuple(std::move(args))};
    call_args.insert(call_args.end(), call.args.begin() + 2, call.args.end());
    const StructInfo info = results ? tuple_info(infos) : infos[0];
    const RExpr made = relax::call(call.op, std::move(call_args), call.attrs, {info});
    bool any = false;
    for (size_t i = 0; i < outputs.size(); ++i) any |= moves(r, first + i);
    if (!any) return builder().normalize(made);
    const RVarRef result = builder().emit(made);
    if (!results) return moved_back(result, outputs[0], r, first);
    std::vector<RExpr> items;
    for (size_t i = 0; i < outputs.size(); ++i) {
      RExpr item = builder().emit(tuple_get(result, static_cast<int>(i)));
      items.push_back(moves(r, first + i) ? RExpr(builder().emit(moved_back(item, outputs[i], r, first + i))) : item);
    }
    return builder().normalize(relax::tuple(std::move(items)));
  }

  static bool moves(const Replacement& r, size_t i) { return r.maps[i] && !is_identity(*r.maps[i]); }

  /// The extents of a result. Errors: they are not known.
  static std::vector<Expr> extents(const StructInfo& info, const std::string& op) {
    const TensorInfo* t = info.as<TensorInfo>();
    auto shape = t ? shape_of(*t) : std::nullopt;
    if (!shape)
      fail({.what = text("AlterOpImpl: a result of ", op, " has no known shape"),
            .needs = "tensors of known shapes",
            .hint = "write the shape in out_sinfo"});
    return *shape;
  }

  StructInfo moved(const StructInfo& info, const IndexMapRef& map, const std::string& op) {
    if (!map || is_identity(*map)) return info;
    const TensorInfo& t = *info.as<TensorInfo>();
    return tensor_info(arith::map_shape(*map, extents(info, op), builder().arith()), t.dtype, t.vdevice);
  }

  /// The tensor in the order that it had without the replacement.
  RExpr moved_back(const RExpr& x, const StructInfo& info, const Replacement& r, size_t i) {
    const std::vector<Expr> shape = extents(info, "an operator");
    arith::Region box;
    for (const Expr& extent : shape) box.push_back(make<Range>(int_imm(0, extent->dtype), extent));
    const arith::InverseMap back = arith::non_surjective_inverse(*r.maps[i], box, builder().arith());
    if (!back.ok())
      fail({.what = "AlterOpImpl: the map of a result has no inverse: " + back.error,
            .needs = "a map that sends every element to a place of its own",
            .hint = "write it with +, *, // and %"});
    const RExpr turned = layout_transform(x, back.map, r.separators[i], r.input_separators[i]);
    if (is_zero(back.padding_predicate)) return builder().normalize(turned);
    const RVarRef padded = builder().emit(turned);
    const RExpr cut = builder().add_function(remove_pad(shape.size(), info.as<TensorInfo>()->dtype), "remove_pad");
    return builder().normalize(relax::call(op_ref("call_tir"), {cut, relax::tuple({RExpr(padded)})}, {}, {info}));
  }

  const std::map<std::string, Replacement>& replacements_;
};

/// Whether the second map takes each element that the first has moved back to where it was.
bool undoes(const IndexMap& first, const IndexMap& second, const std::vector<Expr>& shape) {
  if (first.initial_indices.size() != shape.size() || second.initial_indices.size() != first.final_indices.size() ||
      second.final_indices.size() != shape.size())
    return false;
  arith::Analyzer arith;
  std::vector<Expr> at;
  for (const Expr& extent : shape) {
    const VarRef v = make_var("i", extent->dtype);
    arith.bind(v, make<Range>(int_imm(0, extent->dtype), extent));
    at.emplace_back(v);
  }
  const std::vector<Expr> there = arith::map_indices(first, at, arith);
  const std::vector<Expr> again = arith::map_indices(second, there, arith);
  for (size_t i = 0; i < at.size(); ++i)
    if (!arith.prove_equal(again[i], at[i])) return false;
  return true;
}

/// The argument of a program that copies the beginning of a tensor, as AlterOpImpl makes it; null for other values.
RExpr cut_tensor(const RExpr& value, const ModuleRef& module) {
  const RCall* call = value.as<RCall>();
  if (!call || !is_op(value, "call_tir")) return nullptr;
  const GlobalVar* callee = call->args[0].as<GlobalVar>();
  auto at = module->functions.find(callee ? callee->name : "");
  const Tuple* args = call->args[1].as<Tuple>();
  if (at == module->functions.end() || !args || args->items.size() != 1) return nullptr;
  const TensorInfo* from = args->items[0]->sinfo.as<TensorInfo>();
  if (!from || from->ndim < 0) return nullptr;
  return equal(NodeRef(at->second), NodeRef(remove_pad(static_cast<size_t>(from->ndim), from->dtype))) ? args->items[0]
                                                                                                       : nullptr;
}

RExpr transformed_once(const RCallRef& call, const KnownValues& known, const ModuleRef& module) {
  if (!is_op(call, "layout_transform")) return nullptr;
  RExpr input = known.value(call->args[0]);
  const RExpr whole = cut_tensor(input, module);
  const RCall* before = known.call(whole ? whole : call->args[0], "layout_transform");
  if (!before) return nullptr;
  const RExpr& x = before->args[0];
  const TensorInfo *from = x->sinfo.as<TensorInfo>(), *to = call->sinfo.as<TensorInfo>();
  if (!from || !to || !equal(x->sinfo, call->sinfo)) return nullptr;
  auto shape = shape_of(*from);
  // What stands in a frame of pad_value is read.
  auto pad = call->attrs.find("pad_value");
  if (!shape || (whole && pad != call->attrs.end() && pad->second)) return nullptr;
  const auto *first = before->attrs.at("index_map").as<IndexMap>(),
             *second = call->attrs.at("index_map").as<IndexMap>();
  return first && second && undoes(*first, *second, *shape) ? x : nullptr;
}

}  // namespace

tir::PrimFuncRef remove_pad(size_t rank, DType dtype) {
  std::vector<Expr> whole, part;
  for (size_t d = 0; d < rank; ++d) {
    whole.emplace_back(make_var(text("p", d), i64));
    part.emplace_back(make_var(text("i", d), i64));
  }
  const te::Tensor input = te::placeholder(whole, dtype, "input");
  const te::Tensor output = te::compute({.name = "output"}, part, [&](const te::Indices& i) { return input(i); });
  tir::PrimFuncRef f = tir::without_symbol(te::create_prim_func({input, output}));
  Attrs attrs = f->attrs;
  attrs["operator_name"] = string_imm("remove_pad");
  return with(*f, &tir::PrimFunc::attrs, std::move(attrs));
}

ModuleRef alter_op_impl(const ModuleRef& module, const PassContext& ctx) {
  const std::map<std::string, Replacement> replacements = replacements_of(module, ctx);
  return rewrite_functions(
      module, [&](const FuncRef& f, BlockBuilder& builder) { return AlterOps(builder, replacements).function(*f); });
}

ModuleRef optimize_layout_transform(const ModuleRef& module, const PassContext&) {
  return rewrite_calls(module, [&](const Function&) -> CallRewrite {
    return [&](const RCallRef& call, const KnownValues& known) { return transformed_once(call, known, module); };
  });
}

}  // namespace sator::passes
