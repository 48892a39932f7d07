#include "tir/parse.h"

#include <algorithm>

#include "tir/parse_impl.h"
#include "tir/verify.h"

namespace sator::tir {

using script::Expression;
using script::Place;
using script::Statement;
using script::StatementKind;
using Kind = script::ExpressionKind;

FunctionParser::FunctionParser(const script::Source& source, const ParseContext& context)
    : Evaluator(source), context_(context) {
  for (const auto& [name, meaning] : context.languages) languages[name] = meaning;
  around = context.options.around;
  constants = &context.constants;
}

Value FunctionParser::unknown_name(const Expression& e) {
  if (e.text == "range") return LanguageName{"T.serial"};
  if (e.text == "len") return LanguageName{"len"};
  if (std::find(context_.modules.begin(), context_.modules.end(), e.text) != context_.modules.end())
    return ModuleName{};
  if (context_.functions.count(e.text)) return ModuleName{e.text};
  if (context_.macros.count(e.text)) return LanguageName{kMacro + e.text};
  if (VarRef size = size_of_signature(e.text)) return Expr(size);
  return Evaluator::unknown_name(e);
}

Value FunctionParser::call_language(const std::string& name, const Expression& call) {
  if (name.starts_with(kMacro)) {
    in_macro(
        *context_.macros.at(name.substr(kMacro.size())), call, [&](const Statement& def) { statements(def.body); });
    return {};
  }
  if (name.starts_with("T.")) {
    if (ScopeFunction fn = find_scope_function(std::string_view(name).substr(2))) return fn(*this, call);
  }
  return Evaluator::call_language(name, call);
}

Value FunctionParser::call_other(const Value& callee, const Expression& call) {
  const ModuleName* m = callee.as<ModuleName>();
  if (!m || m->function.empty()) return Evaluator::call_other(callee, call);
  auto at = context_.functions.find(m->function);
  if (at == context_.functions.end())
    fail(call.place,
         {.what = text("the module has no function ", m->function),
          .needs = "a function of the module",
          .hint = "check the name"});
  Arguments a(*this, call, {"*args"});
  return Expr(sator::call(at->second, "global:" + m->function, a.rest_exprs()));
}

std::vector<std::string> language_names() {
  std::vector<std::string> out = script_function_names();
  for (std::string& name : scope_function_names()) out.push_back(std::move(name));
  return out;
}

// ---- Functions ----

/// The dtype of `n` where the body says `n = T.int32()`; nothing where it does not.
static std::optional<DType> declared_dtype(const Statement& def, const std::string& name) {
  for (const Statement& s : def.body) {
    if (s.kind != StatementKind::assign || s.targets.size() != 1 || !s.targets[0].is(Kind::name)) continue;
    if (s.targets[0].text != name || !s.value.is(Kind::call) || s.value.items.size() != 1) continue;
    const std::string callee = script::dotted_name(s.value.items[0]);
    return DType::parse(callee.substr(callee.rfind('.') + 1));
  }
  return {};
}

/// A size that the parameters name before anything declares it: `T.Buffer((8, "n"), ...)`, or a size declared around the module.
VarRef FunctionParser::size_of_signature(const std::string& name) {
  if (!signature_) return nullptr;
  std::optional<DType> dtype = declared_dtype(*signature_, name);
  if (!dtype && context_.sizes.contains(name)) dtype = i64;
  if (!dtype) return nullptr;
  VarRef size = make_var(name, *dtype);
  bound_.insert(size.get());
  sizes_.emplace(name, size);
  define(name, Expr(size), {});
  return size;
}

void FunctionParser::params(const Statement& def) {
  for (const script::Parameter& p : def.params) {
    if (!p.annotation.present() || p.is_star)
      fail(p.place,
           {.what = text("the parameter ", p.name, " has no type"),
            .needs = "a type: T.handle, T.int32, T.Buffer(...)",
            .hint = "annotate it"});
    Value type = eval(p.annotation);
    if (const BufferRef* b = type.as<BufferRef>()) {
      name_value(*b, p.name);
      VarRef handle = make_var(p.name + "_handle", DType::Handle());
      params_.push_back(handle);
      buffer_map_.emplace_back(handle, *b);
      visible_.insert_or_assign((*b)->data, *b);
      define(p.name, *b, p.place);
      continue;
    }
    const Expr* e = type.as<Expr>();
    VarRef var;
    if (e && e->as<Var>() && !is_bound(*e->as<Var>()))
      var = ref(*e->as<Var>());
    else
      var = make_var("", to_dtype(type, p.annotation.place));
    name_value(Expr(var), p.name);
    params_.push_back(var);
    define(p.name, Expr(var), p.place);
  }
}

Stmt FunctionParser::with_root(Stmt body) {
  const BlockRealize* realize = body.as<BlockRealize>();
  bool has_block = false;
  walk(body, [&](const BlockRealize&) {
    has_block = true;
    return false;
  });
  if (!root_allocs_.empty() || (realize ? !realize->block->iter_vars.empty() : has_block)) {
    using Regions = std::vector<BufferRegionRef>;
    BlockRef root = make<Block>(std::vector<IterVarRef>{},
                                root_allocs_,
                                std::vector<MatchBufferRef>{},
                                Regions{},
                                Regions{},
                                block_name("root"),
                                Attrs{},
                                Stmt(),
                                std::move(body));
    return make<BlockRealize>(std::vector<Expr>{}, bool_imm(true), root);
  }
  if (!realize) return body;
  // A root that is written out has no regions unless they are written out too.
  BlockRef root = realize->block;
  auto at = detected_.find(root.get());
  int mask = at == detected_.end() ? 0 : at->second;
  if (mask & 1) root = sator::with(root, &Block::reads, std::vector<BufferRegionRef>{});
  if (mask & 2) root = sator::with(root, &Block::writes, std::vector<BufferRegionRef>{});
  return mask ? sator::with(*realize, &BlockRealize::block, root) : ref(*realize);
}

PrimFuncRef FunctionParser::parse(const Statement& def) {
  is_private_ = decorator_flag(def, "private", false);
  push_scope();
  signature_ = &def;
  params(def);
  if (context_.sizes.empty()) signature_ = nullptr;
  DType ret = DType::Void();
  if (def.annotation.present() && !def.annotation.is(Kind::none))
    ret = to_dtype(eval(def.annotation), def.annotation.place);
  Stmt body_stmt = with_root(body(def.body, FrameKind::function));
  pop_scope();
  if (!is_private_) attrs_.emplace("global_symbol", string_imm(def.text));
  // The map follows the parameters, however the buffers were matched.
  std::stable_sort(buffer_map_.begin(), buffer_map_.end(), [&](const auto& a, const auto& b) {
    auto place = [&](const VarRef& v) { return std::find(params_.begin(), params_.end(), v) - params_.begin(); };
    return place(a.first) < place(b.first);
  });
  PrimFuncRef func = make<PrimFunc>(params_, buffer_map_, ret, attrs_, std::move(body_stmt));
  return spanned(std::move(func), source.span(def.place));
}

PrimFuncRef parse_function(const script::Source& source, const Statement& def, const ParseContext& context) {
  PrimFuncRef func = FunctionParser(source, context).parse(def);
  if (!context.options.verify || !decorator_flag(def, "check_well_formed", true)) return func;
  std::vector<Reason> reasons = verify(*func);
  if (reasons.empty()) return func;
  // The place is that of the first node to blame which stands in the text.
  Span at = source.span(def.place);
  for (const At& a : reasons.front().at) {
    const auto* node = dynamic_cast<const NodeBase*>(a.node.get());
    if (node && node->span.line > 0) at = node->span;
  }
  Reason reason = std::move(reasons.front());
  std::string position = text("line ", at.line, ", column ", at.column);
  reason.where = source.name().empty() ? position : text("in ", source.name(), " ", position);
  if (reasons.size() > 1) reason.what += text(" (the first of ", reasons.size(), " mistakes)");
  throw script::SourceError(std::move(reason), at);
}

}  // namespace sator::tir
