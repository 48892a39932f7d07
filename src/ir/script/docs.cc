#include <cmath>
#include <cstdio>

#include "ir/script/printer.h"

namespace sator::script {

Doc& Doc::operator+=(const Doc& d) {
  for (const Mark& m : d.marks) marks.push_back({m.begin + text.size(), m.end + text.size(), m.node});
  text += d.text;
  return *this;
}

namespace {

/// Appends `d` in parentheses if it binds less tightly than `parent` (or as tightly, where that matters).
void append_operand(Doc& out, const Doc& d, Precedence parent, bool strict) {
  bool wrap = d.precedence < parent || (strict && d.precedence == parent);
  if (wrap) out += "(";
  out += d;
  if (wrap) out += ")";
}

void append_joined(Doc& out, const std::vector<Doc>& items) {
  bool first = true;
  for (const Doc& item : items) {
    if (!first) out += ", ";
    first = false;
    out += item;
  }
}

}  // namespace

Doc integer_doc(int64_t value) { return Doc(text(value)); }
Doc boolean_doc(bool value) { return Doc(value ? "True" : "False"); }

Doc real_doc(double value) {
  if (std::isnan(value)) return Doc("\"nan\"");
  if (std::isinf(value)) return Doc(value > 0 ? "\"inf\"" : "\"-inf\"");
  if (value == 0 && std::signbit(value)) return Doc("-0.0");  // an integer's zero has no sign
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.17g", value);
  return Doc(buffer);
}

Doc string_doc(std::string_view value) {
  std::string out = "\"";
  for (char c : value) {
    static constexpr std::string_view kSpecial = "\"\\\t\r\n", kLetter = "\"\\trn";
    if (size_t at = kSpecial.find(c); at != kSpecial.npos) {
      out += '\\';
      out += kLetter[at];
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      char code[8];
      std::snprintf(code, sizeof code, "\\x%02x", static_cast<unsigned char>(c));
      out += code;
    } else {
      out += c;
    }
  }
  return Doc(out + "\"");
}

Doc attribute_doc(Doc value, std::string_view name) {
  Doc out;
  append_operand(out, value, Precedence::atom, false);
  out += ".";
  out += name;
  return out;
}

Doc call_doc(Doc callee, const std::vector<Doc>& args, const std::vector<KeywordDoc>& keywords) {
  Doc out;
  append_operand(out, callee, Precedence::atom, false);
  out += "(";
  append_joined(out, args);
  bool first = args.empty();
  for (const KeywordDoc& k : keywords) {
    if (!first) out += ", ";
    first = false;
    out += k.name;
    out += "=";
    out += k.value;
  }
  out += ")";
  return out;
}

Doc index_doc(Doc value, const std::vector<Doc>& indices) {
  Doc out;
  append_operand(out, value, Precedence::atom, false);
  out += "[";
  if (indices.empty()) out += "()";
  append_joined(out, indices);
  out += "]";
  return out;
}

Doc slice_doc(const Doc& start, const Doc& stop, const std::optional<Doc>& step) {
  Doc out = start;
  out += ":";
  out += stop;
  if (step) {
    out += ":";
    out += *step;
  }
  return out;
}

Doc unary_doc(std::string_view op, Precedence precedence, const Doc& operand) {
  Doc out{std::string(op), precedence};
  append_operand(out, operand, precedence, false);
  return out;
}

Doc binary_doc(std::string_view op, Precedence precedence, const Doc& a, const Doc& b) {
  Doc out{"", precedence};
  // a < b < c would be a chain, so comparisons are wrapped on both sides.
  append_operand(out, a, precedence, precedence == Precedence::comparison);
  out += " ";
  out += op;
  out += " ";
  append_operand(out, b, precedence, true);
  return out;
}

Doc tuple_doc(const std::vector<Doc>& items) {
  Doc out("(");
  append_joined(out, items);
  out += items.size() == 1 ? ",)" : ")";
  return out;
}

Doc bare_tuple_doc(const std::vector<Doc>& items) {
  Doc out;
  append_joined(out, items);
  return out;
}

Doc list_doc(const std::vector<Doc>& items) {
  Doc out("[");
  append_joined(out, items);
  out += "]";
  return out;
}

Doc dict_doc(const std::vector<std::pair<Doc, Doc>>& items) {
  Doc out("{");
  bool first = true;
  for (const auto& [key, value] : items) {
    if (!first) out += ", ";
    first = false;
    out += key;
    out += ": ";
    out += value;
  }
  out += "}";
  return out;
}

Doc lambda_doc(const std::vector<Doc>& params, const Doc& body) {
  Doc out("lambda ", Precedence::lambda);
  append_joined(out, params);
  out += ": ";
  append_operand(out, body, Precedence::lambda, false);
  return out;
}

StmtDoc line_doc(Doc head) { return {std::move(head), {}, false, false}; }
StmtDoc compound_doc(Doc head, std::vector<StmtDoc> body) { return {std::move(head), std::move(body), true, false}; }

StmtDoc assign_doc(const Doc& target, const Doc& value, const std::optional<Doc>& annotation) {
  Doc head = target;
  if (annotation) {
    head += ": ";
    head += *annotation;
  }
  head += " = ";
  head += value;
  return line_doc(std::move(head));
}

StmtDoc comment_doc(std::string_view comment) { return line_doc(Doc(comment.empty() ? "" : text("# ", comment))); }

}  // namespace sator::script
