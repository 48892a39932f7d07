// A loop that is annotated kOverlapsUse around a T.tile_product of several groups' sums, and a loop that uses those of one group after the
// other, runs the products a step ahead: tiles have work while vectors use sums, and a tile is stored when two more have been multiplied.
//   for s in 0..6: tile_product(sums, .., count 4); for g in 0..4: use(s, sums[g])
//   =>  tile_dot(s = 0, g = 0..3), and tile_store(sums[0..1])
//       for s in 0..5: for g in 0..4: tile_store(sums[(g + 2) % 4]); tile_dot(s + 1, g); use(s, sums[g])
//       tile_store(sums[2..3]), and use(5, sums[0..3])
// Loops of another form stay as they are.
#include <algorithm>
#include <set>

#include "arith/analyzer.h"
#include "ir/builtins.h"
#include "passes/lower/lower.h"
#include "passes/lower/tile_product.h"
#include "tir/copy.h"

namespace sator::passes {

using namespace tir;

namespace {

constexpr int64_t kLag = 2;    // tiles that are multiplied before one is stored
constexpr int64_t kSide = 16;  // rows and columns of a tile of sums
constexpr int64_t kTiles = 4;  // of sums
constexpr int64_t kStep = 64;  // of k, that one T.tile_dot sums

class Overlap {
 public:
  /// The loop's statements a step apart; null where it is of another form.
  Stmt run(const For& loop) { return inside_allocations(loop.body, loop); }

 private:
  Stmt inside_allocations(const Stmt& body, const For& loop) {
    auto around = [&](const auto& n, auto member) -> Stmt {
      const Stmt inner = inside_allocations(n.body, loop);
      return inner ? with(n, member, inner) : nullptr;
    };
    if (const Allocate* n = body.as<Allocate>()) return around(*n, &Allocate::body);
    if (const DeclBuffer* n = body.as<DeclBuffer>()) return around(*n, &DeclBuffer::body);
    const Seq* parts = body.as<Seq>();
    const Evaluate* first = parts && parts->stmts.size() == 2 ? parts->stmts[0].as<Evaluate>() : nullptr;
    product_ = first ? first->value.as<Call>() : nullptr;
    use_ = product_ && product_->op == "tir.tile_product" ? parts->stmts[1].as<For>() : nullptr;
    const auto steps = as_int(loop.extent), begin = as_int(loop.min);
    step_ = loop.var;
    if (!use_ || !steps || *steps < 1 || !begin || !is_tile_by_tile() || !uses_one_by_one()) return nullptr;
    return overlapped(int_imm(*begin, loop.var->dtype), *steps);
  }

  int64_t argument(TileProductArgument which) const { return as_int(product_->args[which]).value_or(0); }
  const BufferLoad& element(TileProductArgument which) const { return *place_of(*product_, which); }

  /// Whether each product is one tile of sums, from zero, over a part of a step of k or whole ones.
  bool is_tile_by_tile() const {
    for (TileProductArgument which : {kAcc, kA, kB})
      if (!place_of(*product_, which)) return false;
    const int64_t depth = argument(kDepth), count = argument(kCount);
    return element(kAcc).buffer->dtype == i32 && !uses_var(element(kAcc).indices[0], *step_) &&
           argument(kRows) == kSide && argument(kColumns) == kSide && argument(kBStride) == kPanelColumns * 4 &&
           argument(kFromZero) == 1 && argument(kLines) == 0 && depth > 0 && (depth <= kStep || depth % kStep == 0) &&
           count >= kLag && count <= kTiles;
  }

  /// Whether iteration g of the use reads sums of product g alone, and writes nothing that products read.
  bool uses_one_by_one() const {
    if (!is_zero(use_->min) || as_int(use_->extent) != argument(kCount)) return false;
    bool good = true;
    arith::Analyzer analyzer;
    walk(use_->body, [&](const For& n) { analyzer.bind(n.var, make<Range>(n.min, cast_to(n.min->dtype, n.extent))); });
    walk(
        use_->body,
        [&](const BufferStore& n) {
          for (TileProductArgument which : {kAcc, kA, kB}) good &= n.buffer->data != element(which).buffer->data;
        },
        [&](const BufferLoad& n) {
          if (n.buffer->data != element(kAcc).buffer->data) return;
          const Expr step = int_imm(argument(kAccStep), use_->var->dtype);
          const Expr within = n.indices[0] - element(kAcc).indices[0] - cast_to(n.indices[0]->dtype, use_->var * step);
          const arith::Bounds b = analyzer.bounds(analyzer.simplify(within));
          good &= b.min >= 0 && b.max < argument(kAccStep);
        },
        [&](const Call& n) { good &= n.op != "tir.address_of" && n.op != "tir.tvm_access_ptr"; });
    return good;
  }

  Stmt overlapped(const Expr& first, int64_t steps) const {
    const int64_t count = argument(kCount);
    std::vector<Stmt> out;
    for (int64_t g = 0; g < count; ++g) {
      if (g >= kLag) out.push_back(store(g - kLag));
      multiply(out, first, g);
    }
    if (steps > 1) {
      const VarRef step = make_var(step_->name, step_->dtype);
      std::vector<Stmt> body;
      for (int64_t g = 0; g < count; ++g) {
        body.push_back(store((g + count - kLag) % count));
        multiply(body, step + 1, g);
        body.push_back(use(step, g));
      }
      out.push_back(make<For>(step,
                              first,
                              int_imm(steps - 1, step->dtype),
                              LoopKind::serial,
                              std::string(),
                              Attrs(),
                              seq(std::move(body))));
    }
    for (int64_t g = 0; g < count; ++g) {
      if (g < kLag) out.push_back(store(g + count - kLag));
      out.push_back(use(first + (steps - 1), g));
    }
    return seq(std::move(out));
  }

  static Expr number(int64_t v) { return int_imm(v, i64); }

  /// An address that the product has, at a step, and so many bytes behind.
  Expr address(TileProductArgument which, const Expr& step, int64_t bytes) const {
    const BufferLoad& at = element(which);
    const Expr there = substitute(at.indices[0], VarMap{{step_, step}});
    const Expr behind = int_imm(bytes / at.buffer->dtype.bytes(), there->dtype);
    return call_builtin("tir.address_of", {load(at.buffer, {arith::Analyzer().simplify(there + behind)})});
  }

  void multiply(std::vector<Stmt>& out, const Expr& step, int64_t g) const {
    const int64_t depth = argument(kDepth);
    for (int64_t k = 0; k < depth; k += kStep)
      out.push_back(make<Evaluate>(call_builtin("tir.tile_dot",
                                                {number(g),
                                                 address(kA, step, g * argument(kAStep) + k),
                                                 product_->args[kAStride],
                                                 address(kB, step, g * argument(kBStep) + k * kPanelColumns),
                                                 number(std::min(depth, kStep)),
                                                 number(k == 0 ? 1 : 0)})));
  }

  Stmt store(int64_t g) const {
    return make<Evaluate>(call_builtin(
        "tir.tile_store",
        {number(g), address(kAcc, step_, g * argument(kAccStep) * int64_t{i32.bytes()}), product_->args[kAccStride]}));
  }

  Stmt use(const Expr& step, int64_t g) const {
    NodeMap values;
    values[step_] = step, values[use_->var] = int_imm(g, use_->var->dtype);
    return fresh_copy(use_->body, std::move(values));
  }

  const Call* product_ = nullptr;
  const For* use_ = nullptr;
  VarRef step_;
};

/// Bytes of k that one step of each product sums. Tiles that hold sums are made ready for one number of them.
std::set<int64_t> depths_of_steps(const Stmt& body) {
  std::set<int64_t> out;
  walk(body, [&](const Call& n) {
    if (n.op != "tir.tile_product") return;
    const BufferLoad* a = place_of(n, kA);
    out.insert(a ? std::min(as_int(n.args[kDepth]).value_or(0) * a->buffer->dtype.bytes(), kStep) : 0);
  });
  return out;
}

}  // namespace

PrimFuncRef overlap_tile_products(const PrimFuncRef& func, const LowerOptions&) {
  const bool of_one_depth = depths_of_steps(func->body).size() == 1;
  return with_body(func, transform(func->body, [&](const For& loop) -> Stmt {
                     if (loop.annotations.count(kOverlapsUse) == 0) return ref(loop);
                     if (Stmt apart = of_one_depth ? Overlap().run(loop) : nullptr) return apart;
                     Attrs others = loop.annotations;
                     others.erase(kOverlapsUse);
                     return with(loop, &For::annotations, others);
                   }));
}

}  // namespace sator::passes
