#include "relax/ops/layout.h"

#include <algorithm>
#include <cctype>

#include "relax/ops/table.h"

namespace sator::relax {

std::optional<Layout> Layout::parse(const std::string& text) {
  Layout layout;
  int64_t number = 0;
  for (char c : text) {
    if (std::isdigit(static_cast<unsigned char>(c))) {
      number = number * 10 + (c - '0');
      if (number > (1 << 20)) return {};
    } else if (std::isupper(static_cast<unsigned char>(c))) {
      if (number || layout.has(c)) return {};
      layout.axes_.push_back({c, 0});
    } else if (std::islower(static_cast<unsigned char>(c))) {
      if (!number) return {};
      layout.axes_.push_back({static_cast<char>(std::toupper(c)), number});
      number = 0;
    } else {
      return {};
    }
  }
  if (number) return {};
  for (const Axis& a : layout.axes_) {
    if (!layout.has(a.letter)) return {};
  }
  return layout;
}

bool Layout::is_split() const {
  return std::ranges::any_of(axes_, [](const Axis& a) { return a.factor > 0; });
}
bool Layout::has(char letter) const {
  return std::ranges::any_of(axes_, [&](const Axis& a) { return a.letter == letter && a.factor == 0; });
}
size_t Layout::position(char letter) const {
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].letter == letter && axes_[i].factor == 0) return i;
  }
  internal_error(sator::text("a layout has no axis ", letter));
}

std::vector<Expr> Layout::to_letters(const std::vector<Expr>& shape, std::string_view letters) const {
  std::vector<Expr> out(letters.size());
  for (size_t i = 0; i < axes_.size(); ++i) {
    Expr& extent = out[letters.find(axes_[i].letter)];
    const Expr own = axes_[i].factor ? Expr(int_imm(axes_[i].factor, i64)) : shape[i];
    extent = extent ? extent * own : own;
  }
  return out;
}

std::vector<Expr> Layout::from_letters(const std::vector<Expr>& shape, std::string_view letters,
                                       arith::Analyzer& arith) const {
  std::vector<Expr> out;
  for (const Axis& a : axes_) {
    if (a.factor) {
      out.push_back(int_imm(a.factor, i64));
      continue;
    }
    int64_t inner = 1;
    for (const Axis& other : axes_) {
      if (other.letter == a.letter && other.factor) inner *= other.factor;
    }
    const Expr& extent = shape[letters.find(a.letter)];
    out.push_back(inner == 1 ? extent : arith.simplify(floordiv(extent + (inner - 1), inner)));
  }
  return out;
}

Layout need_layout(const CallInfo& in, const std::string& text, std::string_view letters) {
  std::optional<Layout> layout = Layout::parse(text);
  bool fits = layout && std::ranges::all_of(letters, [&](char c) { return layout->has(c); }) &&
              std::ranges::all_of(layout->axes(),
                                  [&](const Layout::Axis& a) { return letters.find(a.letter) != letters.npos; });
  if (!fits)
    in.fail({.what = sator::text("the layout ", string_literal(text)),
             .needs = sator::text("the axes of ", letters, " in some order"),
             .hint = sator::text("use ", string_literal(letters))});
  return *layout;
}

std::optional<std::vector<Expr>> shape_in(const CallInfo& in, size_t i, const Layout& layout,
                                          std::string_view letters) {
  in.need_rank(i, layout.rank());
  auto shape = explicit_shape(in.tensor(i));
  return shape ? std::optional(layout.to_letters(*shape, letters)) : std::nullopt;
}

void need_window(const CallInfo& in, const std::vector<int64_t>& size, const std::vector<int64_t>& strides,
                 const std::vector<int64_t>& padding, const std::vector<int64_t>& dilation) {
  auto need = [&](const char* what, const std::vector<int64_t>& values, int64_t least) {
    for (int64_t v : values) {
      if (v < least)
        in.fail({.what = text(what, " ", v), .needs = text(what, " >= ", least), .hint = "correct the attribute"});
    }
  };
  need("pool_size", size, 1);
  need("strides", strides, 1);
  need("padding", padding, 0);
  need("dilation", dilation, 1);
}

Expr windows_along(const CallInfo& in, const Expr& padded, const Expr& reach, int64_t stride) {
  const Expr room = in.arith().simplify(padded - reach);
  auto words = [&](const Expr& e) {
    const Expr simple = in.arith().simplify(e);
    return as_int(simple) ? text(*as_int(simple)) : text(simple);
  };
  if (as_int(room) && *as_int(room) < 0)
    in.fail({.what = text("a window reaches over ", words(reach), " elements of ", words(padded)),
             .needs = "windows inside of the data with its padding",
             .hint = "use a smaller window or dilation, or more padding"});
  return in.arith().simplify(floordiv(room, stride) + 1);
}

RExpr build_with_out_layout(const OpDef& op, BoundArgs args, const char* data_layout) {
  if (!has_attr(args.attrs, "out_layout")) args.attrs["out_layout"] = args.attrs.at(data_layout);
  return build_call(op, std::move(args));
}

}  // namespace sator::relax
