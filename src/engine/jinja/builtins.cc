#include "engine/jinja/builtins.h"

#include <algorithm>

#include "base/error.h"
#include "engine/tokenizer/unicode.h"

namespace sator::jinja {

void require_text_size(size_t bytes) {
  if (bytes > kMaxText)
    fail({.what = text("the template makes a text of ", bytes, " bytes"), .needs = text("at most ", kMaxText)});
}
void require_items(size_t count) {
  if (count > kMaxItems)
    fail({.what = text("the template makes a list of ", count, " items"), .needs = text("at most ", kMaxItems)});
}

const Value* Taking::take(const std::string& name) {
  if (next_ < arguments_.positional.size()) return &arguments_.positional[next_++];
  return take_named(name);
}

const Value* Taking::take_named(const std::string& name) {
  taken_.push_back(name);
  for (const auto& [given, value] : arguments_.named)
    if (given == name) return &value;
  return nullptr;
}

List Taking::rest() {
  const auto from = arguments_.positional.begin() + static_cast<ptrdiff_t>(next_);
  next_ = arguments_.positional.size();
  return {from, arguments_.positional.end()};
}

Dict Taking::rest_named() {
  Dict out;
  for (const auto& [given, value] : arguments_.named)
    if (std::ranges::find(taken_, given) == taken_.end())
      out.emplace_back(Value(given), value), taken_.push_back(given);
  return out;
}

const Value& Taking::need(const std::string& name) {
  if (const Value* v = take(name)) return *v;
  fail({.what = text(callee_, " is called without ", name), .needs = text("the argument ", name)});
}

int64_t Taking::integer_or(const std::string& name, int64_t otherwise) {
  const Value* v = take(name);
  if (!v || v->is_none()) return otherwise;
  if (!v->is_integral()) fail({.what = text(callee_, ": ", name, " is a ", v->type()), .needs = "an integer"});
  return v->integer();
}

std::string Taking::text_or(const std::string& name, const std::string& otherwise) {
  const Value* v = take(name);
  if (!v || v->is_none()) return otherwise;
  if (!v->string()) fail({.what = text(callee_, ": ", name, " is a ", v->type()), .needs = "a text"});
  return *v->string();
}

bool Taking::flag_or(const std::string& name, bool otherwise) {
  const Value* v = take(name);
  return v ? v->is_true() : otherwise;
}

void Taking::end() {
  if (next_ < arguments_.positional.size())
    fail({.what = text(callee_, " is given ", arguments_.positional.size(), " arguments"),
          .needs = text("at most ", next_)});
  for (const auto& [given, value] : arguments_.named)
    if (std::ranges::find(taken_, given) == taken_.end())
      fail({.what = text(callee_, " has no argument ", given), .needs = taken_.empty() ? "none" : join(taken_, ", ")});
}

List elements_of(const Value& v) {
  if (v.is_undefined()) return {};
  if (v.list()) return *v.list();
  List out;
  if (v.dict()) {
    for (const auto& [key, value] : *v.dict()) out.push_back(key);
    return out;
  }
  if (v.string()) {
    for (char32_t c : code_points(*v.string())) out.push_back(utf8({&c, 1}));
    require_items(out.size());
    return out;
  }
  fail({.what = text("a value of type ", v.type(), " has no elements"), .needs = "a list, a dictionary or a text"});
}

int64_t length_of(const Value& v) {
  if (v.is_undefined()) return 0;
  if (v.list()) return std::ssize(*v.list());
  if (v.dict()) return std::ssize(*v.dict());
  if (v.string()) return std::ssize(code_points(*v.string()));
  fail({.what = text("a value of type ", v.type(), " has no length"), .needs = "a list, a dictionary or a text"});
}

bool contains(const Value& whole, const Value& part) {
  if (whole.string()) {
    if (!part.string()) fail({.what = text("a ", part.type(), " is looked for in a text"), .needs = "a text"});
    return whole.string()->find(*part.string()) != std::string::npos;
  }
  if (whole.dict()) return find(*whole.dict(), part) != nullptr;
  const List items = elements_of(whole);
  return std::ranges::find(items, part) != items.end();
}

bool tested(const std::string& name, const Value& v, Arguments& arguments) {
  Taking t(name, arguments);
  auto divided_by = [&](int64_t by) {
    if (!v.is_integral() || by == 0)
      fail({.what = text("the test ", name, " is given a ", v.type()), .needs = "integers, no 0 to divide by"});
    return v.integer() % by == 0;
  };
  auto method_holds = [&](const char* method) {
    Arguments none;
    return attribute_of(to_text(v), method).function()->call(none).is_true();
  };
  struct Row {
    std::string_view name;
    std::function<bool()> holds;
  };
  auto other = [&]() -> const Value& { return t.need("other"); };
  const Row rows[] = {{"defined", [&] { return !v.is_undefined(); }},
                      {"undefined", [&] { return v.is_undefined(); }},
                      {"none", [&] { return v.is_none(); }},
                      {"boolean", [&] { return v.is_bool(); }},
                      {"true", [&] { return v.is_bool() && v.is_true(); }},
                      {"false", [&] { return v.is_bool() && !v.is_true(); }},
                      {"integer", [&] { return v.is_int(); }},
                      {"float", [&] { return v.is_float(); }},
                      {"number", [&] { return v.is_number(); }},
                      {"string", [&] { return v.string() != nullptr; }},
                      {"mapping", [&] { return v.dict() != nullptr; }},
                      {"sequence", [&] { return v.string() || v.list() || v.dict() || v.is_undefined(); }},
                      {"iterable", [&] { return v.string() || v.list() || v.dict() || v.is_undefined(); }},
                      {"callable", [&] { return v.function() != nullptr; }},
                      {"even", [&] { return divided_by(2); }},
                      {"odd", [&] { return !divided_by(2); }},
                      {"divisibleby", [&] { return divided_by(t.integer_or("num", 0)); }},
                      {"eq", [&] { return v == other(); }},
                      {"equalto", [&] { return v == other(); }},
                      {"==", [&] { return v == other(); }},
                      {"ne", [&] { return !(v == other()); }},
                      {"!=", [&] { return !(v == other()); }},
                      {"lt", [&] { return less(v, other()); }},
                      {"lessthan", [&] { return less(v, other()); }},
                      {"<", [&] { return less(v, other()); }},
                      {"gt", [&] { return less(other(), v); }},
                      {"greaterthan", [&] { return less(other(), v); }},
                      {">", [&] { return less(other(), v); }},
                      {"le", [&] { return !less(other(), v); }},
                      {"<=", [&] { return !less(other(), v); }},
                      {"ge", [&] { return !less(v, other()); }},
                      {">=", [&] { return !less(v, other()); }},
                      {"in", [&] { return contains(other(), v); }},
                      {"sameas", [&] { return v.is_same(other()); }},
                      {"lower", [&] { return method_holds("islower"); }},
                      {"upper", [&] { return method_holds("isupper"); }}};
  std::vector<std::string> known;
  for (const Row& row : rows) {
    known.emplace_back(row.name);
    if (row.name != name) continue;
    const bool holds = row.holds();
    t.end();
    return holds;
  }
  fail({.what = text("there is no test ", string_literal(name)), .needs = text("one of ", join(known, ", "))});
}

}  // namespace sator::jinja
