#include <cstring>
#include <utility>

#include "base/float16.h"
#include "base/float8.h"
#include "ir/builtins.h"
#include "tir/print.h"
#include "tir/print_impl.h"

namespace sator::tir {

using namespace script;

void ScriptPrinter::print_body(const Stmt& stmt, Frame& frame) {
  std::vector<Stmt> stmts;
  if (const Seq* s = stmt.as<Seq>())
    stmts = s->stmts;
  else
    stmts.push_back(stmt);
  for (size_t i = 0; i < stmts.size(); ++i) {
    frame.allow_concise_scoping = i + 1 == stmts.size();
    for (StmtDoc& d : print_stmt(stmts[i])) frame.stmts.push_back(std::move(d));
  }
}

Frame& ScriptPrinter::frame_of_name(bool concise, Frame& inner) {
  if (concise || !printer.is_head()) return inner;
  return *printer.frames()[printer.frames().size() - 2];
}

void ScriptPrinter::not_in_head(std::string_view what) const {
  if (printer.is_head())
    fail({.what = text(what, " in the spelling of the newest TVM"),
          .needs = "statements that it has",
          .hint = "print it as v0.17 does"});
}

bool ScriptPrinter::is_concise(const NodeBase& node) const {
  return !printer.is_marked(node) && printer.frames().back()->allow_concise_scoping;
}

std::vector<StmtDoc> ScriptPrinter::scoped(const std::optional<Doc>& target, const Doc& head, std::vector<StmtDoc> body,
                                           bool concise) {
  // In the newest TVM a name is known to the end of the statements around.
  if (concise || (target && printer.is_head())) {
    body.insert(body.begin(), target ? assign_doc(*target, head) : line_doc(head));
    return body;
  }
  Doc line("with ");
  line += head;
  if (target) {
    line += " as ";
    line += *target;
  }
  std::vector<StmtDoc> out;
  out.push_back(compound_doc(std::move(line), std::move(body)));
  return out;
}

Doc ScriptPrinter::print_evaluate(const Evaluate& n) {
  const Call* call = n.value.as<Call>();
  if (call && call->op == "tir.ret" && call->args.size() == 1 && printer.options().syntax_sugar) {
    Doc head("return ");
    head += print(call->args[0]);
    return head;
  }
  Doc value = print(n.value);
  return call ? value : call_doc(printer.tir("evaluate"), {value});
}

std::vector<StmtDoc> ScriptPrinter::print_if(const IfThenElse& n) {
  std::vector<StmtDoc> out;
  Doc head("if ");
  head += print(n.condition);
  auto branch = [&](Doc line, const Stmt& body) {
    FrameScope frame(printer, body.get());
    if (body) print_body(body, *frame);
    out.push_back(compound_doc(std::move(line), std::move(frame->stmts)));
  };
  branch(printer.marked(std::move(head), n), n.then_case);
  if (n.else_case) branch(Doc("else"), n.else_case);
  return out;
}

std::vector<StmtDoc> ScriptPrinter::print_let(const LetStmt& n) {
  bool concise = is_concise(n);
  Doc value = print(n.value);
  FrameScope frame(printer, &n);
  bool was_defined = printer.is_defined(*n.var);
  if (was_defined) not_in_head("T.LetStmt of a variable that is bound outside");
  Doc name = define_var(*n.var, frame_of_name(concise, *frame));
  print_body(n.body, *frame);
  std::vector<StmtDoc> body = std::move(frame->stmts);
  if (!was_defined && (concise || printer.is_head())) {
    const Doc annotation = type(*n.var);
    // The newest TVM reads `v: T.int64 = ...` as memory of its own that is written.
    body.insert(body.begin(),
                assign_doc(name, value, printer.is_head() ? index_doc(printer.tir("let"), {annotation}) : annotation));
    return body;
  }
  std::vector<Doc> args = {value};
  if (!was_defined && !n.var->pointee.is_void()) args.push_back(type(*n.var));
  std::vector<KeywordDoc> keywords;
  if (was_defined) keywords.push_back({"var", name});
  Doc head = printer.marked(call_doc(printer.tir("LetStmt"), args, keywords), n);
  return scoped(was_defined ? std::nullopt : std::optional(name), head, std::move(body), false);
}

std::vector<StmtDoc> ScriptPrinter::print_decl_buffer(const DeclBuffer& n, Defines defines) {
  bool concise = is_concise(n);
  Frame& outer = printer.frame();
  FrameScope frame(printer, &n);
  // The name is given first, since the pointer's text is made of it; what the shape needs is defined outside.
  Frame& names = frame_of_name(concise, *frame);
  Doc name = define_buffer(*n.buffer, names);
  const bool allocates = printer.is_head() && defines == Defines::pointer;
  Doc value = buffer_decl(
      *n.buffer, allocates ? "alloc_buffer" : "decl_buffer", {}, defines == Defines::none ? outer : names, defines);
  print_body(n.body, *frame);
  return scoped(name, printer.marked(value, n), std::move(frame->stmts), concise);
}

std::vector<StmtDoc> ScriptPrinter::print_allocate(const Allocate& n) {
  bool concise = is_concise(n);
  // An allocation with the declaration of the one buffer over it is a T.decl_buffer without `data`.
  if (const DeclBuffer* decl = n.body.as<DeclBuffer>(); decl && printer.options().syntax_sugar) {
    const Buffer& b = *decl->buffer;
    bool same = b.data == n.data && b.dtype == n.dtype && is_one(n.condition) && n.annotations.empty() &&
                b.shape.size() == n.extents.size();
    for (size_t i = 0; same && i < b.shape.size(); ++i) same = equal(b.shape[i], n.extents[i]);
    if (same) return print_decl_buffer(*decl, Defines::pointer);
  }
  std::vector<Doc> args = {list_doc(list(n.extents)), dtype_doc(n.dtype), string_doc(n.data->scope)};
  if (!is_one(n.condition)) args.push_back(print(n.condition));
  std::vector<KeywordDoc> keywords;
  if (!n.annotations.empty()) keywords.push_back({"annotations", dict(n.annotations)});
  if (!is_one(n.condition) || !n.annotations.empty()) not_in_head("T.allocate with a condition or annotations");
  if (printer.is_head()) return print_allocate_in_head(n);
  Doc name = define_var(*n.data, printer.frame());
  FrameScope frame(printer, &n);
  Doc value = printer.marked(call_doc(printer.tir("allocate"), args, keywords), n);
  print_body(n.body, *frame);
  return scoped(name, value, std::move(frame->stmts), concise);
}

/// The newest TVM allocates buffers alone: the pointer is that of one.
std::vector<StmtDoc> ScriptPrinter::print_allocate_in_head(const Allocate& n) {
  const BufferRef buffer =
      make<Buffer>(n.data, n.dtype, n.extents, std::vector<Expr>{}, Expr(), n.data->name, 64, 1, std::vector<int>{});
  kept_.push_back(buffer);
  return print_decl_buffer(*make<DeclBuffer>(buffer, n.body), Defines::pointer);
}

namespace {

/// Elements of constant data as literals.
std::vector<Doc> data_docs(const std::string& bytes, DType dtype) {
  std::vector<Doc> out;
  size_t size = dtype.element_bytes();
  for (size_t at = 0; at + size <= bytes.size(); at += size) {
    uint64_t raw = 0;
    std::memcpy(&raw, bytes.data() + at, size);
    if (dtype.is_float()) {
      double v;
      if (size == 8)
        v = std::bit_cast<double>(raw);
      else if (size == 4)
        v = std::bit_cast<float>(static_cast<uint32_t>(raw));
      else if (dtype.is_float8())
        v = f8_to_f32(static_cast<uint8_t>(raw), dtype.code);
      else
        v = dtype.is_bfloat() ? bf16_to_f32(static_cast<uint16_t>(raw)) : f16_to_f32(static_cast<uint16_t>(raw));
      out.push_back(real_doc(v));
    } else if (dtype.is_bool()) {
      out.push_back(boolean_doc(raw));
    } else {
      int shift = static_cast<int>(64 - 8 * size);
      bool is_signed = dtype.is_int();
      out.push_back(is_signed ? integer_doc(static_cast<int64_t>(raw << shift) >> shift) : Doc(text(raw)));
    }
  }
  return out;
}

}  // namespace

std::vector<StmtDoc> ScriptPrinter::print_allocate_const(const AllocateConst& n) {
  not_in_head("T.allocate_const");
  bool concise = is_concise(n);
  Doc value = call_doc(printer.tir("allocate_const"),
                       {list_doc(data_docs(n.bytes, n.dtype)), dtype_doc(n.dtype), list_doc(list(n.extents))});
  FrameScope frame(printer, &n);
  Doc name = define_var(*n.data, *frame);
  print_body(n.body, *frame);
  return scoped(name, printer.marked(value, n), std::move(frame->stmts), concise);
}

std::vector<StmtDoc> ScriptPrinter::print_attr(const AttrStmt& n) {
  bool concise = is_concise(n);
  Doc head;
  const Var* defines = nullptr;
  if (const ThreadAxis* axis = n.node.as<ThreadAxis>();
      axis && (n.key == "thread_extent" || n.key == "virtual_thread")) {
    Doc thread;
    if (auto known = printer.find(*axis->var)) {
      thread = *known;
    } else if (axis->var->dtype == n.value->dtype && printer.is_around_all_uses(n, *axis->var)) {
      thread = string_doc(axis->tag);
      defines = axis->var.get();
    } else {
      Frame& frame = *printer.lowest_frame_around_uses(*axis->var);
      thread = define_var(*axis->var, frame);
      std::vector<Doc> args = {string_doc(axis->tag)};
      if (axis->var->dtype != i32) args.push_back(dtype_doc(axis->var->dtype));
      frame.stmts.push_back(assign_doc(thread, call_doc(printer.tir("env_thread"), args)));
    }
    head = call_doc(printer.tir("launch_thread"), {thread, print(n.value)});
  } else {
    Doc node = value(n.node);
    head = call_doc(printer.tir("attr"), {node, string_doc(n.key), print(n.value)});
  }
  head = printer.marked(std::move(head), n);
  FrameScope frame(printer, &n);
  std::optional<Doc> target;
  if (defines) target = define_var(*defines, *frame);
  print_body(n.body, *frame);
  return scoped(target, head, std::move(frame->stmts), concise);
}

std::vector<StmtDoc> ScriptPrinter::print_stmt(const Stmt& stmt) {
  using Docs = std::vector<StmtDoc>;
  auto one = [](StmtDoc d) {
    Docs out;
    out.push_back(std::move(d));
    return out;
  };
  auto line = [&](Doc d) { return one(line_doc(printer.marked(std::move(d), *stmt))); };
  return match(
      stmt,
      [&](const Block& n) { return print_block(n, nullptr); },
      [&](const BlockRealize& n) { return print_block(*n.block, &n); },
      [&](const For& n) { return print_for(n); },
      [&](const Seq& n) {
        FrameScope frame(printer, &n);
        print_body(ref(n), *frame);
        return std::move(frame->stmts);
      },
      [&](const BufferStore& n) -> Docs {
        Doc target = access(*n.buffer, n.indices);
        StmtDoc d = assign_doc(target, print(n.value));
        d.head = printer.marked(std::move(d.head), n);
        return one(std::move(d));
      },
      [&](const IfThenElse& n) -> Docs {
        const BufferStore* store = n.else_case ? nullptr : n.then_case.as<BufferStore>();
        if (!store || n.condition->dtype.lanes == 1 ||
            n.condition->dtype.all_lanes() != store->value->dtype.all_lanes())
          return print_if(n);
        return line(predicated(*store->buffer, store->indices, store->value, n.condition));
      },
      [&](const While& n) -> Docs {
        Doc head("while ");
        head += print(n.condition);
        FrameScope frame(printer, &n);
        print_body(n.body, *frame);
        return one(compound_doc(printer.marked(std::move(head), n), std::move(frame->stmts)));
      },
      [&](const LetStmt& n) { return print_let(n); },
      [&](const AttrStmt& n) { return print_attr(n); },
      [&](const AssertStmt& n) -> Docs {
        bool concise = is_concise(n);
        Doc condition = print(n.condition), message = print(n.message);
        FrameScope frame(printer, &n);
        print_body(n.body, *frame);
        if (!concise)
          return scoped({},
                        printer.marked(call_doc(printer.tir("Assert"), {condition, message}), n),
                        std::move(frame->stmts),
                        false);
        Doc head("assert ");
        head += condition;
        head += ", ";
        head += message;
        Docs out = std::move(frame->stmts);
        out.insert(out.begin(), line_doc(std::move(head)));
        return out;
      },
      [&](const Evaluate& n) { return line(print_evaluate(n)); },
      [&](const Allocate& n) { return print_allocate(n); },
      [&](const AllocateConst& n) { return print_allocate_const(n); },
      [&](const DeclBuffer& n) { return print_decl_buffer(n, Defines::none); });
}

Doc ScriptPrinter::function(const std::string& name) {
  return module_name.empty() ? Doc(name) : attribute_doc(Doc(module_name), name);
}

Doc ScriptPrinter::other(const NodeRef& node) {
  if (const ThreadAxis* axis = node.as<ThreadAxis>())
    return call_doc(printer.tir("env_thread"), {string_doc(axis->tag)});
  if (const TargetConfig* target = node.as<TargetConfig>())
    return call_doc(printer.tir("target"), {dict(target->config)});
  if (const CommReducer* r = node.as<CommReducer>()) {
    FrameScope frame(printer, r);
    std::vector<Doc> params, results;
    for (const auto& side : {&r->lhs, &r->rhs})
      for (const VarRef& v : *side) params.push_back(define_var(*v, *frame));
    for (const Expr& e : r->result) results.push_back(print(e));
    Doc lambda = lambda_doc(params, results.size() == 1 ? results[0] : tuple_doc(results));
    return call_doc(printer.tir("comm_reducer"), {lambda, list_doc(list(r->identity))});
  }
  if (const auto* map = node.as<arith::IndexMap>()) return index_map_doc(*this, *map);
  return ExprPrinter::other(node);
}

Doc index_map_doc(script::ExprPrinter& to, const arith::IndexMap& map) {
  FrameScope frame(to.printer, &map);
  const bool plain = std::exchange(to.plain_integers, true);
  std::vector<Doc> inputs;
  for (const VarRef& v : map.initial_indices) inputs.push_back(to.printer.define(*v, v->name, *frame));
  Doc lambda = lambda_doc(inputs, tuple_doc(to.list(map.final_indices)));
  to.plain_integers = plain;
  if (!map.inverse_index_map) return call_doc(to.printer.tir("index_map"), {lambda});
  return call_doc(
      to.printer.tir("index_map"), {lambda}, {{"inverse_index_map", index_map_doc(to, *map.inverse_index_map)}});
}

}  // namespace sator::tir
