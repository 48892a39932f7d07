"""tools/run_tests.py: reports, filters and the closing line."""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import run_tests  # noqa: E402


def report(*tests):
    return json.dumps({"testsuites": [{"name": "Suite", "testsuite": list(tests)}]})


PASSED = {"name": "good", "status": "RUN", "result": "COMPLETED"}
FAILED = {"name": "bad", "status": "RUN", "result": "COMPLETED", "failures": [{"failure": "words"}]}
SKIPPED = {"name": "skip", "status": "RUN", "result": "SKIPPED"}
DISABLED = {"name": "off", "status": "NOTRUN", "result": "SUPPRESSED"}


class Report(unittest.TestCase):
    def test_counts_each_kind(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "r.json"
            path.write_text(report(PASSED, FAILED, SKIPPED, DISABLED, PASSED))
            self.assertEqual(run_tests.read_report(path), (2, 1, 1, ["Suite.bad"], None))


class WholeRun(unittest.TestCase):
    """Through ctest, with shell commands as test programs."""

    def run_with(self, *programs):
        with tempfile.TemporaryDirectory() as folder:
            lines = []
            for name, text, status in programs:
                report_line = f"printf '%s' '{text}' > results/{name}.json; " if text else ""
                lines.append(f'add_test({name} "sh" "-c" "{(report_line + f"exit {status}").replace(chr(34), chr(92) + chr(34))}")')
            Path(folder, "CTestTestfile.cmake").write_text("\n".join(lines) + "\n")
            run = subprocess.run([sys.executable, str(ROOT / "tools" / "run_tests.py"), folder], capture_output=True, text=True)
            return run.returncode, run.stdout.splitlines()

    def test_all_pass(self):
        status, lines = self.run_with(("a", report(PASSED), 0), ("b", report(PASSED, SKIPPED), 0))
        self.assertEqual((status, lines[-1]), (0, "2 passed, 0 failed, 1 skipped"))

    def test_a_failure_is_named(self):
        status, lines = self.run_with(("a", report(PASSED, FAILED), 1))
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed"))
        self.assertIn("failed: a: Suite.bad", lines)

    def test_a_note_is_printed(self):
        noted = json.dumps(dict(json.loads(report(PASSED)), note="from seed 7"))
        status, lines = self.run_with(("a", noted, 0))
        self.assertEqual((status, lines), (0, lines[:-2] + ["a: from seed 7", "1 passed, 0 failed"]))

    def test_a_program_that_dies_counts(self):
        status, lines = self.run_with(("a", report(PASSED), 0), ("b", "", 3))
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed"))

    def test_a_bad_end_after_good_tests_counts(self):
        status, lines = self.run_with(("a", report(PASSED), 1))
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed"))

    def test_no_tests_are_no_success(self):
        status, _ = self.run_with(("a", report(), 0))
        self.assertEqual(status, 1)


if __name__ == "__main__":
    unittest.main()
