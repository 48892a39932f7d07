"""What the Attach passes add to a module, against NumPy."""
import json
import unittest

import numpy as np

import sator as tvm
from sator import relax
from sator.script import ir as I, relax as R


@I.ir_module
class Model:
    @R.function
    def main(x: R.Tensor((4, 4), "float32")):
        gv = R.exp(R.multiply(x, x))
        return gv


class Serving(unittest.TestCase):
    def setUp(self):
        self.random = np.random.default_rng(3)

    def test_softmax_with_temperature(self):
        module = relax.transform.AttachSoftmaxWithTemperature(active_vocab_size=9)(Model)
        logits = self.random.standard_normal((4, 1, 11)).astype("float32")
        logits[1, 0, [2, 5]] = 4  # two that are equally likely
        temperature = np.array([1, 0, 0.5, 2], "float32")
        got = relax.VirtualMachine(relax.build(module, "llvm"), tvm.cpu())["softmax_with_temperature"](logits, temperature).numpy()
        want = np.zeros((4, 1, 11))
        for row in (0, 2, 3):
            e = np.exp(logits[row, 0, :9].astype("float64") / temperature[row])
            want[row, 0, :9] = e / e.sum()
        want[1, 0, [2, 5]] = 0.5
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7)

    def run_program(self, module, name, *arrays):
        tensors = [tvm.nd.array(a) for a in arrays]
        tvm.build(module[name], target="llvm")(*tensors)
        return tensors

    def test_logits_are_biased_penalised_and_masked(self):
        module = relax.transform.AttachLogitProcessFunc()(Model)
        logits = self.random.standard_normal((3, 40)).astype("float32")
        rows, tokens, bias = np.array([2, 0, 2], "int32"), np.array([7, 39, 1], "int32"), np.array([1, -2, 0.5], "float32")
        want = logits.copy()
        want[rows, tokens] += bias
        got = self.run_program(module, "apply_logit_bias_inplace", logits, rows, tokens, bias)[0].numpy()
        np.testing.assert_allclose(got, want, rtol=1e-6)

        sequences, of = np.array([2, 0], "int32"), np.array([0, 1, 1], "int32")
        counts, penalties = np.array([3, 1, 2], "int32"), np.array([[0.5, 0.25, 1.5], [0.1, 0.2, 2]], "float32")
        want = logits.astype("float64")
        for p, token in enumerate(tokens):
            presence, frequency, repetition = penalties[of[p]].astype("float64")
            v = want[sequences[of[p]], token] - presence - counts[p] * frequency
            want[sequences[of[p]], token] = v * repetition if v < 0 else v / repetition
        got = self.run_program(module, "apply_penalty_inplace", logits, sequences, of, tokens, counts, penalties)[0].numpy()
        np.testing.assert_allclose(got, want, rtol=1e-5)

        bits = self.random.integers(-2**31, 2**31, (3, 2)).astype("int32")
        allowed = (bits.astype("int64")[:, np.arange(40) // 32] >> (np.arange(40) % 32)) & 1
        want = logits.copy()
        for row in sequences:
            want[row] = np.where(allowed[row], logits[row], np.finfo("float32").min)
        got = self.run_program(module, "apply_bitmask_inplace", logits, sequences, bits)[0].numpy()
        np.testing.assert_array_equal(got, want)

    def test_rows_are_gathered_and_scattered(self):
        module = relax.transform.AttachSpecDecodeAuxFuncs(dtype="float16")(Model)
        source, at = self.random.standard_normal((5, 6)).astype("float32"), np.array([4, 0, 4], "int32")
        got = self.run_program(module, "gather_probs", source, at, np.zeros((3, 6), "float32"))[2].numpy()
        np.testing.assert_array_equal(got, source[at])
        small, places, wide = source[:2].astype("float16"), np.array([3, 1], "int32"), np.ones((4, 6), "float16")
        got = self.run_program(module, "scatter_hidden_states", small, places, wide)[2].numpy()
        wide[places] = small
        np.testing.assert_array_equal(got, wide)

    def test_metadata_counts_the_storages(self):
        module = tvm.transform.Sequential([
            relax.transform.LegalizeOps(), relax.transform.ToNonDataflow(), relax.transform.RemovePurityChecking(),
            relax.transform.CallTIRRewrite(), relax.transform.StaticPlanBlockMemory(),
            relax.transform.AttachMetadataWithMemoryUsage(metadata='{"model_type": "toy"}')])(Model)
        vm = relax.VirtualMachine(relax.build(module, "llvm"), tvm.cpu())
        # One storage for x * x of 4 x 4 floats, and the result, which the caller keeps.
        self.assertEqual(json.loads(str(vm["_metadata"]())), {"model_type": "toy", "memory_usage": {"main": 128}})


if __name__ == "__main__":
    unittest.main()
