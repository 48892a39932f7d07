"""The program of a schedule as it is now, and places in it."""
from enum import IntEnum

from sator import _core
from sator.tir.block_scope import BlockScope, StmtSRef, children_of, walk_statements


class ScheduleDebugMask(IntEnum):
    """What is verified after each step; here always both."""

    VERIFY_SREF_TREE = 1
    VERIFY_CACHED_FLAGS = 2


class ScheduleState:
    """The program of a schedule as it is now: `mod`, and places in it.

    mod          an IRModule, or a PrimFunc, which is then called "main"
    debug_mask   of no effect: every step is verified
    """

    def __init__(self, mod, *, debug_mask="none", enable_check=True):
        from sator.tir.schedule.schedule import Schedule

        self._schedule = mod if isinstance(mod, _core.Schedule) else Schedule(mod, debug_mask=debug_mask, enable_check=enable_check)
        self.debug_mask = {"none": 0, "all": 3}.get(debug_mask, debug_mask)

    @property
    def mod(self):
        """The module."""
        return self._schedule.mod

    def get_sref(self, stmt):
        """The place of a block or a loop, told by its statement, or None where the program has no such statement."""
        from sator.tir.schedule.schedule import ScheduleError

        try:
            return self._schedule.get_sref(stmt)
        except ScheduleError:
            return None

    def get_block_scope(self, block_sref):
        """How the blocks directly inside of one depend on each other."""
        return BlockScope(children_of(self._schedule, block_sref))

    def replace(self, src_sref, tgt_stmt, block_sref_reuse=None):
        """Puts a statement in the place of another one. It is no step: the trace does not have it, and nobody shows that the program still computes the same.

        src_sref           the place of a block or a loop
        tgt_stmt           of a block a Block, of a loop a For or a BlockRealize
        block_sref_reuse   {block of the old statement: block of the new one, which its handles and places name from now on}; loops keep theirs
                           where they keep their variables
        Errors: TypeError for a statement of another kind; ScheduleError for a place that is gone.
        """
        from sator import tir
        from sator.tir.schedule.schedule import ScheduleError

        old = src_sref.stmt
        if old is None:
            raise ScheduleError("replace: the statement is gone\n  needs: a place that is in the program")
        if not isinstance(tgt_stmt, tir.Block if isinstance(old, tir.Block) else (tir.For, tir.BlockRealize)):
            raise TypeError(f"replace: a {type(tgt_stmt).__name__} for a {type(old).__name__}\n  needs: "
                            + ("a Block" if isinstance(old, tir.Block) else "a For or a BlockRealize"))
        name, realize = next((str(getattr(name, "name_hint", name)), around) for name, func in self.mod.functions.items()
                             for node, around in _statements(func) if node.same_as(old))
        src_stmt, tgt_stmt = old, _with_names(tgt_stmt, block_sref_reuse or {})
        if isinstance(old, tir.Block):
            old, tgt_stmt = realize, tir.BlockRealize(realize.iter_values, realize.predicate, tgt_stmt)
        self._schedule._replace(name, old, tgt_stmt, [[before, after] for before, after in (block_sref_reuse or {}).items()
                                                      if before.name_hint != after.name_hint])
        for before, after in (block_sref_reuse or {}).items():
            if before.same_as(src_stmt) and before.name_hint != after.name_hint:
                src_sref._key = after.name


def _with_names(stmt, reuse):
    """The statement in which blocks are those that they stand for, where they are called the same."""
    from sator import tir

    if not reuse:
        return stmt

    def changed(node):
        for before, after in reuse.items():
            if isinstance(node, _core.tir.Block) and node.name.same_as(after.name) and before.name_hint == after.name_hint:
                return _core.make(_core.tir.Block, [before.name if f == "name" else getattr(node, f) for f in _core.tir.Block._fields])
        return None

    if isinstance(stmt, _core.tir.Block):
        inside = _core.make(_core.tir.Block, [_with_names(stmt.body, reuse) if f == "body" else getattr(stmt, f) for f in _core.tir.Block._fields])
        return changed(inside) or inside
    return tir.stmt_functor.ir_transform(stmt, None, changed, ["tir.Block"])


def _statements(func):
    """Pairs of a statement and the one around it."""
    out, above = [], {}

    def visit(node):
        out.append((node, above.get(node.handle())))
        for child in _core.children(node):
            if isinstance(child, _core.Stmt):
                above[child.handle()] = node

    walk_statements(func, visit)
    return out
