// Patterns of graphs (relax.dpl), matched and rewritten by the compiler's matcher; python/sator/relax/dpl gives them TVM's names.
#include "passes/pattern_matcher.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/error.h"
#include "bind/convert.h"
#include "bind/node.h"
#include "bind/parts.h"
#include "bind/te.h"
#include "passes/byoc.h"
#include "passes/dead_code_elimination.h"
#include "passes/graph/graph.h"
#include "relax/outline.h"

namespace sator::bind {

namespace {

using passes::DFPattern;
using relax::RExpr;

/// One value wherever Python uses the object again: what it stands for is its only part.
struct Pattern {
  DFPattern is;
  const DFPattern& inner() const { return is->args.front(); }
};

Pattern pattern_of(DFPattern inner) { return {passes::one_value(std::move(inner))}; }

RExpr expression_of(nb::handle o) {
  const NodeRef node = node_of(o);
  if (const auto* e = node.as<relax::RelaxExprNode>()) return RExpr(e);
  wrong_type(o, "an expression of a graph");
}

std::string op_word(const std::string& name) { return name.starts_with("relax.") ? name.substr(6) : name; }

/// The pattern `callee(args...)`; `more`: further arguments may follow.
DFPattern call_of(const Pattern& callee, std::vector<DFPattern> args, bool more) {
  const passes::DFPatternNode& c = *callee.inner();
  if (c.kind == passes::DFPatternNode::Kind::op)
    return more ? passes::is_op_beginning(c.op, std::move(args)) : passes::is_op(c.op, std::move(args));
  return more ? passes::is_call_beginning(callee.is, std::move(args)) : passes::is_call_of(callee.is, std::move(args));
}

/// A pattern by the word for its kind, its name, its parts and what else is known of it.
Pattern make_pattern(const std::string& kind, const std::string& name, const std::vector<Pattern>& parts,
                     nb::object given) {
  std::vector<DFPattern> all;
  for (const Pattern& p : parts) all.push_back(p.is);
  auto rest = [&] { return std::vector<DFPattern>(all.begin() + 1, all.end()); };
  if (kind == "wildcard") return pattern_of(passes::wildcard());
  if (kind == "var") return pattern_of(passes::is_var(name));
  if (kind == "dataflow_var") return pattern_of(passes::is_dataflow_var(name));
  if (kind == "global_var") return pattern_of(passes::is_global_var(name));
  if (kind == "constant") return pattern_of(passes::is_constant());
  if (kind == "extern_func") return pattern_of(passes::is_extern_func(name));
  if (kind == "op") return pattern_of(passes::is_op(op_word(name), {}));
  if (kind == "call") return pattern_of(call_of(parts.at(0), rest(), nb::cast<bool>(given)));
  if (kind == "any_call") return pattern_of(passes::is_call_of(all.at(0), {}));
  if (kind == "tuple") return pattern_of(passes::is_tuple(std::move(all), nb::cast<bool>(given)));
  if (kind == "item")
    return pattern_of(given.is_none() ? passes::is_any_item(all.at(0))
                                      : passes::is_tuple_get_item(all.at(0), nb::cast<size_t>(given)));
  if (kind == "function") return pattern_of(passes::is_function(rest(), all.at(0)));
  if (kind == "either") return pattern_of(all.at(0) | all.at(1));
  if (kind == "both") return pattern_of(all.at(0) & all.at(1));
  if (kind == "except") return pattern_of(passes::except(all.at(0)));
  if (kind == "shape") return pattern_of(passes::is_shape(extents_of(given)));
  if (kind == "has_shape") return pattern_of(passes::has_shape(all.at(0), extents_of(given)));
  if (kind == "has_dtype") return pattern_of(passes::has_dtype(all.at(0), field_from_python<DType>(given)));
  if (kind == "has_struct_info") {
    const NodeRef node = node_of(given);
    const auto* info = node.as<relax::StructInfoNode>();
    if (!info) wrong_type(given, "struct info, such as R.Tensor((4,), \"float32\")");
    return pattern_of(passes::has_struct_info(all.at(0), relax::StructInfo(info)));
  }
  if (kind == "has_attrs") return pattern_of(passes::has_attrs(all.at(0), attributes_of(given)));
  if (kind == "expression") return pattern_of(passes::is_expression(expression_of(given)));
  throw nb::value_error(
      ("no pattern is of the kind " + kind + "\n  needs: one of relax.dpl, such as is_op, wildcard, is_tuple").c_str());
}

uintptr_t address(const DFPattern& p) { return reinterpret_cast<uintptr_t>(p.get()); }

/// What patterns stand for: pairs of a pattern's address and an expression.
nb::list matched_to_python(const passes::Matched& matched) {
  nb::list out;
  for (const auto& [pattern, e] : matched)
    if (pattern->kind == passes::DFPatternNode::Kind::one_value)
      out.append(nb::make_tuple(address(pattern), to_python(NodeRef(e))));
  return out;
}

nb::object match(const Pattern& pattern, nb::handle e, nb::object values) {
  std::map<relax::RVarRef, RExpr> known;
  if (!values.is_none())
    for (auto [var, value] : nb::cast<nb::dict>(values))
      known.emplace(relax::RVarRef(node_of(var).as<relax::RVar>()), expression_of(value));
  const auto found = passes::match_expression(pattern.is, expression_of(e), [&](const relax::RVarRef& v) {
    const auto at = known.find(v);
    return at == known.end() ? RExpr() : at->second;
  });
  return found ? nb::object(matched_to_python(*found)) : nb::none();
}

nb::object rewrite(const Handle& function, const Pattern& pattern, nb::object rewriter) {
  const auto* f = function.node.as<relax::Function>();
  if (!f) throw nb::type_error("a pattern is replaced in a relax.Function");
  relax::BlockBuilder builder;
  return to_python(NodeRef(
      passes::rewrite_matches(relax::FuncRef(f), builder, pattern.is, [&](const RExpr& call, const auto& matched) {
        nb::object made = rewriter(to_python(NodeRef(call)), matched_to_python(matched));
        return made.is_none() ? call : expression_of(made);
      })));
}

/// FuseOpsByPattern with patterns of Python's: (name, pattern, check) each. `check` is None, or is called with what the parts stand for,
/// the bindings taken, and all of the block: (var, value) each; it says whether the match is taken.
nb::object fuse(const Handle& module, nb::list rows, bool keeps_constants, bool with_codegen, nb::object explain) {
  const Module* given = module.node.as<Module>();
  if (!given) throw nb::type_error("FuseOpsByPattern runs on an IRModule");
  std::vector<passes::FusionPattern> patterns;
  for (nb::handle row : rows) {
    const auto& pattern = nb::cast<const Pattern&>(row[1]);
    nb::object check = nb::borrow(row[2]);
    passes::FusionPattern out{.name = nb::cast<std::string>(row[0]), .does = "", .results = {pattern.is}};
    if (!check.is_none())
      out.check = [check](const passes::PatternMatch& m) -> std::string {
        nb::list taken, all;
        for (size_t i = 0; i < m.block->bindings.size(); ++i) {
          const relax::Binding& b = m.block->bindings[i];
          nb::object pair =
              nb::make_tuple(to_python(NodeRef(relax::bound_var(b))), to_python(NodeRef(relax::bound_value(b))));
          all.append(pair);
          if (m.members.contains(i)) taken.append(pair);
        }
        return nb::cast<bool>(check(matched_to_python(m.parts), taken, all)) ? "" : "its check says no";
      };
    patterns.push_back(std::move(out));
  }
  passes::PassContext ctx;
  if (!explain.is_none())
    ctx.explain = [&](const std::string& which, const std::string& message) { explain(which, message); };
  const ModuleRef out = passes::fuse_ops_by_pattern(
      ModuleRef(given), ctx, patterns, {.backend_functions = false, .keeps_constants = keeps_constants});
  return to_python(NodeRef(with_codegen ? passes::annotate_codegen(out) : out));
}

}  // namespace

void add_patterns(nb::module_& m) {
  nb::class_<Pattern>(m, "Pattern", "A pattern of the compiler's.").def_prop_ro("address", [](const Pattern& p) {
    return address(p.is);
  });
  m.def("pattern",
        make_pattern,
        nb::arg("kind"),
        nb::arg("name") = "",
        nb::arg("parts") = std::vector<Pattern>(),
        nb::arg("given").none() = nb::none());
  m.def("match_pattern", match, nb::arg("pattern"), nb::arg("e"), nb::arg("values").none() = nb::none());
  m.def("rewrite_pattern", rewrite);
  m.def(
      "without_unused",
      [](const Handle& function) {
        const auto* f = function.node.as<relax::Function>();
        if (!f) throw nb::type_error("bindings are dropped from a relax.Function");
        return to_python(NodeRef(passes::without_unused(relax::FuncRef(f))));
      },
      "The function without bindings that nobody reads and that have no effect.");
  m.def(
      "combine_parallel_matmul",
      [](const Handle& module, nb::object check) {
        const Module* given = module.node.as<Module>();
        if (!given) throw nb::type_error("CombineParallelMatmul runs on an IRModule");
        const auto list = [](const std::vector<relax::RVarRef>& vars) {
          nb::list out;
          for (const relax::RVarRef& v : vars) out.append(to_python(NodeRef(v)));
          return out;
        };
        return to_python(NodeRef(passes::combine_parallel_matmul(
            ModuleRef(given),
            {},
            [&](const relax::FuncRef& f, const relax::RVarRef& input, const auto& weights, const auto& biases) {
              return nb::cast<bool>(
                  check(to_python(NodeRef(f)), to_python(NodeRef(input)), list(weights), list(biases)));
            })));
      },
      nb::arg("module"),
      nb::arg("check"),
      "CombineParallelMatmul where check(function, input, weights, biases) is True.");
  m.def("fuse_by_pattern",
        fuse,
        nb::arg("module"),
        nb::arg("rows"),
        nb::arg("keeps_constants"),
        nb::arg("with_codegen"),
        nb::arg("explain").none() = nb::none());
}

}  // namespace sator::bind
