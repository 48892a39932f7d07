"""What rules written in Python are made of: functions as rules, threads of loops, variables of expressions."""
import unittest

import sator
from sator import dlight, te, tir
from sator.dlight.base import analysis, collect_vars_used_in_prim_expr
from sator.dlight.gpu import utils


def added(n):
    A = te.placeholder((n, 16), name="A")
    return te.create_prim_func([A, te.compute((n, 16), lambda i, j: A[i, j] + 1, name="B")])


def loops(func):
    sch = tir.Schedule(func)
    return sch, sch.get_loops("B")


class Rules(unittest.TestCase):
    def test_a_function_is_a_rule(self):
        @dlight.ScheduleRule.from_callable("Vectors")
        def vectors(func, target, tunable):
            self.assertEqual((target.kind.name, tunable), ("llvm", False))
            sch, (_, inner) = loops(func)
            utils.auto_vectorize(sch, inner, 4)
            return sch

        self.assertEqual(type(vectors).__name__, "Vectors")
        text = dlight.ApplyDefaultSchedule(vectors)(sator.IRModule({"main": added(16)})).script()
        self.assertIn("for j_1 in T.vectorized(4):", text)

    def test_vectors_of_loops(self):
        """A short loop is one vector as it is; a symbolic one stays."""
        n = tir.Var("n", "int32")
        sch, (i, j) = loops(added(n))
        utils.auto_vectorize(sch, i, 4)
        utils.auto_vectorize(sch, j, 32)
        self.assertEqual([sch.get(loop).kind for loop in (i, j)], [tir.ForKind.SERIAL, tir.ForKind.VECTORIZED])
        self.assertEqual(utils.get_extent(sch, j), 16)

    def test_threads(self):
        """By hand: 1024 threads are 16 times 16, or 16 beside 32 of the symbolic loop and the 2 that are left."""
        cuda = sator.Target("cuda -max_threads_per_block=512 -max_shared_memory_per_block=49152")
        sch, pair = loops(added(16))
        self.assertEqual(utils.suggest_threads_per_block(cuda, [sch.get(loop) for loop in pair]), [16, 16])
        sch, pair = loops(added(tir.Var("n", "int32")))
        self.assertEqual(utils.suggest_threads_per_block(cuda, [sch.get(loop) for loop in pair]), [64, 16])
        self.assertEqual((utils.max_threads_per_block(cuda), analysis.get_max_threads_per_block(cuda), analysis.get_max_shared_memory_per_block(cuda)), (512, 512, 49152))
        with self.assertRaisesRegex(ValueError, "needs: max_shared_memory_per_block"):
            analysis.get_max_shared_memory_per_block(sator.Target("llvm"))
        self.assertEqual([utils.get_bytes(d) for d in ("float16", "int8", "int4", "float32x4")], [2, 1, 1, 16])

    def test_variables(self):
        x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
        self.assertEqual({v.name for v in collect_vars_used_in_prim_expr(x * 2 + y // 3)}, {"x", "y"})


if __name__ == "__main__":
    unittest.main()
