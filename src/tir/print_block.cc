#include "tir/print_impl.h"

namespace sator::tir {

using namespace script;

namespace {

std::string_view axis_name(IterKind kind) {
  switch (kind) {
    case IterKind::spatial: return "axis.spatial";
    case IterKind::reduce: return "axis.reduce";
    case IterKind::scan: return "axis.scan";
    default: return "axis.opaque";
  }
}

/// The loops that are printed around the current place, by variable.
std::map<const Var*, const For*> open_loops(const Printer& printer) {
  std::map<const Var*, const For*> loops;
  for (const auto& frame : printer.frames()) {
    if (!frame->node) continue;
    for (const For* loop = frame->node->as<For>(); loop; loop = loop->body.as<For>())
      loops.emplace(loop->var.get(), loop);
  }
  return loops;
}

}  // namespace

void ScriptPrinter::print_iter_vars(const Block& block, const BlockRealize* realize, Frame& frame) {
  auto loops = open_loops(printer);
  // Bound to a loop over the same domain: such a run of iterators is one T.axis.remap.
  auto is_remap = [&](size_t i) {
    const IterVar& iter = *block.iter_vars[i];
    if (!realize || !printer.options().syntax_sugar) return false;
    if (iter.kind != IterKind::spatial && iter.kind != IterKind::reduce) return false;
    const Var* var = realize->values[i].as<Var>();
    auto loop = var ? loops.find(var) : loops.end();
    return loop != loops.end() && iter.var->dtype == var->dtype && equal(loop->second->min, iter.dom->min) &&
           equal(loop->second->extent, iter.dom->extent);
  };
  size_t n = block.iter_vars.size();
  for (size_t i = 0; i < n;) {
    size_t end = i;
    while (end < n && is_remap(end)) ++end;
    if (end - i >= 2) {
      std::vector<Doc> names, bindings;
      std::string letters;
      for (; i < end; ++i) {
        names.push_back(define_var(*block.iter_vars[i]->var, frame));
        bindings.push_back(print(realize->values[i]));
        letters += block.iter_vars[i]->kind == IterKind::spatial ? 'S' : 'R';
      }
      Doc remap = call_doc(printer.tir("axis.remap"), {string_doc(letters), list_doc(bindings)});
      frame.stmts.push_back(assign_doc(bare_tuple_doc(names), remap));
      continue;
    }
    const IterVar& iter = *block.iter_vars[i];
    std::vector<Doc> args;
    if (is_zero(iter.dom->min))
      args.push_back(print(iter.dom->extent));
    else
      args.push_back(tuple_doc({print(iter.dom->min), print(iter.dom->min + iter.dom->extent)}));
    if (realize) args.push_back(print(realize->values[i]));
    Doc value = call_doc(printer.tir(axis_name(iter.kind)), args);
    frame.stmts.push_back(assign_doc(define_var(*iter.var, frame), printer.marked(value, iter)));
    ++i;
  }
}

std::vector<StmtDoc> ScriptPrinter::print_block(const Block& block, const BlockRealize* realize) {
  FrameScope frame(printer, &block);
  auto line = [&](std::string_view name, const std::vector<Doc>& args) {
    frame->stmts.push_back(line_doc(call_doc(printer.tir(name), args)));
  };
  print_iter_vars(block, realize, *frame);
  if (realize && !is_one(realize->predicate)) line("where", {print(realize->predicate)});
  auto regions = [&](const std::vector<BufferRegionRef>& list) {
    std::vector<Doc> docs;
    for (const BufferRegionRef& r : list) docs.push_back(printer.marked(print_region(*r), *r));
    return docs;
  };
  line("reads", regions(block.reads));
  line("writes", regions(block.writes));
  if (!block.annotations.empty()) line("block_attr", {dict(block.annotations)});
  for (const BufferRef& b : block.alloc_buffers) {
    Doc name = define_buffer(*b, *frame);
    Doc value =
        buffer_decl(*b, printer.is_head() ? "sblock_alloc_buffer" : "alloc_buffer", {}, *frame, Defines::pointer);
    frame->stmts.push_back(assign_doc(name, value));
  }
  for (const MatchBufferRef& m : block.match_buffers) {
    Doc name = define_buffer(*m->buffer, *frame);
    Doc value = buffer_decl(*m->buffer, "match_buffer", {print_region(*m->source)}, *frame, Defines::all);
    frame->stmts.push_back(assign_doc(name, printer.marked(value, *m)));
  }
  if (block.init) {
    std::vector<StmtDoc> body;
    {
      FrameScope init(printer, block.init.get());
      print_body(block.init, *init);
      body = std::move(init->stmts);
    }
    Doc head("with ");
    head += call_doc(printer.tir("init"), {});
    frame->stmts.push_back(compound_doc(std::move(head), std::move(body)));
  }
  print_body(block.body, *frame);
  std::vector<KeywordDoc> keywords;
  if (!realize) keywords.push_back({"no_realize", boolean_doc(true)});
  Doc head("with ");
  Doc call = call_doc(printer.tir("block"), {string_doc(block.name->text)}, keywords);
  call = printer.marked(printer.marked(std::move(call), block), *block.name);
  if (realize) call = printer.marked(std::move(call), *realize);
  head += call;
  std::vector<StmtDoc> out;
  out.push_back(compound_doc(std::move(head), std::move(frame->stmts)));
  return out;
}

std::vector<StmtDoc> ScriptPrinter::print_for(const For& loop) {
  // The loops that one T.grid can stand for.
  std::vector<const For*> grid;
  for (const For* l = &loop; l && printer.options().syntax_sugar; l = l->body.as<For>()) {
    bool depends = false;
    for (const For* outer : grid) depends |= uses_var(l->extent, *outer->var);
    bool plain =
        l->kind == LoopKind::serial && is_zero(l->min) && l->annotations.empty() && l->var->dtype == l->extent->dtype;
    if (!plain || depends) break;
    grid.push_back(l);
  }
  FrameScope frame(printer, &loop);
  Doc head("for ");
  std::vector<StmtDoc> out;
  if (grid.size() > 1) {
    std::vector<Doc> names, extents;
    for (const For* l : grid) {
      names.push_back(printer.marked(define_var(*l->var, *frame), *l));
      extents.push_back(print(l->extent));
    }
    head += bare_tuple_doc(names);
    head += " in ";
    head += call_doc(printer.tir("grid"), extents);
    print_body(grid.back()->body, *frame);
    out.push_back(compound_doc(std::move(head), std::move(frame->stmts)));
    return out;
  }
  head += define_var(*loop.var, *frame);
  head += " in ";
  std::vector<Doc> args;
  std::vector<KeywordDoc> keywords;
  if (is_zero(loop.min)) {
    args.push_back(print(loop.extent));
  } else {
    args.push_back(print(loop.min));
    args.push_back(print(loop.min + loop.extent));
  }
  Doc how;
  switch (loop.kind) {
    case LoopKind::serial: how = loop.annotations.empty() ? Doc("range") : printer.tir("serial"); break;
    case LoopKind::parallel: how = printer.tir("parallel"); break;
    case LoopKind::vectorized: how = printer.tir("vectorized"); break;
    case LoopKind::unrolled: how = printer.tir("unroll"); break;
    case LoopKind::thread_binding:
      how = printer.tir("thread_binding");
      keywords.push_back({"thread", string_doc(loop.thread)});
  }
  if (!loop.annotations.empty()) keywords.push_back({"annotations", dict(loop.annotations)});
  head += call_doc(std::move(how), args, keywords);
  print_body(loop.body, *frame);
  out.push_back(compound_doc(printer.marked(std::move(head), loop), std::move(frame->stmts)));
  return out;
}

}  // namespace sator::tir
