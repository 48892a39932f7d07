// matmul, linear, einsum.
#include <algorithm>

#include "relax/builder.h"
#include "relax/ops/families.h"
#include "relax/ops/formula.h"
#include "relax/ops/infer.h"
#include "relax/ops/table.h"

namespace sator::relax {

namespace {

using te::Indices;
using te::Tensor;

struct MatmulAttrs {
  DType out_dtype;  ///< of the products and their sum; void: the inputs' own
  static constexpr auto fields() { return std::tuple{attr("out_dtype", &MatmulAttrs::out_dtype)}; }
};

StructInfo infer_matmul(const MatmulAttrs& a, const CallInfo& in) {
  const TensorInfo &x = in.tensor(0), &y = in.tensor(1);
  std::string vdevice = x.vdevice.empty() ? y.vdevice : y.vdevice.empty() || x.vdevice == y.vdevice ? x.vdevice : "";
  DType dtype = a.out_dtype.is_void() ? in.common_dtype({0, 1}) : a.out_dtype;
  if (x.ndim == 0 || y.ndim == 0)
    in.fail({.what = "an operand is a scalar", .needs = "operands of rank >= 1", .hint = "use multiply"});
  if (x.ndim < 0 || y.ndim < 0) return tensor_info(dtype, -1, vdevice);
  int row = x.ndim > 1, column = y.ndim > 1;  // a vector has neither
  int ndim = std::max(x.ndim + 1 - row, y.ndim + 1 - column) - (1 - row) - (1 - column);
  auto s = explicit_shape(x), t = explicit_shape(y);
  if (!s || !t) return tensor_info(dtype, ndim, vdevice);
  std::vector<Expr> batch_x(s->begin(), s->end() - 1 - row), batch_y(t->begin(), t->end() - 1 - column);
  auto out = in.broadcast(batch_x, batch_y);
  const Expr &k_x = s->back(), &k_y = (*t)[t->size() - 1 - static_cast<size_t>(column)];
  if (in.differ(k_x, k_y))
    in.fail({.what = "the extents that are summed over differ",
             .needs = "x1's last extent equals x2's last but one",
             .hint = "transpose one side with permute_dims"});
  if (!out) return tensor_info(dtype, ndim, vdevice);
  if (row) out->push_back((*s)[s->size() - 2]);
  if (column) out->push_back(t->back());
  return tensor_info(*out, dtype, vdevice);
}

Tensor compute_matmul(const MatmulAttrs& a, const TeInputs& in) {
  const Tensor &x = in.tensor(0), &y = in.tensor(1);
  std::vector<Expr> shape = in.out_shape();
  size_t row = x.rank() > 1, column = y.rank() > 1, batch = shape.size() - row - column;
  auto batch_index = [&](const Tensor& t, const Tensor& other, size_t own, size_t others, const Indices& i) {
    Indices out;
    size_t skipped = batch - own;
    for (size_t d = skipped; d < batch; ++d) {
      const Expr& extent = t.shape()[d - skipped];
      bool stretched = is_one(extent) && d >= batch - others && !is_one(other.shape()[d - (batch - others)]);
      out.push_back(stretched ? dim(0) : i[d]);
    }
    return out;
  };
  size_t batch_x = x.shape().size() - 1 - row, batch_y = y.shape().size() - 1 - column;
  return te::reduce(python_naming("matmul"), shape, [&](const Indices& i) {
    tir::IterVarRef k = te::reduce_axis(x.dim(-1), "k");
    Indices at_x = batch_index(x, y, batch_x, batch_y, i), at_y = batch_index(y, x, batch_y, batch_x, i);
    if (row) at_x.push_back(i[i.size() - 1 - column]);
    at_x.push_back(k->var);
    at_y.push_back(k->var);
    if (column) at_y.push_back(i.back());
    Expr left = x(at_x), right = y(at_y);
    if (!a.out_dtype.is_void()) {
      left = cast_to(a.out_dtype, left);
      right = cast_to(a.out_dtype, right);
    }
    return te::reduce_sum(left * right, {k});
  });
}

/// x @ weight^T (+ bias), written with the other ops.
RExpr build_linear(const OpDef&, BoundArgs args) {
  auto out_dtype = args.attrs.at("out_dtype").as<StringImm>()->value;
  RExpr product =
      make_call("matmul", {args.inputs[0], make_call("permute_dims", {args.inputs[1]})}, {{"out_dtype", out_dtype}});
  return args.inputs[2].is_none() ? product : make_call("add", {product, args.inputs[2]});
}

/// Errors: operands of known rank and unknown dtype, of which no product can be written.
RExpr legalize_matmul(const RCallRef& call, BlockBuilder& b) {
  for (const RExpr& arg : call->args) {
    const TensorInfo* t = arg->sinfo.as<TensorInfo>();
    if (t && t->dtype.is_void() && t->ndim >= 0)
      fail(
          {.what = text("matmul: the dtype of ", arg.as<RVar>() ? arg.as<RVar>()->name : "an operand", " is not known"),
           .needs = "operands of known dtypes, to become a tensor program",
           .hint = "give the parameter a dtype, or match_cast to one"});
  }
  return b.legalize_by_formula(call);
}

// ---- einsum ----

struct EinsumAttrs {
  /// "ij,jk->ik"; without "->" the letters that occur once, in their order. "..." stands for any number of axes, which
  /// are broadcast from the last one, as in NumPy; without "->" they come first.
  std::string subscripts;
  static constexpr auto fields() { return std::tuple{required("subscripts", &EinsumAttrs::subscripts)}; }
};

struct Einsum {
  std::vector<std::string> inputs;
  std::string output;
};

/// The axes behind "..." as letters of their own, which no text can hold.
///   ranks   of the operands
Einsum parse_subscripts(const std::string& subscripts, const std::vector<int>& ranks) {
  std::string s;
  for (char c : subscripts) {
    if (c != ' ') s += c;
  }
  auto fail_text = [&](std::string what) {
    fail({.what = text("einsum: ", what, " in ", string_literal(subscripts)),
          .needs = "letters per operand, as in \"ij,jk->ik\", and \"...\" for the axes left over",
          .hint = "give each axis one letter"});
  };
  Einsum e;
  size_t arrow = s.find("->");
  for (std::string_view part : split(std::string_view(s).substr(0, arrow), ',')) e.inputs.emplace_back(part);
  if (e.inputs.size() != ranks.size()) fail_text(text(e.inputs.size(), " operands for ", ranks.size(), " tensors"));
  constexpr size_t kDots = 3, kMostAxes = 16;
  constexpr char kFirst = 1;  // the letters of the last 16 axes behind "..."
  size_t most = 0;
  auto with_letters = [&](std::string& part, size_t axes) {
    if (axes > kMostAxes) fail_text(text("\"...\" for ", axes, " axes"));
    std::string letters;
    for (size_t d = kMostAxes - axes; d < kMostAxes; ++d) letters += static_cast<char>(kFirst + static_cast<char>(d));
    part.replace(part.find("..."), kDots, letters);
  };
  for (size_t i = 0; i < ranks.size(); ++i) {
    std::string& part = e.inputs[i];
    if (part.find("...") == part.npos) continue;
    const size_t named = part.size() - kDots, rank = static_cast<size_t>(ranks[i]);
    if (rank < named) fail_text(text("operand ", i, " of rank ", rank, " with ", named, " letters"));
    with_letters(part, rank - named);
    most = std::max(most, rank - named);
  }
  std::string all;
  for (const std::string& i : e.inputs) all += i;
  for (char c : all) {
    if (!std::isalpha(static_cast<unsigned char>(c)) && static_cast<size_t>(c) > kMostAxes)
      fail_text(text("the character '", c, "'"));
  }
  if (arrow != s.npos) {
    e.output = s.substr(arrow + 2);
    if (e.output.find("...") != e.output.npos) with_letters(e.output, most);
    for (char c : e.output) {
      if (all.find(c) == all.npos) fail_text(text("the output's letter '", c, "', which no operand has,"));
      if (std::ranges::count(e.output, c) > 1) fail_text(text("the output's letter '", c, "' twice"));
    }
  } else {
    std::string letters = all;
    std::ranges::sort(letters);
    for (char c : letters) {
      const bool is_dots = static_cast<size_t>(c) <= kMostAxes;
      if (is_dots ? e.output.find(c) == e.output.npos : std::ranges::count(all, c) == 1) e.output += c;
    }
  }
  return e;
}

std::map<char, Expr> letter_extents(const Einsum& e, const std::vector<std::vector<Expr>>& shapes,
                                    FunctionRef<bool(const Expr&, const Expr&)> differ,
                                    FunctionRef<void(std::string)> mistake) {
  std::map<char, Expr> extents;
  for (size_t t = 0; t < shapes.size(); ++t) {
    if (e.inputs[t].size() != shapes[t].size())
      mistake(text("operand ", t, " of rank ", shapes[t].size(), " has the subscripts ", string_literal(e.inputs[t])));
    for (size_t d = 0; d < shapes[t].size() && d < e.inputs[t].size(); ++d) {
      Expr& extent = extents[e.inputs[t][d]];
      if (extent && !is_one(extent) && !is_one(shapes[t][d]) && differ(extent, shapes[t][d]))
        mistake(text("the axis '", e.inputs[t][d], "' has extents ", extent, " and ", shapes[t][d]));
      if (!extent || is_one(extent)) extent = shapes[t][d];
    }
  }
  return extents;
}

StructInfo infer_einsum(const EinsumAttrs& a, const CallInfo& in) {
  std::vector<Ref<const TensorInfo>> tensors = in.tensors(0);
  if (tensors.empty()) in.fail({.what = "there are no tensors", .needs = "at least one", .hint = "give the tensors"});
  DType dtype = tensors[0]->dtype;
  std::vector<int> ranks;
  for (const auto& t : tensors) ranks.push_back(t->ndim);
  if (a.subscripts.find("...") != std::string::npos && std::ranges::min(ranks) < 0) return tensor_info(dtype, -1);
  Einsum e = parse_subscripts(a.subscripts, ranks);
  std::vector<std::vector<Expr>> shapes;
  for (const auto& t : tensors) {
    if (t->dtype != dtype && !t->dtype.is_void() && !dtype.is_void())
      in.fail(
          {.what = text("tensors of ", dtype, " and ", t->dtype), .needs = "equal dtypes", .hint = "cast with astype"});
    auto shape = shape_of(*t);
    if (!shape) return tensor_info(dtype, static_cast<int>(e.output.size()));
    shapes.push_back(*shape);
  }
  auto differ = [&](const Expr& x, const Expr& y) { return in.differ(x, y); };
  auto extents = letter_extents(e, shapes, differ, [&](std::string what) {
    in.fail({.what = std::move(what), .needs = "subscripts that fit the tensors", .hint = "check the subscripts"});
  });
  std::vector<Expr> out;
  for (char c : e.output) out.push_back(extents[c]);
  return tensor_info(std::move(out), dtype, tensors[0]->vdevice);
}

Tensor compute_einsum(const EinsumAttrs& a, const TeInputs& in) {
  const std::vector<Tensor>& tensors = in.tensors(0);
  std::vector<int> ranks;
  for (const Tensor& t : tensors) ranks.push_back(static_cast<int>(t.rank()));
  Einsum e = parse_subscripts(a.subscripts, ranks);
  std::vector<std::vector<Expr>> shapes;
  for (const Tensor& t : tensors) shapes.push_back(t.shape());
  auto differ = [](const Expr&, const Expr&) { return false; };
  auto extents = letter_extents(e, shapes, differ, [](std::string what) { internal_error(what); });
  std::vector<tir::IterVarRef> iterators;
  std::map<char, Expr> index;
  for (const std::string& subscripts : e.inputs) {
    for (char c : subscripts) {
      if (e.output.find(c) != e.output.npos || index.count(c)) continue;
      iterators.push_back(
          te::reduce_axis(extents[c], std::isalpha(static_cast<unsigned char>(c)) ? std::string(1, c) : "k"));
      index[c] = iterators.back()->var;
    }
  }
  std::vector<Expr> shape;
  for (char c : e.output) shape.push_back(extents[c]);
  auto product = [&](const Indices& i) {
    for (size_t d = 0; d < e.output.size(); ++d) index[e.output[d]] = i[d];
    Expr value;
    for (size_t t = 0; t < tensors.size(); ++t) {
      Indices at;
      for (size_t d = 0; d < e.inputs[t].size(); ++d)
        at.push_back(is_one(shapes[t][d]) ? dim(0) : index[e.inputs[t][d]]);
      value = value ? value * tensors[t](at) : tensors[t](at);
    }
    return value;
  };
  te::Naming naming{.name = "T_einsum"};
  if (iterators.empty()) return te::compute(naming, shape, product);
  return te::reduce(naming, shape, [&](const Indices& i) { return te::reduce_sum(product(i), iterators); });
}

}  // namespace

std::vector<OpDef> linear_algebra_ops() {
  auto matmul_attrs = attrs_of<MatmulAttrs>();
  return {
      {.name = "matmul",
       .inputs = {{"x1"}, {"x2"}},
       .attrs = matmul_attrs,
       .infer = with(infer_matmul),
       .compute = with(compute_matmul),
       .legalize = legalize_matmul},
      {.name = "linear",
       .inputs = {{"data"}, {"weight"}, {"bias", InputKind::tensor, true}},
       .attrs = matmul_attrs,
       .build = build_linear},
      {.name = "einsum",
       .inputs = {{"operands", InputKind::tensors}},
       .attrs = attrs_of<EinsumAttrs>(),
       .infer = with(infer_einsum),
       .compute = with(compute_einsum)},
  };
}

}  // namespace sator::relax
