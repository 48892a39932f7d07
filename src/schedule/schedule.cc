#include "schedule/schedule.h"

#include "schedule/concurrent.h"
#include "schedule/convert.h"
#include "tir/print.h"

namespace sator::schedule {

using namespace tir;

Schedule::Schedule(ModuleRef module) : module_(std::move(module)) {
  std::string only;
  int prim_funcs = 0;
  for (const auto& [name, func] : module_->functions) {
    if (!func.as<PrimFunc>()) continue;
    ++prim_funcs;
    only = name;
    if (name == "main") func_name_ = name;
  }
  if (func_name_.empty() && prim_funcs == 1) func_name_ = only;
  worked_on_ = func_name_;
}

Schedule::Schedule(PrimFuncRef func, const std::string& name)
    : module_(make<Module>(std::map<std::string, Func>{{name, func}}, Attrs{}, Attrs{})),
      func_name_(name),
      worked_on_(name) {}

void Schedule::work_on(const std::string& name) {
  need_function(name);
  func_name_ = worked_on_ = name;
}

void Schedule::turn_to(const std::string& name) {
  if (!name.empty()) need_function(name);
  func_name_ = name;
}

void Schedule::need_function(const std::string& name) const {
  auto at = module_->functions.find(name);
  if (at == module_->functions.end() || !at->second.as<PrimFunc>()) {
    std::vector<std::string> names;
    for (const auto& [n, f] : module_->functions) {
      if (f.as<PrimFunc>()) names.push_back(n);
    }
    sator::fail({.what = text("the module has no tensor function ", string_literal(name)),
                 .needs = "a PrimFunc of the module",
                 .hint = text("it has: ", join(names, ", "))});
  }
}

void Schedule::turn_to_function_of(const List& handles) {
  if (module_->functions.size() < 2) return;
  NodeRef handle;
  for (const Value& v : handles) {
    if (const List* list = v.get_if<List>(); list && !list->empty()) turn_to_function_of(*list);
    if (const Loop* loop = v.get_if<Loop>()) handle = *loop;
    if (const BlockHandle* block = v.get_if<BlockHandle>()) handle = *block;
    if (handle) break;
  }
  if (!handle || (!func_name_.empty() && sites().handles().contains(handle.get()))) return;
  for (const auto& [name, func] : module_->functions) {
    const PrimFunc* program = func.as<PrimFunc>();
    if (program && Sites(program->body).handles().contains(handle.get())) {
      func_name_ = name;
      return;
    }
  }
}

PrimFuncRef Schedule::func() const {
  if (func_name_.empty())
    sator::fail({.what = "the module has several tensor functions and none is called main",
                 .needs = "a function to work on",
                 .hint = "call work_on(name) first"});
  return cast<PrimFunc>(module_->functions.at(func_name_));
}

const Sites& Schedule::sites() const {
  PrimFuncRef f = func();
  if (sites_of_ != f) {
    sites_ = std::make_shared<const Sites>(f->body);
    sites_of_ = f;
  }
  return *sites_;
}

int Schedule::site(const Loop& loop) const {
  int at = sites().find(loop);
  if (at >= 0) return at;
  auto step = consumed_by_.find(loop.get());
  fail({.what = text("loop ", loop->name, " is no longer in the program"),
        .needs = "a loop of the current program",
        .hint = step == consumed_by_.end()
                    ? std::string("take the loop from get_loops of this schedule")
                    : text("`", describe(*step->second), "` consumed it; use the loops that step returned")});
}

int Schedule::site(const BlockHandle& block) const {
  int at = sites().find(block);
  if (at >= 0) return at;
  auto step = consumed_by_.find(block.get());
  fail({.what = text("block ", string_literal(block->text), " is no longer in the program"),
        .needs = "a block of the current program",
        .hint = step == consumed_by_.end()
                    ? std::string("take the block from get_block of this schedule")
                    : text("`", describe(*step->second), "` consumed it; use the blocks that step returned")});
}

const For& Schedule::get(const Loop& loop) const { return *sites()[site(loop)].loop(); }
const BlockRealize& Schedule::realize(const BlockHandle& block) const { return *sites()[site(block)].realize(); }
const Block& Schedule::get(const BlockHandle& block) const { return *realize(block).block; }

BlockHandle Schedule::block_named(const std::string& name) const {
  const Sites& sites = this->sites();
  std::vector<BlockHandle> found;
  std::vector<std::string> names;
  for (int i = 0; i < sites.count(); ++i) {
    if (const BlockRealize* r = sites[i].realize()) {
      if (r->block->name->text == name) found.push_back(r->block->name);
      names.push_back(r->block->name->text);
    }
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    std::vector<std::string> near = nearest_names(name, names);
    fail({.what = text("no block is named ", string_literal(name)),
          .needs = "the name of one block of the function",
          .hint = near.empty() ? text("the blocks are: ", join(names, ", "))
                               : text("the nearest are: ", join(near, ", "))});
  }
  fail({.what = text(static_cast<int64_t>(found.size()), " blocks are named ", string_literal(name)),
        .needs = "the name of one block of the function",
        .hint = "reach it through get_child_blocks or get_consumers"});
}

void Schedule::bind_ranges(arith::Analyzer& analyzer, int site) const {
  const Sites& sites = this->sites();
  for (const auto& [param, buffer] : func()->buffer_map) {
    for (const Expr& extent : buffer->shape) {
      if (!as_int(extent)) analyzer.assume_size(extent);
    }
  }
  for (int i = site; i >= 0; i = sites[i].parent) {
    if (const For* loop = sites[i].loop()) {
      analyzer.bind(loop->var, make<Range>(loop->min, loop->extent));
    } else {
      for (const IterVarRef& iter : sites[i].realize()->block->iter_vars) analyzer.bind(iter->var, iter->dom);
    }
  }
}

void Schedule::add_ranges(Findings<arith::IterMap>::Nodes& read, int site) const {
  const Sites& sites = this->sites();
  for (const auto& [param, buffer] : func()->buffer_map) {
    for (const Expr& extent : buffer->shape) {
      if (!as_int(extent)) read.push_back(extent);
    }
  }
  for (int i = site; i >= 0; i = sites[i].parent) {
    if (const For* loop = sites[i].loop())
      read.insert(read.end(), {loop->var, loop->min, loop->extent});
    else
      for (const IterVarRef& iter : sites[i].realize()->block->iter_vars) read.push_back(iter);
  }
}

namespace {

/// Rebuilds the way from `root` to the statement `old`; null if it is not below.
Stmt replaced(const Stmt& root, const Stmt& old, const Stmt& replacement) {
  if (root == old) return replacement;
  bool found = false;
  NodeRef out = root->info().map_children(*root, [&](const NodeRef& child) -> NodeRef {
    if (found) return child;
    if (const Block* block = child.as<Block>()) {  // a BlockRealize's block
      Stmt inner = replaced(Stmt(block), old, replacement);
      if (inner) {
        found = true;
        return inner;
      }
      return child;
    }
    Stmt stmt = cast<StmtNode>(child);
    if (!stmt) return child;
    Stmt inner = replaced(stmt, old, replacement);
    if (!inner) return child;
    found = true;
    return inner;
  });
  return found ? cast<StmtNode>(out) : nullptr;
}

}  // namespace

void Schedule::replace(const Stmt& old, Stmt replacement) {
  PrimFuncRef f = func();
  Stmt body = replaced(f->body, old, replacement);
  if (!body) internal_error("schedule: the statement to replace is not in the function");
  replace_body(std::move(body));
}

void Schedule::replace_body(Stmt body) { replace_func(with(func(), &PrimFunc::body, std::move(body))); }

void Schedule::replace_func(PrimFuncRef func) {
  if (!func->by_schedule) func = with(func, &PrimFunc::by_schedule, true);
  module_ = with_function(std::move(module_), func_name_, std::move(func));
}

void Schedule::require(std::optional<Reason> reason) const {
  if (reason) fail(std::move(*reason));
}

void Schedule::fail(Reason reason) const {
  if (!open_steps_.empty()) reason.what = text(describe(open_steps_.front()), ": ", reason.what);
  size_t n = trace_.steps.size();
  reason.where = text("in func ", func_name_, ", after ", static_cast<int64_t>(n), n == 1 ? " step" : " steps");
  if (reason.program.empty() && !reason.at.empty()) reason.program = tir::excerpt(*func(), reason.at);
  sator::fail(std::move(reason));
}

void Schedule::begin_step(std::string name, List inputs) {
  if (open_steps_.empty()) {
    turn_to_function_of(inputs);
    if (!func_name_.empty()) sites();
    before_ = {module_, func_name_, func_name_.empty() ? nullptr : sites_, forwarded_};
  }
  open_steps_.push_back({std::move(name), std::move(inputs), {}});
}

void Schedule::state_input(size_t index, Value value) {
  if (!open_steps_.empty()) open_steps_.back().inputs.at(index) = std::move(value);
}

void Schedule::require_concurrent_loops() const {
  if (func_name_.empty() || module_ == before_.module) return;
  std::optional<Reason> conflict = cannot_stay_concurrent(*this);
  if (!conflict) return;
  Schedule as_it_was(before_.module);
  as_it_was.work_on(func_name_);
  if (cannot_stay_concurrent(as_it_was)) return;  // the program came so
  conflict->program = excerpt(*func(), conflict->at);
  fail(std::move(*conflict));
}

void Schedule::end_step(Value output) {
  if (open_steps_.size() == 1) require_concurrent_loops();
  Step step = std::move(open_steps_.back());
  open_steps_.pop_back();
  if (!open_steps_.empty()) return;
  step.output = std::move(output);
  if (before_.sites && func_name_ == before_.func_name) {
    std::shared_ptr<const Step> consumer;
    for (const auto& [handle, site] : before_.sites->handles()) {
      if (sites().handles().count(handle)) continue;
      if (!consumer) consumer = std::make_shared<Step>(step);
      consumed_by_.emplace(handle, consumer);
    }
  }
  trace_.steps.push_back(std::move(step));
}

Expr Schedule::sampled(int64_t value) {
  const VarRef var = make_var(text("v", sampled_.size()), i32);
  sampled_.emplace(var, int_imm(value, i32));
  return var;
}

void Schedule::evaluate(Expr& e) const {
  if (!e || sampled_.empty()) return;
  Expr known = substitute(e, sampled_);
  if (known != e && !as_int(known)) known = arith::Analyzer().simplify(known);
  if (known != e && vars_in(known).empty() && !as_int(known) && !known.as<FloatImm>())
    sator::fail({.what = text("with what was chosen, ", e, " is ", known),
                 .needs = "an expression that has a value",
                 .hint = "choose among other candidates, or edit the decision"});
  e = known;
}

void Schedule::evaluate(Value& value) const {
  if (sampled_.empty()) return;
  if (const Expr* e = value.get_if<Expr>()) {
    Expr known = *e;
    evaluate(known);
    value = to_value(known);
  } else if (const List* list = value.get_if<List>()) {
    List all = *list;
    for (Value& item : all) evaluate(item);
    value = std::move(all);
  }
}

void Schedule::forward(const BlockHandle& old, BlockHandle renamed) { forwarded_[old] = std::move(renamed); }

void Schedule::resolve(BlockHandle& block) const {
  for (auto at = forwarded_.find(block); at != forwarded_.end(); at = forwarded_.find(block)) block = at->second;
}

void Schedule::resolve(Value& value) const {
  if (const BlockHandle* b = value.get_if<BlockHandle>()) {
    BlockHandle block = *b;
    resolve(block);
    value = block;
  }
}

void Schedule::abandon_step() {
  open_steps_.pop_back();
  if (!open_steps_.empty()) return;
  module_ = before_.module;
  func_name_ = before_.func_name;
  forwarded_ = before_.forwarded;
}

void Schedule::abandon_step(const Error& error) {
  struct Last {
    Schedule& s;
    ~Last() { s.abandon_step(); }
  } last{*this};
  if (open_steps_.size() > 1 || !error.reason.where.empty()) throw error;
  fail(error.reason);
}

}  // namespace sator::schedule
