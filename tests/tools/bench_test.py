"""tools/bench.py: what it runs and how it shows results."""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import bench  # noqa: E402


class Bench(unittest.TestCase):
    def test_lines(self):
        self.assertEqual(bench.described({"bench": "gemm", "case": "m16", "gflops": 12.345678}), "gemm: m16: gflops 12.35")
        self.assertIn("BELOW", bench.described({"bench": "gemm", "ratio": 0.8, "reach": 0.85}))
        self.assertNotIn("BELOW", bench.described({"bench": "gemm", "ratio": 0.9, "reach": 0.85}))
        self.assertEqual(bench.described({"bench": "gemm", "absent": "no oneDNN"}), "gemm: not compared: no oneDNN")

    def test_a_broken_program_is_named_and_others_are_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("ir_good_bench", 'echo \'{"bench": "good", "us": 1.5}\''), ("ir_bad_bench", "exit 3")):
                Path(folder, name).write_text("#!/bin/sh\n" + text + "\n")
                Path(folder, name).chmod(0o755)
            run = subprocess.run([sys.executable, str(ROOT / "tools" / "bench.py"), folder, "ir_"], capture_output=True, text=True)
            self.assertEqual(run.returncode, 1)
            self.assertIn("broken: ir_bad", run.stdout)
            results = json.loads(Path(folder, "results.json").read_text())
            self.assertEqual((results["results"], results["broken"]), ([{"bench": "good", "us": 1.5}], ["ir_bad"]))


if __name__ == "__main__":
    unittest.main()
