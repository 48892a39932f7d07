// What scripts write in plain Python, known while they are read: constants around functions, comprehensions, parts of lists,
// formatted strings, and Python's own functions.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "tir/parse_eval.h"

namespace sator::tir {

using script::Expression;
using script::Place;
using script::Statement;
using Kind = script::ExpressionKind;

namespace {

/// Whether functions may share the value: it has no variable or buffer of a function's.
bool is_shared(const Value& v) {
  if (const Values* list = v.as<Values>()) return std::ranges::all_of(list->items, is_shared);
  if (const DictValue* dict = v.as<DictValue>())
    return std::ranges::all_of(dict->items, [](const auto& item) { return is_shared(item.second); });
  if (const Expr* e = v.as<Expr>()) return vars_in(*e).empty();
  if (const NodeRef* n = v.as<NodeRef>()) return !*n || vars_in(*n).empty();
  return v.is_plain() || v.as<LanguageName>() || v.as<LambdaValue>() || v.as<HostObjectRef>();
}

/// How a part of an assignment's value is reached: the places of the name in nested tuples of targets.
bool path_to(const Expression& target, const std::string& name, std::vector<size_t>& path) {
  if (target.is(Kind::name)) return target.text == name;
  for (size_t i = 0; i < target.items.size(); ++i) {
    path.push_back(i);
    if (path_to(target.items[i], name, path)) return true;
    path.pop_back();
  }
  return false;
}

std::string shortest(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[40];
  std::string out(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
  return out.find_first_of(".e") == out.npos ? out + ".0" : out;
}

std::optional<int64_t> plain_index(const Value& v) {
  if (const bool* b = v.as<bool>()) return *b;
  if (const Integer* i = v.as<Integer>(); i && !i->is_unsigned) return i->value;
  const Expr* x = v.as<Expr>();
  return x ? as_int(*x) : std::nullopt;
}

/// As Python's str writes it; nothing of what is no number or text.
std::optional<std::string> as_text(const Value& v) {
  if (const std::string* s = v.as<std::string>()) return *s;
  if (const bool* b = v.as<bool>()) return *b ? "True" : "False";
  if (const Integer* i = v.as<Integer>())
    return i->is_unsigned ? std::to_string(static_cast<uint64_t>(i->value)) : std::to_string(i->value);
  if (const double* d = v.as<double>()) return shortest(*d);
  if (v.is_none()) return "None";
  const Expr* e = v.as<Expr>();
  if (auto number = e ? as_int(*e) : std::nullopt) return std::to_string(*number);
  return {};
}

constexpr std::string_view kFunctions[] = {
    "abs", "dict", "enumerate", "float", "int", "len", "list", "max", "min", "sum", "tuple"};

}  // namespace

bool is_python_function(std::string_view name) { return std::ranges::find(kFunctions, name) != std::end(kFunctions); }

const Value* Evaluator::constant_named(const std::string& name, Place place) {
  if (!constants) return nullptr;
  // The last one above the place, as Python would have it.
  for (auto at = constants->rbegin(); at != constants->rend(); ++at) {
    const Statement& s = **at;
    if (s.place.begin >= place.begin) continue;
    for (const Expression& target : s.targets) {
      std::vector<size_t> path;
      if (!path_to(target, name, path)) continue;
      auto [known, is_new] = constants_.try_emplace({&s, name});
      if (!is_new) return &known->second;
      constexpr int kMostOpen = 64;
      if (constants_open_ == kMostOpen)
        fail(s.place,
             {.what = text(kMostOpen, " constants need each other"), .needs = "fewer", .hint = "write the values"});
      auto hidden = std::exchange(scopes_, {});
      push_scope();
      ++constants_open_;
      Value v = eval(s.value);
      --constants_open_;
      scopes_ = std::move(hidden);
      for (size_t i : path) {
        const Values* list = v.as<Values>();
        if (!list || list->items.size() <= i)
          fail(s.place,
               {.what = text(v.kind(), " for several names"), .needs = "a value for each", .hint = "count them"});
        v = Value(list->items[i]);
      }
      if (!is_shared(v))
        fail(s.place,
             {.what = text("the constant ", name, " is ", v.kind()),
              .needs = "a number, a string, a dtype, or a list or dictionary of such",
              .hint = "write it in the function"});
      return &(constants_[{&s, name}] = std::move(v));
    }
  }
  return nullptr;
}

// ---- Lists ----

void Evaluator::count_items(size_t n, Place place) {
  constexpr size_t kMost = 1 << 18;
  items_made_ += n;
  if (n > kMost || items_made_ > kMost)
    fail(place,
         {.what = text("lists of more than ", kMost, " items"),
          .needs = "fewer in a function",
          .hint = "loop over range(n), and keep the values in a buffer"});
}

std::vector<Value> Evaluator::range_items(const Expression& call) {
  std::vector<int64_t> bounds;
  for (size_t i = 1; i < call.items.size(); ++i) {
    const auto n = call.items[i].is(Kind::star) ? std::nullopt : plain_index(eval(call.items[i]));
    if (!n)
      fail(call.items[i].place,
           {.what = "range of a value that the program computes",
            .needs = "constants, where a list is made of it",
            .hint = "write a loop over range(n)"});
    bounds.push_back(*n);
  }
  if (bounds.empty() || bounds.size() > 3 || !call.keywords.empty() || (bounds.size() == 3 && bounds[2] == 0))
    fail(call.place, {.what = "range of these", .needs = "range(stop), range(start, stop, step)", .hint = "check it"});
  const __int128 first = bounds.size() > 1 ? bounds[0] : 0, last = bounds.size() > 1 ? bounds[1] : bounds[0];
  const __int128 step = bounds.size() > 2 ? bounds[2] : 1;
  const __int128 n = step > 0 ? (last - first + step - 1) / step : (first - last - step - 1) / -step;
  count_items(n > 0 ? static_cast<size_t>(n) : 0, call.place);
  std::vector<Value> out;
  for (__int128 i = 0; i < n; ++i) out.emplace_back(Integer{static_cast<int64_t>(first + i * step), false});
  return out;
}

std::vector<Value> Evaluator::items_of(const Expression& e) {
  if (e.is(Kind::call) && e.items[0].is(Kind::name) && e.items[0].text == "range" && !find("range"))
    return range_items(e);
  Value v = eval(e);
  if (const Values* list = v.as<Values>()) return list->items;
  std::vector<Value> keys;
  const DictValue* dict = v.as<DictValue>();
  if (!dict)
    fail(e.place,
         {.what = text(v.kind(), " where a list is needed"),
          .needs = "a list, a tuple, or range(...) of constants",
          .hint = "write the list out"});
  for (const auto& [key, value] : dict->items) keys.push_back(key);
  return keys;
}

void Evaluator::bind_items(const Expression& target, const Value& value) {
  if (target.is(Kind::name)) return define(target.text, value, target.place, true);
  const Values* list = value.as<Values>();
  if ((!target.is(Kind::tuple) && !target.is(Kind::list)) || !list || list->items.size() != target.items.size())
    fail(target.place,
         {.what = text(value.kind(), " for these names"), .needs = "one value per name", .hint = "count them"});
  for (size_t i = 0; i < list->items.size(); ++i) bind_items(target.items[i], list->items[i]);
}

Value Evaluator::comprehension(const Expression& e) {
  if (around) {
    auto local = [&](const std::string& name) {
      const Value* v = find(name);
      return v ? v : constant_named(name, e.place);
    };
    std::optional<Value> value = located(e.place, [&] { return around->evaluate(e.text, local); });
    if (value) return *std::move(value);
  }
  if (e.items.empty())
    fail(e.place,
         {.what = "this comprehension is not part of TVMScript",
          .needs = "[value for name in list if condition], or a function in Python code, where Python evaluates it",
          .hint = "write the list out"});
  Values list;
  DictValue dict;
  const bool is_dict = e.integer == 2;
  auto clause = [&](auto& self, size_t number, size_t at) -> void {
    if (number == e.names.size()) {
      count_items(1, e.place);
      if (is_dict)
        dict.items.emplace_back(eval(e.items[0]), eval(e.items[1]));
      else
        list.items.push_back(eval(e.items[0]));
      return;
    }
    if (e.names[number] == "if") {
      const Value holds = eval(e.items[at]);
      if (!holds.is_plain())
        fail(e.items[at].place,
             {.what = text(holds.kind(), " as the condition of a list"),
              .needs = "a value that is known while the program is read",
              .hint = "choose with T.Select"});
      if (is_true(holds)) self(self, number + 1, at + 1);
      return;
    }
    for (const Value& item : items_of(e.items[at + 1])) {
      bind_items(e.items[at], item);
      self(self, number + 1, at + 2);
    }
  };
  push_scope();
  clause(clause, 0, static_cast<size_t>(e.integer));
  pop_scope();
  return is_dict ? Value(std::move(dict)) : Value(std::move(list));
}

/// list[start:stop:step], as Python cuts it.
Value Evaluator::part_of(const Values& list, const Expression& slice) {
  auto bound = [&](size_t i, int64_t otherwise) {
    if (!slice.items[i].present()) return otherwise;
    const Value v = eval(slice.items[i]);
    if (v.is_none()) return otherwise;
    const auto n = plain_index(v);
    if (!n || (i == 2 && *n == 0))
      fail(slice.items[i].place,
           {.what = i == 2 && n ? "a step of 0" : text(v.kind(), " as a bound of a list"),
            .needs = "constant integers",
            .hint = "index the items one by one"});
    return *n;
  };
  const auto size = static_cast<int64_t>(list.items.size());
  const int64_t step = std::clamp<int64_t>(bound(2, 1), -size - 1, size + 1);
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  auto inside = [&](size_t i, int64_t otherwise) {
    if (!slice.items[i].present()) return otherwise;
    const int64_t n = bound(i, otherwise - (otherwise < 0 ? size : 0));
    return std::clamp(n < 0 ? n + size : n, low, high);
  };
  Values out;
  out.is_tuple = list.is_tuple;
  const int64_t first = inside(0, step > 0 ? 0 : size - 1), last = inside(1, step > 0 ? size : -1);
  for (int64_t i = first; step > 0 ? i < last : i > last; i += step) out.items.push_back(list.items[i]);
  count_items(out.items.size(), slice.place);
  return out;
}

Value Evaluator::formatted(const Expression& e) {
  std::string out;
  for (const Expression& part : e.items) {
    const Value v = eval(part);
    const auto written = as_text(v);
    if (!written)
      fail(e.place,
           {.what = text("a formatted string with a field that is ", v.kind()),
            .needs = "numbers and texts that are known while the program is read",
            .hint = "write the text itself"});
    out += *written;
  }
  return out;
}

// ---- Functions ----

Value Evaluator::call_python(std::string_view name, const Expression& call) {
  auto refuse = [&](const Value& v) {
    fail(call.place,
         {.what = text(name, " of ", v.kind()),
          .needs = "values that are known while the program is read",
          .hint = text("write the value, or see whether T.", name, " is meant")});
  };
  size_t given = call.items.size() - 1;
  if (name == "dict" && given == 0) {
    DictValue out;
    for (const script::Keyword& k : call.keywords) out.items.emplace_back(k.name, eval(k.value));
    return out;
  }
  const Expression* start = given == 2 ? &call.items[2] : nullptr;
  for (const script::Keyword& k : call.keywords) {
    if (k.name != "start" || start || (name != "enumerate" && name != "sum"))
      fail(k.place, {.what = text(name, " with ", k.name), .needs = "its plain form", .hint = "write the values out"});
    start = &k.value;
  }
  const bool takes_many = name == "min" || name == "max";
  const bool takes_start = name == "enumerate" || name == "sum";
  const bool may_be_empty = name == "list" || name == "tuple";
  if ((given < 1 && !may_be_empty) || (given > (takes_start ? 2 : 1) && !takes_many))
    fail(call.place,
         {.what = text(name, " of ", given, " values"), .needs = text(name, "(value)"), .hint = "count the arguments"});
  if (name == "min" || name == "max") {
    std::vector<Value> items;
    if (given == 1) items = items_of(call.items[1]);
    for (size_t i = 1; given > 1 && i <= given; ++i) items.push_back(eval(call.items[i]));
    if (items.empty()) refuse(Value(Values()));
    for (const Value& v : items)
      if (!v.is_plain()) refuse(v);
    Value best = items[0];
    for (const Value& v : items)
      if (is_true(compare_pair(name == "min" ? "<" : ">", v, best, call.place))) best = v;
    return best;
  }
  if (may_be_empty || takes_start) {
    Values out{{}, name == "tuple"};
    if (given) out.items = items_of(call.items[1]);
    Value next = start ? eval(*start) : Value(Integer{0, false});
    for (Value& item : out.items) {
      if (name == "sum") next = binary("+", next, item, call.place);
      if (name != "enumerate") continue;
      item = Values{{next, item}, true};
      next = binary("+", next, Value(Integer{1, false}), call.place);
    }
    return name == "sum" ? next : Value(std::move(out));
  }
  const Value v = eval(call.items[1]);
  if (name == "len") {
    if (const std::string* s = v.as<std::string>()) return Integer{static_cast<int64_t>(s->size()), false};
    if (const DictValue* dict = v.as<DictValue>()) return Integer{static_cast<int64_t>(dict->items.size()), false};
    if (!v.as<Values>())
      fail(call.place, {.what = text("len of ", v.kind()), .needs = "a list or a tuple", .hint = "write the number"});
    return Integer{static_cast<int64_t>(v.as<Values>()->items.size()), false};
  }
  if (name == "abs") {
    if (const double* d = v.as<double>()) return std::fabs(*d);
    if (!v.is_plain() || v.as<std::string>() || v.as<Values>()) refuse(v);
    return is_true(compare_pair("<", v, Value(Integer{0, false}), call.place))
               ? binary("-", Value(Integer{0, false}), v, call.place)
               : v;
  }
  // int, float: of a number, or of how one is written.
  if (const std::string* s = v.as<std::string>()) {
    char* end = nullptr;
    errno = 0;
    const bool is_int = name == "int";
    const int64_t integer = is_int ? std::strtoll(s->c_str(), &end, 10) : 0;
    const double real = is_int ? 0 : std::strtod(s->c_str(), &end);
    if (s->empty() || end != s->c_str() + s->size() || (is_int && errno)) refuse(v);
    return is_int ? Value(Integer{integer, false}) : Value(real);
  }
  if (name == "int" && v.as<double>()) {
    const double whole = std::trunc(*v.as<double>());
    if (!(std::fabs(whole) < 9.2e18)) refuse(v);
    return Integer{static_cast<int64_t>(whole), false};
  }
  if (name == "float" && v.as<double>()) return v;
  const Integer* i = v.as<Integer>();
  if (i && i->is_unsigned) return name == "int" ? v : Value(static_cast<double>(static_cast<uint64_t>(i->value)));
  const auto number = plain_index(v);
  if (!number) refuse(v);
  return name == "int" ? Value(Integer{*number, false}) : Value(static_cast<double>(*number));
}

}  // namespace sator::tir
