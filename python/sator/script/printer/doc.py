"""Documents: the syntax of Python as objects, which `sator.script.printer.doc_printer.to_python_script` writes as text.

    x = IdDoc("x")
    AssignDoc(IdDoc("y"), OperationDoc(OperationKind.Add, [x, LiteralDoc(1)]))      y = x + 1

Lists that a document is given it keeps as tuples. Every document says with `source_paths` which parts of a program it was made from.
A constructor raises TypeError where an argument is no document of the kind that stands there.
"""
import enum

from sator.runtime.object_path import ObjectPath


class Doc:
    """What all documents are."""

    _paths = ()

    @property
    def source_paths(self):
        """The paths of what the document was made from, a tuple of ObjectPath; a list may be assigned."""
        return self._paths

    @source_paths.setter
    def source_paths(self, paths):
        self._paths = _each(self, "source_paths", paths, ObjectPath)


class ExprDoc(Doc):
    """An expression."""

    def attr(self, name):
        """`self.name`"""
        return AttrAccessDoc(self, name)

    def call(self, /, *args, **kwargs):
        """`self(*args, **kwargs)`"""
        return CallDoc(self, *args, **kwargs)

    def __getitem__(self, indices):
        """`self[indices]`, of one index or a tuple of them, SliceDoc among them."""
        return IndexDoc(self, indices if isinstance(indices, tuple) else (indices,))

    def __iter__(self):
        raise RuntimeError(f"a {type(self).__name__} has no items\n  needs: an index, x[i], makes an IndexDoc of any number\n  hint:  its elements, where it has some")


class StmtDoc(Doc):
    """A statement, with a comment."""

    _comment = None

    @property
    def comment(self):
        """Behind a statement of one line, above others, in the docstring of functions and classes; a text, or None."""
        return self._comment

    @comment.setter
    def comment(self, text):
        self._comment = None if text is None else _one(self, "comment", text, str)


class StmtBlockDoc(Doc):
    """Statements, one after the other."""

    def __init__(self, stmts):
        self.stmts = _each(self, "stmts", stmts, StmtDoc)


class LiteralDoc(ExprDoc):
    """A constant of Python: a text, an integer, a number, True, False or None."""

    def __init__(self, value, path=None):
        if value is not None and not isinstance(value, (str, int, float)):
            raise _wrong(self, "value", value, "a text, a number, True, False or None")
        self.value = value
        if path is not None:
            self.source_paths = [path]


class IdDoc(ExprDoc):
    """A name."""

    def __init__(self, name):
        self.name = _one(self, "name", name, str)


class AttrAccessDoc(ExprDoc):
    """`value.name`"""

    def __init__(self, value, name):
        self.value, self.name = _one(self, "value", value, ExprDoc), _one(self, "name", name, str)


class IndexDoc(ExprDoc):
    """`value[indices]`"""

    def __init__(self, value, indices):
        self.value = _one(self, "value", value, ExprDoc)
        self.indices = _each(self, "indices", indices, ExprDoc)


class CallDoc(ExprDoc):
    """`callee(*args, **kwargs)`; `kwargs_keys` are the names, `kwargs_values` what they are given."""

    def __init__(self, callee, /, *args, **kwargs):
        self.callee = _one(self, "callee", callee, ExprDoc)
        self.args = _each(self, "args", args, ExprDoc)
        self.kwargs_keys = tuple(kwargs)
        self.kwargs_values = _each(self, "kwargs", kwargs.values(), ExprDoc)


@enum.unique
class OperationKind(enum.IntEnum):
    """The operators, by their names in Python's `ast`; those of one operand and those of two stand between marks."""

    _UnaryStart = 0
    USub = 1
    Invert = 2
    Not = 3
    _UnaryEnd = 4
    _BinaryStart = 5
    Add = 6
    Sub = 7
    Mult = 8
    Div = 9
    FloorDiv = 10
    Mod = 11
    Pow = 12
    LShift = 13
    RShift = 14
    BitAnd = 15
    BitOr = 16
    BitXor = 17
    Lt = 18
    LtE = 19
    Eq = 20
    NotEq = 21
    Gt = 22
    GtE = 23
    And = 24
    Or = 25
    _BinaryEnd = 26
    _SpecialStart = 27
    IfThenElse = 28
    _SpecialEnd = 29


class OperationDoc(ExprDoc):
    """An operator and its operands. IfThenElse has three: condition, value if true, value if not."""

    def __init__(self, kind, operands):
        try:
            self.kind = OperationKind(kind)
        except ValueError:
            raise _wrong(self, "kind", kind, "an OperationKind") from None
        self.operands = _each(self, "operands", operands, ExprDoc)


class LambdaDoc(ExprDoc):
    """`lambda args: body`"""

    def __init__(self, args, body):
        self.args, self.body = _each(self, "args", args, IdDoc), _one(self, "body", body, ExprDoc)


class TupleDoc(ExprDoc):
    """`(a, b)`"""

    def __init__(self, elements):
        self.elements = _each(self, "elements", elements, ExprDoc)


class ListDoc(ExprDoc):
    """`[a, b]`"""

    def __init__(self, elements):
        self.elements = _each(self, "elements", elements, ExprDoc)


class DictDoc(ExprDoc):
    """`{key: value}`, from a dictionary of documents; `keys` and `values` are tuples."""

    def __init__(self, content):
        _one(self, "content", content, dict)
        self.keys, self.values = _each(self, "keys", content.keys(), ExprDoc), _each(self, "values", content.values(), ExprDoc)


class SliceDoc(ExprDoc):
    """`start:stop:step` in an index; each may be None."""

    def __init__(self, start=None, stop=None, step=None):
        self.start, self.stop, self.step = (_optional(self, name, doc, ExprDoc) for name, doc in (("start", start), ("stop", stop), ("step", step)))


class AssignDoc(StmtDoc):
    """`lhs: annotation = rhs`, of which rhs or annotation may be None.

    Errors: ValueError where both are, and where an annotation is not of a single name.
    """

    def __init__(self, lhs, rhs, annotation=None):
        self.lhs = _one(self, "lhs", lhs, ExprDoc)
        self.rhs, self.annotation = _optional(self, "rhs", rhs, ExprDoc), _optional(self, "annotation", annotation, ExprDoc)
        if rhs is None and annotation is None:
            raise ValueError("AssignDoc: neither rhs nor annotation is there\n  needs: a value, an annotation, or both")
        if annotation is not None and isinstance(lhs, (TupleDoc, ListDoc)):
            raise ValueError(f"AssignDoc: lhs is a {type(lhs).__name__} with an annotation\n  needs: a single target for an annotation")


class IfDoc(StmtDoc):
    """`if predicate: then_branch`, `else: else_branch`. Errors: ValueError where both branches are empty."""

    def __init__(self, predicate, then_branch, else_branch):
        self.predicate = _one(self, "predicate", predicate, ExprDoc)
        self.then_branch, self.else_branch = _each(self, "then_branch", then_branch, StmtDoc), _each(self, "else_branch", else_branch, StmtDoc)
        if not self.then_branch and not self.else_branch:
            raise ValueError("IfDoc: both branches are empty\n  needs: a statement in one of them")


class WhileDoc(StmtDoc):
    """`while predicate: body`"""

    def __init__(self, predicate, body):
        self.predicate, self.body = _one(self, "predicate", predicate, ExprDoc), _each(self, "body", body, StmtDoc)


class ForDoc(StmtDoc):
    """`for lhs in rhs: body`"""

    def __init__(self, lhs, rhs, body):
        self.lhs, self.rhs = _one(self, "lhs", lhs, ExprDoc), _one(self, "rhs", rhs, ExprDoc)
        self.body = _each(self, "body", body, StmtDoc)


class ScopeDoc(StmtDoc):
    """`with rhs as lhs: body`; lhs may be None."""

    def __init__(self, lhs, rhs, body):
        self.lhs, self.rhs = _optional(self, "lhs", lhs, ExprDoc), _one(self, "rhs", rhs, ExprDoc)
        self.body = _each(self, "body", body, StmtDoc)


class ExprStmtDoc(StmtDoc):
    """An expression as a statement."""

    def __init__(self, expr):
        self.expr = _one(self, "expr", expr, ExprDoc)


class AssertDoc(StmtDoc):
    """`assert test, msg`; msg may be None."""

    def __init__(self, test, msg=None):
        self.test, self.msg = _one(self, "test", test, ExprDoc), _optional(self, "msg", msg, ExprDoc)


class ReturnDoc(StmtDoc):
    """`return value`"""

    def __init__(self, value):
        self.value = _one(self, "value", value, ExprDoc)


class FunctionDoc(StmtDoc):
    """`def name(args) -> return_type: body` below its decorators; a parameter is an AssignDoc, return_type may be None."""

    def __init__(self, name, args, decorators, return_type, body):
        self.name, self.args = _one(self, "name", name, IdDoc), _each(self, "args", args, AssignDoc)
        self.decorators = _each(self, "decorators", decorators, ExprDoc)
        self.return_type, self.body = _optional(self, "return_type", return_type, ExprDoc), _each(self, "body", body, StmtDoc)


class ClassDoc(StmtDoc):
    """`class name: body` below its decorators."""

    def __init__(self, name, decorators, body):
        self.name, self.decorators = _one(self, "name", name, IdDoc), _each(self, "decorators", decorators, ExprDoc)
        self.body = _each(self, "body", body, StmtDoc)


class CommentDoc(StmtDoc):
    """Lines of a comment alone."""

    def __init__(self, comment):
        self.comment = _one(self, "comment", comment, str)


class DocStringDoc(StmtDoc):
    """A docstring."""

    def __init__(self, docs):
        self.comment = _one(self, "docs", docs, str)


def _one(doc, name, value, kind):
    if not isinstance(value, kind):
        raise _wrong(doc, name, value, _NEEDS.get(kind) or f"{'an' if kind.__name__[0] in 'AEIO' else 'a'} {kind.__name__}")
    return value


def _optional(doc, name, value, kind):
    return None if value is None else _one(doc, name, value, kind)


def _each(doc, name, values, kind):
    if isinstance(values, (str, bytes, Doc)) or getattr(values, "__iter__", None) is None:
        raise _wrong(doc, name, values, f"a list of {kind.__name__}")
    return tuple(_one(doc, f"an item of {name}", v, kind) for v in values)


_NEEDS = {str: "a text", dict: "a dictionary"}


def _wrong(doc, name, value, needs):
    return TypeError(f"{type(doc).__name__}: {name} = {value!r} is a {type(value).__name__}\n  needs: {needs}")
