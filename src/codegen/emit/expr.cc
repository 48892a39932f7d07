// The value of an expression, one arm per kind.
#include <llvm/IR/Constants.h>

#include <algorithm>

#include "codegen/emit/emit.h"
#include "ir/visit.h"

namespace sator::codegen {

namespace {

/// Calls of one instruction that cannot fault.
bool is_cheap(const Call& c) {
  static constexpr std::string_view kCheap[] = {
      "tir.likely", "tir.isnan", "tir.fabs", "tir.bitwise_and", "tir.bitwise_or", "tir.bitwise_xor", "tir.bitwise_not"};
  return std::ranges::find(kCheap, c.op) != std::end(kCheap);
}

/// Whether evaluating it where it is not asked for could fault or be dear. What has been loaded before can be loaded again.
bool must_be_lazy(const Emit& e, const Expr& expr) {
  bool lazy = false;
  walk(
      expr,
      [&](const BufferLoad& n) {
        lazy |= std::ranges::none_of(e.loaded, [&](const Expr& before) { return equal(before, ref(n)); });
      },
      [&](const Call& c) { lazy |= !is_cheap(c); },
      [&](const Div& n) { lazy |= n.dtype.is_integer(); },
      [&](const Mod& n) { lazy |= n.dtype.is_integer(); },
      [&](const FloorDiv& n) { lazy |= n.dtype.is_integer() && !n.b.as<IntImm>(); },
      [&](const FloorMod& n) { lazy |= n.dtype.is_integer() && !n.b.as<IntImm>(); });
  return lazy;
}

/// The loads that evaluating `expr` makes whatever its values are.
void add_certain_loads(const Expr& expr, std::vector<Expr>& out) {
  auto all = [&](const ExprNode& n) {
    n.info().each_child(n, [&](const NodeRef& child) {
      if (const Expr e = cast<ExprNode>(child)) add_certain_loads(e, out);
    });
  };
  match(
      expr,
      [&](const And& n) { add_certain_loads(n.a, out); },
      [&](const Or& n) { add_certain_loads(n.a, out); },
      [&](const Select& n) { add_certain_loads(n.condition, out); },
      [&](const Call& n) {
        if (is_cheap(n)) all(n);
      },
      [&](const BufferLoad& n) {
        all(n);
        out.push_back(ref(n));
      },
      [&](const ExprNode& n) { all(n); });
}

/// While it lives, the loads of a condition count as made: around what is evaluated after it.
class After {
 public:
  After(Emit& e, const Expr& condition) : e_(e), before_(e.loaded.size()) { add_certain_loads(condition, e.loaded); }
  ~After() { e_.loaded.resize(before_); }
  After(const After&) = delete;
  After& operator=(const After&) = delete;

 private:
  Emit& e_;
  size_t before_;
};

/// a && b, a || b: b is evaluated where it decides.
llvm::Value* logical(Emit& e, const Expr& a, const Expr& b, bool is_and) {
  llvm::Value* x = value_of(e, a);
  const After after(e, a);
  if (a->dtype.lanes > 1) {
    llvm::Value* outer = e.mask;
    if (must_be_lazy(e, b)) {
      llvm::Value* decides = is_and ? x : e.b.CreateNot(x);
      e.mask = mask_where(e, decides, a->dtype.lanes);
    }
    llvm::Value* y = value_of(e, b);
    e.mask = outer;
    return is_and ? e.b.CreateAnd(x, y) : e.b.CreateOr(x, y);
  }
  if (!must_be_lazy(e, b)) {
    llvm::Value* y = value_of(e, b);
    return is_and ? e.b.CreateLogicalAnd(x, y) : e.b.CreateLogicalOr(x, y);
  }
  llvm::BasicBlock* from = e.b.GetInsertBlock();
  auto* second = llvm::BasicBlock::Create(e.llvm, "second", e.function);
  auto* done = llvm::BasicBlock::Create(e.llvm, "decided", e.function);
  is_and ? e.b.CreateCondBr(x, second, done) : e.b.CreateCondBr(x, done, second);
  e.b.SetInsertPoint(second);
  llvm::Value* y = value_of(e, b);
  llvm::BasicBlock* end = e.b.GetInsertBlock();
  e.b.CreateBr(done);
  e.b.SetInsertPoint(done);
  llvm::PHINode* phi = e.b.CreatePHI(e.b.getInt1Ty(), 2);
  phi->addIncoming(e.b.getInt1(!is_and), from);
  phi->addIncoming(y, end);
  return phi;
}

llvm::Value* emit_ramp(Emit& e, const Ramp& n) {
  int inner = n.base->dtype.lanes;
  llvm::Value *base = value_of(e, n.base), *stride = value_of(e, n.stride);
  std::vector<llvm::Constant*> steps;
  std::vector<int> repeat;
  llvm::Type* element = type_of(e, n.dtype.element());
  for (int i = 0; i < n.lanes.count; ++i)
    for (int j = 0; j < inner; ++j) {
      steps.push_back(llvm::ConstantInt::get(element, static_cast<uint64_t>(i)));
      repeat.push_back(j);
    }
  auto wide = [&](llvm::Value* v) {
    return inner == 1 ? splat(e, v, n.lanes.count) : e.b.CreateShuffleVector(v, repeat);
  };
  const bool no_wrap = e.in_index && does_not_wrap(n.dtype);
  llvm::Value* offsets = e.b.CreateMul(wide(stride), llvm::ConstantVector::get(steps), "", false, no_wrap);
  return e.b.CreateAdd(wide(base), offsets, "", false, no_wrap);
}

/// A vector of whose lanes, laid end to end with others' from `first` on, a result picks some.
llvm::Value* operand(Emit& e, const Expr& vector, const std::vector<int>& picked, int first) {
  llvm::Value* outer = e.mask;
  if (vector->dtype.lanes > 1) e.mask = mask_of_operand(e, picked, vector->dtype.lanes, first);
  llvm::Value* value = value_of(e, vector);
  e.mask = outer;
  return value;
}

llvm::Value* emit_broadcast(Emit& e, const Broadcast& n) {
  const int inner = n.value->dtype.lanes;
  if (inner == 1) return splat(e, value_of(e, n.value), n.lanes.count);
  std::vector<int> repeat;
  for (int i = 0; i < n.lanes.count * inner; ++i) repeat.push_back(i % inner);
  return e.b.CreateShuffleVector(operand(e, n.value, repeat, 0), repeat);
}

llvm::Value* emit_shuffle(Emit& e, const Shuffle& n) {
  int width = 0;
  for (const Expr& v : n.vectors) width += v->dtype.lanes;
  std::vector<int> picked;
  for (const Expr& i : n.indices) {
    auto at = as_int(i);
    if (!at || *at < 0 || *at >= width) unsupported("a shuffle whose index is not a constant lane");
    picked.push_back(static_cast<int>(*at));
  }
  // Laid end to end by pairs of equal width; the others lane by lane.
  std::vector<std::pair<llvm::Value*, int>> lanes;
  std::vector<llvm::Value*> vectors;
  for (const Expr& v : n.vectors) {
    vectors.push_back(operand(e, v, picked, static_cast<int>(lanes.size())));
    for (int i = 0; i < v->dtype.lanes; ++i) lanes.emplace_back(vectors.back(), i);
  }
  auto lane = [&](int at) {
    auto [v, i] = lanes[static_cast<size_t>(at)];
    return v->getType()->isVectorTy() ? e.b.CreateExtractElement(v, static_cast<uint64_t>(i)) : v;
  };
  if (picked.size() == 1) return lane(picked[0]);
  bool same_width =
      vectors.size() <= 2 && vectors[0]->getType()->isVectorTy() && vectors.back()->getType() == vectors[0]->getType();
  if (same_width && vectors.size() == 1) return e.b.CreateShuffleVector(vectors[0], picked);
  if (same_width) return e.b.CreateShuffleVector(vectors[0], vectors[1], picked);
  llvm::Value* out = llvm::PoisonValue::get(type_of(e, n.dtype));
  for (size_t i = 0; i < picked.size(); ++i) out = e.b.CreateInsertElement(out, lane(picked[i]), i);
  return out;
}

}  // namespace

llvm::Value* emit_choice(Emit& e, const Expr& by, const Expr& true_value, const Expr& false_value) {
  llvm::Value* condition = value_of(e, by);
  if (by->dtype.lanes > 1) {
    llvm::Value* outer = e.mask;
    auto under = [&](llvm::Value* lanes) { e.mask = mask_where(e, lanes, by->dtype.lanes); };
    under(condition);
    llvm::Value* yes = value_of(e, true_value);
    e.mask = outer;
    if (!false_value.as<FloatImm>() && !false_value.as<IntImm>() && !false_value.as<Broadcast>())
      under(e.b.CreateNot(condition));
    llvm::Value* no = value_of(e, false_value);
    e.mask = outer;
    return e.b.CreateSelect(condition, yes, no);
  }
  auto* then = llvm::BasicBlock::Create(e.llvm, "then", e.function);
  auto* otherwise = llvm::BasicBlock::Create(e.llvm, "else", e.function);
  auto* done = llvm::BasicBlock::Create(e.llvm, "chosen", e.function);
  e.b.CreateCondBr(condition, then, otherwise);
  e.b.SetInsertPoint(then);
  llvm::Value* yes = value_of(e, true_value);
  llvm::BasicBlock* then_end = e.b.GetInsertBlock();
  e.b.CreateBr(done);
  e.b.SetInsertPoint(otherwise);
  llvm::Value* no = value_of(e, false_value);
  llvm::BasicBlock* else_end = e.b.GetInsertBlock();
  e.b.CreateBr(done);
  e.b.SetInsertPoint(done);
  llvm::PHINode* phi = e.b.CreatePHI(yes->getType(), 2);
  phi->addIncoming(yes, then_end);
  phi->addIncoming(no, else_end);
  return phi;
}

llvm::Value* value_of(Emit& e, const Expr& expr) {
  using P = llvm::CmpInst::Predicate;
  return match(
      expr,
      [&](const Var& v) -> llvm::Value* {
        if (auto at = e.values.find(&v); at != e.values.end()) return at->second;
        if (auto at = e.memory.find(&v); at != e.memory.end()) return at->second.base;
        internal_error(text("variable ", v.name, " has no value in the kernel"));
      },
      [&](const IntImm& n) -> llvm::Value* { return integer(e, n.value, n.dtype); },
      [&](const FloatImm& n) -> llvm::Value* { return number(e, n.value, n.dtype); },
      [&](const StringImm& n) -> llvm::Value* { return e.b.CreateGlobalString(n.value, "text"); },
      [&](const Add& n) -> llvm::Value* { return emit_add(e, n); },
      [&](const Sub& n) -> llvm::Value* { return emit_sub(e, n); },
      [&](const Mul& n) -> llvm::Value* { return emit_mul(e, n); },
      [&](const Div& n) -> llvm::Value* { return emit_division(e, n.a, n.b, false, false); },
      [&](const Mod& n) -> llvm::Value* { return emit_division(e, n.a, n.b, false, true); },
      [&](const FloorDiv& n) -> llvm::Value* { return emit_division(e, n.a, n.b, true, false); },
      [&](const FloorMod& n) -> llvm::Value* { return emit_division(e, n.a, n.b, true, true); },
      [&](const Min& n) -> llvm::Value* { return emit_min_max(e, n.a, n.b, false); },
      [&](const Max& n) -> llvm::Value* { return emit_min_max(e, n.a, n.b, true); },
      [&](const EQ& n) -> llvm::Value* { return emit_compare(e, n.a, n.b, P::ICMP_EQ, P::ICMP_EQ, P::FCMP_OEQ); },
      [&](const NE& n) -> llvm::Value* { return emit_compare(e, n.a, n.b, P::ICMP_NE, P::ICMP_NE, P::FCMP_UNE); },
      [&](const LT& n) -> llvm::Value* { return emit_compare(e, n.a, n.b, P::ICMP_SLT, P::ICMP_ULT, P::FCMP_OLT); },
      [&](const LE& n) -> llvm::Value* { return emit_compare(e, n.a, n.b, P::ICMP_SLE, P::ICMP_ULE, P::FCMP_OLE); },
      [&](const GT& n) -> llvm::Value* { return emit_compare(e, n.a, n.b, P::ICMP_SGT, P::ICMP_UGT, P::FCMP_OGT); },
      [&](const GE& n) -> llvm::Value* { return emit_compare(e, n.a, n.b, P::ICMP_SGE, P::ICMP_UGE, P::FCMP_OGE); },
      [&](const And& n) -> llvm::Value* { return logical(e, n.a, n.b, true); },
      [&](const Or& n) -> llvm::Value* { return logical(e, n.a, n.b, false); },
      [&](const Not& n) -> llvm::Value* { return e.b.CreateNot(value_of(e, n.a)); },
      [&](const Select& n) -> llvm::Value* {
        const After after(e, n.condition);
        if (must_be_lazy(e, n.true_value) || must_be_lazy(e, n.false_value))
          return emit_choice(e, n.condition, n.true_value, n.false_value);
        llvm::Value* condition = value_of(e, n.condition);
        llvm::Value* yes = value_of(e, n.true_value);
        return e.b.CreateSelect(condition, yes, value_of(e, n.false_value));
      },
      [&](const Cast& n) -> llvm::Value* { return emit_cast(e, n); },
      [&](const BufferLoad& n) -> llvm::Value* { return emit_load(e, n); },
      [&](const Call& n) -> llvm::Value* { return emit_call(e, n); },
      [&](const Let& n) -> llvm::Value* {
        bool outer = std::exchange(e.in_index, false);
        if (has_data(e, n.value)) e.data.insert(n.var.get());
        e.values[n.var.get()] = value_of(e, n.value);
        e.in_index = outer;
        return value_of(e, n.body);
      },
      [&](const Ramp& n) -> llvm::Value* { return emit_ramp(e, n); },
      [&](const Broadcast& n) -> llvm::Value* { return emit_broadcast(e, n); },
      [&](const Shuffle& n) -> llvm::Value* { return emit_shuffle(e, n); });
}

bool has_data(const Emit& e, const Expr& expr) {
  if (e.trusts_indices) return false;
  bool found = false;
  walk(
      expr,
      [&](const BufferLoad&) { found = true; },
      [&](const Call&) { found = true; },
      [&](const Var& v) { found |= e.data.contains(&v); });
  return found;
}

llvm::Value* index_of(Emit& e, const Expr& expr) {
  bool outer = std::exchange(e.in_index, !has_data(e, expr));
  llvm::Value* value = value_of(e, expr);
  e.in_index = outer;
  return value;
}

llvm::Value* wide_index_of(Emit& e, const Expr& expr) {
  if (expr->dtype.bits == 64) return index_of(e, expr);
  llvm::Type* i64 = e.b.getInt64Ty();
  if (const Var* v = expr.as<Var>())
    if (auto at = e.wide_values.find(v); at != e.wide_values.end()) return at->second;
  if (!does_not_wrap(expr->dtype)) {
    llvm::Value* value = index_of(e, expr);
    return expr->dtype.is_int() ? e.b.CreateSExtOrTrunc(value, i64) : e.b.CreateZExtOrTrunc(value, i64);
  }
  auto both = [&](const auto& n, auto op) {
    llvm::Value* a = wide_index_of(e, n.a);
    return op(a, wide_index_of(e, n.b));
  };
  // What has data wraps in its own width; what is added to it, which has none, does not.
  auto may_split = [&](const auto& n) { return !has_data(e, n.a) || !has_data(e, n.b); };
  if (const Add* n = expr.as<Add>(); n && may_split(*n))
    return both(*n, [&](auto* a, auto* b) { return e.b.CreateNSWAdd(a, b); });
  if (const Sub* n = expr.as<Sub>(); n && may_split(*n))
    return both(*n, [&](auto* a, auto* b) { return e.b.CreateNSWSub(a, b); });
  if (const Mul* n = expr.as<Mul>(); n && !has_data(e, expr))
    return both(*n, [&](auto* a, auto* b) { return e.b.CreateNSWMul(a, b); });
  if (const IntImm* n = expr.as<IntImm>()) return e.b.getInt64(static_cast<uint64_t>(n->value));
  return e.b.CreateSExtOrTrunc(index_of(e, expr), i64);
}

}  // namespace sator::codegen
