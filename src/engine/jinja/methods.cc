// The methods of Python's types, and what `.` and `[]` give.
#include <algorithm>

#include "base/error.h"
#include "engine/jinja/builtins.h"
#include "engine/tokenizer/unicode.h"

namespace sator::jinja {

namespace {

using Method = Value (*)(const std::string& s, Taking& t);

bool is_blank(char32_t c) { return is_white_space(c) || (c >= 0x1c && c <= 0x1f); }
std::string character(char32_t c) { return utf8({&c, 1}); }
bool is_upper_char(char32_t c) { return lowercased(character(c)) != character(c); }
bool is_lower_char(char32_t c) { return uppercased(character(c)) != character(c); }
bool is_digit_char(char32_t c) { return c < 0x80 ? c >= '0' && c <= '9' : is_numeric(c); }
bool is_letter(char32_t c) {
  return c < 0x80 ? (c | 32) >= 'a' && (c | 32) <= 'z'
                  : is_word(c) && !is_numeric(c) && !is_mark(c) && !is_punctuation(c);
}

std::string stripped(const std::string& s, Taking& t, bool left, bool right) {
  const std::string chars = t.text_or("chars", "");
  const std::u32string set = code_points(chars), all = code_points(s);
  auto goes = [&](char32_t c) { return chars.empty() ? is_blank(c) : set.find(c) != set.npos; };
  size_t from = 0, to = all.size();
  while (left && from < to && goes(all[from])) ++from;
  while (right && to > from && goes(all[to - 1])) --to;
  return utf8(std::u32string_view(all).substr(from, to - from));
}
Value m_strip(const std::string& s, Taking& t) { return stripped(s, t, true, true); }
Value m_lstrip(const std::string& s, Taking& t) { return stripped(s, t, true, false); }
Value m_rstrip(const std::string& s, Taking& t) { return stripped(s, t, false, true); }

/// Words between white space, `most` times at most from one side; the rest stays whole.
List words_of(const std::string& s, int64_t most, bool from_right) {
  const std::u32string all = code_points(s);
  List out;
  auto blank = [&](size_t i) { return is_blank(all[from_right ? all.size() - 1 - i : i]); };
  auto piece = [&](size_t a, size_t b) {
    const std::u32string_view v(all);
    return Value(utf8(from_right ? v.substr(all.size() - b, b - a) : v.substr(a, b - a)));
  };
  size_t i = 0;
  while (true) {
    while (i < all.size() && blank(i)) ++i;
    if (i == all.size()) break;
    if (most >= 0 && std::ssize(out) == most) {
      out.push_back(piece(i, all.size()));
      break;
    }
    const size_t begin = i;
    while (i < all.size() && !blank(i)) ++i;
    out.push_back(piece(begin, i));
  }
  if (from_right) std::ranges::reverse(out);
  require_items(out.size());
  return out;
}

Value split_text(const std::string& s, Taking& t, bool from_right) {
  const Value* given = t.take("sep");
  const int64_t most = t.integer_or("maxsplit", -1);
  if (!given || given->is_none()) return words_of(s, most, from_right);
  if (!given->string() || given->string()->empty())
    fail({.what = "a text is split at an empty separator", .needs = "a text, or none"});
  const std::string& at = *given->string();
  List out;
  std::string_view rest = s;
  while (most < 0 || std::ssize(out) < most) {
    const size_t found = from_right ? rest.rfind(at) : rest.find(at);
    if (found == rest.npos) break;
    out.emplace_back(std::string(from_right ? rest.substr(found + at.size()) : rest.substr(0, found)));
    rest = from_right ? rest.substr(0, found) : rest.substr(found + at.size());
    require_items(out.size());
  }
  out.emplace_back(std::string(rest));
  if (from_right) std::ranges::reverse(out);
  return out;
}
Value m_split(const std::string& s, Taking& t) { return split_text(s, t, false); }
Value m_rsplit(const std::string& s, Taking& t) { return split_text(s, t, true); }
Value m_splitlines(const std::string& s, Taking& t) {
  const bool keep = t.flag_or("keepends", false);
  List out;
  for (size_t i = 0; i < s.size();) {
    size_t end = s.find_first_of("\n\r", i);
    const size_t next = end == s.npos ? s.size() : end + (s.compare(end, 2, "\r\n") == 0 ? 2 : 1);
    if (end == s.npos) end = s.size();
    out.emplace_back(s.substr(i, (keep ? next : end) - i));
    i = next;
    require_items(out.size());
  }
  return out;
}

/// startswith and endswith: one text, or one of a tuple.
bool has_part(const Value& part, const std::function<bool(const std::string&)>& has) {
  if (part.string()) return has(*part.string());
  if (part.is_tuple())
    return std::ranges::any_of(*part.list(), [&](const Value& v) { return v.string() && has(*v.string()); });
  fail({.what = text("the beginning or end of a text is compared with a ", part.type()),
        .needs = "a text or a tuple of texts"});
}
Value m_startswith(const std::string& s, Taking& t) {
  return has_part(t.need("prefix"), [&](const std::string& p) { return s.starts_with(p); });
}
Value m_endswith(const std::string& s, Taking& t) {
  return has_part(t.need("suffix"), [&](const std::string& p) { return s.ends_with(p); });
}
Value m_removeprefix(const std::string& s, Taking& t) {
  const std::string p = to_text(t.need("prefix"));
  return s.starts_with(p) ? s.substr(p.size()) : s;
}
Value m_removesuffix(const std::string& s, Taking& t) {
  const std::string p = to_text(t.need("suffix"));
  return s.ends_with(p) ? s.substr(0, s.size() - p.size()) : s;
}

Value m_lower(const std::string& s, Taking&) { return lowercased(s); }
Value m_upper(const std::string& s, Taking&) { return uppercased(s); }
Value by_filter(const char* filter, const std::string& s) {
  Arguments none;
  return filtered(filter, s, none);
}
Value m_capitalize(const std::string& s, Taking&) { return by_filter("capitalize", s); }
Value m_title(const std::string& s, Taking&) {
  std::string out;
  bool in_word = false;
  for (char32_t c : code_points(s)) {
    const bool letter = is_letter(c);
    out += !letter ? character(c) : in_word ? lowercased(character(c)) : uppercased(character(c));
    in_word = letter;
  }
  return out;
}
Value m_swapcase(const std::string& s, Taking&) {
  std::string out;
  for (char32_t c : code_points(s)) out += is_upper_char(c) ? lowercased(character(c)) : uppercased(character(c));
  return out;
}

Value m_replace(const std::string& s, Taking& t) {
  const std::string from = to_text(t.need("old")), to = to_text(t.need("new"));
  const int64_t most = t.integer_or("count", -1);
  std::string out;
  int64_t done = 0;
  for (size_t i = 0;;) {
    const size_t found = most >= 0 && done >= most ? s.npos : s.find(from, i);
    if (found == s.npos || found > s.size()) {
      out.append(s, std::min(i, s.size()), s.npos);
      return out;
    }
    out.append(s, i, found - i).append(to);
    i = found + from.size();
    ++done;
    if (from.empty()) {
      if (i >= s.size()) return out;
      const size_t bytes = char_bytes(s[i]);
      out.append(s, i, bytes);
      i += bytes;
    }
    require_text_size(out.size());
  }
}
Value m_join(const std::string& s, Taking& t) {
  std::string out;
  bool first = true;
  for (const Value& item : elements_of(t.need("iterable"))) {
    if (!item.string()) fail({.what = text("join is given a ", item.type()), .needs = "texts"});
    out += (first ? "" : s) + *item.string();
    first = false;
    require_text_size(out.size());
  }
  return out;
}

/// Where a part begins, in code points; -1: nowhere.
int64_t found_at(const std::string& s, Taking& t, bool last) {
  const std::string part = to_text(t.need("sub"));
  const size_t at = last ? s.rfind(part) : s.find(part);
  return at == s.npos ? -1 : std::ssize(code_points(std::string_view(s).substr(0, at)));
}
Value m_find(const std::string& s, Taking& t) { return found_at(s, t, false); }
Value m_rfind(const std::string& s, Taking& t) { return found_at(s, t, true); }
Value m_index(const std::string& s, Taking& t) {
  const int64_t at = found_at(s, t, false);
  if (at < 0)
    fail({.what = "index: the text does not hold that part", .needs = "a part of it", .hint = "find gives -1"});
  return at;
}
Value m_count(const std::string& s, Taking& t) {
  const std::string part = to_text(t.need("sub"));
  if (part.empty()) return length_of(s) + 1;
  int64_t n = 0;
  for (size_t at = s.find(part); at != s.npos; at = s.find(part, at + part.size())) ++n;
  return n;
}

template <bool (*holds)(char32_t)>
Value all_of(const std::string& s, Taking&) {
  const std::u32string all = code_points(s);
  return !all.empty() && std::ranges::all_of(all, holds);
}
bool is_letter_or_digit(char32_t c) { return is_letter(c) || is_digit_char(c); }
Value cased(const std::string& s, bool upper) {
  bool any = false;
  for (char32_t c : code_points(s)) {
    if (upper ? is_lower_char(c) : is_upper_char(c)) return false;
    any |= upper ? is_upper_char(c) : is_lower_char(c);
  }
  return any;
}
Value m_islower(const std::string& s, Taking&) { return cased(s, false); }
Value m_isupper(const std::string& s, Taking&) { return cased(s, true); }

std::string padded(const std::string& s, Taking& t, bool left) {
  const int64_t width = t.integer_or("width", 0);
  const std::string fill = t.text_or("fillchar", " ");
  const int64_t blanks = std::max<int64_t>(width - length_of(s), 0);
  require_text_size(static_cast<size_t>(blanks) * fill.size() + s.size());
  std::string pad;
  for (int64_t i = 0; i < blanks; ++i) pad += fill;
  return left ? pad + s : s + pad;
}
Value m_ljust(const std::string& s, Taking& t) { return padded(s, t, false); }
Value m_rjust(const std::string& s, Taking& t) { return padded(s, t, true); }
Value m_zfill(const std::string& s, Taking& t) {
  const int64_t blanks = std::max<int64_t>(t.integer_or("width", 0) - length_of(s), 0);
  require_text_size(static_cast<size_t>(blanks) + s.size());
  const size_t sign = s.starts_with("-") || s.starts_with("+") ? 1 : 0;
  return s.substr(0, sign) + std::string(static_cast<size_t>(blanks), '0') + s.substr(sign);
}
Value parted(const std::string& s, Taking& t, bool last) {
  const std::string at = to_text(t.need("sep"));
  const size_t found = last ? s.rfind(at) : s.find(at);
  Sequence out{{s, "", ""}, true};
  if (found != s.npos)
    out.items = {s.substr(0, found), at, s.substr(found + at.size())};
  else if (last)
    out.items = {"", "", s};
  return out;
}
Value m_partition(const std::string& s, Taking& t) { return parted(s, t, false); }
Value m_rpartition(const std::string& s, Taking& t) { return parted(s, t, true); }

struct MethodRow {
  std::string_view name;
  Method call;
};
constexpr MethodRow kTextMethods[] = {{"strip", m_strip},
                                      {"lstrip", m_lstrip},
                                      {"rstrip", m_rstrip},
                                      {"split", m_split},
                                      {"rsplit", m_rsplit},
                                      {"splitlines", m_splitlines},
                                      {"startswith", m_startswith},
                                      {"endswith", m_endswith},
                                      {"removeprefix", m_removeprefix},
                                      {"removesuffix", m_removesuffix},
                                      {"lower", m_lower},
                                      {"casefold", m_lower},
                                      {"upper", m_upper},
                                      {"capitalize", m_capitalize},
                                      {"title", m_title},
                                      {"swapcase", m_swapcase},
                                      {"replace", m_replace},
                                      {"join", m_join},
                                      {"find", m_find},
                                      {"rfind", m_rfind},
                                      {"index", m_index},
                                      {"count", m_count},
                                      {"isdigit", all_of<is_digit_char>},
                                      {"isnumeric", all_of<is_digit_char>},
                                      {"isdecimal", all_of<is_digit_char>},
                                      {"isalpha", all_of<is_letter>},
                                      {"isalnum", all_of<is_letter_or_digit>},
                                      {"isspace", all_of<is_blank>},
                                      {"islower", m_islower},
                                      {"isupper", m_isupper},
                                      {"ljust", m_ljust},
                                      {"rjust", m_rjust},
                                      {"zfill", m_zfill},
                                      {"partition", m_partition},
                                      {"rpartition", m_rpartition}};

Value method(std::string name, std::function<Value(Taking&)> body) {
  auto call = [name, body = std::move(body)](Arguments& arguments) {
    Taking t(name, arguments);
    Value out = body(t);
    t.end();
    return out;
  };
  return Function{name, std::move(call)};
}

std::optional<Value> method_of(const Value& v, const std::string& name) {
  if (v.string()) {
    for (const MethodRow& row : kTextMethods)
      if (row.name == name) return method(name, [s = *v.string(), call = row.call](Taking& t) { return call(s, t); });
  } else if (v.dict()) {
    if (name == "items")
      return method(name, [v](Taking&) {
        Arguments none;
        return filtered("items", v, none);
      });
    if (name == "keys") return method(name, [v](Taking&) { return Value(elements_of(v)); });
    if (name == "values")
      return method(name, [v](Taking&) {
        List out;
        for (const auto& [key, value] : *v.dict()) out.push_back(value);
        return Value(out);
      });
    if (name == "copy") return method(name, [v](Taking&) { return v; });
    if (name == "get")
      return method(name, [v](Taking& t) {
        const Value* found = find(*v.dict(), t.need("key"));
        const Value* otherwise = t.take("default");
        return found ? *found : otherwise ? *otherwise : Value();
      });
  } else if (v.list()) {
    if (name == "count")
      return method(
          name, [v](Taking& t) { return Value(static_cast<int64_t>(std::ranges::count(*v.list(), t.need("value")))); });
    if (name == "index")
      return method(name, [v](Taking& t) {
        const auto at = std::ranges::find(*v.list(), t.need("value"));
        if (at == v.list()->end()) fail({.what = "index: the list does not hold that item", .needs = "an item of it"});
        return Value(static_cast<int64_t>(at - v.list()->begin()));
      });
    for (const char* changes : {"append", "extend", "insert", "pop", "remove", "reverse", "sort", "clear"})
      if (name == changes)
        fail({.what = text("a list is changed by ", name),
              .needs = "lists that stay as they are",
              .hint = "make a new one: items + [item], in a namespace"});
  }
  return {};
}

}  // namespace

Value attribute_of(const Value& v, const std::string& name) {
  if (const Undefined* u = v.undefined())
    fail({.what = text(u->name, " is undefined, and has no member ", name), .needs = "a value"});
  if (const Object* o = v.object()) {
    auto at = o->members.find(name);
    return at == o->members.end() ? Value(Undefined{name}) : at->second;
  }
  if (std::optional<Value> found = method_of(v, name)) return *found;
  if (v.dict())
    if (const Value* member = find(*v.dict(), name)) return *member;
  return Undefined{name};
}

Value item_of(const Value& v, const Value& key) {
  if (const Undefined* u = v.undefined())
    fail({.what = text(u->name, " is undefined, and has no item ", to_repr(key)), .needs = "a value"});
  if (v.dict())
    if (const Value* member = find(*v.dict(), key)) return *member;
  if (key.is_integral() && (v.list() || v.string())) {
    const int64_t size = length_of(v), at = key.integer() < 0 ? key.integer() + size : key.integer();
    if (at < 0 || at >= size) return Undefined{text("item ", key.integer())};
    if (v.list()) return (*v.list())[static_cast<size_t>(at)];
    return utf8(std::u32string_view(code_points(*v.string())).substr(static_cast<size_t>(at), 1));
  }
  return key.string() ? attribute_of(v, *key.string()) : Value(Undefined{to_repr(key)});
}

}  // namespace sator::jinja
