"""Language models, studies and costs from Python, on the small GPT-2 of examples/."""
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import numpy as np

import sator
from sator.script import tir as T

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "examples" / "gpt2-stories"


class Model(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.said = []
        cls.lm = sator.LM(MODEL, quantization="f32", progress=cls.said.append)

    def test_generates_what_the_logits_say(self):
        prompt = "Once upon a time"
        text = self.lm.generate(prompt, max_tokens=5)
        ids = self.lm.encode(prompt)
        for _ in range(5):
            ids.append(int(np.argmax(self.lm.logits(ids)[-1])))
        self.assertEqual(self.lm.decode(ids), prompt + text)

    def test_perplexity_is_that_of_the_logits(self):
        text = (MODEL / "validation.txt").read_text()
        heard = []
        p = self.lm.perplexity(text, windows=2, window_tokens=64, progress=heard.append)
        self.assertEqual((p["windows"], p["predictions"]), (2, 2 * 63))
        self.assertEqual(len(heard), 2)
        # The same by NumPy, on the tokens of the first two windows.
        stream = self.lm.encode(text)[: 2 * 64]
        total = 0.0
        for window in (stream[:64], stream[64:]):
            logits = self.lm.logits(window).astype("float64")
            log_p = logits - logits.max(-1, keepdims=True)
            log_p -= np.log(np.exp(log_p).sum(-1, keepdims=True))
            total -= sum(log_p[i, window[i + 1]] for i in range(63))
        self.assertAlmostEqual(p["perplexity"] / math.exp(total / (2 * 63)), 1, places=4)

    def test_scores_are_sums_of_the_logits(self):
        context, text = "Once upon a time", " there was a little girl"
        ids, first = self.lm.encode(context + text), len(self.lm.encode(context))
        logits = self.lm.logits(ids).astype("float64")
        log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        score = self.lm.score(text, context)
        self.assertAlmostEqual(score["log_likelihood"], sum(log_p[i - 1, ids[i]] for i in range(first, len(ids))), places=6)
        self.assertEqual((score["tokens"], score["is_greedy"]), (len(ids) - first, False))
        likely = self.lm.generate(context, max_tokens=4)
        self.assertTrue(self.lm.score(likely, context)["is_greedy"])
        self.assertAlmostEqual(self.lm.score(context + text)["log_likelihood"], sum(log_p[i - 1, ids[i]] for i in range(1, len(ids))), places=6)
        for arguments, words in ((("",), "no token to score"), (("x", 3), "context = 3 is a int")):
            with self.assertRaisesRegex((TypeError, ValueError), words):
                self.lm.score(*arguments)

    def test_what_may_not_be_meant_is_a_warning(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("tokenizer.json", "model.safetensors"):
                os.symlink(MODEL / name, Path(folder) / name)
            config = json.loads((MODEL / "config.json").read_text())
            (Path(folder) / "config.json").write_text(json.dumps({**config, "n_layer": 2}))
            with self.assertWarnsRegex(UserWarning, r"not used, as config.json asks for none: transformer\.h\.2") as seen:
                sator.LM(folder, quantization="f32")
            self.assertEqual(seen.filename, __file__)

    def test_folders_are_those_of_the_command_line(self):
        file = ROOT / "tests" / "reference" / "models" / "gguf" / "llama.gguf"
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(file, Path(folder) / "llama.gguf")
            by_file, by_folder = sator.LM(file, threads=1), sator.LM(folder, threads=1)
            self.assertEqual(by_folder.quantization, by_file.quantization)
            self.assertTrue(np.array_equal(by_folder.logits([1, 2, 3]), by_file.logits([1, 2, 3])))
            self.assertEqual(len(sator.export_model(folder)[1]), len(sator.export_model(file)[1]))
            os.symlink(file, Path(folder) / "other.gguf")
            with self.assertRaisesRegex(sator.TVMError, "holds 2 GGUF files"):
                sator.LM(folder)

    def test_seeds_are_those_of_the_command_line(self):
        self.assertEqual(self.lm.generate("Once", max_tokens=2, temperature=1.0, seed=2**63 - 1),
                         sator.command("generate", MODEL, prompt="Once", max_tokens=2, temperature=1.0, seed=2**63 - 1, quantization="f32")["text"])

    def test_values_that_are_no_names(self):
        for call, words in ((lambda: sator.LM(None), "the folder None is a NoneType"), (lambda: sator.study(MODEL, quant=3), "quant=3 is a int"),
                            (lambda: sator.study(MODEL, chip=[1]), r"chip=\[1\] is a list"), (lambda: sator.study(None), "the model None is a NoneType")):
            with self.subTest(words), self.assertRaisesRegex(TypeError, words):
                call()

    def test_a_model_without_a_tokenizer_takes_ids(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("config.json", "model.safetensors"):
                os.symlink(MODEL / name, Path(folder) / name)
            lm = sator.LM(folder, quantization="f32")
            ids = self.lm.encode("Once upon a time")
            np.testing.assert_array_equal(lm.logits(ids), self.lm.logits(ids))
            with self.assertRaisesRegex(RuntimeError, "there is no tokenizer in"):
                lm.encode("Once")

    def test_a_callback_ends_a_text_and_its_exception_arrives(self):
        pieces = []

        def two(piece):
            pieces.append(piece)
            return len(pieces) < 2

        text = self.lm.generate("Once upon a time", max_tokens=50, on_text=two)
        self.assertEqual(len(pieces), 2)
        self.assertEqual(text, "".join(pieces))

        def wrong(piece):
            raise OverflowError("in the callback")

        with self.assertRaises(OverflowError):
            self.lm.generate("Once upon a time", max_tokens=50, on_text=wrong)

    def test_calls_take_turns(self):
        prompt = "Once upon a time"
        alone = self.lm.generate(prompt, max_tokens=12)
        row = self.lm.logits([1, 2, 3])
        for inner in (lambda: self.lm.generate(prompt, max_tokens=2), lambda: self.lm.logits([1, 2, 3])):
            with self.assertRaisesRegex(RuntimeError, "a callback calls the language model that called it"):
                self.lm.generate(prompt, max_tokens=12, on_text=lambda piece: inner() and None)
        self.assertEqual(self.lm.generate(prompt, max_tokens=12), alone)
        seen = []

        def both():
            seen.append((self.lm.generate(prompt, max_tokens=12), self.lm.logits([1, 2, 3])))

        threads = [threading.Thread(target=both) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([text for text, _ in seen], [alone] * 4)
        for _, logits in seen:
            np.testing.assert_array_equal(logits, row)

    def test_ctrl_c_ends_a_generation(self):
        timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        begin = time.perf_counter()
        with self.assertRaises(KeyboardInterrupt):
            for _ in range(1000):
                self.lm.generate("Once upon a time", max_tokens=400)
        self.assertLess(time.perf_counter() - begin, 20)
        self.assertTrue(self.lm.generate("Once upon a time", max_tokens=2))

    def test_what_the_makers_suggest(self):
        """As `sator generate --greedy`: the first greedy token is 12, a comma."""
        plain = self.lm.generate("Once upon a time", max_tokens=4)
        self.assertTrue(plain.startswith(", I"))
        for more, wanted in (({"eos_token_id": [0, 12]}, ""), ({"stop_strings": [" I"]}, ","), ({}, plain)):
            with tempfile.TemporaryDirectory() as folder:
                for file in MODEL.iterdir():
                    if file.name != "generation_config.json":
                        os.symlink(file, Path(folder, file.name))
                suggested = json.loads((MODEL / "generation_config.json").read_text())
                Path(folder, "generation_config.json").write_text(json.dumps(suggested | more))
                lm = sator.LM(folder)
                self.assertEqual(lm.generate("Once upon a time", max_tokens=4), wanted)
                if more.get("stop_strings"):
                    self.assertEqual(lm.generate("Once upon a time", max_tokens=4, stop=" was"), ", I")
                Path(folder, "generation_config.json").write_text(json.dumps(suggested | {"num_beams": 4}))
                with self.assertWarnsRegex(UserWarning, "is not done here: num_beams 4"):
                    lm.generate("Once", max_tokens=1)
                Path(folder, "generation_config.json").write_bytes(b'{"a": "\xff"}')
                with self.assertRaisesRegex(sator.TVMError, "generation_config.json is not valid JSON"):
                    lm.generate("Once", max_tokens=1)

    def test_ctrl_c_ends_an_encoding(self):
        text = "Once upon a time there was a little girl. " * 3_000_000
        threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            self.lm.encode(text)
        self.assertEqual(len(self.lm.encode(text[:41])), 10)

    def test_what_is_no_model_is_refused(self):
        with self.assertRaises(sator.TVMError) as caught:
            sator.LM(ROOT / "docs")
        self.assertTrue(caught.exception.needs)
        with self.assertRaises(sator.TVMError):
            sator.LM(MODEL, quantization="int99")
        np.testing.assert_array_equal(self.lm.logits(sator.nd.array(np.array([1, 2]))), self.lm.logits([1, 2]))
        for kind, words, wrong in ((TypeError, "needs: a list of token ids", lambda: self.lm.logits("Once")),
                                   (ValueError, "ids of the shape \\(1, 2\\)\n  needs: one sequence", lambda: self.lm.logits(np.array([[1, 2]]))),
                                   (TypeError, "encode: .* holds half of a surrogate pair", lambda: self.lm.encode("a\ud800")),
                                   (TypeError, "the id 1.5 is a float", lambda: self.lm.logits([1.5])),
                                   (ValueError, "there is no token 10000000", lambda: self.lm.decode([10**7])),
                                   (ValueError, "there is no token -1", lambda: self.lm.decode([-1])),
                                   (ValueError, "max_tokens is -1", lambda: self.lm.generate("Once", max_tokens=-1)),
                                   (ValueError, "max_tokens is 18446744073709551616\n  needs: an integer from 0 to 2\\^63 - 1",
                                    lambda: self.lm.generate("Once", max_tokens=2**64)),
                                   (TypeError, "max_tokens = 1.5 is a float", lambda: self.lm.generate("Once", max_tokens=1.5)),
                                   (ValueError, "seed is -1\n  needs: an integer from 0 to 2\\^63 - 1", lambda: self.lm.generate("Once", seed=-1)),
                                   (ValueError, "seed is 9223372036854775808", lambda: self.lm.generate("Once", seed=2**63)),
                                   (TypeError, "generate: 3 in stop is a int", lambda: self.lm.generate("Once", stop=[3])),
                                   (TypeError, "generate: 3 in stop is a int", lambda: self.lm.generate("Once", stop=3)),
                                   (ValueError, "LM: threads is 0\n  needs: an integer from 1 to 1024", lambda: sator.LM(MODEL, threads=0)),
                                   (ValueError, "LM: threads is 4294967297", lambda: sator.LM(MODEL, threads=2**32 + 1))):
            with self.assertRaisesRegex(kind, words):
                wrong()

    def test_one_text_that_stops_is_not_its_letters(self):
        whole = self.lm.generate("Once upon a time", max_tokens=40)
        word = whole.split()[6]
        self.assertLess(min(whole.find(letter) for letter in word), whole.find(word))
        self.assertEqual(self.lm.generate("Once upon a time", max_tokens=40, stop=word), whole[: whole.find(word)])
        self.assertEqual(self.lm.generate("Once upon a time", max_tokens=40, stop=[word]), whole[: whole.find(word)])


class Costs(unittest.TestCase):
    def test_a_study_of_shapes_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            heard = []
            result = sator.study(MODEL, quant=["f16", "int8-channel+a8"], chip=["edge_npu32"], shapes_only=True,
                                 output=Path(folder) / "study", progress=heard.append)
            written = json.loads((Path(folder) / "study" / "study.json").read_text())
        self.assertEqual(result.to_dict(), written)
        self.assertEqual([s["scheme"] for s in result.schemes], ["f16", "int8-channel+a8"])
        self.assertIn("edge_npu32", str(result))
        self.assertTrue(heard)

    def test_a_tensor_program_on_a_described_chip(self):
        @T.prim_func
        def matmul(A: T.Buffer((64, 64), "int8"), B: T.Buffer((64, 64), "int8"), C: T.Buffer((64, 64), "int32")):
            for i, j, k in T.grid(64, 64, 64):
                with T.block("C"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    with T.init():
                        C[vi, vj] = 0
                    C[vi, vj] = C[vi, vj] + T.Cast("int32", A[vi, vk]) * T.Cast("int32", B[vj, vk])

        (cost,) = sator.estimate(matmul, chip="edge_npu32").to_dict()
        self.assertEqual(cost["macs"], 64 * 64 * 64)
        self.assertEqual(cost["function"], "matmul")

    def test_schemes_and_chips(self):
        self.assertTrue(any("f16" in s["names"] for s in sator.schemes()))
        self.assertIn("edge_npu32", sator.chips())

    def test_the_program_itself_runs_as_a_module(self):
        run = subprocess.run([sys.executable, "-m", "sator", "schemes"], capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(run.stdout, sator.command("schemes").text)
        run = subprocess.run([sys.executable, "-m", "sator", "studdy"], capture_output=True, text=True)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("study", run.stderr)

    def test_a_command_s_mistakes_are_exceptions(self):
        with self.assertRaises(sator.TVMError) as caught:
            sator.study(MODEL, chip=["no_such_chip"], shapes_only=True, output=tempfile.gettempdir() + "/none")
        self.assertIn("no_such_chip", str(caught.exception))
        with self.assertRaises(sator.TVMError):
            sator.command("studdy")


if __name__ == "__main__":
    unittest.main()
