#include "schedule/sites.h"

#include <algorithm>

namespace sator::schedule {

using namespace tir;

Sites::Sites(const Stmt& body) {
  sites_.reserve(32);
  visit(body, -1, -1);
}

void Sites::visit(const Stmt& stmt, int parent, int scope) {
  if (!stmt) return;
  int here = count();
  if (const For* loop = stmt.as<For>()) {
    sites_.push_back({stmt, parent, scope, parent < 0 ? 0 : sites_[static_cast<size_t>(parent)].depth + 1});
    by_handle_.emplace(loop->var.get(), here);
    visit(loop->body, here, scope);
  } else if (const BlockRealize* realize = stmt.as<BlockRealize>()) {
    sites_.push_back({stmt, parent, scope, parent < 0 ? 0 : sites_[static_cast<size_t>(parent)].depth + 1});
    by_handle_.emplace(realize->block->name.get(), here);
    visit(realize->block->init, here, here);
    visit(realize->block->body, here, here);
  } else {
    stmt->info().each_child(*stmt, [&](const NodeRef& child) {
      if (Stmt inner = cast<StmtNode>(child)) visit(inner, parent, scope);
    });
  }
}

int Sites::find(const Loop& loop) const {
  auto at = by_handle_.find(loop.get());
  return at == by_handle_.end() ? -1 : at->second;
}
int Sites::find(const BlockHandle& block) const {
  auto at = by_handle_.find(block.get());
  return at == by_handle_.end() ? -1 : at->second;
}

bool Sites::is_above(int ancestor, int site) const {
  for (; site >= 0; site = (*this)[site].parent) {
    if (site == ancestor) return true;
  }
  return false;
}

int Sites::lowest_common_ancestor(int a, int b) const {
  while (a != b) {
    if ((*this)[a].depth >= (*this)[b].depth)
      a = (*this)[a].parent;
    else
      b = (*this)[b].parent;
  }
  return a;
}

std::vector<int> Sites::child_blocks(int scope_site) const {
  std::vector<int> blocks;
  for (int i = 0; i < count(); ++i) {
    if ((*this)[i].scope == scope_site && (*this)[i].realize()) blocks.push_back(i);
  }
  return blocks;
}

std::vector<int> Sites::blocks_under(int site) const {
  if ((*this)[site].realize()) return {site};
  std::vector<int> blocks;
  for (int b : child_blocks((*this)[site].scope)) {
    if (is_above(site, b)) blocks.push_back(b);
  }
  return blocks;
}

std::vector<int> Sites::loops_above(int block_site) const {
  std::vector<int> loops;
  for (int i = (*this)[block_site].parent; i >= 0 && (*this)[i].loop(); i = (*this)[i].parent) loops.push_back(i);
  std::reverse(loops.begin(), loops.end());
  return loops;
}

}  // namespace sator::schedule
