"""Integer expressions: simpler forms, proofs, bounds, residues and sets; maps of iterators."""
import enum
from typing import NamedTuple

from sator import _core
from sator.iter_map import (  # noqa: F401
    IterMapExpr, IterMapLevel, IterMark, IterSplitExpr, IterSumExpr, detect_iter_map, inverse_affine_iter_map, iter_map_simplify,
    normalize_iter_map_to_expr, normalize_to_iter_sum, subspace_divide)

__path__ = []  # TVM's modules below are found by sator.paths


class ConstIntBound(NamedTuple):
    """The least and the greatest value of an expression; where none is known NEG_INF and POS_INF."""

    min_value: int
    max_value: int


ConstIntBound.POS_INF, ConstIntBound.NEG_INF = (1 << 63) - 1, -((1 << 63) - 1)


class ModularSet(NamedTuple):
    """The values coeff * k + base over all integers k; coeff 0: the constant base."""

    coeff: int
    base: int


class ProofStrength:
    """How hard Analyzer.can_prove tries."""

    DEFAULT, SYMBOLIC_BOUND = 0, 1


class Extension(enum.Flag):
    """What Analyzer.enabled_extensions may turn on; the values are TVM's. The other two of TVM's are not there."""

    NoExtensions, TransitivelyProveInequalities, ApplyConstraintsToBooleanBranches = 0, 1, 4


class IntSet:
    """The integers from min_value to max_value, both included; neg_inf() and pos_inf() are open ends."""

    def __init__(self, min_value, max_value):
        self.min_value, self.max_value = min_value, max_value
        self._is_empty = False

    @staticmethod
    def _of(given):
        low, high, is_empty = given
        out = IntervalSet(neg_inf() if low is None else low, pos_inf() if high is None else high)
        if is_empty:
            out.min_value, out.max_value, out._is_empty = pos_inf(), neg_inf(), True
        return out

    def _given(self):
        def end(value, limit):
            return None if value is limit else value

        return end(self.min_value, neg_inf()), end(self.max_value, pos_inf()), self.is_nothing()

    @staticmethod
    def single_point(point):
        """The set of one value."""
        return IntervalSet(point, point)

    @staticmethod
    def vector(vec):
        """The values of a vector's lanes."""
        return IntSet._of(_core.vector_set(vec))

    def is_nothing(self):
        """Whether it is known to be empty."""
        return self._is_empty or self.min_value is pos_inf() or self.max_value is neg_inf()

    def is_everything(self):
        """Whether both ends are open."""
        return not self.is_nothing() and self.min_value is neg_inf() and self.max_value is pos_inf()

    def __repr__(self):
        return f"IntervalSet[{self.min_value}, {self.max_value}]"


class IntervalSet(IntSet):
    """As IntSet: all sets here are intervals."""


def neg_inf():
    """The open lower end of a set."""
    return _limit("neg_inf")


def pos_inf():
    """The open upper end of a set."""
    return _limit("pos_inf")


_LIMITS = {}


def _limit(name):
    if name not in _LIMITS:
        from sator import tir

        _LIMITS[name] = tir.Var(name, "handle")
    return _LIMITS[name]


def _sets(given):
    return {v: s._given() for v, s in given.items()}


def deduce_bound(var, cond, hint_map=None, relax_map=None):
    """The values of a variable for which a condition surely holds: b + a * 4 < 17 with b in [0, 4] gives a <= 3. An IntSet.

    hint_map    {variable: IntSet} that tells signs of factors
    relax_map   {variable: IntSet} of variables that take all their values at once
    """
    return IntSet._of(_core.deduce_bound(var, cond, _sets(hint_map or {}), _sets(relax_map or {})))


def detect_linear_equation(expr, var_list):
    """[coefficient of each variable..., base] of a linear expression; nothing where it is not linear in them."""
    return _core.detect_linear(expr, list(var_list)) or []


def detect_clip_bound(expr, var_list):
    """[least, greatest value of each variable...] that a conjunction of comparisons states, None where it states none; nothing for other conditions."""
    return [end for low, high, _ in _core.detect_clip_bound(expr, list(var_list)) or [] for end in (low, high)]


def _estimated(how, region, var_dom, predicate):
    sets = _core.estimate_region(how, list(region), dict(var_dom), predicate)
    return None if sets is None else [IntSet._of(s) for s in sets]


def estimate_region_lower_bound(region, var_dom, predicate=True):
    """A box, an IntSet per dimension, that the region (a list of Ranges) surely covers while variables run over {variable: Range}; None: not known."""
    return _estimated("lower", region, var_dom, predicate)


def estimate_region_strict_bound(region, var_dom, predicate=True):
    """The box that the region exactly covers; None where its indices leave gaps or depend on each other."""
    return _estimated("strict", region, var_dom, predicate)


def estimate_region_upper_bound(region, var_dom, predicate=True):
    """A box that covers the region."""
    return _estimated("upper", region, var_dom, predicate)


def union_lower_bound(sets):
    """A set that the union of sets surely covers."""
    return IntSet._of(_core.unite_lower_bound([s._given() for s in sets]))


class ConstraintScope:
    """A condition that holds inside of `with`."""

    def __init__(self, fenter):
        self._enter, self._held = fenter, None

    def __enter__(self):
        self._held = self._enter()

    def __exit__(self, *_error):
        self._held.end()


class Analyzer:
    """Facts about variables, and what follows from them for expressions of int32 and int64, which are taken not to overflow."""

    def __init__(self):
        self._core = _core.Analyzer()

    def bind(self, var, expr):
        """From now on the variable lies in a Range, or is the value of an expression."""
        self._core.bind(var, expr)

    def simplify(self, expr, steps=2):
        """A simpler expression of the same value: canonical form and rewrite rules in turn, `steps` times."""
        return self._core.simplify(expr, steps)

    def rewrite_simplify(self, expr):
        """A simpler expression, by rewrite rules alone."""
        return self._core.rewrite(expr)

    def canonical_simplify(self, expr):
        """The expression as a sum of scaled terms: (x // 4) * 4 + x % 4 is x."""
        return self._core.canonical(expr)

    def can_prove(self, expr, strength=ProofStrength.DEFAULT):
        """Whether a condition is known to hold always. False: it is not known."""
        return self._core.prove(expr, strength == ProofStrength.SYMBOLIC_BOUND)

    def can_prove_equal(self, lhs, rhs):
        """Whether two expressions are known to have one value."""
        return self._core.prove_equal(lhs, rhs)

    def const_int_bound(self, expr):
        """The least and the greatest value that the expression may have."""
        low, high = self._core.bounds(expr)
        return ConstIntBound(ConstIntBound.NEG_INF if low is None else low, ConstIntBound.POS_INF if high is None else high)

    def modular_set(self, expr):
        """By what the expression is known to be divisible, and the remainder."""
        return ModularSet(*self._core.modular(expr))

    def int_set(self, expr, dom_map=None):
        """The values of an expression while variables run over {variable: IntSet}: an IntSet."""
        return IntSet._of(_core.set_over(self._core, expr, _sets(dom_map or {})))

    def constraint_scope(self, constraint):
        """Inside of `with` the condition holds."""
        return ConstraintScope(lambda: self._core.constrain(constraint))

    def update(self, var, info, override=False):
        """From now on a variable has a ConstIntBound or a ModularSet: this one alone. Errors: TypeError for other facts."""
        if isinstance(info, ConstIntBound):
            self._core.bind_bounds(var, *info)
        elif isinstance(info, ModularSet):
            self._core.bind_modular(var, *info)
        else:
            raise TypeError(f"update: {info!r} is a {type(info).__name__}\n  needs: a ConstIntBound or a ModularSet")

    @property
    def enabled_extensions(self):
        """What proofs use besides: an Extension."""
        return ((Extension.TransitivelyProveInequalities if self._core.chain_inequalities else Extension.NoExtensions)
                | (Extension.ApplyConstraintsToBooleanBranches if self._core.constrain_branches else Extension.NoExtensions))

    @enabled_extensions.setter
    def enabled_extensions(self, flags):
        flags = Extension(flags)
        self._core.chain_inequalities = bool(flags & Extension.TransitivelyProveInequalities)
        self._core.constrain_branches = bool(flags & Extension.ApplyConstraintsToBooleanBranches)


def __getattr__(name):
    from sator import paths

    deep = paths.submodule(__name__, name)
    if deep is not None:
        return deep
    raise paths.missing(__name__, name, globals())
