"""Arrays of 8-bit floats: in and out of programs, as ml_dtypes has them."""
import unittest

import ml_dtypes
import numpy as np

import sator
from sator import relax
from sator.script import ir as I, relax as R, tir as T

FORMATS = {"e4m3_float8": ml_dtypes.float8_e4m3fn, "e5m2_float8": ml_dtypes.float8_e5m2}


def built(module):
    return relax.VirtualMachine(relax.build(module, target="llvm"), sator.cpu())


class Float8(unittest.TestCase):
    def test_an_array_keeps_its_dtype_and_its_bits(self):
        for name, dtype in FORMATS.items():
            codes = np.arange(256, dtype="uint8")
            given = sator.nd.array(codes.view(dtype))
            self.assertEqual((given.dtype, given.shape), (name, (256,)))
            back = given.numpy()
            self.assertEqual(back.dtype, dtype)
            np.testing.assert_array_equal(back.view("uint8"), codes)
            self.assertEqual(sator.nd.empty((3,), name).numpy().dtype, dtype)

    def test_a_numpy_array_is_shared_and_not_copied(self):
        given = np.zeros(8, ml_dtypes.float8_e5m2)
        self.assertEqual(sator.nd.from_dlpack(given).data_ptr, given.__array_interface__["data"][0])

    def test_every_code_is_cast_to_float32_as_ml_dtypes_has_it(self):
        for name, dtype in FORMATS.items():

            @I.ir_module
            class Module:
                @R.function
                def main(x: R.Tensor((256,), name)) -> R.Tensor((256,), "float32"):
                    y: R.Tensor((256,), "float32") = R.astype(x, "float32")
                    return y

            codes = np.arange(256, dtype="uint8").view(dtype)
            np.testing.assert_array_equal(built(Module)["main"](codes).numpy(), codes.astype("float32"))

    def test_float32_is_rounded_to_the_nearest_ties_to_even(self):
        values = np.concatenate([np.linspace(-500, 500, 4001), np.geomspace(1e-9, 1e6, 4001), [0.0, -0.0, np.inf, -np.inf, np.nan]]).astype("float32")
        count = len(values)
        for name, dtype in FORMATS.items():

            @I.ir_module
            class Module:
                @R.function
                def main(x: R.Tensor((count,), "float32")) -> R.Tensor((count,), name):
                    y: R.Tensor((count,), name) = R.astype(x, name)
                    return y

            got, wanted = built(Module)["main"](values).numpy(), values.astype(dtype)
            self.assertEqual(got.dtype, dtype)
            np.testing.assert_array_equal(got.astype("float32"), wanted.astype("float32"))

    def test_a_tensor_program_computes_in_float32_and_rounds_once(self):
        @T.prim_func
        def scaled(A: T.Buffer((64,), "e4m3_float8"), B: T.Buffer((64,), "e4m3_float8"), C: T.Buffer((64,), "e4m3_float8")):
            for i in range(64):
                with T.block("C"):
                    vi = T.axis.spatial(64, i)
                    C[vi] = A[vi] * B[vi]

        rng = np.random.default_rng(0)
        a, b = (rng.uniform(-16, 16, 64).astype(ml_dtypes.float8_e4m3fn) for _ in range(2))
        c = np.zeros(64, ml_dtypes.float8_e4m3fn)
        sator.build(scaled)(a, b, c)
        wanted = (a.astype("float32") * b.astype("float32")).astype(ml_dtypes.float8_e4m3fn)
        np.testing.assert_array_equal(c.view("uint8"), wanted.view("uint8"))

    def test_other_small_floats_are_refused_with_a_way_on(self):
        with self.assertRaises(TypeError) as caught:
            sator.nd.array(np.zeros(4, ml_dtypes.float8_e4m3b11fnuz))
        self.assertIn("float8_e4m3b11fnuz", str(caught.exception))
        self.assertIn('array.view("uint8")', str(caught.exception))


if __name__ == "__main__":
    unittest.main()
