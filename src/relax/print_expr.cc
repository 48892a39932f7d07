#include "relax/ops/table.h"
#include "relax/print_impl.h"
#include "relax/struct_info.h"
#include "runtime/scalars.h"
#include "tir/print_impl.h"

namespace sator::relax {

using namespace script;

GraphPrinter::GraphPrinter(Printer& printer, const ScriptOptions& options)
    : ExprPrinter(printer), show_all_struct_info_(options.show_all_struct_info) {
  plain_integers = true;
}

// ---- Variables and sizes ----

Doc GraphPrinter::define(const RVar& v) { return printer.define(v, v.name.empty() ? "v" : v.name, printer.frame()); }

Doc GraphPrinter::variable(const RVar& v) {
  if (auto doc = printer.find(v)) return *doc;
  Doc info = v.sinfo ? sinfo(v.sinfo) : printer.relax(printer.is_head() ? "Any" : "Object");
  Doc name = define(v), line = name;
  line += ": ";
  line += info;
  printer.frame().stmts.push_back(line_doc(std::move(line)));
  return name;
}

/// A size is declared at the head of the outermost function: n = T.int64().
Doc GraphPrinter::undefined(const Var& v) {
  Frame& frame = function_frame_ ? *function_frame_ : *printer.frames().front();
  Doc name = printer.define(v, v.name.empty() ? "v" : v.name, frame);
  frame.stmts.push_back(assign_doc(name, creation(v)));
  if (signature_vars_) signature_vars_->insert(&v);
  return name;
}

/// In a signature the extents that the function defines are text: R.Tensor(("n", 4)).
Doc GraphPrinter::extent(const Expr& e) {
  Doc doc = print(e);
  if (signature_vars_) {
    for (const VarRef& v : vars_in(e)) {
      if (signature_vars_->count(v.get())) return string_doc(doc.text);
    }
  }
  return doc;
}
/// An integer that is no int64 says so: a bare one reads back as that.
Doc GraphPrinter::known_value(const Expr& e) {
  const IntImm* i = e.as<IntImm>();
  if (i && i->dtype != i64 && !i->dtype.is_bool())
    return call_doc(printer.tir(i->dtype.name()), {integer_doc(i->value)});
  return extent(e);
}
std::vector<Doc> GraphPrinter::extents(const std::vector<Expr>& values) {
  std::vector<Doc> out;
  for (const Expr& e : values) out.push_back(extent(e));
  return out;
}

// ---- Struct info ----

Doc GraphPrinter::sinfo(const StructInfo& info) {
  return match(
      info,
      [&](const ObjectInfo&) { return printer.relax(printer.is_head() ? "Any" : "Object"); },
      [&](const PrimInfo& p) {
        if (p.value) return call_doc(printer.relax("Prim"), {}, {{"value", known_value(p.value)}});
        if (printer.is_head()) return printer.tir(p.dtype.name());
        return call_doc(printer.relax("Prim"), {dtype_doc(p.dtype)});
      },
      [&](const ShapeInfo& s) {
        if (s.values) return call_doc(printer.relax("Shape"), {list_doc(extents(*s.values))});
        return call_doc(printer.relax("Shape"), {}, {{"ndim", integer_doc(s.ndim)}});
      },
      [&](const TensorInfo& t) {
        std::vector<Doc> args;
        std::vector<KeywordDoc> keywords;
        if (const ShapeExpr* s = t.shape.as<ShapeExpr>())
          args.push_back(tuple_doc(extents(s->values)));
        else if (t.shape)
          args.push_back(expr(t.shape));
        if (!t.dtype.is_void()) keywords.push_back({"dtype", dtype_doc(t.dtype)});
        if (!t.shape && t.ndim >= 0) keywords.push_back({"ndim", integer_doc(t.ndim)});
        if (!t.vdevice.empty()) keywords.push_back({"vdevice", string_doc(t.vdevice)});
        Doc name = printer.relax("Tensor");
        return args.empty() && keywords.empty() ? name : call_doc(name, args, keywords);
      },
      [&](const DTensorInfo& d) {
        const TensorInfo& t = *d.tensor;
        std::vector<Doc> args;
        std::vector<KeywordDoc> keywords;
        // The places of the arguments, as long as none is left out.
        auto add = [&](const char* name, Doc doc) {
          if (args.empty())
            keywords.push_back({name, std::move(doc)});
          else
            args.push_back(std::move(doc));
        };
        if (const ShapeExpr* s = t.shape.as<ShapeExpr>())
          args.push_back(tuple_doc(extents(s->values)));
        else if (t.shape)
          args.push_back(expr(t.shape));
        if (!t.dtype.is_void()) add("dtype", dtype_doc(t.dtype));
        if (t.dtype.is_void() && !args.empty()) {
          keywords.push_back({"device_mesh", mesh(*d.mesh)});
          keywords.push_back({"placement", string_doc(placement_text(d.placement))});
        } else {
          add("device_mesh", mesh(*d.mesh));
          add("placement", string_doc(placement_text(d.placement)));
        }
        if (!t.shape && t.ndim >= 0) keywords.push_back({"ndim", integer_doc(t.ndim)});
        return call_doc(printer.relax("DTensor"), args, keywords);
      },
      [&](const TupleInfo& t) {
        std::vector<Doc> items;
        for (const StructInfo& item : t.items) items.push_back(sinfo(item));
        return items.empty() ? printer.relax("Tuple") : call_doc(printer.relax("Tuple"), items);
      },
      [&](const FuncInfo& f) {
        Doc ret = sinfo(f.ret), pure = boolean_doc(f.pure);
        if (f.params) {
          std::vector<Doc> params;
          for (const StructInfo& p : *f.params) params.push_back(sinfo(p));
          return call_doc(printer.relax("Callable"), {tuple_doc(params), ret, pure});
        }
        std::vector<KeywordDoc> keywords;
        if (!f.ret.as<ObjectInfo>()) keywords.push_back({"ret", ret});
        if (f.pure) keywords.push_back({"purity", pure});
        Doc name = printer.relax("Callable");
        return keywords.empty() ? name : call_doc(name, {}, keywords);
      });
}

/// In a module by its name there: "mesh[0]".
Doc GraphPrinter::mesh(const DeviceMesh& m) {
  if (module) {
    for (const auto& [name, info] : module->global_infos) {
      const Array* list = info.as<Array>();
      for (size_t i = 0; list && i < list->items.size(); ++i)
        if (list->items[i].as<DeviceMesh>() && equal(list->items[i], ref(m)))
          return string_doc(text(name, "[", i, "]"));
    }
  }
  return other(ref(m));
}

// ---- Attributes ----

Doc GraphPrinter::attr_dict(const Attrs& attrs) {
  std::vector<std::pair<Doc, Doc>> items;
  for (const auto& [key, v] : attrs) items.emplace_back(string_doc(key), attribute(v));
  return dict_doc(items);
}

Doc GraphPrinter::attribute(const NodeRef& v) {
  if (const IntImm* i = v.as<IntImm>()) {
    if (i->dtype.is_bool()) return boolean_doc(i->value != 0);
    if (i->dtype == i32 || (i->dtype == i64 && i->value != static_cast<int32_t>(i->value)))
      return integer_doc(i->value);
    return call_doc(printer.tir(i->dtype.name()), {integer_doc(i->value)});
  }
  if (const Array* a = v.as<Array>()) {
    std::vector<Doc> items;
    for (const NodeRef& item : a->items) items.push_back(attribute(item));
    return list_doc(items);
  }
  if (const Dict* d = v.as<Dict>()) return attr_dict(d->items);
  if (const auto* e = v.as<RelaxExprNode>()) return expr(ref(*e));
  if (const auto* s = v.as<StructInfoNode>()) return sinfo(ref(*s));
  return value(v);
}

Doc GraphPrinter::other(const NodeRef& node) {
  if (const auto* e = node.as<RelaxExprNode>()) return expr(ref(*e));
  if (const auto* s = node.as<StructInfoNode>()) return sinfo(ref(*s));
  if (const auto* d = node.as<VDevice>()) {
    const auto* target = d->target.as<TargetConfig>();
    return call_doc(printer.ir("vdevice"),
                    {target ? dict(target->config) : Doc("None"), integer_doc(d->index), string_doc(d->memory_scope)});
  }
  if (const auto* m = node.as<DeviceMesh>()) {
    std::vector<Doc> shape, ids;
    for (int64_t extent : m->shape) shape.push_back(integer_doc(extent));
    bool consecutive = !m->ids.empty();
    for (size_t i = 0; i < m->ids.size(); ++i) {
      ids.push_back(integer_doc(m->ids[i]));
      consecutive &= m->ids[i] == m->ids[0] + static_cast<int64_t>(i);
    }
    Doc devices = list_doc(ids);
    if (consecutive)
      devices = call_doc(printer.ir("Range"), {integer_doc(m->ids.front()), integer_doc(m->ids.back() + 1)});
    return call_doc(printer.relax("device_mesh"), {tuple_doc(shape), devices});
  }
  if (const auto* t = node.as<TargetConfig>()) return call_doc(printer.tir("target"), {dict(t->config)});
  if (const auto* map = node.as<arith::IndexMap>()) return tir::index_map_doc(*this, *map);
  return ExprPrinter::other(node);
}

namespace {

/// An op's attribute: numbers and lists of numbers are bare, whatever their width.
Doc op_attr(const NodeRef& v, GraphPrinter& printer) {
  if (!v) return Doc("None");
  if (const IntImm* i = v.as<IntImm>()) return i->dtype.is_bool() ? boolean_doc(i->value != 0) : integer_doc(i->value);
  if (const FloatImm* f = v.as<FloatImm>()) return real_doc(f->value);
  // No dtype of one's own: "void" in v0.17.
  if (const StringImm* s = v.as<StringImm>(); s && s->value == "void" && printer.printer.is_head()) return Doc("None");
  if (const StringImm* s = v.as<StringImm>()) return string_doc(s->value);
  if (const DeviceMesh* m = v.as<DeviceMesh>()) return printer.mesh(*m);
  if (const Array* a = v.as<Array>()) {
    std::vector<Doc> items;
    for (const NodeRef& item : a->items) items.push_back(op_attr(item, printer));
    return list_doc(items);
  }
  return printer.attribute(v);
}

}  // namespace

std::vector<KeywordDoc> GraphPrinter::op_attrs(const RCall& c) {
  std::vector<KeywordDoc> out;
  const Op* op = c.op.as<Op>();
  const OpDef* def = op ? find_op(op->name) : nullptr;
  if (!def) {
    for (const auto& [key, v] : c.attrs) out.push_back({key, op_attr(v, *this)});
    return out;
  }
  for (const AttrDef& a : def->attrs) {
    auto at = c.attrs.find(a.name);
    // v0.17 has no such argument, and does what the standard value says.
    const bool is_newer = op->name == "nn.batch_norm" && a.name == "training";
    if (is_newer && !printer.is_head() && (at == c.attrs.end() || equal(at->second, a.standard))) continue;
    out.push_back({a.name, op_attr(at == c.attrs.end() ? nullptr : at->second, *this)});
  }
  return out;
}

// ---- Constants ----

namespace {

/// Element i as a literal.
Doc element_doc(const runtime::Tensor& t, int64_t i) {
  DType d = t.dtype();
  const char* at = static_cast<const char*>(t.data()) + i * d.bytes();
  if (d.is_float()) return real_doc(runtime::real_at(at, d));
  const int64_t number = runtime::integer_at(at, d);
  if (d.is_bool()) return boolean_doc(number != 0);
  return d == u64 ? Doc(text(static_cast<uint64_t>(number))) : integer_doc(number);
}

Doc elements_doc(const runtime::Tensor& t, size_t axis, int64_t& next) {
  if (axis == t.shape().size()) return element_doc(t, next++);
  std::vector<Doc> items;
  for (int64_t i = 0; i < t.dim(axis); ++i) items.push_back(elements_doc(t, axis + 1, next));
  return list_doc(items);
}

}  // namespace

Doc constant_doc(Printer& printer, const Constant& c) {
  int64_t next = 0;
  std::vector<Doc> args{elements_doc(*c.data, 0, next), dtype_doc(c.data->dtype())};
  // Nested lists cannot say how long the axes inside an empty one are.
  std::vector<KeywordDoc> keywords;
  if (c.data->num_elements() == 0) {
    std::vector<Doc> shape;
    for (int64_t extent : c.data->shape()) shape.push_back(integer_doc(extent));
    keywords.push_back({"shape", tuple_doc(shape)});
  }
  return call_doc(printer.relax("const"), args, keywords);
}

Doc GraphPrinter::constant(const Constant& c) {
  if (c.sinfo.as<DTensorInfo>()) {
    int64_t next = 0;
    return call_doc(printer.relax("dist.const"), {elements_doc(*c.data, 0, next), sinfo(c.sinfo)});
  }
  if (c.data->rank() == 0) return constant_doc(printer, c);
  return printer.metadata("relax.expr.Constant", ref(c));
}

// ---- Expressions ----

Doc GraphPrinter::global(const std::string& name) {
  if (!module || !module->functions.count(name)) return Doc(name);
  const std::string& alias = printer.options().module_alias;
  if (alias.empty() || !function_frame_) return attribute_doc(Doc(module_name), name);
  if (!std::exchange(alias_printed_, true)) function_frame_->stmts.push_back(assign_doc(Doc(alias), Doc(module_name)));
  return attribute_doc(Doc(alias), name);
}

Doc GraphPrinter::callee(const RExpr& e) {
  const ExternFunc* f = e.as<ExternFunc>();
  return f ? string_doc(f->name) : expr(e);
}

Doc GraphPrinter::expr(const RExpr& e) {
  auto of_name = [&](const char* name, Doc arg) { return call_doc(printer.relax(name), {std::move(arg)}); };
  Doc doc = match(
      e,
      [&](const RVar& v) { return variable(v); },
      [&](const GlobalVar& g) { return global(g.name); },
      [&](const Constant& c) { return constant(c); },
      [&](const Tuple& t) {
        std::vector<Doc> items;
        for (const RExpr& item : t.items) items.push_back(expr(item));
        return items.empty() ? call_doc(printer.relax("tuple"), {}) : tuple_doc(items);
      },
      [&](const TupleGetItem& t) { return index_doc(expr(t.tuple), {integer_doc(t.index)}); },
      [&](const ShapeExpr& s) { return of_name("shape", list_doc(extents(s.values))); },
      [&](const PrimValue& p) { return of_name("prim_value", known_value(p.value)); },
      [&](const RString& s) { return of_name("str", string_doc(s.value)); },
      [&](const DTypeImm& d) { return of_name("dtype", dtype_doc(d.value)); },
      [&](const Op& o) { return printer.relax(o.name); },
      [&](const ExternFunc& f) { return of_name("ExternFunc", string_doc(f.name)); },
      [&](const RCall& c) { return call(c); },
      [&](const SeqExpr& s) { return expr(s.body); },
      [&](const If& n) {
        std::vector<Doc> parts{expr(n.condition), expr(n.true_branch), expr(n.false_branch)};
        return call_doc(printer.relax("If"), parts);
      },
      [&](const LocalFunction&) { return printer.relax("function"); });
  return e.as<RVar>() ? doc : printer.marked(std::move(doc), *e);
}

Doc GraphPrinter::call_tir(const RCall& c, const std::string& op) {
  std::vector<Doc> args{callee(c.args[0]), expr(c.args[1])};
  std::vector<KeywordDoc> keywords;
  const char* const out_info = printer.is_head() ? "out_ty" : "out_sinfo";
  if (const TupleInfo* out = c.sinfo_args[0].as<TupleInfo>()) {
    std::vector<Doc> items;
    for (const StructInfo& item : out->items) items.push_back(sinfo(item));
    keywords.push_back({out_info, list_doc(items)});
  } else {
    keywords.push_back({out_info, sinfo(c.sinfo_args[0])});
  }
  for (const auto& [name, v] : c.attrs)
    keywords.push_back({name, op == "call_tir_inplace" ? op_attr(v, *this) : value(v)});
  if (c.args.size() > 2 && printer.is_head())
    sator::fail({.what = text("R.", op, " with tir_vars in the spelling of the newest TVM"),
                 .needs = "tensor programs that learn sizes from the shapes of their tensors",
                 .hint = "print it as v0.17 does"});
  if (c.args.size() > 2) keywords.push_back({"tir_vars", expr(c.args[2])});
  // TVM reads distributed results of call_tir under another name.
  const TupleInfo* several = c.sinfo_args[0].as<TupleInfo>();
  const StructInfo& first = several && !several->items.empty() ? several->items[0] : c.sinfo_args[0];
  const bool is_distributed = op == "call_tir" && first.as<DTensorInfo>();
  return call_doc(printer.relax(is_distributed ? "dist.call_tir" : op), args, keywords);
}

Doc GraphPrinter::call(const RCall& c) {
  const std::string& op = op_name(ref(c));
  if ((op.starts_with("call_tir") || op == "dist.call_tir_local_view" || op == "call_dps_packed") &&
      c.args.size() >= 2 && c.sinfo_args.size() == 1)
    return call_tir(c, op);
  std::vector<Doc> args;
  std::vector<KeywordDoc> keywords = op_attrs(c);
  const OpDef* def = find_op(op);
  // The text of a message stands last, by name; an input whose place in Python is another one, by name too.
  size_t format = op == "print" ? 0 : op == "assert_op" ? 1 : c.args.size();
  for (size_t i = 0; i < c.args.size(); ++i) {
    if (def && !def->positions.empty() && def->positions[i] != def->inputs[i].name)
      keywords.push_back({def->inputs[i].name, expr(c.args[i])});
    else if (i != format)
      args.push_back(i == 0 ? callee(c.args[i]) : expr(c.args[i]));
  }
  if (format < c.args.size()) return call_doc(printer.relax(op), args, {{"format", expr(c.args[format])}});
  if (!c.sinfo_args.empty()) {
    std::vector<Doc> infos;
    for (const StructInfo& s : c.sinfo_args) infos.push_back(sinfo(s));
    keywords.push_back({printer.is_head() ? "ty_args" : "sinfo_args", tuple_doc(infos)});
  }
  if (const ExternFunc* f = c.op.as<ExternFunc>()) {
    args.insert(args.begin(), string_doc(f->name));
    return call_doc(printer.relax("call_packed"), args, keywords);
  }
  return call_doc(expr(c.op), args, keywords);
}

// ---- Bindings ----

/// Hidden where the value tells it: always for call_tir and call_dps_packed.
std::optional<Doc> GraphPrinter::annotation(const RVar& v, const RExpr& value) {
  if (!v.sinfo) return {};
  const std::string& op = op_name(value);
  const bool is_program = op == "call_tir" || op == "call_dps_packed";
  // What the text of the value says: of these two, out_sinfo.
  const RCall* call = is_program ? value.as<RCall>() : nullptr;
  const bool says = call && call->sinfo_args.size() == 1;
  const StructInfo said = says ? call->sinfo_args[0] : value ? value->sinfo : nullptr;
  if ((!show_all_struct_info_ || is_program) && said && equal(said, v.sinfo)) {
    bool tells = value.as<Tuple>() || value.as<TupleGetItem>() || value.as<RVar>() || !op.empty();
    if (tells) return {};
  }
  return sinfo(v.sinfo);
}

namespace {
bool is_void_info(const StructInfo& s) {
  const TupleInfo* t = s.as<TupleInfo>();
  return t && t->items.empty();
}
}  // namespace

std::vector<StmtDoc> GraphPrinter::binding(const Binding& b) {
  if (const MatchCast* m = b.as<MatchCast>()) {
    std::optional<Doc> ann;
    if (show_all_struct_info_) ann = sinfo(m->var->sinfo);
    Doc value = expr(m->value);
    Doc rhs = call_doc(printer.relax("match_cast"), {value, sinfo(m->sinfo)});
    StmtDoc line = assign_doc(define(*m->var), rhs, ann);
    line.head = printer.marked(std::move(line.head), *m);
    return {std::move(line)};
  }
  const VarBinding& v = *b.as<VarBinding>();
  if (const If* n = v.value.as<If>()) return branch(*n, v.var.get());
  if (const LocalFunction* f = v.value.as<LocalFunction>()) {
    Doc name = define(*v.var);
    std::vector<StmtDoc> out = printer.header(), body = print_function(*f->function, name.text, true);
    out.insert(out.end(), body.begin(), body.end());
    return out;
  }
  if (printer.options().syntax_sugar && is_void_info(v.value->sinfo) && is_void_info(v.var->sinfo))
    return {line_doc(printer.marked(expr(v.value), v))};
  Doc rhs = expr(v.value);
  std::optional<Doc> ann = annotation(*v.var, v.value);
  StmtDoc line = assign_doc(define(*v.var), rhs, ann);
  line.head = printer.marked(std::move(line.head), v);
  return {std::move(line)};
}

std::vector<StmtDoc> GraphPrinter::block(const BindingBlock& b) {
  std::vector<StmtDoc> stmts;
  std::vector<Doc> outputs;
  for (const Binding& one : b.bindings) {
    for (StmtDoc& s : binding(one)) stmts.push_back(std::move(s));
    const VarBinding* v = one.as<VarBinding>();
    const RVar& var = v ? *v->var : *one.as<MatchCast>()->var;
    if (!var.is_dataflow && b.is_dataflow) outputs.push_back(variable(var));
  }
  if (!b.is_dataflow) return stmts;
  stmts.push_back(line_doc(call_doc(printer.relax("output"), outputs)));
  Doc head("with ");
  head += call_doc(printer.relax("dataflow"), {});
  return {compound_doc(printer.marked(std::move(head), b), std::move(stmts))};
}

std::vector<StmtDoc> GraphPrinter::seq(const SeqExpr& s, bool returns) {
  FrameScope frame(printer, &s);
  for (const BindingBlockRef& b : s.blocks) {
    std::vector<StmtDoc> stmts = block(*b);
    for (StmtDoc& stmt : stmts) frame->stmts.push_back(std::move(stmt));
  }
  Doc result = expr(s.body), line(returns ? "return " : "");
  line += result;
  frame->stmts.push_back(line_doc(std::move(line)));
  return std::move(frame->stmts);
}

std::vector<StmtDoc> GraphPrinter::branch(const If& n, const RVar* var) {
  std::optional<Doc> ann;
  if (var) ann = annotation(*var, ref(n));
  std::optional<Doc> target;
  if (var) target = define(*var);
  Doc head("if ");
  head += expr(n.condition);
  auto body = [&](const RExpr& branch) {
    // An error shows programs that are not well formed, too.
    const SeqExpr* s = branch.as<SeqExpr>();
    std::vector<StmtDoc> stmts = s ? seq(*s, false) : std::vector{line_doc(expr(branch))};
    if (target) stmts.back() = assign_doc(*target, stmts.back().head, ann);
    return stmts;
  };
  std::vector<StmtDoc> out;
  out.push_back(compound_doc(std::move(head), body(n.true_branch)));
  out.push_back(compound_doc(Doc("else"), body(n.false_branch)));
  return out;
}

}  // namespace sator::relax
