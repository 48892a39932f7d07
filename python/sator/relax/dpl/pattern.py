"""Patterns of expressions. A pattern object that stands in several places matches the same value in all of them."""
from sator import _core
from sator.relax.dpl.context import PatternContext

__all__ = ["DFPattern", "AndPattern", "AttrPattern", "CallPattern", "ConstantPattern", "DataflowVarPattern", "DataTypePattern", "ExprPattern",
           "ExternFuncPattern", "FunctionPattern", "GlobalVarPattern", "NotPattern", "OrPattern", "PatternSeq", "PrimArrPattern",
           "SameShapeConstraint", "ShapePattern", "StructInfoPattern", "TupleGetItemPattern", "TuplePattern", "UnorderedTuplePattern",
           "VarPattern", "WildcardPattern", "has_attr", "has_dtype", "is_call_dps_packed", "is_call_packed", "is_call_tir", "is_const",
           "is_dfv", "is_expr", "is_gv", "is_op", "is_shape", "is_tuple", "is_tuple_get_item", "is_var", "make_fused_bias_activation_pattern",
           "reject", "wildcard"]


class DFPattern:
    """A pattern: `p(a, b)` a call, `p | q` one of two, `p & q` both, `~p` anything else; `p ^ q` p used by q, `p >> q` by q alone."""

    def __init__(self, kind, name="", parts=(), given=None):
        self._parts = list(parts)
        self._of = kind, name, given
        self._core = _core.pattern(kind, name, [p._core for p in self._parts], given)

    def __call__(self, *args, varg_default_wildcard=False, add_constraint=True):
        return CallPattern(self, args, varg_default_wildcard, add_constraint)

    def __or__(self, other):
        return OrPattern(self, other)

    def __and__(self, other):
        return AndPattern(self, other)

    def __invert__(self):
        return reject(self)

    def has_attr(self, attrs):
        """A call, or a function, whose attributes have these values: {"axis": 1}."""
        return AttrPattern(self, attrs)

    def has_struct_info(self, struct_info):
        """A value of which this is known, or more."""
        return StructInfoPattern(self, struct_info)

    def has_dtype(self, dtype):
        """A tensor of the dtype."""
        return has_dtype(dtype, self)

    def has_shape(self, shape):
        """A tensor whose extents are these, as far as can be proven."""
        if not isinstance(shape, (list, tuple)):
            raise ValueError(f"has_shape({shape!r})\n  needs: a list or a tuple of extents")
        return ShapePattern(self, shape)

    def match(self, expr, var2val=None):
        """Whether an expression matches.

        var2val   what variables are bound to (relax.analysis.get_var2val): the pattern's parts then match through them
        """
        return _core.match_pattern(self._core, expr, var2val) is not None

    def extract_matched_expr(self, expr, var2val=None):
        """What each part of the pattern matches: {pattern: expression}; None where the expression does not match."""
        found = _core.match_pattern(self._core, expr, var2val)
        return None if found is None else self._by_pattern(found)

    def _by_pattern(self, found):
        objects = {}

        def collect(pattern):
            objects[pattern._core.address] = pattern
            for part in pattern._parts:
                collect(part)

        collect(self)
        return {objects[address]: expr for address, expr in found if address in objects}

    def used_by(self, other, index=-1):
        """Demands, in the context around, that what `other` matches uses what this matches; as argument `index` unless that is -1."""
        return PatternSeq([self]).used_by(other, index)

    def only_used_by(self, other, index=-1):
        """As used_by, and nothing else uses it."""
        return PatternSeq([self]).only_used_by(other, index)

    def __xor__(self, other):
        return self.used_by(other)

    def __rshift__(self, other):
        return self.only_used_by(other)

    def fork_to(self, *others):
        """Used by each of the others."""
        for other in others:
            self.used_by(other)

    def dup(self):
        """The same pattern as another object: it may match another value."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        kind, name, given = self._of
        copy._core = _core.pattern(kind, name, [p._core for p in self._parts], given)
        return copy

    def same_shape_as(self, *others):
        """Demands, in the context around, that all have one shape."""
        return SameShapeConstraint(self, *others)

    def __repr__(self):
        kind, name, given = self._of
        words = [repr(name)] if name else []
        words += [repr(p) for p in self._parts] + ([repr(given)] if given is not None else [])
        return f"{type(self).__name__}({', '.join(words)})"


class WildcardPattern(DFPattern):
    """Anything."""

    def __init__(self):
        super().__init__("wildcard")


class VarPattern(DFPattern):
    """A variable, of a name where one is given."""

    def __init__(self, name_hint="", _kind="var"):
        super().__init__(_kind, name_hint)
        self.name = name_hint

    def name_hint(self):
        """The name that the variable has to have, or ""."""
        return self.name


class DataflowVarPattern(VarPattern):
    """A variable of a dataflow block."""

    def __init__(self, name_hint=""):
        super().__init__(name_hint, "dataflow_var")


class GlobalVarPattern(VarPattern):
    """The name of a function of the module."""

    def __init__(self, name_hint=""):
        super().__init__(name_hint, "global_var")


class ExternFuncPattern(DFPattern):
    """A function of the runtime, by its name."""

    def __init__(self, global_symbol=""):
        super().__init__("extern_func", global_symbol)
        self.global_symbol = global_symbol


class ConstantPattern(DFPattern):
    """A constant."""

    def __init__(self):
        super().__init__("constant")


class ExprPattern(DFPattern):
    """An expression equal to one that is given; an op stands for itself."""

    def __init__(self, expr):
        self.expr = expr
        if isinstance(expr, _core.relax.Op):
            super().__init__("op", expr.name)
        else:
            super().__init__("expression", given=expr)


class CallPattern(DFPattern):
    """A call.

    varg_default_wildcard   the call may have more arguments
    add_constraint          in a PatternContext, what matches the arguments is used by what matches the call
    """

    def __init__(self, op, args, varg_default_wildcard=False, add_constraint=True):
        self.op, self.args = op, None if args is None else list(args)
        if args is None:
            super().__init__("any_call", parts=[op])
            return
        super().__init__("call", parts=[op, *self.args], given=bool(varg_default_wildcard))
        if add_constraint:
            for i, arg in enumerate(self.args):
                arg.used_by(self, i)


class FunctionPattern(DFPattern):
    """A function inside of a graph."""

    def __init__(self, params, body):
        self.params, self.body = list(params), body
        super().__init__("function", parts=[body, *self.params])


class TuplePattern(DFPattern):
    """A tuple of these items."""

    def __init__(self, fields, _unordered=False):
        self.fields = list(fields)
        super().__init__("tuple", parts=self.fields, given=_unordered)

    def __getitem__(self, index):
        if index is not None:
            if not -len(self.fields) <= index < len(self.fields):
                raise IndexError(f"item {index} of a tuple of {len(self.fields)}")
            index %= len(self.fields)
        return is_tuple_get_item(self, index)

    def __len__(self):
        return len(self.fields)


class UnorderedTuplePattern(TuplePattern):
    """A tuple of these items in any order."""

    def __init__(self, fields):
        super().__init__(fields, True)


class TupleGetItemPattern(DFPattern):
    """An item of a tuple; any of them without an index."""

    def __init__(self, tuple_value, index=None):
        self.tuple, self.index = tuple_value, -1 if index is None else index
        super().__init__("item", parts=[tuple_value], given=None if index in (None, -1) else index)


class OrPattern(DFPattern):
    """One of two, the left one if both match."""

    def __init__(self, left, right):
        self.left, self.right = left, right
        super().__init__("either", parts=[left, right])


class AndPattern(DFPattern):
    """What both match."""

    def __init__(self, left, right):
        self.left, self.right = left, right
        super().__init__("both", parts=[left, right])


class NotPattern(DFPattern):
    """What a pattern does not match."""

    def __init__(self, to_reject):
        self.reject = to_reject
        super().__init__("except", parts=[to_reject])


class StructInfoPattern(DFPattern):
    """What `pattern` matches where this is known of it, or more."""

    def __init__(self, pattern, struct_info):
        self.pattern, self.struct_info = pattern, struct_info
        super().__init__("has_struct_info", parts=[pattern], given=struct_info)


class DataTypePattern(DFPattern):
    """What `pattern` matches where it is a tensor of the dtype."""

    def __init__(self, pattern, dtype):
        self.pattern, self.dtype = pattern, dtype
        super().__init__("has_dtype", parts=[pattern], given=dtype)


class ShapePattern(DFPattern):
    """What `pattern` matches where it is a tensor of these extents, as far as can be proven."""

    def __init__(self, pattern, shape):
        self.pattern, self.shape = pattern, list(shape)
        super().__init__("has_shape", parts=[pattern], given=self.shape)


class AttrPattern(DFPattern):
    """What `pattern` matches where it is a call, or a function, whose attributes have these values."""

    def __init__(self, pattern, attrs):
        self.pattern, self.attrs = pattern, dict(attrs)
        super().__init__("has_attrs", parts=[pattern], given=self.attrs)


class PrimArrPattern(DFPattern):
    """A shape of these extents."""

    def __init__(self, shape):
        self.fields = list(shape)
        super().__init__("shape", given=self.fields)

    def __getitem__(self, index):
        return self.fields[index]

    def __len__(self):
        return len(self.fields)


class SameShapeConstraint:
    """All of these patterns match tensors of one shape."""

    def __init__(self, *args):
        self.args = list(args)
        context = PatternContext.current()
        if context is not None:
            context._add_same_shape(self.args)


class PatternSeq:
    """Patterns of which each is used by the next."""

    def __init__(self, patterns, only_use=False):
        self.patterns = list(patterns)
        for before, after in zip(self.patterns, self.patterns[1:]):
            _edge(before, after, only_use, -1)

    def used_by(self, other, index=-1):
        """Demands that what `other` matches uses what the last of these matches; as argument `index` unless that is -1."""
        return self._joined(other, False, index)

    def only_used_by(self, other, index=-1):
        """As used_by, and nothing else uses it."""
        return self._joined(other, True, index)

    def _joined(self, other, only, index):
        after = other.patterns if isinstance(other, PatternSeq) else [other]
        _edge(self.patterns[-1], after[0], only, index)
        out = PatternSeq([])
        out.patterns = [*self.patterns, *after]
        return out

    def __xor__(self, other):
        return self.used_by(other)

    def __rshift__(self, other):
        return self.only_used_by(other)

    def __getitem__(self, index):
        return self.patterns[index]

    def dup(self):
        """The same sequence of other objects."""
        return PatternSeq([p.dup() for p in self.patterns])


def _edge(before, after, only, index):
    context = PatternContext.current()
    if context is not None:
        context._add_edge(before, after, only, index)


def wildcard():
    """Anything."""
    return WildcardPattern()


def is_var(name=""):
    """A variable, of a name where one is given."""
    return VarPattern(name)


def is_dfv(name=""):
    """A variable of a dataflow block."""
    return DataflowVarPattern(name)


def is_gv(name=""):
    """The name of a function of the module."""
    return GlobalVarPattern(name)


def is_const():
    """A constant."""
    return ConstantPattern()


def is_expr(expr):
    """An expression equal to this one."""
    return ExprPattern(expr)


def is_op(op_name):
    """An op: is_op("relax.add")(a, b) is a call of it. Errors: there is no such op."""
    return ExprPattern(_core.op_ref(op_name.removeprefix("relax.")))


def is_tuple(fields, unordered=False):
    """A tuple of these items, in any order if that is said."""
    return UnorderedTuplePattern(fields) if unordered else TuplePattern(fields)


def is_tuple_get_item(tuple_value, index=None):
    """An item of a tuple; any of them without an index."""
    return TupleGetItemPattern(tuple_value, index)


def is_shape(shape):
    """A shape of these extents."""
    if not isinstance(shape, (list, tuple)):
        raise ValueError(f"is_shape({shape!r})\n  needs: a list or a tuple of extents")
    return PrimArrPattern(shape)


def has_dtype(dtype, pattern=None):
    """A tensor of the dtype."""
    return DataTypePattern(pattern or wildcard(), dtype)


def has_attr(attrs, pattern=None):
    """A call, or a function, whose attributes have these values."""
    return AttrPattern(pattern or wildcard(), attrs)


def is_call_tir(func_name, args=None, tir_vars=None):
    """R.call_tir of the function of a name."""
    return _call_tir("relax.call_tir", GlobalVarPattern(func_name), args, tir_vars)


def is_call_dps_packed(func_name, args=None):
    """R.call_dps_packed of the function of a name."""
    return _call_tir("relax.call_dps_packed", ExternFuncPattern(func_name), args, None)


def _call_tir(op, callee, args, tir_vars):
    args = wildcard() if args is None else TuplePattern(args) if isinstance(args, (list, tuple)) else args
    more = [] if tir_vars is None else [tir_vars]
    return is_op(op)(callee, args, *more, add_constraint=False)


def is_call_packed(func_name, args=None):
    """R.call_packed of the function of a name."""
    callee = ExternFuncPattern(func_name)
    return CallPattern(callee, None) if args is None else callee(*args)


def reject(pattern):
    """What the pattern does not match."""
    return NotPattern(pattern)


def make_fused_bias_activation_pattern(op_name, with_bias=False, activation=None):
    """A call of the op with two arguments; a bias added to it and an activation, if they are asked for."""
    out = is_op(op_name)(wildcard(), wildcard())
    if with_bias:
        out = is_op("relax.add")(out, wildcard())
    return is_op(activation)(out) if activation else out
