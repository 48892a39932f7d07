#include "schedule/convert.h"

#include "tir/print.h"

namespace sator::schedule {

void append_text(std::string& out, const Value& value) {
  std::visit(
      [&](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          out += "None";
        } else if constexpr (std::is_same_v<T, bool>) {
          out += v ? "True" : "False";
        } else if constexpr (std::is_same_v<T, std::string>) {
          out += string_literal(v);
        } else if constexpr (std::is_same_v<T, Loop>) {
          out += v ? v->name : "None";
        } else if constexpr (std::is_same_v<T, BlockHandle>) {
          out += v ? string_literal(v->text) : "None";
        } else if constexpr (std::is_same_v<T, List>) {
          out += "[" + join(v, ", ") + "]";
        } else if constexpr (std::is_same_v<T, Expr>) {
          sator::append_text(out, v);
        } else if constexpr (std::is_same_v<T, Ref<const arith::IndexMap>>) {
          std::vector<std::string> names;
          for (const VarRef& i : v->initial_indices) names.push_back(i->name);
          out += sator::text("lambda ", join(names, ", "), ": (", join(v->final_indices, ", "), ")");
        } else if constexpr (std::is_same_v<T, NodeRef>) {
          if (Expr e = cast<ExprNode>(v)) {
            sator::append_text(out, e);
          } else if (auto array = cast<Array>(v)) {
            List items;
            for (const NodeRef& item : array->items) items.emplace_back(item);
            out += "[" + join(items, ", ") + "]";
          } else
            out += text("<", v ? v->info().name : "null", ">");
        } else {
          sator::append_text(out, v);
        }
      },
      static_cast<const Value::Base&>(value));
}

void wrong_argument(const std::string& parameter, const Value& got, const std::string& needs) {
  std::string shown;
  append_text(shown, got);
  fail({.what = text(parameter, " = ", shown, " is not ", needs),
        .needs = text(parameter, ": ", needs),
        .hint = "see the primitive's parameters in docs/schedule.md"});
}

Value to_value(const BufferSelector& v) {
  Value which = std::visit(
      [](const auto& w) -> Value {
        if constexpr (std::is_same_v<std::decay_t<decltype(w)>, BufferRef>)
          return NodeRef(w);
        else
          return w;
      },
      v.which);
  if (!v.is_write) return which;
  return List{Value(*v.is_write ? "write" : "read"), which};
}

bool value_to_bool(const Value& v, const std::string& parameter) {
  if (auto* b = v.get_if<bool>()) return *b;
  if (auto* i = v.get_if<int64_t>(); i && (*i == 0 || *i == 1)) return *i != 0;
  wrong_argument(parameter, v, "True or False");
}

int64_t value_to_int(const Value& v, const std::string& parameter) {
  if (auto* i = v.get_if<int64_t>()) return *i;
  if (auto* b = v.get_if<bool>()) return *b;
  if (auto* e = v.get_if<Expr>()) {
    if (auto i = as_int(*e)) return *i;
  }
  wrong_argument(parameter, v, "an integer");
}

double value_to_double(const Value& v, const std::string& parameter) {
  if (auto* d = v.get_if<double>()) return *d;
  if (auto* i = v.get_if<int64_t>()) return static_cast<double>(*i);
  if (auto* e = v.get_if<Expr>()) {
    if (const FloatImm* d = e->as<FloatImm>()) return d->value;
    if (auto i = as_int(*e)) return static_cast<double>(*i);
  }
  wrong_argument(parameter, v, "a number");
}

std::string value_to_string(const Value& v, const std::string& parameter) {
  if (auto* s = v.get_if<std::string>()) return *s;
  wrong_argument(parameter, v, "a string");
}

Loop value_to_loop(const Schedule& s, const Value& v, const std::string& parameter) {
  if (auto* l = v.get_if<Loop>()) return *l;
  if (auto* e = v.get_if<Expr>()) {
    if (VarRef var = cast<Var>(*e)) return var;
  }
  if (auto* name = v.get_if<std::string>()) {
    const Sites& sites = s.sites();
    std::vector<std::string> names;
    for (int i = 0; i < sites.count(); ++i) {
      if (const tir::For* loop = sites[i].loop()) {
        if (loop->var->name == *name) return loop->var;
        names.push_back(loop->var->name);
      }
    }
    fail({.what = text("no loop is named ", string_literal(*name)),
          .needs = "a loop of the program",
          .hint = text("the nearest are: ", join(nearest_names(*name, names), ", "))});
  }
  wrong_argument(parameter, v, "a loop");
}

BlockHandle value_to_block(const Schedule& s, const Value& v, const std::string& parameter) {
  if (auto* b = v.get_if<BlockHandle>()) return *b;
  if (auto* name = v.get_if<std::string>()) {
    if (s.func_name() == s.worked_on()) return s.block_named(*name);
    Schedule there = s;
    there.turn_to(s.worked_on());
    return there.block_named(*name);
  }
  wrong_argument(parameter, v, "a block or a block's name");
}

Expr value_to_expr(const Value& v, const std::string& parameter) {
  if (auto* e = v.get_if<Expr>()) return *e;
  if (auto* l = v.get_if<Loop>()) return *l;
  if (auto* i = v.get_if<int64_t>()) return int_imm(*i);
  if (auto* b = v.get_if<bool>()) return bool_imm(*b);
  if (auto* d = v.get_if<double>()) return float_imm(*d);
  if (auto* n = v.get_if<NodeRef>()) {
    if (Expr e = cast<ExprNode>(*n)) return e;
  }
  wrong_argument(parameter, v, "an expression");
}

BufferSelector value_to_selector(const Value& v, const std::string& parameter) {
  if (auto* i = v.get_if<int64_t>()) return {{}, *i};
  if (auto* s = v.get_if<std::string>()) return {{}, *s};
  if (auto* n = v.get_if<NodeRef>()) {
    if (BufferRef b = cast<Buffer>(*n)) return {{}, b};
  }
  if (auto* list = v.get_if<List>(); list && list->size() == 2) {
    if (auto* side = (*list)[0].get_if<std::string>(); side && (*side == "read" || *side == "write")) {
      BufferSelector inner = value_to_selector((*list)[1], parameter);
      inner.is_write = *side == "write";
      return inner;
    }
  }
  wrong_argument(parameter, v, "a buffer: its index, its name, (\"read\", index) or (\"write\", index)");
}

NodeRef value_to_node(const Value& v, const std::string& parameter) {
  if (auto* n = v.get_if<NodeRef>()) return *n;
  if (auto* s = v.get_if<std::string>()) return string_imm(*s);
  if (auto* list = v.get_if<List>()) {
    std::vector<NodeRef> items;
    for (const Value& item : *list) items.push_back(value_to_node(item, parameter));
    return make<Array>(std::move(items));
  }
  return value_to_expr(v, parameter);
}

}  // namespace sator::schedule
