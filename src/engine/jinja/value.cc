#include "engine/jinja/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/jinja/python_text.h"
#include "engine/tokenizer/unicode.h"

namespace sator::jinja {

namespace {

std::string repr_of(const std::string& s) {
  const char quote = s.find('\'') != s.npos && s.find('"') == s.npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t i = 0; i < s.size();) {
    const char32_t c = next_char(s, i);
    if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\\' || c == static_cast<char32_t>(quote))
      out += {'\\', static_cast<char>(c)};
    else if (is_printable(c))
      append_char(out, c);
    else {
      char hex[12];
      std::snprintf(hex,
                    sizeof hex,
                    c < 0x100     ? "\\x%02x"
                    : c < 0x10000 ? "\\u%04x"
                                  : "\\U%08x",
                    static_cast<unsigned>(c));
      out += hex;
    }
  }
  return out + quote;
}

/// "name(items)"; of Python's own brackets the name is empty.
std::string sequence_text(const Sequence& s, int depth) {
  if (s.kind == SequenceKind::range)
    return text("range(", s.bounds[0], ", ", s.bounds[1], s.bounds[2] == 1 ? "" : text(", ", s.bounds[2]), ")");
  std::vector<std::string> parts;
  for (const Value& item : s.items) parts.push_back(to_repr(item, depth));
  const std::string all = join(parts, ", ");
  switch (s.kind) {
    case SequenceKind::tuple:
    case SequenceKind::group: return text("(", all, parts.size() == 1 ? ",)" : ")");
    case SequenceKind::keys: return text("dict_keys([", all, "])");
    case SequenceKind::values: return text("dict_values([", all, "])");
    case SequenceKind::items: return text("dict_items([", all, "])");
    default: return text("[", all, "]");
  }
}

/// A set's equality.
bool equal_views(const List& a, const List& b) {
  return a.size() == b.size() &&
         std::ranges::all_of(a, [&](const Value& x) { return std::ranges::find(b, x) != b.end(); });
}

bool equal_sequences(const Value& a, const Value& b) {
  if (a.is_tuple() && b.is_tuple()) return *a.items() == *b.items();
  if (a.sequence()->kind != b.sequence()->kind) return false;
  switch (a.sequence()->kind) {
    case SequenceKind::keys:
    case SequenceKind::items: return equal_views(*a.items(), *b.items());
    case SequenceKind::values: return a.is_same(b);
    default: return *a.items() == *b.items();
  }
}

}  // namespace

int depth_around(const Value& value) {
  constexpr int kMaxDepth = 500;
  if (value.depth() >= kMaxDepth)
    fail({.what = "too many values that hold each other", .needs = text("at most ", kMaxDepth, " levels")});
  return value.depth() + 1;
}

int Value::depth() const {
  if (object()) return object()->depth;
  if (iterator()) return iterator()->depth;
  return function() ? function()->depth : depth_;
}

Value::Value(Sequence s) : depth_(1) {
  for (const Value& item : s.items) depth_ = std::max(depth_, depth_around(item));
  data_ = std::make_shared<const Sequence>(std::move(s));
}
Value::Value(Dict members) : depth_(1) {
  for (const auto& [key, value] : members) depth_ = std::max({depth_, depth_around(key), depth_around(value)});
  data_ = std::make_shared<const Dict>(std::move(members));
}

Value Value::of(const nlohmann::ordered_json& tree) {
  if (tree.is_boolean()) return tree.get<bool>();
  if (tree.is_number_unsigned() && tree.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    fail({.what = text("a variable of the template is ", tree.get<uint64_t>()), .needs = "integers of 64 bits"});
  if (tree.is_number_integer()) return tree.get<int64_t>();
  if (tree.is_number()) return tree.get<double>();
  if (tree.is_string()) return tree.get<std::string>();
  if (tree.is_array()) {
    List items;
    for (const auto& item : tree) items.push_back(of(item));
    return items;
  }
  if (tree.is_object()) {
    Dict members;
    for (const auto& [name, value] : tree.items()) members.emplace_back(name, of(value));
    return members;
  }
  return {};
}

bool Value::is_true() const {
  if (is_undefined() || is_none()) return false;
  if (is_number()) return number() != 0;
  if (string()) return !string()->empty();
  if (items()) return !items()->empty();
  return dict() ? !dict()->empty() : true;
}

std::string Value::type() const {
  static const char* const kNames[] = {"undefined", "NoneType", "bool", "int", "float", "str", "", "dict", "generator"};
  static const char* const kSequences[] = {"list", "tuple", "tuple", "range", "dict_keys", "dict_values", "dict_items"};
  if (sequence()) return kSequences[static_cast<size_t>(sequence()->kind)];
  if (object()) return object()->type;
  return function() ? "function" : kNames[data_.index()];
}

bool Value::is_same(const Value& other) const {
  if (data_.index() != other.data_.index()) return false;
  if (auto a = std::get_if<std::shared_ptr<const Sequence>>(&data_))
    return *a == std::get<std::shared_ptr<const Sequence>>(other.data_);
  if (auto a = std::get_if<std::shared_ptr<const Dict>>(&data_))
    return *a == std::get<std::shared_ptr<const Dict>>(other.data_);
  if (iterator()) return iterator() == other.iterator();
  if (object()) return object() == other.object();
  if (function()) return function() == other.function();
  return *this == other;
}

const Value* find(const Dict& dict, const Value& key) {
  for (const auto& [name, value] : dict)
    if (name == key) return &value;
  return nullptr;
}

bool operator==(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number())
    return a.is_integral() && b.is_integral() ? a.integer() == b.integer() : a.number() == b.number();
  if (a.string() && b.string()) return *a.string() == *b.string();
  if (a.sequence() && b.sequence()) return equal_sequences(a, b);
  if (a.dict() && b.dict())
    return a.dict()->size() == b.dict()->size() && std::ranges::all_of(*a.dict(), [&](const auto& member) {
             const Value* other = find(*b.dict(), member.first);
             return other && *other == member.second;
           });
  if (a.is_none() || a.is_undefined()) return a.type() == b.type();
  return (a.iterator() || a.object() || a.function()) && a.is_same(b);
}

bool less(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number())
    return a.is_integral() && b.is_integral() ? a.integer() < b.integer() : a.number() < b.number();
  // The order of UTF-8's bytes is that of its code points.
  if (a.string() && b.string()) return *a.string() < *b.string();
  if ((a.is_list() && b.is_list()) || (a.is_tuple() && b.is_tuple())) {
    const auto [x, y] = std::ranges::mismatch(*a.items(), *b.items());
    return y != b.items()->end() && (x == a.items()->end() || less(*x, *y));
  }
  fail({.what = text("values of types ", a.type(), " and ", b.type(), " have no order"),
        .needs = "two numbers, texts or lists"});
}

bool less_or_equal(const Value& a, const Value& b) { return less(a, b) || a == b; }

void require_hashable(const Value& key) {
  if (key.dict() || key.is_list() || key.is(SequenceKind::keys) || key.is(SequenceKind::items))
    fail({.what = text("a ", key.type(), " is the key of a dictionary"), .needs = "texts, numbers or tuples"});
  if (key.is_tuple()) std::ranges::for_each(*key.items(), require_hashable);
}

void put(Dict& dict, const Value& key, const Value& value) {
  require_hashable(key);
  auto at = std::ranges::find(dict, key, &Dict::value_type::first);
  if (at == dict.end())
    dict.emplace_back(key, value);
  else
    at->second = value;
}

std::string float_text(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  const double size = std::fabs(v);
  const bool scientific = v != 0 && (size >= 1e16 || size < 1e-4);
  char buffer[64];
  const auto end = std::to_chars(
      buffer, buffer + sizeof buffer, v, scientific ? std::chars_format::scientific : std::chars_format::fixed);
  std::string out(buffer, end.ptr);
  if (!scientific && out.find('.') == out.npos) out += ".0";
  return out;
}

std::string to_text(const Value& v) {
  if (v.is_undefined()) return "";
  return v.string() ? *v.string() : to_repr(v);
}

std::string to_repr(const Value& v, int depth) {
  constexpr int kMaxDepth = 500;
  if (++depth > kMaxDepth)
    fail({.what = "a value that holds too many others in each other", .needs = text("at most ", kMaxDepth, " levels")});
  if (v.is_undefined()) return "Undefined";
  if (v.is_none()) return "None";
  if (v.is_bool()) return v.is_true() ? "True" : "False";
  if (v.is_int()) return text(v.integer());
  if (v.is_float()) return float_text(v.number());
  if (v.string()) return repr_of(*v.string());
  if (v.sequence()) return sequence_text(*v.sequence(), depth);
  if (const Dict* members = v.dict()) {
    std::vector<std::string> parts;
    for (const auto& [name, value] : *members) parts.push_back(to_repr(name, depth) + ": " + to_repr(value, depth));
    return text("{", join(parts, ", "), "}");
  }
  if (v.object() && v.object()->repr) return v.object()->repr(depth);
  fail({.what = text("a ", v.type(), " is printed"),
        .needs = "values whose text is not an address in memory",
        .hint = v.iterator() ? "make a list of it: | list" : "call it"});
}

}  // namespace sator::jinja
