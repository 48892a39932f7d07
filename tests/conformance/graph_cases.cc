// infer, expr_error, expr_query, expr_print of graphs: Python expressions over tvm.relax, on the evaluator of R.
#include <algorithm>
#include <set>

#include "base/text.h"
#include "cases.h"
#include "graph_objects.h"
#include "ir/script/parser.h"
#include "passes/pattern_matcher.h"
#include "pattern_values.h"
#include "program_values.h"
#include "relax/builder.h"
#include "relax/ops/table.h"
#include "relax/parse_impl.h"
#include "relax/print.h"
#include "relax/rewrite.h"
#include "relax/struct_info.h"
#include "statement_values.h"
#include "struct_info_values.h"

namespace sator::conformance {

namespace {

using relax::RExpr;
using relax::StructInfo;
using script::Expression;
using tir::Arguments;

/// R.* as in scripts, and what tests build by hand: relax.Var, relax.TensorStructInfo, tir.Var, ...
class CaseEvaluator final : public relax::GraphEvaluator {
 public:
  CaseEvaluator(const script::Source& source, const relax::ModuleScope& scope) : GraphEvaluator(source, scope) {
    languages["relax"] = "relax";
    languages["tvm"] = "tvm";
    languages["np"] = "np";
    languages["bb"] = "bb";
    languages["te"] = "te";
  }
  /// Whether tir.* means what Python builds, beyond what scripts have.
  bool builds_programs = false;
  /// Passes of tensor programs, where the case may apply them.
  std::unique_ptr<PassCalls> passes;
  /// Every pattern that was made, and where it is written.
  std::vector<WrittenPattern> patterns;

 protected:
  tir::Value call_other(const tir::Value& callee, const Expression& call) override {
    if (auto v = pattern_call(*this, callee, call)) return noted(call, *v);
    if (auto v = graph_object_method(*this, callee, call)) return *v;
    if (auto v = passes ? passes->result(*this, call) : std::nullopt) return *v;
    if (auto v = program_method(*this, callee, call)) return *v;
    if (auto v = struct_info_method(*this, call)) return *v;
    return GraphEvaluator::call_other(callee, call);
  }

  tir::Value call_language(const std::string& name, const Expression& call) override {
    if (passes) {
      if (name.starts_with("T.transform.")) return tir::Value();  // called next
      if (auto v = statement_value(*this, name, call)) return *v;
    }
    if (builds_programs) {
      auto in_script = [&](const std::string& known) { return GraphEvaluator::call_language(known, call); };
      if (auto v = program_value(*this, name, call, in_script)) return *v;
    }
    if (auto v = struct_info_analysis(*this, name, call)) return *v;
    if (auto v = static_type_value(*this, name, call)) return *v;
    if (auto v = pattern_function(*this, name, call)) return noted(call, *v);
    if (auto v = graph_object(*this, name, call)) return *v;
    if (name.starts_with("relax.op.")) return GraphEvaluator::call_language("R." + name.substr(9), call);
    if (name == "relax.Var" || name == "relax.DataflowVar") {
      Arguments a(*this, call, {"name_hint", "struct_info"});
      const tir::Value* sinfo = a.find("struct_info");
      relax::StructInfo info = sinfo ? to_sinfo(*sinfo, call.place) : nullptr;
      const bool is_dataflow = name == "relax.DataflowVar";
      return NodeRef(is_dataflow ? relax::make_dataflow_var(a.str("name_hint"), info)
                                 : relax::make_rvar(a.str("name_hint"), info));
    }
    if (name == "relax.TensorStructInfo") {
      Arguments a(*this, call, {"shape", "dtype", "vdevice", "ndim"});
      const tir::Value* shape = a.find("shape");
      // Without a dtype TVM says float32, for None any.
      const bool any_dtype = std::ranges::any_of(call.keywords, [](const script::Keyword& k) {
        return k.name == "dtype" && k.value.is(script::ExpressionKind::none);
      });
      DType dtype = any_dtype ? DType() : a.dtype("dtype", f32);
      int ndim = static_cast<int>(a.integer("ndim", -1));
      std::string device = device_of(a.find("vdevice"));
      if (!shape) return NodeRef(relax::tensor_info(dtype, ndim, device));
      if (const NodeRef* n = shape->as<NodeRef>())
        return NodeRef(relax::tensor_info(RExpr(n->as<relax::RelaxExprNode>()), dtype, device));
      return NodeRef(relax::tensor_info(to_extents(*shape, call.place), dtype, device));
    }
    if (name == "R.Tensor") {
      // A device may be an object here.
      Arguments a(*this, call, {"shape", "dtype", "vdevice", "ndim"});
      std::string device = device_of(a.find("vdevice"));
      if (!device.empty()) {
        Expression plain = call;
        if (plain.items.size() > 3) plain.items.resize(3);
        std::erase_if(plain.keywords, [](const script::Keyword& k) { return k.name == "vdevice"; });
        tir::Value v = GraphEvaluator::call_language(name, plain);
        return NodeRef(with(*v.as<NodeRef>()->as<relax::TensorInfo>(), &relax::TensorInfo::vdevice, device));
      }
    }
    if (name == "relax.ShapeStructInfo") return GraphEvaluator::call_language("R.Shape", call);
    if (name == "relax.PrimStructInfo") return GraphEvaluator::call_language("R.Prim", call);
    if (name == "relax.ObjectStructInfo") return GraphEvaluator::call_language("R.Object", call);
    if (name == "relax.TupleStructInfo") return GraphEvaluator::call_language("R.Tuple", call);
    if (name == "relax.FuncStructInfo.opaque_func") {
      Arguments a(*this, call, {"ret", "derive_func", "purity"});
      if (a.find("derive_func")) throw Unsupported{"a function's own deduction of struct info"};
      const tir::Value* ret = a.find("ret");
      return NodeRef(
          relax::opaque_func_info(ret ? to_sinfo(*ret, call.place) : relax::object_info(), a.boolean("purity", false)));
    }
    if (name == "relax.FuncStructInfo") return GraphEvaluator::call_language("R.Callable", call);
    if (name == "relax.Tuple") {
      Arguments a(*this, call, {"fields"});
      return NodeRef(to_graph(a.need("fields"), call.place));
    }
    static const std::map<std::string, std::string> kSame = {{"relax.ShapeExpr", "R.shape"},
                                                             {"relax.PrimValue", "R.prim_value"},
                                                             {"relax.StringImm", "R.str"},
                                                             {"relax.DataTypeImm", "R.dtype"},
                                                             {"relax.ExternFunc", "R.ExternFunc"},
                                                             {"relax.const", "R.const"},
                                                             {"relax.TupleGetItem", "R.TupleGetItem"},
                                                             {"relax.Constant", "R.const"},
                                                             {"relax.distributed.DeviceMesh", "R.device_mesh"},
                                                             {"tvm.ir.Range", "I.Range"}};
    if (auto at = kSame.find(name); at != kSame.end()) return GraphEvaluator::call_language(at->second, call);
    // Where a tensor lies, as the text that scripts write.
    if (name == "relax.distributed.PlacementSpec.replica") return std::string("R");
    if (name == "relax.distributed.PlacementSpec.sharding")
      return text("S[", Arguments(*this, call, {"axis"}).integer("axis"), "]");
    if (name == "relax.distributed.Placement") {
      Arguments a(*this, call, {"dim_specs"});
      std::string out;
      for (const tir::Value& v : a.need("dim_specs").as<tir::Values>()->items)
        out += (out.empty() ? "" : ", ") + *v.as<std::string>();
      return out;
    }
    if (name == "relax.distributed.DTensorStructInfo") {
      Arguments a(*this, call, {"tensor_sinfo", "device_mesh", "placement"});
      auto node = [&](const char* which) { return *a.need(which).as<NodeRef>(); };
      return NodeRef(relax::dtensor_info(cast<relax::TensorInfo>(node("tensor_sinfo")),
                                         cast<relax::DeviceMesh>(node("device_mesh")),
                                         relax::placement_from_text(a.str("placement")).value()));
    }
    if (name == "tvm.ir.VDevice" && call.items.size() == 1 && call.keywords.empty())
      return NodeRef(make<VDevice>(NodeRef(), 0, std::string("global")));
    if (name == "tvm.ir.VDevice") return GraphEvaluator::call_language("I.vdevice", call);
    if (name == "relax.get_shape_of") {
      Arguments a(*this, call, {"expr"});
      const RExpr e = normalized(to_graph(a.need("expr"), call.place));
      const auto* info = e->sinfo.as<relax::TensorInfo>();
      auto shape = info ? relax::shape_of(*info) : std::nullopt;
      if (!shape) throw Unsupported{"the shape of such a value"};
      return NodeRef(relax::shape_expr(*shape));
    }
    if (name == "tvm.ir.structural_hash") {
      Arguments a(*this, call, {"node", "map_free_vars"});
      const NodeRef node = as_node(a.need("node"));
      if (!node) throw Unsupported{"the hash of a plain value"};
      return text(structural_hash(node));
    }
    if (name == "tvm.ir.Op.get") {
      Arguments a(*this, call, {"name"});
      return NodeRef(relax::op_ref(a.str("name").substr(std::string("relax.").size())));
    }
    if (name == "T.IndexMap.from_func_with_separators") return map_with_separators(call);
    // An array of numbers is a constant of a graph.
    if (name == "np.array") {
      Expression plain = call;
      if (plain.items.size() > 1 && plain.keywords.empty()) plain.items.resize(2);
      tir::Value array = GraphEvaluator::call_language("R.const", plain);
      // NumPy's integers have 64 bits unless it is told otherwise.
      const NodeRef* n = array.as<NodeRef>();
      const auto* constant = n ? n->as<relax::Constant>() : nullptr;
      if (!constant || constant->data->dtype() != i32 || !plain.keywords.empty()) return array;
      Expression dtype;
      dtype.kind = script::ExpressionKind::string;
      dtype.text = "int64";
      dtype.place = call.place;
      plain.items.push_back(dtype);
      return GraphEvaluator::call_language("R.const", plain);
    }
    if (name == "tvm.nd.array") {
      Arguments a(*this, call, {"array"});
      return a.need("array");
    }
    if (name == "bb.normalize") {
      Arguments a(*this, call, {"expr"});
      return NodeRef(normalized(to_graph(a.need("expr"), call.place)));
    }
    if (name.starts_with("tvm") || name.starts_with("np") || name.starts_with("relax")) throw Unsupported{name};
    // What scripts do not have, Python would build.
    if (name.starts_with("T.") && !in_language(name.substr(2))) throw Unsupported{name};
    return GraphEvaluator::call_language(name, call);
  }

  /// Python's index of a shape, from either end.
  tir::Value subscript_other(const tir::Value& object, const Expression& e) override {
    if (auto v = pattern_item(object, eval(e.items[1]))) return *v;
    const NodeRef* n = object.as<NodeRef>();
    if (auto v = passes && n ? statement_item(*this, *n, e) : std::nullopt) return *v;
    const auto* shape = n ? n->as<relax::ShapeExpr>() : nullptr;
    const auto* tuple = n ? n->as<relax::Tuple>() : nullptr;
    if (!shape && !tuple) return GraphEvaluator::subscript_other(object, e);
    tir::Value index = eval(e.items[1]);
    const tir::Integer* i = index.as<tir::Integer>();
    int64_t count = static_cast<int64_t>(shape ? shape->values.size() : tuple->items.size());
    if (!i || i->value < -count || i->value >= count) return GraphEvaluator::subscript_other(object, e);
    size_t at = static_cast<size_t>(i->value < 0 ? i->value + count : i->value);
    return shape ? tir::Value(shape->values[at]) : tir::Value(NodeRef(tuple->items[at]));
  }

  tir::Value unknown_name(const Expression& e) override { throw Unsupported{"the Python name " + e.text}; }

  std::optional<tir::Value> other_operator(std::string_view op, const tir::Value& a, const tir::Value* b,
                                           script::Place place) override {
    if (auto v = pattern_operator(op, a, b)) return *v;
    return GraphEvaluator::other_operator(op, a, b, place);
  }

  std::optional<tir::Value> other_attribute(const tir::Value& object, const std::string& name,
                                            const Expression& e) override {
    if (auto v = graph_object_attribute(object, name)) return *v;
    if (const NodeRef* n = object.as<NodeRef>(); n && n->as<PatternValue>()) {
      const passes::DFPatternNode& pattern = *n->as<PatternValue>()->pattern;
      if (name == "name") return pattern.op;
      if (name == "dtype") return pattern.dtype.name();
      return object;  // called next
    }
    if (builds_programs) {
      if (auto v = program_attribute(*this, object, name)) return *v;
    }
    const NodeRef* n = object.as<NodeRef>();
    if (auto v = passes && n ? statement_attribute(*n, name) : std::nullopt) return v;
    if (n && n->as<relax::StructInfoNode>() && name == "is_base_of") return object;  // called next
    const auto* call = n ? n->as<relax::RCall>() : nullptr;
    if (call && name == "op") return NodeRef(call->op);
    if (call && name == "args") {
      tir::Values out;
      for (const RExpr& a : call->args) out.items.push_back(NodeRef(a));
      return out;
    }
    if (call && name == "attrs") {
      tir::DictValue out;
      for (const auto& [key, value] : call->attrs) out.items.emplace_back(key, from_node(value));
      return out;
    }
    if (const tir::DictValue* dict = object.as<tir::DictValue>()) {
      for (const auto& [key, value] : dict->items) {
        if (*key.as<std::string>() == name) return value;
      }
    }
    if (name == "struct_info" && n) {
      if (const auto* expr = n->as<relax::RelaxExprNode>()) return NodeRef(expr->sinfo);
    }
    auto list = [](const std::vector<Expr>& values) {
      tir::Values out;
      for (const Expr& v : values) out.items.push_back(v);
      return out;
    };
    if (const auto* d = n ? n->as<relax::DTensorInfo>() : nullptr) {
      if (name == "device_mesh") return NodeRef(d->mesh);
      if (name == "placement") return relax::placement_text(d->placement);
      if (name == "tensor_sinfo") return NodeRef(d->tensor);
    }
    if (const auto* mesh = n ? n->as<relax::DeviceMesh>() : nullptr) {
      tir::Values shape;
      shape.is_tuple = true;
      for (int64_t extent : mesh->shape) shape.items.push_back(tir::Integer{extent, false});
      if (name == "shape") return shape;
    }
    if (const auto* p = n ? n->as<relax::TensorInfo>() : nullptr) {
      if (name == "ndim") return tir::Integer{p->ndim, false};
      if (name == "shape" && p->shape) return NodeRef(p->shape);
    }
    if (const auto* p = n ? n->as<relax::ShapeInfo>() : nullptr) {
      if (name == "ndim") return tir::Integer{p->ndim, false};
      if (name == "values" && p->values) return list(*p->values);
    }
    if (const auto* p = n ? n->as<relax::ShapeExpr>() : nullptr; p && name == "values") return list(p->values);
    if (const auto* p = n ? n->as<relax::PrimValue>() : nullptr; p && name == "value") return p->value;
    if (const auto* p = n ? n->as<relax::RString>() : nullptr; p && name == "value") return p->value;
    if (const auto* p = n ? n->as<relax::Tuple>() : nullptr; p && name == "fields") {
      tir::Values out;
      for (const RExpr& f : p->items) out.items.push_back(NodeRef(f));
      return out;
    }
    if (const auto* p = n ? n->as<relax::RVar>() : nullptr; p && name == "name_hint") return p->name;
    if (name == "dtype" && n) {
      if (const auto* p = n->as<relax::PrimInfo>()) return p->dtype.name();
      if (const auto* t = n->as<relax::TensorInfo>()) return t->dtype.name();
    }
    return GraphEvaluator::other_attribute(object, name, e);
  }

 private:
 public:
  static NodeRef as_node(const tir::Value& v) {
    const NodeRef* n = v.as<NodeRef>();
    const Expr* e = v.as<Expr>();
    return n ? *n : e ? NodeRef(*e) : nullptr;
  }

 private:
  tir::Value noted(const Expression& call, tir::Value v) {
    const NodeRef* n = v.as<NodeRef>();
    if (const auto* p = n ? n->as<PatternValue>() : nullptr) patterns.push_back({&call, p->pattern});
    return v;
  }

  static std::string device_of(const tir::Value* v) {
    const NodeRef* n = v ? v->as<NodeRef>() : nullptr;
    const VDevice* d = n ? n->as<VDevice>() : nullptr;
    if (!d) return v && v->as<std::string>() ? *v->as<std::string>() : "";
    if (!d->target) return "";
    const auto* target = d->target.as<TargetConfig>();
    return text(target ? string_attr(target->config, "kind").value_or("") : "", ":", d->index);
  }

  /// (map, separators): before which results of the lambda T.IndexMap.AXIS_SEPARATOR stands.
  tir::Value map_with_separators(const Expression& call) {
    if (call.items.size() != 2 || !call.items[1].is(script::ExpressionKind::lambda))
      throw Unsupported{"an index map of no lambda"};
    Expression lambda = call.items[1];
    std::vector<Expression> results;
    tir::Values separators;
    for (const Expression& item : lambda.items[0].items) {
      if (script::dotted_name(item).ends_with("AXIS_SEPARATOR"))
        separators.items.push_back(tir::Integer{static_cast<int64_t>(results.size()), false});
      else
        results.push_back(item);
    }
    if (!separators.items.empty()) lambda.items[0].items = std::move(results);
    tir::Values out;
    out.is_tuple = true;
    out.items.push_back(NodeRef(tir::index_map_of(*this, tir::LambdaValue{&lambda}, i64)));
    out.items.push_back(std::move(separators));
    return out;
  }

  static tir::Value from_node(const NodeRef& node) {
    if (const Array* list = node.as<Array>()) {
      tir::Values out;
      for (const NodeRef& item : list->items) out.items.push_back(from_node(item));
      return out;
    }
    if (const ExprNode* e = node.as<ExprNode>()) return Expr(e);
    return node;
  }

 public:
  static RExpr normalized(const RExpr& e) {
    relax::BlockBuilder builder;
    builder.begin_scope();
    builder.begin_block(false);
    return builder.normalize(e);
  }
};

/// The case's definitions, then the expression, and what is expected if it is there.
struct Evaluated {
  script::Program program;
  relax::ModuleScope scope;
  std::unique_ptr<CaseEvaluator> evaluator;
  tir::Value value, expected;
};

std::unique_ptr<Evaluated> prepared(const Json& request, const std::string& after) {
  std::string lines;
  for (const char* part : {"defs", "setup"}) {
    if (!request.contains(part)) continue;
    for (const Json& line : request[part]) lines += line.get<std::string>() + "\n";
  }
  lines += "case_value = " + request.at("expr").get<std::string>() + "\n";
  if (!after.empty()) lines += "case_after = " + after + "\n";
  for (const char* other : {"<script:", "$before", "\nwith "}) {
    if (lines.find(other) != lines.npos) throw Unsupported{"scripts and contexts in an expression"};
  }
  // Members of an enumeration are their names.
  for (const std::string result = "relax.analysis.BaseCheckResult."; lines.find(result) != lines.npos;) {
    const size_t at = lines.find(result), end = lines.find_first_of("\n,)", at);
    const std::string member = lines.substr(at + result.size(), end - at - result.size());
    lines.replace(at, end - at, text('"', member, '"'));
  }
  auto out = std::make_unique<Evaluated>();
  out->program = script::parse(lines);
  out->evaluator = std::make_unique<CaseEvaluator>(*out->program.source, out->scope);
  const std::string category = request.at("category");
  out->evaluator->builds_programs = !category.starts_with("relax_");
  if (category == "tir_transform") out->evaluator->passes = std::make_unique<PassCalls>(request);
  return out;
}

/// Runs the statements; `on_value` is told when the expression's own turn comes.
void evaluate(Evaluated& e, const std::function<void()>& on_value = {}) {
  for (const script::Statement& s : e.program.body) {
    if (s.kind != script::StatementKind::assign || s.targets.size() != 1 ||
        !s.targets[0].is(script::ExpressionKind::name))
      throw Unsupported{"statements other than definitions"};
    const std::string& name = s.targets[0].text;
    if (name == "case_value" && on_value) on_value();
    tir::Value v = e.evaluator->eval(s.value);
    if (name == "case_value") e.value = v;
    if (name == "case_after") e.expected = v;
    // A variable that has no name takes that of the definition.
    e.evaluator->define(name, std::move(v), s.place, true);
  }
}

NodeRef node_of(const tir::Value& v) { return CaseEvaluator::as_node(v); }

/// What an option of a pass is made of, as a node; null for None.
NodeRef option_node(CaseEvaluator& ev, const tir::Value& v) {
  if (const auto* lambda = v.as<tir::LambdaValue>()) return tir::index_map_of(ev, *lambda, i64);
  if (const bool* b = v.as<bool>()) return bool_imm(*b);
  if (const tir::Integer* i = v.as<tir::Integer>()) return int_imm(i->value, i64);
  if (const double* d = v.as<double>()) return float_imm(*d);
  if (const std::string* s = v.as<std::string>()) return string_imm(*s);
  if (const tir::Values* list = v.as<tir::Values>()) {
    std::vector<NodeRef> items;
    for (const tir::Value& item : list->items) items.push_back(option_node(ev, item));
    return make<Array>(std::move(items));
  }
  if (const tir::DictValue* dict = v.as<tir::DictValue>()) {
    std::vector<NodeRef> pairs;
    for (const auto& [key, value] : dict->items)
      pairs.push_back(make<Array>(std::vector<NodeRef>{option_node(ev, key), option_node(ev, value)}));
    return make<Array>(std::move(pairs));
  }
  return node_of(v);
}

std::string shown(const tir::Value& v) {
  NodeRef n = node_of(v);
  if (v.as<std::string>()) return *v.as<std::string>();
  if (const BufferRef* b = v.as<BufferRef>()) n = *b;
  return n ? relax::to_script(n) : v.kind();
}

}  // namespace

struct PythonValues::Impl {
  script::Program program;
  relax::ModuleScope scope;
  std::unique_ptr<CaseEvaluator> evaluator;
};

PythonValues::PythonValues(const Json& request) : impl_(std::make_unique<Impl>()) {
  std::string lines;
  for (const Json& line : request.value("defs", Json::array())) {
    const std::string& written = line.get_ref<const std::string&>();
    if (written.find('$') == written.npos && written.find('<') == written.npos) lines += written + "\n";
  }
  impl_->program = script::parse(lines);
  impl_->evaluator = std::make_unique<CaseEvaluator>(*impl_->program.source, impl_->scope);
  for (const script::Statement& s : impl_->program.body) {
    if (s.targets.size() == 1)
      impl_->evaluator->define(s.targets[0].text, impl_->evaluator->eval(s.value), s.place, true);
  }
}
PythonValues::~PythonValues() = default;

NodeRef PythonValues::node(const script::Expression& e) {
  return option_node(*impl_->evaluator, impl_->evaluator->eval(e));
}

ModuleRef PythonValues::rewritten(const Expression& pattern, const Expression& rewrite, const ModuleRef& module) {
  if (!rewrite.is(script::ExpressionKind::lambda) || rewrite.names.size() != 2)
    throw Unsupported{"a rewrite of no lambda"};
  CaseEvaluator& ev = *impl_->evaluator;
  ev.patterns.clear();
  const NodeRef made = node_of(ev.eval(pattern));
  const auto* top = made.as<PatternValue>();
  if (!top) throw Unsupported{"a rewrite without a pattern"};
  Expression body = rewrite.items[0];
  const std::vector<passes::DFPattern> wanted = take_matched(body, rewrite.names[1], ev.patterns);
  return relax::rewrite_functions(module, [&](const relax::FuncRef& f, relax::BlockBuilder& builder) {
    return passes::rewrite_matches(f, builder, top->pattern, [&](const RExpr& call, const passes::Matched& matched) {
      ev.push_scope();
      ev.define(rewrite.names[0], NodeRef(call), body.place, true);
      for (size_t i = 0; i < wanted.size(); ++i)
        ev.define(text("matched", i), NodeRef(matched.at(wanted[i])), body.place, true);
      const RExpr out = ev.to_graph(ev.eval(body), body.place);
      ev.pop_scope();
      return out;
    });
  });
}

void run_infer(const Json& request) {
  auto e = prepared(request, request.at("after"));
  evaluate(*e);
  RExpr call = CaseEvaluator::normalized(e->evaluator->to_graph(e->value, {}));
  StructInfo expected = e->evaluator->to_sinfo(e->expected, {});
  if (!equal(call->sinfo, expected)) throw Failed{text("inferred ", call->sinfo, "\nexpected ", expected)};
}

void run_expr_error(const Json& request) {
  bool graphs = request.at("category").get<std::string>().starts_with("relax_");
  const std::string& written = request.at("expr").get_ref<const std::string&>();
  // Of what programs are built of, what is checked where it is built.
  bool checked = false;
  for (const char* name : {"tir.const(", "tir.Let(", "tir.IntImm(", "tir.FloatImm(", "tir.IndexMap."})
    checked |= written.starts_with(name);
  if (!graphs && !checked) throw Unsupported{"errors of other categories"};
  auto e = prepared(request, "");
  bool reached = false;
  try {
    evaluate(*e, [&] { reached = true; });
    if (graphs) CaseEvaluator::normalized(e->evaluator->to_graph(e->value, {}));
  } catch (const Error& error) {
    if (reached) return;
    throw Failed{text("a definition is refused\n", error.what())};
  }
  throw Failed{"accepted: " + shown(e->value)};
}

namespace {

/// The number of a plain value or of a constant.
std::optional<double> number_of(const tir::Value& v) {
  if (const bool* b = v.as<bool>()) return *b;
  if (const tir::Integer* i = v.as<tir::Integer>()) return static_cast<double>(i->value);
  if (const double* d = v.as<double>()) return *d;
  const Expr* e = v.as<Expr>();
  if (const IntImm* n = e ? e->as<IntImm>() : nullptr) return static_cast<double>(n->value);
  if (const FloatImm* n = e ? e->as<FloatImm>() : nullptr) return n->value;
  return {};
}

bool alike(const tir::Value& a, const tir::Value& b) {
  const tir::Values *x = a.as<tir::Values>(), *y = b.as<tir::Values>();
  if (x && y) return std::ranges::equal(x->items, y->items, alike);
  if (a.as<BufferRef>() || b.as<BufferRef>())
    return a.as<BufferRef>() && b.as<BufferRef>() && *a.as<BufferRef>() == *b.as<BufferRef>();
  const Expr *e = a.as<Expr>(), *f = b.as<Expr>();
  if (e && f) return equal(NodeRef(*e), NodeRef(*f));
  if (auto m = number_of(a), n = number_of(b); m && n) return *m == *n;
  NodeRef m = node_of(a), n = node_of(b);
  if (m && n) return equal(m, n);
  const std::string *s = a.as<std::string>(), *t = b.as<std::string>();
  if (s && t) return *s == *t;
  return !m && !n && shown(a) == shown(b);
}

/// The categories whose expressions the evaluator has a part of.
bool is_evaluated(const Json& request) {
  static const std::set<std::string> kCategories = {
      "relax_op_infer", "relax_script", "relax_other", "relax_transform", "tir_core", "tir_transform"};
  return kCategories.contains(request.at("category").get<std::string>());
}

}  // namespace

void run_expr_query(const Json& request) {
  if (!is_evaluated(request)) throw Unsupported{"queries of other categories"};
  std::string op = request.at("op");
  bool truth = op == "true" || op == "false";
  if (!truth && op != "==" && op != "structural_equal") throw Unsupported{"comparison by " + op};
  const Json& after = request.at("after");
  auto e = prepared(request, truth ? "" : after.is_string() ? after.get<std::string>() : after.dump());
  evaluate(*e);
  if (truth) {
    std::optional<double> n = number_of(e->value);
    if (!n) throw Failed{text("not a truth value: ", shown(e->value))};
    if ((*n != 0) != (op == "true")) throw Failed{text(shown(e->value), "\nexpected ", op)};
    return;
  }
  if (!alike(e->value, e->expected)) throw Failed{text(shown(e->value), "\nexpected ", shown(e->expected))};
}

void run_expr_equal(const Json& request) {
  if (!is_evaluated(request)) throw Unsupported{"queries of other categories"};
  Json as_query = request;
  as_query["expr"] = request.at("lhs");
  auto e = prepared(as_query, request.at("rhs"));
  evaluate(*e);
  if (!alike(e->value, e->expected)) throw Failed{text(shown(e->value), "\nexpected ", shown(e->expected))};
}

void run_construct(const Json& request) {
  if (request.at("category") != "tir_transform" || !request.contains("after") || !request["after"].is_string())
    throw Unsupported{"cases of kind construct"};
  auto e = prepared(request, "");
  evaluate(*e);
  NodeRef n = node_of(e->value);
  ModuleRef got = n ? cast<Module>(n) : nullptr;
  if (!got) throw Unsupported{"a value that is no module"};
  ModuleRef expected = parse_program(request.at("after"));
  if (!same_program(expected, got, true))
    throw Failed{"the result differs\n" + difference(print_program(expected), print_program(got))};
}

void run_expr_print(const Json& request) {
  static const std::set<std::string> kCategories = {
      "relax_op_infer", "relax_script", "relax_other", "relax_transform", "tir_core", "tir_transform", "tvmscript"};
  if (!kCategories.contains(request.at("category").get<std::string>()))
    throw Unsupported{"queries of other categories"};
  if (!request.contains("after")) throw Unsupported{"a case without a result"};
  bool contains = request.contains("op") && request["op"] == "in";
  auto e = prepared(request, "");
  evaluate(*e);
  std::string expected(trim(request.at("after").get<std::string>())), got(trim(shown(e->value)));
  if (contains ? got.find(expected) == got.npos : got != expected) throw Failed{text(got, "\nexpected ", expected)};
}

}  // namespace sator::conformance
