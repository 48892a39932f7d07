"""Statements built line by line: run, and wrong use in words."""
import unittest

import numpy as np

import sator
from sator import te, tir


def program(build, n=16, shape=None):
    """The program over A and B whose body `build(ib, a, b)` makes."""
    A, B = tir.decl_buffer(shape or (n,), "float32", "A"), tir.decl_buffer((n,), "float32", "B")
    pa, pb = tir.Var("pa", "handle"), tir.Var("pb", "handle")
    ib = tir.ir_builder.create()
    build(ib, ib.buffer_ptr(A), ib.buffer_ptr(B))
    return tir.PrimFunc([pa, pb], ib.get(), buffer_map={pa: A, pb: B})


class Built(unittest.TestCase):
    def setUp(self):
        self.x = np.arange(16, dtype="float32")

    def run_on(self, func, x=None):
        y = np.zeros(16, "float32")
        sator.build(func)(self.x if x is None else x, y)
        return y

    def test_loops_conditions_memory(self):
        def build(ib, a, b):
            t = ib.allocate("float32", 16, name="t", scope="local")
            with ib.for_range(0, 16) as i:
                t[i] = a[i] * 2
                with ib.if_scope(ib.likely(i < 8)):
                    x = ib.let("x", t[i] + 1)
                    b[i] = x
                with ib.else_scope():
                    b[i] = 0

        func = program(build, shape=(4, 4))  # a[i] counts elements row by row
        np.testing.assert_array_equal(self.run_on(func, self.x.reshape(4, 4)), np.where(self.x < 8, 2 * self.x + 1, 0))

    def test_bounds_and_kinds(self):
        def build(ib, a, b):
            with ib.for_range(2, 10, kind="parallel") as i:
                with ib.for_range(0, 1, kind="unroll"):
                    b[i] = a[i]
            with ib.for_range(tir.IntImm("int64", 10), 12, name="n", kind="vectorize") as n:
                self.assertEqual(n.dtype, "int64")
                b[n] = 7.0

        func = program(build)
        np.testing.assert_array_equal(self.run_on(func), [*[0] * 2, *range(2, 10), 7, 7, *[0] * 4])
        kinds = []
        tir.stmt_functor.post_order_visit(func.body, lambda n: kinds.append((n.loop_var.name, tir.ForKind(n.kind))) if isinstance(n, tir.For) else None)
        self.assertEqual(sorted(kinds), [("i", tir.ForKind.PARALLEL), ("j", tir.ForKind.UNROLLED), ("n", tir.ForKind.VECTORIZED)])

    def test_while(self):
        def build(ib, a, b):
            count = ib.allocate("int32", (1,), name="count", scope="local")
            count[0] = 0
            with ib.while_loop(count[0] < 5):
                b[count[0]] = 1.0
                count[0] = count[0] + 1

        np.testing.assert_array_equal(self.run_on(program(build)), [1] * 5 + [0] * 11)

    def test_attributes_stand_over_what_follows(self):
        ib = tir.ir_builder.create()
        p = ib.pointer("float32")
        with ib.new_scope():
            ib.scope_attr(p, "pragma_unroll", 1)
            p[0] = 1.0
        p[1] = 2.0
        stmt = ib.get()
        self.assertIsInstance(stmt, tir.SeqStmt)
        attr, store = tir.stmt_list(stmt)
        self.assertEqual((attr.attr_key, type(attr.body), store.value.value), ("pragma_unroll", tir.BufferStore, 2.0))

    def test_in_te(self):
        A = te.placeholder((16,), name="A")

        def tripled(ins, outs):
            ib = tir.ir_builder.create()
            a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
            with ib.for_range(0, 16) as i:
                b[i] = a[i] * 3
            return ib.get()

        np.testing.assert_array_equal(self.run_on(te.create_prim_func([A, te.extern((16,), [A], tripled, dtype="float32")])), self.x * 3)

    def test_wrong_use(self):
        ib = tir.ir_builder.create()
        p = ib.pointer("float32")

        def get_inside():
            with ib.if_scope(tir.Var("c", "bool")):
                ib.get()

        for words, kind, wrong in (
            ("else_scope\n  needs: an if_scope directly before it", RuntimeError, lambda: ib.else_scope()),
            ("get inside of a scope", RuntimeError, get_inside),
            ("for_range: kind = 'fast'\n  needs: one of serial, parallel, vectorize, unroll", ValueError, lambda: ib.for_range(0, 4, kind="fast")),
            ("for_range: T.float32(0.5) is a float32\n  needs: integers", TypeError, lambda: ib.for_range(0.5, 4)),
            ("emit: 'x' is a str", TypeError, lambda: ib.emit("x")),
            ("an element of float32 is set to x, a int32", ValueError, lambda: p.__setitem__(0, tir.Var("x", "int32"))),
        ):
            with self.subTest(words), self.assertRaises(kind) as raised:
                wrong()
            self.assertIn(words, str(raised.exception))


if __name__ == "__main__":
    unittest.main()
