// What oneDNN takes whole: products and convolutions of float32, with what is done to their sums.
#include <algorithm>

#include "passes/byoc.h"
#include "passes/op_pattern.h"
#include "relax/ops/table.h"
#include "relax/outline.h"

namespace sator::passes {

using namespace relax;

namespace {

bool same_extents(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::ranges::equal(a, b, [](const Expr& x, const Expr& y) { return equal(x, y); });
}

const char* const kActivations[] = {"relu", "gelu", "gelu_tanh"};

std::optional<std::vector<Expr>> shape_of_value(const RExpr& e) {
  const TensorInfo* info = e->sinfo ? e->sinfo.as<TensorInfo>() : nullptr;
  return info ? shape_of(*info) : std::nullopt;
}

/// Why the library does not take the sum with a bias of this shape; empty if it does.
///   channel  which dimension of the result, from the end, the bias is along: 1 of a product, 3 of a convolution
std::string no_bias(const std::vector<Expr>& bias, const std::vector<Expr>& result, size_t channel) {
  const std::string why = "its bias is no vector along the channels";
  if (bias.size() < channel || bias.size() > result.size()) return why;
  for (size_t i = 1; i <= bias.size(); ++i) {
    const Expr& extent = bias[bias.size() - i];
    const Expr& wanted = result[result.size() - i];
    if (i == channel ? !equal(extent, wanted) : !is_one(extent)) return why;
  }
  return "";
}

std::vector<int64_t> numbers_of(const Attrs& attrs, const char* key) {
  const auto at = attrs.find(key);
  return at == attrs.end() || !at->second ? std::vector<int64_t>{} : AttrType<Axes>::load(at->second);
}

/// Of a matrix: its axes are named the other way round, or not at all.
bool is_transposition(const RCall& call) {
  const std::vector<int64_t> axes = numbers_of(call.attrs, "axes");
  return axes.empty() || (axes.size() == 2 && (axes[0] + 2) % 2 == 1);
}

/// Why the library does not take the match; empty if it does.
std::string why_not(const PatternMatch& match) {
  for (size_t m : match.members) {
    const RExpr value = bound_value(match.block->bindings[m]);
    const RCall* call = value.as<RCall>();
    const RVarRef result = bound_var(match.block->bindings[m]);
    const auto made = shape_of_value(RExpr(result));
    if (!call || !made) return "its shape is not known";
    if (result->sinfo.as<TensorInfo>()->dtype != f32) return "it is not of float32";
    std::vector<std::vector<Expr>> shapes;
    for (const RExpr& arg : call->args) {
      const auto shape = shape_of_value(arg);
      if (!shape) return "a shape is not known";
      if (arg->sinfo.as<TensorInfo>()->dtype != f32) return "an operand is not of float32";
      shapes.push_back(*shape);
    }
    const std::string op = op_name(value);
    if (op == "matmul") {
      const auto &x = shapes[0], &w = shapes[1];
      if (x.size() < 2 || w.size() < 2) return "a factor is a vector";
      const auto batch_of = [](const std::vector<Expr>& shape) { return std::vector(shape.begin(), shape.end() - 2); };
      if (w.size() != 2 && !same_extents(batch_of(x), batch_of(w))) return "its batches are not the same";
    } else if (op == "permute_dims") {
      if (shapes[0].size() != 2) return "its transposed factor is no matrix";
      if (!is_transposition(*call)) return "its factor is not transposed";
    } else if (op == "nn.conv2d") {
      auto layout = [&](const char* key, const char* wanted) {
        const std::string given = string_attr(call->attrs, key).value_or("");
        return given.empty() || given == wanted;
      };
      if (!layout("data_layout", "NCHW") || !layout("kernel_layout", "OIHW") || !layout("out_layout", "NCHW"))
        return "its layouts are not NCHW and OIHW";
    } else if (op == "add") {
      const bool is_first = same_extents(shapes[0], *made);
      const bool convolves = std::ranges::any_of(
          match.members, [&](size_t other) { return is_op(bound_value(match.block->bindings[other]), "nn.conv2d"); });
      if (std::string why = no_bias(shapes[is_first ? 1 : 0], *made, convolves ? 3 : 1); !why.empty()) return why;
    }
  }
  return "";
}

std::vector<FusionPattern> all_patterns() {
  struct Base {
    const char *name, *does;
    DFPattern pattern;
  };
  const Base bases[] = {
      {"matmul", "a product", is_op("matmul", {wildcard(), is_op("permute_dims", {wildcard()}) | wildcard()})},
      {"conv2d", "a convolution", is_op("nn.conv2d", {wildcard(), wildcard()})}};
  std::vector<FusionPattern> out;
  for (const bool has_activation : {true, false})
    for (const bool has_bias : {true, false})
      for (const Base& base : bases) {
        const DFPattern sum = has_bias ? is_op_either_way("add", base.pattern, wildcard()) : base.pattern;
        const std::string name = text("dnnl.", base.name, has_bias ? "_bias" : "");
        const std::string does = text(base.does, has_bias ? " and its bias" : "");
        if (!has_activation) {
          out.push_back({name, does, {sum}, why_not});
          continue;
        }
        for (const char* activation : kActivations)
          out.push_back({text(name, "_", activation),
                         text(does, ", then ", activation),
                         {is_op(text("nn.", activation), {sum})},
                         why_not});
      }
  return out;
}

/// One number for each of `count` places: a shorter list is repeated, none is `otherwise`.
std::string comma_list(const Attrs& attrs, const char* key, size_t count, int64_t otherwise) {
  std::vector<int64_t> given = numbers_of(attrs, key);
  if (given.empty()) given.push_back(otherwise);
  for (size_t i = 0; given.size() < count; ++i) given.push_back(given[i]);
  return join(given, ",");
}

}  // namespace

const std::vector<FusionPattern>& dnnl_patterns() {
  static const std::vector<FusionPattern> all = all_patterns();
  return all;
}

std::optional<std::string> dnnl_operation(const Function& group) {
  const SeqExpr* body = group.body.as<SeqExpr>();
  if (!body) return {};
  // Which parameter a value is, or is the transposed matrix of; -1: another value.
  std::map<RVarRef, size_t> parameter, transposed;
  for (size_t i = 0; i < group.params.size(); ++i) parameter.emplace(group.params[i], i);
  std::string operation;
  RVarRef sum;
  for (const BindingBlockRef& block : body->blocks)
    for (const Binding& b : block->bindings) {
      const RExpr value = bound_value(b);
      const RCall* call = value.as<RCall>();
      if (!call) {
        const RVarRef renamed = cast<RVar>(value);
        if (!renamed || renamed != sum) return {};
        sum = bound_var(b);
        continue;
      }
      std::vector<RVarRef> args;
      for (const RExpr& a : call->args) args.push_back(cast<RVar>(a));
      if (std::ranges::any_of(args, [](const RVarRef& v) { return !v; })) return {};
      const std::string op = op_name(value);
      if (op == "permute_dims" && parameter.contains(args[0])) {
        transposed.emplace(bound_var(b), parameter.at(args[0]));
        continue;
      }
      if ((op == "matmul" || op == "nn.conv2d") && operation.empty()) {
        const bool turned = transposed.contains(args[1]);
        if (!parameter.contains(args[0]) || (!turned && !parameter.contains(args[1]))) return {};
        const size_t w = turned ? transposed.at(args[1]) : parameter.at(args[1]);
        operation = text(op == "matmul" ? "matmul" : "conv2d", " x=", parameter.at(args[0]), " w=", w);
        if (turned) operation += " transposed";
        if (op == "nn.conv2d")
          operation += text(" strides=",
                            comma_list(call->attrs, "strides", 2, 1),
                            " padding=",
                            comma_list(call->attrs, "padding", 4, 0),
                            " dilation=",
                            comma_list(call->attrs, "dilation", 2, 1),
                            " groups=",
                            int_attr(call->attrs, "groups").value_or(1));
      } else if (op == "add" && sum && (args[0] == sum) != (args[1] == sum)) {
        const RVarRef& bias = args[args[0] == sum ? 1 : 0];
        if (!parameter.contains(bias)) return {};
        operation += text(" bias=", parameter.at(bias));
      } else if (op.starts_with("nn.") && std::ranges::count(kActivations, op.substr(3)) && args[0] == sum) {
        operation += " " + op.substr(3);
      } else {
        return {};
      }
      sum = bound_var(b);
    }
  const RVarRef result = cast<RVar>(body->body);
  if (!sum || result != sum) return {};
  return operation;
}

}  // namespace sator::passes
