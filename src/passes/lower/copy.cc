#include "passes/lower/copy.h"

namespace sator::passes {

using namespace tir;

Stmt fresh_copy(const Stmt& stmt, const VarMap& values) {
  VarMap map = values;
  auto renew = [&](const VarRef& v) { map.emplace(v, Expr(new Var(*v))); };
  walk(
      stmt,
      [&](const For& n) { renew(n.var); },
      [&](const LetStmt& n) { renew(n.var); },
      [&](const Let& n) { renew(n.var); },
      [&](const Allocate& n) { renew(n.data); },
      [&](const AllocateConst& n) { renew(n.data); },
      [&](const Block& n) {
        for (const IterVarRef& iter : n.iter_vars) renew(iter->var);
        for (const BufferRef& b : n.alloc_buffers) renew(b->data);
        for (const MatchBufferRef& m : n.match_buffers) renew(m->buffer->data);
      });
  // A declared buffer over memory from outside is a definition too.
  std::unordered_set<const Buffer*> declared;
  walk(stmt, [&](const DeclBuffer& n) { declared.insert(n.buffer.get()); });
  return transform(
      stmt,
      [&](const Var& v) -> NodeRef {
        auto at = map.find(ref(v));
        return at == map.end() ? NodeRef(&v) : NodeRef(at->second);
      },
      [&](const Buffer& b) -> NodeRef { return declared.count(&b) ? NodeRef(new Buffer(b)) : NodeRef(&b); });
}

}  // namespace sator::passes
