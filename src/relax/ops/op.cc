#include "relax/ops/op.h"

#include <algorithm>

namespace sator::relax {

void CallInfo::fail(Reason reason) const {
  reason.what = text(op_.name, ": ", reason.what);
  reason.at.push_back({ref(call_), "this call"});
  sator::fail(std::move(reason));
}

const StructInfo& CallInfo::info(size_t i) const {
  if (i >= size())
    fail({.what = text("called with ", size(), " arguments"),
          .needs = text(op_.inputs.size(), " arguments"),
          .hint = text("give argument ", i, i < op_.inputs.size() ? " (" + op_.inputs[i].name + ")" : "")});
  const StructInfo& s = arg(i)->sinfo;
  if (!s)
    fail({.what = text("argument ", i, " has no struct info"),
          .needs = "arguments that were normalised",
          .hint = "bind the argument to a variable first"});
  return s;
}

namespace {
template <class T>
const T& info_as(const CallInfo& c, size_t i, const char* wanted) {
  const StructInfo& s = c.info(i);
  if (const T* t = s.as<T>()) return *t;
  std::string name = i < c.op().inputs.size() ? text(" (", c.op().inputs[i].name, ")") : "";
  c.fail({.what = text("argument ", i, name, " is ", s->info().name),
          .needs = wanted,
          .hint = "give the op a value of that kind"});
}
}  // namespace

const TensorInfo& CallInfo::tensor(size_t i) const { return info_as<TensorInfo>(*this, i, "a tensor"); }
const ShapeInfo& CallInfo::shape(size_t i) const { return info_as<ShapeInfo>(*this, i, "a shape"); }

std::vector<Ref<const TensorInfo>> CallInfo::tensors(size_t i) const {
  std::vector<Ref<const TensorInfo>> out;
  for (const StructInfo& item : info_as<TupleInfo>(*this, i, "a tuple of tensors").items) {
    out.push_back(cast<TensorInfo>(item));
    if (!out.back())
      fail({.what = text("item ", out.size() - 1, " of the tuple is ", item->info().name),
            .needs = "a tuple of tensors",
            .hint = "leave out what is no tensor"});
  }
  return out;
}

int CallInfo::axis(int64_t axis, int rank) const {
  if (axis < -rank || axis >= rank)
    fail({.what = text("axis ", axis, " is outside a tensor of rank ", rank),
          .needs = "-rank <= axis < rank",
          .hint = rank > 0 ? text("use an axis from ", -rank, " to ", rank - 1) : "give the tensor a dimension first"});
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::vector<int> CallInfo::axes(const Axes& axes, int rank) const {
  std::vector<int> out;
  for (int64_t a : axes) {
    int i = axis(a, rank);
    if (std::ranges::find(out, i) != out.end())
      fail({.what = text("axis ", i, " is named twice"), .needs = "different axes", .hint = "name each axis once"});
    out.push_back(i);
  }
  return out;
}

void CallInfo::need_rank(size_t i, int rank) const {
  int given = tensor(i).ndim;
  if (given >= 0 && given != rank)
    fail({.what = text("argument ", i, " has rank ", given), .needs = text("rank ", rank), .hint = "reshape it first"});
}

void CallInfo::need_float(size_t i) const {
  DType d = tensor(i).dtype;
  if (!d.is_void() && !d.is_float())
    fail({.what = text("argument ", i, " is ", d), .needs = "a floating dtype", .hint = "cast it to float32 first"});
}

DType CallInfo::common_dtype(std::initializer_list<size_t> inputs) const {
  DType common;
  bool unknown = false;
  for (size_t i : inputs) {
    DType d = tensor(i).dtype;
    if (d.is_void()) {
      unknown = true;
      continue;
    }
    if (!common.is_void() && common != d)
      fail({.what = text("argument ", i, " is ", d, " where another is ", common),
            .needs = "equal dtypes",
            .hint = "cast one of them with astype"});
    common = d;
  }
  return unknown ? DType::Void() : common;
}

bool CallInfo::differ(const Expr& a, const Expr& b) const {
  if (arith_.prove(make<NE>(a, b))) return true;
  // A number is what is asked for, not what is found.
  if (assumed_ && !arith_.prove_equal(a, b)) assumed_->push_back(as_int(a) ? SizePair{b, a} : SizePair{a, b});
  return false;
}
bool CallInfo::exceeds(const Expr& size, const Expr& room) const {
  if (arith_.prove(lt(room, size))) return true;
  if (assumed_ && !arith_.prove(le(size, room))) assumed_->push_back({min(size, room), size});
  return false;
}
bool CallInfo::same(const Expr& a, const Expr& b) const {
  return arith_.prove_equal(a, b) || (assumed_ && !differ(a, b));
}
bool CallInfo::same(const std::vector<Expr>& a, const std::vector<Expr>& b) const {
  return std::ranges::equal(a, b, [&](const Expr& x, const Expr& y) { return same(x, y); });
}

std::optional<std::vector<Expr>> CallInfo::broadcast(const std::vector<Expr>& a, const std::vector<Expr>& b) const {
  const std::vector<Expr>& longer = a.size() >= b.size() ? a : b;
  std::vector<Expr> out = longer;
  size_t common = std::min(a.size(), b.size());
  for (size_t i = 1; i <= common; ++i) {
    const Expr &x = a[a.size() - i], &y = b[b.size() - i];
    Expr& result = out[out.size() - i];
    if (is_one(x))
      result = y;
    else if (is_one(y) || same(x, y))
      result = as_int(y) && !is_one(y) ? y : x;
    else if (as_int(x) && as_int(y))
      fail({.what = text("extents ", *as_int(x), " and ", *as_int(y), " at dimension -", i, " do not broadcast"),
            .needs = "extents that are equal, or one of them 1",
            .hint = "reshape or slice one side"});
    else
      return {};
  }
  return out;
}

std::vector<Expr> TeInputs::out_shape() const { return shape_of(*out.as<TensorInfo>()).value(); }
DType TeInputs::out_dtype() const { return out.as<TensorInfo>()->dtype; }

}  // namespace sator::relax
