// Tensor programs are taken apart: what an outer function computes is called there, the rest stays a program.
//
//   gv = call_tir(f, (a, b, c))      # f begins as the pattern `product`
//   =>
//   lv = call_dps_packed("library.product", (a, b))
//   gv = call_tir(f_rest, (lv, c))
#include "passes/split_call_tir.h"

#include <algorithm>

#include "passes/option.h"
#include "relax/outline.h"
#include "relax/rewrite.h"
#include "tir/analysis.h"
#include "tir/copy.h"
#include "tir/specialize.h"

namespace sator::passes {

using namespace relax;

namespace {

using tir::PrimFunc;
using tir::PrimFuncRef;

std::vector<tir::Stmt> statements_of(const PrimFunc& f) {
  const tir::BlockRealizeRef root = tir::root_of(f);
  if (!root) return {};
  const tir::Seq* seq = root->block->body.as<tir::Seq>();
  return seq ? seq->stmts : std::vector{root->block->body};
}

/// The buffers that the statements read or write, each once, in order of first sight.
std::vector<BufferRef> buffers_of(const std::vector<tir::Stmt>& stmts) {
  std::vector<BufferRef> out;
  for (const tir::Stmt& s : stmts)
    walk(s, [&](const Buffer& b) {
      if (std::ranges::find(out, ref(b)) == out.end()) out.push_back(ref(b));
    });
  return out;
}

bool contains(const std::vector<BufferRef>& buffers, const BufferRef& b) {
  return std::ranges::find(buffers, b) != buffers.end();
}

/// A function over the buffers with these statements, in the form of `like`'s: its root block, private, without attributes.
PrimFuncRef function_of(const std::vector<BufferRef>& params, std::vector<BufferRef> allocs,
                        std::vector<tir::Stmt> stmts, const PrimFunc& like) {
  std::vector<VarRef> handles;
  std::vector<std::pair<VarRef, BufferRef>> map;
  for (const BufferRef& b : params) {
    handles.push_back(make_var(b->name + "_handle", DType::Handle()));
    map.emplace_back(handles.back(), b);
  }
  const tir::BlockRealizeRef root = tir::root_of(like);
  tir::BlockRef block = with(root->block, &tir::Block::alloc_buffers, std::move(allocs));
  block = with(block, &tir::Block::body, tir::seq(std::move(stmts)));
  return make<PrimFunc>(std::move(handles),
                        std::move(map),
                        DType::Void(),
                        Attrs(),
                        tir::Stmt(with(*root, &tir::BlockRealize::block, block)));
}

struct Pattern {
  std::string name;
  PrimFuncRef func;
};

/// The part of a function that a pattern computes.
struct Match {
  size_t statements = 0;
  std::vector<BufferRef> params;  ///< of the function, in the order of the pattern's: its result is the last
  const Pattern* pattern = nullptr;
};

/// The pattern with the extents of the function's buffers in place of its symbolic sizes; null where they do not fit.
PrimFuncRef with_extents(const PrimFunc& pattern, const std::vector<BufferRef>& params) {
  VarMap sizes;
  std::unordered_map<VarRef, BufferRef> given;
  for (size_t i = 0; i < params.size(); ++i) {
    const BufferRef& own = pattern.buffer_map[i].second;
    if (own->dtype != params[i]->dtype || own->shape.size() != params[i]->shape.size() || !params[i]->strides.empty() ||
        params[i]->elem_offset)
      return nullptr;
    for (size_t d = 0; d < own->shape.size(); ++d) {
      const Var* size = own->shape[d].as<Var>();
      if (!size) continue;
      auto [at, is_new] = sizes.emplace(ref(*size), params[i]->shape[d]);
      if (!is_new && !equal(at->second, params[i]->shape[d])) return nullptr;
    }
    for (const Expr& e : own->shape)
      if (!e.as<Var>() && !e.as<IntImm>()) return nullptr;
    given.emplace(pattern.params[i], params[i]);
  }
  for (size_t i = 0; i < params.size(); ++i)
    for (size_t d = 0; d < params[i]->shape.size(); ++d) {
      const Expr& own = pattern.buffer_map[i].second->shape[d];
      if (own.as<IntImm>() && !equal(own, params[i]->shape[d])) return nullptr;
    }
  return tir::specialize(ref(pattern), {}, given);
}

/// Whether the first statements of `f` compute what the pattern does, and which of its buffers stand for the parameters.
std::optional<Match> match_pattern(const PrimFunc& f, const Pattern& pattern) {
  const PrimFunc& p = *pattern.func;
  const std::vector<tir::Stmt> all = statements_of(f), wanted = statements_of(p);
  if (wanted.empty() || all.size() < wanted.size() || p.buffer_map.size() != p.params.size()) return {};
  const std::vector<tir::Stmt> first(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(wanted.size()));
  const std::vector<BufferRef> own = buffers_of(first), of_pattern = buffers_of(wanted);
  if (own.size() != of_pattern.size()) return {};
  auto counterpart = [&](const BufferRef& b) -> BufferRef {
    const auto at = std::ranges::find(of_pattern, b);
    return at == of_pattern.end() ? nullptr : own[static_cast<size_t>(at - of_pattern.begin())];
  };
  Match out{wanted.size(), {}, &pattern};
  for (const auto& [handle, buffer] : p.buffer_map) {
    out.params.push_back(counterpart(buffer));
    if (!out.params.back()) return {};
  }
  std::vector<BufferRef> inside;  // what the pattern keeps for itself
  for (const BufferRef& b : tir::root_of(p)->block->alloc_buffers)
    if (BufferRef c = counterpart(b)) inside.push_back(c);
  const PrimFuncRef specialized = with_extents(p, out.params);
  if (!specialized) return {};
  const PrimFuncRef part = function_of(out.params, inside, first, f);
  const PrimFuncRef asked =
      with(with(specialized, &PrimFunc::attrs, Attrs()), &PrimFunc::ret_dtype, DType(DType::Void()));
  if (!equal(part, asked)) return {};
  // The rest sees the part's result alone.
  const std::vector<BufferRef> later =
      buffers_of(std::vector(all.begin() + static_cast<std::ptrdiff_t>(wanted.size()), all.end()));
  for (const BufferRef& b : inside)
    if (contains(later, b)) return {};
  return out;
}

std::vector<Pattern> patterns_of(const ModuleRef& module, const PassContext& ctx) {
  const std::string name = "SplitCallTIRByPattern.patterns";
  const NodeRef given = option(ctx, name);
  const Array* list = given ? given.as<Array>() : nullptr;
  if (!list || list->items.empty())
    refuse_option(ctx, name, "a list of tensor programs, or of names of those of the module", "as in [\"product\"]");
  std::vector<Pattern> out;
  for (const NodeRef& item : list->items) {
    Pattern p;
    if (const StringImm* word = item.as<StringImm>()) {
      p.name = word->value;
      const auto at = module->functions.find(p.name);
      if (at != module->functions.end()) p.func = cast<PrimFunc>(at->second);
    } else if (const auto* func = item.as<PrimFunc>()) {
      p.func = ref(*func);
      p.name = string_attr(func->attrs, "global_symbol").value_or(text("pattern", out.size()));
    }
    if (!p.func)
      refuse_option(ctx, name, "tensor programs, or names of those of the module", text("check entry ", out.size()));
    out.push_back(std::move(p));
  }
  return out;
}

class ProgramSplitter final : public GraphRewriter {
 public:
  ProgramSplitter(BlockBuilder& builder, const std::vector<Pattern>& patterns, const std::string& library,
                  const PassContext& ctx)
      : GraphRewriter(builder), patterns_(patterns), library_(library), ctx_(ctx) {}

 private:
  RExpr value(const RVarRef& var, const RExpr& value) override {
    if (!is_op(value, "call_tir") || value.as<RCall>()->args.size() != 2) return value;
    const RCall& call = *value.as<RCall>();
    const GlobalVar* callee = call.args[0].as<GlobalVar>();
    const auto& functions = builder().module()->functions;
    const auto at = callee ? functions.find(callee->name) : functions.end();
    const auto* f = at == functions.end() ? nullptr : at->second.as<PrimFunc>();
    const relax::Tuple* args = call.args[1].as<relax::Tuple>();
    if (!f || !args || !tir::root_of(*f) || f->buffer_map.size() != f->params.size() ||
        args->items.size() + 1 != f->params.size() || !call.sinfo_args[0].as<TensorInfo>())
      return value;
    std::optional<Match> best;
    for (const Pattern& p : patterns_) {
      auto found = match_pattern(*f, p);
      if (found && (!best || found->statements > best->statements)) best = std::move(found);
    }
    if (!best) {
      ctx_.say("SplitCallTIRByPattern", text(var->name, ": ", callee->name, " begins as no pattern does"));
      return value;
    }
    return split(*f, callee->name, call, *args, *best);
  }

  RExpr split(const PrimFunc& f, const std::string& name, const RCall& call, const relax::Tuple& args,
              const Match& match) {
    // What the function's buffers are in the graph.
    std::unordered_map<BufferRef, RExpr> given;
    VarMap sizes;
    for (size_t i = 0; i < args.items.size(); ++i) {
      const BufferRef& b = f.buffer_map[i].second;
      given.emplace(b, args.items[i]);
      const TensorInfo* info = args.items[i]->sinfo.as<TensorInfo>();
      const auto shape = info ? shape_of(*info) : std::nullopt;
      for (size_t d = 0; shape && d < b->shape.size() && d < shape->size(); ++d)
        if (const Var* v = b->shape[d].as<Var>()) sizes.emplace(ref(*v), (*shape)[d]);
    }
    const BufferRef result = match.params.back(), out = f.buffer_map.back().second;
    std::vector<RExpr> inputs;
    for (size_t i = 0; i + 1 < match.params.size(); ++i) {
      const auto at = given.find(match.params[i]);
      if (at == given.end()) return ref(call);  // the part reads what the rest is to make
      inputs.push_back(at->second);
    }
    std::vector<Expr> shape;
    for (const Expr& e : result->shape) {
      for (const VarRef& v : vars_in(e))
        if (!sizes.contains(v)) return ref(call);
      shape.push_back(substitute(e, sizes));
    }
    const std::vector<tir::Stmt> all = statements_of(f);
    const bool is_whole = match.statements == all.size();
    if (is_whole != (result == out)) return ref(call);
    const RExpr part = relax::call(op_ref("call_dps_packed"),
                                   {extern_func(text(library_, ".", match.pattern->name)), relax::tuple(inputs)},
                                   {},
                                   {is_whole ? call.sinfo_args[0] : tensor_info(shape, result->dtype)});
    if (is_whole) return part;

    const std::vector<tir::Stmt> later(all.begin() + static_cast<std::ptrdiff_t>(match.statements), all.end());
    const std::vector<BufferRef> used = buffers_of(later);
    std::vector<BufferRef> params{result}, allocs;
    std::vector<RExpr> rest_args{builder().emit(part)};
    for (size_t i = 0; i < args.items.size(); ++i) {
      if (!contains(used, f.buffer_map[i].second)) continue;
      params.push_back(f.buffer_map[i].second);
      rest_args.push_back(args.items[i]);
    }
    params.push_back(out);
    for (const BufferRef& b : tir::root_of(f)->block->alloc_buffers)
      if (b != result && contains(used, b)) allocs.push_back(b);
    PrimFuncRef rest = function_of(params, allocs, later, f);
    Attrs attrs = f.attrs;
    attrs.erase("global_symbol");
    rest = with(rest, &PrimFunc::attrs, std::move(attrs));
    const RExpr callee = builder().add_function(tir::fresh_function(rest), name + "_rest");
    return relax::call(op_ref("call_tir"), {callee, relax::tuple(rest_args)}, {}, call.sinfo_args);
  }

  const std::vector<Pattern>& patterns_;
  const std::string& library_;
  const PassContext& ctx_;
};

}  // namespace

ModuleRef split_call_tir_by_pattern(const ModuleRef& module, const PassContext& ctx) {
  const std::vector<Pattern> patterns = patterns_of(module, ctx);
  const std::string library = text_option(ctx, "SplitCallTIRByPattern.fcodegen").value_or("library");
  return rewrite_functions(module, [&](const FuncRef& f, BlockBuilder& builder) {
    return ProgramSplitter(builder, patterns, library, ctx).function(*f);
  });
}

}  // namespace sator::passes
