// A loop annotated "software_prefetch" = [name of a buffer, iterations ahead] (or a list of such pairs) asks for the cache
// lines that a later iteration reads of the buffer. What lies beyond the buffer's end is asked for in vain, without harm.
#include "arith/analyzer.h"
#include "arith/intset.h"
#include "ir/builtins.h"
#include "passes/lower/lower.h"

namespace sator::passes {

using namespace tir;

namespace {

constexpr const char* kKey = "software_prefetch";
constexpr int64_t kLineBytes = 64;
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

std::vector<Request> requests(const For& loop) {
  auto at = loop.annotations.find(kKey);
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
    fail({.what = text("loop ", loop.var->name, " has a malformed ", kKey),
          .needs = "[name of a buffer, iterations ahead >= 1], or a list of such pairs",
          .hint = "annotate(loop, \"software_prefetch\", [\"B\", 8])",
          .at = {{ref(loop), kKey}}});
  return out;
}

/// The flat places of the buffer that one iteration of the loop reads; nothing if no load of it is found.
struct Reads {
  BufferRef buffer;
  std::vector<arith::IntSet> places;
};
Reads reads_of(const Stmt& body, const std::string& name) {
  Reads out;
  arith::SetMap domains;
  std::function<void(const NodeRef&)> visit = [&](const NodeRef& n) {
    if (const For* loop = n->as<For>()) domains[loop->var] = arith::IntSet::from_min_extent(loop->min, loop->extent);
    if (n->as<Buffer>()) return;
    if (const BufferLoad* load = n->as<BufferLoad>(); load && load->buffer->name == name && load->indices.size() == 1) {
      out.buffer = load->buffer;
      Expr index = load->indices[0];
      out.places.push_back(index->dtype.lanes == 1 ? arith::eval_set(index, domains) : arith::IntSet::everything());
    }
    n->info().each_child(*n, visit);
  };
  visit(body);
  return out;
}

}  // namespace

PrimFuncRef inject_prefetch(const PrimFuncRef& func, const LowerOptions& options) {
  arith::Analyzer analyzer;
  Stmt body = transform(func->body, [&](const For& loop) -> Stmt {
    std::vector<Request> wanted = requests(loop);
    if (wanted.empty()) return ref(loop);
    std::vector<Stmt> stmts;
    for (const Request& r : wanted) {
      Reads reads = reads_of(loop.body, r.buffer);
      RangeRef range = arith::unite(reads.places).cover_range(nullptr);
      auto extent = range ? as_int(range->extent) : std::nullopt;
      int64_t bytes = extent ? *extent * reads.buffer->dtype.bytes() : 0;
      if (!extent || bytes > kMaxLines * kLineBytes) {
        if (options.note)
          options.note({.what = text("loop ", loop.var->name, " does not prefetch ", r.buffer),
                        .needs = text("one iteration reads at most ", kMaxLines, " cache lines of it, side by side"),
                        .hint = "annotate a loop further in"});
        continue;
      }
      Expr first = substitute(range->min, {{loop.var, loop.var + r.distance}});
      int64_t per_line = std::max<int64_t>(1, kLineBytes / reads.buffer->dtype.bytes());
      for (int64_t at = 0; at < *extent; at += per_line) {
        Expr place = load(reads.buffer, {analyzer.simplify(first + at)});
        stmts.push_back(make<Evaluate>(
            call(i32, "tir.prefetch", {call_builtin("tir.address_of", {place}), int_imm(0), int_imm(3), int_imm(1)})));
      }
    }
    For copy = loop;
    copy.annotations.erase(kKey);
    stmts.push_back(loop.body);
    copy.body = seq(std::move(stmts));
    return Stmt(new For(copy));
  });
  return with_body(func, body);
}

}  // namespace sator::passes
