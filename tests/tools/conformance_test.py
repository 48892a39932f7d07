"""tools/conformance.py: reading cases, the protocol, crashes, counts."""
import json
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import conformance  # noqa: E402

# Answers by what the case's text says; the text is only seen if references were filled.
ANSWERER = """
    import json, os, sys, time
    for line in sys.stdin:
        case = json.loads(line)
        what = case["before"]
        if what == "crash": os._exit(7)
        if what == "hang": time.sleep(60)
        if what == "babble": print("no json"); sys.stdout.flush(); continue
        print(json.dumps({"id": case["id"], "status": what, "detail": "because " + what})); sys.stdout.flush()
"""


class Conformance(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        self.program = self.root / "answer"
        self.program.write_text(f"#!{sys.executable}\n" + textwrap.dedent(ANSWERER))
        self.program.chmod(0o755)

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, rows):
        (self.root / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    def write_cases(self, *befores, **fields):
        self.write("r1.parse.jsonl", [dict(source_test="tests/t.py::x", n=i, kind="parse", before=b, **fields) for i, b in enumerate(befores)])

    def run_tool(self, *options):
        command = [sys.executable, str(ROOT / "tools" / "conformance.py"), str(self.root), "--program", str(self.program), "--release", "r1"]
        run = subprocess.run(command + list(options), capture_output=True, text=True)
        return run.returncode, run.stdout, run.stderr

    def statuses(self, *options):
        status, _, errors = self.run_tool("--json", str(self.root / "out.json"), *options)
        self.assertEqual(status, 0, errors)
        return {k: v["status"] for k, v in json.loads((self.root / "out.json").read_text()).items()}

    def test_shared_texts_are_put_back_everywhere(self):
        self.write("r1.texts.jsonl", [{"key": "@0123456789ab", "text": "long"}])
        self.write("r1.schedule.jsonl", [{"source_test": "a::b", "kind": "schedule", "before": "@0123456789ab", "actions": [{"args": ["@0123456789ab", "@x"]}]}])
        (case,) = conformance.load_cases(self.root, "r1")
        self.assertEqual((case["before"], case["actions"][0]["args"], case["category"]), ("long", ["long", "@x"], "schedule"))

    def test_ids_are_unique(self):
        self.write("r1.parse.jsonl", [{"source_test": "a::b", "kind": "parse", "n": 0}] * 3)
        ids = [case["id"] for case in conformance.load_cases(self.root, "r1")]
        self.assertEqual(ids, ["parse/a::b#0", "parse/a::b#0.2", "parse/a::b#0.3"])

    def test_crash_hang_and_babble_fail_one_case_each(self):
        self.write_cases("passed", "crash", "passed", "hang", "unsupported", "babble", "passed", "failed")
        got = list(self.statuses("--limit-s", "1.5", "--jobs", "1").values())
        self.assertEqual(got, ["passed", "failed", "passed", "failed", "unsupported", "failed", "passed", "failed"])

    def test_the_table_counts(self):
        self.write_cases("passed", "failed", "unsupported", "passed")
        _, out, _ = self.run_tool("--show", "1")
        row = next(line.split() for line in out.splitlines() if line.startswith("all"))
        self.assertEqual(row[1:8], ["2", "1", "1", "0", "50.0", "%", "50.0"])
        self.assertIn("because unsupported", out)
        self.assertIn("parse/t.py::x#1: failed", out)

    def test_filters(self):
        self.write_cases("passed", "failed")
        self.assertEqual(len(self.statuses("--filter", "failed")), 1)
        self.write_cases("passed", actions=[{"do": "split"}])
        self.assertEqual(len(self.statuses("--core")), 1)
        self.write_cases("passed", actions=[{"do": "split"}, {"do": "tensorize"}])
        status, _, errors = self.run_tool("--core")
        self.assertEqual(status, 1)
        self.assertIn("no case", errors)

    def test_against_names_what_was_lost(self):
        self.write_cases("passed", "failed")
        old = self.root / "old.json"
        self.assertEqual(self.run_tool("--json", str(old))[0], 0)
        self.assertEqual(self.run_tool("--against", str(old))[0], 0)
        self.write_cases("failed", "failed")
        status, out, _ = self.run_tool("--against", str(old))
        self.assertEqual(status, 1)
        self.assertIn("parse/t.py::x#0", out.splitlines()[-1])

    def test_ids_are_written_behind_their_files(self):
        ids = {"a/x.py::f#0", "a/x.py::g#1", "a/x.py::g#10", "b/y.py::f#0", "plain#3", "a/x.py::h::k#0"}
        self.assertEqual(conformance.read_ids(conformance.written_ids(ids)), ids)
        self.assertEqual(conformance.read_ids("".join(f"{i}\n" for i in sorted(ids))), ids)
        self.assertEqual(conformance.written_ids(ids).count("a/x.py"), 1)
        numbered = {f"a/x.py::f#{n}" for n in (0, 1, 2, 5, "5.2", 10, 11)} | {"a/x.py::f", "4,i%4]#3"}
        self.assertEqual(conformance.written_ids(numbered), "4,i%4]#3\na/x.py::\n f\n f#0-2,5,5.2,10-11\n")
        self.assertEqual(conformance.read_ids(conformance.written_ids(numbered)), numbered)

    def test_passing_cases_may_not_be_lost(self):
        known = str(self.root / "passing.txt")
        self.write_cases("passed", "failed")
        self.assertEqual(self.run_tool("--passing", known, "--accept")[0], 0)
        self.assertEqual(conformance.read_ids(Path(known).read_text()), {"parse/t.py::x#0"})
        self.assertEqual(self.run_tool("--passing", known)[0], 0)
        self.write_cases("failed", "passed")
        status, out, _ = self.run_tool("--passing", known)
        self.assertEqual((status, out.splitlines()[-1]), (1, "parse/t.py::x#0"))
        # Cases that are not run are neither lost nor forgotten.
        self.assertEqual(self.run_tool("--passing", known, "--filter", "x#1")[0], 0)
        self.assertEqual(self.run_tool("--passing", known, "--filter", "x#1", "--accept")[0], 0)
        self.assertEqual(Path(known).read_text(), "parse/t.py::\n x#0-1\n")


if __name__ == "__main__":
    unittest.main()
