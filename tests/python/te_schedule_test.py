"""Schedules of te over several stages: what they compute, compared with NumPy, and where."""
import random as random_module
import unittest

import numpy as np

import sator
from sator import te, tir

RNG = np.random.default_rng(7)


def loops(s, args):
    """The lines of the program's loops, and the names of its blocks, in order."""
    lines = [line.strip() for line in sator.lower(s, args, simple_mode=True).script().splitlines()]
    return [line for line in lines if line.startswith(("for ", "with T.block("))]


def random(*shape):
    return RNG.random(shape, "float32")


class Stages(unittest.TestCase):
    def run_on(self, s, args, *arrays, shape):
        out = np.zeros(shape, "float32")
        sator.build(s, args)(*arrays, out)
        return out

    def matmul(self, n=64):
        A, B = (te.placeholder((n, n), name=x) for x in "AB")
        k = te.reduce_axis((0, n), name="k")
        C = te.compute((n, n), lambda x, y: te.sum(A[x, k] * B[k, y], axis=k), name="C")
        return te.create_schedule(C.op), (A, B, C)

    def test_the_cpu_tutorial_s_product(self):
        """Blocks of 16, the sums in a buffer of their own, computed at each block, as TVM's tutorial of products on CPUs has it."""
        s, args = self.matmul()
        C = args[2]
        CC = s.cache_write(C, "global")
        mo, no, mi, ni = s[C].tile(*C.op.axis, 16, 16)
        s[CC].compute_at(s[C], no)
        mc, nc = s[CC].op.axis
        (k,) = s[CC].op.reduce_axis
        ko, ki = s[CC].split(k, factor=4)
        s[CC].reorder(ko, mc, ki, nc)
        s[CC].vectorize(nc)
        s[CC].unroll(ki)
        s[C].parallel(mo)
        a, b = random(64, 64), random(64, 64)
        np.testing.assert_allclose(self.run_on(s, args, a, b, shape=(64, 64)), a @ b, rtol=1e-5)
        written = loops(s, args)
        self.assertEqual(written[0], "for ax0_0 in T.parallel(4):")
        self.assertTrue(any("T.unroll(4)" in line for line in written) and any("T.vectorized(16)" in line for line in written), written)
        bounds = te.schedule.InferBound(s)
        self.assertEqual([str(bounds[a].extent) for a in (mo, no, mi, ni, mc, nc, k, ko, ki)], "4 4 16 16 16 16 64 16 4".split())
        self.assertEqual([str(bounds[mc].min), str(bounds[k].min)], ["outer * 16", "0"])

    def test_steps_before_and_after_compute_at_are_the_same(self):
        def made(first):
            A = te.placeholder((64,), name="A")
            B = te.compute((64,), lambda i: A[i] * 2, name="B")
            C = te.compute((64,), lambda i: B[i] + 1, name="C")
            s = te.create_schedule(C.op)
            outer, inner = s[C].split(C.op.axis[0], factor=16)
            if first:
                s[B].compute_at(s[C], outer)
            s[B].split(B.op.axis[0], factor=4)
            if not first:
                s[B].compute_at(s[C], outer)
            return loops(s, [A, C])

        self.assertEqual(made(True), made(False))

    def test_inline_and_root(self):
        A = te.placeholder((8, 8), name="A")
        B = te.compute((8, 8), lambda i, j: A[i, j] * 2, name="B")
        C = te.compute((8, 8), lambda i, j: B[i, j] + B[j, i], name="C")
        s = te.create_schedule(C.op)
        s[B].compute_inline()
        self.assertEqual(sum("T.block" in line for line in loops(s, [A, C])), 1)
        a = random(8, 8)
        np.testing.assert_allclose(self.run_on(s, [A, C], a, shape=(8, 8)), 2 * a + 2 * a.T, rtol=1e-6)
        s[B].compute_root()
        self.assertEqual(sum("T.block" in line for line in loops(s, [A, C])), 2)

    def test_cache_read(self):
        s, args = self.matmul(16)
        A, B, C = args
        AA = s.cache_read(A, "local", [C])
        x, y = C.op.axis
        s[AA].compute_at(s[C], x)
        ax0, ax1 = s[AA].op.axis
        s[AA].vectorize(ax1)
        bounds = te.schedule.InferBound(s)
        self.assertEqual([str(bounds[ax0]), str(bounds[ax1])], ["x:x + 1", "0:16"])
        a, b = random(16, 16), random(16, 16)
        np.testing.assert_allclose(self.run_on(s, args, a, b, shape=(16, 16)), a @ b, rtol=1e-5)

    def test_rfactor(self):
        """Partial sums of every fourth element, in four lanes, then the sum of these."""
        for factor_axis in (0, 1):
            A = te.placeholder((8, 64), name="A")
            k = te.reduce_axis((0, 64), "k")
            B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
            s = te.create_schedule(B.op)
            ko, ki = s[B].split(k, factor=4)
            BF = s.rfactor(B, ki, factor_axis)
            lane = BF.op.axis[factor_axis]
            s[BF].reorder(*(a for a in BF.op.axis if a is not lane), *BF.op.reduce_axis, lane)
            s[BF].vectorize(lane)
            s[BF].compute_at(s[B], s[B].op.axis[0])
            (last,) = s[B].op.reduce_axis
            s[B].unroll(last)
            written = loops(s, [A, B])
            self.assertTrue(any("T.vectorized(4)" in line for line in written) and any("T.unroll(4)" in line for line in written), written)
            a = random(8, 64)
            np.testing.assert_allclose(self.run_on(s, [A, B], a, shape=(8,)), a.sum(1), rtol=1e-5)

    def test_bounds_as_tvm_s_tests_have_them(self):
        m, n = 128, 64
        A = te.placeholder((m, n), name="A")
        A1 = te.compute((m, n), lambda i, j: A[i, j], name="A1")
        A2 = te.compute((m, n), lambda i, j: A1[i, j] + 3, name="A2")
        s = te.create_schedule(A2.op)
        xo, yo, xi, yi = s[A2].tile(*A2.op.axis, 8, 8)
        s[A1].compute_at(s[A2], yo)  # test_bound2: both axes have 8
        bounds = te.schedule.InferBound(s)
        self.assertEqual([bounds[a].extent.value for a in A1.op.axis], [8, 8])
        self.assertEqual([bounds[a].extent.value for a in (xo, yo, xi, yi)], [16, 8, 8, 8])

        data = te.placeholder((40,), name="data")  # a convolution reads two elements more
        padded = te.compute((40,), lambda i: data[i] * 2, name="padded")
        out = te.compute((32,), lambda i: padded[i] + padded[i + 1] + padded[i + 2], name="out")
        s = te.create_schedule(out.op)
        outer, _ = s[out].split(out.op.axis[0], factor=8)
        s[padded].compute_at(s[out], outer)
        (axis,) = padded.op.axis
        bounds = te.schedule.InferBound(s)
        self.assertEqual((str(bounds[axis].min), bounds[axis].extent.value), ("outer * 8", 10))
        x = random(40)
        np.testing.assert_allclose(self.run_on(s, [data, out], x, shape=(32,)), 2 * (x[:32] + x[1:33] + x[2:34]), rtol=1e-6)

    def test_threads(self):
        s, args = self.matmul(16)
        x, y = args[2].op.axis
        s[args[2]].bind(x, te.thread_axis("blockIdx.x"))
        s[args[2]].bind(y, te.thread_axis((0, 16), "threadIdx.x"))
        written = loops(s, args)
        self.assertIn('thread="blockIdx.x"', written[0])
        self.assertIn('thread="threadIdx.x"', written[1])

    def test_tiles_that_threads_share(self):
        """What all threads of a block need of A is copied by all of them: 32 x 8 elements, of which each thread takes 4."""
        s, args = self.matmul()
        A, B, C = args
        AA = s.cache_read(A, "shared", [C])
        CC = s.cache_write(C, "local")
        by, bx, ty, tx = (te.thread_axis(tag) for tag in ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x"))
        bi, bj, i, j = s[C].tile(*C.op.axis, 32, 32)
        ti, i = s[C].split(i, nparts=8)
        tj, j = s[C].split(j, nparts=8)
        s[C].reorder(bi, bj, ti, tj, i, j)
        for axis, thread in ((bi, by), (bj, bx), (ti, ty), (tj, tx)):
            s[C].bind(axis, thread)
        s[CC].compute_at(s[C], tj)
        ko, _ = s[CC].split(s[CC].op.reduce_axis[0], factor=8)
        s[CC].reorder(ko, *s[CC].op.axis)
        s[AA].compute_at(s[CC], ko)
        y, x = s[AA].op.axis
        for axis, thread in ((y, ty), (x, tx)):
            s[AA].bind(s[AA].split(axis, nparts=8)[0], thread)
        bounds = te.schedule.InferBound(s)
        self.assertEqual([(str(bounds[a].min), str(bounds[a].extent)) for a in (y, x)], [("outer * 32", "32"), ("outer * 8", "8")])
        written = loops(s, args)
        at = next(i for i, line in enumerate(written) if "A_shared" in line)
        self.assertEqual(sum('thread="threadIdx' in line for line in written[:at]), 4)

    def test_random_steps_compute_the_same(self):
        """Steps drawn by a seed: refused in words, or the product that NumPy has."""
        refused = 0
        for seed in range(16):
            with self.subTest(seed=seed):
                refused += not self.one_draw(random_module.Random(seed))
        self.assertLess(refused, 6)

    def one_draw(self, draw):
        m, n, depth = draw.choice([(16, 16, 16), (12, 18, 20), (8, 10, 24)])
        A, W = te.placeholder((m, depth), name="A"), te.placeholder((depth, n), name="W")
        B = te.compute((m, depth), lambda i, j: A[i, j] * 2.0 + 1.0, name="B")
        k = te.reduce_axis((0, depth), "k")
        C = te.compute((m, n), lambda i, j: te.sum(B[i, k] * W[k, j], axis=k), name="C")
        D = te.compute((m, n), lambda i, j: C[i, j] + A[i, 0], name="D")
        s = te.create_schedule(D.op)
        places, product = [(D, None), (C, D)], C
        if draw.random() < 0.4:
            product = s.cache_write(C, "local")
        elif draw.random() < 0.5:
            product = s.rfactor(C, draw.choice(s[C].split(k, factor=draw.choice([2, 4, 5]))), draw.choice([0, 1, 2]))
        if product is not C:
            places.append((product, C))
        if draw.random() < 0.5:
            places.append((s.cache_read(W, "local", [product]), product))
        for tensor, reader in [*places, (B, product)]:
            if reader is not None and draw.random() < 0.5:
                s[tensor].compute_at(s[reader], draw.choice(s[reader].leaf_iter_vars))
            for _ in range(draw.randint(0, 3)):
                axes = s[tensor].leaf_iter_vars
                if draw.random() < 0.6:
                    s[tensor].split(draw.choice(axes), factor=draw.choice([2, 3, 4, 5]))
                else:
                    s[tensor].reorder(*draw.sample(axes, len(axes)))
        s[D].parallel(s[D].leaf_iter_vars[0])
        a, w = random(m, depth), random(depth, n)
        try:
            out = self.run_on(s, [A, W, D], a, w, shape=(m, n))
        except tir.ScheduleError as error:
            self.assertIn("needs:", str(error))
            return False
        np.testing.assert_allclose(out, (a * 2 + 1) @ w + a[:, :1], rtol=1e-4)
        return True

    def test_an_instruction_for_a_part(self):
        """A product of a matrix and a vector stands in for 16 columns: of all of the sum, or of a part that the loops outside go on from."""

        def gemv(m, n, parts):
            a, b, k = te.placeholder((n,), name="a"), te.placeholder((m, n), name="b"), te.reduce_axis((0, n), name="k")
            c = te.compute((m,), lambda i: te.sum(a[k] * b[i, k], axis=k), name="c")
            strides = {a: [1], b: [te.var("s1"), 1], c: [1]}
            binds = {t: tir.decl_buffer(t.shape, t.dtype, t.name, offset_factor=1, strides=s) for t, s in strides.items()}

            def statements(ins, outs):
                def written(fill):
                    ib = tir.ir_builder.create()
                    x, y, z = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
                    with ib.for_range(0, m, "i") as i:
                        fill(ib, x, y, z, i)
                    return ib.get()

                def update(ib, x, y, z, i):
                    with ib.for_range(0, n, "k") as k:
                        z[i] = z[i] + x[k] * y[i, k]

                def reset(ib, x, y, z, i):
                    z[i] = 0.0

                whole = tir.SeqStmt([written(reset), written(update)])
                return (whole, written(reset), written(update)) if parts == 3 else whole

            return te.decl_tensor_intrin(c.op, statements, binds=binds)

        def made(parts):
            A, B, k = te.placeholder((8, 16), name="A"), te.placeholder((32, 16), name="B"), te.reduce_axis((0, 16), name="k")
            C = te.compute((8, 32), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")
            s = te.create_schedule(C.op)
            yo, yi = s[C].split(C.op.axis[1], factor=16)
            zo, zi = s[C].split(k, factor=4)
            s[C].reorder(C.op.axis[0], yo, zo, yi, zi)
            s[C].parallel(C.op.axis[0])
            s[C].tensorize(yi, gemv(16, 4, parts))
            return s, [A, B, C]

        a, b = random(8, 16), random(32, 16)
        s, args = made(3)
        np.testing.assert_allclose(self.run_on(s, args, a, b, shape=(8, 32)), a @ b.T, rtol=1e-5)
        self.assertIn('with T.block("C_init_o"):', loops(s, args))
        with self.assertRaisesRegex(ValueError, "summed by a loop outside"):
            sator.lower(*made(1))

        A, B, k = te.placeholder((8, 16), name="A"), te.placeholder((32, 16), name="B"), te.reduce_axis((0, 16), name="k")
        C = te.compute((8, 32), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")
        s = te.create_schedule(C.op)
        yo, yi = s[C].split(C.op.axis[1], factor=16)
        s[C].tensorize(yi, gemv(16, 16, 1))
        np.testing.assert_allclose(self.run_on(s, [A, B, C], a, b, shape=(8, 32)), a @ b.T, rtol=1e-5)
        self.assertFalse(any("init" in line for line in loops(s, [A, B, C])))
        s = te.create_schedule(C.op)
        _, yi = s[C].split(C.op.axis[1], factor=8)
        s[C].tensorize(yi, gemv(16, 16, 1))
        with self.assertRaises(tir.ScheduleError):
            sator.lower(s, [A, B, C])
        for step in ("prefetch", "double_buffer", "env_threads", "set_store_predicate"):
            with self.assertRaisesRegex(AttributeError, f"no step {step}: .*\n  needs: "):
                getattr(s[C], step)

    def test_an_instruction_that_calls_python(self):
        """Parts of tensors reach the function as tensors that begin where the part does."""
        n = 16
        x, y = (te.placeholder((n,), name=name) for name in "xy")
        z = te.compute((n,), lambda i: x[i] + y[i], name="z")
        seen = []

        def added(a, b, c):
            seen.append(a.shape)
            np.from_dlpack(c)[:] = np.from_dlpack(a) + np.from_dlpack(b)

        sator.register_func("te_schedule_test.added", added, override=True)
        intrin = te.decl_tensor_intrin(z.op, lambda ins, outs: tir.call_packed("te_schedule_test.added", *ins, *outs), default_buffer_params={"offset_factor": n})
        X, Y = (te.placeholder((4 * n,), name=name) for name in "XY")
        Z = te.compute((4 * n,), lambda i: X[i] + Y[i], name="Z")
        s = te.create_schedule(Z.op)
        s[Z].tensorize(s[Z].split(Z.op.axis[0], factor=n)[1], intrin)
        a, b = random(4 * n), random(4 * n)
        np.testing.assert_array_equal(self.run_on(s, [X, Y, Z], a, b, shape=(4 * n,)), a + b)
        self.assertEqual([tuple(shape) for shape in seen], [(n,)] * 4)

    def test_what_is_computed_inline_by_itself(self):
        def made(inline):
            A = te.placeholder((8, 8), name="A")
            B = te.compute((8, 8), lambda i, j: A[i][j] * 2, name="B")
            C = te.compute((8,), lambda i: te.sum(B[i, (k := te.reduce_axis((0, 8)))], axis=k), name="C")
            D = te.compute((8, 8), lambda i, j: C[j] + 1, name="D")
            E = te.compute((8, 8), lambda i, j: D[j, i] + B[i, j], name="E")
            s = te.create_schedule(E.op)
            inline(s)
            return [t.name for t in (B, C, D, E) if s[t].attach_type == 2]

        self.assertEqual(made(te.schedule.AutoInlineElemWise), ["B"])
        self.assertEqual(made(te.schedule.AutoInlineBroadcast), ["B", "D"])
        self.assertEqual(made(te.schedule.AutoInlineInjective), ["B", "D"])

    def test_what_a_stage_says_of_its_loops(self):
        s, (A, B, C) = self.matmul()
        y, x = C.op.axis
        outer, inner = s[C].split(y, factor=4)
        fused = s[C].fuse(inner, x)
        s[C].vectorize(fused)
        split, fuse = s[C].relations
        self.assertEqual((split.parent, split.factor, fuse.fused, s[C].leaf_iter_vars[:2]), (y, 4, fused, [outer, fused]))
        self.assertEqual(s[C].iter_var_attrs[fused].iter_type, tir.IterVar.Vectorized)
        k = C.op.reduce_axis[0]
        s = te.create_schedule(C.op)
        ko, _ = s[C].split(k, factor=8)
        self.assertEqual([str(e) for e in s.rfactor(C, ko).shape], ["8", "64", "64"])
        s = te.create_schedule(C.op)
        self.assertEqual(s[s.cache_write(C, "local")].op.reduce_axis, [k])  # the axis goes on in the tensor that sums
        one = te.compute((), lambda: te.placeholder((), name="P")() + 1, name="one")
        s = te.create_schedule(one.op)
        self.assertEqual([s[one].fuse()], s[one].leaf_iter_vars)
        with self.assertRaisesRegex(sator.TVMError, "a loop stands there twice"):
            te.create_schedule(C.op)[C].reorder(x, x)

    def test_partial_sums_of_threads_lie_in_their_registers(self):
        """A tensor computed inside of threads' loops has their scope, where nobody says another one."""
        n = te.var("n")
        A, k = te.placeholder((n, 64), name="A"), te.reduce_axis((0, 64), name="k")
        B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
        s = te.create_schedule(B.op)
        _, ki = s[B].split(k, factor=16)
        BF = s.rfactor(B, ki)
        s[B].bind(B.op.axis[0], te.thread_axis("blockIdx.x"))
        s[B].bind(s[B].op.reduce_axis[0], te.thread_axis("threadIdx.x"))
        s[BF].compute_at(s[B], s[B].op.reduce_axis[0])
        self.assertIn('B_rf = T.alloc_buffer((16, n), scope="local")', sator.lower(s, [A, B], simple_mode=True).script())

    def test_a_rolling_buffer(self):
        """Rows of a stencil that later rows still read stay: three of them instead of all."""
        A = te.placeholder((18, 16), name="A")
        B = te.compute((18, 16), lambda i, j: A[i, j] * 2, name="B")
        C = te.compute((16, 16), lambda i, j: B[i, j] + B[i + 1, j] + B[i + 2, j], name="C")
        s = te.create_schedule(C.op)
        s[B].compute_at(s[C], C.op.axis[0])
        s[B].rolling_buffer()
        a = random(18, 16)
        np.testing.assert_allclose(self.run_on(s, [A, C], a, shape=(16, 16)), 2 * (a[:-2] + a[1:-1] + a[2:]), rtol=1e-6)
        self.assertIn("B = T.alloc_buffer((3, 16))", sator.lower(s, [A, C], simple_mode=True).script())

    def test_another_layout(self):
        """Elements stand, and are computed, in the order of the map; axis separators reach the buffer."""
        A = te.placeholder((16, 8), name="A")
        B = te.compute((16, 8), lambda i, j: A[i, j] * 2, name="B")
        C = te.compute((16, 8), lambda i, j: B[i, j] + 1, name="C")
        s = te.create_schedule(C.op)
        self.assertEqual(len(s[B].transform_layout(lambda i, j: [j // 4, te.AXIS_SEPARATOR, i, j % 4])), 3)
        s[B].vectorize(s[B].leaf_iter_vars[2])
        text = sator.lower(s, [A, C], simple_mode=True).script()
        self.assertIn("B = T.alloc_buffer((2, 16, 4), axis_separators=[1])", text)
        self.assertIn("B[v0, v1, v2] = A[v1, v0 * 4 + v2]", text)
        s = te.create_schedule(C.op)
        s[B].transform_layout(lambda i, j: [j // 4, i, j % 4])
        a = random(16, 8)
        np.testing.assert_allclose(self.run_on(s, [A, C], a, shape=(16, 8)), a * 2 + 1)

    def test_words_and_memory(self):
        s, args = self.matmul(16)
        C = args[2]
        CC = s.cache_write(C, "local")
        s[C].pragma(C.op.axis[0], "auto_unroll_max_step", 16)
        s[CC].storage_align(CC.op.axis[0], 8, 4)
        text = sator.lower(s, args, simple_mode=True).script()
        self.assertIn('"pragma_auto_unroll_max_step": 16', text)
        self.assertIn('scope="local"', text)
        self.assertIn('"buffer_dim_align": [[0, 0, 8, 4]]', text)

    def test_wrong_use(self):
        s, (A, B, C) = self.matmul(16)
        x, y = C.op.axis
        other = te.compute((16,), lambda i: A[i, 0], name="other")
        for words, kind, wrong in (
            ("C inside of itself", ValueError, lambda: s[C].compute_at(s[C], x)),
            ("is a Tensor\n  needs: a stage, such as s[C]", TypeError, lambda: s[other].compute_at(C, x)),
            ("i is no loop of the tensor C now", ValueError, lambda: s[other].compute_at(s[C], other.op.axis[0])),
            ("te's schedules have no step pipeline\n  needs: one of bind, compute_at", AttributeError, lambda: s[C].pipeline(y)),
            ("tensorize: None is a NoneType\n  needs: what te.decl_tensor_intrin gives", TypeError, lambda: s[C].tensorize(y, None)),
            ("rfactor: x is an axis of the tensor C\n  needs: a loop of its reduction", ValueError, lambda: s.rfactor(C, x)),
            ("cache_read(A) for no reader", ValueError, lambda: s.cache_read(A, "local", [])),
            ("3 is a int\n  needs: a tensor of te", TypeError, lambda: s[3]),
            ("create_schedule: 3 is a int\n  needs: the operation", TypeError, lambda: te.create_schedule(3)),
            ("thread_axis: tag = ''", ValueError, lambda: te.thread_axis((0, 4))),
        ):
            with self.subTest(words), self.assertRaises(kind) as raised:
                wrong()
            self.assertIn(words, str(raised.exception))
        s[C].parallel(x)
        for words, wrong in (("cache_write(C) after other steps of it", lambda: s.cache_write(C, "local")),
                             ("rfactor(C) after marks of its loops", lambda: s.rfactor(C, C.op.reduce_axis[0]))):
            with self.assertRaises(ValueError) as raised:
                wrong()
            self.assertIn(words, str(raised.exception))
        s, args = self.matmul(16)
        s.cache_read(args[1], "local", [other])
        with self.assertRaises(ValueError) as raised:
            sator.lower(s, args)
        self.assertIn("the schedule computes no tensor other\n  needs: one of C", str(raised.exception))

    def test_parts_of_a_sum_that_the_loops_do_not_divide(self):
        n, m = te.var("n"), te.var("m")
        A = te.placeholder((n, m), name="A")
        k = te.reduce_axis((0, m), name="k")
        B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
        s = te.create_schedule(B.op)
        _, inner = s[B].split(B.op.reduce_axis[0], factor=16)
        s.rfactor(B, inner)
        program = sator.build(s, [A, B], "llvm")
        for rows, columns in ((5, 33), (1, 1), (0, 4), (7, 16), (3, 0)):
            a, b = random(rows, columns), np.full(rows, np.nan, "float32")
            program(a, b)
            np.testing.assert_allclose(b, a.sum(1), rtol=1e-4)

    def test_extents_that_python_divided(self):
        size, part = 64, 16  # as in TVM's tutorial of the matrix product
        k = te.reduce_axis((0, size / 1), "k")
        A, B = te.placeholder((size, size), name="A"), te.placeholder((size, size), name="B")
        packed = te.compute((size / part, size, part), lambda n, k, i: B[k, n * part + i], name="packed")
        C = te.compute((size, size), lambda m, n: te.sum(A[m, k] * packed[n // part, k, tir.indexmod(n, part)], axis=k), name="C")
        a, b, c = random(size, size), random(size, size), np.zeros((size, size), "float32")
        sator.build(te.create_schedule(C.op), [A, B, C], "llvm")(a, b, c)
        np.testing.assert_allclose(c, a @ b, rtol=1e-4)
        with self.assertRaisesRegex(TypeError, "compute: the extent 2.5\n  needs: a whole number"):
            te.compute((5 / 2,), lambda i: i)


class ReductionsOfSeveralResults(unittest.TestCase):
    """One stage for all that a statement computes, as in TVM."""

    def argmax(self):
        n, m = te.var("n"), te.var("m")
        idx, val = (te.placeholder((n, m), name=name, dtype="int32") for name in ("idx", "val"))
        both = te.comm_reducer(lambda x, y: (tir.Select(x[1] >= y[1], x[0], y[0]), tir.Select(x[1] >= y[1], x[1], y[1])),
                               lambda a, b: (tir.const(-1, a), te.min_value(b)), name="argmax")
        k = te.reduce_axis((0, m), "k")
        return idx, val, k, *te.compute((n,), lambda i: both((idx[i, k], val[i, k]), axis=k), name="T")

    def test_steps_and_their_results(self):
        def of_both(s, first, second, k):
            s[first].split(k, 4)
            s[second].parallel(second.op.axis[0])

        def factored(s, first, second, k):
            _, inner = s[first].split(k, 4)
            parts = s.rfactor(first, inner)
            self.assertEqual([p.name for p in parts], ["T.v0.rf", "T.v1.rf"])
            s[parts[1]].parallel(parts[1].op.axis[0])
            s[second].parallel(second.op.axis[0])

        rng = np.random.default_rng(2)
        values = rng.permutation(35).reshape(5, 7).astype("int32")
        places = np.tile(np.arange(7, dtype="int32"), (5, 1))
        for steps in (lambda *_: None, of_both, factored):
            with self.subTest(steps):
                idx, val, k, first, second = self.argmax()
                self.assertEqual((first.op.name, first.name, second.name), ("T", "T.v0", "T.v1"))
                s = te.create_schedule(first.op)
                self.assertIs(s[first], s[second])
                steps(s, first, second, k)
                at, most = np.zeros(5, "int32"), np.zeros(5, "int32")
                sator.build(s, [idx, val, first, second])(places, values, at, most)
                np.testing.assert_array_equal(at, values.argmax(1))
                np.testing.assert_array_equal(most, values.max(1))
        s = te.create_schedule(first.op)
        with self.assertRaisesRegex(sator.error.UseError, "cache_write\\(T.v0\\): one reduction computes 2 tensors"):
            s.cache_write(second, "local")
        with self.assertRaisesRegex(sator.error.UseError, "cache_read\\(T.v0\\) for no reader"):
            s.cache_read(first, "local", [])

    def test_formulas_of_several_results_are_in_one_place(self):
        A = te.placeholder((8, 8), name="A")
        first, second = te.compute((8, 8), lambda i, j: (A[i, j] + 2.0, A[i, j] * 3.0), name="B")
        both = te.compute((8, 8), lambda i, j: first[i, j] + second[i, j], name="C")
        one = te.compute((8, 8), lambda i, j: first[i, j] * 2.0, name="D")
        a, got = np.arange(64, dtype="float32").reshape(8, 8), np.zeros((8, 8), "float32")
        for out, expected in ((both, a + 2 + a * 3), (one, (a + 2) * 2)):
            for place in (lambda s: s[first].compute_at(s[out], out.op.axis[0]), lambda s: s[first].compute_inline()):  # noqa: B023
                s = te.create_schedule(out.op)
                place(s)
                text = sator.lower(s, [A, out]).script()
                with self.subTest(text):
                    if out is both:  # a row in the loop of C, or nothing
                        self.assertTrue("B_v1" not in text or "B_v1 = T.allocate([T.int64(8)]" in text)
                    sator.build(s, [A, out])(a, got)
                    np.testing.assert_array_equal(got, expected)

    def test_a_copy_of_one_of_them(self):
        idx, val, k, first, second = self.argmax()
        out = te.compute((first.shape[0],), lambda i: second[i] * 2, name="out")
        s = te.create_schedule(out.op)
        s.cache_read(second, "local", [out])
        values = np.arange(12, dtype="int32").reshape(3, 4)[:, ::-1].copy()
        got = np.zeros(3, "int32")
        sator.build(s, [idx, val, out])(np.zeros((3, 4), "int32"), values, got)
        np.testing.assert_array_equal(got, values.max(1) * 2)


if __name__ == "__main__":
    unittest.main()
