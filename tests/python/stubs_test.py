"""Type stubs: every name of the tables, in Python's syntax."""
import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import garbage_test
import sator
from sator import _core, node_docs
from sator.relax.op_docs import DOCS

ROOT = Path(__file__).resolve().parents[2]


def public_names():
    """[name, what it is] of each public function, class, method and property of the package's modules."""
    for path in garbage_test.MODULES:
        parent, _, last = path.rpartition(".")
        module = getattr(importlib.import_module(parent), last) if parent else importlib.import_module(path)
        for name in dir(module):
            thing = getattr(module, name)
            if name.startswith("_") or not callable(thing) or not str(getattr(thing, "__module__", None) or "sator").startswith("sator"):
                continue
            # A class that says nothing itself would be shown with the words of its base.
            yield f"{path}.{name}", thing if not isinstance(thing, type) or vars(thing).get("__doc__") else 0
            if isinstance(thing, type):
                for member, value in vars(thing).items():
                    is_field = member in getattr(thing, "_fields", ()) or not (isinstance(value, property) or callable(value)) or isinstance(value, type)
                    if not member.startswith("_") and not (isinstance(value, property) and hasattr(thing, "_fields") or is_field):
                        yield f"{path}.{name}.{member}", value


class Stubs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        # pip makes them where NumPy is not: loading the package must not need it.
        absent = Path(cls.folder.name, "absent")
        absent.mkdir()
        Path(absent, "numpy.py").write_text("raise ModuleNotFoundError('no NumPy here', name='numpy')\n")
        subprocess.run([sys.executable, ROOT / "tools" / "make_stubs.py", Path(_core.__file__).parent, cls.folder.name],
                       check=True, env=os.environ | {"PYTHONPATH": f"{absent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"})
        cls.trees = {str(p.relative_to(cls.folder.name)): ast.parse(p.read_text()) for p in Path(cls.folder.name).rglob("*.pyi")}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def names(self, file, within=None):
        tree = self.trees[file]
        if within:
            tree = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == within)
        return {n.name for n in tree.body if isinstance(n, (ast.ClassDef, ast.FunctionDef))}

    def test_every_row_of_the_tables_has_a_stub(self):
        self.assertLessEqual({name for name, _, _ in _core.passes()}, self.names("transform.pyi"))
        for space in ("tir", "relax"):
            nodes = {n for n, c in vars(getattr(_core, space)).items() if isinstance(c, type)}
            self.assertLessEqual(nodes, self.names(f"{space}/__init__.pyi"))
        steps = {n for n in dir(sator.tir.Schedule) if not n.startswith("_")}
        self.assertLessEqual(steps - {"mod", "trace", "func_working_on"}, self.names("_core.pyi", "Schedule"))
        self.assertLessEqual({name for name, _ in _core.ops() if "." not in name}, self.names("relax/op.pyi"))
        self.assertIn("relu", self.names("relax/op.pyi", "nn"))

    def test_how_a_node_is_made(self):
        self.assertEqual(str(inspect.signature(sator.tir.Block)),
                         "(iter_vars, reads, writes, name_hint, body, init=None, alloc_buffers=[], match_buffers=[], annotations={})")
        self.assertEqual(str(inspect.signature(sator.tir.Add)), "(a, b)")

    def test_a_primitive_s_parameters(self):
        (schedule,) = [n for n in self.trees["_core.pyi"].body if isinstance(n, ast.ClassDef) and n.name == "Schedule"]
        (split,) = [n for n in schedule.body if isinstance(n, ast.FunctionDef) and n.name == "split"]
        self.assertEqual([a.arg for a in split.args.args][:4], ["self", "loop", "factors", "preserve_unit_iters"])
        self.assertEqual(len(split.args.defaults), len(split.args.args) - 3)

    def test_stubs_name_what_there_is(self):
        """Imports are of modules that exist, constructors give nothing, and members of enumerations are members."""
        for file, tree in self.trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom) and node.module.startswith("sator") and node.names[0].name != "*":
                    module = importlib.import_module(node.module)
                    self.assertTrue(all(hasattr(module, n.name) for n in node.names), f"{file}: {ast.unparse(node)}")
                if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                    self.assertEqual(ast.unparse(node.returns), "None", file)
        self.assertIn("Target", {n.names[0].name for n in self.trees["__init__.pyi"].body if isinstance(n, ast.ImportFrom)})
        (kinds,) = [n for n in self.trees["tir/__init__.pyi"].body if isinstance(n, ast.ClassDef) and n.name == "ForKind"]
        self.assertIn("PARALLEL = 1", ast.unparse(kinds))
        (reorder,) = [n for n in ast.walk(self.trees["_core.pyi"]) if isinstance(n, ast.FunctionDef) and n.name == "reorder"]
        self.assertEqual(reorder.args.vararg.arg, "loops")

    def test_classes_have_what_their_bases_have(self):
        """A type checker knows x.struct_info of a relax.Var, whose property its base has."""
        classes = {c.name: c for c in self.trees["relax/__init__.pyi"].body if isinstance(c, ast.ClassDef)}

        def members(name):
            cls = classes[name]
            own = {m.name for m in cls.body if isinstance(m, ast.FunctionDef)}
            return own.union(*(members(b.id) for b in cls.bases if isinstance(b, ast.Name) and b.id in classes))

        self.assertIn("struct_info", members("Var"))
        self.assertIn("same_as", members("TensorStructInfo"))
        build = next(f for f in self.trees["driver.pyi"].body if isinstance(f, ast.FunctionDef) and f.name == "build")
        self.assertEqual([a.arg for a in build.args.args], list(inspect.signature(sator.build).parameters))

    def test_every_public_name_has_help(self):
        lacking = [name for name, thing in public_names() if not (inspect.getdoc(thing) or "").strip()]
        self.assertEqual(lacking, [])
        for space, docs in (("ir", node_docs.IR), ("tir", node_docs.TIR), ("relax", node_docs.RELAX)):
            nodes = {n for n, c in vars(getattr(_core, space)).items() if isinstance(c, type)}
            self.assertEqual(nodes - {"IRModule"}, set(docs))
            for name in docs:
                self.assertTrue(getattr(getattr(_core, space), name).__doc__.strip(), name)

    def test_every_op_says_what_it_computes(self):
        self.assertEqual({name for name, _ in _core.ops()}, set(DOCS))
        self.assertIn("[..., m, n]", sator.relax.op.matmul.__doc__)
        self.assertIn("exp(x) / sum(exp(x))", sator.topi.nn.softmax.__doc__)

    def test_help_says_what_things_do(self):
        self.assertIn("divides a loop", sator.tir.Schedule.split.__doc__)
        self.assertIn("matmul(x1, x2", sator.relax.op.matmul.__doc__)
        self.assertIn("None, at most one, is what remains: ceil(extent / product of the others)", sator.tir.Schedule.split.__doc__)
        for name, step in vars(sator.tir.Schedule).items():  # each argument of each step has its line
            found = re.search(rf"^{name}\(self, (.*)\)", getattr(step, "__doc__", None) or "")
            for argument in found[1].split(", ") if found else ():
                if ":" not in argument and argument != "/":
                    self.assertRegex(step.__doc__, rf"(?m)^    {argument.strip('*').partition('=')[0]} +\S", f"{name}: {argument}")
        self.assertEqual(sator.relax.transform.FuseOps.__doc__, "Groups calls that one kernel can do.")
        self.assertIn("relu", dir(sator.relax.op.nn))


if __name__ == "__main__":
    unittest.main()
