// The filters of texts and numbers of Jinja 3.1, tojson as Transformers defines it, and the table of all filters.
#include "engine/jinja/filters.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "engine/jinja/operators.h"
#include "engine/jinja/python_text.h"

namespace sator::jinja {

namespace {

/// Each part between blanks, brackets and hyphens: its first character in capitals, the rest small.
std::string title_of_words(const std::string& s) {
  auto splits = [](char32_t c) {
    return is_blank(c) || std::u32string_view(U"-({[<").find(c) != std::u32string_view::npos;
  };
  const std::u32string all = code_points(s);
  std::string out;
  for (size_t from = 0; from < all.size();) {
    size_t end = from;
    while (end < all.size() && splits(all[end]) == splits(all[from])) ++end;
    const std::u32string_view part = std::u32string_view(all).substr(from, end - from);
    out += upper(utf8(part.substr(0, 1))) + lower(utf8(part.substr(1)));
    from = end;
  }
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

Value f_abs(const Value& v, Taking&) {
  if (!v.is_number()) fail_type("abs", v, "a number");
  return v.number() < 0 ? unary("-", v) : unary("+", v);
}
Value f_attr(const Value& v, Taking& t) {
  const std::string& name = t.need_text("name");
  if (v.is_undefined()) fail_type("attr", v, "a value");
  return own_attribute(v, name).value_or(Undefined{name});
}
Value f_capitalize(const Value& v, Taking&) { return capitalized(to_text(v)); }
Value f_center(const Value& v, Taking& t) { return call_method(to_text(v), "center", {t.integer_or("width", 80)}); }
Value f_default(const Value& v, Taking& t) {
  const Value* otherwise = t.take("default_value");
  const bool where_false = t.flag_or("boolean", false);
  if (!v.is_undefined() && !(where_false && !v.is_true())) return v;
  return otherwise ? *otherwise : Value("");
}
Value f_escape(const Value& v, Taking&) { return escaped(to_text(v)); }

/// What has no number of Python's, so that int and float give another value. Errors: of what is undefined they give none.
Value not_a_number(const Value& v, const Value* otherwise, Value zero) {
  if (const Undefined* u = v.undefined())
    fail({.what = text(u->name, " is undefined, and no number"), .needs = "a value"});
  return otherwise ? *otherwise : zero;
}
Value f_float(const Value& v, Taking& t) {
  const Value* otherwise = t.take("default");
  if (v.is_number()) return v.number();
  const std::optional<double> read = v.string() ? float_of(*v.string()) : std::nullopt;
  return read ? Value(*read) : not_a_number(v, otherwise, 0.0);
}
Value whole_of(double x) {
  if (!(std::fabs(x) < 0x1p63)) fail({.what = text("int of ", float_text(x)), .needs = "integers of 64 bits"});
  return static_cast<int64_t>(x);
}
Value f_int(const Value& v, Taking& t) {
  const Value* otherwise = t.take("default");
  const int64_t base = t.integer_or("base", 10);
  if (v.is_integral()) return v.integer();
  if (v.is_float() && !std::isnan(v.number())) return whole_of(v.number());
  if (const auto digits = v.string() ? integer_digits(*v.string(), base) : std::nullopt) {
    int64_t read = 0;
    const char* last = digits->ascii.data() + digits->ascii.size();
    if (std::from_chars(digits->ascii.data(), last, read, digits->base).ec != std::errc())
      fail({.what = text("int of ", *v.string()), .needs = "integers of 64 bits"});
    return read;
  }
  const std::optional<double> real = v.string() ? float_of(*v.string()) : std::nullopt;
  return real && std::isfinite(*real) ? whole_of(*real) : not_a_number(v, otherwise, int64_t{0});
}
Value f_indent(const Value& v, Taking& t) {
  if (!v.string()) fail_type("indent", v, "a text");
  const Value* width = t.take("width");
  const bool first = t.flag_or("first", false), blank = t.flag_or("blank", false);
  if (width && !width->string() && !width->is_integral()) fail_type("indent", *width, "a number of blanks, or a text");
  const int64_t blanks = !width ? 4 : width->is_integral() ? std::max<int64_t>(width->integer(), 0) : 0;
  require_text_size(static_cast<size_t>(blanks));
  const std::string in = width && width->string() ? *width->string() : std::string(static_cast<size_t>(blanks), ' ');
  std::string out;
  bool is_first = true;
  for (const std::string& line : lines_of(*v.string() + "\n", false)) {
    if (!is_first) out += '\n';
    if (is_first ? first : blank || !line.empty()) out += in;
    out += line;
    is_first = false;
    require_text_size(out.size());
  }
  return out;
}
Value f_length(const Value& v, Taking&) { return length_of(v); }
Value f_lower(const Value& v, Taking&) { return lower(to_text(v)); }
Value f_upper(const Value& v, Taking&) { return upper(to_text(v)); }
Value f_replace(const Value& v, Taking& t) {
  const std::string from = to_text(t.need("old")), to = to_text(t.need("new"));
  const Value* count = t.take_some("count");
  return call_method(to_text(v), "replace", {from, to, count ? *count : Value(int64_t{-1})});
}

/// Decimal digits, rounded where `digits` of them follow the point; ties go to the even digit.
double rounded(double x, int64_t digits) {
  if (x == 0 || !std::isfinite(x)) return x;
  char buffer[512];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, x, std::chars_format::scientific).ptr;
  int64_t exponent = 0;
  const char* sign = std::find(buffer, end, 'e') + 1;
  std::from_chars(*sign == '+' ? sign + 1 : sign, end, exponent);
  const int64_t kept = exponent + digits;  // behind the first digit
  if (kept > 17 + 300) return x;
  if (kept < -1) return std::copysign(0.0, x);
  if (kept == -1) {
    const double half = 5 * std::pow(10.0, static_cast<double>(exponent));
    return std::copysign(std::fabs(x) > half ? half * 2 : 0.0, x);
  }
  end = std::to_chars(buffer, buffer + sizeof buffer, x, std::chars_format::scientific, static_cast<int>(kept)).ptr;
  double out = 0;
  std::from_chars(buffer, end, out);
  return out;
}
int64_t rounded(int64_t x, int64_t digits) {
  if (digits >= 0) return x;
  if (digits < -18) return 0;
  int64_t unit = 1;
  for (int64_t i = 0; i > digits; --i) unit *= 10;
  const int64_t rest = ((x % unit) + unit) % unit, down = x - rest;
  const bool odd = down / unit % 2 != 0;
  return rest > unit / 2 || (rest == unit / 2 && odd) ? down + unit : down;
}
Value f_round(const Value& v, Taking& t) {
  if (!v.is_number()) fail_type("round", v, "a number");
  const Value* precision = t.take("precision");
  const std::string how = t.text_or("method", "common");
  if (how != "common" && how != "ceil" && how != "floor")
    fail({.what = text("round by ", string_literal(how)), .needs = "common, ceil or floor"});
  const bool to_integer = precision && precision->is_none() && how == "common";
  if (precision && !precision->is_integral() && !to_integer) fail_type("round", *precision, "a number of digits");
  const int64_t digits = precision && !to_integer ? precision->integer() : 0;
  if (how == "common") {
    if (v.is_integral()) return rounded(v.integer(), digits);
    const double out = rounded(v.number(), digits);
    return to_integer ? whole_of(out) : Value(out);
  }
  const double unit = std::pow(10.0, static_cast<double>(digits)), x = v.number() * unit;
  whole_of(x);
  return (how == "ceil" ? std::ceil(x) : std::floor(x)) / unit;
}
Value f_same(const Value& v, Taking&) { return to_text(v); }
Value f_string(const Value& v, Taking&) { return to_text(v); }
Value f_title(const Value& v, Taking&) { return title_of_words(to_text(v)); }

/// As Transformers defines it: json.dumps.
Value f_tojson(const Value& v, Taking& t) {
  JsonStyle style;
  style.ensure_ascii = t.flag_or("ensure_ascii", false);
  if (const Value* indent = t.take_some("indent")) {
    if (!indent->string() && !indent->is_integral()) fail_type("tojson", *indent, "an indent: a number, or a text");
    const int64_t blanks = indent->is_integral() ? std::max<int64_t>(indent->integer(), 0) : 0;
    require_text_size(static_cast<size_t>(blanks));
    style.indent = indent->string() ? *indent->string() : std::string(static_cast<size_t>(blanks), ' ');
    style.between_items = ",";
  }
  if (const Value* separators = t.take_some("separators")) {
    const List both = elements_of(*separators);
    if (both.size() != 2 || !both[0].string() || !both[1].string())
      fail_type("tojson", *separators, "two separators: behind an item, and behind a key");
    style.between_items = *both[0].string(), style.behind_key = *both[1].string();
  }
  style.sort_keys = t.flag_or("sort_keys", false);
  return to_json(v, style);
}
Value f_trim(const Value& v, Taking& t) {
  const Value* chars = t.take("chars");
  return call_method(to_text(v), "strip", {chars ? *chars : Value()});
}
Value f_wordcount(const Value& v, Taking&) {
  auto is_part = [](char32_t c) { return c == '_' || is_letter(c) || is_digit(c) || is_numeral(c); };
  int64_t words = 0;
  bool in_word = false;
  for (char32_t c : code_points(to_text(v))) {
    words += is_part(c) && !in_word;
    in_word = is_part(c);
  }
  return words;
}

constexpr FilterRow kFilters[] = {
    {"abs", f_abs},       {"attr", f_attr},     {"capitalize", f_capitalize}, {"center", f_center},
    {"count", f_length},  {"d", f_default},     {"default", f_default},       {"e", f_escape},
    {"escape", f_escape}, {"float", f_float},   {"indent", f_indent},         {"int", f_int},
    {"length", f_length}, {"lower", f_lower},   {"replace", f_replace},       {"round", f_round},
    {"safe", f_same},     {"string", f_string}, {"title", f_title},           {"tojson", f_tojson},
    {"trim", f_trim},     {"upper", f_upper},   {"wordcount", f_wordcount}};

/// Those of Jinja that templates are not given.
constexpr std::string_view kRefusedFilters[] = {"filesizeformat",
                                                "forceescape",
                                                "format",
                                                "pprint",
                                                "random",
                                                "striptags",
                                                "truncate",
                                                "urlencode",
                                                "urlize",
                                                "wordwrap",
                                                "xmlattr"};

const FilterRow* filter_row(const std::string& name) {
  if (const auto row = std::ranges::find(kFilters, name, &FilterRow::name); row != std::end(kFilters)) return row;
  const auto row = std::ranges::find(list_filters(), name, &FilterRow::name);
  return row == list_filters().end() ? nullptr : &*row;
}

}  // namespace

void fail_type(const char* filter, const Value& v, const char* needs) {
  fail({.what = text("the filter ", filter, " is given a value of type ", v.type()), .needs = needs});
}

bool is_filter(const std::string& name) {
  return filter_row(name) || std::ranges::find(kRefusedFilters, name) != std::end(kRefusedFilters);
}

Value filtered(const std::string& name, const Value& v, Arguments& arguments) {
  const FilterRow* row = filter_row(name);
  if (!row) {
    std::vector<std::string_view> known;
    for (const FilterRow& r : kFilters) known.push_back(r.name);
    for (const FilterRow& r : list_filters()) known.push_back(r.name);
    fail({.what = text("there is no filter ", string_literal(name)), .needs = text("one of ", join(known, ", "))});
  }
  Taking taking(name, arguments);
  Value out = row->apply(v, taking);
  taking.end();
  return out;
}

}  // namespace sator::jinja
