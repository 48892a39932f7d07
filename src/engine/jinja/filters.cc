// The filters of Jinja 3.1, and tojson as Transformers defines it.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "engine/jinja/builtins.h"
#include "engine/tokenizer/unicode.h"

namespace sator::jinja {

namespace {

[[noreturn]] void fail_type(const char* filter, const Value& v, const char* needs) {
  fail({.what = text("the filter ", filter, " is given a value of type ", v.type()), .needs = needs});
}

/// What `map`, `sort` and others look at: a member by its path ("function.name", "0"), or what is not there.
Value by_path(const Value& v, const Value& path, const Value* otherwise) {
  Value at = v;
  if (path.is_integral()) {
    at = item_of(at, path);
  } else {
    for (std::string_view part : split(*path.string(), '.')) {
      int64_t number = 0;
      const auto end = std::from_chars(part.data(), part.data() + part.size(), number);
      const bool is_number = !part.empty() && end.ptr == part.data() + part.size();
      at = item_of(at, is_number ? Value(number) : Value(std::string(part)));
    }
  }
  return at.is_undefined() && otherwise ? *otherwise : at;
}
Value looked_at(const Value& v, const Value* path) {
  if (!path || path->is_none()) return v;
  if (!path->string() && !path->is_integral())
    fail({.what = text("an attribute is a ", path->type()), .needs = "a name"});
  return by_path(v, *path, nullptr);
}
/// Texts in small letters unless their case matters.
Value folded(const Value& v, bool case_sensitive) {
  return v.string() && !case_sensitive ? Value(lowercased(*v.string())) : v;
}

std::string capitalized(const std::string& s) {
  std::u32string all = code_points(lowercased(s));
  return all.empty() ? "" : uppercased(utf8({all.data(), 1})) + utf8(std::u32string_view(all).substr(1));
}
std::string titled(const std::string& s) {
  std::string out, word;
  auto flush = [&] { out += capitalized(word), word.clear(); };
  for (char c : s) {
    const bool splits = std::string_view(" \t\n\r\f\v-([{<").find(c) != std::string_view::npos;
    if (splits)
      flush(), out += c;
    else
      word += c;
  }
  flush();
  return out;
}

std::string escaped(const std::string& s) {
  std::string out;
  for (char c : s) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&#34;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
    require_text_size(out.size());
  }
  return out;
}

using Filter = Value (*)(const Value&, Taking&);

Value f_abs(const Value& v, Taking&) {
  if (!v.is_number()) fail_type("abs", v, "a number");
  return v.is_float() ? Value(std::fabs(v.number())) : Value(v.integer() < 0 ? -v.integer() : v.integer());
}
Value f_attr(const Value& v, Taking& t) { return attribute_of(v, to_text(t.need("name"))); }
Value f_batch(const Value& v, Taking& t) {
  const int64_t size = t.integer_or("linecount", 0);
  const Value* fill = t.take("fill_with");
  if (size < 1) fail({.what = text("batch is asked for ", size, " items a line"), .needs = "one or more"});
  List out, line;
  for (const Value& item : elements_of(v)) {
    line.push_back(item);
    if (std::ssize(line) == size) out.emplace_back(std::exchange(line, {}));
  }
  if (line.empty()) return out;
  if (fill && !fill->is_none()) {
    require_items(static_cast<size_t>(size));
    line.resize(static_cast<size_t>(size), *fill);
  }
  out.emplace_back(line);
  return out;
}
Value f_capitalize(const Value& v, Taking&) { return capitalized(to_text(v)); }
Value f_center(const Value& v, Taking& t) {
  const std::string s = to_text(v);
  const int64_t width = t.integer_or("width", 80), left = std::max<int64_t>(width - length_of(s), 0);
  require_text_size(static_cast<size_t>(left) + s.size());
  // Python puts the odd blank to the left of an even width's.
  const int64_t before = left / 2 + (left & width & 1);
  return std::string(static_cast<size_t>(before), ' ') + s + std::string(static_cast<size_t>(left - before), ' ');
}
Value f_default(const Value& v, Taking& t) {
  const Value* otherwise = t.take("default_value");
  const bool where_false = t.flag_or("boolean", false);
  if (!v.is_undefined() && !(where_false && !v.is_true())) return v;
  return otherwise ? *otherwise : Value("");
}
Value f_dictsort(const Value& v, Taking& t) {
  if (!v.dict()) fail_type("dictsort", v, "a dictionary");
  const bool case_sensitive = t.flag_or("case_sensitive", false);
  const std::string by = t.text_or("by", "key");
  const bool reverse = t.flag_or("reverse", false);
  if (by != "key" && by != "value") fail({.what = text("dictsort by ", string_literal(by)), .needs = "key or value"});
  Dict sorted = *v.dict();
  auto of = [&](const auto& m) { return folded(by == "key" ? m.first : m.second, case_sensitive); };
  std::ranges::stable_sort(
      sorted, [&](const auto& a, const auto& b) { return reverse ? less(of(b), of(a)) : less(of(a), of(b)); });
  List out;
  for (auto& [key, value] : sorted) out.emplace_back(Sequence{{key, value}, true});
  return out;
}
Value f_escape(const Value& v, Taking&) { return escaped(to_text(v)); }
Value f_first(const Value& v, Taking&) {
  const List items = elements_of(v);
  return items.empty() ? Value(Undefined{"the first of no items"}) : items.front();
}
Value f_last(const Value& v, Taking&) {
  const List items = elements_of(v);
  return items.empty() ? Value(Undefined{"the last of no items"}) : items.back();
}
Value f_float(const Value& v, Taking& t) {
  const Value* otherwise = t.take("default");
  if (v.is_number()) return v.number();
  const std::string s(v.string() ? trim(*v.string()) : std::string_view());
  double read = 0;
  const auto end = std::from_chars(s.data(), s.data() + s.size(), read);
  if (!s.empty() && end.ec == std::errc() && end.ptr == s.data() + s.size()) return read;
  return otherwise ? *otherwise : Value(0.0);
}
Value f_int(const Value& v, Taking& t) {
  const Value* otherwise = t.take("default");
  const int64_t base = t.integer_or("base", 10);
  if (base < 2 || base > 36) fail({.what = text("int to the base ", base), .needs = "2 to 36"});
  auto whole = [&](double x) -> Value {
    if (!(std::fabs(x) < 9.2e18)) return otherwise ? *otherwise : Value(int64_t{0});
    return static_cast<int64_t>(x);
  };
  if (v.is_integral()) return v.integer();
  if (v.is_float()) return whole(v.number());
  const std::string s(v.string() ? trim(*v.string()) : std::string_view());
  const char *first = s.data() + (s.starts_with("+") ? 1 : 0), *last = s.data() + s.size();
  const char* prefix = base == 16 ? "0x" : base == 8 ? "0o" : base == 2 ? "0b" : "";
  if (*prefix && lower_case(s).starts_with(prefix)) first += 2;
  int64_t read = 0;
  if (auto end = std::from_chars(first, last, read, static_cast<int>(base));
      first != last && end.ec == std::errc() && end.ptr == last)
    return read;
  double real = 0;
  if (auto end = std::from_chars(first, last, real); first != last && end.ec == std::errc() && end.ptr == last)
    return whole(real);
  return otherwise ? *otherwise : Value(int64_t{0});
}
Value f_groupby(const Value& v, Taking& t) {
  const Value path = t.need("attribute");
  const Value* otherwise = t.take("default");
  const bool case_sensitive = t.flag_or("case_sensitive", false);
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : elements_of(v)) {
    Value key = looked_at(item, &path);
    keyed.emplace_back(folded(key.is_undefined() && otherwise ? *otherwise : key, case_sensitive), item);
  }
  std::ranges::stable_sort(keyed, [](const auto& a, const auto& b) { return less(a.first, b.first); });
  List out;
  for (size_t i = 0; i < keyed.size();) {
    List group;
    const Value key = keyed[i].first;
    for (; i < keyed.size() && keyed[i].first == key; ++i) group.push_back(keyed[i].second);
    out.emplace_back(Sequence{{key, group}, true});
  }
  return out;
}
Value f_indent(const Value& v, Taking& t) {
  const std::string s = to_text(v);
  const Value* width = t.take("width");
  const bool first = t.flag_or("first", false), blank = t.flag_or("blank", false);
  if (width && width->is_integral() && (width->integer() < 0 || width->integer() > 10000))
    fail({.what = text("indent by ", width->integer()), .needs = "0 to 10000"});
  const std::string in = !width            ? "    "
                         : width->string() ? *width->string()
                                           : std::string(static_cast<size_t>(width->integer()), ' ');
  std::string out;
  bool is_first = true;
  for (std::string_view line : split(s, '\n')) {
    if (!is_first) out += '\n';
    if (is_first ? first : blank || !line.empty()) out += in;
    out += line;
    is_first = false;
    require_text_size(out.size());
  }
  return out;
}
Value f_items(const Value& v, Taking&) {
  if (v.is_undefined()) return List{};
  if (!v.dict()) fail_type("items", v, "a dictionary");
  List out;
  for (const auto& [key, value] : *v.dict()) out.emplace_back(Sequence{{key, value}, true});
  return out;
}
Value f_join(const Value& v, Taking& t) {
  const std::string between = t.text_or("d", "");
  const Value* path = t.take("attribute");
  std::string out;
  bool first = true;
  for (const Value& item : elements_of(v)) {
    if (!first) out += between;
    first = false;
    out += to_text(looked_at(item, path));
    require_text_size(out.size());
  }
  return out;
}
Value f_length(const Value& v, Taking&) { return length_of(v); }
Value f_list(const Value& v, Taking&) { return elements_of(v); }
Value f_lower(const Value& v, Taking&) { return lowercased(to_text(v)); }
Value f_upper(const Value& v, Taking&) { return uppercased(to_text(v)); }
Value f_replace(const Value& v, Taking& t) {
  Arguments arguments{{t.need("old"), t.need("new")}, {}};
  if (const Value* count = t.take("count"); count && !count->is_none()) arguments.positional.push_back(*count);
  for (Value& a : arguments.positional)
    if (!a.is_integral()) a = to_text(a);
  return attribute_of(to_text(v), "replace").function()->call(arguments);
}
Value f_reverse(const Value& v, Taking&) {
  if (v.string()) {
    std::u32string s = code_points(*v.string());
    std::ranges::reverse(s);
    return utf8(s);
  }
  List items = elements_of(v);
  std::ranges::reverse(items);
  return items;
}
Value f_round(const Value& v, Taking& t) {
  if (!v.is_number()) fail_type("round", v, "a number");
  const int64_t digits = t.integer_or("precision", 0);
  const std::string how = t.text_or("method", "common");
  if (how != "common" && how != "ceil" && how != "floor")
    fail({.what = text("round by ", string_literal(how)), .needs = "common, ceil or floor"});
  if (digits < -300 || digits > 300 || (v.is_integral() && how == "common" && digits >= 0)) return v;
  const double unit = std::pow(10.0, static_cast<double>(digits)), x = v.number();
  if (how == "ceil") return std::ceil(x * unit) / unit;
  if (how == "floor") return std::floor(x * unit) / unit;
  if (digits < 0) return std::nearbyint(x * unit) / unit;
  // Python rounds the decimal digits, ties to even.
  char buffer[512];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, x, std::chars_format::fixed, static_cast<int>(digits));
  double rounded = 0;
  std::from_chars(buffer, end.ptr, rounded);
  return rounded;
}
Value f_same(const Value& v, Taking&) { return v; }
Value f_slice(const Value& v, Taking& t) {
  const int64_t slices = t.integer_or("slices", 0);
  const Value* fill = t.take("fill_with");
  if (slices < 1 || slices > std::ssize(elements_of(v)) + 10000)
    fail({.what = text("a list is cut into ", slices, " slices"), .needs = "one or more, not many more than items"});
  const List items = elements_of(v);
  const int64_t each = std::ssize(items) / slices, longer = std::ssize(items) % slices;
  List out;
  int64_t from = 0;
  for (int64_t i = 0; i < slices; ++i) {
    const int64_t size = each + (i < longer ? 1 : 0);
    List part(items.begin() + from, items.begin() + from + size);
    from += size;
    if (fill && !fill->is_none() && longer > 0 && i >= longer) part.push_back(*fill);
    out.emplace_back(part);
  }
  return out;
}
Value f_sort(const Value& v, Taking& t) {
  const bool reverse = t.flag_or("reverse", false), case_sensitive = t.flag_or("case_sensitive", false);
  const Value* path = t.take("attribute");
  List items = elements_of(v);
  auto of = [&](const Value& item) { return folded(looked_at(item, path), case_sensitive); };
  std::ranges::stable_sort(
      items, [&](const Value& a, const Value& b) { return reverse ? less(of(b), of(a)) : less(of(a), of(b)); });
  return items;
}
Value f_string(const Value& v, Taking&) { return to_text(v); }
Value f_sum(const Value& v, Taking& t) {
  const Value* path = t.take("attribute");
  const Value* start = t.take("start");
  if (start && start->list()) {  // lists, one behind the other
    List all = *start->list();
    for (const Value& item : elements_of(v)) {
      const Value x = looked_at(item, path);
      if (!x.list()) fail_type("sum", x, "lists, as its start is one");
      all.insert(all.end(), x.list()->begin(), x.list()->end());
    }
    return all;
  }
  if (start && !start->is_number()) fail_type("sum", *start, "a number or a list to start with");
  double real = start ? start->number() : 0;
  int64_t whole = start && start->is_integral() ? start->integer() : 0;
  bool is_float = start && start->is_float();
  for (const Value& item : elements_of(v)) {
    const Value x = looked_at(item, path);
    if (!x.is_number()) fail_type("sum", x, "numbers");
    is_float |= x.is_float();
    real += x.number();
    if (x.is_integral() && __builtin_add_overflow(whole, x.integer(), &whole))
      fail({.what = "a sum is too large", .needs = "integers of 64 bits"});
  }
  return is_float ? Value(real) : Value(whole);
}
Value f_title(const Value& v, Taking&) { return titled(to_text(v)); }
Value f_tojson(const Value& v, Taking& t) {
  // As Transformers defines it: ensure_ascii, indent, separators, sort_keys.
  const Value* ascii = t.take("ensure_ascii");
  const Value* indent = t.take("indent");
  const Value* separators = t.take("separators");
  const bool sorted = t.flag_or("sort_keys", false);
  if (ascii && ascii->is_true())
    fail({.what = "tojson is asked for ensure_ascii", .needs = "ensure_ascii=False, or none"});
  if (separators && !separators->is_none()) fail({.what = "tojson is asked for other separators", .needs = "none"});
  const bool has_indent = indent && !indent->is_none();
  if (has_indent && (!indent->is_integral() || indent->integer() < 0 || indent->integer() > 100))
    fail({.what = text("tojson is asked for an indent of ", to_text(*indent)), .needs = "0 to 100"});
  return to_json(v, has_indent ? static_cast<int>(indent->integer()) : -1, sorted);
}
Value f_trim(const Value& v, Taking& t) {
  Arguments arguments;
  if (const Value* chars = t.take("chars"); chars && !chars->is_none()) arguments.positional.push_back(*chars);
  return attribute_of(to_text(v), "strip").function()->call(arguments);
}
Value f_unique(const Value& v, Taking& t) {
  const bool case_sensitive = t.flag_or("case_sensitive", false);
  const Value* path = t.take("attribute");
  List out, seen;
  for (const Value& item : elements_of(v)) {
    const Value key = folded(looked_at(item, path), case_sensitive);
    if (std::ranges::find(seen, key) != seen.end()) continue;
    seen.push_back(key);
    out.push_back(item);
  }
  return out;
}
Value f_wordcount(const Value& v, Taking&) {
  Arguments none;
  return length_of(attribute_of(to_text(v), "split").function()->call(none));
}
Value extreme(const Value& v, Taking& t, bool largest) {
  const bool case_sensitive = t.flag_or("case_sensitive", false);
  const Value* path = t.take("attribute");
  const List items = elements_of(v);
  if (items.empty()) return Undefined{"the extreme of no items"};
  auto of = [&](const Value& item) { return folded(looked_at(item, path), case_sensitive); };
  Value best = items.front();
  for (const Value& item : items)
    if (largest ? less(of(best), of(item)) : less(of(item), of(best))) best = item;
  return best;
}
Value f_max(const Value& v, Taking& t) { return extreme(v, t, true); }
Value f_min(const Value& v, Taking& t) { return extreme(v, t, false); }

struct FilterRow {
  std::string_view name;
  Filter apply;
};
constexpr FilterRow kFilters[] = {
    {"abs", f_abs},           {"attr", f_attr},          {"batch", f_batch},   {"capitalize", f_capitalize},
    {"center", f_center},     {"count", f_length},       {"d", f_default},     {"default", f_default},
    {"dictsort", f_dictsort}, {"e", f_escape},           {"escape", f_escape}, {"first", f_first},
    {"float", f_float},       {"groupby", f_groupby},    {"indent", f_indent}, {"int", f_int},
    {"items", f_items},       {"join", f_join},          {"last", f_last},     {"length", f_length},
    {"list", f_list},         {"lower", f_lower},        {"max", f_max},       {"min", f_min},
    {"replace", f_replace},   {"reverse", f_reverse},    {"round", f_round},   {"safe", f_same},
    {"slice", f_slice},       {"sort", f_sort},          {"string", f_string}, {"sum", f_sum},
    {"title", f_title},       {"tojson", f_tojson},      {"trim", f_trim},     {"unique", f_unique},
    {"upper", f_upper},       {"wordcount", f_wordcount}};

/// select, reject, selectattr, rejectattr: items for which a test holds, or that are true.
Value chosen(const Value& v, Arguments& arguments, bool by_attribute, bool wanted) {
  List rest = arguments.positional;
  auto next = [&] {
    Value first = rest.front();
    rest.erase(rest.begin());
    return first;
  };
  std::optional<Value> path;
  if (by_attribute) {
    if (rest.empty()) fail({.what = "selectattr or rejectattr is called without an attribute", .needs = "its name"});
    path = next();
  }
  std::string test;
  if (!rest.empty()) test = to_text(next());
  List out;
  for (const Value& item : elements_of(v)) {
    const Value x = looked_at(item, path ? &*path : nullptr);
    Arguments own{rest, arguments.named};
    if ((test.empty() ? x.is_true() : tested(test, x, own)) == wanted) out.push_back(item);
  }
  return out;
}

Value mapped(const Value& v, Arguments& arguments) {
  List out;
  const Value* path = nullptr;
  const Value* otherwise = nullptr;
  for (const auto& [name, value] : arguments.named) {
    if (name == "attribute") path = &value;
    if (name == "default") otherwise = &value;
  }
  if (arguments.positional.empty() && !path)
    fail({.what = "map is called without a filter or an attribute", .needs = "one of the two"});
  for (const Value& item : elements_of(v)) {
    if (path) {
      Value x = looked_at(item, path);
      out.push_back(x.is_undefined() && otherwise ? *otherwise : x);
      continue;
    }
    Arguments own{{arguments.positional.begin() + 1, arguments.positional.end()}, arguments.named};
    out.push_back(filtered(to_text(arguments.positional.front()), item, own));
  }
  return out;
}

}  // namespace

Value filtered(const std::string& name, const Value& v, Arguments& arguments) {
  if (name == "map") return mapped(v, arguments);
  if (name == "select" || name == "reject") return chosen(v, arguments, false, name == "select");
  if (name == "selectattr" || name == "rejectattr") return chosen(v, arguments, true, name == "selectattr");
  std::vector<std::string> known = {"map", "select", "reject", "selectattr", "rejectattr"};
  for (const FilterRow& row : kFilters) {
    if (row.name != name) {
      known.emplace_back(row.name);
      continue;
    }
    Taking taking(name, arguments);
    Value out = row.apply(v, taking);
    taking.end();
    return out;
  }
  fail({.what = text("there is no filter ", string_literal(name)), .needs = text("one of ", join(known, ", "))});
}

}  // namespace sator::jinja
