#include "engine/jinja/builtins.h"

#include <algorithm>

#include "base/error.h"
#include "engine/jinja/python_text.h"

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

const Value* Taking::take_some(const std::string& name) {
  const Value* v = take(name);
  return v && !v->is_none() ? v : nullptr;
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

int64_t Taking::integer(const Value& v, const std::string& name) const {
  if (!v.is_integral()) fail({.what = text(callee_, ": ", name, " is a ", v.type()), .needs = "an integer"});
  return v.integer();
}
const std::string& Taking::string(const Value& v, const std::string& name) const {
  if (!v.string()) fail({.what = text(callee_, ": ", name, " is a ", v.type()), .needs = "a text"});
  return *v.string();
}
int64_t Taking::need_integer(const std::string& name) { return integer(need(name), name); }
const std::string& Taking::need_text(const std::string& name) { return string(need(name), name); }
int64_t Taking::integer_or(const std::string& name, int64_t otherwise) {
  const Value* v = take(name);
  return v ? integer(*v, name) : otherwise;
}
std::string Taking::text_or(const std::string& name, const std::string& otherwise) {
  const Value* v = take(name);
  return v ? string(*v, name) : otherwise;
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

Value method(std::string name, std::function<Value(Taking&)> body, const Value& held) {
  auto call = [name, body = std::move(body)](Arguments& arguments) {
    Taking t(name, arguments);
    Value out = body(t);
    t.end();
    return out;
  };
  return Function{name, std::move(call), depth_around(held)};
}

Value tuple_of(List items) { return Sequence{.items = std::move(items), .kind = SequenceKind::tuple}; }

Value generator(const Value& source, std::function<List()> make) {
  auto next = [made = std::optional<List>(), make = std::move(make), i = size_t{0}]() mutable {
    if (!made) made = make();
    return i < made->size() ? std::optional((*made)[i++]) : std::nullopt;
  };
  return Iterator{std::move(next), depth_around(source)};
}

List elements_of(const Value& v) {
  if (v.is_undefined()) return {};
  if (v.items()) return *v.items();
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
  if (v.iterator()) {
    while (std::optional<Value> item = v.iterator()->next()) out.push_back(std::move(*item));
    return out;
  }
  fail({.what = text("a value of type ", v.type(), " has no elements"), .needs = "a list, a dictionary or a text"});
}

std::function<std::optional<Value>()> each_of(const Value& v) {
  if (v.iterator()) return [v] { return v.iterator()->next(); };
  return [items = elements_of(v), i = size_t{0}]() mutable {
    return i < items.size() ? std::optional(items[i++]) : std::nullopt;
  };
}

int64_t length_of(const Value& v) {
  if (v.is_undefined()) return 0;
  if (v.items()) return std::ssize(*v.items());
  if (v.dict()) return std::ssize(*v.dict());
  if (v.string()) return std::ssize(code_points(*v.string()));
  if (v.object())
    if (auto length = v.object()->computed.find("length"); length != v.object()->computed.end())
      return length->second().integer();
  fail({.what = text("a value of type ", v.type(), " has no length"),
        .needs = "a list, a dictionary or a text",
        .hint = v.iterator() ? "make a list of it: | list" : ""});
}

bool contains(const Value& whole, const Value& part) {
  if (whole.string()) {
    if (!part.string()) fail({.what = text("a ", part.type(), " is looked for in a text"), .needs = "a text"});
    return whole.string()->find(*part.string()) != std::string::npos;
  }
  if (whole.dict() || whole.is(SequenceKind::keys)) require_hashable(part);
  if (whole.dict()) return find(*whole.dict(), part) != nullptr;
  const auto next = each_of(whole);
  while (const std::optional<Value> item = next())
    if (*item == part) return true;
  return false;
}

}  // namespace sator::jinja
