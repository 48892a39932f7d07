#include "schedule/primitives.h"

namespace sator::schedule {

using namespace tir;

/// Puts a loop of one iteration around a block or loop.
static Loop do_add_unit_loop(Schedule& s, Value of) {
  int site = -1;
  if (auto* loop = of.get_if<Loop>())
    site = s.site(*loop);
  else
    site = s.site(value_to_block(s, of, "block_or_loop"));
  if (s.sites()[site].parent < 0)
    s.fail({.what = "the root block has no place for a loop around it",
            .needs = "a block or loop inside of the function",
            .hint = "choose a child block",
            .at = {{s.sites()[site].stmt, "the root"}}});
  Loop unit = make_var("u");
  Stmt inner = s.sites()[site].stmt;
  s.replace(inner, for_loop(unit, int_imm(1), inner));
  return unit;
}

const Primitive<Loop(Value)> add_unit_loop{
    "add_unit_loop", do_add_unit_loop, {"block_or_loop"}, "puts a loop of one iteration around a block or loop"};

}  // namespace sator::schedule
