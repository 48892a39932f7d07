// A loop annotated "software_pipeline_stage" and "software_pipeline_order" runs its statements overlapped: a statement of
// stage s works on the iteration s before the newest one, so that a load of stage 0 runs ahead of the sum that needs it.
//   for i in range(n): (load(i); sum(i))   stages 0, 1   =>   load(0); for i in range(n - 1): (load(i + 1); sum(i)); sum(n - 1)
// A buffer that lives from stage a to stage b is kept b - a + 1 times. Opaque blocks in, opaque blocks out.
// Source: Lam, "Software pipelining", 1988; the annotations are TVM's.
#include <algorithm>

#include "arith/analyzer.h"
#include "arith/intset.h"
#include "ir/builtins.h"
#include "passes/lower/async_queues.h"
#include "passes/lower/lower.h"
#include "tir/copy.h"
#include "tir/regions.h"

namespace sator::passes {

using namespace tir;

namespace {

constexpr const char* kStage = "software_pipeline_stage";
constexpr const char* kOrder = "software_pipeline_order";
constexpr const char* kAsync = "software_pipeline_async_stages";
constexpr const char* kDoubleBuffer = "double_buffer_scope";

/// A statement of the pipeline: its stage, and its place among the others in one iteration of the result.
struct Part {
  BlockRef block;
  int64_t stage = 0, order = 0;
  bool async = false;
};

/// Elements of a matrix that the threads of a warp hold, by the pointer of the buffer of fragments.
using FragmentSizes = std::unordered_map<const Var*, int64_t>;

FragmentSizes fragment_sizes(const Stmt& body) {
  FragmentSizes out;
  walk(body, [&](const Call& n) {
    if (n.op != "tir.tvm_load_matrix_sync" && n.op != "tir.tvm_store_matrix_sync" && n.op != "tir.tvm_fill_fragment")
      return;
    const Var* buffer = n.args[0].as<Var>();
    auto m = as_int(n.args[1]), columns = as_int(n.args[2]), k = as_int(n.args[3]);
    if (!buffer || !m || !columns || !k) return;
    if (buffer->scope == "wmma.matrix_a") out[buffer] = *m * *k;
    if (buffer->scope == "wmma.matrix_b") out[buffer] = *columns * *k;
    if (buffer->scope == "wmma.accumulator") out[buffer] = *m * *columns;
  });
  return out;
}

/// The statement as a block with its regions; a block that always runs stays itself.
BlockRef as_block(const Stmt& body, const VisibleBuffers& visible) {
  if (const BlockRealize* n = body.as<BlockRealize>(); n && is_one(n->predicate)) return n->block;
  return block_around(body, visible);
}

Stmt realize(BlockRef block, Expr predicate = bool_imm(true)) {
  return make<BlockRealize>(std::vector<Expr>{}, std::move(predicate), std::move(block));
}

/// The buffer `versions` times, one after the other.
BufferRef repeated(const BufferRef& buffer, int64_t versions) {
  Buffer out = *buffer;
  if (!out.strides.empty()) out.strides.insert(out.strides.begin(), out.strides[0] * out.shape[0]);
  out.shape.insert(out.shape.begin(), int_imm(versions));
  return BufferRef(new Buffer(std::move(out)));
}

/// One annotated loop.
class Pipeline {
 public:
  Pipeline(const For& loop, Attrs annotations, std::vector<Part> parts, std::vector<BufferRef> allocated,
           VisibleBuffers visible, const std::unordered_set<const Buffer*>& doubled, const FragmentSizes& fragments)
      : loop_(loop),
        annotations_(std::move(annotations)),
        parts_(std::move(parts)),
        allocated_(std::move(allocated)),
        visible_(std::move(visible)),
        fragments_(fragments) {
    for (const Part& p : parts_) last_ = std::max(last_, p.stage);
    for (BufferRef& b : allocated_) {
      int64_t count = versions(b, doubled.contains(b.get()));
      if (count == 1) continue;
      BufferRef many = repeated(b, count);
      many_[b] = many;
      visible_.insert_or_assign(many->data, many);
      b = many;
    }
    std::ranges::sort(parts_, {}, &Part::order);
  }

  Stmt build() {
    const Expr end = loop_.min + loop_.extent;
    Stmt fill = emit(loop_.min, loop_.min + last_, true);
    Stmt steady = emit(loop_.min + last_, end, false);
    Stmt drain = emit(end, end + last_, true);
    VisibleBuffers outside = visible_;
    for (const BufferRef& b : allocated_) outside.erase(b->data);
    BlockRef block = as_block(seq({fill, steady, drain}), outside);
    return realize(with(block, &Block::alloc_buffers, allocated_));
  }

 private:
  /// How often a buffer has to be kept: for each stage from its first write to its last read.
  int64_t versions(const BufferRef& buffer, bool doubled) const {
    int64_t written = -1, read = -1;
    for (const Part& p : parts_) {
      if (region_of(p.block->writes, buffer) && (written < 0 || p.stage < written)) written = p.stage;
      if (region_of(p.block->reads, buffer)) read = std::max(read, p.stage);
    }
    if (written < 0) return 1;
    int64_t count = std::max<int64_t>(1, read - written + 1);
    // With two stages one copy is enough where the reader of an iteration runs before the writer of the next.
    if (count == 2 && !overwritten_early(buffer)) count = 1;
    return count == 1 && doubled ? 2 : count;
  }

  bool overwritten_early(const BufferRef& buffer) const {
    for (const Part& writer : parts_) {
      for (const Part& reader : parts_) {
        if (writer.order >= reader.order || writer.stage >= reader.stage) continue;
        const BufferRegion* w = region_of(writer.block->writes, buffer);
        const BufferRegion* r = region_of(reader.block->reads, buffer);
        if (w && r && may_overlap(*w, *r)) return true;
      }
    }
    return false;
  }

  static const BufferRegion* region_of(const std::vector<BufferRegionRef>& regions, const BufferRef& buffer) {
    auto at = std::ranges::find(regions, buffer, [](const BufferRegionRef& r) { return r->buffer; });
    return at == regions.end() ? nullptr : at->get();
  }

  static bool may_overlap(const BufferRegion& a, const BufferRegion& b) {
    for (size_t i = 0; i < a.region.size(); ++i) {
      if (arith::intersect({arith::IntSet::from_range(*a.region[i]), arith::IntSet::from_range(*b.region[i])}).empty)
        return false;
    }
    return true;
  }

  static Stmt empty_step() { return realize(as_block(nothing(), {})); }

  /// The iterations [start, end) of the pipelined loop, numbered as the newest stage counts.
  Stmt emit(const Expr& start, const Expr& end, bool unrolled) {
    const Expr extent = end - start;
    if (analyzer_.prove(le(extent, int_imm(0, extent->dtype)))) return empty_step();
    const bool once = analyzer_.prove_equal(extent, int_imm(1, extent->dtype));
    VarRef var = make_var(loop_.var->name, loop_.var->dtype);
    Expr newest = once ? start : var;
    if (!once) analyzer_.bind(var, make<Range>(start, extent));
    const Expr delta = start - loop_.min;  // the new loop counts from the old one's min
    arith::Analyzer normalized;
    if (!once) normalized.bind(var, make<Range>(loop_.min, extent));
    std::vector<PipelineStep> steps;
    for (const Part& part : parts_) {
      Expr iteration = newest - part.stage;
      Expr inside = logical_and(analyzer_.simplify(le(loop_.min, iteration)), lt(iteration, loop_.min + loop_.extent));
      if (analyzer_.prove(logical_not(inside))) continue;
      if (!once) {
        iteration = iteration + delta;
        inside = substitute(inside, {{var, var + delta}});
      }
      Stmt copy = fresh_copy(versioned(part.block), substitutions({{loop_.var, iteration}}));
      steps.push_back({part.stage, part.async, inside, iteration, cast<Block>(copy)});
    }
    if (steps.empty()) return empty_step();
    Stmt step = seq(queues_.statements(
        std::move(steps), {extent, analyzer_, normalized}, [&](const Stmt& s) { return as_block(s, visible_); }));
    if (!once)
      step = make<For>(var,
                       loop_.min,
                       extent,
                       unrolled ? LoopKind::unrolled : loop_.kind,
                       std::string(),
                       annotations_,
                       std::move(step));
    return realize(as_block(step, visible_));
  }

  /// The iteration's own copy of a repeated buffer.
  Expr version(const BufferRef& many) const {
    return floormod(loop_.var - loop_.min, cast_to(loop_.var->dtype, many->shape[0]));
  }

  std::vector<Expr> indexed(const BufferRef& many, std::vector<Expr> indices) const {
    indices.insert(indices.begin(), version(many));
    return indices;
  }

  /// The block on the iteration's copies of the buffers.
  Stmt versioned(const BlockRef& block) const {
    if (many_.empty()) return block;
    return transform(
        Stmt(block),
        [&](const BufferRegion& n) -> BufferRegionRef {
          auto at = many_.find(n.buffer);
          if (at == many_.end()) return ref(n);
          std::vector<RangeRef> region = n.region;
          // Stages that run at once hold several copies: of which a block's region names none.
          region.insert(region.begin(),
                        last_ != 1 ? range_of(at->second->shape[0])
                                   : make<Range>(version(at->second), int_imm(1, loop_.var->dtype)));
          return make<BufferRegion>(at->second, std::move(region));
        },
        [&](const BufferLoad& n) -> Expr {
          auto at = many_.find(n.buffer);
          return at == many_.end() ? Expr(ref(n)) : load(at->second, indexed(at->second, n.indices));
        },
        [&](const BufferStore& n) -> Stmt {
          auto at = many_.find(n.buffer);
          return at == many_.end() ? Stmt(ref(n)) : store(at->second, n.value, indexed(at->second, n.indices));
        },
        [&](const Call& n) -> Expr { return shifted(n); });
  }

  /// Calls that take a pointer and an offset beside it.
  Expr shifted(const Call& n) const {
    static const std::map<std::string_view, std::vector<size_t>> kOffsets = {
        {"tir.tvm_access_ptr", {2}}, {"tir.ptx_ldmatrix", {4}}, {"tir.ptx_mma", {7, 9, 11}}};
    static const std::map<std::string_view, std::vector<size_t>> kFragments = {{"tir.tvm_load_matrix_sync", {4}},
                                                                               {"tir.tvm_store_matrix_sync", {4}},
                                                                               {"tir.tvm_fill_fragment", {4}},
                                                                               {"tir.tvm_mma_sync", {1, 3, 5, 7}}};
    std::vector<Expr> args = n.args;
    auto shift = [&](size_t pointer, size_t offset, bool fragments) {
      const Var* data = args[pointer].as<Var>();
      auto at = data ? std::ranges::find(many_, data, [](const auto& b) { return b.first->data.get(); }) : many_.end();
      if (at == many_.end()) return;
      Expr size = at->second->strides.empty() ? int_imm(1, loop_.var->dtype) : at->second->strides[0];
      if (at->second->strides.empty()) {
        for (const Expr& extent : at->first->shape) size = size * extent;
      }
      if (fragments) {
        auto elements = fragments_.find(data);
        if (elements == fragments_.end())
          fail({.what = text("buffer ",
                             at->first->name,
                             " is kept ",
                             at->second->shape[0],
                             " times, and ",
                             n.op,
                             " takes its fragments, whose size nothing tells"),
                .needs = "a load, store or fill of the same fragments with their shape",
                .hint = "load the fragments in the pipeline"});
        size = floordiv(size, elements->second);
      } else if (data->scope == "m16n8k8.matrixA" || data->scope == "m16n8k8.matrixB") {
        size = floordiv(size, 32);  // each thread of a warp holds its part
      }
      args[offset] = args[offset] + version(at->second) * size;
    };
    if (auto at = kOffsets.find(n.op); at != kOffsets.end()) {
      for (size_t offset : at->second) shift(offset - 1, offset, false);
    } else if (auto f = kFragments.find(n.op); f != kFragments.end()) {
      for (size_t offset : f->second) shift(offset == 4 ? 0 : offset - 1, offset, true);
    }
    return args == n.args ? Expr(ref(n)) : call(n.dtype, n.op, std::move(args));
  }

  const For& loop_;
  Attrs annotations_;
  std::vector<Part> parts_;
  std::vector<BufferRef> allocated_;
  VisibleBuffers visible_;
  const FragmentSizes& fragments_;
  int64_t last_ = 0;  ///< stage
  BufferMap many_;
  AsyncQueues queues_;
  arith::Analyzer analyzer_;
};

/// A program's annotated loops, the inner ones first.
class Pipeliner {
 public:
  explicit Pipeliner(const PrimFunc& func) : fragments_(fragment_sizes(func.body)) {
    for (const auto& [param, buffer] : func.buffer_map) visible_[buffer->data] = buffer;
  }

  Stmt run(const Stmt& stmt) {
    const Block* block = stmt.as<Block>();
    if (block) enter(*block);
    NodeRef out = stmt->info().map_children(*stmt, [&](const NodeRef& child) -> NodeRef {
      const StmtNode* s = child->as<StmtNode>();
      return s ? NodeRef(run(ref(*s))) : child;
    });
    Stmt result = cast<StmtNode>(out);
    if (block) {
      for (const BufferRef& b : block->alloc_buffers) visible_.erase(b->data);
    }
    const For* loop = result.as<For>();
    return loop && annotated(*loop) ? pipeline(*loop) : result;
  }

 private:
  void enter(const Block& block) {
    for (const BufferRef& b : block.alloc_buffers) visible_[b->data] = b;
    auto at = block.annotations.find(kDoubleBuffer);
    if (at == block.annotations.end()) return;
    const IntImm* index = at->second.as<IntImm>();
    if (!index || index->value < 0 || index->value >= static_cast<int64_t>(block.writes.size()))
      fail(
          {.what = text("block ", block.name->text, " asks by ", kDoubleBuffer, " for a buffer that it does not write"),
           .needs = text("the number of one of the block's ", block.writes.size(), " writes"),
           .hint = "annotate 0 for the first of T.writes",
           .at = {{ref(block), kDoubleBuffer}}});
    doubled_.insert(block.writes[static_cast<size_t>(index->value)]->buffer.get());
  }

  static bool annotated(const For& loop) {
    const bool stage = loop.annotations.contains(kStage), order = loop.annotations.contains(kOrder);
    if (stage != order)
      refuse(loop, text("has ", stage ? kStage : kOrder, " alone"), text("both ", kStage, " and ", kOrder));
    return stage;
  }

  [[noreturn]] static void refuse(const For& loop, const std::string& what, const std::string& needs) {
    fail({.what = text("the pipelined loop ", loop.var->name, " ", what),
          .needs = needs,
          .hint = "annotate the loop anew, or leave the pipeline out",
          .at = {{ref(loop), "pipeline"}}});
  }

  static std::vector<int64_t> numbers(const For& loop, const char* key) {
    auto at = loop.annotations.find(key);
    const Array* list = at == loop.annotations.end() ? nullptr : at->second.as<Array>();
    std::vector<int64_t> out;
    for (size_t i = 0; list && i < list->items.size(); ++i) {
      const IntImm* n = list->items[i].as<IntImm>();
      if (n && n->value >= 0) out.push_back(n->value);
    }
    return out;
  }
  static std::vector<int64_t> numbers(const For& loop, const char* key, size_t count) {
    std::vector<int64_t> out = numbers(loop, key);
    if (out.size() != count)
      refuse(loop,
             text("of ", count, " statements has ", out.size(), " numbers in ", key),
             "one number >= 0 for each statement of the loop's body");
    return out;
  }

  /// The statements of the body; those of a block in it that is a sequence count alone. Their allocations become the pipeline's.
  std::vector<Stmt> statements(const For& loop, std::vector<BufferRef>& allocated) {
    auto open = [&](const Stmt& s) -> const Block* {
      const BlockRealize* n = s.as<BlockRealize>();
      return n && is_one(n->predicate) ? n->block.get() : nullptr;
    };
    auto take = [&](const Block& block) {
      if (!block.match_buffers.empty())
        refuse(
            loop, "has a matched buffer in its body", "buffers that are matched nowhere: run LowerMatchBuffer before");
      allocated.insert(allocated.end(), block.alloc_buffers.begin(), block.alloc_buffers.end());
    };
    Stmt body = loop.body;
    if (const Block* block = open(body)) {
      take(*block);
      body = block->body;
    }
    const Seq* list = body.as<Seq>();
    if (!list) refuse(loop, "has a single statement", "a sequence of statements to overlap");
    std::vector<Stmt> out;
    for (const Stmt& s : list->stmts) {
      const Block* block = open(s);
      const Seq* inner = block ? block->body.as<Seq>() : nullptr;
      if (inner) {
        take(*block);
        out.insert(out.end(), inner->stmts.begin(), inner->stmts.end());
      } else {
        out.push_back(s);
      }
    }
    return out;
  }

  Stmt pipeline(const For& loop) {
    if (loop.kind != LoopKind::serial && loop.kind != LoopKind::unrolled)
      refuse(loop, "does not run its iterations in order", "a serial or unrolled loop");
    std::vector<BufferRef> allocated;
    std::vector<Stmt> stmts = statements(loop, allocated);
    VisibleBuffers visible = visible_;
    for (const BufferRef& b : allocated) visible[b->data] = b;
    std::vector<int64_t> stages = numbers(loop, kStage, stmts.size()), orders = numbers(loop, kOrder, stmts.size());
    std::vector<Part> parts;
    const std::vector<int64_t> async = numbers(loop, kAsync);
    for (size_t i = 0; i < stmts.size(); ++i)
      parts.push_back(
          {as_block(stmts[i], visible), stages[i], orders[i], std::ranges::find(async, stages[i]) != async.end()});
    require_order(loop, parts);
    Attrs rest = loop.annotations;
    rest.erase(kStage);
    rest.erase(kOrder);
    rest.erase(kAsync);
    return Pipeline(
               loop, std::move(rest), std::move(parts), std::move(allocated), std::move(visible), doubled_, fragments_)
        .build();
  }

  /// Each statement has a place of its own, and no statement runs before one of its iteration whose result it reads.
  static void require_order(const For& loop, const std::vector<Part>& parts) {
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].order >= static_cast<int64_t>(parts.size()))
        refuse(loop,
               text("has ", parts.size(), " statements and the order ", parts[i].order),
               "orders 0, 1, ..., each once");
      for (size_t j = 0; j < i; ++j) {
        if (parts[i].order == parts[j].order)
          refuse(loop, text("has two statements of order ", parts[i].order), "orders 0, 1, ..., each once");
        if (!depends(*parts[i].block, *parts[j].block)) continue;
        if (parts[j].stage > parts[i].stage)
          refuse(loop,
                 text("runs statement ", j, " in a later stage than statement ", i, ", which reads its result"),
                 "stages that do not fall from a writer to its reader");
        if (parts[j].stage == parts[i].stage && parts[j].order > parts[i].order)
          refuse(loop,
                 text("runs statement ", i, " before statement ", j, ", whose result it reads"),
                 "in one stage, a writer before its reader");
      }
    }
  }

  static bool depends(const Block& reader, const Block& writer) {
    return std::ranges::any_of(reader.reads, [&](const BufferRegionRef& r) {
      return std::ranges::any_of(writer.writes,
                                 [&](const BufferRegionRef& w) { return w->buffer->data == r->buffer->data; });
    });
  }

  VisibleBuffers visible_;
  std::unordered_set<const Buffer*> doubled_;
  FragmentSizes fragments_;
};

}  // namespace

PrimFuncRef inject_software_pipeline(const PrimFuncRef& func, const LowerOptions&) {
  return with_body(func, Pipeliner(*func).run(func->body));
}

}  // namespace sator::passes
