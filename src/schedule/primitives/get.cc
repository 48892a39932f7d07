#include "schedule/analysis.h"
#include "schedule/primitives.h"

namespace sator::schedule {

using namespace tir;

/// The block of that name. Errors: no or several blocks have it.
static BlockHandle do_get_block(Schedule& s, std::string name, std::string func_name) {
  s.turn_to(func_name.empty() ? s.worked_on() : func_name);
  // Where there are several functions, the trace says which one was worked on.
  if (func_name.empty() && s.module()->functions.size() > 1) s.state_input(1, s.func_name());
  return s.block_named(name);
}

/// The loops around a block within its scope, outermost first.
static std::vector<Loop> do_get_loops(Schedule& s, BlockHandle block) {
  std::vector<Loop> loops;
  for (int i : s.sites().loops_above(s.site(block))) loops.push_back(s.sites()[i].loop()->var);
  return loops;
}

static std::vector<BlockHandle> handles(const Schedule& s, const std::vector<int>& sites) {
  std::vector<BlockHandle> out;
  for (int i : sites) out.push_back(s.sites()[i].realize()->block->name);
  return out;
}

/// The blocks of a scope block, or those under a loop, in program order.
static std::vector<BlockHandle> do_get_child_blocks(Schedule& s, Value of) {
  if (auto* loop = of.get_if<Loop>()) return handles(s, s.sites().blocks_under(s.site(*loop)));
  return handles(s, s.sites().child_blocks(s.site(value_to_block(s, of, "block_or_loop"))));
}

/// The blocks whose results this block reads or overwrites, in program order.
static std::vector<BlockHandle> do_get_producers(Schedule& s, BlockHandle block) {
  int site = s.site(block);
  ScopeAnalysis scope(s, s.sites()[site].scope);
  return handles(s, scope.producers(site));
}

/// The blocks that read or overwrite this block's results, in program order.
static std::vector<BlockHandle> do_get_consumers(Schedule& s, BlockHandle block) {
  int site = s.site(block);
  ScopeAnalysis scope(s, s.sites()[site].scope);
  return handles(s, scope.consumers(site));
}

/// The blocks of a scope that write a buffer which the function does not allocate.
static std::vector<BlockHandle> do_get_output_blocks(Schedule& s, BlockHandle scope_block) {
  std::vector<int> found;
  for (int child : s.sites().child_blocks(s.site(scope_block))) {
    for (const BufferRegionRef& w : s.sites()[child].realize()->block->writes) {
      if (!is_allocated(s, w->buffer)) {
        found.push_back(child);
        break;
      }
    }
  }
  return handles(s, found);
}

const Primitive<BlockHandle(std::string, std::string)> get_block{
    "get_block", do_get_block, {"name", {"func_name", ""}}, "the block of that name", Effect::reads};
const Primitive<std::vector<Loop>(BlockHandle)> get_loops{
    "get_loops", do_get_loops, {"block"}, "the loops around a block, outermost first", Effect::reads};
const Primitive<std::vector<BlockHandle>(Value)> get_child_blocks{"get_child_blocks",
                                                                  do_get_child_blocks,
                                                                  {"block_or_loop"},
                                                                  "the blocks in a scope block or under a loop",
                                                                  Effect::reads};
const Primitive<std::vector<BlockHandle>(BlockHandle)> get_producers{
    "get_producers", do_get_producers, {"block"}, "the blocks whose results a block uses", Effect::reads};
const Primitive<std::vector<BlockHandle>(BlockHandle)> get_consumers{
    "get_consumers", do_get_consumers, {"block"}, "the blocks that use a block's results", Effect::reads};
const Primitive<std::vector<BlockHandle>(BlockHandle)> get_output_blocks{"get_output_blocks",
                                                                         do_get_output_blocks,
                                                                         {"scope_block"},
                                                                         "the blocks that write the function's outputs",
                                                                         Effect::reads};

}  // namespace sator::schedule
