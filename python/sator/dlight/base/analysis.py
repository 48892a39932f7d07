"""What a rule asks about a function's blocks."""
from sator import _core, tir
from sator.tir.schedule import ScheduleError


class IterInfo:
    """An iterator of a block: its kind "S", "R" or "O", its variable, its extent, the loop that it is."""

    def __init__(self, kind, var, dom, loop_rv):
        self.kind, self.var, self._dom, self.loop_rv = kind, var, dom, loop_rv

    @property
    def dom(self):
        """The extent: an integer, or an expression where it is symbolic."""
        return int(self._dom) if isinstance(self._dom, tir.IntImm) else self._dom

    def __repr__(self):
        return f'Iter("{self.kind}", {self.dom})'


class BlockInfo:
    """A block with its iterators."""

    def __init__(self, name, iters, block_rv, reduction_block=False):
        if not isinstance(iters, (list, tuple)) or not all(isinstance(i, IterInfo) for i in iters):
            raise TypeError(f"BlockInfo: iters = {iters!r} is a {type(iters).__name__}\n  needs: a list of IterInfo")
        self.name, self.iters, self.block_rv, self._reduction_block = name, iters, block_rv, reduction_block

    def dom(self):
        """The extents of the iterators."""
        return [i.dom for i in self.iters]

    def dom_kind(self):
        """"SSR": the kinds of the iterators."""
        return "".join(i.kind for i in self.iters)

    def is_injective(self):
        """Whether all iterators are spatial: each instance writes an element of its own."""
        return all(k == "S" for k in self.dom_kind())

    def is_reduction(self):
        """Whether it reduces."""
        return self._reduction_block

    def is_elementwise(self, sch):
        """Whether it is spatial and reads and writes at its iterators, in their order."""
        block = sch.get(self.block_rv)
        regions = [*block.reads, *block.writes]
        wanted = [i.var for i in block.iter_vars]
        return self.is_injective() and len(block.writes) == 1 and all(
            len(r.region) == len(wanted) and all(isinstance(x.min, tir.Var) and x.min.same_as(v) for x, v in zip(r.region, wanted)) for r in regions)

    def __repr__(self):
        return f'BlockInfo("{self.name}", "{self.dom_kind()}", {self.dom()})'


_KINDS = "SRO"


def kind_of(iter_var):
    """"S", "R" or "O"."""
    return _KINDS[min(int(iter_var.kind), 2)]


def normalize_prim_func(sch):
    """The blocks of a schedule whose loops are their iterators, one each; None where a block's are not."""
    infos = []
    for block in sch.get_child_blocks(get_root_block(sch)):
        stmt, loops = sch.get(block), sch.get_loops(block)
        realized = _realize_of(sch, stmt)
        if realized is None or len(loops) != len(stmt.iter_vars):
            return None
        for loop, value in zip(loops, realized.iter_values):
            if not value.same_as(sch.get(loop).loop_var):
                return None
        iters = [IterInfo(kind_of(v), v.var, v.dom.extent, loop) for v, loop in zip(stmt.iter_vars, loops)]
        infos.append(BlockInfo(stmt.name_hint, iters, block, is_reduction_block(sch, block)))
    return infos


def _realize_of(sch, stmt):
    found = []

    def visit(node):
        if isinstance(node, _core.tir.BlockRealize) and node.block.same_as(stmt):
            found.append(node)

    for func in sch.mod.functions.values():
        if isinstance(func, tir.PrimFunc):
            tir.stmt_functor.post_order_visit(func.body, visit)
    return found[0] if found else None


def is_reduction_block(sch, block):
    """Whether a block begins with a value and goes over a reduction iterator."""
    stmt = sch.get(block)
    return stmt.init is not None and any(kind_of(v) == "R" for v in stmt.iter_vars)


def get_root_block(sch, func_name="main"):
    """The block around all others."""
    return sch.get_block("root", func_name=func_name if func_name in sch.mod.functions else sch.func_working_on)


def is_broadcast_epilogue(sch, block, epilogue):
    """Whether `epilogue` reads what `block` writes at fewer iterators than it has."""
    written = {r.buffer for r in sch.get(block).writes}
    stmt = sch.get(epilogue)
    own = {v.var for v in stmt.iter_vars if not (isinstance(v.dom.extent, tir.IntImm) and int(v.dom.extent) == 1)}
    for read in stmt.reads:
        if read.buffer in written and len(own & _variables([r.min for r in read.region])) < len(own):
            return True
    return False


def collect_block_iter_vars_used_in_access_region(block, region):
    """The block's iterators that occur in the places of a region."""
    own = {v.var for v in block.iter_vars}
    return own & _variables([r.min for r in region])


def detect_dominant_read(block):
    """The place, as one number, of the read that depends on the most iterators."""
    best, most = None, -1
    for read in block.reads:
        count = len(collect_block_iter_vars_used_in_access_region(block, read.region))
        if count > most:
            best, most = read, count
    offset = tir.const(0)
    for r, extent in zip(best.region, best.buffer.shape):
        offset = offset * extent + r.min
    return offset


def collect_vars_used_in_prim_expr(expr):
    """The variables of an expression."""
    return _variables([expr])


def get_max_threads_per_block(target, unsaid=64):
    """How many threads one block of a GPU has at most: what the target says, else `unsaid`."""
    return int(next((target.attrs[name] for name in ("max_threads_per_block", "max_num_threads") if target.attrs.get(name) is not None), unsaid))


def get_max_shared_memory_per_block(target):
    """How many bytes the threads of a block share at most. Errors: ValueError where the target does not say."""
    most = target.attrs.get("max_shared_memory_per_block")
    if most is None:
        raise ValueError(f"{target} does not say how much memory a block shares\n  needs: max_shared_memory_per_block\n"
                         "  hint:  sator.Target({\"kind\": \"cuda\", \"max_shared_memory_per_block\": 49152})")
    return int(most)


def _variables(exprs):
    found = set()
    for e in exprs:
        tir.stmt_functor.post_order_visit(e, lambda n: found.add(n) if isinstance(n, tir.Var) else None)
    return found


def get_reduction_blocks(sch, blocks):
    """The blocks that sum or take a maximum; None where a block is neither such nor spatial, or there is none."""
    reductions = []
    for block in blocks:
        kinds = {kind_of(v) for v in sch.get(block).iter_vars}
        if "O" in kinds:
            return None
        if "R" in kinds:
            reductions.append(block)
    return reductions or None


def get_sch_or_none(step):
    """What a step gives; None where the schedule refuses it."""
    try:
        return step()
    except ScheduleError:
        return None
