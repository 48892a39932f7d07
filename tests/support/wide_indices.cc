#include "support/wide_indices.h"

#include <algorithm>
#include <optional>
#include <random>
#include <unordered_map>

#include "base/text.h"
#include "ir/visit.h"
#include "tir/empty_reductions.h"

namespace sator::test {

using namespace tir;

namespace {

__extension__ typedef __int128 Int;
using Value = std::optional<Int>;

std::string digits(Int v) {
  if (v < 0) return "-" + digits(-v);
  const std::string last(1, static_cast<char>('0' + static_cast<int>(v % 10)));
  return v < 10 ? last : digits(v / 10) + last;
}

bool holds(DType d, Int v) {
  if (d.is_bool()) return v == 0 || v == 1;
  const int bits = d.is_uint() ? d.bits : d.bits - 1;
  const Int end = Int{1} << bits;
  return v < end && v >= (d.is_uint() ? 0 : -end);
}

Int down(Int a, Int b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

/// One walk through a function.
class Walk {
 public:
  Walk(const std::vector<std::pair<VarRef, int64_t>>& sizes, uint64_t seed) : random_(seed) {
    for (const auto& [var, value] : sizes) values_[var.get()] = value;
    lane_ = pick(1024);
  }
  std::string run(const Stmt& body) {
    visit(body);
    return wrong_;
  }
  /// Whether no buffer has more elements than any memory, so that schedules may add some dimensions.
  bool could_exist(const PrimFunc& func) {
    bool all = true;
    walk(NodeRef(&func), [&](const Buffer& buffer) {
      Int elements = 1;
      for (const Expr& n : buffer.shape) elements = std::min(elements * eval(n).value_or(1), Int{1} << 60);
      all &= elements < Int{1} << 50;
    });
    return all;
  }

 private:
  // ---- Statements ----

  void visit(const Stmt& stmt) {
    if (!stmt || !wrong_.empty()) return;
    match(
        stmt,
        [&](const BlockRealize& n) { realize(n); },
        [&](const For& n) { loop(n); },
        [&](const Seq& n) {
          for (const Stmt& s : n.stmts) visit(s);
        },
        [&](const BufferStore& n) {
          eval(n.value);
          access(n.buffer, n.indices, lane_ * n.value->dtype.lanes / 1024);
        },
        [&](const IfThenElse& n) {
          const Value c = eval(n.condition);
          if (!c || *c) visit(n.then_case);
          if (!c || !*c) visit(n.else_case);
        },
        [&](const LetStmt& n) {
          values_[n.var.get()] = eval(n.value);
          visit(n.body);
        },
        [&](const AttrStmt& n) {
          const ThreadAxis* axis = n.node.as<ThreadAxis>();
          if (Value extent = eval(n.value); axis && extent) values_[axis->var.get()] = one_of(0, *extent);
          visit(n.body);
        },
        [&](const While& n) {
          if (Value c = eval(n.condition); !c || *c) visit(n.body);
        },
        [&](const AssertStmt& n) { eval(n.condition), visit(n.body); },
        [&](const Evaluate& n) { eval(n.value); },
        [&](const Allocate& n) { evaluate(n.extents), visit(n.body); },
        [&](const AllocateConst& n) { visit(n.body); },
        [&](const DeclBuffer& n) { visit(n.body); },
        [&](const StmtNode&) {});
  }

  void loop(const For& n) {
    const Value first = eval(n.min), extent = eval(n.extent);
    values_.erase(n.var.get());
    if (first && extent) {
      if (*extent <= 0) return;
      if (!holds(n.var->dtype, *first + *extent)) return blame(n.extent, *first + *extent, n.var->dtype);
      values_[n.var.get()] = *first + one_of(0, *extent);
    }
    visit(n.body);
  }

  void realize(const BlockRealize& n) {
    const Block& block = *n.block;
    const Value runs = eval(n.predicate);
    if (runs && !*runs) return;
    bool is_first = true;
    for (size_t i = 0; i < block.iter_vars.size(); ++i) {
      const IterVar& iter = *block.iter_vars[i];
      const Value v = eval(n.values[i]), low = eval(iter.dom->min), extent = eval(iter.dom->extent);
      if (runs && v && low && extent && (*v < *low || *v >= *low + *extent))
        wrong_ =
            text(iter.var->name, " = ", digits(*v), " leaves its domain of ", digits(*extent), " from ", digits(*low));
      values_[iter.var.get()] = v;
      if (iter.kind == IterKind::reduce) is_first &= v && low && *v == *low;
    }
    is_region_ = true;
    for (const auto* regions : {&block.reads, &block.writes}) {
      for (const BufferRegionRef& r : *regions) {
        for (const RangeRef& range : r->region) eval(range->min), eval(range->extent);
      }
    }
    is_region_ = false;
    if (is_first) visit(block.init);
    visit(block.body);
  }

  // ---- Expressions: the value of the lane of this walk; nothing where it is not an integer, or not known ----

  Value eval(const Expr& e) {
    if (!e) return {};
    return eval(e, lane_ * e->dtype.lanes / 1024);
  }
  void evaluate(const std::vector<Expr>& all) {
    for (const Expr& e : all) eval(e);
  }

  template <class F>
  Value both(const Expr& a, const Expr& b, int lane, F f) {
    const Value x = eval(a, lane), y = eval(b, lane);
    return x && y ? f(*x, *y) : Value();
  }

  Value eval(const Expr& e, int lane) {
    if (!wrong_.empty()) return {};
    Value v = exact(e, lane);
    if (!e->dtype.is_int() && !e->dtype.is_uint() && !e->dtype.is_bool()) return {};
    if (v && !holds(e->dtype.element(), *v)) blame(e, *v, e->dtype);
    return v;
  }

  Value exact(const Expr& e, int lane) {
    return match(
        e,
        [&](const IntImm& n) { return Value(n.value); },
        [&](const Var& n) {
          auto at = values_.find(&n);
          return at == values_.end() ? Value() : at->second;
        },
        [&](const Add& n) { return both(n.a, n.b, lane, [](Int a, Int b) { return Value(a + b); }); },
        [&](const Sub& n) { return both(n.a, n.b, lane, [](Int a, Int b) { return Value(a - b); }); },
        [&](const Mul& n) { return both(n.a, n.b, lane, [](Int a, Int b) { return Value(a * b); }); },
        [&](const Div& n) { return both(n.a, n.b, lane, [](Int a, Int b) { return b ? Value(a / b) : Value(); }); },
        [&](const Mod& n) { return both(n.a, n.b, lane, [](Int a, Int b) { return b ? Value(a % b) : Value(); }); },
        [&](const FloorDiv& n) {
          return both(n.a, n.b, lane, [](Int a, Int b) { return b ? Value(down(a, b)) : Value(); });
        },
        [&](const FloorMod& n) {
          return both(n.a, n.b, lane, [](Int a, Int b) { return b ? Value(a - down(a, b) * b) : Value(); });
        },
        [&](const Min& n) { return both(n.a, n.b, lane, [](Int a, Int b) { return Value(std::min(a, b)); }); },
        [&](const Max& n) { return both(n.a, n.b, lane, [](Int a, Int b) { return Value(std::max(a, b)); }); },
        [&](const EQ& n) { return both(n.a, n.b, lane, [](Int a, Int b) { return Value(a == b); }); },
        [&](const NE& n) { return both(n.a, n.b, lane, [](Int a, Int b) { return Value(a != b); }); },
        [&](const LT& n) { return both(n.a, n.b, lane, [](Int a, Int b) { return Value(a < b); }); },
        [&](const LE& n) { return both(n.a, n.b, lane, [](Int a, Int b) { return Value(a <= b); }); },
        [&](const GT& n) { return both(n.a, n.b, lane, [](Int a, Int b) { return Value(a > b); }); },
        [&](const GE& n) { return both(n.a, n.b, lane, [](Int a, Int b) { return Value(a >= b); }); },
        [&](const And& n) {
          const Value a = eval(n.a, lane);
          if (a && !*a) return Value(0);
          const Value b = eval(n.b, lane);
          return b && !*b ? Value(0) : a && b ? Value(1) : Value();
        },
        [&](const Or& n) {
          const Value a = eval(n.a, lane);
          if (a && *a) return Value(1);
          const Value b = eval(n.b, lane);
          return b && *b ? Value(1) : a && b ? Value(0) : Value();
        },
        [&](const Not& n) {
          const Value a = eval(n.a, lane);
          return a ? Value(!*a) : a;
        },
        [&](const Select& n) { return chosen(n.condition, n.true_value, n.false_value, lane); },
        [&](const Cast& n) {
          const Value v = eval(n.value, lane);
          return n.dtype.is_bool() && v ? Value(*v != 0) : v;
        },
        [&](const BufferLoad& n) {
          access(n.buffer, n.indices, lane);
          return Value();
        },
        [&](const Call& n) {
          if (n.op == "tir.if_then_else") return chosen(n.args[0], n.args[1], n.args[2], lane);
          if (n.op == "tir.likely") return eval(n.args[0], lane);
          for (const Expr& a : n.args) {
            if (a.as<BufferLoad>()) continue;  // often an address, which may be the end
            a->dtype.lanes == n.dtype.lanes ? eval(a, lane) : eval(a);
          }
          return Value();
        },
        [&](const Let& n) {
          values_[n.var.get()] = eval(n.value);
          return eval(n.body, lane);
        },
        [&](const Ramp& n) {
          const int width = n.base->dtype.lanes;
          const Value first = eval(n.base, lane % width), step = eval(n.stride);
          return first && step ? Value(*first + *step * (lane / width)) : Value();
        },
        [&](const Broadcast& n) { return eval(n.value, lane % n.value->dtype.lanes); },
        [&](const Shuffle& n) {
          const auto at = as_int(n.indices[static_cast<size_t>(lane)]);
          int64_t first = 0;
          for (const Expr& v : n.vectors) {
            if (at && *at >= first && *at < first + v->dtype.lanes) return eval(v, static_cast<int>(*at - first));
            first += v->dtype.lanes;
          }
          return Value();
        },
        [&](const ExprNode&) { return Value(); });
  }

  Value chosen(const Expr& condition, const Expr& a, const Expr& b, int lane) {
    const Value c = eval(condition, condition->dtype.lanes > 1 ? lane : 0);
    if (c) return eval(*c ? a : b, lane);
    eval(a, lane), eval(b, lane);
    return {};
  }

  /// What the lane of an access touches: a mask around it has switched on this one.
  void access(const BufferRef& buffer, const std::vector<Expr>& indices, int lane) {
    for (size_t d = 0; d < indices.size(); ++d) {
      const Value v = indices[d]->dtype.lanes > 1 ? eval(indices[d], lane) : eval(indices[d]),
                  n = eval(buffer->shape[d]);
      if (wrong_.empty() && !is_region_ && v && n && (*v < 0 || *v >= *n))
        wrong_ = text("index ", d, " of ", buffer->name, ", ", indices[d], ", is ", digits(*v), " of ", digits(*n));
    }
  }

  void blame(const Expr& e, Int v, DType d) {
    if (wrong_.empty()) wrong_ = text(e, " is ", digits(v), ", beyond ", d.name());
  }

  // ---- Choices ----

  int pick(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  /// Of [low, low + n): the first, the last or one between.
  Int one_of(Int low, Int n) {
    switch (pick(4)) {
      case 0: return low;
      case 1: return low + static_cast<Int>(random_()) % n;
      default: return low + n - 1;
    }
  }

  std::mt19937_64 random_;
  int lane_ = 0;            ///< of 1024
  bool is_region_ = false;  ///< nothing is loaded where a region is told, also under a guard
  std::unordered_map<const Var*, Value> values_;
  std::string wrong_;
};

/// The symbolic sizes of the parameters' buffers.
std::vector<VarRef> sizes_of(const PrimFunc& func) {
  std::vector<VarRef> out;
  for (const auto& [param, buffer] : func.buffer_map) {
    for (const Expr& n : buffer->shape) {
      for (const VarRef& v : vars_in(n)) {
        if (std::find(out.begin(), out.end(), v) == out.end()) out.push_back(v);
      }
    }
  }
  return out;
}

}  // namespace

std::string index_mistake(const PrimFunc& func, const std::vector<std::pair<VarRef, int64_t>>& sizes, uint64_t seed,
                          int walks) {
  const Stmt body = with_empty_reductions(func.body);
  for (int i = 0; i < walks; ++i) {
    if (std::string wrong = Walk(sizes, seed * 1000003 + static_cast<uint64_t>(i)).run(body); !wrong.empty()) {
      for (const auto& [var, value] : sizes) wrong += text(", where ", var->name, " = ", value);
      return wrong;
    }
  }
  return "";
}

std::string new_index_mistake(const PrimFunc& before, const PrimFunc& after, uint64_t seed, bool* ran) {
  constexpr int kTries = 6;
  if (ran) *ran = false;
  const std::vector<VarRef> symbols = sizes_of(before);
  std::mt19937_64 random(seed);
  for (int i = 0; i < (symbols.empty() ? 1 : kTries); ++i) {
    std::vector<std::pair<VarRef, int64_t>> sizes;
    for (const VarRef& v : symbols) {
      // An int32 has to hold the size still where splits have rounded it up to tiles, each time by up to its double.
      static constexpr int64_t kLarge[] = {3, 1000, 40000, 65536, 99991, (1 << 20) + 7, 99999989, (1LL << 33) + 1};
      sizes.emplace_back(v, kLarge[random() % (v->dtype.bits == 32 ? 7 : 8)]);
    }
    const uint64_t walks = random();
    if (!Walk(sizes, 0).could_exist(before) || !index_mistake(before, sizes, walks).empty()) continue;
    if (ran) *ran = true;
    if (std::string wrong = index_mistake(after, sizes, walks); !wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace sator::test
