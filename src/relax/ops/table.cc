#include "relax/ops/table.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "relax/ops/families.h"

namespace sator::relax {

const std::vector<OpDef>& op_table() {
  static const std::vector<OpDef> table = [] {
    std::vector<OpDef> all;
    for (auto family :
         {unary_ops,      binary_ops,      create_ops,         shape_ops,       rearrange_ops, layout_transform_ops,
          index_ops,      gather_ops,      linear_algebra_ops, statistical_ops, search_ops,    nn_ops,
          norm_ops,       convolution_ops, pooling_ops,        attention_ops,   quantize_ops,  image_ops,
          collective_ops, distributed_ops, call_ops,           memory_ops,      grad_ops,      inspect_ops}) {
      for (OpDef& op : family()) all.push_back(std::move(op));
    }
    return all;
  }();
  return table;
}

namespace {

const OpDef* built_in(std::string_view name) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, const OpDef*> map;
    for (const OpDef& op : op_table()) map.emplace(op.name, &op);
    return map;
  }();
  auto at = by_name.find(name);
  return at == by_name.end() ? nullptr : at->second;
}

/// The users' ops. Rows stay where they are: somebody may still hold one that was replaced.
struct UserOps {
  std::mutex mutex;
  std::deque<OpDef> rows;
  std::unordered_map<std::string, const OpDef*> by_name;
};
UserOps& user_ops() {
  static UserOps ops;
  return ops;
}

}  // namespace

void add_op(OpDef row) {
  if (built_in(row.name))
    fail({.what = text("an op ", row.name, " of a user's, beside the compiler's own"),
          .needs = "a name that no op has",
          .hint = "give it a prefix: my." + row.name});
  UserOps& ops = user_ops();
  std::lock_guard lock(ops.mutex);
  ops.rows.push_back(std::move(row));
  ops.by_name[ops.rows.back().name] = &ops.rows.back();
}

void remove_op(const std::string& name) {
  std::lock_guard lock(user_ops().mutex);
  user_ops().by_name.erase(name);
}

const OpDef* find_op(std::string_view name) {
  if (const OpDef* op = built_in(name)) return op;
  UserOps& ops = user_ops();
  std::lock_guard lock(ops.mutex);
  auto at = ops.by_name.find(std::string(name));
  return at == ops.by_name.end() ? nullptr : at->second;
}

const OpDef& op_named(std::string_view name) {
  if (const OpDef* op = find_op(name)) return *op;
  std::vector<std::string> names;
  for (const OpDef& op : op_table()) names.push_back(op.name);
  std::vector<std::string> near = nearest_names(name, names);
  fail({.what = text("there is no op ", name),
        .needs = "an op of the table",
        .hint = near.empty() ? "`sator opt --ops` lists the ops" : text("did you mean ", join(near, ", "), "?")});
}

std::vector<SizePair> assumed_sizes(const RCall& call, arith::Analyzer& arith, StructInfo* result) {
  const Op* op = call.op.as<Op>();
  const OpDef* def = op ? find_op(op->name) : nullptr;
  const auto has_symbols = [](const RExpr& arg) { return arg->sinfo && !vars_in(arg->sinfo).empty(); };
  std::vector<SizePair> out;
  if (!def || !def->infer || !def->has_formula() || std::ranges::none_of(call.args, has_symbols)) return out;
  const StructInfo info = def->infer(CallInfo(*def, call, arith, &out));
  if (result && !out.empty()) *result = info;
  return out;
}

std::string signature(const OpDef& op) {
  std::vector<std::string> params;
  for (const InputDef& i : op.inputs) params.push_back(i.optional ? i.name + "=None" : i.name);
  for (const AttrDef& a : op.attrs) params.push_back(a.required ? a.name : a.name + "=...");
  auto place = [&](const std::string& param) {
    return std::ranges::find(op.positions, param.substr(0, param.find('='))) - op.positions.begin();
  };
  std::ranges::stable_sort(params, {}, place);
  return text(op.name, "(", join(params, ", "), ")");
}

namespace {

[[noreturn]] void fail_args(const OpDef& op, std::string what) {
  fail(
      {.what = text(op.name, ": ", what), .needs = signature(op), .hint = "check the arguments against the signature"});
}

void store_attr(const OpDef& op, const AttrDef& a, const Value& v, Attrs& attrs) {
  std::optional<NodeRef> node = a.read(v);
  if (!node) fail_args(op, text(v, " is no value for ", a.name));
  if (*node)
    attrs[a.name] = *node;
  else
    attrs.erase(a.name);
}

/// The value as the graph expression that this kind of input takes; null if it is something else.
RExpr to_input(InputKind kind, const Value& v) {
  switch (kind) {
    case InputKind::shape: return to_shape(v);
    case InputKind::scalars: {
      if (v.as<RExpr>()) return *v.as<RExpr>();
      std::vector<RExpr> items;
      for (const Value& item : to_list(v)) {
        items.push_back(to_rexpr(item));
        if (!items.back()) return nullptr;
      }
      return tuple(std::move(items));
    }
    case InputKind::dtype: {
      auto dtype = to_dtype(v);
      return dtype ? dtype_value(*dtype) : to_rexpr(v);
    }
    case InputKind::tensor:
    case InputKind::tensors:
    case InputKind::scalar:
    case InputKind::any: return to_rexpr(v);
  }
  return nullptr;
}

}  // namespace

BoundArgs bind_args(const OpDef& op, const std::vector<Value>& positional,
                    const std::vector<std::pair<std::string, Value>>& keywords) {
  BoundArgs out;
  out.inputs.resize(op.inputs.size());
  for (const AttrDef& a : op.attrs) {
    if (a.standard) out.attrs[a.name] = a.standard;
  }
  std::vector<bool> given(op.inputs.size() + op.attrs.size(), false);
  auto put = [&](size_t place, const Value& v) {
    if (given[place]) fail_args(op, "an argument is given twice");
    given[place] = true;
    if (place < op.inputs.size())
      out.inputs[place] = v;
    else
      store_attr(op, op.attrs[place - op.inputs.size()], v, out.attrs);
  };
  auto put_named = [&](const std::string& name, const Value& v) {
    auto input = std::ranges::find(op.inputs, name, &InputDef::name);
    auto attr = std::ranges::find(op.attrs, name, &AttrDef::name);
    if (input != op.inputs.end())
      put(static_cast<size_t>(input - op.inputs.begin()), v);
    else if (attr != op.attrs.end())
      put(op.inputs.size() + static_cast<size_t>(attr - op.attrs.begin()), v);
    else
      fail_args(op, text("there is no argument ", name));
  };
  if (positional.size() > given.size()) fail_args(op, text(positional.size(), " arguments are too many"));
  for (size_t i = 0; i < positional.size(); ++i) {
    if (op.positions.empty())
      put(i, positional[i]);
    else
      put_named(op.positions[i], positional[i]);
  }
  for (const auto& [name, value] : keywords) put_named(name, value);
  for (size_t i = 0; i < given.size(); ++i) {
    bool needed = i < op.inputs.size() ? !op.inputs[i].optional : op.attrs[i - op.inputs.size()].required;
    const std::string& name = i < op.inputs.size() ? op.inputs[i].name : op.attrs[i - op.inputs.size()].name;
    if (needed && !given[i]) fail_args(op, text("argument ", name, " is missing"));
  }
  return out;
}

RExpr build_call(const OpDef& op, BoundArgs args) {
  std::vector<RExpr> inputs;
  for (size_t i = 0; i < args.inputs.size(); ++i) {
    if (args.inputs[i].is_none() && op.inputs[i].optional) continue;
    inputs.push_back(to_input(op.inputs[i].kind, args.inputs[i]));
    if (!inputs.back()) fail_args(op, text(args.inputs[i], " is no value for ", op.inputs[i].name));
  }
  return call(op_ref(op.name), std::move(inputs), std::move(args.attrs));
}

RExpr make_call(std::string_view name, const std::vector<Value>& positional,
                const std::vector<std::pair<std::string, Value>>& keywords) {
  const OpDef& op = op_named(name);
  BoundArgs args = bind_args(op, positional, keywords);
  return op.build ? op.build(op, std::move(args)) : build_call(op, std::move(args));
}

}  // namespace sator::relax
