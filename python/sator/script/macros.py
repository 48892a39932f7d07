"""Macros: pieces of programs that are written out where a program calls them.

    @T.macro
    def add_one(A, i):
        A[i] = A[i] + T.float32(1)

    @T.prim_func
    def main(A: T.Buffer((16,), "float32")):
        for i in range(16):
            add_one(A, i)

A hygienic macro (the default) sees the names that stood around its definition, with the values that they had then; another one
those of the program that calls it. What it assigns is its own in either case.
"""
import ast
import builtins
import inspect
import itertools
import re
import textwrap

_LANGUAGES = {"T", "R", "I", "tir", "relax", "range"}
_SIMPLE = (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)
_DEEPEST = 32  # macros inside of macros


class Macro:
    """A function that programs call by its text."""

    def __init__(self, func, names, hygienic):
        self.name, self.hygienic = func.__name__, hygienic
        self.signature = inspect.signature(func)
        try:
            source = inspect.getsource(func)
        except (OSError, TypeError):
            from sator.script.decorators import _no_source

            raise _no_source(func) from None
        body = ast.parse(textwrap.dedent(source)).body[0].body
        has_words = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and isinstance(body[0].value.value, str)
        self.body = body[1:] if has_words else body
        self.own = {n.id for s in self.body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        used = {n.id for s in self.body for n in ast.walk(s) if isinstance(n, ast.Name)} - self.own - set(self.signature.parameters) - _LANGUAGES
        self.captured = {n: names[n] for n in used if n in names}
        self.unknown = sorted(used - set(names) - set(dir(builtins)) - {self.name}) if hygienic else []

    def __call__(self, *args, **kwargs):
        raise TypeError(f"the macro {self.name} is called outside of a program\n  needs: a call in a statement of T.prim_func or R.function")


def macro(func=None, *, hygienic=True):
    """Makes a macro of a function; see the module. T.macro's body has statements; R.macro's may end in `return`."""
    import sys

    from sator.script.decorators import _names_around

    from_call = func is None

    def decorate(func):
        frame = sys._getframe(1 if from_call else 2)
        return Macro(func, _names_around(func, frame), hygienic)

    return decorate if from_call else decorate(func)


def written_out(text, names):
    """The text with every call of a macro among the names written out, and the names, with those that the macros have captured."""
    macros = {n: m for n, m in names.items() if isinstance(m, Macro) and re.search(rf"\b{n}\b", text)}
    if not macros:
        return text, names
    text = _one_a_line(text, macros)
    tree, lines, names = ast.parse(text), text.splitlines(), dict(names)
    writer = _Writer(names, {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} | {a.arg for a in ast.walk(tree) if isinstance(a, ast.arg)})
    for statement in sorted((n for n in ast.walk(tree) if isinstance(n, _SIMPLE)), key=lambda n: -n.lineno):
        if made := writer.statement(statement, macros, 0):
            new = textwrap.indent("\n".join(map(ast.unparse, made)), " " * statement.col_offset).splitlines()
            lines[statement.lineno - 1:statement.end_lineno] = new
    return "\n".join(lines) + "\n", names


def _one_a_line(text, macros):
    """The text with statements that call a macro on lines of their own, where they share one: `for i in range(4): inc(A, i)`."""
    lines = text.splitlines()
    shared = {n.lineno for n in ast.walk(ast.parse(text)) if isinstance(n, _SIMPLE)
              and any(isinstance(c, ast.Call) and getattr(c.func, "id", None) in macros for c in ast.walk(n))
              and (lines[n.lineno - 1].encode()[:n.col_offset].strip() or lines[n.end_lineno - 1].encode()[n.end_col_offset:].strip().startswith(b";"))}
    if not shared:
        return text
    for first, *rest in reversed(_outermost(ast.parse(text).body, shared)):
        new = textwrap.indent("\n".join(map(ast.unparse, [first, *rest])), " " * first.col_offset).splitlines()
        lines[first.lineno - 1:(rest or [first])[-1].end_lineno] = new
    return "\n".join(lines) + "\n"


def _outermost(statements, shared):
    """The statements that begin on such a line, those of one line together, without what is inside of them."""
    out = []
    for s in statements:
        if s.lineno in shared:
            if out and out[-1][0].lineno == s.lineno:
                out[-1].append(s)
            else:
                out.append([s])
            continue
        for part in ("body", "orelse"):
            out += _outermost(getattr(s, part, []), shared)
    return out


class _Writer:
    def __init__(self, names, used):
        self.names, self.used = names, used  # values by name; the names that are taken

    def fresh(self, name):
        made = next(n for n in itertools.chain([name], (f"{name}_{i}" for i in itertools.count(1))) if n not in self.used and n not in self.names)
        self.used.add(made)
        return made

    def captured(self, name, value):
        made = self.fresh(name)
        self.names[made] = value
        return ast.Name(made, ast.Load())

    def statement(self, statement, macros, depth):
        """The statements in the place of one that calls macros; None where it calls none."""
        calls = _Calls(self, macros, depth)
        changed = calls.visit(statement)
        if not calls.before and not calls.found:
            return None
        is_call = isinstance(changed, ast.Expr) and getattr(changed, "value", None) is None
        return [*calls.before, *([] if is_call else [changed])] or [ast.Pass()]

    def call(self, node, macro, depth):
        """(statements, result or None) of one call."""
        if depth > _DEEPEST:
            raise RecursionError(f"the macro {macro.name} calls itself\n  needs: macros that end")
        if macro.unknown:
            raise NameError(f"the macro {macro.name}: the name {macro.unknown[0]} is not defined where the macro is\n"
                            "  needs: parameters, or names that stand around the macro\n  hint:  T.macro(hygienic=False) sees the names of the caller")
        try:
            bound = macro.signature.bind(*node.args, **{k.arg: k.value for k in node.keywords})
        except TypeError as e:
            raise TypeError(f"the macro {macro.name}: {e}\n  needs: {macro.name}{macro.signature}") from None
        words, before = {}, []
        for name, parameter in macro.signature.parameters.items():
            if name in bound.arguments:
                words[name] = bound.arguments[name]
            else:
                words[name] = self.captured(name, parameter.default)
        for name in sorted(macro.own):
            made = ast.Name(self.fresh(name), ast.Load())
            if name in words:  # a parameter that the macro assigns
                before.append(ast.Assign([ast.Name(made.id, ast.Store())], words[name]))
            words[name] = made
        inner = {n: m for n, m in (macro.captured if macro.hygienic else self.names).items() if isinstance(m, Macro)}
        if macro.hygienic:
            words.update({n: self.captured(n, v) for n, v in macro.captured.items() if n not in inner})
        statements = [_Words(words).visit(s) for s in ast.parse("\n".join(map(ast.unparse, macro.body))).body]
        result = None
        if isinstance(statements[-1], ast.Return):
            result = statements.pop().value
        statements = self.block(statements, inner, depth + 1)
        if result is not None:
            calls = _Calls(self, inner, depth + 1)
            result = calls.visit(result)
            statements += calls.before
        return [ast.fix_missing_locations(s) for s in before + statements], result

    def block(self, statements, macros, depth):
        out = []
        for s in statements:
            if isinstance(s, _SIMPLE):
                out += self.statement(s, macros, depth) or [s]
                continue
            for part in ("body", "orelse"):
                if getattr(s, part, None):
                    setattr(s, part, self.block(getattr(s, part), macros, depth))
            out.append(s)
        return out


class _Words(ast.NodeTransformer):
    """Expressions in the place of names."""

    def __init__(self, words):
        self.words = words

    def visit_Name(self, node):  # noqa: N802
        made = self.words.get(node.id)
        if made is None:
            return node
        return ast.Name(made.id, node.ctx) if isinstance(made, ast.Name) else made


class _Calls(ast.NodeTransformer):
    """Results in the place of calls of macros; `before`: the statements that give them."""

    def __init__(self, writer, macros, depth):
        self.writer, self.macros, self.depth, self.before, self.found = writer, macros, depth, [], False

    def visit_Call(self, node):  # noqa: N802
        node = self.generic_visit(node)
        macro = self.macros.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if macro is None:
            return node
        self.found = True
        statements, result = self.writer.call(node, macro, self.depth)
        self.before += statements
        return result
