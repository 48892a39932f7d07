"""How many elements go around a window's dimensions, as TVM's convolutions count them."""


def get_pad_tuple_generic(padding, kernel):
    """([before, ...], [after, ...]) of each dimension of a kernel.

    padding   an integer; one for each dimension; those before and then those after; "SAME", which keeps the size at stride 1, or "VALID"
    kernel    the extents of the window
    Errors: ValueError for another padding.
    """
    rank = len(kernel)
    if isinstance(padding, (tuple, list)) and len(padding) == 2 * rank:
        return list(padding[:rank]), list(padding[rank:])
    if isinstance(padding, (tuple, list)) and len(padding) == rank:
        totals = [2 * p for p in padding]
    elif isinstance(padding, int):
        totals = [2 * padding] * rank
    elif padding in ("SAME", "VALID"):
        totals = [k - 1 if padding == "SAME" else 0 for k in kernel]
    else:
        raise ValueError(f"padding is {padding!r}\n  needs: an integer, {rank} or {2 * rank} of them, \"SAME\" or \"VALID\"")
    before = [(t + 1) // 2 for t in totals]
    return before, [t - b for t, b in zip(totals, before)]


def get_pad_tuple1d(padding, kernel):
    """(left, right); arguments and errors as of get_pad_tuple_generic."""
    return _flat(1, padding, kernel)


def get_pad_tuple(padding, kernel):
    """(top, left, bottom, right); arguments and errors as of get_pad_tuple_generic."""
    return _flat(2, padding, kernel)


def get_pad_tuple3d(padding, kernel):
    """(front, top, left, back, bottom, right); arguments and errors as of get_pad_tuple_generic."""
    return _flat(3, padding, kernel)


def _flat(rank, padding, kernel):
    before, after = get_pad_tuple_generic(padding, tuple(kernel)[:rank])
    return (*before, *after)
