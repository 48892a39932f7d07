#include "ir/script/print_expr.h"

#include "ir/builtins.h"

namespace sator::script {

Doc dtype_doc(DType dtype) { return string_doc(dtype.is_void() ? "void" : dtype.name()); }

namespace {

std::string dtype_name(DType d) { return d.is_void() ? "void" : d.name(); }

/// Whether writing `a op b` gives back this very node when it is parsed, or constants would be folded or converted.
template <class T, class Fn>
bool survives(const T& node, Fn build) {
  if (node.a->dtype != node.b->dtype || node.a->dtype.is_handle()) return false;
  Expr again = build(node.a, node.b);
  const T* same = again.as<T>();
  return same && same->a == node.a && same->b == node.b;
}

}  // namespace

Doc ExprPrinter::print(const Expr& e) {
  if (!e) return Doc("None");
  Doc doc = print_unmarked(e);
  return e.as<Var>() ? doc : printer.marked(std::move(doc), *e);  // a variable is marked where it is defined
}

std::vector<Doc> ExprPrinter::list(const std::vector<Expr>& items) {
  std::vector<Doc> out;
  for (const Expr& item : items) out.push_back(print(item));
  return out;
}

Doc ExprPrinter::variable(const Var& v) {
  if (auto doc = printer.find(v)) return *doc;
  return undefined(v);
}

Doc ExprPrinter::buffer_name(const Buffer& b) {
  if (auto doc = printer.find(b)) return *doc;
  return undefined(b);
}

Doc ExprPrinter::undefined(const Var& v) { return printer.define(v, v.name, *printer.frames().front()); }
Doc ExprPrinter::undefined(const Buffer& b) {
  return printer.define(b, b.name.empty() ? "buffer" : b.name, *printer.frames().front());
}
Doc ExprPrinter::function(const std::string& name) { return Doc(name); }
Doc ExprPrinter::other(const NodeRef& node) { return printer.metadata(node->info().name, node); }

Doc ExprPrinter::immediate(const IntImm& i) {
  if (i.dtype.is_bool()) return call_doc(printer.tir("bool"), {boolean_doc(i.value)});
  Doc literal =
      i.dtype.is_uint() && i.dtype.bits == 64 ? Doc(text(static_cast<uint64_t>(i.value))) : integer_doc(i.value);
  if (i.dtype == i32 || (plain_integers && i.dtype.is_int())) return literal;
  return call_doc(printer.tir(dtype_name(i.dtype)), {literal});
}

Doc ExprPrinter::type(const Var& v) {
  if (v.dtype.is_handle() && (!v.pointee.is_void() || !v.scope.empty())) return creation(v);
  return printer.tir(dtype_name(v.dtype));
}

Doc ExprPrinter::creation(const Var& v) {
  std::vector<KeywordDoc> keywords;
  if (v.is_size) keywords.push_back({"is_size_var", boolean_doc(true)});
  std::vector<Doc> args;
  if (v.dtype.is_handle() && (!v.pointee.is_void() || !v.scope.empty())) {
    args.push_back(dtype_doc(v.pointee));
    if (!v.scope.empty()) args.push_back(string_doc(v.scope));
  }
  return call_doc(printer.tir(dtype_name(v.dtype)), args, keywords);
}

Doc ExprPrinter::access(const Buffer& buffer, const std::vector<Expr>& indices) {
  Doc base = buffer_name(buffer);
  std::vector<Doc> docs;
  for (const Expr& index : indices) {
    const Ramp* ramp = index.as<Ramp>();
    const IntImm* stride = ramp ? ramp->stride.as<IntImm>() : nullptr;
    // A slice stands for as many elements as it spans, so the step must be able to count them.
    if (!stride || stride->value <= 0 || printer.is_head() || (ramp->lanes.scalable && stride->value != 1) ||
        ramp->base->dtype.lanes != 1) {
      docs.push_back(print(index));
      continue;
    }
    Expr stop = ramp->base + (is_one(ramp->stride) ? lane_count(ramp->lanes, stride->dtype)
                                                   : lane_count(ramp->lanes, stride->dtype) * ramp->stride);
    std::optional<Doc> step;
    if (stride->value != 1) step = print(ramp->stride);
    docs.push_back(slice_doc(print(ramp->base), print(stop), step));
  }
  return index_doc(std::move(base), docs);
}

Doc ExprPrinter::predicated(const Buffer& buffer, const std::vector<Expr>& indices, const Expr& value,
                            const Expr& predicate) {
  std::vector<Doc> args = {list_doc(list(indices))};
  if (value) args.push_back(print(value));
  Doc method = attribute_doc(buffer_name(buffer), value ? "vstore" : "vload");
  return call_doc(std::move(method), args, {{"predicate", print(predicate)}});
}

Doc ExprPrinter::region(const Buffer& buffer, const std::vector<RangeRef>& ranges) {
  Doc base = buffer_name(buffer);
  std::vector<Doc> docs;
  for (const RangeRef& r : ranges) {
    if (is_one(r->extent))
      docs.push_back(print(r->min));
    else
      docs.push_back(slice_doc(print(r->min), print(r->min + r->extent)));
  }
  return index_doc(std::move(base), docs);
}

Doc ExprPrinter::call(const Call& c) {
  constexpr std::string_view kGlobal = "global:";
  if (c.op.starts_with(kGlobal)) return call_doc(function(c.op.substr(kGlobal.size())), list(c.args));
  const Builtin* row = find_builtin(c.op);
  std::string_view name = row ? row->script : std::string_view(c.op);
  if (!row && name.starts_with("tir.")) name.remove_prefix(4);
  ResultRule rule = row ? row->rule : ResultRule::written_first;
  std::vector<Doc> args;
  if (rule == ResultRule::written_first) args.push_back(dtype_doc(c.dtype));
  for (const Expr& a : c.args) args.push_back(print(a));
  if (rule == ResultRule::written_last) args.push_back(dtype_doc(c.dtype));
  std::vector<KeywordDoc> keywords;
  if ((name == "call_packed" || name == "call_cpacked") && c.dtype != row->dtype)
    keywords.push_back({"dtype", dtype_doc(c.dtype)});
  return call_doc(printer.tir(name), args, keywords);
}

Doc ExprPrinter::print_unmarked(const Expr& e) {
  auto call_of = [&](std::string_view name, std::vector<Doc> args) { return call_doc(printer.tir(name), args); };
  // The operator where it means this node, else the function of the node's name.
  auto infix = [&](const auto& n, std::string_view op, Precedence level, std::string_view name, bool as_operator) {
    Doc a = print(n.a), b = print(n.b);
    return as_operator ? binary_doc(op, level, a, b) : call_of(name, {std::move(a), std::move(b)});
  };
  // Comparisons and logic are not folded by the parser, but two constants would be by Python itself.
  auto keeps = [](const auto& n) {
    bool constants = (n.a.template as<IntImm>() || n.a.template as<FloatImm>()) &&
                     (n.b.template as<IntImm>() || n.b.template as<FloatImm>());
    return !constants && n.a->dtype == n.b->dtype;
  };
  // On vectors `and` means the bitwise operation.
  auto keeps_logic = [](const auto& n) {
    return n.dtype.lanes == 1 && !n.a.template as<IntImm>() && !n.b.template as<IntImm>();
  };
  auto divides = [](const auto& n) { return !is_zero(n.b) && n.a->dtype.is_integer(); };
  using enum Precedence;
  return match(
      e,
      [&](const Var& n) { return variable(n); },
      [&](const IntImm& n) { return immediate(n); },
      [&](const FloatImm& n) {
        Doc value = real_doc(n.value);
        if (printer.is_head() && value.text.find_first_not_of("-0123456789") == std::string::npos) value += ".0";
        return call_of(dtype_name(n.dtype), {value});
      },
      [&](const StringImm& n) { return string_doc(n.value); },
      [&](const Add& n) { return infix(n, "+", sum, "Add", survives(n, [](Expr a, Expr b) { return a + b; })); },
      [&](const Sub& n) { return infix(n, "-", sum, "Sub", survives(n, [](Expr a, Expr b) { return a - b; })); },
      [&](const Mul& n) { return infix(n, "*", product, "Mul", survives(n, [](Expr a, Expr b) { return a * b; })); },
      [&](const Div& n) {
        const FloatImm* divisor = n.b.as<FloatImm>();
        bool as_operator = n.a->dtype.is_float() && !(divisor && divisor->value == 0) &&
                           survives(n, [](Expr a, Expr b) { return div(a, b); });
        return infix(n, "/", product, "Div", as_operator);
      },
      [&](const Mod& n) { return call_of("truncmod", {print(n.a), print(n.b)}); },
      [&](const FloorDiv& n) {
        return infix(
            n, "//", product, "FloorDiv", divides(n) && survives(n, [](Expr a, Expr b) { return floordiv(a, b); }));
      },
      [&](const FloorMod& n) {
        return infix(
            n, "%", product, "FloorMod", divides(n) && survives(n, [](Expr a, Expr b) { return floormod(a, b); }));
      },
      [&](const Min& n) {
        bool folds = !survives(n, [](Expr a, Expr b) { return min(a, b); });
        return call_of(folds ? "Min" : "min", {print(n.a), print(n.b)});
      },
      [&](const Max& n) {
        bool folds = !survives(n, [](Expr a, Expr b) { return max(a, b); });
        return call_of(folds ? "Max" : "max", {print(n.a), print(n.b)});
      },
      [&](const EQ& n) { return infix(n, "==", comparison, "EQ", keeps(n)); },
      [&](const NE& n) { return infix(n, "!=", comparison, "NE", keeps(n)); },
      [&](const LT& n) { return infix(n, "<", comparison, "LT", keeps(n)); },
      [&](const LE& n) { return infix(n, "<=", comparison, "LE", keeps(n)); },
      [&](const GT& n) { return infix(n, ">", comparison, "GT", keeps(n)); },
      [&](const GE& n) { return infix(n, ">=", comparison, "GE", keeps(n)); },
      [&](const And& n) { return infix(n, "and", logical_and, "And", keeps_logic(n)); },
      [&](const Or& n) { return infix(n, "or", logical_or, "Or", keeps_logic(n)); },
      [&](const Not& n) {
        Doc a = print(n.a);
        return n.a.as<IntImm>() ? call_of("Not", {a}) : unary_doc("not ", logical_not, a);
      },
      [&](const Select& n) {
        return call_of("Select", {print(n.condition), print(n.true_value), print(n.false_value)});
      },
      [&](const Cast& n) { return call_of("Cast", {dtype_doc(n.dtype), print(n.value)}); },
      [&](const BufferLoad& n) { return access(*n.buffer, n.indices); },
      [&](const Call& n) {
        auto [load, predicate] = as_predicated_load(n);
        return load ? predicated(*load->buffer, load->indices, nullptr, predicate) : call(n);
      },
      [&](const Let& n) {
        Doc var = variable(*n.var);
        Doc val = print(n.value);
        return call_doc(printer.tir("Let"), {print(n.body)}, {{"where", dict_doc({{var, val}})}});
      },
      [&](const Ramp& n) { return call_of("Ramp", {print(n.base), print(n.stride), print(lane_count(n.lanes))}); },
      [&](const Broadcast& n) { return call_of("Broadcast", {print(n.value), print(lane_count(n.lanes))}); },
      [&](const Shuffle& n) { return call_of("Shuffle", {list_doc(list(n.vectors)), list_doc(list(n.indices))}); });
}

Doc ExprPrinter::value(const NodeRef& node) {
  if (!node) return Doc("None");
  if (const auto* e = node.as<ExprNode>()) return print(ref(*e));
  if (const Array* a = node.as<Array>()) {
    std::vector<Doc> items;
    for (const NodeRef& item : a->items) items.push_back(value(item));
    return list_doc(items);
  }
  if (const Dict* d = node.as<Dict>()) return dict(d->items);
  if (const Range* r = node.as<Range>())
    return call_doc(printer.tir("Range"), {print(r->min), print(r->min + r->extent)});
  if (const Buffer* b = node.as<Buffer>()) return buffer_name(*b);
  return other(node);
}

Doc ExprPrinter::dict(const Attrs& attrs) {
  std::vector<std::pair<Doc, Doc>> items;
  for (const auto& [key, v] : attrs) {
    const IntImm* flag = printer.is_head() ? v.as<IntImm>() : nullptr;
    const bool is_tir = printer.is_head() && key.starts_with("tir.");
    items.emplace_back(string_doc(is_tir ? "tirx." + key.substr(4) : key),
                       flag && flag->dtype.is_bool() ? boolean_doc(flag->value != 0) : value(v));
  }
  return dict_doc(items);
}

}  // namespace sator::script

namespace sator {

void append_text(std::string& out, const ExprNode& e) {
  script::Printer printer;
  script::FrameScope frame(printer, nullptr);
  out += script::ExprPrinter(printer).print(ref(e)).text;
}
void append_text(std::string& out, const Buffer& buffer) { out += buffer.name; }
void append_text(std::string& out, const Range& range) {
  append_text(out, *range.min);
  out += ":";
  append_text(out, *(range.min + range.extent));
}

}  // namespace sator
