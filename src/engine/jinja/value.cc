#include "engine/jinja/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/tokenizer/unicode.h"

namespace sator::jinja {

namespace {

/// repr(float): the shortest digits that read back, with an exponent from 1e16 on and below 1e-4.
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

std::string repr_of(const std::string& s) {
  const char quote = s.find('\'') != s.npos && s.find('"') == s.npos ? '"' : '\'';
  std::string out(1, quote);
  for (char c : s) {
    if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\\' || c == quote)
      out += {'\\', c};
    else if (const auto u = static_cast<unsigned char>(c); u < 0x20 || u == 0x7f) {
      char hex[8];
      std::snprintf(hex, sizeof hex, "\\x%02x", u);
      out += hex;
    } else
      out += c;
  }
  return out + quote;
}

class JsonWriter {
 public:
  JsonWriter(int indent, bool sort_keys) : indent_(indent), sort_keys_(sort_keys) {}

  void write(const Value& v, int depth) {
    if (const Dict* d = v.dict()) return write_members(*d, depth);
    if (const List* l = v.list()) return write_items(*l, depth);
    if (v.string())
      out += quoted(*v.string());
    else if (v.is_none())
      out += "null";
    else if (v.is_bool())
      out += v.is_true() ? "true" : "false";
    else if (v.is_int())
      out += text(v.integer());
    else if (v.is_float())
      out += std::isnan(v.number())   ? "NaN"
             : std::isinf(v.number()) ? (v.number() > 0 ? "Infinity" : "-Infinity")
                                      : float_text(v.number());
    else
      fail(
          {.what = text("a value of type ", v.type(), " has no JSON"), .needs = "texts, numbers, lists, dictionaries"});
  }

  std::string out;

 private:
  static std::string quoted(const std::string& s) {
    return nlohmann::json(s).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  void line(int depth) {
    if (indent_ >= 0) out += "\n" + std::string(static_cast<size_t>(indent_ * depth), ' ');
  }
  template <class Items, class Write>
  void write_all(const Items& items, char open, char close, int depth, Write write_one) {
    out += open;
    bool first = true;
    for (const auto& item : items) {
      if (!first) out += indent_ >= 0 ? "," : ", ";
      first = false;
      line(depth + 1);
      write_one(item);
    }
    if (!first) line(depth);
    out += close;
  }
  void write_items(const List& items, int depth) {
    write_all(items, '[', ']', depth, [&](const Value& v) { write(v, depth + 1); });
  }
  void write_members(Dict members, int depth) {
    auto key_of = [](const Value& key) {
      if (key.string()) return *key.string();
      if (key.is_bool()) return std::string(key.is_true() ? "true" : "false");
      if (key.is_none()) return std::string("null");
      if (key.is_number()) return to_text(key);
      fail({.what = text("a dictionary has a key of type ", key.type()), .needs = "texts or numbers as keys of JSON"});
    };
    if (sort_keys_)
      std::ranges::stable_sort(members, [&](const auto& a, const auto& b) { return less(a.first, b.first); });
    write_all(members, '{', '}', depth, [&](const auto& m) {
      out += quoted(key_of(m.first)) + ": ";
      write(m.second, depth + 1);
    });
  }

  int indent_;
  bool sort_keys_;
};

}  // namespace

Value Value::of(const nlohmann::ordered_json& tree) {
  if (tree.is_boolean()) return tree.get<bool>();
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
  if (list()) return !list()->empty();
  return dict() ? !dict()->empty() : true;
}

std::string Value::type() const {
  static const char* const kNames[] = {"undefined", "NoneType", "bool", "int", "float", "str", "list", "dict"};
  if (is_tuple()) return "tuple";
  if (object()) return object()->type;
  return function() ? "function" : kNames[data_.index()];
}

bool Value::is_same(const Value& other) const {
  if (data_.index() != other.data_.index()) return false;
  if (auto a = std::get_if<std::shared_ptr<const Sequence>>(&data_))
    return *a == std::get<std::shared_ptr<const Sequence>>(other.data_);
  if (auto a = std::get_if<std::shared_ptr<const Dict>>(&data_))
    return *a == std::get<std::shared_ptr<const Dict>>(other.data_);
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
  if (a.list() && b.list()) return a.is_tuple() == b.is_tuple() && *a.list() == *b.list();
  if (a.dict() && b.dict())
    return a.dict()->size() == b.dict()->size() && std::ranges::all_of(*a.dict(), [&](const auto& member) {
             const Value* other = find(*b.dict(), member.first);
             return other && *other == member.second;
           });
  if (a.is_none() || a.is_undefined()) return a.type() == b.type();
  return a.object() ? a.object() == b.object() : a.function() && a.function() == b.function();
}

bool less(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number())
    return a.is_integral() && b.is_integral() ? a.integer() < b.integer() : a.number() < b.number();
  // The order of UTF-8's bytes is that of its code points.
  if (a.string() && b.string()) return *a.string() < *b.string();
  if (a.list() && b.list() && a.is_tuple() == b.is_tuple())
    return std::ranges::lexicographical_compare(*a.list(), *b.list(), less);
  fail({.what = text("values of types ", a.type(), " and ", b.type(), " have no order"),
        .needs = "two numbers, texts or lists"});
}

std::string to_text(const Value& v) {
  if (v.is_undefined()) return "";
  return v.string() ? *v.string() : to_repr(v);
}

std::string to_repr(const Value& v) {
  if (v.is_undefined()) return "Undefined";
  if (v.is_none()) return "None";
  if (v.is_bool()) return v.is_true() ? "True" : "False";
  if (v.is_int()) return text(v.integer());
  if (v.is_float()) return float_text(v.number());
  if (v.string()) return repr_of(*v.string());
  std::vector<std::string> parts;
  if (const List* items = v.list()) {
    for (const Value& item : *items) parts.push_back(to_repr(item));
    if (v.is_tuple()) return text("(", join(parts, ", "), parts.size() == 1 ? ",)" : ")");
    return text("[", join(parts, ", "), "]");
  }
  if (const Dict* members = v.dict()) {
    for (const auto& [name, value] : *members) parts.push_back(to_repr(name) + ": " + to_repr(value));
    return text("{", join(parts, ", "), "}");
  }
  return text("<", v.type(), ">");
}

std::string to_json(const Value& value, int indent, bool sort_keys) {
  JsonWriter writer(indent, sort_keys);
  writer.write(value, 0);
  return std::move(writer.out);
}

std::u32string code_points(std::string_view s) {
  std::u32string out;
  for (size_t i = 0; i < s.size();) out += next_char(s, i);
  return out;
}

std::string utf8(std::u32string_view s) {
  std::string out;
  for (char32_t c : s) append_char(out, c);
  return out;
}

}  // namespace sator::jinja
