// Loops that end early (`break`, `continue`) and loops over lists, which newer TVMScript has. There are no nodes for them: they
// become what v0.17 can say, so that the interpreter, passes and machine code need to know nothing of them.
#include "tir/parse_impl.h"

namespace sator::tir {

using script::Statement;
using script::StatementKind;
using Kind = script::ExpressionKind;

namespace {

enum : int { kContinue = 1, kBreak = 2 };
constexpr int kMostCopies = 10000;

/// kContinue or kBreak of a statement that is one of these, 0 of others. Newer programs print them as T.break_loop().
int exit_of(const Statement& s) {
  if (s.kind == StatementKind::break_) return kBreak;
  if (s.kind == StatementKind::continue_) return kContinue;
  if (s.kind != StatementKind::expression || !s.value.is(Kind::call)) return 0;
  const std::string name = script::dotted_name(s.value.items[0]);
  if (name.ends_with(".break_loop")) return kBreak;
  return name.ends_with(".continue_loop") ? kContinue : 0;
}

/// Which exits of the loop around stand in the statements, as bits.
int exits_in(std::span<const Statement> stmts) {
  int out = 0;
  for (const Statement& s : stmts) {
    out |= exit_of(s);
    if (s.kind == StatementKind::if_ || s.kind == StatementKind::with) out |= exits_in(s.body) | exits_in(s.orelse);
  }
  return out;
}

/// A variable of the loop's own: a buffer of one element.
BufferRef cell(const std::string& name, DType dtype) { return make_buffer(name, {int_imm(1)}, dtype, "local"); }

Expr value_of(const BufferRef& cell) { return load(cell, {int_imm(0)}); }

Stmt set(const BufferRef& cell, Expr value) {
  return make<BufferStore>(cell, std::move(value), std::vector<Expr>{int_imm(0)});
}

Stmt with_cell(const BufferRef& cell, Stmt body) {
  return make<Allocate>(
      cell->data, cell->dtype, cell->shape, bool_imm(true), Attrs{}, make<DeclBuffer>(cell, std::move(body)));
}

}  // namespace

bool FunctionParser::exit_loop(const Statement& s) {
  const int exit = exit_of(s);
  if (exit == 0) return false;
  if (exits_.empty() || !exits_.back())
    fail(s.place,
         {.what = text(exit == kBreak ? "break" : "continue", " outside of a loop"),
          .needs = "a for or a while around it, in the same block",
          .hint = "blocks run whole, and loops over lists are written out: choose by an if"});
  append(set(exits_.back(), int_imm(exit)));
  return true;
}

void FunctionParser::rest_after_exit(std::span<const Statement> done, std::span<const Statement> rest) {
  push_scope();
  Stmt inner = body(rest, FrameKind::other);
  pop_scope();
  append(spanned(make<IfThenElse>(eq(value_of(exits_.back()), int_imm(0)), std::move(inner), Stmt()),
                 source.span(done.back().place)));
}

bool FunctionParser::may_exit(const Statement& s) const {
  return !exits_.empty() && exits_.back() && exits_in({&s, 1}) != 0;
}

/// state = 0 at the start of each iteration; what follows an exit runs where it still is.
Stmt FunctionParser::body_with_exits(const Statement& s, const BufferRef& state) {
  exits_.push_back(state);
  Stmt inner = body(s.body, FrameKind::other);
  exits_.pop_back();
  return state ? seq({set(state, int_imm(0)), std::move(inner)}) : inner;
}

void FunctionParser::while_loop(const Statement& s) {
  Expr condition = to_expr_like(eval(s.value), boolean, s.value.place);
  if (!condition->dtype.is_bool())
    fail(s.value.place,
         {.what = text("a condition of dtype ", condition->dtype), .needs = "a bool", .hint = "compare it with 0"});
  const int exits = exits_in(s.body);
  const BufferRef state = exits ? cell("exit", i32) : nullptr;
  push_scope();
  Stmt inner = body_with_exits(s, state);
  pop_scope();
  // The condition is not looked at after a break.
  if (exits & kBreak)
    condition =
        sator::call(boolean, "tir.if_then_else", {lt(value_of(state), int_imm(kBreak)), condition, bool_imm(false)});
  Stmt loop = spanned(make<While>(condition, std::move(inner)), source.span(s.place));
  append(state ? with_cell(state, seq({set(state, int_imm(0)), std::move(loop)})) : std::move(loop));
}

void FunctionParser::for_loop(const Statement& s) {
  Value v = eval(s.value);
  if (const Values* list = v.as<Values>()) return over_list(s, *list);
  const ScopeOpenerRef* opener = v.as<ScopeOpenerRef>();
  if (!opener || (*opener)->kind != ScopeOpener::Kind::loops)
    fail(s.value.place,
         {.what = text("a loop over ", v.kind()),
          .needs = "range, T.serial, T.grid, T.parallel, T.vectorized, T.unroll, T.thread_binding, or a list",
          .hint = "loop over range(n)"});
  std::vector<ScopeOpener::Loop> loops = (*opener)->loops;
  const int exits = exits_in(s.body);
  const BufferRef state = exits ? cell("exit", i32) : nullptr;
  const bool is_serial = loops.size() == 1 && loops[0].kind == LoopKind::serial && loops[0].annotations.empty();
  if ((exits & kBreak) && !is_serial)
    fail(s.place,
         {.what = loops.size() > 1 ? "break in T.grid, which is several loops" : "break in a loop that is not serial",
          .needs = "iterations one after the other, in one loop without annotations",
          .hint = loops.size() > 1 ? "write the loops one by one" : "use range(n)"});
  if (exits && loops.back().kind == LoopKind::vectorized)
    fail(s.place, {.what = "continue in a vectorized loop", .needs = "lanes that do the same", .hint = "use T.Select"});
  Values vars;
  vars.is_tuple = true;
  for (const auto& l : loops) vars.items.push_back(Expr(l.var));
  push_scope();
  bind(s.targets[0], vars.items.size() == 1 ? vars.items[0] : Value(vars), false);
  if (const auto& l = loops[0]; l.step && s.targets[0].is(Kind::name))
    define(s.targets[0].text, l.first + l.var * l.step, s.targets[0].place, true);
  loops_.insert(loops_.end(), loops.begin(), loops.end());
  depth_ += static_cast<int>(loops.size());
  Stmt inner = body_with_exits(s, state);
  depth_ -= static_cast<int>(loops.size());
  loops_.resize(loops_.size() - loops.size());
  pop_scope();
  const Span span = source.span(s.place);
  if (exits & kBreak) return append(counted_while(loops[0], state, std::move(inner), span));
  if (state) inner = with_cell(state, std::move(inner));
  for (auto l = loops.rbegin(); l != loops.rend(); ++l)
    inner = spanned(make<For>(l->var, l->min, l->extent, l->kind, l->thread, l->annotations, std::move(inner)), span);
  append(std::move(inner));
}

/// A serial loop that counts by itself, and ends where state is kBreak.
Stmt FunctionParser::counted_while(const ScopeOpener::Loop& loop, const BufferRef& state, Stmt inner, Span span) {
  const BufferRef next = cell(loop.var->name + "_next", loop.var->dtype);
  inner = seq({std::move(inner), set(next, loop.var + int_imm(1, loop.var->dtype))});
  Stmt let = make<LetStmt>(value_of(next), loop.var, std::move(inner));
  Expr goes_on = logical_and(lt(value_of(state), int_imm(kBreak)), lt(value_of(next), loop.min + loop.extent));
  Stmt whole = seq(
      {set(state, int_imm(0)), set(next, loop.min), spanned(make<While>(std::move(goes_on), std::move(let)), span)});
  return with_cell(state, with_cell(next, std::move(whole)));
}

void FunctionParser::over_list(const Statement& s, const Values& list) {
  exits_.push_back(nullptr);
  for (const Value& item : list.items) {
    if (++copies_ > kMostCopies)
      fail(s.place,
           {.what = text("loops over lists write more than ", kMostCopies, " bodies"),
            .needs = text("at most ", kMostCopies, " in a function"),
            .hint = "loop over range(n), and keep the values in a buffer"});
    push_scope();
    bind(s.targets[0], item, false);
    statements(s.body);
    pop_scope();
  }
  exits_.pop_back();
}

}  // namespace sator::tir
