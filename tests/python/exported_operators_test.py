"""Operators of ATen beside NumPy: windows, positions, 16 bits, what is no number."""
import operator
import types
import unittest

import numpy as np

import sator
from exported_test import Extent, ProgramTest, exported, getitem
from frontend_test import run
from sator.relax.frontend.torch import from_exported_program


def windows(x, kernel, stride, padding, combine):
    """combine(elements in the data, elements in the data and their padding) of each window along the last axis, as ceil_mode has them: those that begin in the
    data or in the padding before them."""
    extent = x.shape[-1]
    firsts = [f - padding for f in range(0, extent + padding, stride)]
    while len(firsts) > 1 and firsts[-2] + kernel >= extent + padding:  # the one before reaches the end already
        firsts.pop()
    return np.stack([combine(x[..., max(f, 0):f + kernel], min(f + kernel, extent + padding) - f) for f in firsts], -1)


class Operators(ProgramTest):
    def test_pooling_beyond_the_data(self):
        rng = np.random.default_rng(1)
        for kernel, stride, padding in ((2, 2, 1), (3, 2, 1), (3, 3, 1), (2, 3, 0), (5, 4, 2), (2, 3, 1)):
            for extent in (7, 8, 9, 10):
                x = rng.standard_normal((1, 2, extent), "float32")
                given = ("x", [kernel], [stride], [padding])

                def of(combine):
                    return windows(x, kernel, stride, padding, combine).astype("float32")

                with self.subTest(kernel=kernel, stride=stride, padding=padding, extent=extent):
                    self.check({"x": x},
                               [("most", "max_pool1d.default", (*given, [1], True)), ("mean", "avg_pool1d.default", (*given, True)),
                                ("inside", "avg_pool1d.default", (*given, True, False))],
                               {"most": of(lambda part, count: part.max(-1)), "mean": of(lambda part, count: part.sum(-1) / count),
                                "inside": of(lambda part, count: part.mean(-1))})

    def test_images_without_a_batch_and_other_pools(self):
        x = np.random.default_rng(2).standard_normal((2, 4, 6), "float32")
        blocks = x.reshape(2, 2, 2, 3, 2)
        self.check({"x": x},
                   [("most", "max_pool2d.default", ("x", [2, 2], [])), ("thirds", "avg_pool2d.default", ("x", [2, 2], [], [0], False, True, 3)),
                    ("_largest", "adaptive_max_pool2d.default", ("x", [2, 3])), ("largest", getitem, ("_largest", 0)),
                    ("conv", "conv2d.default", ("x", "p_w"))],
                   {"most": blocks.max((2, 4)), "thirds": blocks.sum((2, 4)) / 3, "largest": blocks.max((2, 4)), "conv": np.einsum("chw,oc->ohw", x, np.array([[1, 2]], "float32"))},
                   {"p_w": np.array([[1, 2]], "float32")[:, :, None, None]})

    def test_positions(self):
        x = np.arange(2 * 3 * 4 * 5, dtype="float32").reshape(2, 3, 4, 5)
        i, j = np.array([[0, -1], [1, 2]]), np.array([1, 3])
        self.check({"x": x, "i": i, "j": j},
                   [("inner", "index.Tensor", ("x", [None, "i", "j"])), ("apart", "index.Tensor", ("x", [None, "i", None, "j"])),
                    ("last", "index.Tensor", ("x", [None, None, "i", "j"])), ("main", "diagonal.default", ("x", 1, 1, -1)), ("below", "diagonal.default", ("x", -1, 2, 3)),
                    ("windows", "unfold.default", ("x", 2, 3, 1)), ("patches", "im2col.default", ("x", [2, 3], [1, 1], [1, 0], [2, 1]))],
                   {"inner": x[:, i, j], "apart": x[:, i, :, j], "last": x[:, :, i, j], "main": np.diagonal(x, 1, 1, 3), "below": np.diagonal(x, -1, 2, 3),
                    "windows": np.lib.stride_tricks.sliding_window_view(x, 3, 2),
                    "patches": np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 0))), (2, 3), (2, 3))[:, :, ::2]
                    .transpose(0, 1, 4, 5, 2, 3).reshape(2, 18, 9)})

    def test_other_elements_at_positions(self):
        x, rows, ids = np.arange(12, dtype="float32").reshape(3, 4), np.array([2, 0]), np.array([[0, 2, 0], [3, 1, 1]])
        new, values = -np.arange(1, 9, dtype="float32").reshape(2, 4), np.array([0.5, 7, -20], "float32")
        put, added, masked, columns, scattered, summed, most, fresh = (x.copy() for _ in range(8))
        put[rows] = new
        np.add.at(added, ([1, 1, 2], [3, 3, 0]), values)
        masked[x > 4] = 1
        columns[:, rows] = 9
        np.put_along_axis(scattered[:2], ids[:, :2], new[:, :2], 1)
        for row, line in enumerate(ids):
            np.add.at(summed[row], line, new[row, :3])
            np.maximum.at(most[row], line, new[row, :3])
            fresh[row][line] = 0
            np.add.at(fresh[row], line, new[row, :3])
        self.check({"x": x, "rows": rows, "ids": ids},
                   [("put", "index_put.default", ("x", ["rows"], "p_new")), ("added", "index_put.default", ("x", ["b_r", "b_c"], "p_values", True)),
                    ("where", "gt.Scalar", ("x", 4)), ("masked", "index_put.default", ("x", ["where"], "b_one")),
                    ("columns", "index_fill.int_Scalar", ("x", 1, "rows", 9)), ("first", "slice.Tensor", ("ids", 1, 0, 2)),
                    ("scattered", "scatter.src", ("x", 1, "first", "p_new")), ("summed", "scatter_add.default", ("x", 1, "ids", "p_new")),
                    ("most", "scatter_reduce.two", ("x", 1, "ids", "p_new", "amax")), ("fresh", "scatter_reduce.two", ("x", 1, "ids", "p_new", "sum"), {"include_self": False}),
                    ("part", "slice_scatter.default", ("x", "b_minus", 1, 1, 9223372036854775807, 2)), ("column", "select_scatter.default", ("x", "p_values", 1, -1)),
                    ("copied", "index_copy.default", ("x", 0, "rows", "p_new")), ("twice", "index_add.default", ("x", 0, "rows", "p_new"), {"alpha": 2})],
                   {"put": put, "added": added, "columns": columns, "scattered": scattered, "summed": summed, "most": most, "fresh": fresh,
                    "part": np.where(np.arange(4) % 2 == 1, np.float32(-1), x), "column": np.concatenate([x[:, :3], values[:, None]], 1), "copied": put,
                    "twice": np.stack([x[0] + 2 * new[1], x[1], x[2] + 2 * new[0]]), "masked": masked},
                   {"p_new": new, "p_values": values, "b_r": np.array([1, 1, 2]), "b_c": np.array([3, 3, 0]), "b_one": np.float32(1).reshape(()),
                    "b_minus": np.full((3, 2), -1, "float32")})

    def test_operators_of_16_bits_round_once(self):
        x = np.array([[300, -40, 0.25, 5], [1, 2, 3, 4]], "float16")
        wide = x.astype("float64")

        def halves(values):
            return np.asarray(values).astype("float16")

        with np.errstate(over="ignore"):
            self.check({"x": x},
                       [("norm", "linalg_vector_norm.default", ("x", 2, [1])), ("std", "std.correction", ("x", [1])), ("var", "var.correction", ("x", [1], ), {"correction": 0}),
                        ("quotient", "div.Tensor", ("x", 2e-6)), ("product", "mul.Tensor", ("x", 1e-5)), ("sums", "cumsum.default", ("x", 1)),
                        ("softplus", "softplus.default", ("x",)), ("sum", "add.Tensor", ("x", 70000.0)), ("tenth", "lt.Scalar", ("x", 0.25))],
                       {"norm": halves(np.sqrt((wide**2).sum(1))), "std": halves(wide.std(1, ddof=1)), "var": halves(wide.var(1)), "quotient": halves(wide / 2e-6),
                        "product": halves(wide * 1e-5), "sums": halves(wide.cumsum(1)), "softplus": halves(np.where(wide > 20, wide, np.log1p(np.exp(np.minimum(wide, 20))))),
                        "sum": halves(wide + 70000), "tenth": x < np.float16(0.25)})

    def test_what_is_no_number_and_what_divides(self):
        inf, nan = np.inf, np.nan
        a, b = np.array([inf, -inf, nan, 1, 0.3, -7.3, 7.3, 5], "float32"), np.array([2, 3, 1, 0.1, 0.1, 2, -2, 0], "float32")
        down = [nan, nan, nan, *(float(p) // float(q) for p, q in zip(a[3:7], b[3:7])), inf]
        self.check({"a": a, "b": b},
                   [("down", "floor_divide.default", ("a", "b")), ("floor", "div.Tensor_mode", ("a", "b"), {"rounding_mode": "floor"}), ("nothing", "mul.Tensor", ("a", 0)),
                    ("sign", "sign.default", ("a",)), ("whole", "trunc.default", ("a",)), ("finite", "nan_to_num.default", ("a", 0.5)),
                    ("near", "isclose.default", ("a", "b"))],
                   {"down": np.array(down, "float32"), "floor": np.array(down, "float32"), "nothing": np.array([nan] * 3 + [0] * 5, "float32"),
                    "sign": np.array([1, -1, 0, 1, 1, -1, 1, 1], "float32"), "whole": np.trunc(a), "finite": np.nan_to_num(a, nan=0.5), "near": np.isclose(a, b, 1e-5, 1e-8)})

    def test_dtypes_of_results(self):
        n, truth, small = np.array([[4, -2, 0]]), np.array([[True, False, True]]), np.array([[3, 0, 255]], "uint8")
        x = np.array([[0.5, 1.5, 2.5]], "float32")
        self.check({"n": n, "truth": truth, "small": small, "x": x},
                   [("exp", "exp.default", ("n",)), ("ceil", "ceil.default", ("n",)), ("joined", "cat.default", (["n", "x"], 1)), ("either", "add.Tensor", ("truth", "truth")),
                    ("shifted", "__lshift__.Scalar", ("n", 2)), ("some", "any.dim", ("small", 1)), ("every", "all.default", ("small",)),
                    ("three", "scalar_tensor.default", (3,)), ("bits", "view.dtype", ("x", "torch.int32")), ("low", "clamp.Tensor", ("x", None, "b_least")),
                    ("_vm", "var_mean.correction", ("x", [1])), ("var", getitem, ("_vm", 0)), ("mean", getitem, ("_vm", 1))],
                   {"exp": np.exp(n.astype("float32")), "ceil": n, "joined": np.concatenate([n.astype("float32"), x], 1), "either": truth, "shifted": n << 2,
                    "some": np.array([1], "uint8"), "every": np.uint8(0), "three": np.float32(3), "bits": x.view("int32"), "low": np.minimum(x, np.float32(1)),
                    "var": x.var(1, ddof=1), "mean": x.mean(1)},
                   {"b_least": np.float32(1).reshape(())})

    def test_functions_near_zero(self):
        x = np.array([1e-9, -1e-7, 3e-4, -0.9, 1.2, 20, -50, 0, np.inf, -np.inf], "float32")
        wide = x.astype("float64")
        self.check({"x": x}, [("expm1", "expm1.default", ("x",)), ("both", "logaddexp.default", ("x", "x")), ("hypot", "hypot.default", ("x", "x"))],
                   {"expm1": np.expm1(wide).astype("float32"), "both": np.logaddexp(wide, wide).astype("float32"), "hypot": np.hypot(wide, wide).astype("float32")})

    def test_images_at_sizes_of_fractions(self):
        x = np.arange(12, dtype="float32").reshape(1, 1, 3, 4) ** 2

        def linear(line, at):
            return np.interp(np.maximum(at, 0), np.arange(len(line)), line)

        rows = np.apply_along_axis(linear, 2, x, (np.arange(4) + 0.5) / 1.5 - 0.5)
        both = np.apply_along_axis(linear, 3, rows, (np.arange(5) + 0.5) / 1.3 - 0.5)
        self.check({"x": x, "line": x[:, 0].copy(), "cube": x[:, None]},
                   [("nearest", "upsample_nearest2d.vec", ("x", None, [1.5, 1.3])), ("linear", "upsample_bilinear2d.vec", ("x", None, False, [1.5, 1.3])),
                    ("line2", "upsample_linear1d.vec", ("line", [7], True)), ("cube2", "upsample_nearest3d.vec", ("cube", [1, 6, 2])),
                    ("cut", "constant_pad_nd.default", ("x", [-1, 2, 1, -1], 7))],
                   {"nearest": x[:, :, [0, 0, 1, 2]][..., [0, 0, 1, 2, 3]], "linear": both.astype("float32"),
                    "line2": np.apply_along_axis(linear, 2, x[:, 0], np.linspace(0, 3, 7)).astype("float32"), "cube2": x[:, None][..., [0, 0, 1, 1, 2, 2], :][..., [0, 2]],
                    "cut": np.pad(x[:, :, :2, 1:], ((0, 0), (0, 0), (1, 0), (0, 2)), constant_values=7)})

    def test_symbolic_sizes(self):
        mod = from_exported_program(exported(
            {"x": ((Extent("s0", "s0"), 3), "float32")},
            [("last", "select.int", ("x", 0, -1)), ("rolled", "roll.default", ("x", [1, -5], [0, 0])), ("std", "std.correction", ("x", [0])), ("var", "var.correction", ("x",)),
             ("image", "view.default", ("x", [1, 1, -1, 3])), ("twice", "upsample_nearest2d.vec", ("image", None, [2.0, 2.0]))],
            ["last", "rolled", "std", "var", "twice"]))
        for n in (2, 7):
            x = np.random.default_rng(n).standard_normal((n, 3), "float32")
            for got, wanted in zip(run(mod, x), (x[-1], np.roll(x, -4, 0), x.std(0, ddof=1), x.var(ddof=1), x.repeat(2, 0).repeat(2, 1)[None, None])):
                np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-5, atol=1e-6)

    def test_numbers_that_are_made_of_sizes(self):
        """A size divided by another is no integer; fixed sizes are numbers too."""
        rows = [("n", "sym_size.int", ("x", 0)), ("half", operator.truediv, ("n", 2)), ("scaled", "mul.Tensor", ("x", "half")), ("inverse", operator.truediv, (1, "n")),
                ("mean", "mul.Tensor", ("x", "inverse")), ("some", "sym_float", ("n",)), ("more", operator.add, ("some", 0.25)), ("sums", "add.Tensor", ("ids", "more")),
                ("clamped", "clamp.default", ("x", None, "half")), ("filled", "full.default", (["n"], "n")), ("shaped", "full_like.default", ("x", "half")),
                ("square", operator.pow, ("n", 2)), ("minus", operator.neg, ("square",)), ("negative", "mul.Tensor", ("x", "minus")),
                ("root", operator.pow, ("n", -0.5)), ("rooted", "mul.Tensor", ("x", "root")), ("rest", operator.mod, ("n", 4)), ("lack", operator.sub, (4, "rest")),
                ("padded", "pad.default", ("x", [0, 0, 1, "lack"], "constant", 7.0)), ("most", "sym_max", ("n", 5)), ("times", "mul.Tensor", ("x", "most")),
                ("whole", operator.floordiv, ("n", 2)), ("added", "add.Tensor", ("x", "ids"), {"alpha": "whole"})]
        names = ["scaled", "mean", "sums", "clamped", "filled", "shaped", "negative", "rooted", "padded", "times", "added"]
        for extent in (Extent("s0", "s0"), 3):
            mod = from_exported_program(exported({"x": ((extent, 2), "float32"), "ids": ((extent, 2), "int64")}, rows, names))
            for n in (3,) if extent == 3 else (1, 3, 7):
                x, ids = np.random.default_rng(n).standard_normal((n, 2), "float32") * 3, np.arange(2 * n).reshape(n, 2)
                wanted = (x * (n / 2), x * (1 / n), (ids + (n + 0.25)).astype("float32"), np.minimum(x, n / 2), np.full(n, n), np.full_like(x, n / 2), -x * n**2,
                          x * n**-0.5, np.pad(x, ((1, 4 - n % 4), (0, 0)), constant_values=7), x * max(n, 5), (x + ids * (n // 2)).astype("float32"))
                for name, got, value in zip(names, run(mod, x, ids), wanted):
                    with self.subTest(name, n=n, extent=str(extent)):
                        self.assertEqual((got.numpy().dtype, got.shape), (value.dtype, value.shape))
                        np.testing.assert_allclose(got.numpy(), value, rtol=1e-5)

    def test_sizes_that_are_multiples(self):
        """A dimension of 4 q elements says what q is; one of q and r together says neither."""
        rows = [("q", operator.floordiv, ("n", 4)), ("v", "view.default", ("x", ["q", 4, 3])), ("y", "sum.dim_IntList", ("v", [1]))]
        mod = from_exported_program(exported({"x": ((Extent("4*s1", "s1"), 3), "float32")}, [("n", "sym_size.int", ("x", 0)), *rows], ["y"]))
        x = np.arange(24, dtype="float32").reshape(8, 3)
        np.testing.assert_array_equal(run(mod, x)[0].numpy(), x.reshape(2, 4, 3).sum(1))
        with self.assertRaisesRegex(sator.TVMError, r"a dimension of s1\*s2 elements, where no other has s1 or s2"):
            from_exported_program(exported({"x": ((Extent("s1*s2", "s1", "s2"),), "float32")}, [("y", "relu.default", ("x",))], ["y"]))

    def test_losses_reduce_as_a_number_says(self):
        rng = np.random.default_rng(6)
        x, y, classes = rng.standard_normal((3, 4), "float32"), rng.standard_normal((3, 4), "float32"), np.array([2, 0, 3])
        likelihood = x - np.log(np.exp(x).sum(1, keepdims=True))
        each = -likelihood[np.arange(3), classes]
        self.check({"x": x, "y": y, "classes": classes},
                   [("mean", "mse_loss.default", ("x", "y")), ("total", "mse_loss.default", ("x", "y", 2)), ("apart", "l1_loss.default", ("x", "y", 0)),
                    ("entropy", "cross_entropy_loss.default", ("x", "classes", None, 2)), ("entropies", "cross_entropy_loss.default", ("x", "classes", None, 0)),
                    ("logs", "log_softmax.int", ("x", 1)), ("nll", "nll_loss_nd.default", ("logs", "classes"))],
                   {"mean": ((x - y) ** 2).mean(), "total": ((x - y) ** 2).sum(), "apart": abs(x - y), "entropy": each.sum(), "entropies": each, "nll": each.mean()})

    def test_parts_by_symbolic_sizes(self):
        """Slices that begin, and parts that end, where sizes say; a table cut to min(64, s) rows has s, as the program says."""
        rows = [("n", "sym_size.int", ("x", 0)), ("less", operator.sub, ("n", 1)), ("back", operator.neg, ("n",)), ("whole", "cat.default", (["x", "y"],)),
                ("tail", "slice.Tensor", ("whole", 0, "n", 9223372036854775807)), ("ends", "slice.Tensor", ("p_table", 0, "back", 9223372036854775807)),
                ("_parts", "split_with_sizes.default", ("x", ["less", 1])), ("last", getitem, ("_parts", 1)), ("cut", "slice.Tensor", ("p_table", 0, 0, "n")),
                ("sum", "add.Tensor", ("cut", "x"))]
        program = exported({"x": ((Extent("s0", "s0"), 2), "float32"), "y": ((Extent("s1", "s1"), 2), "float32")}, rows, ["tail", "ends", "last", "sum"],
                           {"p_table": np.arange(128, dtype="float32").reshape(64, 2)})
        cut = next(node for node in program.graph.nodes if node.name == "cut")
        cut.meta = {"val": types.SimpleNamespace(shape=(Extent("s0", "s0"), 2))}
        mod = from_exported_program(program)
        table = np.arange(128, dtype="float32").reshape(64, 2)
        for n, m in ((2, 3), (5, 1)):
            x, y = (np.random.default_rng(size).standard_normal((size, 2), "float32") for size in (n, m))
            for got, wanted in zip(run(mod, x, y), (y, table[-n:], x[-1:], table[:n] + x)):
                np.testing.assert_array_equal(got.numpy(), wanted)

    def test_pooling_to_any_size(self):
        x = np.random.default_rng(3).standard_normal((2, 10), "float32")
        wanted = [np.stack([x[:, i * 10 // s:-(-(i + 1) * 10 // s)].max(1) for i in range(s)], 1) for s in (3, 7)]
        self.check({"x": x[None]}, [(f"_{s}", "adaptive_max_pool1d.default", ("x", [s])) for s in (3, 7)] + [(f"p{s}", getitem, (f"_{s}", 0)) for s in (3, 7)],
                   {f"p{s}": w[None] for s, w in zip((3, 7), wanted)})

    def test_what_is_refused(self):
        x = {"x": ((1, 2, Extent("s0", "s0")), "float32")}
        for rows, words in (([("y", "max_pool1d.default", ("x", [2], [2], [0], [1], True))], "ceil_mode=True of a dimension of s0 elements"),
                            ([("y", "upsample_nearest1d.vec", ("x", None, [1.5]))], "interpolate by 1.5 of a dimension of s0 elements"),
                            ([("y", "scatter_reduce.two", ("x", 1, "x", "x", "mean"))], "scatter by 'mean'"),
                            ([("y", "adaptive_max_pool1d.default", ("x", [2]))], "node y: adaptive_max_pool1d of a dimension of s0 elements"),
                            ([("_y", "max_pool1d_with_indices.default", ("x", [2])), ("i", getitem, ("_y", 1)), ("y", "abs.default", ("i",))], "node i is used: the places"),
                            ([("m", "gt.Scalar", ("x", 0)), ("y", "index_put.default", ("x", ["m"], "x"))], "index_put at a mask, of values")):
            with self.subTest(words), self.assertRaisesRegex(sator.TVMError, words):
                from_exported_program(exported(x, rows, ["y"]))


if __name__ == "__main__":
    unittest.main()
