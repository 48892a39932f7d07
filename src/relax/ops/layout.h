// Layouts of tensors by letters: "NCHW", "OIHW", and with split axes "NCHW16c".
#pragma once

#include "relax/ops/op.h"

namespace sator::relax {

/// The axes of a layout in order. An upper-case letter is an axis; a number and a lower-case letter are the inner part of
/// that many elements of the axis of that letter.
class Layout {
 public:
  struct Axis {
    char letter;         ///< upper case
    int64_t factor = 0;  ///< of an inner part; 0: the (outer) axis itself
  };

  /// Nothing if the text is no layout: an axis twice, an inner part without its axis, a number without a letter.
  static std::optional<Layout> parse(const std::string& text);

  int rank() const { return static_cast<int>(axes_.size()); }
  const std::vector<Axis>& axes() const { return axes_; }
  bool is_split() const;
  /// The position of the axis, which is there.
  size_t position(char letter) const;
  bool has(char letter) const;

  /// Extents in the order of `letters`, which are this layout's axes; split ones are joined.
  std::vector<Expr> to_letters(const std::vector<Expr>& shape, std::string_view letters) const;
  /// Extents in this layout from those in the order of `letters`.
  std::vector<Expr> from_letters(const std::vector<Expr>& shape, std::string_view letters,
                                 arith::Analyzer& arith) const;

 private:
  std::vector<Axis> axes_;
};

/// The layout of the name, for axes `letters`. Errors: it is none, or has other axes.
Layout need_layout(const CallInfo& in, const std::string& text, std::string_view letters);
/// The shape of input i in the order of `letters`; nothing if it is unknown. Errors: its rank is not the layout's.
std::optional<std::vector<Expr>> shape_in(const CallInfo& in, size_t i, const Layout& layout, std::string_view letters);

/// Errors: an extent, stride or dilation below 1; negative padding.
void need_window(const CallInfo& in, const std::vector<int64_t>& size, const std::vector<int64_t>& strides,
                 const std::vector<int64_t>& padding, const std::vector<int64_t>& dilation);
/// How many windows lie along an axis of `padded` elements; each reaches over `reach` of them.
/// Errors: none does, for both are known.
Expr windows_along(const CallInfo& in, const Expr& padded, const Expr& reach, int64_t stride);

/// out_layout that is left out is the layout of the data, which attribute `data_layout` names.
RExpr build_with_out_layout(const OpDef& op, BoundArgs args, const char* data_layout);

}  // namespace sator::relax
