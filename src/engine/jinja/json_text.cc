// json.dumps: values as JSON.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/jinja/builtins.h"

namespace sator::jinja {

namespace {

class JsonWriter {
 public:
  explicit JsonWriter(const JsonStyle& style) : style_(style) {}

  void write(const Value& v, int depth) {
    if (const Dict* d = v.dict()) return write_members(*d, depth);
    if (v.is_list() || v.is_tuple()) return write_items(*v.items(), depth);
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
  std::string quoted(const std::string& s) const {
    return nlohmann::json(s).dump(-1, ' ', style_.ensure_ascii, nlohmann::json::error_handler_t::replace);
  }
  void line(int depth) {
    if (!style_.indent) return;
    out += "\n";
    for (int i = 0; i < depth; ++i) out += *style_.indent;
    require_text_size(out.size());
  }
  template <class Items, class Write>
  void write_all(const Items& items, char open, char close, int depth, Write write_one) {
    out += open;
    bool first = true;
    for (const auto& item : items) {
      if (!first) out += style_.between_items;
      first = false;
      line(depth + 1);
      write_one(item);
      require_text_size(out.size());
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
    if (style_.sort_keys)
      std::ranges::stable_sort(members, [&](const auto& a, const auto& b) { return less(a.first, b.first); });
    write_all(members, '{', '}', depth, [&](const auto& m) {
      out += quoted(key_of(m.first)) + style_.behind_key;
      write(m.second, depth + 1);
    });
  }

  const JsonStyle& style_;
};

}  // namespace

std::string to_json(const Value& value, const JsonStyle& style) {
  JsonWriter writer(style);
  writer.write(value, 0);
  return std::move(writer.out);
}

}  // namespace sator::jinja
