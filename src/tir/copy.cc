#include "tir/copy.h"

namespace sator::tir {

Stmt fresh_copy(const Stmt& stmt, NodeMap map) {
  auto renew = [&](const VarRef& v) { map.emplace(v, NodeRef(new Var(*v))); };
  std::vector<BufferRef> declared;
  walk(
      stmt,
      [&](const For& n) { renew(n.var); },
      [&](const LetStmt& n) { renew(n.var); },
      [&](const Let& n) { renew(n.var); },
      [&](const Allocate& n) { renew(n.data); },
      [&](const AllocateConst& n) { renew(n.data); },
      [&](const DeclBuffer& n) { declared.push_back(n.buffer); },
      [&](const Block& n) {
        for (const IterVarRef& iter : n.iter_vars) renew(iter->var);
        for (const BufferRef& b : n.alloc_buffers) renew(b->data);
        for (const MatchBufferRef& m : n.match_buffers) renew(m->buffer->data);
        map.emplace(n.name, block_name(n.name->text));
      });
  // A declared buffer over memory from outside is a definition too.
  for (const BufferRef& b : declared) map.emplace(b, replaced(BufferRef(new Buffer(*b)), map));
  return replaced(stmt, map);
}

}  // namespace sator::tir
