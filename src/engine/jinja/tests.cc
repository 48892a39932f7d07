// The tests of Jinja 3.1: what follows `is`.
#include <algorithm>

#include "base/error.h"
#include "engine/jinja/builtins.h"
#include "engine/jinja/operators.h"

namespace sator::jinja {

namespace {

using Test = bool (*)(const Value& v, Taking& t);

bool is_sized(const Value& v) { return v.string() || v.items() || v.dict() || v.is_undefined(); }
bool is_view(const Value& v) {
  return v.is(SequenceKind::keys) || v.is(SequenceKind::values) || v.is(SequenceKind::items);
}
bool is_iterable(const Value& v) {
  return is_sized(v) || v.iterator() || (v.object() && v.object()->computed.contains("nextitem"));
}
bool has_rest(const Value& v, const Value& by, int64_t rest) { return binary("%", v, by) == Value(rest); }
constexpr int64_t kTwo = 2;

bool t_eq(const Value& v, Taking& t) { return v == t.need("other"); }
bool t_ne(const Value& v, Taking& t) { return !(v == t.need("other")); }
bool t_lt(const Value& v, Taking& t) { return less(v, t.need("other")); }
bool t_gt(const Value& v, Taking& t) { return less(t.need("other"), v); }
bool t_le(const Value& v, Taking& t) { return less_or_equal(v, t.need("other")); }
bool t_ge(const Value& v, Taking& t) { return less_or_equal(t.need("other"), v); }
bool is_one_of(bool (*known)(const std::string&), const Value& v) {
  require_hashable(v);
  return v.string() && known(*v.string());
}
bool t_filter(const Value& v, Taking&) { return is_one_of(is_filter, v); }
bool t_test(const Value& v, Taking&) { return is_one_of(is_test, v); }

struct TestRow {
  std::string_view name;
  Test holds;
};
constexpr TestRow kTests[] = {
    {"defined", [](const Value& v, Taking&) { return !v.is_undefined(); }},
    {"undefined", [](const Value& v, Taking&) { return v.is_undefined(); }},
    {"none", [](const Value& v, Taking&) { return v.is_none(); }},
    {"boolean", [](const Value& v, Taking&) { return v.is_bool(); }},
    {"true", [](const Value& v, Taking&) { return v.is_bool() && v.is_true(); }},
    {"false", [](const Value& v, Taking&) { return v.is_bool() && !v.is_true(); }},
    {"integer", [](const Value& v, Taking&) { return v.is_int(); }},
    {"float", [](const Value& v, Taking&) { return v.is_float(); }},
    {"number", [](const Value& v, Taking&) { return v.is_number(); }},
    {"string", [](const Value& v, Taking&) { return v.string() != nullptr; }},
    {"mapping", [](const Value& v, Taking&) { return v.dict() != nullptr; }},
    {"sequence", [](const Value& v, Taking&) { return is_sized(v) && !is_view(v); }},
    {"iterable", [](const Value& v, Taking&) { return is_iterable(v); }},
    {"callable", [](const Value& v, Taking&) { return v.callable() || v.is_undefined(); }},
    {"even", [](const Value& v, Taking&) { return has_rest(v, kTwo, 0); }},
    {"odd", [](const Value& v, Taking&) { return has_rest(v, kTwo, 1); }},
    {"divisibleby", [](const Value& v, Taking& t) { return has_rest(v, t.need("num"), 0); }},
    {"filter", t_filter},
    {"test", t_test},
    {"eq", t_eq},
    {"equalto", t_eq},
    {"==", t_eq},
    {"ne", t_ne},
    {"!=", t_ne},
    {"lt", t_lt},
    {"lessthan", t_lt},
    {"<", t_lt},
    {"gt", t_gt},
    {"greaterthan", t_gt},
    {">", t_gt},
    {"le", t_le},
    {"<=", t_le},
    {"ge", t_ge},
    {">=", t_ge},
    {"in", [](const Value& v, Taking& t) { return contains(t.need("seq"), v); }},
    {"sameas", [](const Value& v, Taking& t) { return v.is_same(t.need("other")); }},
    {"lower", [](const Value& v, Taking&) { return call_method(to_text(v), "islower").is_true(); }},
    {"upper", [](const Value& v, Taking&) { return call_method(to_text(v), "isupper").is_true(); }}};

}  // namespace

bool is_test(const std::string& name) {
  return name == "escaped" || std::ranges::find(kTests, name, &TestRow::name) != std::end(kTests);
}

bool tested(const std::string& name, const Value& v, Arguments& arguments) {
  const auto row = std::ranges::find(kTests, name, &TestRow::name);
  if (row == std::end(kTests)) {
    std::vector<std::string_view> known;
    for (const TestRow& r : kTests) known.push_back(r.name);
    fail({.what = text("there is no test ", string_literal(name)), .needs = text("one of ", join(known, ", "))});
  }
  Taking t(name, arguments);
  const bool holds = row->holds(v, t);
  t.end();
  return holds;
}

}  // namespace sator::jinja
