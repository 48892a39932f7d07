"""What rules for GPUs share: sizes of threads' blocks, vectors of loops."""
from sator import tir
from sator.dlight.base.analysis import get_max_threads_per_block
from sator.runtime import DataType

_MOST_THREADS = {"cuda": 1024, "rocm": 256, "metal": 256, "opencl": 256}  # of one block, where the target does not say


def get_bytes(dtype):
    """How many bytes an element takes, all lanes of a vector."""
    dtype = DataType(dtype)
    return (dtype.bits * dtype.lanes + 7) // 8


def get_extent(sch, loop_rv):
    """How many iterations a loop has: an integer, or an expression where it is symbolic."""
    extent = sch.get(loop_rv).extent
    return int(extent) if isinstance(extent, tir.IntImm) else extent


def auto_vectorize(sch, loop, max_vec):
    """Makes a loop, or its inner part of max_vec iterations, one vector operation; leaves one of a symbolic extent."""
    extent = get_extent(sch, loop)
    if isinstance(extent, int):
        sch.vectorize(loop if extent <= max_vec else sch.split(loop, factors=[None, max_vec])[-1])


def max_threads_per_block(target):
    """How many threads one block has at most: what the target says, else 1024 of CUDA and 256 of others."""
    return get_max_threads_per_block(target, 1024 if target.kind.name == "cuda" else 256)


def suggest_threads_per_block(target, loops, max_threads_for_dynamic_loop=32):
    """How many threads run each of these loops, outermost first: powers of two, whose product is that of a block at most.

    loops   tir.For; symbolic ones get their threads last, max_threads_for_dynamic_loop each, the first of them what is left
    """
    left = _MOST_THREADS.get(target.kind.name, 64)

    def taken(limit):
        nonlocal left
        threads = 1 << (min(limit, left).bit_length() - 1)
        left //= threads
        return threads

    out = [taken(int(loop.extent)) if isinstance(loop.extent, tir.IntImm) else None for loop in loops]
    symbolic = [i for i, threads in enumerate(out) if threads is None]
    for i in symbolic:
        out[i] = taken(max_threads_for_dynamic_loop)
    if symbolic:
        out[symbolic[0]] *= left
    return out
