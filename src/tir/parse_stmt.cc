#include "ir/literal.h"
#include "tir/parse_impl.h"

namespace sator::tir {

using script::Expression;
using script::Place;
using script::Statement;
using script::StatementKind;
using Kind = script::ExpressionKind;

namespace {

// Scopes that may lie in one another, counting the wrappers of flat text (T.allocate, let, T.attr): passes, printer and
// destructors recurse over them.
constexpr int kMaxDepth = 600;

/// A node that was just made takes the name it is bound to; names take no part in equality.
void set_name(const Var& v, const std::string& name) { const_cast<Var&>(v).name = name; }

}  // namespace

// ---- Lists of statements ----

void FunctionParser::append(Stmt stmt) { frames_.back().stmts.push_back(std::move(stmt)); }

void FunctionParser::open(ScopeOpenerRef opener) {
  Frame& frame = frames_.back();
  if (opener->declares && !visible_.emplace(opener->declares->data, opener->declares).second)
    opener->declares = nullptr;
  ++depth_;
  frame.open.push_back({frame.stmts.size(), std::move(opener)});
}

Stmt FunctionParser::close(Frame& frame) {
  auto joined = [](std::vector<Stmt> stmts) {
    return stmts.empty() ? Stmt(make<Evaluate>(int_imm(0))) : seq(std::move(stmts));
  };
  for (; !frame.open.empty(); frame.open.pop_back()) {
    auto& [first, opener] = frame.open.back();
    auto from = frame.stmts.begin() + static_cast<std::ptrdiff_t>(first);
    std::vector<Stmt> inner(from, frame.stmts.end());
    frame.stmts.erase(from, frame.stmts.end());
    frame.stmts.push_back(opener->wrap(joined(std::move(inner))));
    if (opener->declares) visible_.erase(opener->declares->data);
    --depth_;
  }
  return joined(std::move(frame.stmts));
}

void FunctionParser::statements(std::span<const Statement> stmts) {
  for (size_t i = 0; i < stmts.size(); ++i) {
    if (depth_ > kMaxDepth)
      fail(stmts[i].place,
           {.what = text("more than ", kMaxDepth, " scopes are open here"),
            .needs = text("at most ", kMaxDepth),
            .hint = "T.attr, T.allocate and names for values hold until the end of their block: split the function"});
    statement(stmts[i]);
    if (i + 1 < stmts.size() && may_exit(stmts[i]))
      return rest_after_exit(stmts.subspan(0, i + 1), stmts.subspan(i + 1));
  }
}

Stmt FunctionParser::body(std::span<const Statement> stmts, FrameKind kind) {
  frames_.push_back({kind, {}, {}});
  ++depth_;
  statements(stmts);
  Stmt out = close(frames_.back());
  --depth_;
  frames_.pop_back();
  return out;
}

void FunctionParser::statement(const Statement& s) {
  switch (s.kind) {
    case StatementKind::expression: return expression_statement(s);
    case StatementKind::assign: return assign(s);
    case StatementKind::annotated: return annotated_assign(s);
    case StatementKind::augmented: return augmented_assign(s);
    case StatementKind::for_: return for_loop(s);
    case StatementKind::if_: return if_then_else(s);
    case StatementKind::pass: return;
    case StatementKind::while_: return while_loop(s);
    case StatementKind::break_:
    case StatementKind::continue_: exit_loop(s); return;
    case StatementKind::with: return with(s, 0);
    case StatementKind::return_: {
      if (!s.value.present())
        fail(s.place, {.what = "return without a value", .needs = "return value", .hint = "remove the statement"});
      Expr value = eval_expr(s.value);
      return append(make<Evaluate>(sator::call(value->dtype, "tir.ret", {value})));
    }
    case StatementKind::assert_: {
      Expr condition = to_expr_like(eval(s.value), boolean, s.value.place);
      Expr message = s.message.present() ? assert_message(s.message) : string_imm("");
      auto opener = std::make_shared<ScopeOpener>();
      opener->wrap = [=](Stmt inner) -> Stmt { return make<AssertStmt>(condition, message, std::move(inner)); };
      return open(std::move(opener));
    }
    case StatementKind::function:
      fail(s.place,
           {.what = text("the function ", s.text, " inside a tensor program"),
            .needs = "statements; macros are not expanded",
            .hint = "write the body where it is used"});
    default:
      fail(s.place,
           {.what = "this statement is not part of tensor programs",
            .needs = "assignments, for, while, if, with, assert, break, continue, return, pass",
            .hint = "remove it"});
  }
}

/// A text, or ("RuntimeError", ["a text", ...]) of newer programs.
Expr FunctionParser::assert_message(const Expression& e) {
  const Value v = eval(e);
  const Values* pair = v.as<Values>();
  if (!pair || pair->items.size() != 2) return to_expr(v, e.place);
  std::string out;
  if (const Values* parts = pair->items[1].as<Values>())
    for (const Value& part : parts->items)
      if (const std::string* s = part.as<std::string>()) out += *s;
  return string_imm(out);
}

void FunctionParser::expression_statement(const Statement& s) {
  if (exit_loop(s)) return;
  Value v = eval(s.value);
  if (v.is_none() || v.as<std::string>()) return;  // a declaration, or a docstring
  if (auto opener = v.as<ScopeOpenerRef>()) {
    if ((*opener)->kind != ScopeOpener::Kind::wrapper)
      fail(s.value.place,
           {.what = "a loop or a block without a body",
            .needs = "'for ... in' or 'with' before it",
            .hint = "add the body"});
    return open(*opener);
  }
  if (const NodeRef* n = v.as<NodeRef>()) {
    if (const StmtNode* stmt = (*n)->as<StmtNode>()) return append(ref(*stmt));
  }
  append(spanned(make<Evaluate>(to_expr(v, s.value.place)), source.span(s.place)));
}

// ---- Assignments ----

void FunctionParser::name_value(const Value& value, const std::string& name) {
  if (const Expr* e = value.as<Expr>()) {
    if (const Var* v = e->as<Var>(); v && bound_.insert(v).second) set_name(*v, name);
  } else if (const BufferRef* b = value.as<BufferRef>(); b && (*b)->name.empty()) {
    const_cast<Buffer&>(**b).name = name;
    if ((*b)->data->name.empty()) name_value(Expr((*b)->data), name);
    for (size_t i = 0; i < (*b)->strides.size(); ++i) name_value((*b)->strides[i], text(name, "_s", i));
    if ((*b)->elem_offset) name_value((*b)->elem_offset, name + "_elem_offset");
  } else if (const Values* list = value.as<Values>()) {
    for (size_t i = 0; i < list->items.size(); ++i) name_value(list->items[i], text(name, "_", i));
  }
}

Value FunctionParser::bind_name(const std::string& name, Value value, Place place, bool lets) {
  if (const MetaVar* m = value.as<MetaVar>()) return *m->value;
  if (auto opener = value.as<ScopeOpenerRef>()) {
    if ((*opener)->kind != ScopeOpener::Kind::wrapper || (*opener)->bound.is_none())
      fail(place,
           {.what = "this gives nothing that could be named", .needs = "a value", .hint = "use 'with' or 'for'"});
    ScopeOpenerRef scope = *opener;
    if (scope->names_also) name_value(scope->names_also, name);
    name_value(scope->bound, name);
    open(scope);
    return scope->bound;
  }
  const Expr* e = value.as<Expr>();
  bool is_fresh = e && e->as<Var>() && !is_bound(*e->as<Var>());
  // `n = T.int32()` of a size that the signature has named.
  if (auto at = sizes_.find(name); is_fresh && at != sizes_.end() && at->second->dtype == (*e)->dtype) {
    VarRef size = at->second;
    sizes_.erase(at);
    return Expr(size);
  }
  bool is_let =
      value.as<bool>() || value.as<Integer>() || value.as<double>() || value.as<Subscript>() || (e && !is_fresh);
  if (!is_let || !lets) {
    name_value(value, name);
    return value;
  }
  Expr computed = to_expr(value, place);
  VarRef var = computed->dtype.is_handle() ? make_pointer(name, DType::Void(), "") : make_var(name, computed->dtype);
  if (const Var* pointer = computed.as<Var>())
    var = make<Var>(name, pointer->dtype, pointer->pointee, pointer->scope, false);
  bound_.insert(var.get());
  auto opener = std::make_shared<ScopeOpener>();
  opener->wrap = [=](Stmt inner) -> Stmt { return make<LetStmt>(computed, var, std::move(inner)); };
  open(std::move(opener));
  return Expr(var);
}

void FunctionParser::bind(const Expression& target, Value value, bool lets) {
  switch (target.kind) {
    case Kind::name: {
      Value bound = bind_name(target.text, std::move(value), target.place, lets);
      const Expr* e = bound.as<Expr>();
      const Value* known = find(target.text);
      const Expr* k = known ? known->as<Expr>() : nullptr;
      return define(target.text, bound, target.place, e && k && e->get() == k->get());
    }
    case Kind::tuple:
    case Kind::list: {
      if (const MetaVar* m = value.as<MetaVar>()) value = Value(*m->value);
      const Values* list = value.as<Values>();
      size_t stars = 0, n = target.items.size();
      for (const Expression& t : target.items) stars += t.is(Kind::star);
      size_t have = list ? list->items.size() : 0;
      if (!list || stars > 1 || have + stars < n || (stars == 0 && have != n))
        fail(target.place,
             {.what = list ? text(n, " names for ", have, " values") : text(value.kind(), " for ", n, " names"),
              .needs = "one name per value",
              .hint = "count the names"});
      size_t next = 0;
      for (const Expression& t : target.items) {
        if (!t.is(Kind::star)) {
          bind(t, list->items[next++], lets);
          continue;
        }
        Values middle;
        for (size_t taken = have + 1 - n; taken > 0; --taken) middle.items.push_back(list->items[next++]);
        bind(t.items[0], std::move(middle), lets);
      }
      return;
    }
    case Kind::subscript: return store(target, value);
    default:
      fail(target.place,
           {.what = "this cannot be assigned to", .needs = "a name or an element of a buffer", .hint = "use a name"});
  }
}

void FunctionParser::assign(const Statement& s) {
  if (s.targets.size() != 1)
    fail(s.place, {.what = "a chain of assignments", .needs = "one target", .hint = "assign each on its own line"});
  bind(s.targets[0], eval(s.value), true);
}

void FunctionParser::annotated_assign(const Statement& s) {
  const Expression& target = s.targets[0];
  if (!target.is(Kind::name) || !s.value.present())
    fail(s.place,
         {.what = "an annotation without a named value", .needs = "name: dtype = value", .hint = "add the value"});
  Value type = eval(s.annotation);
  VarRef var;
  if (const Expr* e = type.as<Expr>(); e && e->as<Var>() && !is_bound(*e->as<Var>())) {
    var = ref(*e->as<Var>());
  } else {
    var = make_var("", to_dtype(type, s.annotation.place));
  }
  Expr value = to_expr_like(eval(s.value), var->dtype, s.value.place);
  if (value->dtype != var->dtype)
    fail(s.value.place,
         {.what = text("a value of dtype ", value->dtype, " for ", target.text, " of dtype ", var->dtype),
          .needs = "the same dtype",
          .hint = "cast the value"});
  name_value(Expr(var), target.text);
  auto opener = std::make_shared<ScopeOpener>();
  opener->wrap = [=](Stmt inner) -> Stmt { return make<LetStmt>(value, var, std::move(inner)); };
  open(std::move(opener));
  define(target.text, Expr(var), target.place);
}

void FunctionParser::augmented_assign(const Statement& s) {
  Value result = binary(s.text, eval(s.targets[0]), eval(s.value), s.place);
  bind(s.targets[0], std::move(result), true);
}

Stmt FunctionParser::make_store(const BufferRef& buffer, Expr value, std::vector<Expr> indices, Place place) {
  DType wanted = buffer->dtype;
  if (!indices.empty()) wanted = wanted.with_lanes(wanted.all_lanes() * indices.back()->dtype.all_lanes());
  if (indices.size() != buffer->shape.size())
    fail(place,
         {.what = text(indices.size(), " indices for the buffer ", buffer->name, " of rank ", buffer->rank()),
          .needs = text(buffer->rank(), " indices"),
          .hint = "one index per dimension"});
  if (wanted.all_lanes() != value->dtype.all_lanes() || value->dtype.is_handle() != wanted.is_handle())
    fail(place,
         {.what = text("a value of dtype ", value->dtype, " stored as ", wanted, " in ", buffer->name),
          .needs = "a number with as many lanes",
          .hint = "broadcast the value, or load one element"});
  if (const auto why = cannot_hold(value, wanted)) fail(place, *why);
  value = located(place, [&] { return promoted(wanted, value); });
  return spanned(make<BufferStore>(buffer, std::move(value), std::move(indices)), source.span(place));
}

void FunctionParser::store(const Expression& target, const Value& value) {
  Value object = eval(target.items[0]);
  const BufferRef* buffer = object.as<BufferRef>();
  if (!buffer)
    fail(target.place,
         {.what = text("a store to ", object.kind()),
          .needs = "a buffer",
          .hint = "declare a buffer over the pointer: T.Buffer(shape, dtype, data=...)"});
  Subscript s{*buffer, eval_indices(target.items[1], buffer->get())};
  append(make_store(*buffer,
                    to_expr_like(value, (*buffer)->dtype.is_bool() ? boolean : DType::Void(), target.place),
                    to_indices(s, target.place),
                    target.place));
}

// ---- Scopes ----

const ScopeOpener::Loop* FunctionParser::open_loop(const Var& v) const {
  for (const auto& l : loops_) {
    if (l.var.get() == &v) return &l;
  }
  return nullptr;
}

void FunctionParser::with(const Statement& s, size_t item) {
  const script::WithItem& w = s.items[item];
  Value v = eval(w.context);
  const ScopeOpenerRef* found = v.as<ScopeOpenerRef>();
  if (!found || (*found)->kind == ScopeOpener::Kind::loops)
    fail(w.context.place,
         {.what = text("'with' on ", v.kind()),
          .needs = "T.block, T.init, T.attr, T.allocate, ... after 'with'",
          .hint = found ? "use 'for' for loops" : "remove 'with'"});
  ScopeOpenerRef opener = *found;
  if (w.target.present() && opener->bound.is_none())
    fail(w.target.place, {.what = "'as' on a scope that gives no value", .needs = "no 'as'", .hint = "remove it"});
  auto inner = [&](FrameKind kind) {
    if (item + 1 == s.items.size()) return body(s.body, kind);
    frames_.push_back({kind, {}, {}});
    with(s, item + 1);
    Stmt out = close(frames_.back());
    frames_.pop_back();
    return out;
  };
  push_scope();
  switch (opener->kind) {
    case ScopeOpener::Kind::block: append(block(*opener, s, item)); break;
    case ScopeOpener::Kind::init: blocks_.back().init = inner(FrameKind::init); break;
    default: {
      if (w.target.present()) bind(w.target, opener->bound, false);
      bool declared = opener->declares && visible_.emplace(opener->declares->data, opener->declares).second;
      append(opener->wrap(inner(FrameKind::other)));
      if (declared) visible_.erase(opener->declares->data);
    }
  }
  pop_scope();
}

Stmt FunctionParser::block(const ScopeOpener& opener, const Statement& s, size_t item) {
  if (item + 1 != s.items.size())
    fail(s.place,
         {.what = "a block with another scope in one 'with'",
          .needs = "a 'with' of its own",
          .hint = "nest the scopes"});
  blocks_.emplace_back();
  exits_.push_back(nullptr);
  Stmt inner = body(s.body, FrameKind::block);
  exits_.pop_back();
  BlockState state = std::move(blocks_.back());
  blocks_.pop_back();
  for (const BufferRef& b : state.alloc_buffers) visible_.erase(b->data);
  for (const MatchBufferRef& m : state.match_buffers) visible_.erase(m->buffer->data);
  if (opener.no_realize && (!state.values.empty() || state.predicate))
    fail(s.place,
         {.what = "bindings or a predicate in a block that is not realized",
          .needs = "no T.axis and no T.where",
          .hint = "remove no_realize=True"});
  int mask = (state.reads ? 0 : 1) | (state.writes ? 0 : 2);
  if (mask) detect_regions(state, inner, s.place, mask);
  BlockRef block = make<Block>(std::move(state.iter_vars),
                               std::move(state.alloc_buffers),
                               std::move(state.match_buffers),
                               *state.reads,
                               *state.writes,
                               block_name(opener.block_name),
                               state.annotations.value_or(Attrs{}),
                               state.init,
                               std::move(inner));
  block = spanned(std::move(block), source.span(s.place));
  detected_.emplace(block.get(), mask);
  if (opener.no_realize) return block;
  Expr predicate = state.predicate ? state.predicate : bool_imm(true);
  return spanned(make<BlockRealize>(std::move(state.values), std::move(predicate), block), source.span(s.place));
}

void FunctionParser::detect_regions(BlockState& state, const Stmt& body, const Place& place, int mask) {
  using Regions = std::vector<BufferRegionRef>;
  BlockRef draft = make<Block>(std::vector<IterVarRef>{},
                               state.alloc_buffers,
                               state.match_buffers,
                               Regions{},
                               Regions{},
                               block_name(""),
                               Attrs{},
                               state.init,
                               body);
  BlockRegions found = located(place, [&] { return block_regions(*draft, visible_); });
  if (!found.opaque.empty())
    fail(place,
         {.what = text("the pointer of ",
                       found.opaque[0]->name,
                       " is used inside the block, so that its accesses cannot be seen"),
          .needs = "T.reads and T.writes of a block that hands out pointers",
          .hint = "state both regions"});
  if (mask & 1) state.reads = std::move(found.reads);
  if (mask & 2) state.writes = std::move(found.writes);
}

FunctionParser::BlockState& FunctionParser::block_here(const Expression& call, std::string_view what) {
  if (frames_.empty() || frames_.back().kind != FrameKind::block)
    fail(call.place,
         {.what = text(what, " outside of a block"),
          .needs = "the statements of a block itself, not of a loop in it",
          .hint = "put it at the top of a 'with T.block(...)'"});
  return blocks_.back();
}

void FunctionParser::if_then_else(const Statement& s) {
  Value v = eval(s.value);
  auto branch = [&](std::span<const Statement> stmts) {
    push_scope();
    Stmt out = body(stmts, FrameKind::other);
    pop_scope();
    return out;
  };
  if (v.is_plain()) {  // a constant is decided here
    bool holds = is_true(v);
    if (!holds && s.orelse.empty()) return;
    push_scope();
    statements(holds ? s.body : s.orelse);
    pop_scope();
    return;
  }
  Expr condition = to_expr(v, s.value.place);
  if (!condition->dtype.is_bool())
    fail(s.value.place,
         {.what = text("a condition of dtype ", condition->dtype), .needs = "a bool", .hint = "compare it with 0"});
  Stmt then_case = branch(s.body), else_case;
  if (!s.orelse.empty()) else_case = branch(s.orelse);
  append(spanned(make<IfThenElse>(condition, then_case, else_case), source.span(s.place)));
}

}  // namespace sator::tir
