"""Layouts of tensors by letters, and the way from one to another.

    way = tir.bijective_layout("NCHW", "NCHW16c")
    way.forward_shape((1, 32, 7, 7))        # [1, 2, 7, 7, 16]
    way.forward_index([0, 18, 6, 6])        # [0, 1, 6, 6, 2]

A capital is an axis, the small letter behind a number a part of it: NCHW16c has the channels in groups of 16, whose elements lie side by side.
"""
import re

from sator import _core

_UNDEFINED = "__undef__"


class Layout:
    """The axes of a tensor, outermost first. `name` is what it was made from; `axes` has an IterVar for each."""

    def __init__(self, name, dtype="int32"):
        if not isinstance(name, str):
            raise TypeError(f"layout: {name!r} is a {type(name).__name__}\n  needs: letters and numbers, such as \"NCHW16c\"")
        if not str(dtype).startswith(("int", "uint")):
            raise TypeError(f"layout: dtype = {dtype!r}\n  needs: a dtype of integers")
        self.name = name
        parts = [] if name == _UNDEFINED else re.findall(r"(\d*)([A-Za-z])", name)
        letters = [letter for _, letter in parts]
        if name != _UNDEFINED and "".join(n + letter for n, letter in parts) != name:
            raise ValueError(f"the layout {name}\n  needs: letters, and a number before each small one")
        for number, letter in parts:
            if letter.isupper() and (number or letters.count(letter) > 1):
                raise ValueError(f"the layout {name}: {number}{letter}\n  needs: each capital once, without a number")
            if letter.islower() and (not number or int(number) == 0 or letter.upper() not in letters):
                raise ValueError(f"the layout {name}: {number}{letter}\n  needs: a positive number before a small letter, and its capital elsewhere")
        self._parts = [(letter, int(number) if number else None) for number, letter in parts]
        self.axes = [_axis(letter, factor, str(dtype)) for letter, factor in self._parts]

    def __len__(self):
        return len(self._parts)

    def __contains__(self, axis):
        return len(axis) == 1 and axis in self._letters()

    def __getitem__(self, index):
        if not -len(self) <= index < len(self):
            raise IndexError(f"axis {index} of the layout {self.name}\n  needs: an axis of {len(self)}")
        return self._letters()[index]

    def __repr__(self):
        return f"Layout({self.name})"

    def __eq__(self, other):
        return isinstance(other, Layout) and other.name == self.name

    def __hash__(self):
        return hash(self.name)

    def _letters(self):
        return [letter for letter, _ in self._parts]

    def index_of(self, axis):
        """The position of an axis by its letter, -1 where the layout lacks it."""
        return self._letters().index(axis) if axis in self else -1

    def factor_of(self, axis):
        """How many elements the small letters of an axis count, -1 where there are none: 16 of C, and of c, in NCHW16c."""
        out = None
        for letter, factor in self._parts:
            if letter == axis.lower():
                out = factor * (out or 1)
        return -1 if out is None else out

    def _stride(self, at):
        """How many elements of its axis a step along this part goes."""
        letter, out = self._parts[at][0], 1
        for inner, factor in self._parts[at + 1:] if letter.islower() else self._parts:
            if inner == letter.lower():
                out *= factor
        return out


def _axis(letter, factor, dtype):
    from sator import ir, tir

    extent = tir.Var(f"{letter}_shape", dtype) if factor is None else _core.const(factor, dtype)
    return tir.IterVar(ir.Range.from_min_extent(_core.const(0, dtype), extent), tir.Var(letter, dtype), tir.IterVar.DataPar)


class BijectiveLayout:
    """The way from the elements of one layout to those of another, and back; bijective_layout makes it."""

    def __init__(self, src_layout, dst_layout):
        for layout_ in (src_layout, dst_layout):
            if not isinstance(layout_, Layout):
                raise TypeError(f"BijectiveLayout: {layout_!r} is a {type(layout_).__name__}\n  needs: a Layout\n  hint:  tir.bijective_layout(\"NCHW\", \"NCHW16c\")")
        self.src_layout, self.dst_layout = src_layout, dst_layout

    def forward_index(self, index):
        """Where the element at `index` of the source lies in the destination. Errors: ValueError for an index of another length."""
        return _index(self.src_layout, self.dst_layout, index)

    def backward_index(self, index):
        """Where the element at `index` of the destination lies in the source. Errors: ValueError for an index of another length."""
        return _index(self.dst_layout, self.src_layout, index)

    def forward_shape(self, shape):
        """The shape in the destination's layout; a group that is not full counts. Errors: ValueError for a shape of another length."""
        return _shape(self.src_layout, self.dst_layout, shape)

    def backward_shape(self, shape):
        """The shape in the source's layout. Errors: ValueError for a shape of another length."""
        return _shape(self.dst_layout, self.src_layout, shape)

    def __repr__(self):
        return f"BijectiveLayout({self.src_layout.name}->{self.dst_layout.name})"


def _whole(layout, values, what):
    """The position along each axis, of the positions along its parts: {capital: expression}."""
    values = [_core.expr(v) for v in values]
    if len(values) != len(layout):
        raise ValueError(f"{what} of {len(values)} for the layout {layout.name}\n  needs: {len(layout)}, one for each letter")
    out = {}
    for i, (letter, value) in enumerate(zip(layout._letters(), values)):
        part = _core.binary("*", value, layout._stride(i)) if layout._stride(i) != 1 else value
        key = letter.upper()
        out[key] = _core.binary("+", out[key], part) if key in out else part
    return out


def _index(source, target, index):
    from sator.arith import Analyzer

    whole, out = _whole(source, index, "an index"), []
    for i, (letter, factor) in enumerate(target._parts):
        value = _core.binary("//", whole[letter.upper()], target._stride(i))
        out.append(value if factor is None else _core.binary("%", value, factor))
    analyzer = Analyzer()
    return [analyzer.simplify(e) for e in out]


def _shape(source, target, shape):
    from sator.arith import Analyzer

    given = _whole(source, shape, "a shape")
    for i, letter in enumerate(source._letters()):  # the capital's groups times their size: small letters add nothing
        if letter.isupper():
            given[letter] = _core.binary("*", shape[i], source._stride(i)) if source._stride(i) != 1 else _core.expr(shape[i])
    analyzer, out = Analyzer(), []
    for i, (letter, factor) in enumerate(target._parts):
        groups = target._stride(i)
        extent = _core.binary("//", _core.binary("+", given[letter], groups - 1), groups) if factor is None and groups > 1 else (
            given[letter] if factor is None else _core.const(factor, given[letter.upper()].dtype))
        out.append(analyzer.simplify(extent))
    return out


def layout(layout_str, dtype="int32"):
    """The layout that letters write: "NCHW", "NCHW16c". "__undef__" is none.

    dtype   of the axes' variables
    Errors: TypeError for a dtype that is no integers'; ValueError for a number without a letter, a small letter without its capital.
    """
    return Layout(layout_str, dtype)


def bijective_layout(src_layout, dst_layout):
    """The way from one layout to another, each a Layout or its letters; None where they have not the same axes."""
    source, target = (x if isinstance(x, Layout) else Layout(x) for x in (src_layout, dst_layout))
    axes = [{letter.upper() for letter in x._letters()} for x in (source, target)]
    return BijectiveLayout(source, target) if axes[0] and axes[0] == axes[1] else None
