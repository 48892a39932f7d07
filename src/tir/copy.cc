#include "tir/copy.h"

namespace sator::tir {

namespace {

/// What binds a variable, below a node.
void each_definition(const NodeRef& root, FunctionRef<void(const VarRef&)> define,
                     FunctionRef<void(const Block&)> block, FunctionRef<void(const BufferRef&)> declare) {
  walk(
      root,
      [&](const For& n) { define(n.var); },
      [&](const LetStmt& n) { define(n.var); },
      [&](const Let& n) { define(n.var); },
      [&](const Allocate& n) { define(n.data); },
      [&](const AllocateConst& n) { define(n.data); },
      [&](const DeclBuffer& n) { declare(n.buffer); },
      [&](const Block& n) {
        for (const IterVarRef& iter : n.iter_vars) define(iter->var);
        for (const BufferRef& b : n.alloc_buffers) define(b->data);
        for (const MatchBufferRef& m : n.match_buffers) define(m->buffer->data);
        block(n);
      });
}

void each_thread_axis(const NodeRef& root, FunctionRef<void(const VarRef&)> define) {
  walk(root, [&](const AttrStmt& n) {
    if (const ThreadAxis* axis = n.node.as<ThreadAxis>()) define(axis->var);
  });
}

/// The parameters, the pointers of their buffers, and the sizes that are read from these.
void each_parameter(const PrimFunc& func, FunctionRef<void(const VarRef&)> define) {
  for (const VarRef& p : func.params) define(p);
  for (const auto& [param, buffer] : func.buffer_map) {
    define(buffer->data);
    auto size = [&](const Expr& e) {
      if (const Var* v = e ? e.as<Var>() : nullptr) define(ref(*v));
    };
    for (const Expr& e : buffer->shape) size(e);
    for (const Expr& e : buffer->strides) size(e);
    size(buffer->elem_offset);
  }
}

}  // namespace

Stmt fresh_copy(const Stmt& stmt, NodeMap map) {
  std::vector<BufferRef> declared;
  each_definition(
      stmt,
      [&](const VarRef& v) { map.emplace(v, NodeRef(new Var(*v))); },
      [&](const Block& n) { map.emplace(n.name, block_name(n.name->text)); },
      [&](const BufferRef& b) { declared.push_back(b); });
  // A declared buffer over memory from outside is a definition too.
  for (const BufferRef& b : declared) map.emplace(b, replaced(BufferRef(new Buffer(*b)), map));
  return replaced(stmt, map);
}

PrimFuncRef fresh_function(const PrimFuncRef& func) {
  NodeMap map;
  auto renew = [&](const VarRef& v) { map.emplace(v, NodeRef(new Var(*v))); };
  each_parameter(*func, renew);
  each_thread_axis(func->body, renew);
  std::vector<BufferRef> declared;
  each_definition(
      func->body,
      renew,
      [&](const Block& n) { map.emplace(n.name, block_name(n.name->text)); },
      [&](const BufferRef& b) { declared.push_back(b); });
  for (const BufferRef& b : declared) map.emplace(b, replaced(BufferRef(new Buffer(*b)), map));
  return replaced(func, map);
}

FreeNames free_names(const Stmt& stmt) {
  std::unordered_set<const Var*> defined;
  std::unordered_set<const Buffer*> declared, seen;
  auto define = [&](const VarRef& v) { defined.insert(v.get()); };
  each_definition(stmt, define, [](const Block&) {}, [&](const BufferRef& b) { declared.insert(b.get()); });
  each_thread_axis(stmt, define);
  FreeNames out;
  auto use = [&](const BufferRef& b) {
    if (!declared.contains(b.get()) && !defined.contains(b->data.get()) && seen.insert(b.get()).second)
      out.buffers.push_back(b);
  };
  walk(
      stmt,
      [&](const BufferStore& n) { use(n.buffer); },
      [&](const BufferLoad& n) { use(n.buffer); },
      [&](const BufferRegion& n) { use(n.buffer); });
  for (const VarRef& v : vars_in(stmt)) {
    if (!defined.contains(v.get())) out.vars.push_back(v);
  }
  return out;
}

std::unordered_set<const Var*> defined_in(const PrimFunc& func) {
  std::unordered_set<const Var*> out;
  auto define = [&](const VarRef& v) { out.insert(v.get()); };
  each_parameter(func, define);
  each_definition(func.body, define, [](const Block&) {}, [](const BufferRef&) {});
  each_thread_axis(func.body, define);
  return out;
}

}  // namespace sator::tir
