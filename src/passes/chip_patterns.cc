// What a described chip takes whole: the words of its file's patterns, and the patterns of a chip that states none.
#include <algorithm>
#include <map>

#include "passes/byoc.h"
#include "passes/op_pattern.h"
#include "relax/ops/table.h"
#include "relax/outline.h"
#include "target/chip.h"

namespace sator::passes {

using namespace relax;

namespace {

/// A matrix of values that a function makes from codes and scales.
bool makes_values(const tir::PrimFunc& f) { return string_attr(f.attrs, "role") == "dequantize"; }
DFPattern dequantized() { return is_call_tir(makes_values); }

/// x times a matrix, given as it is or transposed; or a tensor function that multiplies and sums up.
bool multiplies(const tir::PrimFunc& f) { return op_pattern_of(f) == OpPattern::out_fusable; }
DFPattern product_of(const DFPattern& input, const DFPattern& weight) {
  return is_op("matmul", {input, is_op("permute_dims", {weight}) | weight}) | is_call_tir(multiplies, {input, weight});
}
DFPattern product_with(const DFPattern& weight) { return product_of(wildcard(), weight); }

/// The product times a scale for all or per column, or its integer sums as floats.
bool takes_sums(const tir::PrimFunc& f) {
  const BufferRef sums = tensor_parameter(f, 0);
  const BufferRef out = f.params.empty() ? nullptr : f.buffer_of(f.params.back());
  return sums && out && sums->dtype == i32 && out->dtype.is_float() && op_pattern_of(f) <= OpPattern::broadcast;
}
DFPattern rescaled(const DFPattern& product) {
  return is_op("multiply", {product, has_ndim(1)}) | is_call_tir(takes_sums, {product});
}

DFPattern with_bias(const DFPattern& sums) { return is_op("add", {sums, has_ndim(1)}); }

std::vector<FusionPattern> chip_patterns() {
  struct Weight {
    const char *name, *does;
    DFPattern pattern;
  };
  const Weight weights[] = {{"dequantize_", "a weight made from codes, ", dequantized()}, {"", "", wildcard()}};
  std::vector<FusionPattern> out;
  for (const Weight& w : weights) {
    const DFPattern product = product_with(w.pattern), scaled = rescaled(product);
    auto add = [&](const char* name, const char* does, const DFPattern& pattern) {
      out.push_back({text("chip.", w.name, "matmul", name), text(w.does, "a product", does), {pattern}});
    };
    add("_rescale_bias", ", its scale and bias", with_bias(scaled));
    add("_bias", " and its bias", with_bias(product));
    add("_rescale", " and its scale", scaled);
    add("", "", product);
  }
  // A longer match is worth more than a weight of a known kind.
  std::ranges::stable_sort(out, {}, [](const FusionPattern& p) {
    return p.name.ends_with("_rescale_bias") ? 0 : p.name.ends_with("matmul") ? 2 : 1;
  });
  return out;
}

/// The one of two that is not null, or either.
DFPattern either(const DFPattern& a, const DFPattern& b) { return !a ? b : !b ? a : a | b; }

/// An op by its name, or the last part of it; null if there is none. Of several ("sum" of two families) the first.
const OpDef* op_called(const std::string& word) {
  if (const OpDef* op = find_op(word)) return op;
  for (const OpDef& op : op_table())
    if (op.name.ends_with("." + word)) return &op;
  return nullptr;
}

bool is_commutative(const std::string& op) {
  return op == "add" || op == "multiply" || op == "maximum" || op == "minimum";
}

/// A word that is no op of the graph language, with its operands.
struct Word {
  const char* name;
  size_t most_args;
  DFPattern (*pattern)(const std::vector<DFPattern>& args);
};
constexpr Word kWords[] = {
    {"matmul",
     2,
     [](const std::vector<DFPattern>& args) {
       return args.size() == 2 ? product_of(args[0], args[1])
                               : product_of(wildcard(), args[0]) | product_of(args[0], wildcard());
     }},
    {"dequantize", 1, [](const std::vector<DFPattern>& args) { return is_call_tir_reading(makes_values, args[0]); }},
    {"quantize",
     1,
     [](const std::vector<DFPattern>& args) {
       return is_call_tir_reading([](const tir::PrimFunc& f) { return string_attr(f.attrs, "role") == "quantize"; },
                                  args[0]);
     }},
    {"rescale", 1, [](const std::vector<DFPattern>& args) { return rescaled(args[0]); }},
    {"bias",
     2,
     [](const std::vector<DFPattern>& args) {
       return is_op_either_way("add", args[0], has_ndim(1, args.size() == 2 ? args[1] : wildcard()));
     }},
    {"gelu",
     1,
     [](const std::vector<DFPattern>& args) {
       return is_op_reading("nn.gelu", args[0]) | is_op_reading("nn.gelu_tanh", args[0]);
     }},
};

[[noreturn]] void refuse_number(const std::string& key, const std::string& word, size_t given, size_t most,
                                const std::string& where) {
  fail({.what = text("pattern.", key, ": ", word, " has ", given, " operands"),
        .needs = text("one operand, whichever, or in order at most ", most),
        .hint = "name the operands that matter",
        .where = where});
}

/// What a word means that reads these operands, at least one.
///   key   of the chip's file
DFPattern op_reading(const std::string& key, const std::string& word, std::vector<DFPattern> args,
                     const std::string& where) {
  for (const Word& known : kWords)
    if (word == known.name) {
      if (args.size() > known.most_args) refuse_number(key, word, args.size(), known.most_args, where);
      return known.pattern(args);
    }
  if (const OpDef* op = op_called(word)) {
    if (args.size() == 1) return is_op_reading(op->name, args[0]);
    if (args.size() > op->inputs.size()) refuse_number(key, word, args.size(), op->inputs.size(), where);
    if (is_commutative(op->name)) return is_op_either_way(op->name, args[0], args[1]);
    args.resize(op->inputs.size(), wildcard());
    return is_op(op->name, std::move(args));
  }
  std::vector<std::string> words, known;
  for (const Word& w : kWords) words.emplace_back(w.name);
  known = words;
  for (const OpDef& op : op_table()) known.push_back(op.name.substr(op.name.rfind('.') + 1));
  const std::vector<std::string> near = nearest_names(word, known);
  fail({.what = text("pattern.", key, ": there is no op called ", string_literal(word)),
        .needs = text(join(words, ", "), ", or an op of the graph language"),
        .hint = near.empty() ? "docs/chips.md lists the words" : text("did you mean ", join(near, " or "), "?"),
        .where = where});
}

/// Links first .. last of a chain, the first and the last of which are there.
DFPattern chain(const ChipPattern& p, size_t first, size_t last) {
  DFPattern before;
  for (size_t i = first; i <= last; ++i) {
    DFPattern one;
    for (const std::string& word : p.ops[i].any_of)
      one = either(one, op_reading("ops", word, {before ? before : wildcard()}, p.where));
    before = p.ops[i].optional && i != first && i != last ? one | before : one;
  }
  return before;
}

/// The values of a graph's nodes. An optional one may be its first operand, but where it is a result: then it is there.
std::vector<DFPattern> values_of(const ChipPattern& p) {
  std::vector<DFPattern> values;
  for (size_t n = 0; n < p.graph.size(); ++n) {
    const ChipPattern::Node& node = p.graph[n];
    DFPattern value = node.any_of.empty() ? wildcard() : nullptr;
    if (node.item) value = is_tuple_get_item(values.at(node.args[0]), *node.item);
    std::vector<DFPattern> args;
    for (size_t a : node.args) args.push_back(values.at(a));
    for (const std::string& word : node.any_of) value = either(value, op_reading("graph", word, args, node.where));
    const bool is_result = std::ranges::find(p.results, n) != p.results.end();
    values.push_back(one_value(node.optional && !is_result ? value | args[0] : value));
  }
  return values;
}

/// The graph, and those in which its result, where it may be absent, is what that reads; the largest first.
std::vector<ChipPattern> without_optional_results(ChipPattern p) {
  std::vector<ChipPattern> out = {p};
  while (p.results.size() == 1 && p.graph[p.results[0]].optional) {
    p.results[0] = p.graph[p.results[0]].args[0];
    if (p.graph[p.results[0]].any_of.empty()) break;  // nothing is left
    out.push_back(p);
  }
  return out;
}

/// A product among the bindings of a match, Y = X W, with the extents of the three.
struct ProductAt {
  RExpr weight;
  DType dtype;  // of X
  std::vector<Expr> x, w, y;
};

std::vector<Expr> extents(const RExpr& e) {
  const TensorInfo* info = e->sinfo ? e->sinfo.as<TensorInfo>() : nullptr;
  return info ? relax::shape_of(*info).value_or(std::vector<Expr>{}) : std::vector<Expr>{};
}

std::optional<ProductAt> product_at(const PatternMatch& match, size_t member) {
  const RExpr value = bound_value(match.block->bindings[member]);
  const RCall* call = value.as<RCall>();
  if (!call) return {};
  std::vector<RExpr> args = call->args;
  if (!is_op(value, "matmul")) {
    const auto callee = called_prim_func(match.block->bindings[member]);
    const auto func = callee ? match.module->functions.find(*callee) : match.module->functions.end();
    const tir::PrimFunc* program = func == match.module->functions.end() ? nullptr : func->second.as<tir::PrimFunc>();
    if (!program || !multiplies(*program)) return {};
    args = call_tir_inputs(*call);
  }
  if (args.size() < 2) return {};
  const TensorInfo* x = args[0]->sinfo ? args[0]->sinfo.as<TensorInfo>() : nullptr;
  return ProductAt{args[1],
                   x ? x->dtype : DType::Void(),
                   extents(args[0]),
                   extents(args[1]),
                   extents(RExpr(bound_var(match.block->bindings[member])))};
}

/// The tensors from outside of a block that a value is made from, and whether all belong to the model.
struct Sources {
  std::vector<RVarRef> tensors;
  bool constant = true;
};
Sources sources_of(const PatternMatch& match, const RExpr& value) {
  std::map<RVarRef, RExpr> definition;
  for (const Binding& b : match.block->bindings) definition[bound_var(b)] = bound_value(b);
  Sources out;
  std::set<RVarRef> seen;
  std::vector<RExpr> open = {value};
  while (!open.empty()) {
    const RExpr e = open.back();
    open.pop_back();
    for (const RVarRef& v : rvars_in(e)) {
      if (!seen.insert(v).second) continue;
      const auto at = definition.find(v);
      if (at == definition.end()) out.constant &= match.constants.contains(v);
      // The model's tensors are items of a tuple.
      if (at == definition.end() || at->second.as<TupleGetItem>()) out.tensors.push_back(v);
      if (at != definition.end()) open.push_back(at->second);
    }
  }
  return out;
}

std::string broken_limit(const char* what, std::span<const Expr> shape, std::optional<int64_t> most,
                         const PassContext& ctx) {
  if (!most) return "";
  const std::optional<int64_t> n = elements_at_most(shape, ctx);
  if (!n) return text("its number of ", what, " has no bound, and at most ", *most, " are allowed");
  return *n > *most ? text("it has ", *n, " ", what, ", and at most ", *most, " are allowed") : "";
}

/// Bits of a number of the weight as it is stored: of the largest tensor that it is made from.
int64_t stored_bits(const ProductAt& product, const Sources& sources, const PassContext& ctx) {
  const std::optional<int64_t> values = elements_at_most(product.w, ctx);
  int64_t most = 0;
  for (const RVarRef& tensor : sources.tensors) {
    const TensorInfo* info = tensor->sinfo ? tensor->sinfo.as<TensorInfo>() : nullptr;
    if (!info) continue;
    if (const auto stored = elements_at_most(extents(RExpr(tensor)), ctx))
      most = std::max(most, *stored * info->dtype.bits);
  }
  return values && *values > 0 ? most / *values : 0;
}

std::string why_not(const ChipPattern& p, const PatternMatch& match) {
  for (size_t member : match.members) {
    const std::optional<ProductAt> product = product_at(match, member);
    if (!product) continue;
    const Sources sources = sources_of(match, product->weight);
    if (p.constant_weight && !sources.constant) return "its second factor depends on the inputs";
    if (!p.dtypes.empty() && std::ranges::find(p.dtypes, text(product->dtype)) == p.dtypes.end())
      return text("its first factor is of ", product->dtype, ", and not of ", join(p.dtypes, " or "));
    if (!p.weight_bits.empty()) {
      const int64_t bits = stored_bits(*product, sources, match.ctx);
      if (std::ranges::find(p.weight_bits, bits) == p.weight_bits.end())
        return text("its weights are stored in ", bits, " bits, and not in ", join(p.weight_bits, " or "));
    }
    if (product->x.empty() || product->y.empty()) return "its shape is not known";
    const std::span<const Expr> x(product->x), y(product->y);
    for (const std::string& broken : {broken_limit("rows", x.first(x.size() - 1), p.max_m, match.ctx),
                                      broken_limit("columns", y.last(1), p.max_n, match.ctx),
                                      broken_limit("summands", x.last(1), p.max_k, match.ctx)})
      if (!broken.empty()) return broken;
  }
  return "";
}

std::string backend_of(std::string name) {
  std::ranges::replace_if(name, [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

}  // namespace

std::optional<int64_t> elements_at_most(std::span<const Expr> shape, const PassContext& ctx) {
  int64_t n = 1;
  for (const Expr& e : shape) {
    if (const auto value = as_int(e)) {
      n *= *value;
      continue;
    }
    const Var* var = e.as<Var>();
    const auto at = var ? ctx.bounds.find(var->name) : ctx.bounds.end();
    if (at == ctx.bounds.end()) return {};
    n *= at->second;
  }
  return n;
}

const std::vector<FusionPattern>& fusion_patterns() {
  static const std::vector<FusionPattern> all = chip_patterns();
  return all;
}

std::vector<FusionPattern> patterns_of(const Chip& chip) {
  if (chip.patterns.empty()) return fusion_patterns();
  std::vector<FusionPattern> out;
  for (const ChipPattern& p : chip.patterns) {
    auto add = [&](std::vector<DFPattern> results) {
      out.push_back(
          {text(backend_of(chip.name), ".", p.name), p.source, std::move(results), [p](const PatternMatch& match) {
             return why_not(p, match);
           }});
    };
    if (!p.graph.empty()) {
      for (const ChipPattern& part : without_optional_results(p)) {
        const std::vector<DFPattern> values = values_of(part);
        std::vector<DFPattern> results;
        for (size_t r : part.results) results.push_back(values[r]);
        add(std::move(results));
      }
      continue;
    }
    auto may_be_absent = [&](size_t from, size_t to) {
      for (size_t i = from; i < to; ++i)
        if (!p.ops[i].optional) return false;
      return true;
    };
    std::vector<std::pair<size_t, size_t>> parts;  // first and last link
    for (size_t first = 0; first < p.ops.size() && may_be_absent(0, first); ++first)
      for (size_t last = first; last < p.ops.size(); ++last)
        if (may_be_absent(last + 1, p.ops.size())) parts.emplace_back(first, last);
    std::ranges::stable_sort(parts, std::greater{}, [](const auto& part) { return part.second - part.first; });
    for (const auto& [first, last] : parts) add({chain(p, first, last)});
  }
  return out;
}

}  // namespace sator::passes
