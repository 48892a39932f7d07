// What shows that TVM's result of a schedule is another program than the one that it was made of.
#include <set>

#include "arith/analyzer.h"
#include "arith/index_map.h"
#include "base/text.h"
#include "cases.h"
#include "support/random_arguments.h"
#include "tir/nodes.h"

namespace sator::conformance {

namespace {

using namespace tir;

/// The program in which each block touches what it declares: a store to a buffer that T.writes leaves out is dropped, a load
/// of one that neither T.reads nor T.writes lists gives zero. Schedule steps and passes may rely on no more than that.
class AsDeclared {
 public:
  explicit AsDeclared(const PrimFunc& func) : root_(func.body.as<BlockRealize>()) {}

  NodeRef operator()(const NodeRef& n) {
    if (const BlockRealize* realize = n->as<BlockRealize>(); realize && realize != root_) return inside(*realize);
    if (const BufferStore* s = n->as<BufferStore>(); s && !may(s->buffer, true)) return make<Evaluate>(int_imm(0));
    if (const BufferLoad* l = n->as<BufferLoad>(); l && !may(l->buffer, false)) return zero(l->dtype);
    return n->info().map_children(*n, [this](const NodeRef& child) {
      return child->as<ExprNode>() || child->as<StmtNode>() ? (*this)(child) : child;
    });
  }

 private:
  struct Declared {
    std::set<const Buffer*> read, written, own;
  };

  static Expr zero(DType dtype) {
    return dtype.is_bool() ? Expr(bool_imm(false)) : dtype.is_float() ? float_imm(0, dtype) : Expr(int_imm(0, dtype));
  }

  bool may(const BufferRef& buffer, bool write) const {
    const Buffer* b = buffer.get();
    for (size_t i = blocks_.size(); i-- > 0;) {
      const Declared& d = blocks_[i];
      if (d.own.contains(b)) return true;
      if (!d.written.contains(b) && (write || !d.read.contains(b))) return false;
    }
    return true;
  }

  NodeRef inside(const BlockRealize& realize) {
    const Block& block = *realize.block;
    Declared d;
    for (const BufferRegionRef& r : block.reads) d.read.insert(r->buffer.get());
    for (const BufferRegionRef& r : block.writes) d.written.insert(r->buffer.get());
    for (const BufferRef& b : block.alloc_buffers) d.own.insert(b.get());
    for (const MatchBufferRef& m : block.match_buffers) d.own.insert(m->buffer.get());
    blocks_.push_back(std::move(d));
    BlockRef changed = with(realize.block, &Block::body, cast<StmtNode>((*this)(block.body)));
    if (block.init) changed = with(changed, &Block::init, cast<StmtNode>((*this)(block.init)));
    blocks_.pop_back();
    return with(realize, &BlockRealize::block, changed);
  }

  const BlockRealize* root_;
  std::vector<Declared> blocks_;
};

PrimFuncRef only_function(const ModuleRef& module) {
  return module->functions.size() == 1 ? cast<PrimFunc>(module->functions.begin()->second) : nullptr;
}

/// A loop whose symbolic count of iterations exceeds its dtype, at this value of `size`; null if none does.
const For* wrapping_loop(const PrimFunc& func, const VarRef& size, int64_t value) {
  const For* found = nullptr;
  arith::Analyzer a;
  walk(func.body, [&](const For& loop) {
    const Expr exact = a.simplify(arith::substitute_promoting(loop.extent, {{size, int_imm(value, DType::Int(64))}}));
    const auto count = as_int(exact);
    if (!found && count && loop.extent->dtype == DType::Int(32) && *count > INT32_MAX) found = &loop;
  });
  return found;
}

/// The value of a symbolic size at which a loop of `expected` cannot count its iterations, and those of `before` can.
std::optional<std::string> overflow(const PrimFunc& before, const PrimFunc& expected) {
  if (before.params.size() != expected.params.size()) return {};
  for (size_t i = 0; i < before.params.size(); ++i) {
    if (before.params[i]->dtype != DType::Int(32)) continue;
    for (int64_t value = 1; value <= INT32_MAX; value *= 2) {
      const For* loop = wrapping_loop(expected, expected.params[i], value);
      if (!loop || wrapping_loop(before, before.params[i], value)) continue;
      return text("at ",
                  before.params[i]->name,
                  " = ",
                  value,
                  " the loop ",
                  loop->var,
                  " of ",
                  loop->extent,
                  " iterations exceeds int32");
    }
  }
  return {};
}

/// What the interpreter computes differently, in words; nothing if it is the same, or if it cannot tell.
std::optional<std::string> different(const PrimFuncRef& before, const PrimFuncRef& after) {
  constexpr int64_t kIterations = 10'000'000;
  constexpr uint64_t kSeed = 1;
  auto allowed = [](const std::string&, DType d) { return d.is_bfloat() ? 0x1p-4 : d.bits == 16 ? 0x1p-7 : 1e-4; };
  auto arguments = [](const PrimFuncRef& f) {
    return test::RandomArguments(*f, kSeed, test::Values::whole, {}, int64_t{1} << 22);
  };
  test::RandomArguments x = arguments(before), y = arguments(after);
  if (!x.usable() || !y.usable()) return {};
  try {
    x.interpret(before, kIterations);
  } catch (const Error&) {
    return {};
  }
  try {
    y.interpret(after, 0);
  } catch (const Error& e) {
    return e.reason.what;
  }
  std::string words = x.difference(y, allowed);
  return words.empty() ? std::nullopt : std::optional(words);
}

}  // namespace

std::optional<std::string> counterexample(const ModuleRef& before, const ModuleRef& expected) {
  const PrimFuncRef from = only_function(before), to = only_function(expected);
  if (!from || !to || from->params.size() != to->params.size()) return {};
  for (size_t i = 0; i < from->buffer_map.size(); ++i) {
    if (i >= to->buffer_map.size() || !equal(from->buffer_map[i].second, to->buffer_map[i].second, true)) return {};
  }
  if (auto words = overflow(*from, *to)) return words;
  if (auto words = different(from, to)) return words;
  auto declared = [](const PrimFuncRef& f) {
    return with(f, &PrimFunc::body, cast<StmtNode>(AsDeclared(*f)(f->body)));
  };
  if (different(from, declared(from))) return {};  // its own declarations are no better
  if (auto words = different(from, declared(to))) return "by what its blocks declare: " + *words;
  return {};
}

}  // namespace sator::conformance
