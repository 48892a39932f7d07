"""A file that imports tvm runs as it is: the cells of the notebook of seed 001."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

NOTEBOOK = '''
import tvm
from tvm.ir.module import IRModule
from tvm.script import tir as T
import numpy as np


@tvm.script.ir_module
class MyModule:
    @T.prim_func
    def main(A: T.Buffer[128, "float32"],
             B: T.Buffer[128, "float32"],
             C: T.Buffer[128, "float32"]):
        # extra annotations for the function
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i in range(128):
            with T.block("C"):
                # declare a data parallel iterator on spatial domain
                vi = T.axis.spatial(128, i)
                C[vi] = A[vi] + B[vi]

assert type(MyModule) is IRModule
MyModule.show()
sch = tvm.tir.Schedule(MyModule)
print(type(sch))
print(sch.mod.script())
# Get block by its name
block_c = sch.get_block("C")
# Get loops surronding the block
(i,) = sch.get_loops(block_c)
# Tile the loop nesting.
i_0, i_1, i_2 = sch.split(i, factors=[None, 4, 4])
sch.mod.show()
sch.reorder(i_0, i_2, i_1)
sch.mod.show()
sch.parallel(i_0)
sch.mod.show()
rt_mod = tvm.build(MyModule, target="llvm")  # The module for CPU backends.
print(type(rt_mod))

import sator
assert tvm is sator and tvm.tir is sator.tir and sator.__spec__.name == "sator"
a, b = np.arange(128, dtype="float32"), np.ones(128, dtype="float32")
c = tvm.nd.empty((128,))
for mod in (MyModule, sch.mod):
    tvm.build(mod, target="llvm")["main"](tvm.nd.array(a), tvm.nd.array(b), c)
    np.testing.assert_array_equal(c.numpy(), a + b)
print("arguments", __import__("sys").argv[1:])
'''


IMPORTS = """
import tvm
import tvm.testing
from tvm import dlight as dl, relax, te, tir, topi
from tvm.dlight.base import analysis
from tvm.dlight.gpu import GPUScheduleRule
from tvm.ir.module import IRModule
from tvm.relax.dpl import is_op, rewrite_call, wildcard
from tvm.relax.frontend import nn
from tvm.relax.frontend.torch import from_fx
from tvm.script import ir as I, relax as R, tir as T
from tvm.target import Target
from tvm.tir.schedule.schedule import ScheduleError
import numpy as np

assert tir.schedule.schedule.ScheduleError is ScheduleError and tvm.relax.dpl.is_op is is_op
tvm.testing.assert_allclose(tvm.nd.array(np.ones(3)), np.ones(3))
try:
    tvm.testing.assert_allclose(np.ones(3), np.zeros(3))
except AssertionError:
    print("deep paths are there")
"""


class Compat(unittest.TestCase):
    def test_deep_paths_and_testing(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "imports.py"
            file.write_text(IMPORTS)
            ran = subprocess.run([sys.executable, "-m", "sator.compat", file], capture_output=True, text=True)
        self.assertEqual((ran.returncode, ran.stdout), (0, "deep paths are there\n"), ran.stderr)

    def test_the_notebook_runs_unchanged(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "notebook.py"
            file.write_text(NOTEBOOK)
            ran = subprocess.run([sys.executable, "-m", "sator.compat", file, "one"], capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("<class 'sator.tir.schedule.schedule.Schedule'>", ran.stdout)
        self.assertIn("for i_0 in T.parallel(8):\n            for i_2, i_1 in T.grid(4, 4):", ran.stdout)
        self.assertIn("vi = T.axis.spatial(128, i_0 * 16 + i_1 * 4 + i_2)", ran.stdout)
        self.assertIn("arguments ['one']", ran.stdout)

    def test_nothing_is_called_tvm_otherwise(self):
        code = "import sator, sator.script\ntry:\n    import tvm\nexcept ImportError:\n    print('none')"
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual(ran.stdout.strip(), "none", ran.stderr)


if __name__ == "__main__":
    unittest.main()
