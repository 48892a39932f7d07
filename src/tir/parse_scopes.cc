// T.<name>(...) where it makes a statement, declares something or opens a scope: one row per name.
#include <cstring>
#include <unordered_map>

#include "base/float16.h"
#include "base/float8.h"
#include "ir/builtins.h"
#include "tir/parse_impl.h"

namespace sator::tir {

using script::Expression;

namespace {

// ---- Loops ----

/// min and extent of T.serial(stop) or T.serial(start, stop), in one integer dtype.
ScopeOpener::Loop loop_bounds(FunctionParser& p, const Value& first, const Value* second, const Value* by,
                              script::Place place) {
  ScopeOpener::Loop loop;
  Expr start, stop;
  if (second) {
    start = p.to_expr(first, place);
    stop = p.to_expr(*second, place);
    if (first.is_plain())
      start = p.to_expr_like(first, stop->dtype, place);
    else if (second->is_plain())
      stop = p.to_expr_like(*second, start->dtype, place);
  } else {
    stop = p.to_expr(first, place);
    start = int_imm(0, stop->dtype);
  }
  if (!start->dtype.is_integer() || !stop->dtype.is_integer() || start->dtype.lanes != 1 || stop->dtype.lanes != 1)
    p.fail(place,
           {.what = text("loop bounds of ", start->dtype, " and ", stop->dtype),
            .needs = "integers",
            .hint = "cast the bounds"});
  return p.located(place, [&] {
    match_dtypes(start, stop, "loop bounds");
    loop.min = start;
    loop.extent = extent_between(start, stop);
    loop.var = make_var("v", start->dtype);
    if (const Expr step = by ? p.to_expr_like(*by, start->dtype, place) : nullptr; step && !is_one(step)) {
      const auto known = as_int(step);
      if (!known || *known < 1)
        p.fail(place,
               {.what = text("a loop by steps of ", step),
                .needs = "a positive number as the step",
                .hint = "count from 0, and compute the index from the loop's variable"});
      loop.first = start;
      loop.step = cast_to(start->dtype, step);
      loop.min = int_imm(0, start->dtype);
      loop.extent = ceildiv(loop.extent, loop.step);
    }
    return loop;
  });
}

template <LoopKind kind>
Value fn_loop(FunctionParser& p, const Expression& call) {
  // range(start, stop, step), T.serial(start, stop, annotations=..., step=...).
  const bool is_range = script::dotted_name(call.items[0]) == "range";
  Arguments a(p,
              call,
              is_range ? std::vector<std::string_view>{"start", "stop", "step", "annotations"}
                       : std::vector<std::string_view>{"start", "stop", "annotations", "step"});
  auto out = std::make_shared<ScopeOpener>();
  out->kind = ScopeOpener::Kind::loops;
  ScopeOpener::Loop loop = loop_bounds(p, a.need("start"), a.find("stop"), a.find("step"), call.place);
  loop.kind = kind;
  if (const Value* v = a.find("annotations")) loop.annotations = p.to_attrs(*v, call.place);
  out->loops.push_back(std::move(loop));
  return out;
}

Value fn_thread_binding(FunctionParser& p, const Expression& call) {
  Arguments a(p, call, {"start", "stop", "thread", "annotations"});
  const Value *stop = a.find("stop"), *thread = a.find("thread");
  if (!thread) std::swap(stop, thread);  // T.thread_binding(n, "threadIdx.x")
  const std::string* tag = thread ? thread->as<std::string>() : nullptr;
  if (!tag)
    a.fail({.what = "T.thread_binding without a thread axis",
            .needs = "thread=\"blockIdx.x\", ...",
            .hint = "name the axis"});
  auto out = std::make_shared<ScopeOpener>();
  out->kind = ScopeOpener::Kind::loops;
  ScopeOpener::Loop loop = loop_bounds(p, a.need("start"), stop, nullptr, call.place);
  loop.kind = LoopKind::thread_binding;
  loop.thread = *tag;
  if (const Value* v = a.find("annotations")) loop.annotations = p.to_attrs(*v, call.place);
  out->loops.push_back(std::move(loop));
  return out;
}

Value fn_grid(FunctionParser& p, const Expression& call) {
  Arguments a(p, call, {"*extents"});
  auto out = std::make_shared<ScopeOpener>();
  out->kind = ScopeOpener::Kind::loops;
  for (const Value& v : a.rest()) out->loops.push_back(loop_bounds(p, v, nullptr, nullptr, call.place));
  if (out->loops.empty())
    a.fail({.what = "T.grid without extents", .needs = "at least one extent", .hint = "T.grid(n, m)"});
  return out;
}

// ---- Blocks ----

Value fn_block(FunctionParser& p, const Expression& call) {
  Arguments a(p, call, {"name", "no_realize"});
  auto out = std::make_shared<ScopeOpener>();
  out->kind = ScopeOpener::Kind::block;
  out->block_name = a.str("name", "");
  out->no_realize = a.boolean("no_realize", false);
  return out;
}

Value fn_init(FunctionParser& p, const Expression& call) {
  Arguments a(p, call, {});
  if (p.block_here(call, "T.init").init)
    a.fail({.what = "a second T.init in one block", .needs = "one init per block", .hint = "merge them"});
  auto out = std::make_shared<ScopeOpener>();
  out->kind = ScopeOpener::Kind::init;
  return out;
}

Value fn_where(FunctionParser& p, const Expression& call) {
  Arguments a(p, call, {"predicate"});
  auto& block = p.block_here(call, "T.where");
  if (block.predicate)
    a.fail(
        {.what = "a second T.where in one block", .needs = "one predicate per block", .hint = "join them with 'and'"});
  Expr e = p.to_expr_like(a.need("predicate"), boolean, call.place);
  if (!e->dtype.is_bool())
    a.fail({.what = text("a predicate of dtype ", e->dtype), .needs = "a bool", .hint = "compare it with 0"});
  block.predicate = std::move(e);
  return {};
}

std::vector<BufferRegionRef> regions(FunctionParser& p, const Expression& call) {
  Arguments a(p, call, {"*regions"});
  std::vector<Value> items = a.rest();
  if (items.size() == 1) {
    if (const Values* list = items[0].as<Values>()) items = std::vector<Value>(list->items);
  }
  std::vector<BufferRegionRef> out;
  for (const Value& v : items) {
    if (const Subscript* s = v.as<Subscript>()) {
      out.push_back(p.to_region(*s, call.place));
    } else if (const BufferRef* b = v.as<BufferRef>(); b && (*b)->shape.empty()) {
      out.push_back(full_region(*b));
    } else {
      a.fail(
          {.what = text(v.kind(), " as a region"), .needs = "parts of buffers: A[i, 0:4]", .hint = "index the buffer"});
    }
  }
  return out;
}
Value fn_reads(FunctionParser& p, const Expression& call) {
  auto& block = p.block_here(call, "T.reads");
  if (block.reads)
    p.fail(call.place,
           {.what = "a second T.reads in one block", .needs = "one T.reads per block", .hint = "merge them"});
  block.reads = regions(p, call);
  return {};
}
Value fn_writes(FunctionParser& p, const Expression& call) {
  auto& block = p.block_here(call, "T.writes");
  if (block.writes)
    p.fail(call.place,
           {.what = "a second T.writes in one block", .needs = "one T.writes per block", .hint = "merge them"});
  block.writes = regions(p, call);
  return {};
}
Value fn_block_attr(FunctionParser& p, const Expression& call) {
  Arguments a(p, call, {"attrs"});
  auto& block = p.block_here(call, "T.block_attr");
  if (block.annotations)
    a.fail({.what = "a second T.block_attr in one block", .needs = "one per block", .hint = "merge them"});
  block.annotations = p.to_attrs(a.need("attrs"), call.place);
  return {};
}

template <IterKind kind>
Value fn_axis(FunctionParser& p, const Expression& call) {
  Arguments a(p, call, {"dom", "binding", "dtype"});
  auto& block = p.block_here(call, "T.axis");
  const Value& dom = a.need("dom");
  RangeRef range;
  if (const Values* pair = dom.as<Values>()) {
    if (pair->items.size() != 2)
      a.fail({.what = text("a domain of ", pair->items.size(), " values"),
              .needs = "an extent or (begin, end)",
              .hint = "write both ends"});
    Expr begin = p.to_expr(pair->items[0], call.place), end = p.to_expr(pair->items[1], call.place);
    range = p.located(call.place, [&] {
      match_dtypes(begin, end, "the domain");
      return make<Range>(begin, extent_between(begin, end));
    });
  } else if (const NodeRef* node = dom.as<NodeRef>(); node && node->as<Range>()) {
    range = cast<Range>(*node);
  } else {
    range = range_of(a.expr("dom"));
  }
  Expr binding = a.expr("binding");
  DType wanted = a.dtype("dtype", i32);
  for (const Expr& e : {range->min, range->extent, binding}) {
    if (!e->dtype.is_int() || e->dtype.lanes != 1)
      a.fail({.what = text("an iterator over ", e->dtype), .needs = "signed integers", .hint = "cast it"});
  }
  // As wide as the widest of the four, so that no value of the binding is lost; the others are widened to it.
  const int bits = std::max({range->min->dtype.bits, range->extent->dtype.bits, binding->dtype.bits, wanted.bits});
  VarRef var = make_var("", wanted.with_bits(bits));
  range = make<Range>(cast_to(var->dtype, range->min), cast_to(var->dtype, range->extent));
  block.iter_vars.push_back(make<IterVar>(range, var, kind));
  block.values.push_back(cast_to(var->dtype, binding));
  return Expr(var);
}

Value fn_remap(FunctionParser& p, const Expression& call) {
  Arguments a(p, call, {"kinds", "bindings", "dtype"});
  auto& block = p.block_here(call, "T.axis.remap");
  std::string kinds = a.str("kinds");
  std::vector<Expr> bindings = a.exprs("bindings");
  if (kinds.size() != bindings.size())
    a.fail({.what = text(kinds.size(), " letters for ", bindings.size(), " loops"),
            .needs = "one letter per loop",
            .hint = "count them"});
  Values out;
  out.is_tuple = true;
  for (size_t i = 0; i < kinds.size(); ++i) {
    const Var* v = bindings[i].as<Var>();
    const ScopeOpener::Loop* loop = v ? p.open_loop(*v) : nullptr;
    if (!loop || (kinds[i] != 'S' && kinds[i] != 'R'))
      a.fail({.what = loop ? text("the letter ", kinds[i])
                           : text(bindings[i], " is not the variable of a loop around the block"),
              .needs = "letters S or R, and loop variables",
              .hint = "use T.axis.spatial or T.axis.reduce for other bindings"});
    VarRef var = make_var("", v->dtype);
    IterKind kind = kinds[i] == 'S' ? IterKind::spatial : IterKind::reduce;
    block.iter_vars.push_back(make<IterVar>(make<Range>(loop->min, loop->extent), var, kind));
    block.values.push_back(bindings[i]);
    out.items.push_back(Expr(var));
  }
  if (out.items.size() == 1) return out.items[0];
  return out;
}

// ---- Buffers ----

std::vector<std::string_view> buffer_params() {
  return {"shape",
          "dtype",
          "data",
          "strides",
          "elem_offset",
          "scope",
          "align",
          "offset_factor",
          "buffer_type",
          "axis_separators"};
}

Value fn_buffer(FunctionParser& p, const Expression& call) {
  return p.make_buffer_value(Arguments(p, call, buffer_params()));
}
/// `buffer` and the memory below it, for the statements that follow.
Value allocated(const BufferRef& buffer) {
  auto out = wrapper(
      [=](Stmt body) -> Stmt {
        Stmt decl = make<DeclBuffer>(buffer, std::move(body));
        return make<Allocate>(buffer->data, buffer->dtype, buffer->shape, bool_imm(true), Attrs{}, std::move(decl));
      },
      buffer);
  out->declares = buffer;
  return out;
}

/// In newer programs T.alloc_buffer is a statement of its own, which a loop may hold too.
Value fn_alloc_buffer(FunctionParser& p, const Expression& call) {
  BufferRef buffer = p.make_buffer_value(Arguments(p, call, buffer_params()));
  return p.alloc_buffer(buffer) ? Value(buffer) : allocated(buffer);
}

template <const char* const& scope>
Value fn_alloc_in(FunctionParser& p, const Expression& call) {
  BufferRef buffer = p.make_buffer_value(Arguments(p, call, buffer_params()));
  return allocated(make_buffer("", buffer->shape, buffer->dtype, scope));
}
const char* const kLocal = "local";
const char* const kShared = "shared";
Value fn_match_buffer(FunctionParser& p, const Expression& call) { return p.match_buffer(call); }

Value fn_decl_buffer(FunctionParser& p, const Expression& call) {
  Arguments a(p, call, buffer_params());
  BufferRef buffer = p.make_buffer_value(a);
  if (!a.find("data")) return allocated(buffer);
  auto out = wrapper([=](Stmt body) -> Stmt { return make<DeclBuffer>(buffer, std::move(body)); }, buffer);
  out->declares = buffer;
  return out;
}

Value fn_allocate(FunctionParser& p, const Expression& call) {
  Arguments a(p, call, {"extents", "dtype", "scope", "condition", "annotations"});
  DType dtype = a.dtype("dtype");
  VarRef data = make_pointer("", dtype, a.str("scope", "global"));
  std::vector<Expr> extents = a.exprs("extents");
  Expr condition = a.find("condition") ? p.to_expr_like(a.need("condition"), boolean, call.place) : bool_imm(true);
  Attrs annotations;
  if (const Value* v = a.find("annotations")) annotations = p.to_attrs(*v, call.place);
  return wrapper(
      [=](Stmt body) -> Stmt { return make<Allocate>(data, dtype, extents, condition, annotations, std::move(body)); },
      Expr(data));
}

/// Appends one element, little-endian.
void append_element(std::string& bytes, const Expr& e, DType dtype) {
  uint64_t raw = 0;
  const IntImm* i = e.as<IntImm>();
  const FloatImm* f = e.as<FloatImm>();
  double value = f ? f->value : static_cast<double>(i->value);
  if (!dtype.is_float())
    raw = i ? static_cast<uint64_t>(i->value) : static_cast<uint64_t>(static_cast<int64_t>(value));
  else if (dtype.bits == 64)
    raw = std::bit_cast<uint64_t>(value);
  else if (dtype.bits == 32)
    raw = std::bit_cast<uint32_t>(static_cast<float>(value));
  else if (dtype.is_float8())
    raw = f32_to_f8(static_cast<float>(value), dtype.code);
  else
    raw = dtype.is_bfloat() ? f32_to_bf16(static_cast<float>(value)) : f32_to_f16(static_cast<float>(value));
  bytes.append(reinterpret_cast<const char*>(&raw), dtype.element_bytes());
}

Value fn_allocate_const(FunctionParser& p, const Expression& call) {
  Arguments a(p, call, {"data", "dtype", "extents", "annotations"});
  DType dtype = a.dtype("dtype");
  if (dtype.is_void() || dtype.is_handle() || dtype.lanes > 1)
    a.fail({.what = text("constant data of dtype ", dtype),
            .needs = "a dtype of numbers, such as \"float32\"",
            .hint = "T.allocate_const(data, dtype, extents)"});
  std::string bytes;
  auto add = [&](auto& self, const Value& v, int depth) -> void {
    if (const Values* list = v.as<Values>()) {
      if (depth > 32)
        a.fail({.what = "data nested too deeply", .needs = "lists of numbers", .hint = "flatten the data"});
      for (const Value& item : list->items) self(self, item, depth + 1);
      return;
    }
    Expr e = p.to_expr(v, call.place);
    if (const std::string* s = v.as<std::string>()) {  // "inf", "nan"
      char* end = nullptr;
      const double number = std::strtod(s->c_str(), &end);
      if (!s->empty() && *end == 0) e = float_imm(number, dtype);
    }
    if (!e.as<IntImm>() && !e.as<FloatImm>())
      a.fail({.what = text(e, " in constant data"), .needs = "numbers", .hint = "write the values"});
    append_element(bytes, e, dtype);
  };
  add(add, a.need("data"), 0);
  std::vector<Expr> extents = a.exprs("extents");
  VarRef data = make_pointer("", dtype);
  return wrapper([=](Stmt body) -> Stmt { return make<AllocateConst>(data, dtype, extents, bytes, std::move(body)); },
                 Expr(data));
}

// ---- Other statements ----

Value fn_evaluate(FunctionParser& p, const Expression& call) {
  Arguments a(p, call, {"value"});
  p.append(make<Evaluate>(a.expr("value")));
  return {};
}
Value fn_buffer_store(FunctionParser& p, const Expression& call) {
  Arguments a(p, call, {"buffer", "value", "indices", "predicate"});
  const BufferRef* buffer = a.need("buffer").as<BufferRef>();
  if (!buffer || a.find("predicate"))
    a.fail({.what = "T.buffer_store that is not an unconditional store to a buffer",
            .needs = "a buffer, a value, indices",
            .hint = "write buffer[indices] = value"});
  p.append(p.make_store(*buffer, a.expr("value"), a.exprs("indices"), call.place));
  return {};
}
Value fn_func_attr(FunctionParser& p, const Expression& call) {
  Arguments a(p, call, {"attrs"});
  p.add_attrs(p.to_attrs(a.need("attrs"), call.place), call);
  return {};
}

Value fn_attr(FunctionParser& p, const Expression& call) {
  Arguments a(p, call, {"node", "attr_key", "value"});
  if (a.need("node").as<DictValue>()) {  // T.attr({"key": value}), of newer programs
    Attrs attrs = p.to_attrs(a.need("node"), call.place);
    for (const auto& [key, value] : attrs)
      if (!value || !value->as<ExprNode>())
        a.fail({.what = text("the attribute ", string_literal(key), " is no expression"),
                .needs = "numbers, strings or expressions as values",
                .hint = "in a block T.block_attr takes lists and dictionaries"});
    return wrapper([=](Stmt body) -> Stmt {
      for (auto at = attrs.rbegin(); at != attrs.rend(); ++at)
        body = make<AttrStmt>(int_imm(0), at->first, cast<ExprNode>(at->second), std::move(body));
      return body;
    });
  }
  if (const Values* pair = a.need("node").as<Values>(); pair && a.str("attr_key") == "buffer_bind_scope")
    return bind_buffer(a, *pair);
  NodeRef node = p.to_attribute(a.need("node"), call.place);
  std::string key = a.str("attr_key");
  Expr value = a.expr("value");
  return wrapper([=](Stmt body) -> Stmt { return make<AttrStmt>(node, key, value, std::move(body)); });
}

Value fn_env_thread(FunctionParser& p, const Expression& call) {
  Arguments a(p, call, {"thread_tag", "dtype"});
  return Expr(p.declare_thread(a.str("thread_tag"), a.dtype("dtype", i32)));
}
Value fn_launch_thread(FunctionParser& p, const Expression& call) {
  Arguments a(p, call, {"thread", "extent"});
  Expr extent = a.expr("extent");
  auto axis = p.thread_axis(a.need("thread"), extent->dtype, call.place);
  std::string key = axis->tag == "vthread" ? "virtual_thread" : "thread_extent";
  return wrapper([=](Stmt body) -> Stmt { return make<AttrStmt>(axis, key, extent, std::move(body)); },
                 Expr(axis->var));
}
Value fn_iter_var(FunctionParser& p, const Expression& call) {
  Arguments a(p, call, {"v", "dom", "iter_type", "thread_tag"});
  const Var* v = a.expr("v").as<Var>();
  if (!v)
    a.fail({.what = "T.iter_var of something else than a variable",
            .needs = "a variable",
            .hint = "declare it: v = T.int32()"});
  return NodeRef(make<ThreadAxis>(ref(*v), a.str("thread_tag", "")));
}

Value fn_let_stmt(FunctionParser& p, const Expression& call) {
  Arguments a(p, call, {"value", "type_annotation", "var"});
  Expr value = a.expr("value");
  VarRef var;
  if (const Value* given = a.find("var")) {
    const Expr* e = given->as<Expr>();
    const Var* v = e ? e->as<Var>() : nullptr;
    if (!v)
      a.fail({.what = "T.LetStmt binds something else than a variable",
              .needs = "var=a declared variable",
              .hint = "declare it: x = T.int32()"});
    var = ref(*v);
  } else if (const Value* type = a.find("type_annotation")) {
    const Expr* e = type->as<Expr>();
    const Var* v = e ? e->as<Var>() : nullptr;
    var = v ? ref(*v) : make_var("v", p.to_dtype(*type, call.place));
  } else {
    var = make_var("v", value->dtype);
  }
  return wrapper([=](Stmt body) -> Stmt { return make<LetStmt>(value, var, std::move(body)); }, Expr(var));
}
Value fn_let(FunctionParser& p, const Expression& call) {  // the older T.let(var, value[, body])
  Arguments a(p, call, {"v", "value", "body"});
  Expr v = a.expr("v"), value = a.expr("value");
  const Var* var = v.as<Var>();
  if (!var)
    a.fail({.what = "T.let binds something else than a variable",
            .needs = "a declared variable",
            .hint = "declare it: x = T.int32()"});
  VarRef bound = ref(*var);
  if (a.find("body")) return Expr(make<Let>(value, bound, a.expr("body")));
  return wrapper([=](Stmt body) -> Stmt { return make<LetStmt>(value, bound, std::move(body)); }, Expr(bound));
}
Value fn_assert(FunctionParser& p, const Expression& call) {
  Arguments a(p, call, {"condition", "message"});
  Expr condition = p.to_expr_like(a.need("condition"), boolean, call.place), message = a.expr("message");
  return wrapper([=](Stmt body) -> Stmt { return make<AssertStmt>(condition, message, std::move(body)); });
}

const std::unordered_map<std::string_view, ScopeFunction>& rows() {
  static const std::unordered_map<std::string_view, ScopeFunction> table = {
      {"serial", fn_loop<LoopKind::serial>},
      {"parallel", fn_loop<LoopKind::parallel>},
      {"vectorized", fn_loop<LoopKind::vectorized>},
      {"unroll", fn_loop<LoopKind::unrolled>},
      {"thread_binding", fn_thread_binding},
      {"grid", fn_grid},
      {"block", fn_block},
      {"sblock", fn_block},
      {"init", fn_init},
      {"where", fn_where},
      {"reads", fn_reads},
      {"writes", fn_writes},
      {"block_attr", fn_block_attr},
      {"sblock_attr", fn_block_attr},
      {"axis.spatial", fn_axis<IterKind::spatial>},
      {"axis.S", fn_axis<IterKind::spatial>},
      {"axis.reduce", fn_axis<IterKind::reduce>},
      {"axis.R", fn_axis<IterKind::reduce>},
      {"axis.scan", fn_axis<IterKind::scan>},
      {"axis.opaque", fn_axis<IterKind::opaque>},
      {"axis.remap", fn_remap},
      {"Buffer", fn_buffer},
      {"buffer", fn_buffer},
      {"buffer_decl", fn_buffer},
      {"alloc_buffer", fn_alloc_buffer},
      {"alloc_local", fn_alloc_in<kLocal>},
      {"alloc_shared", fn_alloc_in<kShared>},
      {"sblock_alloc_buffer", fn_alloc_buffer},
      {"match_buffer", fn_match_buffer},
      {"decl_buffer", fn_decl_buffer},
      {"realize", fn_realize},
      {"allocate", fn_allocate},
      {"allocate_const", fn_allocate_const},
      {"evaluate", fn_evaluate},
      {"buffer_store", fn_buffer_store},
      {"func_attr", fn_func_attr},
      {"attr", fn_attr},
      {"env_thread", fn_env_thread},
      {"launch_thread", fn_launch_thread},
      {"iter_var", fn_iter_var},
      {"LetStmt", fn_let_stmt},
      {"let", fn_let},
      {"Assert", fn_assert},
  };
  return table;
}

}  // namespace

ScopeFunction find_scope_function(std::string_view name) {
  auto at = rows().find(name);
  return at == rows().end() ? nullptr : at->second;
}

std::vector<std::string> scope_function_names() {
  std::vector<std::string> names;
  for (const auto& [name, fn] : rows()) names.emplace_back(name);
  return names;
}

}  // namespace sator::tir
