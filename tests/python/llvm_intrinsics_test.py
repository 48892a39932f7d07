"""T.call_llvm_pure_intrin: intrinsics of LLVM's that every machine has, in loops and on vectors."""
import unittest

import numpy as np

import sator
from sator.script import tir as T


class LlvmIntrinsics(unittest.TestCase):
    def test_they_compute_what_llvm_says(self):
        @T.prim_func
        def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((16,), "int32"), D: T.Buffer((16,), "int32")):
            for i in T.vectorized(16):
                B[i] = T.call_llvm_pure_intrin("float32", "llvm.maxnum", T.uint32(2), A[i], T.float32(0.5))
            for i in range(16):
                D[i] = T.call_llvm_pure_intrin("int32", "llvm.fshl", C[i], C[i], 3) + T.call_llvm_pure_intrin("int32", "llvm.smax.i32", T.uint32(2), C[i], 7)

        a, c = np.random.default_rng(1).standard_normal(16).astype("float32"), np.arange(16, dtype="int32") * 0x12345678
        a[3], b, d = np.nan, np.zeros_like(a), np.zeros_like(c)
        sator.build(f)(a, b, c, d)
        np.testing.assert_array_equal(b, np.fmax(a, np.float32(0.5)))  # maxnum is the number where one is a NaN
        turned = c.view("uint32") << np.uint32(3) | c.view("uint32") >> np.uint32(29)
        np.testing.assert_array_equal(d, turned.view("int32") + np.maximum(c, 7))

    def test_what_is_refused(self):
        for name, words in (("llvm.nope", "which it has not"), ("llvm.x86.avx512.pmaddw.d.512", "which one maker's machines have"),
                            ("llvm.bitreverse", r"of arguments or a result \(float32\) that it does not take"), ("llvm.sqrt", "llvm.sqrt of 3 arguments")):
            @T.prim_func
            def f(A: T.Buffer((4,), "float32")):
                for i in range(4):
                    A[i] = T.call_llvm_pure_intrin("float32", name, T.uint32(1), A[i], A[i])

            with self.subTest(name), self.assertRaisesRegex(sator.TVMError, words):
                sator.build(f)


if __name__ == "__main__":
    unittest.main()
