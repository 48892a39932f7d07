// The methods of texts: Python's str.
#include <algorithm>

#include "base/error.h"
#include "engine/jinja/builtins.h"
#include "engine/jinja/python_text.h"
#include "engine/tokenizer/unicode.h"

namespace sator::jinja {

namespace {

using Method = Value (*)(const std::string& s, Taking& t);

std::string stripped(const std::string& s, Taking& t, bool left, bool right) {
  const Value* chars = t.take_some("chars");
  if (chars && !chars->string()) fail({.what = text("a ", chars->type(), " is stripped"), .needs = "a text, or none"});
  const std::u32string set = chars ? code_points(*chars->string()) : U"", all = code_points(s);
  auto goes = [&](char32_t c) { return chars ? set.find(c) != set.npos : is_blank(c); };
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
  List out;
  for (std::string& line : lines_of(s, t.flag_or("keepends", false))) out.emplace_back(std::move(line));
  return out;
}

/// A part of a text that is looked at, by the bounds that find, count, startswith, ... take behind what they look for.
struct Part {
  std::u32string text;
  int64_t start = 0;         ///< of the part, in code points of the whole text
  bool is_past_end = false;  ///< the bounds hold no part, not even an empty one
};
Part part_of(const std::string& s, Taking& t) {
  std::u32string all = code_points(s);
  const int64_t size = std::ssize(all);
  auto bound = [&](const char* name, int64_t otherwise) {
    const Value* v = t.take_some(name);
    if (!v) return otherwise;
    if (!v->is_integral()) fail({.what = text(name, " is a ", v->type()), .needs = "an integer, or none"});
    return v->integer() < 0 ? std::max<int64_t>(v->integer() + size, 0) : v->integer();
  };
  const int64_t from = bound("start", 0), to = std::min(bound("end", size), size);
  if (from > to) return {.start = from, .is_past_end = true};
  return {.text = all.substr(static_cast<size_t>(from), static_cast<size_t>(to - from)), .start = from};
}

/// startswith and endswith: one text, or one of a tuple.
Value has_part(const std::string& s, Taking& t, const char* name,
               bool (*has)(const std::u32string&, const std::u32string&)) {
  const Value given = t.need(name);
  const Part in = part_of(s, t);
  if (!given.string() && !given.is_tuple())
    fail({.what = text("the beginning or end of a text is compared with a ", given.type()),
          .needs = "a text or a tuple of texts"});
  const List parts = given.string() ? List{given} : *given.items();
  return std::ranges::any_of(parts, [&](const Value& v) {
    if (!v.string()) fail({.what = text("a text is compared with a ", v.type()), .needs = "texts"});
    return !in.is_past_end && has(in.text, code_points(*v.string()));
  });
}
Value m_startswith(const std::string& s, Taking& t) {
  return has_part(s, t, "prefix", [](const std::u32string& a, const std::u32string& b) { return a.starts_with(b); });
}
Value m_endswith(const std::string& s, Taking& t) {
  return has_part(s, t, "suffix", [](const std::u32string& a, const std::u32string& b) { return a.ends_with(b); });
}
Value m_removeprefix(const std::string& s, Taking& t) {
  const std::string& p = t.need_text("prefix");
  return s.starts_with(p) ? s.substr(p.size()) : s;
}
Value m_removesuffix(const std::string& s, Taking& t) {
  const std::string& p = t.need_text("suffix");
  return s.ends_with(p) ? s.substr(0, s.size() - p.size()) : s;
}

template <std::string (*make)(std::string_view)>
Value made(const std::string& s, Taking&) {
  return make(s);
}

Value m_replace(const std::string& s, Taking& t) {
  const std::string from = t.need_text("old"), to = t.need_text("new");
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
  const std::u32string what = code_points(t.need_text("sub"));
  const Part in = part_of(s, t);
  const size_t at = in.is_past_end ? in.text.npos : last ? in.text.rfind(what) : in.text.find(what);
  return at == in.text.npos ? -1 : in.start + static_cast<int64_t>(at);
}
int64_t index_of(const std::string& s, Taking& t, bool last) {
  const int64_t at = found_at(s, t, last);
  if (at < 0)
    fail({.what = "index: the text does not hold that part", .needs = "a part of it", .hint = "find gives -1"});
  return at;
}
Value m_find(const std::string& s, Taking& t) { return found_at(s, t, false); }
Value m_rfind(const std::string& s, Taking& t) { return found_at(s, t, true); }
Value m_index(const std::string& s, Taking& t) { return index_of(s, t, false); }
Value m_rindex(const std::string& s, Taking& t) { return index_of(s, t, true); }
Value m_count(const std::string& s, Taking& t) {
  const std::u32string what = code_points(t.need_text("sub"));
  const Part in = part_of(s, t);
  if (in.is_past_end) return int64_t{0};
  if (what.empty()) return std::ssize(in.text) + 1;
  int64_t n = 0;
  for (size_t at = in.text.find(what); at != in.text.npos; at = in.text.find(what, at + what.size())) ++n;
  return n;
}

template <bool (*holds)(char32_t)>
Value all_of(const std::string& s, Taking&) {
  const std::u32string all = code_points(s);
  return !all.empty() && std::ranges::all_of(all, holds);
}
bool is_letter_or_digit(char32_t c) { return is_letter(c) || is_digit(c) || is_numeral(c); }
Value m_isprintable(const std::string& s, Taking&) { return std::ranges::all_of(code_points(s), is_printable); }
Value m_isascii(const std::string& s, Taking&) { return is_ascii(s); }
/// Some characters are of one case, and none of the other.
Value cased(const std::string& s, bool (*is_one)(char32_t), bool (*is_other)(char32_t)) {
  const std::u32string all = code_points(s);
  return std::ranges::any_of(all, is_one) && std::ranges::none_of(all, is_other) && std::ranges::none_of(all, is_title);
}
Value m_islower(const std::string& s, Taking&) { return cased(s, is_lower, is_upper); }
Value m_isupper(const std::string& s, Taking&) { return cased(s, is_upper, is_lower); }
Value m_istitle(const std::string& s, Taking&) {
  bool in_word = false, any = false;
  for (char32_t c : code_points(s)) {
    const bool capital = is_upper(c) || is_title(c);
    if (capital ? in_word : is_lower(c) && !in_word) return false;
    in_word = capital || is_lower(c);
    any |= in_word;
  }
  return any;
}

/// The text in a field of `width`, with `before` of the missing characters in front of it.
Value padded(const std::string& s, Taking& t, int64_t (*before)(int64_t missing, int64_t width)) {
  const int64_t width = t.need_integer("width");
  const std::string fill = t.text_or("fillchar", " ");
  if (length_of(fill) != 1)
    fail({.what = text("a text is filled with ", string_literal(fill)), .needs = "one character"});
  const int64_t missing = std::max<int64_t>(width - length_of(s), 0), left = before(missing, width);
  require_text_size(static_cast<size_t>(missing) * fill.size() + s.size());
  std::string out;
  for (int64_t i = 0; i < left; ++i) out += fill;
  out += s;
  for (int64_t i = left; i < missing; ++i) out += fill;
  return out;
}
Value m_ljust(const std::string& s, Taking& t) {
  return padded(s, t, [](int64_t, int64_t) { return int64_t{0}; });
}
Value m_rjust(const std::string& s, Taking& t) {
  return padded(s, t, [](int64_t missing, int64_t) { return missing; });
}
/// Of an odd number of blanks an odd width has the larger part in front.
Value m_center(const std::string& s, Taking& t) {
  return padded(s, t, [](int64_t missing, int64_t width) { return missing / 2 + (missing & width & 1); });
}
Value m_expandtabs(const std::string& s, Taking& t) {
  const int64_t size = t.integer_or("tabsize", 8);
  std::string out;
  int64_t column = 0;
  for (char32_t c : code_points(s)) {
    const int64_t blanks = c != '\t' ? 0 : size > 0 ? size - column % size : 0;
    if (c == '\t')
      require_text_size(out.size() + static_cast<size_t>(blanks)), out.append(static_cast<size_t>(blanks), ' ');
    else
      append_char(out, c);
    column = c == '\n' || c == '\r' ? 0 : column + (c == '\t' ? blanks : 1);
  }
  return out;
}
Value m_zfill(const std::string& s, Taking& t) {
  const int64_t blanks = std::max<int64_t>(t.need_integer("width") - length_of(s), 0);
  require_text_size(static_cast<size_t>(blanks) + s.size());
  const size_t sign = s.starts_with("-") || s.starts_with("+") ? 1 : 0;
  return s.substr(0, sign) + std::string(static_cast<size_t>(blanks), '0') + s.substr(sign);
}
Value parted(const std::string& s, Taking& t, bool last) {
  const std::string& at = t.need_text("sep");
  if (at.empty()) fail({.what = "a text is parted at an empty separator", .needs = "a text"});
  const size_t found = last ? s.rfind(at) : s.find(at);
  List out = {s, "", ""};
  if (found != s.npos)
    out = {s.substr(0, found), at, s.substr(found + at.size())};
  else if (last)
    out = {"", "", s};
  return tuple_of(out);
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
                                      {"lower", made<lower>},
                                      {"casefold", made<casefolded>},
                                      {"upper", made<upper>},
                                      {"capitalize", made<capitalized>},
                                      {"title", made<titled>},
                                      {"swapcase", made<swapped_case>},
                                      {"replace", m_replace},
                                      {"join", m_join},
                                      {"find", m_find},
                                      {"rfind", m_rfind},
                                      {"index", m_index},
                                      {"rindex", m_rindex},
                                      {"count", m_count},
                                      {"isdigit", all_of<is_digit>},
                                      {"isnumeric", all_of<is_numeral>},
                                      {"isdecimal", all_of<is_decimal>},
                                      {"isalpha", all_of<is_letter>},
                                      {"isalnum", all_of<is_letter_or_digit>},
                                      {"isspace", all_of<is_blank>},
                                      {"isascii", m_isascii},
                                      {"isprintable", m_isprintable},
                                      {"islower", m_islower},
                                      {"isupper", m_isupper},
                                      {"istitle", m_istitle},
                                      {"ljust", m_ljust},
                                      {"rjust", m_rjust},
                                      {"center", m_center},
                                      {"zfill", m_zfill},
                                      {"expandtabs", m_expandtabs},
                                      {"partition", m_partition},
                                      {"rpartition", m_rpartition}};

}  // namespace

std::optional<Value> text_method(const std::string& s, const std::string& name) {
  for (const MethodRow& row : kTextMethods)
    if (row.name == name) return method(name, [s, call = row.call](Taking& t) { return call(s, t); });
  return {};
}

Value call_method(const std::string& s, const std::string& name, List arguments) {
  Arguments a{std::move(arguments), {}};
  return text_method(s, name)->function()->call(a);
}

}  // namespace sator::jinja
