"""Quasi-affine maps of iterators, as objects with TVM's attributes. sator.arith offers them."""
from enum import IntEnum

from sator import _core


class IterMapLevel(IntEnum):
    """What detect_iter_map asks for: every point of the image once, every point at all, nothing."""

    Bijective, Surjective, NoCheck = 0, 1, 3

    @staticmethod
    def from_str(name):
        """The level of a name: bijective, surjective, nocheck. Errors: ValueError for another."""
        known = {"bijective": IterMapLevel.Bijective, "surjective": IterMapLevel.Surjective, "nocheck": IterMapLevel.NoCheck}
        if not isinstance(name, str) or name.lower() not in known:
            raise ValueError(f"from_str: {name!r} is no level\n  needs: one of {', '.join(known)}")
        return known[name.lower()]


class IterMapExpr:
    """What an index is made of: IterSumExpr or IterSplitExpr."""

    def same_as(self, other):
        """Whether both are one object."""
        return self is other


class IterMark:
    """An iterator over [0, extent): `source` is an expression, or an IterSumExpr."""

    def __init__(self, source, extent):
        self.source, self.extent = source, extent

    def same_as(self, other):
        """Whether both are one iterator."""
        return self is other

    def __repr__(self):
        return f"IterMark({self.source}, extent={self.extent})"


class IterSplitExpr(IterMapExpr):
    """((source // lower_factor) % extent) * scale of an IterMark."""

    def __init__(self, source, lower_factor, extent, scale):
        self.source, self.lower_factor, self.extent, self.scale = source, lower_factor, extent, scale

    @property
    def dtype(self):
        """Of its values."""
        return _dtype(self.extent)

    def __repr__(self):
        return f"IterSplit({self.source}, lower_factor={self.lower_factor}, extent={self.extent}, scale={self.scale})"


class IterSumExpr(IterMapExpr):
    """args[0] + args[1] + ... + base: IterSplitExpr's, and an expression without iterators."""

    def __init__(self, args, base):
        self.args, self.base = list(args), base

    @property
    def dtype(self):
        """Of its values."""
        return _dtype(self.base)

    def __repr__(self):
        return f"IterSum([{', '.join(map(repr, self.args))}], {self.base})"


def _dtype(e):
    return getattr(e, "dtype", "int32")


class IterMapResult:
    """What detect_iter_map found.

    indices             an IterSumExpr for each index; none where there is no such map
    errors              why there is none
    padding_predicate   true for points of the image that come from no iteration
    """

    def __init__(self, indices, errors, padding_predicate):
        self.indices, self.errors, self.padding_predicate = indices, errors, padding_predicate


def detect_iter_map(indices, input_iters, predicate=True, check_level=IterMapLevel.Surjective, simplify_trivial_iterators=True):
    """The indices as a quasi-affine map of iterators: sums of their splits by // and %. An IterMapResult.

    input_iters   {variable: Range}, independent of each other
    predicate     only such iterations count
    check_level   an IterMapLevel, or its name
    """
    found, error, padding = _core.detect_iter_map(list(indices), dict(input_iters), predicate, _level(check_level), simplify_trivial_iterators)
    return IterMapResult(found if not error else [], [error] if error else [], padding)


_IN_CORE = {IterMapLevel.Bijective: 0, IterMapLevel.Surjective: 1, IterMapLevel.NoCheck: 2}


def _level(level):
    return _IN_CORE[IterMapLevel.from_str(level) if isinstance(level, str) else IterMapLevel(level)]


def iter_map_simplify(indices, input_iters, predicate=True, check_level=IterMapLevel.Surjective, simplify_trivial_iterators=True):
    """The indices, simpler by their map; as they are where there is none. Arguments as of detect_iter_map."""
    return _core.iter_map_simplify(list(indices), dict(input_iters), predicate, _level(check_level), simplify_trivial_iterators)


def normalize_to_iter_sum(index, input_iters):
    """One index as an IterSumExpr, larger scales first, without checks. What is not of that form stays in its base."""
    return _core.normalize_to_iter_sum(index, dict(input_iters))


def normalize_iter_map_to_expr(expr):
    """An IterSumExpr or IterSplitExpr as an ordinary expression."""
    return _core.normalize_iter_map_to_expr(IterSumExpr([expr], 0) if isinstance(expr, IterSplitExpr) else expr)


def subspace_divide(bindings, input_iters, sub_iters, predicate=True, check_level=IterMapLevel.Surjective, simplify_trivial_iterators=True):
    """Divides each binding into outer * extent of inner + inner, where inner has the iterators `sub_iters` alone.

    A pair [outer, inner] of IterMarks for each binding, and one whose extents are the predicates of both; nothing where it cannot be done.
    Other arguments as of detect_iter_map.
    """
    found = _core.subspace_divide(list(bindings), dict(input_iters), list(sub_iters), predicate, _level(check_level), simplify_trivial_iterators)
    if found is None:
        return []
    divisions, outer_predicate, inner_predicate = found
    pairs = [[_mark(outer, outer_extent), _mark(inner, inner_extent)] for outer, outer_extent, inner, inner_extent in divisions]
    return [*pairs, [IterMark(IterSumExpr([], 0), outer_predicate), IterMark(IterSumExpr([], 0), inner_predicate)]]


def _mark(expr, extent):
    if getattr(expr, "value", None) is not None:  # a constant has no iterator
        return IterMark(IterSumExpr([], expr), extent)
    return IterMark(IterSumExpr([IterSplitExpr(IterMark(expr, extent), 1, extent, 1)], 0), extent)


def inverse_affine_iter_map(iter_map, outputs):
    """{variable: its value} for given values of the indices. `iter_map`: the indices that detect_iter_map(..., Bijective) gave."""
    return _core.inverse_affine_iter_map(list(iter_map), list(outputs))
