// What `.` and `[]` give: members, items, and the attributes of Python's types.
#include <algorithm>

#include "base/error.h"
#include "engine/jinja/builtins.h"
#include "engine/jinja/python_text.h"

namespace sator::jinja {

namespace {

using Attribute = std::optional<Value>;

Value view_of(const Dict& dict, SequenceKind kind) {
  Sequence out{.items = {}, .kind = kind};
  for (const auto& [key, value] : dict)
    out.items.push_back(kind == SequenceKind::keys     ? key
                        : kind == SequenceKind::values ? value
                                                       : tuple_of({key, value}));
  return out;
}

Attribute of_dict(const Value& v, const std::string& name) {
  auto view = [&](SequenceKind kind) {
    return method(name, [v, kind](Taking&) { return view_of(*v.dict(), kind); }, v);
  };
  if (name == "items") return view(SequenceKind::items);
  if (name == "keys") return view(SequenceKind::keys);
  if (name == "values") return view(SequenceKind::values);
  if (name == "copy") return method(name, [v](Taking&) { return v; }, v);
  if (name != "get") return {};
  return method(
      name,
      [v](Taking& t) {
        const Value& key = t.need("key");
        require_hashable(key);
        const Value* otherwise = t.take("default");
        const Value* found = find(*v.dict(), key);
        return found ? *found : otherwise ? *otherwise : Value();
      },
      v);
}

Attribute of_sequence(const Value& v, const std::string& name) {
  const SequenceKind kind = v.sequence()->kind;
  if (kind == SequenceKind::keys || kind == SequenceKind::values || kind == SequenceKind::items) return {};
  const List& items = *v.items();
  if (kind == SequenceKind::group && name == "grouper") return items[0];
  if (kind == SequenceKind::group && name == "list") return items[1];
  static constexpr std::string_view kBounds[] = {"start", "stop", "step"};
  if (const auto at = std::ranges::find(kBounds, name); kind == SequenceKind::range && at != std::end(kBounds))
    return v.sequence()->bounds[static_cast<size_t>(at - kBounds)];
  if (name == "copy" && kind == SequenceKind::list) return method(name, [v](Taking&) { return v; }, v);
  if (name == "count")
    return method(name, [v](Taking& t) { return Value(std::ranges::count(*v.items(), t.need("value"))); }, v);
  if (name != "index") return {};
  return method(
      name,
      [v](Taking& t) {
        const List& items = *v.items();
        const int64_t size = std::ssize(items);
        const Value& value = t.need("value");
        auto bound = [&](const char* name, int64_t otherwise) {
          const int64_t at = t.integer_or(name, otherwise);
          return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
        };
        const int64_t from = bound("start", 0), to = std::max(bound("stop", size), from);
        const auto end = items.begin() + to, at = std::find(items.begin() + from, end, value);
        if (at == end) fail({.what = "index: the list does not hold that item", .needs = "an item of it"});
        return Value(at - items.begin());
      },
      v);
}

/// What Python's types have, and templates are not given: silence would be another text.
struct RefusedRow {
  std::initializer_list<std::string_view> types, names;
};
const RefusedRow kRefusedAttributes[] = {
    {{"str"}, {"encode", "format", "format_map", "isidentifier", "maketrans", "translate"}},
    {{"int", "bool"},
     {"real",
      "imag",
      "numerator",
      "denominator",
      "conjugate",
      "bit_length",
      "bit_count",
      "as_integer_ratio",
      "to_bytes",
      "from_bytes"}},
    {{"float"}, {"real", "imag", "conjugate", "as_integer_ratio", "is_integer", "hex", "fromhex"}},
    {{"dict", "function"}, {"fromkeys"}},
    {{"dict_keys", "dict_items"}, {"isdisjoint", "mapping"}},
    {{"dict_values"}, {"mapping"}}};
bool has(const auto& names, std::string_view name) { return std::ranges::find(names, name) != std::end(names); }
void require_supported(const std::string& type, const std::string& name) {
  for (const RefusedRow& row : kRefusedAttributes)
    if (has(row.types, type) && has(row.names, name))
      fail({.what = text(name, " of a ", type, " is not supported"), .needs = "what docs/chat.md names"});
}

/// Those methods change a value, which templates must not do: Jinja gives something undefined for them.
bool changes(const Value& v, const std::string& name) {
  static constexpr std::string_view kOfLists[] = {
      "append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"};
  static constexpr std::string_view kOfDicts[] = {"clear", "pop", "popitem", "setdefault", "update"};
  return (v.is_list() && has(kOfLists, name)) || (v.dict() && has(kOfDicts, name));
}

}  // namespace

std::optional<Value> own_attribute(const Value& v, const std::string& name) {
  if (const Object* o = v.object()) {
    if (auto at = o->computed.find(name); at != o->computed.end()) return at->second();
    const Value* member = find(o->members, name);
    return member ? Attribute(*member) : std::nullopt;
  }
  if (changes(v, name)) return Undefined{text(name, ", which changes a ", v.type(), ",")};
  require_supported(v.type(), name);
  return v.string()  ? text_method(*v.string(), name)
         : v.dict()  ? of_dict(v, name)
         : v.items() ? of_sequence(v, name)
                     : Attribute();
}

Value attribute_of(const Value& v, const std::string& name) {
  if (const Undefined* u = v.undefined())
    fail({.what = text(u->name, " is undefined, and has no member ", name), .needs = "a value"});
  if (std::optional<Value> found = own_attribute(v, name)) return *found;
  const Value* member = v.dict() ? find(*v.dict(), name) : nullptr;
  return member ? *member : Value(Undefined{name});
}

Value item_of(const Value& v, const Value& key) {
  if (const Undefined* u = v.undefined())
    fail({.what = text(u->name, " is undefined, and has no item ", to_repr(key)), .needs = "a value"});
  const Value* member = v.dict() ? find(*v.dict(), key) : nullptr;
  if (member) return *member;
  const bool counts = v.string() || v.is_list() || v.is_tuple() || v.is(SequenceKind::range);
  if (key.is_integral() && counts) {
    const int64_t size = length_of(v), at = key.integer() < 0 ? key.integer() + size : key.integer();
    if (at < 0 || at >= size) return Undefined{text("item ", key.integer())};
    if (v.items()) return (*v.items())[static_cast<size_t>(at)];
    return utf8(std::u32string_view(code_points(*v.string())).substr(static_cast<size_t>(at), 1));
  }
  return key.string() ? attribute_of(v, *key.string()) : Value(Undefined{"the item"});
}

}  // namespace sator::jinja
