"""Type stubs: every name of the tables, in Python's syntax."""
import ast
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import sator
from sator import _core

ROOT = Path(__file__).resolve().parents[2]


class Stubs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        subprocess.run([sys.executable, ROOT / "tools" / "make_stubs.py", Path(_core.__file__).parent, cls.folder.name], check=True)
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

    def test_a_primitive_s_parameters(self):
        (schedule,) = [n for n in self.trees["_core.pyi"].body if isinstance(n, ast.ClassDef) and n.name == "Schedule"]
        (split,) = [n for n in schedule.body if isinstance(n, ast.FunctionDef) and n.name == "split"]
        self.assertEqual([a.arg for a in split.args.args][:4], ["self", "loop", "factors", "preserve_unit_iters"])
        self.assertEqual(len(split.args.defaults), len(split.args.args) - 3)

    def test_help_says_what_things_do(self):
        self.assertIn("divides a loop", sator.tir.Schedule.split.__doc__)
        self.assertIn("matmul(x1, x2", sator.relax.op.matmul.__doc__)
        self.assertIn("FuseOps", sator.relax.transform.FuseOps.__doc__)
        self.assertIn("relu", dir(sator.relax.op.nn))


if __name__ == "__main__":
    unittest.main()
