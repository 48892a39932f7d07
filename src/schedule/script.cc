#include "schedule/script.h"

#include <algorithm>
#include <utility>

#include "schedule/convert.h"

namespace sator::schedule {

using script::Expression;
using script::ExpressionKind;
using script::Statement;
using script::StatementKind;

namespace {

/// "sch.split" and "split" both mean the primitive split.
std::string primitive_name(const Expression& callee) {
  std::string name = script::dotted_name(callee);
  if (size_t dot = name.rfind('.'); dot != std::string::npos) name = name.substr(dot + 1);
  return name;
}

}  // namespace

void Script::refuse(const Expression& e, std::string what, std::string hint) const {
  Reason reason{.what = std::move(what),
                .needs = "calls of primitives, names, numbers, strings, lists, lambdas",
                .hint = std::move(hint)};
  if (source_) source_->fail(e.place, std::move(reason));
  fail(std::move(reason));
}

void Script::run(const std::string& text) { run(script::parse(text)); }

void Script::run(const script::Program& program) {
  source_ = program.source;
  run_lines(program.body);
}

void Script::run_lines(const std::vector<Statement>& lines) {
  for (const Statement& line : lines) {
    switch (line.kind) {
      case StatementKind::expression: evaluate(line.value); break;
      case StatementKind::assign: {
        Value value = evaluate(line.value);
        for (const Expression& target : line.targets) assign(target, value);
        break;
      }
      case StatementKind::pass: break;
      // `from tvm import tir`, as TVM prints traces.
      case StatementKind::import: require_own(line); break;
      // `def apply_trace(sch):`, as TVM prints traces.
      case StatementKind::function:
        if (line.decorators.empty()) {
          run_lines(line.body);
          break;
        }
        [[fallthrough]];
      default:
        source_->fail(line.place,
                      {.what = "a schedule script has only calls and assignments",
                       .needs = "one primitive per line",
                       .hint = "unroll loops by hand"});
    }
  }
}

void Script::require_own(const Statement& import) const {
  std::string module = import.text;
  for (const script::Parameter& p : import.params) {
    if (import.text.empty()) module = p.annotation.text;
    if (const std::string root = module.substr(0, module.find('.')); root != "tvm" && root != "sator") break;
    module.clear();
  }
  if (module.empty()) return;
  source_->fail(import.place,
                {.what = text("a schedule script imports ", module),
                 .needs = "calls of primitives; no Python runs",
                 .hint = "leave the line out, or take the steps of a sator.tir.Schedule in a Python program"});
}

void Script::assign(const Expression& target, const Value& value) {
  if (target.is(ExpressionKind::name)) {
    names_[target.text] = value;
    return;
  }
  if (!target.is(ExpressionKind::tuple) && !target.is(ExpressionKind::list))
    refuse(target, "only names can be assigned to", "write `a, b = ...`");
  const List* list = value.get_if<List>();
  size_t star = target.items.size();
  for (size_t i = 0; i < target.items.size(); ++i) {
    if (target.items[i].is(ExpressionKind::star)) star = i;
  }
  bool fits = list && (star < target.items.size() ? list->size() + 1 >= target.items.size()
                                                  : list->size() == target.items.size());
  if (!fits)
    refuse(target, text(target.items.size(), " names for ", list ? list->size() : 1, " values"), "name each value");
  size_t from = 0;
  for (size_t i = 0; i < target.items.size(); ++i) {
    if (i == star) {
      size_t count = list->size() + 1 - target.items.size();
      assign(target.items[i].items[0],
             List(list->begin() + static_cast<std::ptrdiff_t>(from),
                  list->begin() + static_cast<std::ptrdiff_t>(from + count)));
      from += count;
    } else {
      assign(target.items[i], (*list)[from++]);
    }
  }
}

Value Script::look_up(const Expression& e) {
  if (auto at = names_.find(e.text); at != names_.end()) return at->second;
  const Sites& sites = s_.sites();
  std::vector<std::string> known;
  for (int i = 0; i < sites.count(); ++i) {
    if (const tir::For* loop = sites[i].loop()) {
      if (loop->var->name == e.text) return loop->var;
      known.push_back(loop->var->name);
    }
  }
  for (const auto& [name, value] : names_) known.push_back(name);
  refuse(e, text("nothing is called ", e.text), text("the nearest are: ", join(nearest_names(e.text, known), ", ")));
}

Value Script::evaluate(const Expression& e) {
  switch (e.kind) {
    case ExpressionKind::name: return look_up(e);
    case ExpressionKind::integer: return e.integer;
    case ExpressionKind::real: return e.real;
    case ExpressionKind::string: return e.text;
    case ExpressionKind::none: return {};
    case ExpressionKind::boolean: return e.integer != 0;
    case ExpressionKind::tuple:
    case ExpressionKind::list: {
      List list;
      for (const Expression& item : e.items) {
        if (item.is(ExpressionKind::star)) {
          Value spread = evaluate(item.items[0]);
          const List* inner = spread.get_if<List>();
          if (!inner) refuse(item, "* needs a list", "leave the star out");
          list.insert(list.end(), inner->begin(), inner->end());
        } else {
          list.push_back(evaluate(item));
        }
      }
      return list;
    }
    case ExpressionKind::subscript: return element(evaluate(e.items[0]), e.items[1]);
    case ExpressionKind::unary: {
      Value v = evaluate(e.items[0]);
      if (e.text == "-") return arithmetic("-", Value(int64_t{0}), v);
      if (e.text == "+") return v;
      refuse(e, text(e.text, " is not known here"), "use + or -");
    }
    case ExpressionKind::binary: return arithmetic(e.text, evaluate(e.items[0]), evaluate(e.items[1]));
    case ExpressionKind::lambda: return index_map(e);
    case ExpressionKind::call: return apply_in_place(e);
    default: refuse(e, "this expression means nothing in a schedule", "see docs/schedule.md for what does");
  }
}

Value Script::element(const Value& of, const Expression& index) {
  const List* list = of.get_if<List>();
  if (!list) refuse(index, "only lists have elements", "get_loops and split return lists");
  auto n = static_cast<int64_t>(list->size());
  if (index.is(ExpressionKind::slice)) {
    auto bound = [&](const Expression& b, int64_t fallback) {
      if (!b.present()) return fallback;
      int64_t v = value_to_int(evaluate(b), "index");
      return std::clamp(v < 0 ? v + n : v, int64_t{0}, n);
    };
    int64_t from = bound(index.items[0], 0), to = bound(index.items[1], n);
    return from < to ? List(list->begin() + from, list->begin() + to) : List{};
  }
  int64_t i = value_to_int(evaluate(index), "index");
  if (i < 0) i += n;
  if (i < 0 || i >= n) refuse(index, text("there is no element ", i, " in a list of ", n), "count from 0, or from -1");
  return (*list)[static_cast<size_t>(i)];
}

Value Script::arithmetic(const std::string& op, const Value& a, const Value& b) {
  if (op == "+" && a.get_if<List>() && b.get_if<List>()) {
    List joined = *a.get_if<List>();
    joined.insert(joined.end(), b.get_if<List>()->begin(), b.get_if<List>()->end());
    return joined;
  }
  Expr x = value_to_expr(a, "left side"), y = value_to_expr(b, "right side"), z;
  if (op == "+")
    z = x + y;
  else if (op == "-")
    z = x - y;
  else if (op == "*")
    z = x * y;
  else if (op == "//")
    z = floordiv(x, y);
  else if (op == "%")
    z = floormod(x, y);
  else
    fail({.what = text("the operator ", op, " is not known here"),
          .needs = "+ - * // %",
          .hint = "index maps are quasi-affine"});
  return to_value(z);
}

Value Script::index_map(const Expression& lambda) {
  std::map<std::string, Value> outer = names_;
  std::vector<VarRef> inputs;
  for (const std::string& name : lambda.names) {
    inputs.push_back(make_var(name));
    names_[name] = Expr(inputs.back());
  }
  Value body = evaluate(lambda.items[0]);
  names_ = std::move(outer);
  std::vector<Expr> outputs;
  if (const List* list = body.get_if<List>()) {
    for (const Value& v : *list) outputs.push_back(value_to_expr(v, "index map"));
  } else {
    outputs.push_back(value_to_expr(body, "index map"));
  }
  return Ref<const arith::IndexMap>(make<arith::IndexMap>(std::move(inputs), std::move(outputs), nullptr));
}

Value Script::apply_in_place(const Expression& call) {
  try {
    return apply(call);
  } catch (const script::SourceError&) {
    throw;
  } catch (const Error& e) {
    if (!source_ || source_->name().empty()) throw;
    source_->fail(call.place, e.reason);
  }
}

Value Script::apply(const Expression& call) {
  // T.int64(32) is the number: index maps take the dtype of the shape that they are for.
  const std::string callee = script::dotted_name(call.items[0]);
  if (callee.starts_with("T.") && DType::parse(callee.substr(2)) && call.items.size() == 2)
    return evaluate(call.items[1]);
  List positional;
  for (size_t i = 1; i < call.items.size(); ++i) {
    if (call.items[i].is(ExpressionKind::star)) {
      Value spread = evaluate(call.items[i].items[0]);
      const List* list = spread.get_if<List>();
      if (!list) refuse(call.items[i], "* needs a list", "leave the star out");
      positional.insert(positional.end(), list->begin(), list->end());
    } else {
      positional.push_back(evaluate(call.items[i]));
    }
  }
  std::vector<std::pair<std::string, Value>> keywords;
  for (const script::Keyword& k : call.keywords) keywords.emplace_back(k.name, evaluate(k.value));
  if (primitive_name(call.items[0]) == "work_on") {
    if (positional.size() + keywords.size() != 1) refuse(call, "work_on takes one name", "work_on(\"main\")");
    s_.work_on(value_to_string(positional.empty() ? keywords[0].second : positional[0], "func_name"));
    return {};
  }
  return this->call(primitive_name(call.items[0]), std::move(positional), std::move(keywords));
}

Value Script::call(const std::string& name, List positional, std::vector<std::pair<std::string, Value>> keywords) {
  const AnyPrimitive& primitive = primitive_named(name);
  const bool by_name = std::ranges::any_of(keywords, [](const auto& k) { return k.first == "loops"; });
  const bool takes_loops = !primitive.parameters.empty() && primitive.parameters.front().name == "loops";
  if (takes_loops && !by_name && !(positional.size() == 1 && positional[0].get_if<List>())) {
    List loops = std::exchange(positional, {});
    positional.emplace_back(std::move(loops));
  }
  return primitive.invoke(s_, primitive.bind(std::move(positional), std::move(keywords)));
}

}  // namespace sator::schedule
