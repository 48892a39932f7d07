"""Integer expressions: simpler forms, proofs, bounds and residues."""
from typing import NamedTuple

from sator import _core


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
