// The filters of lists and dictionaries of Jinja 3.1.
#include <algorithm>

#include "base/error.h"
#include "engine/jinja/filters.h"
#include "engine/jinja/operators.h"
#include "engine/jinja/python_text.h"

namespace sator::jinja {

namespace {

/// The steps of a path: "function.name" has two, "0" is a number. None is no step.
List steps_of(const Value& path) {
  if (path.is_none()) return {};
  if (!path.string()) return {path};
  List out;
  for (std::string_view part : split(*path.string(), '.')) {
    const std::u32string all = code_points(part);
    const bool counts = !all.empty() && std::ranges::all_of(all, is_digit);
    Arguments none;
    out.push_back(counts ? filtered("int", std::string(part), none) : Value(std::string(part)));
  }
  return out;
}

/// What `map`, `sort` and others look at: a member by its path, and the value where that is not there.
class Look {
 public:
  Look() = default;
  explicit Look(const Value& path, const Value* otherwise = nullptr) : steps_(steps_of(path)) {
    if (otherwise && !otherwise->is_none()) otherwise_ = *otherwise;
  }
  /// The next argument, "attribute"; without it, the value itself.
  static Look taken(Taking& t) {
    const Value* path = t.take("attribute");
    return path ? Look(*path) : Look();
  }
  Value operator()(Value at) const {
    for (const Value& step : steps_) {
      at = item_of(at, step);
      if (at.is_undefined() && otherwise_) at = *otherwise_;
    }
    return at;
  }

 private:
  List steps_;
  std::optional<Value> otherwise_;
};

/// Texts in small letters unless their case matters.
Value folded(const Value& v, bool case_sensitive) {
  return v.string() && !case_sensitive ? Value(lower(*v.string())) : v;
}

/// The items in the order of their keys.
List sorted(const List& items, bool reverse, const std::function<Value(const Value&)>& key_of) {
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : items) keyed.emplace_back(key_of(item), item);
  std::ranges::stable_sort(
      keyed, [&](const auto& a, const auto& b) { return reverse ? less(b.first, a.first) : less(a.first, b.first); });
  List out;
  for (auto& [key, item] : keyed) out.push_back(std::move(item));
  return out;
}

List pairs_of(const Dict& dict) {
  List out;
  for (const auto& [key, value] : dict) out.push_back(tuple_of({key, value}));
  return out;
}

Value f_batch(const Value& v, Taking& t) {
  const int64_t size = t.need_integer("linecount");
  const Value* given = t.take_some("fill_with");
  if (size < 1) fail({.what = text("batch is asked for ", size, " items a line"), .needs = "one or more"});
  return generator(tuple_of({v, given ? *given : Value()}),
                   [v, size, fill = given ? std::optional(*given) : std::nullopt] {
                     List out, line;
                     for (const Value& item : elements_of(v)) {
                       line.push_back(item);
                       if (std::ssize(line) == size) out.emplace_back(std::exchange(line, {}));
                     }
                     if (line.empty()) return out;
                     if (fill) {
                       require_items(static_cast<size_t>(size));
                       line.resize(static_cast<size_t>(size), *fill);
                     }
                     out.emplace_back(line);
                     return out;
                   });
}
Value f_dictsort(const Value& v, Taking& t) {
  if (!v.dict()) fail_type("dictsort", v, "a dictionary");
  const bool case_sensitive = t.flag_or("case_sensitive", false);
  const std::string by = t.text_or("by", "key");
  const bool reverse = t.flag_or("reverse", false);
  if (by != "key" && by != "value") fail({.what = text("dictsort by ", string_literal(by)), .needs = "key or value"});
  const size_t at = by == "key" ? 0 : 1;
  return sorted(
      pairs_of(*v.dict()), reverse, [&](const Value& pair) { return folded((*pair.items())[at], case_sensitive); });
}
Value f_first(const Value& v, Taking&) { return each_of(v)().value_or(Undefined{"the first of no items"}); }
Value f_last(const Value& v, Taking&) {
  if (v.iterator()) fail_type("last", v, "a list; | list makes one");
  const List items = elements_of(v);
  return items.empty() ? Value(Undefined{"the last of no items"}) : items.back();
}
Value f_groupby(const Value& v, Taking& t) {
  const Value& path = t.need("attribute");
  const Look look(path, t.take("default"));
  const bool case_sensitive = t.flag_or("case_sensitive", false);
  auto key_of = [&](const Value& item) { return folded(look(item), case_sensitive); };
  const List items = sorted(elements_of(v), false, key_of);
  List out;
  for (size_t i = 0; i < items.size();) {
    List group;
    const Value grouper = look(items[i]), key = key_of(items[i]);
    for (; i < items.size() && key_of(items[i]) == key; ++i) group.push_back(items[i]);
    out.emplace_back(Sequence{.items = {grouper, group}, .kind = SequenceKind::group});
  }
  return out;
}
Value f_items(const Value& v, Taking&) {
  return generator(v, [v] {
    if (v.is_undefined()) return List{};
    if (!v.dict()) fail_type("items", v, "a dictionary");
    return pairs_of(*v.dict());
  });
}
Value f_join(const Value& v, Taking& t) {
  const Value* given = t.take("d");
  const std::string between = given ? to_text(*given) : "";
  const Look look = Look::taken(t);
  std::string out;
  bool first = true;
  for (const Value& item : elements_of(v)) {
    if (!first) out += between;
    first = false;
    out += to_text(look(item));
    require_text_size(out.size());
  }
  return out;
}
Value f_list(const Value& v, Taking&) { return elements_of(v); }
Value f_reverse(const Value& v, Taking&) {
  if (v.string()) {
    std::u32string s = code_points(*v.string());
    std::ranges::reverse(s);
    return utf8(s);
  }
  List items = elements_of(v);
  std::ranges::reverse(items);
  return v.iterator() ? Value(items) : generator(v, [items] { return items; });
}
Value f_slice(const Value& v, Taking& t) {
  const int64_t slices = t.need_integer("slices");
  const Value* given = t.take_some("fill_with");
  return generator(tuple_of({v, given ? *given : Value()}),
                   [v, slices, fill = given ? std::optional(*given) : std::nullopt] {
                     const List items = elements_of(v);
                     if (slices == 0 || slices > std::ssize(items) + 10000)
                       fail({.what = text("a list is cut into ", slices, " slices"),
                             .needs = "one or more, not many more than items"});
                     const int64_t each = std::ssize(items) / slices, longer = std::ssize(items) % slices;
                     List out;
                     int64_t from = 0;
                     for (int64_t i = 0; i < slices; ++i) {
                       const int64_t size = each + (i < longer ? 1 : 0);
                       List part(items.begin() + from, items.begin() + from + size);
                       from += size;
                       if (fill && i >= longer) part.push_back(*fill);
                       out.emplace_back(part);
                     }
                     return out;
                   });
}
/// By one attribute, or by several with commas between them.
Value f_sort(const Value& v, Taking& t) {
  const bool reverse = t.flag_or("reverse", false), case_sensitive = t.flag_or("case_sensitive", false);
  const Value* path = t.take_some("attribute");
  std::vector<Look> looks;
  if (path && path->string())
    for (std::string_view one : split(*path->string(), ',')) looks.emplace_back(Value(std::string(one)));
  else
    looks.push_back(path ? Look(*path) : Look());
  return sorted(elements_of(v), reverse, [&](const Value& item) {
    List keys;
    for (const Look& look : looks) keys.push_back(folded(look(item), case_sensitive));
    return Value(keys);
  });
}
Value f_sum(const Value& v, Taking& t) {
  const Look look = Look::taken(t);
  const Value* start = t.take("start");
  if (start && start->string()) fail_type("sum", *start, "a number or a list to start with");
  Value sum = start ? *start : Value(int64_t{0});
  for (const Value& item : elements_of(v)) sum = binary("+", sum, look(item));
  return sum;
}
Value f_unique(const Value& v, Taking& t) {
  const bool case_sensitive = t.flag_or("case_sensitive", false);
  const Value* path = t.take("attribute");
  return generator(tuple_of({v, path ? *path : Value()}), [v, look = path ? Look(*path) : Look(), case_sensitive] {
    List out, seen;
    for (const Value& item : elements_of(v)) {
      const Value key = folded(look(item), case_sensitive);
      require_hashable(key);
      if (std::ranges::find(seen, key) != seen.end()) continue;
      seen.push_back(key);
      out.push_back(item);
    }
    return out;
  });
}
Value extreme(const Value& v, Taking& t, bool largest) {
  const bool case_sensitive = t.flag_or("case_sensitive", false);
  const Look look = Look::taken(t);
  const List items = elements_of(v);
  if (items.empty()) return Undefined{"the extreme of no items"};
  auto key_of = [&](const Value& item) { return folded(look(item), case_sensitive); };
  Value best = items.front(), key = key_of(best);
  for (size_t i = 1; i < items.size(); ++i) {
    Value other = key_of(items[i]);
    if (largest ? less(key, other) : less(other, key)) best = items[i], key = std::move(other);
  }
  return best;
}
Value f_max(const Value& v, Taking& t) { return extreme(v, t, true); }
Value f_min(const Value& v, Taking& t) { return extreme(v, t, false); }

/// The arguments that are left, for the filter or test of each item.
Arguments rest_of(Taking& t) {
  Arguments out{t.rest(), {}};
  for (const auto& [name, value] : t.rest_named()) out.named.emplace_back(*name.string(), value);
  return out;
}
/// The values that a generator keeps.
Value kept(const Value& v, const Arguments& given) {
  List all = {v, given.positional};
  for (const auto& [name, value] : given.named) all.push_back(value);
  return all;
}
List without_first(const List& items, size_t count) {
  return {items.begin() + static_cast<ptrdiff_t>(std::min(count, items.size())), items.end()};
}

/// select, reject, selectattr, rejectattr: items for which a test holds, or that are true. Of what is false there are none, whatever it is.
Value chosen(const Value& v, Taking& t, bool by_attribute, bool wanted) {
  const Arguments arguments = rest_of(t);
  return generator(kept(v, arguments), [v, by_attribute, wanted, arguments] {
    const List& given = arguments.positional;
    List out;
    if (!v.is_true()) return out;
    if (by_attribute && given.empty())
      fail({.what = "selectattr or rejectattr is called without an attribute", .needs = "its name"});
    const Look look = by_attribute ? Look(given[0]) : Look();
    const size_t test = by_attribute ? 1 : 0;
    for (const Value& item : elements_of(v)) {
      const Value x = look(item);
      Arguments own{without_first(given, test + 1), arguments.named};
      if ((test < given.size() ? tested(to_text(given[test]), x, own) : x.is_true()) == wanted) out.push_back(item);
    }
    return out;
  });
}
Value f_select(const Value& v, Taking& t) { return chosen(v, t, false, true); }
Value f_reject(const Value& v, Taking& t) { return chosen(v, t, false, false); }
Value f_selectattr(const Value& v, Taking& t) { return chosen(v, t, true, true); }
Value f_rejectattr(const Value& v, Taking& t) { return chosen(v, t, true, false); }

List mapped(const Value& v, const Arguments& all) {
  List out;
  if (!v.is_true()) return out;
  const List& given = all.positional;
  Arguments named{{}, all.named};
  Taking t("map", named);
  if (const Value* path = given.empty() ? t.take_named("attribute") : nullptr) {
    const Look look(*path, t.take_named("default"));
    t.end();
    for (const Value& item : elements_of(v)) out.push_back(look(item));
    return out;
  }
  if (given.empty()) fail({.what = "map is called without a filter or an attribute", .needs = "one of the two"});
  for (const Value& item : elements_of(v)) {
    Arguments own{without_first(given, 1), all.named};
    out.push_back(filtered(to_text(given[0]), item, own));
  }
  return out;
}
Value f_map(const Value& v, Taking& t) {
  const Arguments arguments = rest_of(t);
  return generator(kept(v, arguments), [v, arguments] { return mapped(v, arguments); });
}

constexpr FilterRow kListFilters[] = {{"batch", f_batch},
                                      {"dictsort", f_dictsort},
                                      {"first", f_first},
                                      {"groupby", f_groupby},
                                      {"items", f_items},
                                      {"join", f_join},
                                      {"last", f_last},
                                      {"list", f_list},
                                      {"map", f_map},
                                      {"max", f_max},
                                      {"min", f_min},
                                      {"reject", f_reject},
                                      {"rejectattr", f_rejectattr},
                                      {"reverse", f_reverse},
                                      {"select", f_select},
                                      {"selectattr", f_selectattr},
                                      {"slice", f_slice},
                                      {"sort", f_sort},
                                      {"sum", f_sum},
                                      {"unique", f_unique}};

}  // namespace

std::span<const FilterRow> list_filters() { return kListFilters; }

}  // namespace sator::jinja
