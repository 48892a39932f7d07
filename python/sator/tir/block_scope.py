"""Places of blocks and loops in programs, and how blocks depend on each other."""
from enum import IntEnum

from sator import _core


class StmtSRef:
    """The place of a block or a loop in a program: `stmt` is what stands there now, None where a later step took it out."""

    def __init__(self, schedule, handle=None, stmt=None):
        self._schedule, self._handle = schedule, handle
        self._key = _key(schedule.get(handle) if stmt is None else stmt)

    @property
    def stmt(self):
        """The tir.Block or tir.For, or None."""
        if self._handle is not None:
            return self._schedule.get(self._handle)
        found = []
        for func in self._schedule.mod.functions.values():
            walk_statements(func, lambda node: found.append(node) if _key(node) is not None and _key(node).same_as(self._key) else None)
        return found[0] if found else None

    @property
    def parent(self):
        """The place of the block or loop around it (of a BlockDependenceInfo the block), or None. Errors: ScheduleError for a handle that a later step consumed."""
        here, around = self.stmt, []
        kinds = (_core.tir.Block,) if isinstance(self._schedule, BlockDependenceInfo) else (_core.tir.Block, _core.tir.For)

        def visit(node, above):
            if node.same_as(here):
                around.append(above)
            above = node if isinstance(node, kinds) else above
            for child in _core.children(node):
                if isinstance(child, _core.Stmt):
                    visit(child, above)

        for func in self._schedule.mod.functions.values():
            visit(func, None)
        return StmtSRef(self._schedule, stmt=around[0]) if around and around[0] is not None else None

    def same_as(self, other):
        """Whether both are one place of one program."""
        return isinstance(other, StmtSRef) and self._schedule is other._schedule and self._key.same_as(other._key)

    __eq__ = same_as

    def __hash__(self):
        return hash(self._key.handle())


def _key(stmt):
    """What stays of a statement when a step rewrites it: a loop's variable, a block's name."""
    return stmt.loop_var if isinstance(stmt, _core.tir.For) else stmt.name if isinstance(stmt, _core.tir.Block) else None


def walk_statements(node, visit):
    """Calls visit(statement) for each statement of a function or below another one, from the outside."""
    visit(node)
    for child in _core.children(node):
        if isinstance(child, _core.Stmt):
            walk_statements(child, visit)


def children_of(schedule, sref):
    """The places of the blocks directly inside of one, in their order. Its init is none of them."""
    out = []

    def visit(node):
        if isinstance(node, _core.tir.Block):
            out.append(StmtSRef(schedule, stmt=node))
            return
        for child in _core.children(node):
            if isinstance(child, _core.Stmt):
                visit(child)

    visit(sref.stmt.body)
    return out


class DepKind(IntEnum):
    """Why a block comes after another one: it reads what that wrote (RAW), writes it again (WAW), writes what that read (WAR)."""

    RAW, WAW, WAR, OPAQUE = 0, 1, 2, 3


class Dependency:
    """`dst` comes after `src`: two places of blocks, and the kind, a DepKind."""

    def __init__(self, src, dst, kind):
        for place in (src, dst):
            if not isinstance(place, StmtSRef):
                raise TypeError(f"Dependency: {place!r} is a {type(place).__name__}\n  needs: the place of a block, which get_sref gives")
        self.src, self.dst, self.kind = src, dst, DepKind(kind)

    def __repr__(self):
        return f"Dependency({self.src.stmt.name_hint} -> {self.dst.stmt.name_hint}, {self.kind.name})"


class BlockScope:
    """How blocks next to each other depend on each other, by the buffers that they say they read and write."""

    def __init__(self, block_srefs):
        self._dependencies = []
        before = []
        for sref in block_srefs:
            reads, writes = ([r.buffer.handle() for r in regions] for regions in (sref.stmt.reads, sref.stmt.writes))
            for kind, mine, theirs in ((DepKind.RAW, reads, 2), (DepKind.WAW, writes, 2), (DepKind.WAR, writes, 1)):
                self._dependencies += [Dependency(other[0], sref, kind) for buffer in mine for other in before if buffer in other[theirs]]
            before.append((sref, reads, writes))

    def get_deps_by_src(self, block):
        """The dependences of others on this block."""
        return [d for d in self._dependencies if d.src.same_as(block)]

    def get_deps_by_dst(self, block):
        """The dependences of this block on others."""
        return [d for d in self._dependencies if d.dst.same_as(block)]


class BlockDependenceInfo:
    """How the blocks of a module, or of a PrimFunc, depend on each other."""

    def __init__(self, mod):
        from sator import ir

        self.mod = mod if isinstance(mod, _core.ir.IRModule) else ir.IRModule({"main": mod})

    def get_sref(self, block):
        """The place of a block, or None where the module has no such block."""
        found = []
        for func in self.mod.functions.values():
            walk_statements(func, lambda node: found.append(node) if node.same_as(block) else None)
        return StmtSRef(self, stmt=block) if found else None

    def get_block_scope(self, block_sref):
        """How the blocks directly inside of one depend on each other."""
        return BlockScope(children_of(self, block_sref))
