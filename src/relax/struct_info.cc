#include "relax/struct_info.h"

#include <algorithm>

namespace sator::relax {

namespace {

// ---- Comparison ----

using Extents = std::vector<Expr>;

class Comparison {
 public:
  explicit Comparison(arith::Analyzer& arith) : arith_(arith) {}
  virtual ~Comparison() = default;

  BaseCheck check(const StructInfo& base, const StructInfo& derived) {
    return match(
        base,
        [](const ObjectInfo&) { return BaseCheck::pass; },
        [&](const PrimInfo& b) { return of_kind(b, derived); },
        [&](const ShapeInfo& b) { return of_kind(b, derived); },
        [&](const TensorInfo& b) { return of_kind(b, derived); },
        [&](const DTensorInfo& b) { return of_kind(b, derived); },
        [&](const TupleInfo& b) { return of_kind(b, derived); },
        [&](const FuncInfo& b) { return of_kind(b, derived); });
  }

 protected:
  virtual BaseCheck extents(const Expr& base, const Expr& derived) {
    auto a = as_int(base), b = as_int(derived);
    if (a && b) return *a == *b ? BaseCheck::pass : BaseCheck::disjoint;
    return arith_.prove_equal(base, derived) ? BaseCheck::pass : BaseCheck::values_unknown;
  }
  virtual BaseCheck shapes(const RExpr& base, const RExpr& derived) {
    if (base == derived) return BaseCheck::pass;
    const ShapeExpr *a = base.as<ShapeExpr>(), *b = derived.as<ShapeExpr>();
    return a && b ? all_extents(a->values, b->values) : BaseCheck::values_unknown;
  }
  virtual BaseCheck parameters(const std::vector<StructInfo>& base, const std::vector<StructInfo>& derived) {
    BaseCheck result = all(base, derived);
    return result == BaseCheck::not_known ? BaseCheck::values_unknown : result;
  }
  BaseCheck all_extents(const Extents& base, const Extents& derived) {
    if (base.size() != derived.size()) return BaseCheck::disjoint;
    BaseCheck worst = BaseCheck::pass;
    for (size_t i = 0; i < base.size(); ++i) worst = std::min(worst, extents(base[i], derived[i]));
    return worst;
  }

  arith::Analyzer& arith_;

 private:
  template <class T>
  BaseCheck of_kind(const T& base, const StructInfo& derived) {
    if (const T* d = derived.as<T>()) return compare(base, *d);
    return derived.as<ObjectInfo>() ? BaseCheck::not_known : BaseCheck::disjoint;
  }
  BaseCheck all(const std::vector<StructInfo>& base, const std::vector<StructInfo>& derived) {
    if (base.size() != derived.size()) return BaseCheck::disjoint;
    BaseCheck worst = BaseCheck::pass;
    for (size_t i = 0; i < base.size(); ++i) worst = std::min(worst, check(base[i], derived[i]));
    return worst;
  }

  BaseCheck compare(const PrimInfo& base, const PrimInfo& derived) {
    if (base.dtype != derived.dtype) return BaseCheck::disjoint;
    if (!base.value) return BaseCheck::pass;
    return derived.value ? extents(base.value, derived.value) : BaseCheck::values_unknown;
  }
  BaseCheck compare(const ShapeInfo& base, const ShapeInfo& derived) {
    if (base.ndim < 0) return BaseCheck::pass;
    if (base.ndim != derived.ndim) return derived.ndim < 0 ? BaseCheck::not_known : BaseCheck::disjoint;
    if (!base.values) return BaseCheck::pass;
    return derived.values ? all_extents(*base.values, *derived.values) : BaseCheck::values_unknown;
  }
  BaseCheck compare(const TensorInfo& base, const TensorInfo& derived) {
    if (!base.dtype.is_void() && base.dtype != derived.dtype)
      return derived.dtype.is_void() ? BaseCheck::not_known : BaseCheck::disjoint;
    if (base.ndim >= 0 && base.ndim != derived.ndim)
      return derived.ndim < 0 ? BaseCheck::not_known : BaseCheck::disjoint;
    if (!base.vdevice.empty() && base.vdevice != derived.vdevice)
      return derived.vdevice.empty() ? BaseCheck::not_known : BaseCheck::disjoint;
    if (!base.shape) return BaseCheck::pass;
    return derived.shape ? shapes(base.shape, derived.shape) : BaseCheck::values_unknown;
  }
  BaseCheck compare(const DTensorInfo& base, const DTensorInfo& derived) {
    const bool lie_alike = base.placement == derived.placement && equal(base.mesh, derived.mesh);
    return lie_alike ? compare(*base.tensor, *derived.tensor) : BaseCheck::disjoint;
  }
  BaseCheck compare(const TupleInfo& base, const TupleInfo& derived) { return all(base.items, derived.items); }
  BaseCheck compare(const FuncInfo& base, const FuncInfo& derived) {
    if (base.pure && !derived.pure) return BaseCheck::disjoint;
    if (!base.params) return check(base.ret, derived.ret);
    if (!derived.params) return BaseCheck::values_unknown;
    // The two may name their sizes differently, so they are first compared as wholes.
    if (equal(ref(base), ref(derived))) return BaseCheck::pass;
    return std::min(parameters(*base.params, *derived.params), check(base.ret, derived.ret));
  }
};

/// Compares parameters with arguments and notes which size each parameter's variable stands for.
class ArgumentMatch final : public Comparison {
 public:
  using Comparison::Comparison;
  VarMap sizes;
  std::unordered_map<RVarRef, RExpr> shape_vars;

 private:
  BaseCheck extents(const Expr& param, const Expr& arg) override {
    const Var* v = param.as<Var>();
    if (!binds_ || !v) return Comparison::extents(param, arg);
    auto [at, fresh] = sizes.emplace(ref(*v), arg);
    return fresh || arith_.prove_equal(at->second, arg) ? BaseCheck::pass : BaseCheck::values_unknown;
  }
  BaseCheck shapes(const RExpr& param, const RExpr& arg) override {
    if (!binds_) return Comparison::shapes(param, arg);
    if (const RVar* v = param.as<RVar>()) {
      auto [at, fresh] = shape_vars.emplace(ref(*v), arg);
      return fresh || at->second == arg || equal(at->second, arg) ? BaseCheck::pass : BaseCheck::values_unknown;
    }
    const ShapeExpr *p = param.as<ShapeExpr>(), *a = arg.as<ShapeExpr>();
    return p && a ? all_extents(p->values, a->values) : BaseCheck::values_unknown;
  }
  /// The sizes in the signature of a function that is passed as an argument are its own.
  BaseCheck parameters(const std::vector<StructInfo>& base, const std::vector<StructInfo>& derived) override {
    bool outer = std::exchange(binds_, false);
    BaseCheck result = Comparison::parameters(base, derived);
    binds_ = outer;
    return result;
  }
  bool binds_ = true;
};

}  // namespace

BaseCheck base_check(const StructInfo& base, const StructInfo& derived, arith::Analyzer& arith) {
  return base == derived ? BaseCheck::pass : Comparison(arith).check(base, derived);
}

// ---- What holds for both ----

namespace {

bool equal_extents(const Extents& a, const Extents& b, arith::Analyzer& arith) {
  return std::ranges::equal(a, b, [&](const Expr& x, const Expr& y) { return arith.prove_equal(x, y); });
}

StructInfo common(const ShapeInfo& a, const ShapeInfo& b, arith::Analyzer& arith) {
  if (a.ndim == b.ndim && a.values && b.values && equal_extents(*a.values, *b.values, arith)) return ref(a);
  return shape_info(a.ndim == b.ndim ? a.ndim : -1);
}

StructInfo common(const TensorInfo& a, const TensorInfo& b, arith::Analyzer& arith) {
  DType dtype = a.dtype == b.dtype ? a.dtype : DType::Void();
  std::string vdevice = a.vdevice == b.vdevice ? a.vdevice : "";
  bool same_shape = a.ndim == b.ndim && a.shape && b.shape;
  if (same_shape && a.shape != b.shape) {
    const ShapeExpr *s = a.shape.as<ShapeExpr>(), *t = b.shape.as<ShapeExpr>();
    same_shape = s && t && equal_extents(s->values, t->values, arith);
  }
  if (same_shape) return tensor_info(a.shape, dtype, vdevice);
  return tensor_info(dtype, a.ndim == b.ndim ? a.ndim : -1, vdevice);
}

StructInfo common(const FuncInfo& a, const FuncInfo& b, arith::Analyzer& arith) {
  bool pure = a.pure && b.pure;
  if (a.params && b.params && equal(ref(a), ref(b))) return ref(a);
  StructInfo ret = common_base(a.ret, b.ret, arith);
  if (!a.params || !b.params || a.params->size() != b.params->size()) return opaque_func_info(ret, pure);
  std::vector<StructInfo> params;
  for (size_t i = 0; i < a.params->size(); ++i) params.push_back(common_base((*a.params)[i], (*b.params)[i], arith));
  return func_info(std::move(params), ret, pure);
}

}  // namespace

StructInfo common_base(const StructInfo& a, const StructInfo& b, arith::Analyzer& arith) {
  if (a == b) return a;
  if (&a->info() != &b->info()) return object_info();
  return match(
      a,
      [&](const ObjectInfo&) { return a; },
      [&](const PrimInfo& x) -> StructInfo {
        const PrimInfo& y = *b.as<PrimInfo>();
        if (x.dtype != y.dtype) return object_info();
        bool same = x.value && y.value && arith.prove_equal(x.value, y.value);
        return same || !x.value ? a : prim_info(x.dtype);
      },
      [&](const ShapeInfo& x) { return common(x, *b.as<ShapeInfo>(), arith); },
      [&](const TensorInfo& x) { return common(x, *b.as<TensorInfo>(), arith); },
      [&](const DTensorInfo& x) -> StructInfo {
        const DTensorInfo& y = *b.as<DTensorInfo>();
        if (x.placement != y.placement || !equal(x.mesh, y.mesh)) return object_info();
        return with(x, &DTensorInfo::tensor, cast<TensorInfo>(common(*x.tensor, *y.tensor, arith)));
      },
      [&](const TupleInfo& x) -> StructInfo {
        const TupleInfo& y = *b.as<TupleInfo>();
        if (x.items.size() != y.items.size()) return object_info();
        std::vector<StructInfo> items;
        for (size_t i = 0; i < x.items.size(); ++i) items.push_back(common_base(x.items[i], y.items[i], arith));
        return tuple_info(std::move(items));
      },
      [&](const FuncInfo& x) { return common(x, *b.as<FuncInfo>(), arith); });
}

// ---- Leaving a scope ----

namespace {

class Eraser {
 public:
  Eraser(const VarMap& sizes, const std::unordered_map<RVarRef, RExpr>& shapes, arith::Analyzer& arith)
      : sizes_(sizes), shapes_(shapes), arith_(arith) {}

  StructInfo operator()(const StructInfo& info) {
    return match(
        info,
        [&](const ObjectInfo&) { return info; },
        [&](const FuncInfo&) { return info; },
        [&](const PrimInfo& p) -> StructInfo {
          if (!p.value) return info;
          Expr value = placed(p.value);
          return !value ? prim_info(p.dtype) : value == p.value ? info : prim_info(value);
        },
        [&](const ShapeInfo& s) -> StructInfo {
          if (!s.values) return info;
          auto values = placed(*s.values);
          return !values ? shape_info(s.ndim) : *values == *s.values ? info : shape_info(*values);
        },
        [&](const TensorInfo& t) -> StructInfo {
          if (!t.shape) return info;
          RExpr shape = placed_shape(t.shape);
          if (shape == t.shape) return info;
          return shape ? tensor_info(shape, t.dtype, t.vdevice) : tensor_info(t.dtype, t.ndim, t.vdevice);
        },
        [&](const DTensorInfo& d) -> StructInfo {
          StructInfo tensor = (*this)(d.tensor);
          return tensor == d.tensor ? info : StructInfo(with(d, &DTensorInfo::tensor, cast<TensorInfo>(tensor)));
        },
        [&](const TupleInfo& t) -> StructInfo {
          std::vector<StructInfo> items;
          for (const StructInfo& item : t.items) items.push_back((*this)(item));
          return items == t.items ? info : tuple_info(std::move(items));
        });
  }

 private:
  /// The expression over the variables that are known outside; null if it needs another one.
  Expr placed(const Expr& e) {
    for (const VarRef& v : vars_in(e)) {
      if (!sizes_.count(v)) return nullptr;
    }
    Expr out = substitute(e, sizes_);
    if (out == e) return e;
    out = arith_.simplify(out);
    return out.as<IntImm>() ? cast_to(i64, out) : out;
  }
  std::optional<Extents> placed(const Extents& values) {
    Extents out;
    for (const Expr& e : values) {
      out.push_back(placed(e));
      if (!out.back()) return {};
    }
    return out;
  }
  RExpr placed_shape(const RExpr& shape) {
    if (const RVar* v = shape.as<RVar>()) {
      auto at = shapes_.find(ref(*v));
      return at == shapes_.end() ? nullptr : at->second;
    }
    const Extents& values = shape.as<ShapeExpr>()->values;
    auto out = placed(values);
    return !out ? nullptr : *out == values ? shape : shape_expr(*out);
  }

  const VarMap& sizes_;
  const std::unordered_map<RVarRef, RExpr>& shapes_;
  arith::Analyzer& arith_;
};

}  // namespace

StructInfo erase_to_well_defined(const StructInfo& info, const VarMap& sizes,
                                 const std::unordered_map<RVarRef, RExpr>& shapes, arith::Analyzer& arith) {
  return Eraser(sizes, shapes, arith)(info);
}

StructInfo result_of_call(const FuncInfo& function, const std::vector<RExpr>& args, arith::Analyzer& arith) {
  if (!function.params) return function.ret;
  const std::vector<StructInfo>& params = *function.params;
  if (params.size() != args.size())
    fail({.what = text("a call with ", args.size(), " arguments"),
          .needs = text(params.size(), " arguments"),
          .hint = "pass one argument per parameter"});
  ArgumentMatch binding(arith);
  for (size_t i = 0; i < params.size(); ++i) {
    BaseCheck result = binding.check(params[i], args[i]->sinfo);
    if (result < BaseCheck::values_unknown)
      fail({.what = text("argument ", i, " is ", args[i]->sinfo, ", where ", params[i], " is asked for"),
            .needs = "arguments that fit the parameters",
            .hint = result == BaseCheck::not_known ? "match_cast the argument first" : "pass another value"});
  }
  return erase_to_well_defined(function.ret, binding.sizes, binding.shape_vars, arith);
}

// ---- Variables ----

namespace {

void collect(const StructInfo& info, bool standing_alone, std::vector<VarRef>& out) {
  auto add = [&](const VarRef& v) {
    if (std::ranges::find(out, v) == out.end()) out.push_back(v);
  };
  auto from = [&](const Expr& e) {
    if (standing_alone) {
      if (const Var* v = e.as<Var>()) add(ref(*v));
    } else {
      for (const VarRef& v : vars_in(e)) add(v);
    }
  };
  match(
      info,
      [](const ObjectInfo&) {},
      [](const FuncInfo&) {},
      [&](const PrimInfo& p) {
        if (p.value) from(p.value);
      },
      [&](const ShapeInfo& s) {
        for (const Expr& e : s.values.value_or(Extents{})) from(e);
      },
      [&](const TensorInfo& t) {
        for (const Expr& e : shape_of(t).value_or(Extents{})) from(e);
      },
      [&](const DTensorInfo& d) { collect(d.tensor, standing_alone, out); },
      [&](const TupleInfo& t) {
        for (const StructInfo& item : t.items) collect(item, standing_alone, out);
      });
}

}  // namespace

std::vector<VarRef> vars_of(const StructInfo& info) {
  std::vector<VarRef> out;
  collect(info, false, out);
  return out;
}
bool has_shapes(const StructInfo& info) {
  if (const TensorInfo* t = info.as<TensorInfo>()) return shape_of(*t).has_value();
  const TupleInfo* t = info.as<TupleInfo>();
  return !t || std::ranges::all_of(t->items, has_shapes);
}

std::vector<VarRef> definable_vars(const StructInfo& info) {
  std::vector<VarRef> out;
  collect(info, true, out);
  return out;
}

}  // namespace sator::relax
