#include "engine/jinja/template.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "engine/jinja/builtins.h"

namespace sator::jinja {

namespace {

constexpr int64_t kMaxSteps = 10'000'000;
constexpr int kMaxCalls = 200;
constexpr int kMaxDepth = 1000;

/// Names of one part of the template, in front of those around it.
struct Scope {
  std::shared_ptr<Scope> around;
  std::map<std::string, Value> names;

  const Value* find(const std::string& name) const {
    for (const Scope* s = this; s; s = s->around.get())
      if (auto at = s->names.find(name); at != s->names.end()) return &at->second;
    return nullptr;
  }
};
using ScopeRef = std::shared_ptr<Scope>;

enum class Leave { none, loop, round };  // what break and continue leave

Value called_raise(Arguments& a) {
  Taking t("raise_exception", a);
  fail({.what = text("the template refuses: ", to_text(t.need("message"))),
        .needs = "a conversation as the template wants it"});
}

Value called_strftime(Arguments& a) {
  Taking t("strftime_now", a);
  const std::string format = to_text(t.need("format"));
  t.end();
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char buffer[512];
  return std::string(buffer, std::strftime(buffer, sizeof buffer, format.c_str(), &parts));
}

Value called_range(Arguments& a) {
  Taking t("range", a);
  int64_t from = 0, to = t.integer_or("stop", 0), step = 1;
  if (a.positional.size() > 1) from = to, to = t.integer_or("stop", 0), step = t.integer_or("step", 1);
  t.end();
  if (step == 0) fail({.what = "a range has steps of 0", .needs = "other steps"});
  const double count = (static_cast<double>(to) - static_cast<double>(from)) / static_cast<double>(step);
  require_items(count > 0 ? static_cast<size_t>(std::min(count, 1e9)) : 0);
  List out;
  for (int64_t i = from; step > 0 ? i < to : i > to; i += step) out.emplace_back(i);
  return out;
}

Value called_namespace(Arguments& a) {
  auto made = std::make_shared<Object>(Object{"namespace", {}});
  for (const Value& from : a.positional) {
    if (!from.dict())
      fail({.what = text("a namespace is made of a ", from.type()), .needs = "a dictionary or named values"});
    for (const auto& [name, value] : *from.dict()) made->members[to_text(name)] = value;
  }
  for (const auto& [name, value] : a.named) made->members[name] = value;
  return made;
}

Value called_dict(Arguments& a) {
  Dict out;
  auto put = [&](const Value& name, const Value& value) {
    auto at = std::ranges::find(out, name, &std::pair<Value, Value>::first);
    if (at == out.end())
      out.emplace_back(name, value);
    else
      at->second = value;
  };
  if (!a.positional.empty() && a.positional[0].dict()) {
    out = *a.positional[0].dict();
  } else if (!a.positional.empty()) {
    for (const Value& pair : elements_of(a.positional[0])) {
      const auto parts = elements_of(pair);
      if (parts.size() != 2)
        fail({.what = text("dict is given ", parts.size(), " values in place of a pair"),
              .needs = "a dictionary, or pairs of a name and a value"});
      put(parts[0], parts[1]);
    }
  }
  for (const auto& [name, value] : a.named) put(Value(name), value);
  return out;
}

class Interpreter {
 public:
  explicit Interpreter(const std::string& name) : name_(name) {}

  std::string run(const Stmt::Body& body, const nlohmann::ordered_json& variables) {
    globals_ = std::make_shared<Scope>();
    auto global = [&](const char* name, Value (*call)(Arguments&)) { globals_->names[name] = Function{name, call}; };
    global("raise_exception", called_raise);
    global("strftime_now", called_strftime);
    global("range", called_range);
    global("namespace", called_namespace);
    global("dict", called_dict);
    for (const auto& [name, value] : variables.items()) globals_->names[name] = Value::of(value);
    std::string out;
    try {
      statements(body, std::make_shared<Scope>(Scope{globals_, {}}), out);
    } catch (Error& e) {
      fail_at(name_, place_, e.reason.what, e.reason.needs, e.reason.hint);
    }
    return out;
  }

 private:
  void step(Place place) {
    place_ = place;
    if (++steps_ > kMaxSteps)
      fail({.what = text("the template takes more than ", kMaxSteps, " steps"), .needs = "a template that ends"});
  }
  void write(std::string& out, const std::string& piece) {
    out += piece;
    require_text_size(out.size());
  }

  Leave statements(const Stmt::Body& body, const ScopeRef& scope, std::string& out) {
    for (const Stmt& s : body)
      if (const Leave left = statement(s, scope, out); left != Leave::none) return left;
    return Leave::none;
  }

  Leave statement(const Stmt& s, const ScopeRef& scope, std::string& out) {
    step(s.place);
    const Deeper deeper(depth_);
    switch (s.kind) {
      case StmtKind::text: write(out, s.text); break;
      case StmtKind::output: write(out, to_text(value(s.exprs[0], scope))); break;
      case StmtKind::branch:
        for (size_t i = 0; i < s.exprs.size(); ++i)
          if (value(s.exprs[i], scope).is_true()) return statements(s.bodies[i], scope, out);
        if (s.bodies.size() > s.exprs.size()) return statements(s.bodies.back(), scope, out);
        break;
      case StmtKind::loop: loop(s, scope, value(s.exprs[0], scope), 1, out); break;
      case StmtKind::assign: assign(s.names, value(s.exprs[0], scope), *scope); break;
      case StmtKind::capture: assign(s.names, captured(s, scope), *scope); break;
      case StmtKind::macro: scope->names[s.name] = macro(s, scope, s.name); break;
      case StmtKind::call: call_block(s, scope, out); break;
      case StmtKind::filtered: write(out, to_text(captured(s, scope))); break;
      case StmtKind::scope: {
        const ScopeRef inner = inside(scope);
        for (size_t i = 0; i < s.names.size(); ++i) inner->names[s.names[i]] = value(s.exprs[i], scope);
        return statements(s.bodies[0], inner, out);
      }
      case StmtKind::leave: return s.name == "break" ? Leave::loop : Leave::round;
    }
    return Leave::none;
  }

  static ScopeRef inside(const ScopeRef& scope) { return std::make_shared<Scope>(Scope{scope, {}}); }

  void assign(const std::vector<std::string>& names, const Value& v, Scope& scope) {
    if (names.size() == 1) return set(names[0], v, scope);
    const List items = elements_of(v);
    if (items.size() != names.size())
      fail({.what = text(items.size(), " values for ", names.size(), " names"), .needs = "one for each"});
    for (size_t i = 0; i < names.size(); ++i) set(names[i], items[i], scope);
  }
  void set(const std::string& name, const Value& v, Scope& scope) {
    const size_t dot = name.find('.');
    if (dot == name.npos) {
      scope.names[name] = v;
      return;
    }
    const Value* of = scope.find(name.substr(0, dot));
    Object* object = of ? of->object() : nullptr;
    if (!object || object->type != "namespace")
      fail({.what = text(name, " is set, and ", name.substr(0, dot), " is no namespace"),
            .needs = "a namespace, whose members may be set"});
    object->members[name.substr(dot + 1)] = v;
  }

  Value captured(const Stmt& s, const ScopeRef& scope) {
    std::string made;
    const ScopeRef inner = inside(scope);
    statements(s.bodies[0], inner, made);
    inner->names[kCaptured] = made;
    return value(s.exprs[0], inner);
  }

  void loop(const Stmt& s, const ScopeRef& scope, const Value& over, int64_t depth, std::string& out) {
    const Calls calls(*this);
    List items = elements_of(over);
    if (s.exprs.size() > 1)
      std::erase_if(items, [&](const Value& item) {
        const ScopeRef inner = inside(scope);
        assign(s.names, item, *inner);
        return !value(s.exprs[1], inner).is_true();
      });
    if (items.empty()) {
      if (s.bodies.size() > 1) statements(s.bodies[1], inside(scope), out);
      return;
    }
    const auto state = std::make_shared<Object>(Object{"loop", {}});
    const auto size = std::ssize(items);
    auto& of = state->members;
    of["length"] = size;
    of["depth"] = depth, of["depth0"] = depth - 1;
    const auto number = std::make_shared<int64_t>(0);
    of["cycle"] = Function{"cycle", [number](Arguments& a) {
                             if (a.positional.empty())
                               fail({.what = "loop.cycle is called without values", .needs = "one or more"});
                             return a.positional[static_cast<size_t>(*number) % a.positional.size()];
                           }};
    const auto before = std::make_shared<std::optional<List>>();
    of["changed"] = Function{"changed", [before](Arguments& a) {
                               const bool same = *before && **before == a.positional;
                               *before = a.positional;
                               return Value(!same);
                             }};
    Value recurse;
    if (s.recursive)
      recurse = Function{"loop", [&](Arguments& a) {
                           std::string made;
                           Taking t("loop", a);
                           loop(s, scope, t.need("iterable"), depth + 1, made);
                           return Value(made);
                         }};
    for (int64_t i = 0; i < size; ++i) {
      const auto at = static_cast<size_t>(i);
      *number = i;
      of["index"] = i + 1, of["index0"] = i, of["revindex"] = size - i, of["revindex0"] = size - i - 1;
      of["first"] = i == 0, of["last"] = i + 1 == size;
      of["previtem"] = i > 0 ? items[at - 1] : Value(Undefined{"loop.previtem"});
      of["nextitem"] = i + 1 < size ? items[at + 1] : Value(Undefined{"loop.nextitem"});
      const ScopeRef inner = inside(scope);
      inner->names["loop"] = state;
      if (s.recursive) of["__call__"] = recurse;
      assign(s.names, items[at], *inner);
      if (statements(s.bodies[0], inner, out) == Leave::loop) break;
    }
    of.erase("__call__");
  }

  struct Calls {
    explicit Calls(Interpreter& i) : interpreter(i) {
      if (++i.calls_ > kMaxCalls) {
        --i.calls_;
        fail({.what = "macros or loops call each other too deeply", .needs = text("at most ", kMaxCalls, " levels")});
      }
    }
    ~Calls() { --interpreter.calls_; }
    Interpreter& interpreter;
  };

  /// A macro, or the body of a call block. It sees the names around it as they are when it is called. A macro holds no reference to
  /// the scope that holds it: scopes outlive the macros that are called in them.
  Value macro(const Stmt& s, const ScopeRef& scope, const std::string& name) {
    return Function{
        name, [this, &s, weak = std::weak_ptr<Scope>(scope), name](Arguments& a) {
          const Calls calls(*this);
          const ScopeRef around = weak.lock();
          if (!around)
            fail({.what = text(name, " is called where it is not defined any more"), .needs = "a macro of this part"});
          const ScopeRef inner = inside(around);
          Taking t(name, a);
          for (const Stmt::Parameter& p : s.parameters) {
            const Value* given = t.take(p.name);
            inner->names[p.name] = given ? *given : p.otherwise ? value(*p.otherwise, inner) : Value(Undefined{p.name});
          }
          if (const Value* given = t.take_named("caller")) inner->names["caller"] = *given;
          if (s.reads_varargs) inner->names["varargs"] = Value(t.rest());
          if (s.reads_kwargs) inner->names["kwargs"] = Value(t.rest_named());
          t.end();
          std::string made;
          statements(s.bodies[0], inner, made);
          return Value(made);
        }};
  }

  void call_block(const Stmt& s, const ScopeRef& scope, std::string& out) {
    const Expr& call = s.exprs[0];
    const ScopeRef inner = inside(scope);
    Arguments a = arguments(call, inner);
    a.named.emplace_back("caller", macro(s, inner, "caller"));
    write(out, to_text(called(value(call.parts[0], inner), a, call)));
  }

  Arguments arguments(const Expr& e, const ScopeRef& scope) {
    Arguments a;
    for (const Expr::Argument& given : e.arguments) {
      if (given.name.empty())
        a.positional.push_back(value(*given.value, scope));
      else
        a.named.emplace_back(given.name, value(*given.value, scope));
    }
    return a;
  }

  Value called(const Value& callee, Arguments& a, const Expr& e) {
    place_ = e.place;
    const Function* f = callee.function();
    if (const Object* o = callee.object(); o && !f)
      if (auto at = o->members.find("__call__"); at != o->members.end()) f = at->second.function();
    if (f) return f->call(a);
    const Expr& of = e.parts[0];
    const std::string name = of.name.empty() ? "what is called" : of.name;
    fail({.what = text(name, " is ", callee.is_undefined() ? "undefined" : "a " + callee.type(), ", and is called"),
          .needs = "a macro, a function or a method of the value"});
  }

  struct Deeper {
    explicit Deeper(int& depth) : depth(depth) {
      if (++depth <= kMaxDepth) return;
      --depth;
      fail({.what = "calls and expressions nest too deeply", .needs = text("at most ", kMaxDepth, " levels")});
    }
    ~Deeper() { --depth; }
    int& depth;
  };

  Value value(const Expr& e, const ScopeRef& scope) {
    step(e.place);
    const Deeper deeper(depth_);
    auto part = [&](size_t i) { return value(e.parts[i], scope); };
    switch (e.kind) {
      case ExprKind::constant: return e.value;
      case ExprKind::name: {
        const Value* found = scope->find(e.name);
        return found ? *found : Value(Undefined{e.name});
      }
      case ExprKind::list:
      case ExprKind::tuple: {
        Sequence out{{}, e.kind == ExprKind::tuple};
        for (size_t i = 0; i < e.parts.size(); ++i) out.items.push_back(part(i));
        return out;
      }
      case ExprKind::dict: {
        Dict out;
        for (size_t i = 0; i < e.parts.size(); i += 2) {
          const Value key = part(i), own = part(i + 1);
          auto at = std::ranges::find(out, key, &std::pair<Value, Value>::first);
          if (at == out.end())
            out.emplace_back(key, own);
          else
            at->second = own;
        }
        return out;
      }
      case ExprKind::attribute: {
        const Value of = part(0);
        place_ = e.place;
        return attribute_of(of, e.name);
      }
      case ExprKind::item: {
        const Value of = part(0), key = part(1);
        place_ = e.place;
        return item_of(of, key);
      }
      case ExprKind::slice: return slice(part(0), {part(1), part(2), part(3)}, e.place);
      case ExprKind::call: {
        Value callee = part(0);
        Arguments a = arguments(e, scope);
        return called(callee, a, e);
      }
      case ExprKind::filter: {
        const Value of = part(0);
        Arguments a = arguments(e, scope);
        place_ = e.place;
        return filtered(e.name, of, a);
      }
      case ExprKind::test: {
        const Value of = part(0);
        Arguments a = arguments(e, scope);
        place_ = e.place;
        return tested(e.name, of, a);
      }
      case ExprKind::unary: return unary(e, part(0));
      case ExprKind::binary: {
        Value left = part(0);
        if (e.name == "and") return left.is_true() ? part(1) : left;
        if (e.name == "or") return left.is_true() ? left : part(1);
        const Value right = part(1);
        place_ = e.place;
        return binary(e.name, left, right);
      }
      case ExprKind::comparison: {
        Value left = part(0);
        for (size_t i = 0; i < e.names.size(); ++i) {
          Value right = part(i + 1);
          place_ = e.place;
          if (!holds(e.names[i], left, right)) return false;
          left = right;
        }
        return true;
      }
      case ExprKind::conditional:
        if (part(1).is_true()) return part(0);
        return e.parts.size() > 2 ? part(2) : Value(Undefined{"the value of an if without else"});
    }
    internal_error("an expression without a meaning");
  }

  static Value unary(const Expr& e, const Value& v) {
    if (e.name == "not") return !v.is_true();
    if (!v.is_number()) fail({.what = text("the sign of a ", v.type()), .needs = "a number"});
    const bool minus = e.name == "-";
    if (v.is_float()) return minus ? -v.number() : v.number();
    return minus ? -v.integer() : v.integer();
  }

  static bool holds(const std::string& op, const Value& a, const Value& b) {
    if (op == "==") return a == b;
    if (op == "!=") return !(a == b);
    if (op == "in") return contains(b, a);
    if (op == "not in") return !contains(b, a);
    if (op == "<") return less(a, b);
    if (op == ">") return less(b, a);
    return op == "<=" ? !less(b, a) : !less(a, b);
  }

  [[noreturn]] static void fail_operands(const std::string& op, const Value& a, const Value& b) {
    auto name = [](const Value& v) {
      return v.undefined() ? text(v.undefined()->name, " (undefined)") : "a " + v.type();
    };
    fail({.what = text("the operator ", op, " between ", name(a), " and ", name(b)), .needs = "values of one kind"});
  }

  static Value repeated(const Value& v, int64_t times) {
    times = std::max<int64_t>(times, 0);
    if (v.string()) {
      if (!v.string()->empty() && static_cast<size_t>(times) > kMaxText / v.string()->size())
        require_text_size(kMaxText + 1);
      std::string out;
      for (int64_t i = 0; i < times; ++i) out += *v.string();
      return out;
    }
    if (!v.list()->empty() && static_cast<size_t>(times) > kMaxItems / v.list()->size()) require_items(kMaxItems + 1);
    List out;
    for (int64_t i = 0; i < times; ++i) out.insert(out.end(), v.list()->begin(), v.list()->end());
    return out;
  }

  static Value binary(const std::string& op, const Value& a, const Value& b) {
    if (op == "~") {
      std::string out = to_text(a) + to_text(b);
      require_text_size(out.size());
      return out;
    }
    if (op == "+" && a.string() && b.string()) {
      require_text_size(a.string()->size() + b.string()->size());
      return *a.string() + *b.string();
    }
    if (op == "+" && a.list() && b.list() && a.is_tuple() == b.is_tuple()) {
      Sequence out{*a.list(), a.is_tuple()};
      require_items(out.items.size() + b.list()->size());
      out.items.insert(out.items.end(), b.list()->begin(), b.list()->end());
      return out;
    }
    if (op == "*" && (a.string() || a.list()) && b.is_integral()) return repeated(a, b.integer());
    if (op == "*" && (b.string() || b.list()) && a.is_integral()) return repeated(b, a.integer());
    if (!a.is_number() || !b.is_number()) fail_operands(op, a, b);
    if ((op == "/" || op == "//" || op == "%") && b.number() == 0)
      fail({.what = "a division by 0", .needs = "another divisor"});
    if (op == "/") return a.number() / b.number();
    if (a.is_integral() && b.is_integral()) return of_integers(op, a.integer(), b.integer());
    const double x = a.number(), y = b.number();
    if (op == "+") return x + y;
    if (op == "-") return x - y;
    if (op == "*") return x * y;
    if (op == "//") return std::floor(x / y);
    if (op == "**") return std::pow(x, y);
    const double rest = std::fmod(x, y);
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
  }

  static Value of_integers(const std::string& op, int64_t x, int64_t y) {
    int64_t out = 0;
    bool too_large = false;
    if (op == "+")
      too_large = __builtin_add_overflow(x, y, &out);
    else if (op == "-")
      too_large = __builtin_sub_overflow(x, y, &out);
    else if (op == "*")
      too_large = __builtin_mul_overflow(x, y, &out);
    else if (op == "**") {
      if (y < 0) return std::pow(static_cast<double>(x), static_cast<double>(y));
      out = 1;
      const int64_t base = x;
      if (base == 0 || base == 1) return y == 0 ? int64_t{1} : base;
      if (base == -1) return y % 2 == 0 ? int64_t{1} : base;
      for (int64_t i = 0; i < y && !too_large; ++i) too_large = __builtin_mul_overflow(out, base, &out);
    } else if (y == -1) {
      if (op == "//") too_large = __builtin_sub_overflow(int64_t{0}, x, &out);
    } else {
      const int64_t rest = x % y, down = rest != 0 && (rest < 0) != (y < 0) ? 1 : 0;
      out = op == "//" ? x / y - down : rest + (down ? y : 0);
    }
    if (too_large) fail({.what = text(x, " ", op, " ", y, " is too large"), .needs = "integers of 64 bits"});
    return out;
  }

  Value slice(const Value& of, const std::array<Value, 3>& bounds, Place place) {
    place_ = place;
    if (!of.list() && !of.string()) fail({.what = text("a part of a ", of.type()), .needs = "a list or a text"});
    for (const Value& b : bounds)
      if (!b.is_none() && !b.is_integral())
        fail({.what = text("a bound of a part is a ", b.type()), .needs = "integers"});
    const std::u32string chars = of.string() ? code_points(*of.string()) : std::u32string();
    const int64_t size = of.list() ? std::ssize(*of.list()) : std::ssize(chars),
                  step = bounds[2].is_none() ? 1 : bounds[2].integer();
    if (step == 0) fail({.what = "a part has steps of 0", .needs = "other steps"});
    auto bound = [&](const Value& b, int64_t otherwise) {
      if (b.is_none()) return otherwise;
      const int64_t at = b.integer() < 0 ? b.integer() + size : b.integer();
      return std::clamp<int64_t>(at, step > 0 ? 0 : -1, step > 0 ? size : size - 1);
    };
    const int64_t from = bound(bounds[0], step > 0 ? 0 : size - 1), to = bound(bounds[1], step > 0 ? size : -1);
    List items;
    std::u32string part;
    for (int64_t i = from; step > 0 ? i < to : i > to;) {
      if (of.list())
        items.push_back((*of.list())[static_cast<size_t>(i)]);
      else
        part += chars[static_cast<size_t>(i)];
      if (__builtin_add_overflow(i, step, &i)) break;
    }
    return of.list() ? Value(Sequence{std::move(items), of.is_tuple()}) : Value(utf8(part));
  }

  const std::string& name_;
  ScopeRef globals_;
  Place place_;
  int64_t steps_ = 0;
  int calls_ = 0, depth_ = 0;
};

}  // namespace

Template Template::read(const std::string& source, std::string name) {
  Template out;
  out.body_ = std::make_shared<const Stmt::Body>(parse(source, name));
  out.name_ = std::move(name);
  return out;
}

std::string Template::render(const nlohmann::ordered_json& variables) const {
  return Interpreter(name_).run(*body_, variables);
}

}  // namespace sator::jinja
