#include "llm/expert_ops.h"

#include <map>

#include "base/text.h"
#include "ir/visit.h"
#include "schedule/edit.h"
#include "tir/parse.h"
#include "tir/te.h"

namespace sator::llm {

using namespace tir;

namespace {

Expr extent(int64_t v) { return int_imm(v, i64); }

/// A function with a further first dimension for some of its buffers.
class Stacker {
 public:
  Stacker(const PrimFunc& func, int64_t experts) : func_(func), experts_(experts) {}

  /// All of them; each block has one iterator more.
  PrimFuncRef each() {
    for (const auto& [param, buffer] : func_.buffer_map) stack(buffer);
    const Block& root = *root_of(func_)->block;
    for (const BufferRef& b : root.alloc_buffers) stack(b);
    return finished(func_.params, [&](const Block&) { return Expr(make_var("v_expert", i64)); });
  }

  /// The weights alone; each row says which.
  PrimFuncRef by_row(const std::vector<size_t>& weights) {
    for (size_t w : weights) stack(func_.buffer_of(func_.params[w]));
    VarRef rows;
    for (const auto& [param, buffer] : func_.buffer_map)
      if (!rows && !buffers_.contains(buffer)) rows = cast<Var>(buffer->shape[0]);
    if (!rows) internal_error("a function of rows whose number is no variable");
    expert_ = make_buffer("expert", {rows}, i32);
    // Behind the arguments: the result is the last parameter.
    std::vector<VarRef> params = func_.params;
    VarRef handle = make_var("p_expert", DType::Handle());
    params.insert(params.end() - 1, handle);
    handle_ = handle;
    return finished(params,
                    [&](const Block& block) { return cast_to(i64, load(expert_, {block.iter_vars.front()->var})); });
  }

 private:
  void stack(const BufferRef& b) {
    std::vector<Expr> shape = b->shape;
    shape.insert(shape.begin(), extent(experts_));
    buffers_.emplace(b, make_buffer(b->name, std::move(shape), b->dtype, b->scope()));
  }

  BufferRef own(const BufferRef& b) const {
    auto at = buffers_.find(b);
    return at == buffers_.end() ? b : at->second;
  }

  /// The function over its new buffers. `expert_of` gives the expert whose part a block reads; a variable is an iterator.
  template <class F>
  PrimFuncRef finished(const std::vector<VarRef>& params, F expert_of) {
    std::vector<std::pair<VarRef, BufferRef>> map;
    for (const VarRef& p : params)
      if (BufferRef b = p == handle_ ? expert_ : func_.buffer_of(p)) map.emplace_back(p, own(b));
    const BlockRealizeRef root = root_of(func_);
    Block whole = *root->block;
    for (BufferRef& b : whole.alloc_buffers) b = own(b);
    visible_ = whole.alloc_buffers;
    for (const auto& [p, b] : map) visible_.push_back(b);
    whole.body = cast<StmtNode>(statement(root->block->body, expert_of));
    Stmt body = with(root, &BlockRealize::block, BlockRef(new Block(whole)));
    return make<PrimFunc>(params, map, func_.ret_dtype, func_.attrs, body);
  }

  /// Nests of loops around one block each, one after the other.
  template <class F>
  Stmt statement(const Stmt& s, F& expert_of) {
    if (const Seq* n = s.as<Seq>()) {
      std::vector<Stmt> out;
      for (const Stmt& part : n->stmts) out.push_back(statement(part, expert_of));
      return seq(std::move(out));
    }
    const Stmt* inner = &s;
    while (const For* loop = inner->as<For>()) inner = &loop->body;
    const BlockRealize* realize = inner->as<BlockRealize>();
    if (!realize) internal_error("a function for experts is made of nests of one block");
    const Expr expert = expert_of(*realize->block);
    const VarRef iterator = cast<Var>(expert);
    auto indices = [&](const BufferRef& b, std::vector<Expr> at) {
      if (buffers_.contains(b)) at.insert(at.begin(), expert);
      return at;
    };
    auto part = [&](const Stmt& body) {
      return cast<StmtNode>(transform(
          NodeRef(body),
          [&](const BufferLoad& n) -> NodeRef { return make<BufferLoad>(own(n.buffer), indices(n.buffer, n.indices)); },
          [&](const BufferStore& n) -> NodeRef {
            return make<BufferStore>(own(n.buffer), n.value, indices(n.buffer, n.indices));
          }));
    };
    Block block = *realize->block;
    std::vector<Expr> values = realize->values;
    VarRef loop = make_var("expert", i64);
    if (iterator) {
      block.iter_vars.insert(block.iter_vars.begin(),
                             make<IterVar>(make<Range>(extent(0), extent(experts_)), iterator, IterKind::spatial));
      values.insert(values.begin(), loop);
    }
    if (block.init) block.init = part(block.init);
    block.body = part(block.body);
    BlockRef done = schedule::with_detected_regions(BlockRef(new Block(block)), visible_, true, true);
    Stmt out = make<BlockRealize>(std::move(values), realize->predicate, done);
    std::vector<const For*> loops;
    for (const Stmt* at = &s; const For* l = at->as<For>(); at = &l->body) loops.push_back(l);
    for (size_t i = loops.size(); i-- > 0;) out = with(*loops[i], &For::body, out);
    return iterator ? for_loop(loop, extent(experts_), out) : out;
  }

  const PrimFunc& func_;
  int64_t experts_;
  std::map<BufferRef, BufferRef> buffers_;
  std::vector<BufferRef> visible_;
  BufferRef expert_;
  VarRef handle_;
};

}  // namespace

PrimFuncRef for_each_expert(const PrimFuncRef& func, int64_t experts) { return Stacker(*func, experts).each(); }

PrimFuncRef by_expert_of_row(const PrimFuncRef& func, int64_t experts, const std::vector<size_t>& weights) {
  return Stacker(*func, experts).by_row(weights);
}

PrimFuncRef matmul_function(int64_t rows, int64_t cols) {
  VarRef n = make_size_var("n");
  te::Tensor x = te::placeholder({n, extent(cols)}, f32, "x"),
             w = te::placeholder({extent(rows), extent(cols)}, f32, "w");
  IterVarRef k = te::reduce_axis(extent(cols), "k");
  te::Tensor y = te::reduce({.name = "NT_matmul", .axis = "i"}, {n, extent(rows)}, [&](const te::Indices& i) {
    return te::reduce_sum(x({i[0], k->var}) * w({i[1], k->var}), {k});
  });
  return without_symbol(te::create_prim_func({x, w, y}));
}

PrimFuncRef vector_function(std::string_view op, int64_t cols, int64_t numbers, DType dtype) {
  if (op != "multiply" && op != "add")
    internal_error("a function of rows and a vector that is neither product nor sum");
  VarRef n = make_size_var("n");
  te::Tensor x = te::placeholder({n, extent(cols)}, f32, "x"), p = te::placeholder({extent(numbers)}, dtype, "p");
  te::Tensor y = te::compute({.name = std::string(op), .axis = "i"}, {n, extent(cols)}, [&](const te::Indices& i) {
    const Expr own = cast_to(f32, p({numbers == 1 ? extent(0) : i[1]}));
    return op == "add" ? x(i) + own : x(i) * own;
  });
  return without_symbol(te::create_prim_func({x, p, y}));
}

PrimFuncRef choose_experts_function(const ExpertsConfig& e) {
  constexpr const char* kSource = R"(
@T.prim_func
def choose_experts(scores_handle: T.handle, bias_handle: T.handle, weights_handle: T.handle, chosen_handle: T.handle):
    T.func_attr({"tir.noalias": T.bool(True), "tir.is_scheduled": 1})
    n = T.int64()
    scores = T.match_buffer(scores_handle, (n, {E}), "float32")
    bias = T.match_buffer(bias_handle, ({E},), "float32")
    weights = T.match_buffer(weights_handle, (n, {K}), "float32")
    chosen = T.match_buffer(chosen_handle, (n, {K}), "int32")
    for t in T.parallel(n):
        with T.block("choose_experts"):
            vt = T.axis.spatial(n, t)
            T.reads(scores[vt, 0:{E}], bias[0:{E}])
            T.writes(weights[vt, 0:{K}], chosen[vt, 0:{K}])
            compared = T.alloc_buffer(({E},), "float32", scope="local")
            group = T.alloc_buffer(({G},), "float32", scope="local")
            best = T.alloc_buffer((2,), "float32", scope="local")
            at = T.alloc_buffer((1,), "int32", scope="local")
            for g in range({G}):
                best[0] = T.float32(-3e38)
                best[1] = T.float32(-3e38)
                for i in range({S}):
                    compared[g * {S} + i] = scores[vt, g * {S} + i] + bias[g * {S} + i]
                    if compared[g * {S} + i] > best[0]:
                        best[1] = best[0]
                        best[0] = compared[g * {S} + i]
                    else:
                        best[1] = T.max(best[1], compared[g * {S} + i])
                group[g] = {OF_GROUP}
            for r in range({G} - {OPEN}):
                at[0] = 0
                for g in range({G}):
                    if group[g] <= group[at[0]]:
                        at[0] = g
                group[at[0]] = T.float32(3.4e38)
                for i in range({S}):
                    compared[at[0] * {S} + i] = T.float32(-3.4e38)
            for r in range({K}):
                at[0] = 0
                for e in range({E}):
                    if compared[e] > compared[at[0]]:
                        at[0] = e
                chosen[vt, r] = at[0]
                weights[vt, r] = scores[vt, at[0]]
                compared[at[0]] = T.float32(-3.4e38)
)";
  const int64_t size = e.count / e.groups;
  const bool two = e.two_of_group && size > 1;
  return without_symbol(parse_function(filled(kSource,
                                              {{"E", text(e.count)},
                                               {"K", text(e.per_token)},
                                               {"G", text(e.groups)},
                                               {"S", text(size)},
                                               {"OPEN", text(e.open_groups)},
                                               {"OF_GROUP", two ? "best[0] + best[1]" : "best[0]"}})));
}

PrimFuncRef sort_by_expert_function(int64_t experts, int64_t share) {
  // By counting: where each expert's rows begin, then each pair to the next row of its expert.
  constexpr const char* kSource = R"(
@T.prim_func
def sort_by_expert(expert_handle: T.handle, sorted_handle: T.handle, token_handle: T.handle, row_handle: T.handle):
    T.func_attr({"tir.noalias": T.bool(True), "tir.is_scheduled": 1})
    m = T.int64()
    expert = T.match_buffer(expert_handle, (m,), "int32")
    sorted = T.match_buffer(sorted_handle, (m,), "int32")
    token = T.match_buffer(token_handle, (m,), "int32")
    row = T.match_buffer(row_handle, (m,), "int32")
    with T.block("sort_by_expert"):
        T.reads(expert[0:m])
        T.writes(sorted[0:m], token[0:m], row[0:m])
        begin = T.alloc_buffer(({EXPERTS},), "int32", scope="local")
        for e in range({EXPERTS}):
            begin[e] = 0
        for i in range(m):
            if expert[i] + 1 < {EXPERTS}:
                begin[expert[i] + 1] = begin[expert[i] + 1] + 1
        for e in range({EXPERTS} - 1):
            begin[e + 1] = begin[e + 1] + begin[e]
        for i in range(m):
            row[i] = begin[expert[i]]
            begin[expert[i]] = begin[expert[i]] + 1
        for i in range(m):
            sorted[row[i]] = expert[i]
            token[row[i]] = T.cast(i // T.int64({SHARE}), "int32")
)";
  return without_symbol(parse_function(filled(kSource, {{"EXPERTS", text(experts)}, {"SHARE", text(share)}})));
}

}  // namespace sator::llm
