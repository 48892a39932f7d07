// A loop over k that is annotated kOnTiles, around the rows and columns of a product that LowerDotProducts has made dots of, becomes one
// call:
//   for k in 0..24, annotated: for i in 0..32: if i0 * 32 + i < n: for j in 0..32:
//     C[i * 32 + j] = dot4(C[i * 32 + j], A[a + i * 96 + k * 4 + 0..4], B[b + k * 128 + j * 4 + 0..4])
//   =>  tile_product(address_of(C[0]), 32, address_of(A[a]), 96, address_of(B[b]), .., min(32, n - i0 * 32), 32, 96, ..)
// A loop around it that is annotated instead, over places in all three, is a number of products: one call, too.
// Where the statement before it sets just these sums to zero, the call does so. Loops of another form stay as they are.
#include <algorithm>

#include "arith/analyzer.h"
#include "arith/linear.h"
#include "ir/builtins.h"
#include "passes/lower/lower.h"
#include "passes/lower/tile_product.h"

namespace sator::passes {

using namespace tir;

namespace {

constexpr int64_t kMostRows = 32;   // of one T.tile_product
constexpr int64_t kStepLines = 32;  // cache lines of a panel, for 64 bytes of k

/// Where an operand's elements lie: buffer[base + the coefficient of each loop * its variable].
struct Operand {
  BufferRef buffer;
  Expr base;
  std::vector<int64_t> steps;  ///< of each loop, in elements of the buffer
};

struct Loops {
  std::vector<ForRef> all;  ///< the outermost, over k, first
  std::vector<Expr> conditions;
  const BufferStore* store = nullptr;

  std::vector<VarRef> vars() const {
    std::vector<VarRef> out;
    for (const ForRef& loop : all) out.push_back(loop->var);
    return out;
  }
  bool uses(const Expr& e) const {
    return std::ranges::any_of(all, [&](const ForRef& loop) { return uses_var(e, *loop->var); });
  }
};

/// The parts of a conjunction.
void add_conjuncts(const Expr& condition, std::vector<Expr>& out) {
  if (const And* both = condition.as<And>()) {
    add_conjuncts(both->a, out);
    add_conjuncts(both->b, out);
  } else {
    out.push_back(condition);
  }
}

std::optional<Loops> loops_of(const For& outer) {
  Loops out;
  for (Stmt at = ref(outer); !out.store;) {
    if (const For* loop = at.as<For>()) {
      const bool plain =
          loop->kind == LoopKind::serial || loop->kind == LoopKind::unrolled || loop->kind == LoopKind::vectorized;
      if (!plain || !is_zero(loop->min)) return {};
      out.all.push_back(ref(*loop));
      at = loop->body;
    } else if (const IfThenElse* branch = at.as<IfThenElse>(); branch && !branch->else_case) {
      add_conjuncts(branch->condition, out.conditions);
      at = branch->then_case;
    } else if (const BufferStore* store = at.as<BufferStore>()) {
      out.store = store;
    } else {
      return {};
    }
  }
  return out;
}

std::optional<Operand> operand_at(const BufferRef& buffer, const Expr& index, const Loops& loops) {
  const std::optional<arith::Linear> linear = arith::detect_linear(index, loops.vars());
  if (!linear) return {};
  Operand out{.buffer = buffer, .base = linear->base};
  for (const Expr& c : linear->coefficients) {
    const auto step = as_int(c);
    if (!step) return {};
    out.steps.push_back(*step);
  }
  return out;
}

/// An operand of a dot: elements side by side, or the bytes of a word.
std::optional<Operand> operand_of(const Expr& e, int group, const Loops& loops) {
  if (const BufferLoad* load = e.as<BufferLoad>(); load && load->indices.size() == 1) {
    const Ramp* ramp = load->indices[0].as<Ramp>();
    if (!ramp || !is_one(ramp->stride) || ramp->dtype.lanes != group) return {};
    return operand_at(load->buffer, ramp->base, loops);
  }
  const Call* bytes = e.as<Call>();
  const BufferLoad* word = bytes && bytes->op == "tir.reinterpret" && bytes->dtype.element() == u8
                               ? bytes->args[0].as<BufferLoad>()
                               : nullptr;
  if (!word || word->dtype != u32 || word->indices.size() != 1) return {};
  return operand_at(word->buffer, word->indices[0], loops);
}

/// What loops go over, as their conditions say.
struct Extents {
  Expr rows;
  bool ends_columns = false;  ///< a condition leaves out the columns behind some
  std::vector<Expr> outside;  ///< conditions that depend on no loop
};

/// `row` is the loop over rows, `batch` that over products. Nothing where a condition says something else.
std::optional<Extents> extents_of(const Loops& loops, std::optional<size_t> row, std::optional<size_t> batch,
                                  const Operand& sums) {
  arith::Analyzer analyzer;
  Extents out;
  Expr rows = row ? cast_to(i64, loops.all[*row]->extent) : int_imm(1, i64);
  for (const Expr& condition : loops.conditions) {
    const Call* likely = condition.as<Call>();
    const Expr inner = likely && likely->op == "tir.likely" ? likely->args[0] : condition;
    if (!loops.uses(inner)) {
      out.outside.push_back(condition);
      continue;
    }
    const LT* less = inner.as<LT>();
    const auto side = less ? arith::detect_linear(less->a - less->b, loops.vars()) : std::nullopt;
    if (!side) return {};
    auto is_column = [&](size_t l) { return sums.steps[l] != 0 && l != row && l != batch; };
    bool ends_columns = true;
    for (size_t l = 0; l < loops.all.size(); ++l)
      ends_columns &= is_int(side->coefficients[l], is_column(l) ? sums.steps[l] : 0);
    out.ends_columns |= ends_columns;
    if (ends_columns) continue;
    if (!row) return {};
    for (size_t l = 0; l < loops.all.size(); ++l)
      if (!is_int(side->coefficients[l], l == *row ? 1 : 0)) return {};
    rows = min(rows, cast_to(i64, constant(0, side->base->dtype) - side->base));
  }
  out.rows = analyzer.simplify(rows);
  return out;
}

/// Whether the statement sets to zero what the call, a tile_product, sums, and nothing else.
bool zeroes_sums_of(const Call& product, const Stmt& s) {
  const For* outer = s.as<For>();
  const std::optional<Loops> loops = outer ? loops_of(*outer) : std::nullopt;
  if (!loops || loops->store->indices.size() != 1 || !is_zero(loops->store->value)) return false;
  const std::optional<Operand> place = operand_at(loops->store->buffer, loops->store->indices[0], *loops);
  const BufferLoad* sums = place_of(product, kAcc);
  if (!place || !sums || place->buffer != sums->buffer || !equal(place->base, sums->indices[0])) return false;
  int64_t columns = 1;
  std::optional<size_t> row, batch;
  for (size_t l = loops->all.size(); l-- > 0;) {
    const auto extent = as_int(loops->all[l]->extent);
    if (row && !batch && !is_one(product.args[kCount])) {
      batch = l;
      if (!extent || !is_int(product.args[kCount], *extent) || !is_int(product.args[kAccStep], place->steps[l]))
        return false;
    } else if (!row && is_int(product.args[kColumns], columns)) {
      row = l;
      if (!is_int(product.args[kAccStride], place->steps[l])) return false;
    } else if (!row && extent && place->steps[l] == columns) {
      columns *= *extent;
    } else {
      return false;
    }
  }
  const std::optional<Extents> extents = extents_of(*loops, row, batch, *place);
  return extents && extents->outside.empty() && is_int(product.args[kColumns], columns) &&
         batch.has_value() == !is_one(product.args[kCount]) && equal(extents->rows, product.args[kRows]);
}

class TileProduct {
 public:
  explicit TileProduct(Loops loops) : loops_(std::move(loops)) {}

  /// The call; null where the loops are of another form.
  Stmt run(int64_t ahead) {
    const BufferStore& store = *loops_.store;
    const Call* dot = store.value.as<Call>();
    const int group = dot && dot->op == "tir.dot4" ? 4 : dot && dot->op == "tir.dot2" ? 2 : 0;
    if (group == 0 || store.indices.size() != 1 || store.value->dtype.lanes != 1) return nullptr;
    acc_ = operand_at(store.buffer, store.indices[0], loops_);
    a_ = operand_of(dot->args[1], group, loops_), b_ = operand_of(dot->args[2], group, loops_);
    if (!acc_ || !a_ || !b_ || !is_operand(a_->buffer->dtype, group)) return nullptr;
    if (b_->buffer->dtype != u32 && !is_operand(b_->buffer->dtype, group)) return nullptr;
    b_scale_ = b_->buffer->dtype == u32 ? 4 : 1;
    find_batch();
    if (!find_depth(group) || !find_columns(group) || !find_rows()) return nullptr;
    std::vector<Expr> args = {address(*acc_),
                              number(acc_stride_),
                              address(*a_),
                              number(a_stride_),
                              address(*b_),
                              number(b_stride_),
                              rows_,
                              number(columns_),
                              number(depth_),
                              number(ahead),
                              number(0)};
    if (batch_)
      args.insert(args.end(),
                  {number(*extent(*batch_)),
                   number(acc_->steps[*batch_]),
                   number(a_->steps[*batch_]),
                   number(b_->steps[*batch_] * b_scale_)});
    else
      args.insert(args.end(), {number(1), number(0), number(0), number(0)});
    args.push_back(number(ahead > 0 ? kStepLines : 0));
    Stmt out = make<Evaluate>(call_builtin("tir.tile_product", std::move(args)));
    // A tile that begins behind the last row has no place in A.
    if (!as_int(rows_)) out = make<IfThenElse>(lt(number(0), rows_), out, Stmt());
    for (const Expr& condition : outside_) out = make<IfThenElse>(condition, out, Stmt());
    return out;
  }

 private:
  static Expr number(int64_t v) { return int_imm(v, i64); }
  static bool is_operand(DType dtype, int group) {
    return group == 2 ? dtype == bf16 : dtype.is_integer() && dtype.bits == 8;
  }
  static Expr address(const Operand& p) { return call_builtin("tir.address_of", {load(p.buffer, {p.base})}); }
  std::optional<int64_t> extent(size_t l) const { return as_int(loops_.all[l]->extent); }

  /// The outermost loop goes over products where all three operands follow it.
  void find_batch() {
    if (acc_->steps[0] != 0 && a_->steps[0] != 0 && b_->steps[0] != 0 && extent(0)) batch_ = 0;
  }

  /// The loops over k count up, the innermost fastest, in both operands.
  bool find_depth(int group) {
    depth_ = group;
    for (size_t l = loops_.all.size(); l-- > 0;) {
      if (acc_->steps[l] != 0) continue;
      if (!extent(l) || a_->steps[l] != depth_ || b_->steps[l] * b_scale_ != depth_ * kPanelColumns) return false;
      depth_ *= *extent(l);
    }
    return group != 2 || depth_ % 32 == 0;
  }

  /// The loops over columns count up a panel, then panels.
  bool find_columns(int group) {
    columns_ = 1;
    b_stride_ = depth_ * kPanelColumns;
    for (size_t l = loops_.all.size(); l-- > 0;) {
      if (acc_->steps[l] == 0 || a_->steps[l] != 0) continue;
      if (!extent(l) || acc_->steps[l] != columns_) return false;
      const int64_t step = b_->steps[l] * b_scale_;
      if (columns_ < kPanelColumns) {
        if (step != columns_ * group || kPanelColumns % (columns_ * *extent(l)) != 0) return false;
      } else {
        if (columns_ != kPanelColumns) return false;
        b_stride_ = step;
      }
      columns_ *= *extent(l);
    }
    if (columns_ % kPanelColumns == 0) return true;
    b_stride_ = kPanelColumns * group;
    return columns_ == kPanelColumns / 2;
  }

  bool is_row(size_t l) const { return acc_->steps[l] != 0 && a_->steps[l] != 0 && l != batch_; }

  /// One loop over rows at most; a condition may end it.
  bool find_rows() {
    std::optional<size_t> found;
    for (size_t l = 0; l < loops_.all.size(); ++l) {
      if (!is_row(l)) continue;
      const auto most = extent(l);
      if (found || b_->steps[l] != 0 || !most || *most > kMostRows) return false;
      found = l;
    }
    acc_stride_ = columns_, a_stride_ = depth_;
    if (found) acc_stride_ = acc_->steps[*found], a_stride_ = a_->steps[*found];
    const std::optional<Extents> extents = extents_of(loops_, found, batch_, *acc_);
    if (!extents || (extents->ends_columns && !may_pad_columns())) return false;
    rows_ = extents->rows, outside_ = extents->outside;
    return true;
  }

  /// Whether whole panels may be summed where the last one is not full: B holds whole ones, and nobody else reads the sums' memory.
  bool may_pad_columns() const {
    const auto elements = b_->buffer->rank() == 1 ? as_int(b_->buffer->shape[0]) : std::nullopt;
    return acc_->buffer->scope() == "local" && elements && *elements * b_scale_ % (depth_ * kPanelColumns) == 0;
  }

  Loops loops_;
  std::optional<Operand> acc_, a_, b_;
  std::optional<size_t> batch_;  // the loop over products
  int64_t b_scale_ = 1;          // bytes of an element of b
  int64_t depth_ = 0, columns_ = 0, acc_stride_ = 0, a_stride_ = 0, b_stride_ = 0;
  Expr rows_;
  std::vector<Expr> outside_;
};

/// The call in a statement that run() made, where nothing but the number of its rows decides whether it runs; null otherwise.
const Call* only_product(const Stmt& s) {
  const IfThenElse* branch = s.as<IfThenElse>();
  const Evaluate* e = (branch && !branch->else_case ? branch->then_case : s).as<Evaluate>();
  const Call* call = e ? e->value.as<Call>() : nullptr;
  if (!call || call->op != "tir.tile_product") return nullptr;
  return !branch || equal(branch->condition, lt(int_imm(0, i64), call->args[kRows])) ? call : nullptr;
}

/// Products whose sums begin at zero by the statement before do it themselves.
Stmt from_zero(const Seq& n) {
  std::vector<Stmt> out;
  for (const Stmt& s : n.stmts) {
    const Call* product = out.empty() ? nullptr : only_product(s);
    if (!product || !zeroes_sums_of(*product, out.back())) {
      out.push_back(s);
      continue;
    }
    std::vector<Expr> args = product->args;
    args[kFromZero] = int_imm(1, i64);
    const Stmt call = make<Evaluate>(call_builtin(product->op, std::move(args)));
    const IfThenElse* branch = s.as<IfThenElse>();
    out.back() = branch ? Stmt(make<IfThenElse>(branch->condition, call, Stmt())) : call;
  }
  return seq(std::move(out));
}

/// The products of a loop over rows, each of which asks for its share of what lies behind.
Stmt asking_ahead(const For& loop) {
  const Array* request = loop.annotations.at(kAsksAhead).as<Array>();
  const auto number = [&](size_t i) -> int64_t {
    const IntImm* n = request && request->items.size() == 2 ? request->items[i].as<IntImm>() : nullptr;
    if (n && n->value > 0) return n->value;
    fail({.what = text("loop ", loop.var->name, " has a malformed ", kAsksAhead),
          .needs = "[bytes, cache lines of each iteration], both at least 1",
          .hint = text("annotate(loop, \"", kAsksAhead, "\", [16384, 4])"),
          .at = {{ref(loop), kAsksAhead}}});
  };
  const int64_t bytes = number(0), lines = number(1);
  const Expr ahead = int_imm(bytes, i64) + cast_to(i64, loop.var) * int_imm(lines * kLineBytes, i64);
  Stmt body = transform(loop.body, [&](const Call& n) -> Expr {
    if (n.op != "tir.tile_product") return ref(n);
    std::vector<Expr> args = n.args;
    args[kAhead] = ahead, args[kLines] = int_imm(lines, i64);
    return call_builtin(n.op, std::move(args));
  });
  Attrs others = loop.annotations;
  others.erase(kAsksAhead);
  return with(with(loop, &For::body, body), &For::annotations, others);
}

}  // namespace

PrimFuncRef lower_tile_products(const PrimFuncRef& func, const LowerOptions&) {
  Stmt body = transform(func->body, [&](const For& loop) -> Stmt {
    if (loop.annotations.count(kAsksAhead) > 0) return asking_ahead(loop);
    const auto ahead = int_attr(loop.annotations, kOnTiles);
    if (!ahead) return ref(loop);
    std::optional<Loops> loops = loops_of(loop);
    Stmt product = loops ? TileProduct(std::move(*loops)).run(*ahead) : nullptr;
    return product ? product : Stmt(ref(loop));
  });
  body = transform(body, [&](const Seq& n) -> Stmt { return from_zero(n); });
  return with_body(func, body);
}

}  // namespace sator::passes
