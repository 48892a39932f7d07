#include "engine/jinja/template.h"

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "engine/jinja/builtins.h"
#include "engine/jinja/operators.h"

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

/// What `loop` knows. Items are read no sooner than a template asks for them.
struct LoopState {
  std::function<std::optional<Value>()> pull;
  std::optional<int64_t> length;
  std::deque<Value> ahead;
  int64_t index0 = -1;
  Value before, current;
  std::optional<List> watched;  ///< of loop.changed

  bool next() {
    if (!peek()) return false;
    ++index0;
    before = std::exchange(current, std::move(ahead.front()));
    ahead.pop_front();
    return true;
  }
  const Value* peek() {
    if (ahead.empty())
      if (std::optional<Value> item = pull()) ahead.push_back(std::move(*item));
    return ahead.empty() ? nullptr : &ahead.front();
  }
  int64_t count() {
    if (length) return *length;
    while (std::optional<Value> item = pull()) ahead.push_back(std::move(*item));
    length = index0 + 1 + std::ssize(ahead);
    return *length;
  }
};

std::shared_ptr<Object> loop_object(const std::shared_ptr<LoopState>& state, int64_t depth0) {
  auto made = std::make_shared<Object>(Object{.type = "LoopContext"});
  auto& of = made->computed;
  made->repr = [state](int) { return text("<LoopContext ", state->index0 + 1, "/", state->count(), ">"); };
  of["length"] = [state] { return state->count(); };
  of["depth"] = [depth0] { return depth0 + 1; };
  of["depth0"] = [depth0] { return depth0; };
  of["index"] = [state] { return state->index0 + 1; };
  of["index0"] = [state] { return state->index0; };
  of["revindex"] = [state] { return state->count() - state->index0; };
  of["revindex0"] = [state] { return state->count() - state->index0 - 1; };
  of["first"] = [state] { return state->index0 == 0; };
  of["last"] = [state] { return state->peek() == nullptr; };
  of["previtem"] = [state] { return state->index0 > 0 ? state->before : Value(Undefined{"loop.previtem"}); };
  of["nextitem"] = [state] {
    const Value* item = state->peek();
    return item ? *item : Value(Undefined{"loop.nextitem"});
  };
  of["cycle"] = [state] {
    return method("cycle", [state](Taking& t) {
      const List values = t.rest();
      if (values.empty()) fail({.what = "loop.cycle is called without values", .needs = "one or more"});
      return values[static_cast<size_t>(state->index0) % values.size()];
    });
  };
  of["changed"] = [state] {
    return method("changed", [state](Taking& t) {
      const std::optional<List> before = std::exchange(state->watched, t.rest());
      return Value(before != state->watched);
    });
  };
  return made;
}

class Interpreter {
 public:
  explicit Interpreter(const std::string& name) : name_(name) {}

  std::string run(const Stmt::Body& body, const nlohmann::ordered_json& variables) {
    globals_ = std::make_shared<Scope>();
    globals_->names = global_functions();
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
      case StmtKind::loop: return loop(s, scope, value(s.exprs[0], scope), 0, out);
      case StmtKind::assign: assign(s.target, value(s.exprs[0], scope), *scope); break;
      case StmtKind::capture: {
        const Captured made = captured(s, scope);
        if (made.left != Leave::none) return made.left;
        assign(s.target, made.value, *scope);
        break;
      }
      case StmtKind::macro: scope->names[s.name] = macro(s, scope, s.name); break;
      case StmtKind::call: call_block(s, scope, out); break;
      case StmtKind::filtered: {
        const Captured made = captured(s, scope);
        if (made.left != Leave::none) return made.left;
        write(out, to_text(made.value));
        break;
      }
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

  void assign(const Stmt::Target& target, const Value& v, Scope& scope) {
    if (!target.name.empty()) return set(target.name, v, scope);
    const List items = elements_of(v);
    if (items.size() != target.parts.size())
      fail({.what = text(items.size(), " values for ", target.parts.size(), " names"), .needs = "one for each"});
    for (size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i], scope);
  }
  void set(const std::string& name, const Value& v, Scope& scope) {
    const size_t dot = name.find('.');
    if (dot == name.npos) {
      scope.names[name] = v;
      return;
    }
    const Value* of = scope.find(name.substr(0, dot));
    Object* object = of ? of->object() : nullptr;
    if (!object || object->type != "Namespace")
      fail({.what = text(name, " is set, and ", name.substr(0, dot), " is no namespace"),
            .needs = "a namespace, whose members may be set"});
    require_public(name.substr(dot + 1));
    object->depth = std::max(object->depth, depth_around(v));
    put(object->members, name.substr(dot + 1), v);
  }

  /// The text of a body through filters; what break or continue leave has no text.
  struct Captured {
    Value value;
    Leave left = Leave::none;
  };
  Captured captured(const Stmt& s, const ScopeRef& scope) {
    std::string made;
    const ScopeRef inner = inside(scope);
    if (const Leave left = statements(s.bodies[0], inner, made); left != Leave::none) return {{}, left};
    inner->names[kCaptured] = made;
    return {value(s.exprs[0], inner)};
  }

  /// The items of a loop, one by one; those for which its `if` holds. A body may change what that reads.
  std::function<std::optional<Value>()> items_of(const Stmt& s, const ScopeRef& scope, const Value& over) {
    auto next = each_of(over);
    if (s.exprs.size() < 2) return next;
    return [this, &s, scope, next = std::move(next)]() -> std::optional<Value> {
      while (std::optional<Value> item = next()) {
        const ScopeRef inner = inside(scope);
        assign(s.target, *item, *inner);
        if (value(s.exprs[1], inner).is_true()) return item;
      }
      return {};
    };
  }

  /// The else of a loop is for one no round of which came to its end.
  Leave loop(const Stmt& s, const ScopeRef& scope, const Value& over, int64_t depth, std::string& out) {
    const Calls calls(*this);
    const auto state = std::make_shared<LoopState>();
    state->pull = items_of(s, scope, over);
    if (!over.iterator() && s.exprs.size() < 2) state->length = length_of(over);
    const std::shared_ptr<Object> object = loop_object(state, depth);
    object->depth = depth_around(over);
    object->call = [&](Arguments& a) {
      if (!s.recursive) fail({.what = "a loop is called", .needs = "{% for ... recursive %}"});
      std::string made;
      Taking t("loop", a);
      loop(s, scope, t.need("iterable"), depth + 1, made);
      return Value(made);
    };
    bool is_complete = false;
    Leave left = Leave::none;
    while (left != Leave::loop && state->next()) {
      const ScopeRef inner = inside(scope);
      inner->names["loop"] = object;
      assign(s.target, state->current, *inner);
      left = statements(s.bodies[0], inner, out);
      is_complete |= left == Leave::none;
    }
    state->pull = [] { return std::nullopt; };
    state->watched.reset();
    object->call = [](Arguments&) -> Value {
      fail({.what = "a loop is called behind its end", .needs = "a call in it"});
    };
    return is_complete || s.bodies.size() < 2 ? Leave::none : statements(s.bodies[1], inside(scope), out);
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
    auto made = std::make_shared<Object>(Object{.type = "Macro"});
    List parameters;
    for (const Stmt::Parameter& p : s.parameters) parameters.emplace_back(p.name);
    made->members = {{"name", name.empty() ? Value() : Value(name)},
                     {"arguments", tuple_of(parameters)},
                     {"catch_kwargs", s.reads_kwargs},
                     {"catch_varargs", s.reads_varargs},
                     {"caller", s.reads_caller},
                     {"explicit_caller", contains(parameters, "caller")}};
    made->repr = [name](int) { return text("<Macro ", name.empty() ? "anonymous" : to_repr(name), ">"); };
    made->call = [this, &s, weak = std::weak_ptr<Scope>(scope), name](Arguments& a) {
      const Calls calls(*this);
      const ScopeRef around = weak.lock();
      if (!around)
        fail({.what = text(name, " is called where it is not defined any more"), .needs = "a macro of this part"});
      const ScopeRef inner = inside(around);
      Taking t(name.empty() ? "caller" : name, a);
      for (const Stmt::Parameter& p : s.parameters) {
        const Value* given = t.take(p.name);
        inner->names[p.name] = given ? *given : p.otherwise ? value(*p.otherwise, inner) : Value(Undefined{p.name});
      }
      if (s.reads_caller) {
        const Value* given = t.take_named("caller");
        inner->names["caller"] = given ? *given : Value(Undefined{"caller"});
      }
      if (s.reads_varargs) inner->names["varargs"] = tuple_of(t.rest());
      if (s.reads_kwargs) inner->names["kwargs"] = Value(t.rest_named());
      t.end();
      std::string made;
      statements(s.bodies[0], inner, made);
      return Value(made);
    };
    return made;
  }

  void call_block(const Stmt& s, const ScopeRef& scope, std::string& out) {
    const Expr& call = s.exprs[0];
    const ScopeRef inner = inside(scope);
    Arguments a = arguments(call, inner);
    a.named.emplace_back("caller", macro(s, inner, ""));
    write(out, to_text(called(value(call.parts[0], inner), a, call)));
  }

  Arguments arguments(const Expr& e, const ScopeRef& scope) {
    Arguments a;
    for (const Expr::Argument& given : e.arguments) {
      const Value v = value(*given.value, scope);
      if (given.name.empty())
        a.positional.push_back(v);
      else if (given.name == "*")
        std::ranges::copy(elements_of(v), std::back_inserter(a.positional));
      else if (given.name == "**")
        add_named(a, v);
      else
        a.named.emplace_back(given.name, v);
    }
    return a;
  }

  static void add_named(Arguments& a, const Value& v) {
    if (!v.dict()) fail({.what = text("named arguments from a ", v.type()), .needs = "a dictionary"});
    for (const auto& [name, value] : *v.dict()) {
      const bool is_given =
          std::ranges::find(a.named, to_text(name), &decltype(a.named)::value_type::first) != a.named.end();
      if (!name.string() || is_given)
        fail({.what = text("named arguments from a dictionary with the key ", to_repr(name)),
              .needs = "texts, each for an argument that is not given yet"});
      a.named.emplace_back(*name.string(), value);
    }
  }

  Value called(const Value& callee, Arguments& a, const Expr& e) {
    place_ = e.place;
    if (const Callable* call = callee.callable()) return (*call)(a);
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
        Sequence out{.items = {}, .kind = e.kind == ExprKind::tuple ? SequenceKind::tuple : SequenceKind::list};
        for (size_t i = 0; i < e.parts.size(); ++i) out.items.push_back(part(i));
        return out;
      }
      case ExprKind::dict: {
        Dict out;
        for (size_t i = 0; i < e.parts.size(); i += 2) put(out, part(i), part(i + 1));
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
      case ExprKind::slice: {
        const Value of = part(0), from = part(1), to = part(2), by = part(3);
        place_ = e.place;
        return slice(of, from, to, by);
      }
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
      case ExprKind::unary: {
        const Value of = part(0);
        place_ = e.place;
        return unary(e.name, of);
      }
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
          if (!compares(e.names[i], left, right)) return false;
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
