"""What rules for products ask, and the steps that they share."""
from sator import tir
from sator.dlight.base.analysis import get_reduction_blocks, get_root_block, is_reduction_block, kind_of  # noqa: F401
from sator.tir.schedule import ScheduleError


def check_sm_version(arch):
    """The number of an architecture: 90 for "sm_90"; -1 for any other text."""
    digits = str(arch).replace("sm_", "").rstrip("a")
    return int(digits) if str(arch).startswith("sm_") and digits.isdigit() else -1


def get_in_out_dtypes(block):
    """The dtype of the operands and that of the result of a product."""
    return block.reads[0].buffer.dtype, block.writes[0].buffer.dtype


def _axis_of(index, variables):
    used = set()
    tir.stmt_functor.post_order_visit(index, lambda n: used.add(n) if isinstance(n, tir.Var) and n in variables else None)
    if isinstance(index, tir.Var):
        return index
    return next(iter(used)) if len(used) == 1 else None


def get_index_map(block):
    """The maps that bring a product to the form C[S, I, J] += A[S, I, K] * B[S, J, K]: those of its iterators, of A, of B and of C.

    None where it is no such product: an access that is not of single iterators, or another number of them.
    """
    if len(block.reads) != 2 or len(block.writes) != 1:
        return None
    variables = {v.var for v in block.iter_vars}

    def axes(region):
        found = []
        for r in region.region:
            if not (isinstance(r.extent, tir.IntImm) and int(r.extent) == 1):
                return None
            if isinstance(r.min, tir.IntImm):
                continue
            axis = _axis_of(r.min, variables)
            if axis is None:
                return None
            found.append(axis)
        return found

    a, b, c = axes(block.reads[0]), axes(block.reads[1]), axes(block.writes[0])
    if a is None or b is None or c is None:
        return None
    # Each iterator by where it occurs: in all three (S), in A and C (I), in B and C (J), in A and B (K).
    groups = {"S": [], "I": [], "J": [], "K": []}
    for v in block.iter_vars:
        if isinstance(v.dom.extent, tir.IntImm) and int(v.dom.extent) == 1:
            continue  # what runs once is in no index
        where = (v.var in a, v.var in b, v.var in c)
        kind = {(True, True, True): "S", (True, False, True): "I", (False, True, True): "J", (True, True, False): "K"}.get(where)
        if kind is None or (kind == "K") != (kind_of(v) == "R"):
            return None
        groups[kind].append(v)
    if not groups["I"] or not groups["J"] or not groups["K"]:
        return None

    def map_of(iters, kinds):
        """The map from these iterators to one fused index per kind."""
        inputs = [tir.Var(v.var.name, v.var.dtype) for v in iters]
        results = []
        for kind in kinds:
            index = None
            for v, x in zip(iters, inputs):
                if any(v.var.same_as(g.var) for g in groups[kind]):
                    index = x if index is None else index * v.dom.extent + x
            results.append(tir.const(0, inputs[0].dtype) if index is None else index)
        return tir.IndexMap(inputs, results, None)

    by_var = {v.var: v for v in block.iter_vars}
    whole = map_of(block.iter_vars, "SIJK")
    return (whole, map_of([by_var[x] for x in a], "SIK"), map_of([by_var[x] for x in b], "SJK"), map_of([by_var[x] for x in c], "SIJ"))


def auto_inline_producers(sch, block):
    """Puts what feeds a block into it, as far as the schedule allows."""
    while True:
        count = 0
        for producer in sch.get_producers(block):
            if is_reduction_block(sch, producer):
                continue
            try:
                sch.compute_inline(producer)
                count += 1
            except ScheduleError:
                continue
        if count == 0:
            return


def auto_inline_consumers(sch, block):
    """Puts what follows a block element by element into it; blocks further on into those."""
    while True:
        count = 0
        for consumer in sch.get_consumers(block):
            try:
                sch.compute_inline(consumer)
                count += 1
            except ScheduleError:
                continue
        for consumer in sch.get_consumers(block):
            try:
                sch.reverse_compute_inline(consumer)
                count += 1
            except ScheduleError:
                continue
        if count == 0:
            return


def auto_inline_consumer_chain(sch, block):
    """Puts the chain of blocks that follow a block into it; beside a consumer that stays, whatever else it reads too."""
    auto_inline_consumers(sch, block)
    remaining = sch.get_consumers(block)
    if len(remaining) == 1:
        # A consumer may read other results as well: those are put into it, and it into the block.
        for producer in sch.get_producers(remaining[0]):
            if producer != block and not is_reduction_block(sch, producer):
                try:
                    sch.compute_inline(producer)
                except ScheduleError:
                    continue
        auto_inline_consumers(sch, block)
    elif remaining:
        for consumer in remaining:
            auto_inline_consumer_chain(sch, consumer)
            try:
                sch.compute_inline(consumer)
            except ScheduleError:
                continue
