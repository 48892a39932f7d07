// A loop annotated "software_prefetch" = [name of a buffer, iterations ahead] (or a list of such pairs) asks for the cache
// lines that a later iteration reads of the buffer. What lies beyond the buffer's end is asked for in vain, without harm.
//
// A loop inside of a parallel one that is annotated "prefetch_for_next" in the same form asks for what the next iteration of the parallel
// loop reads of the buffer: in equal parts, which so many iterations of the loop right inside of the parallel one share. Loops of one
// iteration do not count.
//   for p in parallel: for t: for h in 0..2, annotated ["B", 8]: use(B[p * 4096 ..])
//   =>  for p in parallel: for t: for h in 0..2: if t * 2 + h < 16: prefetch(B[(p + 1) * 4096 + (t * 2 + h) * 256 ..]); use(B[p * 4096 ..])
#include "arith/analyzer.h"
#include "arith/intset.h"
#include "ir/builtins.h"
#include "passes/lower/lower.h"

namespace sator::passes {

using namespace tir;

namespace {

/// Lines that one iteration may ask for: more than a CPU can have under way gains nothing.
constexpr int64_t kMaxLines = 32;

struct Request {
  std::string buffer;
  int64_t distance;
};

std::optional<Request> as_request(const Array& pair) {
  if (pair.items.size() != 2) return {};
  const StringImm* name = pair.items[0].as<StringImm>();
  const IntImm* distance = pair.items[1].as<IntImm>();
  if (!name || !distance || distance->value < 1) return {};
  return Request{name->value, distance->value};
}

std::vector<Request> requests(const For& loop, const char* key) {
  auto at = loop.annotations.find(key);
  if (at == loop.annotations.end()) return {};
  std::vector<Request> out;
  const Array* list = at->second.as<Array>();
  if (list && as_request(*list)) return {*as_request(*list)};
  for (size_t i = 0; list && i < list->items.size(); ++i) {
    const Array* pair = list->items[i].as<Array>();
    auto request = pair ? as_request(*pair) : std::nullopt;
    if (!request) {
      out.clear();
      break;
    }
    out.push_back(*request);
  }
  if (out.empty())
    fail({.what = text("loop ", loop.var->name, " has a malformed ", key),
          .needs = "[name of a buffer, iterations ahead >= 1], or a list of such pairs",
          .hint = text("annotate(loop, \"", key, "\", [\"B\", 8])"),
          .at = {{ref(loop), key}}});
  return out;
}

/// Elements [min, min + extent) of a flat buffer.
struct Span {
  Expr min;
  int64_t extent;
};

/// What one iteration of a loop reads of a buffer, in spans; nothing of a load without bounds, or in too many places.
class Reads {
 public:
  /// Gaps that are wider than a line are left out, or belong to the span around them.
  enum class Gaps { out, in };
  Reads(std::string name, Gaps gaps) : name_(std::move(name)), gaps_(gaps) {}

  BufferRef buffer;
  std::vector<Span> spans;
  bool bounded = true;

  void visit(const NodeRef& n) {
    const For* loop = n->as<For>();
    if (loop) loops_.push_back(ref(*loop));
    if (const BufferLoad* load = n->as<BufferLoad>();
        load && load->buffer->name == name_ && load->indices.size() == 1) {
      buffer = load->buffer;
      bounded = load->indices[0]->dtype.lanes == 1 && add(load->indices[0], 0) && bounded;
    }
    if (!n->as<Buffer>()) n->info().each_child(*n, [this](const NodeRef& child) { visit(child); });
    if (loop) loops_.pop_back();
  }

  int64_t per_line() const { return std::max<int64_t>(1, kLineBytes / buffer->dtype.bytes()); }
  int64_t lines_of(const Span& s) const { return (s.extent + per_line() - 1) / per_line(); }
  int64_t lines() const {
    int64_t sum = 0;
    for (const Span& s : spans) sum += lines_of(s);
    return sum;
  }

 private:
  /// A loop whose steps are wider than a line is walked, so that the gaps between them are not read; others are covered.
  bool add(const Expr& index, size_t at) {
    for (; gaps_ == Gaps::out && at < loops_.size(); ++at) {
      const For& loop = *loops_[at];
      auto steps = as_int(loop.extent);
      RangeRef alone = arith::eval_set(index, {{loop.var, arith::IntSet::from_min_extent(loop.min, loop.extent)}})
                           .cover_range(nullptr);
      auto reach = alone ? as_int(analyzer_.simplify(alone->extent)) : std::nullopt;
      if (!steps || !reach || *reach <= (*steps - 1) * per_line() + 1) continue;
      if (*steps > kMaxLines) return false;
      for (int64_t i = 0; i < *steps; ++i)
        if (!add(substitute(index, {{loop.var, loop.min + i}}), at + 1)) return false;
      return true;
    }
    arith::SetMap domains;
    for (const ForRef& l : loops_) domains[l->var] = arith::IntSet::from_min_extent(l->min, l->extent);
    RangeRef range = arith::eval_set(index, domains).cover_range(nullptr);
    auto extent = range ? as_int(analyzer_.simplify(range->extent)) : std::nullopt;
    if (!extent) return false;
    join({analyzer_.simplify(range->min), *extent});
    return spans.size() <= static_cast<size_t>(kMaxLines);
  }

  /// Spans that overlap or touch are one.
  void join(Span span) {
    for (size_t i = 0; i < spans.size();) {
      auto ahead = as_int(analyzer_.simplify(spans[i].min - span.min));
      if (!ahead || *ahead > span.extent || *ahead + spans[i].extent < 0) {
        ++i;
        continue;
      }
      int64_t end = std::max(span.extent, *ahead + spans[i].extent);
      span = *ahead < 0 ? Span{spans[i].min, end - *ahead} : Span{span.min, end};
      spans.erase(spans.begin() + static_cast<std::ptrdiff_t>(i));
      i = 0;
    }
    spans.push_back(std::move(span));
  }

  std::string name_;
  Gaps gaps_;
  std::vector<ForRef> loops_;
  arith::Analyzer analyzer_;
};

/// The caches that a line is asked into: all, or those behind the first.
enum Locality : int64_t { kBehindFirst = 2, kAll = 3 };

Stmt prefetch(const BufferRef& buffer, const Expr& index, Locality locality) {
  const Expr place = call_builtin("tir.address_of", {load(buffer, {index})});
  return make<Evaluate>(call(i32, "tir.prefetch", {place, int_imm(0), int_imm(locality), int_imm(1)}));
}

/// The loops of kPrefetchForNext.
class ForNext {
 public:
  explicit ForNext(const LowerOptions& options) : options_(options) {}

  Stmt run(const Stmt& stmt) {
    const For* loop = stmt.as<For>();
    const bool counts = loop && (loop->kind == LoopKind::parallel || !path_.empty());
    if (counts) path_.push_back(loop);
    Stmt out = cast<StmtNode>(stmt->info().map_children(*stmt, [&](const NodeRef& child) -> NodeRef {
      const StmtNode* inner = child->as<StmtNode>();
      return inner ? NodeRef(run(ref(*inner))) : child;
    }));
    if (loop && loop->annotations.count(kPrefetchForNext) > 0) out = asking(*out.as<For>());
    if (counts) path_.pop_back();
    return out;
  }

 private:
  Stmt asking(const For& loop) const {
    std::vector<Stmt> stmts;
    for (const Request& r : requests(loop, kPrefetchForNext)) {
      std::vector<Stmt> asked = path_.size() > 1 ? lines_of_next(r) : std::vector<Stmt>{};
      if (!asked.empty()) {
        std::ranges::move(asked, std::back_inserter(stmts));
      } else if (options_.note) {
        options_.note({.what = text("loop ", loop.var->name, " does not prefetch ", r.buffer),
                       .needs = "a parallel loop around it, of which an iteration reads parts of known sizes",
                       .hint = "annotate another loop"});
      }
    }
    stmts.push_back(loop.body);
    Attrs others = loop.annotations;
    others.erase(kPrefetchForNext);
    return with(with(loop, &For::body, seq(std::move(stmts))), &For::annotations, others);
  }

  /// The lines of one iteration's part, as long as there are parts; where there are more iterations than lines, the line that lies so far
  /// in the span: some are asked for more than once.
  std::vector<Stmt> lines_of_next(const Request& r) const {
    const For& around = *path_.front();
    Reads reads(r.buffer, Reads::Gaps::in);
    reads.visit(around.body);
    int64_t inner = 1;  // parts of one iteration of the first loop
    Expr part;
    for (size_t l = 1; l < path_.size(); ++l) {
      if (!part && is_one(path_[l]->extent) && l + 1 < path_.size()) continue;
      const int64_t extent = part ? as_int(path_[l]->extent).value_or(0) : 1;
      const Expr at = cast_to(i64, path_[l]->var);
      inner *= extent;
      part = part ? part * int_imm(extent, i64) + at : at;
    }
    if (!reads.bounded || inner == 0) return {};
    std::vector<Stmt> out;
    arith::Analyzer analyzer;
    for (const Span& span : reads.spans) {
      const auto rounded_up = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
      const int64_t lines = reads.lines_of(span), parts = r.distance * inner;
      const int64_t each = rounded_up(lines, parts);
      const int64_t step = parts < lines ? each * reads.per_line() : rounded_up(span.extent, parts);
      const Expr begin = substitute(span.min, {{around.var, around.var + 1}});
      std::vector<Stmt> asked;
      for (int64_t line = 0; line < each; ++line) {
        const Expr at = part * int_imm(step, i64) + int_imm(line * reads.per_line(), i64);
        asked.push_back(prefetch(reads.buffer, analyzer.simplify(begin + cast_to(begin->dtype, at)), kBehindFirst));
      }
      const Expr last = int_imm(rounded_up(span.extent, step), i64);
      out.push_back(make<IfThenElse>(lt(part, last), seq(std::move(asked)), Stmt()));
    }
    return out;
  }

  const LowerOptions& options_;
  std::vector<const For*> path_;  // a parallel loop, and those inside of it
};

}  // namespace

PrimFuncRef inject_prefetch(const PrimFuncRef& func, const LowerOptions& options) {
  arith::Analyzer analyzer;
  Stmt body = transform(ForNext(options).run(func->body), [&](const For& loop) -> Stmt {
    std::vector<Request> wanted = requests(loop, kSoftwarePrefetch);
    if (wanted.empty()) return ref(loop);
    std::vector<Stmt> stmts;
    for (const Request& r : wanted) {
      Reads reads(r.buffer, Reads::Gaps::out);
      reads.visit(loop.body);
      if (!reads.bounded || reads.spans.empty() || reads.lines() > kMaxLines) {
        if (options.note)
          options.note({.what = text("loop ", loop.var->name, " does not prefetch ", r.buffer),
                        .needs = text("one iteration reads at most ", kMaxLines, " cache lines of it"),
                        .hint = "annotate a loop further in"});
        continue;
      }
      for (const Span& span : reads.spans) {
        Expr first = substitute(span.min, {{loop.var, loop.var + r.distance}});
        for (int64_t at = 0; at < span.extent; at += reads.per_line())
          stmts.push_back(prefetch(reads.buffer, analyzer.simplify(first + at), kAll));
      }
    }
    For copy = loop;
    copy.annotations.erase(kSoftwarePrefetch);
    stmts.push_back(loop.body);
    copy.body = seq(std::move(stmts));
    return Stmt(new For(copy));
  });
  return with_body(func, body);
}

}  // namespace sator::passes
