"""Documents of Python's syntax and their text, which Python's own parser reads again; paths, and what they underline."""
import ast
import random
import unittest

import sator
from sator.runtime.object_path import ArrayIndexPath, ObjectPath, RootPath
from sator.script.printer.doc import (AssertDoc, AssignDoc, AttrAccessDoc, CallDoc, ClassDoc, CommentDoc, DictDoc, DocStringDoc, ExprStmtDoc, ForDoc,
                                      FunctionDoc, IdDoc, IfDoc, IndexDoc, LambdaDoc, ListDoc, LiteralDoc, OperationDoc, OperationKind, ReturnDoc, ScopeDoc,
                                      SliceDoc, StmtBlockDoc, TupleDoc, WhileDoc)
from sator.script.printer.doc_printer import to_python_script

ROOT = ObjectPath.root()
COMPARISONS = ("Lt", "LtE", "Eq", "NotEq", "Gt", "GtE")
BINARY = ("Add", "Sub", "Mult", "Div", "FloorDiv", "Mod", "Pow", "LShift", "RShift", "BitAnd", "BitOr", "BitXor")


def operation(name, *operands):
    return OperationDoc(OperationKind[name], operands)


def random_expression(rng, depth):
    """A document, and the tree of it that Python's parser shall make of its text."""
    def some():
        return random_expression(rng, depth - 1)

    kind = rng.choice(("name", "number", "text")) if depth == 0 else rng.choice(
        ("binary", "binary", "binary", "comparison", "and", "unary", "if", "call", "attribute", "index", "tuple", "list", "dict", "lambda"))
    if kind == "name":
        name = rng.choice("abcxyz")
        return IdDoc(name), ast.Name(name, ast.Load())
    if kind == "number":
        value = rng.choice((0, 7, 2.5, -3, -0.25, 1e30))
        positive = ast.Constant(abs(value))
        return LiteralDoc(value), ast.UnaryOp(ast.USub(), positive) if value < 0 else positive
    if kind == "text":
        value = rng.choice(("a", 'say "x"', "two\nlines", "\\", "\x07", "ü", True, None))
        return LiteralDoc(value), ast.Constant(value)
    if kind == "binary":
        name, (a, ta), (b, tb) = rng.choice(BINARY), some(), some()
        return operation(name, a, b), ast.BinOp(ta, getattr(ast, name)(), tb)
    if kind == "comparison":
        name, (a, ta), (b, tb) = rng.choice(COMPARISONS), some(), some()
        return operation(name, a, b), ast.Compare(ta, [getattr(ast, name)()], [tb])
    if kind == "and":
        name, (a, ta), (b, tb) = rng.choice(("And", "Or")), some(), some()
        # `a and b and c` is one node of Python's: the left operand's values stand in it.
        same = isinstance(ta, ast.BoolOp) and type(ta.op).__name__ == name
        return operation(name, a, b), ast.BoolOp(getattr(ast, name)(), [*(ta.values if same else [ta]), tb])
    if kind == "unary":
        name, (a, ta) = rng.choice(("USub", "Invert", "Not")), some()
        return operation(name, a), ast.UnaryOp(getattr(ast, name)(), ta)
    if kind == "if":
        (c, tc), (a, ta), (b, tb) = some(), some(), some()
        return operation("IfThenElse", c, a, b), ast.IfExp(tc, ta, tb)
    if kind == "call":
        (f, tf), (a, ta), (b, tb) = some(), some(), some()
        return f.call(a, key=b), ast.Call(tf, [ta], [ast.keyword("key", tb)])
    if kind == "attribute":
        a, ta = some()
        return a.attr("field"), ast.Attribute(ta, "field", ast.Load())
    if kind == "index":
        (a, ta), (b, tb), (c, tc) = some(), some(), some()
        return a[SliceDoc(b, None, c), b], ast.Subscript(ta, ast.Tuple([ast.Slice(tb, None, tc), tb], ast.Load()), ast.Load())
    if kind in ("tuple", "list"):
        docs, trees = zip(*[some() for _ in range(rng.choice((1, 2)))])
        return (TupleDoc(docs), ast.Tuple(list(trees), ast.Load())) if kind == "tuple" else (ListDoc(docs), ast.List(list(trees), ast.Load()))
    if kind == "dict":
        (a, ta), (b, tb) = some(), some()
        return DictDoc({a: b}), ast.Dict([ta], [tb])
    body, tree = some()
    return LambdaDoc([IdDoc("u"), IdDoc("v")], body), ast.Lambda(ast.arguments([], [ast.arg("u"), ast.arg("v")], None, [], [], None, []), tree)


class Expressions(unittest.TestCase):
    def test_python_reads_what_was_meant(self):
        rng = random.Random(17)
        seen = set()
        for _ in range(3000):
            doc, tree = random_expression(rng, rng.choice((1, 2, 3)))
            text = to_python_script(doc)
            read = ast.parse(text, mode="eval").body
            self.assertEqual(ast.dump(read), ast.dump(tree), text)
            seen.update(type(n).__name__ for n in ast.walk(read))
        self.assertLessEqual({"Lambda", "IfExp", "Subscript", "BoolOp", "Pow"} | {*BINARY, *COMPARISONS}, seen)

    def test_brackets_only_where_they_are_needed(self):
        a, b, c = map(IdDoc, "abc")
        for doc, text in ((operation("Sub", operation("Sub", a, b), c), "a - b - c"), (operation("Sub", a, operation("Sub", b, c)), "a - (b - c)"),
                          (operation("Pow", operation("USub", a), operation("USub", b)), "(-a) ** -b"),
                          (operation("Lt", operation("Lt", a, b), c), "(a < b) < c"), (operation("Not", operation("Eq", a, b)), "not a == b"),
                          (operation("BitOr", operation("BitAnd", a, b), operation("Add", b, c)), "a & b | b + c"),
                          (operation("Pow", LiteralDoc(-2), b), "(-2) ** b"), (LiteralDoc(1).attr("real"), "(1).real"), (a[()], "a[()]"),
                          (a[SliceDoc(), SliceDoc(None, b), SliceDoc(None, None, c)], "a[:, :b, ::c]")):
            self.assertEqual(to_python_script(doc), text)

    def test_constants(self):
        for value, text in ((True, "True"), (None, "None"), (0.5, "0.5"), (float("inf"), '"inf"'), ('a"\t\\', r'"a\"\t\\"'), ("\x88", r'"\x88"'), ("é", '"é"')):
            self.assertEqual(to_python_script(LiteralDoc(value)), text)

    def test_fields(self):
        a, b = IdDoc("a"), LiteralDoc(2)
        call = a.call(b, key=a)
        self.assertEqual((call.callee, call.args, call.kwargs_keys, call.kwargs_values), (a, (b,), ("key",), (a,)))
        self.assertEqual(a[b].indices, (b,))
        self.assertEqual((DictDoc({a: b}).keys, DictDoc({a: b}).values), ((a,), (b,)))
        self.assertNotEqual(IdDoc("a"), a)  # a document is one place
        self.assertIsInstance(a.attr("x"), AttrAccessDoc)
        with self.assertRaisesRegex(RuntimeError, "has no items"):
            list(a)


class Statements(unittest.TestCase):
    def check(self, doc, text):
        self.assertEqual(to_python_script(doc), text)
        ast.parse(text)

    def test_blocks(self):
        x, y = IdDoc("x"), IdDoc("y")
        f = FunctionDoc(IdDoc("f"), [AssignDoc(x, None, IdDoc("int")), AssignDoc(y, LiteralDoc(1))], [IdDoc("deco")], IdDoc("int"),
                        [IfDoc(x, [], [ReturnDoc(y)]), ForDoc(TupleDoc([x, y]), y, [WhileDoc(x, [ExprStmtDoc(y)])]), ReturnDoc(x)])
        f.comment = 'what it does\n\nand """why"""'
        g = FunctionDoc(IdDoc("g"), [], [], None, [AssertDoc(x, LiteralDoc("no"))])
        with_ = ScopeDoc(y, x.call(), [ScopeDoc(None, x, [AssignDoc(TupleDoc([x, y]), TupleDoc([y, x]))])])
        self.check(ClassDoc(IdDoc("C"), [IdDoc("one"), IdDoc("two")], [f, g, with_]), '''@one
@two
class C:
    @deco
    def f(x: int, y = 1) -> int:
        """
        what it does

        and \\"\\"\\"why\\"\\"\\"
        """
        if x:
            pass
        else:
            return y
        for x, y in y:
            while x:
                y
        return x

    def g():
        assert x, "no"

    with x() as y:
        with x:
            x, y = y, x''')

    def test_indentation(self):
        self.check(WhileDoc(IdDoc("x"), []), "while x:\n    pass")
        self.assertEqual(to_python_script(WhileDoc(IdDoc("x"), []), indent_spaces=2), "while x:\n  pass")
        self.check(AssignDoc(TupleDoc([IdDoc("x")]), IdDoc("y")), "x, = y")

    def test_comments(self):
        stmt = ReturnDoc(IdDoc("x"))
        self.assertIsNone(stmt.comment)
        stmt.comment = "last"
        loop = ForDoc(IdDoc("i"), IdDoc("n"), [stmt])
        loop.comment = "first\nsecond"
        self.check(StmtBlockDoc([CommentDoc("a\nb"), DocStringDoc("c"), CommentDoc("")]), '# a\n# b\n"""\nc\n"""')
        self.assertEqual(to_python_script(loop), "# first\n# second\nfor i in n:\n    return x  # last")
        stmt.comment = "two\nlines"
        with self.assertRaisesRegex(ValueError, "cannot have newlines"):
            to_python_script(loop)
        stmt.comment = None
        self.assertEqual(to_python_script(stmt), "return x")

    def test_what_is_refused(self):
        x = IdDoc("x")
        for make, error, words in ((lambda: AssignDoc(x, None), ValueError, "neither rhs nor annotation"), (lambda: IfDoc(x, [], []), ValueError, "both branches"),
                                   (lambda: AssignDoc(TupleDoc([x]), x, x), ValueError, "single target"), (lambda: IdDoc(3), TypeError, "name = 3 is a int"),
                                   (lambda: ListDoc([x, 3]), TypeError, "an item of elements = 3"), (lambda: ListDoc(x), TypeError, "a list of ExprDoc"),
                                   (lambda: LiteralDoc([]), TypeError, "True, False or None"), (lambda: OperationDoc(99, []), TypeError, "an OperationKind"),
                                   (lambda: CallDoc(x, 1), TypeError, "ExprDoc"), (lambda: to_python_script(operation("Add", x)), ValueError, "2 of them"),
                                   (lambda: to_python_script(operation("_UnaryEnd", x)), ValueError, "no operator"), (lambda: to_python_script("x"), TypeError, "a Doc"),
                                   (lambda: to_python_script(operation("USub", SliceDoc(x))), ValueError, "IndexDoc"), (lambda: IndexDoc(x, "ab"), TypeError, "a list"),
                                   (lambda: to_python_script(x, path_to_underline=["x"]), TypeError, "a list of ObjectPath")):
            with self.assertRaisesRegex(error, words):
                make()


def lines(names):
    """A name a line, each from the path of its name."""
    docs = []
    for name in names:
        docs.append(IdDoc(name))
        docs[-1].source_paths = [ROOT.attr(name)]
    return StmtBlockDoc([ExprStmtDoc(d) for d in docs])


class Underlines(unittest.TestCase):
    def test_the_longest_prefix(self):
        doc = lines(["body", "init"])
        deep = IdDoc("deep")
        deep.source_paths = [ROOT.attr("body").array_index(1)]
        doc.stmts[1].expr = OperationDoc(OperationKind.Add, [deep, deep])
        wanted = ROOT.attr("body").array_index(1).attr("value")
        self.assertEqual(to_python_script(doc, path_to_underline=[wanted]), "body\ndeep + deep\n^^^^   ^^^^")
        self.assertEqual(to_python_script(doc, path_to_underline=[ROOT.attr("body").array_index(0)]), "body\n^^^^\ndeep + deep")
        self.assertEqual(to_python_script(doc, path_to_underline=ROOT.attr("other")), "body\ndeep + deep")

    def test_comments_stay_without(self):
        loop = ForDoc(IdDoc("i"), IdDoc("n"), [ExprStmtDoc(IdDoc("x"))])
        loop.body[0].comment, loop.comment = "aside", "above"
        loop.source_paths = [ROOT]
        self.assertEqual(to_python_script(loop, path_to_underline=[ROOT]), "# above\nfor i in n:\n^^^^^^^^^^^\n    x  # aside\n    ^")

    def test_lines_far_away(self):
        doc = lines([f"v{i}" for i in range(12)])
        text = to_python_script(doc, print_line_numbers=True, num_context_lines=1, path_to_underline=[ROOT.attr("v2"), ROOT.attr("v9")])
        self.assertEqual(text, " 1 v0\n 2 v1\n 3 v2\n   ^^\n 4 v3\n(... 4 lines skipped ...)\n 9 v8\n10 v9\n   ^^\n11 v10\n12 v11")
        self.assertEqual(to_python_script(doc, num_context_lines=0), "\n".join(f"v{i}" for i in range(12)))  # nothing is underlined


class Paths(unittest.TestCase):
    def test_text(self):
        path = ROOT.attr("seq").array_index(2).map_value("k\n").missing_map_entry().missing_array_element(4).attr(None)
        self.assertEqual(str(path), '<root>.seq[2]["k\\n"][<missing entry>][<missing element #4>].<unknown attribute>')
        self.assertEqual(str(ObjectPath.root("mod").attr("a")), "mod.a")
        self.assertEqual(len(path), 7)

    def test_equality(self):
        paths = [ROOT, ObjectPath.root("a"), ROOT.attr("a"), ROOT.map_value("a"), ROOT.array_index(1), ROOT.missing_array_element(1), ROOT.attr("a").array_index(1),
                 ROOT.attr("b").array_index(1), ROOT.attr(None), ROOT.missing_map_entry()]
        for i, a in enumerate(paths):
            for j, b in enumerate(paths):
                self.assertEqual(a == b, i == j, (a, b))
        self.assertEqual(len({*paths, ROOT.attr("a"), ROOT.attr("b").array_index(1)}), len(paths))

    def test_keys_that_are_nodes(self):
        x, y = sator.tir.Var("x", "int32"), sator.tir.Var("x", "int32")
        self.assertEqual(ROOT.map_value(x), ROOT.map_value(x))
        self.assertNotEqual(ROOT.map_value(x), ROOT.map_value(y))

    def test_prefixes(self):
        path = ROOT.attr("a").array_index(0)
        self.assertTrue(ROOT.attr("a").is_prefix_of(path) and path.is_prefix_of(path))
        self.assertFalse(path.is_prefix_of(ROOT.attr("a")) or ROOT.attr("b").is_prefix_of(path))
        self.assertEqual([path.get_prefix(n) for n in (1, 2, 3)], [ROOT, ROOT.attr("a"), path])
        self.assertEqual(path.parent, ROOT.attr("a"))
        self.assertIsNone(ROOT.parent)
        self.assertIsInstance(path, ArrayIndexPath)
        self.assertIsInstance(ROOT, RootPath)
        for length in (0, 4):
            with self.assertRaises(IndexError):
                path.get_prefix(length)

    def test_what_is_refused(self):
        for make in (lambda: ROOT.attr(3), lambda: ROOT.array_index("a"), lambda: ROOT.array_index(-1), lambda: ROOT.map_value([]), lambda: ROOT.is_prefix_of("a")):
            with self.assertRaisesRegex(TypeError, "needs:"):
                make()
        with self.assertRaisesRegex(ValueError, "ObjectPath.root"):
            ObjectPath()


if __name__ == "__main__":
    unittest.main()
