#include "tir/parse.h"

#include <algorithm>

#include "ir/script/parser.h"
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
}

Value FunctionParser::unknown_name(const Expression& e) {
  if (e.text == "range") return LanguageName{"T.serial"};
  if (e.text == "len") return LanguageName{"len"};
  if (std::find(context_.modules.begin(), context_.modules.end(), e.text) != context_.modules.end()) return ModuleName{};
  if (context_.functions.count(e.text)) return ModuleName{e.text};
  return Evaluator::unknown_name(e);
}

Value FunctionParser::call_language(const std::string& name, const Expression& call) {
  if (name == "len") {
    Value list = Arguments(*this, call, {"list"}).need("list");
    if (!list.as<Values>()) fail(call.place, {.what = text("len of ", list.kind()), .needs = "a list or a tuple", .hint = "write the number"});
    return Integer{static_cast<int64_t>(list.as<Values>()->items.size()), false};
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
    fail(call.place, {.what = text("the module has no function ", m->function), .needs = "a function of the module", .hint = "check the name"});
  Arguments a(*this, call, {"*args"});
  return Expr(sator::call(at->second, "global:" + m->function, a.rest_exprs()));
}

// ---- Buffers ----

BufferRef FunctionParser::make_buffer_value(const Arguments& a) {
  std::vector<Expr> shape;
  if (const Values* list = a.need("shape").as<Values>()) {
    for (const Value& v : list->items) {
      const std::string* s = v.as<std::string>();
      shape.push_back(s ? eval_expr(script::parse_expression(source, a.place_of("shape"), *s)) : to_expr(v, a.place_of("shape")));
    }
  } else {
    shape.push_back(a.expr("shape"));
  }
  for (const Expr& e : shape) {
    if (!e->dtype.is_integer() || e->dtype.lanes != 1)
      a.fail({.what = text("an extent of dtype ", e->dtype), .needs = "integers", .hint = "check the shape"});
  }
  DType dtype = a.dtype("dtype", f32), index_dtype = shape.empty() ? i32 : shape[0]->dtype;
  VarRef data;
  if (const Value* v = a.find("data")) {
    const Expr* e = v->as<Expr>();
    const Var* pointer = e ? e->as<Var>() : nullptr;
    if (!pointer || !pointer->dtype.is_handle())
      a.fail({.what = text(v->kind(), " as the data of a buffer"), .needs = "a pointer variable", .hint = "use A.data or T.allocate"});
    data = ref(*pointer);
  } else {
    data = make_pointer("", dtype, a.str("scope", "global"));
  }
  std::vector<Expr> strides;
  if (const Value* v = a.find("strides")) {
    Values single;
    if (!v->as<Values>()) single.items.push_back(*v);
    for (const Value& item : v->as<Values>() ? v->as<Values>()->items : single.items) {
      const std::string* s = item.as<std::string>();
      strides.push_back(s ? Expr(make_var(*s, index_dtype)) : to_expr(item, a.place_of("strides")));
    }
    if (!strides.empty() && strides.size() != shape.size())
      a.fail({.what = text(strides.size(), " strides for ", shape.size(), " dimensions"), .needs = "one stride per dimension", .hint = "count them"});
  }
  int64_t factor = a.integer("offset_factor", 0), align = a.integer("align", 0);
  if (factor < 0 || factor > INT32_MAX || align > INT32_MAX || a.str("buffer_type", "") == "auto")
    a.fail({.what = "a buffer with an offset factor, alignment or type that is not understood",
            .needs = "a positive offset factor and alignment, no buffer_type=\"auto\"", .hint = "leave the argument out"});
  Expr offset = a.expr_or("elem_offset", nullptr);
  if (!offset && factor) offset = make_var("", index_dtype);
  if (offset && is_zero(offset)) offset = nullptr;
  std::vector<int> separators;
  if (const Value* v = a.find("axis_separators")) {
    for (const Expr& e : to_exprs(*v, a.place_of("axis_separators"))) separators.push_back(static_cast<int>(as_int(e).value_or(-1)));
  }
  return make<Buffer>(data, dtype, std::move(shape), std::move(strides), std::move(offset), std::string(),
                      align > 0 ? static_cast<int>(align) : 64, factor > 0 ? static_cast<int>(factor) : 1,
                      std::move(separators));
}

void FunctionParser::alloc_buffer(BufferRef buffer, const Expression& call) {
  FrameKind here = frames_.back().kind;
  if (here == FrameKind::block) {
    blocks_.back().alloc_buffers.push_back(buffer);
  } else if (here == FrameKind::function) {
    root_allocs_.push_back(buffer);
  } else {
    fail(call.place, {.what = "T.alloc_buffer inside a loop or a branch", .needs = "the statements of a block or of the function itself",
                      .hint = "move it out of the loop"});
  }
  visible_.insert_or_assign(buffer->data, buffer);
}

Value FunctionParser::match_buffer(const Expression& call) {
  Arguments a(*this, call, {"param", "shape", "dtype", "data", "strides", "elem_offset", "scope", "align", "offset_factor",
                            "buffer_type", "axis_separators"});
  const Value& param = a.need("param");
  const Subscript* part = param.as<Subscript>();
  if (!part) {
    const Expr* e = param.as<Expr>();
    const Var* v = e ? e->as<Var>() : nullptr;
    bool is_param = v && std::find(params_.begin(), params_.end(), ref(*v)) != params_.end();
    bool is_matched = std::any_of(buffer_map_.begin(), buffer_map_.end(), [&](const auto& m) { return m.first.get() == v; });
    if (!is_param || is_matched || !v->dtype.is_handle())
      a.fail({.what = text("T.match_buffer of ", v && is_matched ? "a parameter that has a buffer" : param.kind()),
              .needs = "a T.handle parameter, once, or part of a buffer", .hint = "check the first argument"});
    BufferRef buffer = make_buffer_value(a);
    buffer_map_.emplace_back(ref(*v), buffer);
    visible_.insert_or_assign(buffer->data, buffer);
    return buffer;
  }
  auto& block = block_here(call, "T.match_buffer of a part of a buffer");
  BufferRegionRef region = to_region(*part, call.place);
  BufferRef buffer;
  if (a.find("shape")) {
    buffer = make_buffer_value(a);
  } else {
    std::vector<Expr> shape;
    for (const RangeRef& r : region->region) shape.push_back(r->extent);
    buffer = make_buffer("", std::move(shape), region->buffer->dtype, a.str("scope", region->buffer->scope()));
  }
  // The shape is that of the region, which may have leading dimensions of extent 1 more.
  size_t rank = buffer->shape.size(), all = region->region.size();
  for (size_t i = 0; i < all && rank <= all; ++i) {
    auto have = as_int(region->region[i]->extent);
    auto want = i < all - rank ? std::optional<int64_t>(1) : as_int(buffer->shape[i - (all - rank)]);
    if (have && want && have != want)
      a.fail({.what = text("a buffer of extent ", *want, " for a region of extent ", *have), .needs = "the shape of the region", .hint = "correct the shape"});
  }
  if (rank > all)
    a.fail({.what = text("a buffer of rank ", rank, " for a region of rank ", all), .needs = "at most the rank of the region", .hint = "correct the shape"});
  block.match_buffers.push_back(make<MatchBuffer>(buffer, region));
  visible_.insert_or_assign(buffer->data, buffer);
  return buffer;
}

VarRef FunctionParser::declare_thread(std::string tag, DType dtype) {
  VarRef v = make_var("", dtype);
  threads_.emplace(v.get(), make<ThreadAxis>(v, std::move(tag)));
  return v;
}

Ref<const ThreadAxis> FunctionParser::thread_axis(const Value& thread, DType dtype, Place place) {
  if (const std::string* tag = thread.as<std::string>()) return threads_.at(declare_thread(*tag, dtype).get());
  const Expr* e = thread.as<Expr>();
  auto at = e && e->as<Var>() ? threads_.find(e->as<Var>()) : threads_.end();
  if (at == threads_.end())
    fail(place, {.what = text("a launch over ", thread.kind()), .needs = "a name like \"threadIdx.x\" or a variable made by T.env_thread",
                 .hint = "tx = T.env_thread(\"threadIdx.x\")"});
  return at->second;
}

void FunctionParser::add_attrs(Attrs attrs, const Expression& call) {
  if (frames_.back().kind != FrameKind::function)
    fail(call.place, {.what = "T.func_attr inside a scope", .needs = "the statements of the function itself", .hint = "move it to the top"});
  for (auto& [key, value] : attrs) {
    if (is_private_ && key == "global_symbol")
      fail(call.place, {.what = "a private function with the attribute global_symbol", .needs = "one or the other", .hint = "remove private=True"});
    if (!attrs_.emplace(key, value).second)
      fail(call.place, {.what = text("the function attribute ", quoted(key), " is set twice"), .needs = "each attribute once", .hint = "remove one"});
  }
}

// ---- Functions ----

void FunctionParser::params(const Statement& def) {
  for (const script::Parameter& p : def.params) {
    if (!p.annotation.present() || p.is_star)
      fail(p.place, {.what = text("the parameter ", p.name, " has no type"), .needs = "a type: T.handle, T.int32, T.Buffer(...)", .hint = "annotate it"});
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
    if (e && e->as<Var>() && !is_bound(*e->as<Var>())) var = ref(*e->as<Var>());
    else var = make_var("", to_dtype(type, p.annotation.place));
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
    BlockRef root = make<Block>(std::vector<IterVarRef>{}, root_allocs_, std::vector<MatchBufferRef>{}, Regions{}, Regions{},
                                block_name("root"), Attrs{}, Stmt(), std::move(body));
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

namespace {

/// The value of a keyword of a decorator, as Python truth.
bool decorator_flag(const Statement& def, std::string_view name, bool otherwise) {
  for (const Expression& d : def.decorators) {
    for (const script::Keyword& k : d.keywords) {
      if (k.name == name) return k.value.integer != 0;
    }
  }
  return otherwise;
}

}  // namespace

PrimFuncRef FunctionParser::parse(const Statement& def) {
  is_private_ = decorator_flag(def, "private", false);
  push_scope();
  params(def);
  DType ret = DType::Void();
  if (def.annotation.present() && !def.annotation.is(Kind::none)) ret = to_dtype(eval(def.annotation), def.annotation.place);
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
  if (!context.verify || !decorator_flag(def, "check_well_formed", true)) return func;
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

std::string decorator_name(const Expression& decorator, const ParseContext& context) {
  const Expression& e = decorator.is(Kind::call) ? decorator.items[0] : decorator;
  std::string name = script::dotted_name(e);
  size_t dot = name.rfind('.');
  if (dot == name.npos) {
    auto at = context.languages.find(name);
    return at == context.languages.end() ? std::string() : at->second;
  }
  std::string prefix = name.substr(0, dot), last = name.substr(dot + 1);
  if (last == "ir_module") return "I.ir_module";
  static const std::map<std::string, std::string> kUsual = {{"T", "T"}, {"tir", "T"}, {"tirx", "T"}, {"R", "R"}, {"relax", "R"}, {"I", "I"},
                                                            {"tvm.script.tir", "T"}, {"tvm.script.relax", "R"}};
  if (auto at = context.languages.find(prefix); at != context.languages.end()) return at->second + "." + last;
  if (auto at = kUsual.find(prefix); at != kUsual.end()) return at->second + "." + last;
  return {};
}

bool is_prim_func(const Statement& def, const ParseContext& context) {
  return std::any_of(def.decorators.begin(), def.decorators.end(),
                     [&](const Expression& d) { return decorator_name(d, context) == "T.prim_func"; });
}

void read_import(const Statement& import, ParseContext& context) {
  for (const script::Parameter& p : import.params) {
    std::string_view meaning = p.annotation.text;
    std::string_view last = meaning.substr(meaning.rfind('.') == meaning.npos ? 0 : meaning.rfind('.') + 1);
    if (last == "tir" || last == "tirx") context.languages[p.name] = "T";
    else if (last == "relax") context.languages[p.name] = "R";
    else if (last == "ir") context.languages[p.name] = "I";
    else if (last == "ir_module") context.languages[p.name] = "I.ir_module";
    else if (last == "prim_func") context.languages[p.name] = "T.prim_func";
    else if (last == "function" && meaning.find("relax") != meaning.npos) context.languages[p.name] = "R.function";
  }
}

void declare_functions(const std::vector<Statement>& body, ParseContext& context) {
  for (const Statement& s : body) {
    if (s.kind != StatementKind::function) continue;
    DType ret = DType::Void();
    std::string name = s.annotation.is(Kind::string) ? s.annotation.text : script::dotted_name(s.annotation);
    size_t dot = name.rfind('.');
    if (is_prim_func(s, context)) ret = DType::parse(name.substr(dot == name.npos ? 0 : dot + 1)).value_or(DType::Void());
    context.functions[s.text] = ret;
  }
}

namespace {

/// The module of a class, or of functions alone.
class ModuleParser {
 public:
  explicit ModuleParser(const script::Program& program) : program_(program) {}

  ModuleRef parse() {
    for (const Statement& s : program_.body) {
      if (s.kind == StatementKind::import) read_import(s, context_);
    }
    const Statement* module = nullptr;
    for (const Statement& s : program_.body) {
      if (s.kind != StatementKind::class_) continue;
      bool is_module = std::any_of(s.decorators.begin(), s.decorators.end(),
                                   [&](const Expression& d) { return decorator_name(d, context_) == "I.ir_module"; });
      if (!is_module || module)
        source().fail(s.place, {.what = text("the class ", s.text, module ? " is a second module" : " is no module"),
                                .needs = "one class with @I.ir_module", .hint = "remove or decorate the class"});
      module = &s;
    }
    if (module) context_.modules = {module->text, "cls"};
    const std::vector<Statement>& body = module ? module->body : program_.body;
    declare_functions(body, context_);
    for (const Statement& s : body) member(s);
    if (functions_.empty() && !module)
      source().fail({}, {.what = "the text holds no function", .needs = "a class with @I.ir_module, or a function with @T.prim_func",
                         .hint = "add one"});
    return make<Module>(std::move(functions_), std::move(attrs_), std::move(infos_));
  }

 private:
  const script::Source& source() const { return *program_.source; }

  void member(const Statement& s) {
    switch (s.kind) {
      case StatementKind::import:
      case StatementKind::pass: return;
      case StatementKind::expression: return declaration(s);
      case StatementKind::function: break;
      default:
        source().fail(s.place, {.what = "this statement is not part of a module", .needs = "functions, I.module_attrs", .hint = "remove it"});
    }
    if (!is_prim_func(s, context_))
      source().fail(s.place, {.what = text("the function ", s.text, " is no tensor program"), .needs = "@T.prim_func", .hint = "decorate it"});
    if (!functions_.emplace(s.text, parse_function(source(), s, context_)).second)
      source().fail(s.place, {.what = text("the module has two functions ", s.text), .needs = "names that differ", .hint = "rename one"});
  }

  void declaration(const Statement& s) {
    if (s.value.is(Kind::string)) return;  // a docstring
    std::string name = s.value.is(Kind::call) ? script::dotted_name(s.value.items[0]) : "";
    bool is_attrs = name.ends_with(".module_attrs");
    if (!is_attrs && !name.ends_with(".module_global_infos"))
      source().fail(s.place, {.what = "this statement is not part of a module", .needs = "functions, I.module_attrs", .hint = "remove it"});
    FunctionParser ev(source(), context_);
    ev.push_scope();
    Arguments a(ev, s.value, {"attrs"});
    (is_attrs ? attrs_ : infos_) = ev.to_attrs(a.need("attrs"), s.place);
  }

  const script::Program& program_;
  ParseContext context_;
  std::map<std::string, Func> functions_;
  Attrs attrs_, infos_;
};

}  // namespace

ModuleRef parse_module(std::string text, std::string name) {
  script::Program program = script::parse(std::move(text), std::move(name));
  return ModuleParser(program).parse();
}

PrimFuncRef parse_function(std::string text, std::string name) {
  script::Program program = script::parse(std::move(text), std::move(name));
  ParseContext context;
  const Statement* def = nullptr;
  for (const Statement& s : program.body) {
    if (s.kind == StatementKind::import) read_import(s, context);
    if (s.kind == StatementKind::function && !def) def = &s;
    else if (s.kind != StatementKind::import && s.kind != StatementKind::pass)
      program.source->fail(s.place, {.what = "more than one function", .needs = "one function with @T.prim_func", .hint = "use a module"});
  }
  if (!def || !is_prim_func(*def, context))
    program.source->fail(def ? def->place : Place{}, {.what = "no tensor program", .needs = "a function with @T.prim_func", .hint = "decorate the function"});
  return parse_function(*program.source, *def, context);
}

Expr parse_expr(std::string text, const std::map<std::string, NodeRef>& names) {
  script::Source source(std::move(text));
  ParseContext context;
  FunctionParser ev(source, context);
  ev.push_scope();
  for (const auto& [name, node] : names) {
    if (const Buffer* b = node.as<Buffer>()) ev.define(name, ref(*b), {});
    else if (const ExprNode* e = node.as<ExprNode>()) ev.define(name, ref(*e), {});
  }
  return ev.eval_expr(script::parse_expression(source, {0, static_cast<uint32_t>(source.text().size())}, std::string(source.text())));
}

}  // namespace sator::tir
