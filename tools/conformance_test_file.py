"""What a conformance case leaves out and its test's file has: captured names, values of parameters, registered functions.

TVM_CHECKOUT names the checkout with the tests of the release.
"""
import ast
import builtins
import contextlib
import inspect
import itertools
import os
import re
from pathlib import Path

import sator


class Unsupported(Exception):
    """The case needs what is not built: its words name it."""


OPEN_FIXTURES = []  # generators of fixtures of the case that runs
CHECKOUT = os.environ.get("TVM_CHECKOUT")  # where captured names are defined, in the tests' own files


class TestFile:
    """What a case's test file defines: names of the test, of its class, or of the file, and the values of parameters."""

    def __init__(self, case, names):
        if not CHECKOUT:
            raise Unsupported("captured values, without TVM_CHECKOUT")
        path, _, test = case["source_test"].partition("::")
        self.path, self.names = str(Path(CHECKOUT) / path), names
        test, _, label = test.partition("[")
        self.scopes = [ast.parse(Path(self.path).read_text())]
        for part in test.split("::"):
            here = next((n for n in self.scopes[-1].body if getattr(n, "name", None) == part), None)
            if here is None:
                break
            self.scopes += [*self.bases(here), here]
        self.parameters = self.chosen(label.removesuffix("]"))
        self.active = set()

    def bases(self, scope):
        """The classes of the file that a class is made of, the outermost first."""
        names = {ast.unparse(b) for b in getattr(scope, "bases", ())}
        found = [n for n in self.scopes[0].body if isinstance(n, ast.ClassDef) and n.name in names]
        return [c for base in found for c in (*self.bases(base), base)]

    def source(self):
        """The text of the test, as Python writes it."""
        return ast.unparse(self.scopes[-1])

    def options(self):
        """{names of parameters: [values of each]}, as trees: of the decorators, and of tvm.testing.parameter and parameters."""
        out = {}
        for scope in reversed(self.scopes):
            for d in getattr(scope, "decorator_list", ()):
                if isinstance(d, ast.Call) and ast.unparse(d.func) == "pytest.mark.parametrize" and isinstance(d.args[1], (ast.List, ast.Tuple)):
                    wanted = d.args[0]
                    words = [w.strip() for w in wanted.value.split(",")] if isinstance(wanted, ast.Constant) else [w.value for w in wanted.elts]
                    out.setdefault(tuple(words), [[v] if len(words) == 1 else v.elts for v in d.args[1].elts])
            for node in scope.body:
                call = node.value if isinstance(node, ast.Assign) else None
                if isinstance(call, ast.Call) and ast.unparse(call.func).startswith("tvm.testing.parameter"):
                    target = node.targets[0]
                    words = [t.id for t in target.elts] if isinstance(target, ast.Tuple) else [target.id]
                    by_name = next((k.value for k in call.keywords if k.arg == "by_dict"), None)
                    if by_name is not None:
                        out.setdefault(tuple(words), [[v, k.value] for k, v in zip(by_name.keys, by_name.values)])
                    else:
                        out.setdefault(tuple(words), [v.elts if ast.unparse(call.func).endswith("parameters") else [v] for v in call.args])
        return out

    def arguments(self):
        """The names of the test's arguments, and of those of the fixtures among them."""
        functions = {n.name: n for scope in self.scopes for n in scope.body if isinstance(n, ast.FunctionDef)}
        test = self.scopes[-1]
        of = [n for scope in self.scopes[1:] for n in scope.body] if isinstance(test, ast.ClassDef) else [test]
        out, rest = set(), [a.arg for f in of if isinstance(f, ast.FunctionDef) for a in f.args.args]
        while rest:
            name = rest.pop()
            if name not in out:
                out.add(name)
                rest.extend(a.arg for a in functions[name].args.args) if name in functions else None
        return out

    def chosen(self, label):
        """{parameter: tree of its value} of the test whose name has this label: the values' texts, each cut at 40 letters."""
        if not label:
            return {}

        def word(tree):
            if isinstance(tree, ast.Name):  # a value that the file names stands written out in the label
                values = [n.value for n in self.scopes[0].body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == tree.id]
                tree = values[-1] if values else tree
            text = tree.value if isinstance(tree, ast.Constant) and isinstance(tree.value, str) else tree if isinstance(tree, str) else ast.unparse(tree)
            return re.sub(r"\s", "", text)[:40]

        groups = [(names, rows) for names, rows in self.options().items() if set(names) & self.arguments()]
        for n in range(1, len(groups) + 1):
            for used in itertools.permutations(groups, n):
                for values in itertools.product(*(options for _, options in used)):
                    words = [word(v[-1]) if len(v) > len(names) else "-".join(map(word, v)) for (names, _), v in zip(used, values)]
                    if "-".join(words) == label:
                        return {name: v for (names, _), row in zip(used, values) for name, v in zip(names, row)}
        return {}

    def register(self, words):
        """Registers the functions of Python's that the file registers by one of these names."""
        for scope in self.scopes:
            for node in scope.body:
                for d in getattr(node, "decorator_list", ()):
                    if isinstance(d, ast.Call) and ast.unparse(d.func).endswith("register_func") and ast.unparse(d.args[0]).strip("'\"") in words:
                        function = ast.FunctionDef(node.name, node.args, node.body, [])
                        self.run(function)
                        sator.register_func(d.args[0].value, self.names[node.name], override=True)

    def register_intrinsics(self, words):
        """Registers the tensor intrinsics that the file registers by one of these names."""
        for node in self.scopes[0].body:
            call = node.value if isinstance(node, ast.Expr) else None
            if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("TensorIntrin.register") and ast.unparse(call.args[0]).strip("'\"") in words:
                call.keywords.append(ast.keyword("override", ast.Constant(True)))
                self.run(node)

    def define(self, name, before=None):
        """Gives the name its value, that which it has before a line of the file. Errors: Unsupported where the file defines no such name."""
        if name in self.active or len(self.active) > 8:
            raise Unsupported(f"captured values that no text defines: {name}")
        self.active.add(name)
        try:
            fixtures = [n for n in self.scopes[-1].body if isinstance(self.scopes[-1], ast.ClassDef) and getattr(n, "name", "") in ("before", "expected")]
            if name in self.parameters:
                self.run(ast.Assign([ast.Name(name, ast.Store())], self.parameters[name]))
                again = [n for f in fixtures for n in f.body if isinstance(n, ast.Assign) and defines(n, name)]
                for node in again:  # x = tir.IntImm(dtype, x)
                    self.run(node)
                return
            for scope in reversed(self.scopes):
                methods = [n for n in fixtures if scope is self.scopes[-1]]
                found = [node for part in [*methods, scope] for node in part.body if defines(node, name)]
                found = [node for node in found if before is None or node.lineno < before] or found
                for node in found:
                    fixture = getattr(node, "decorator_list", None) and any("fixture" in ast.unparse(d) for d in node.decorator_list)
                    if fixture:
                        node = ast.FunctionDef(node.name, node.args, node.body, [])
                    self.run(node)
                    if fixture:
                        self.run(ast.parse(f"{name} = {name}({', '.join(a.arg for a in node.args.args)})").body[0])
                        if inspect.isgenerator(self.names[name]):  # what it does after its test, it does when the case is over
                            OPEN_FIXTURES.append(self.names[name])
                            self.names[name] = next(OPEN_FIXTURES[-1])
                if found:
                    return
        finally:
            self.active.discard(name)
        raise Unsupported(f"captured values that no text defines: {name}")

    def run(self, statement):
        module, early = ast.fix_missing_locations(ast.Module([statement], [])), []
        if isinstance(statement, ast.FunctionDef):  # the names that its body uses have to be there when it is called
            own = {a.arg for a in statement.args.args} | {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and node.id not in own and node.id not in self.names and not hasattr(builtins, node.id):
                    with contextlib.suppress(Unsupported):
                        self.define(node.id, statement.lineno)
                        early.append(node.id)
        for _ in range(20):
            try:
                exec(compile(module, self.path, "exec"), self.names)
                break
            except NameError as e:
                self.define(e.name)
        for name in early:  # and what it becomes after
            self.define(name)


def defines(node, name):
    """Whether a statement of a body, or one inside of its branches, gives the name its value."""
    if getattr(node, "name", None) == name:
        return True
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return any((a.asname or a.name) == name for a in node.names)
    if isinstance(node, (ast.If, ast.With)):
        return any(defines(n, name) for n in [*node.body, *getattr(node, "orelse", ())])
    return isinstance(node, ast.Assign) and any(isinstance(n, ast.Name) and n.id == name for t in node.targets for n in ast.walk(t))
