"""Steps that many rules take."""
from sator.tir.schedule import ScheduleError


def try_inline(sch, blocks):
    """Puts blocks into their consumers, then into their producers, until none goes; those that are left."""

    def inlined(step):
        for i, info in enumerate(blocks):
            try:
                step(info.block_rv)
            except ScheduleError:
                continue
            return i
        return None

    blocks = list(blocks)
    for step in (sch.compute_inline, sch.reverse_compute_inline):
        while (i := inlined(step)) is not None:
            blocks.pop(i)
    return blocks


def try_inline_contiguous_spatial(sch, block_infos):
    """try_inline of each run of spatial blocks."""
    if block_infos is None:
        return None
    out, run = [], []
    for info in block_infos:
        if info.is_injective():
            run.append(info)
        else:
            out += [*try_inline(sch, run), info]
            run = []
    return out + try_inline(sch, run)
