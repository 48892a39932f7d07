"""The example of docs/python.md runs."""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import pages

ROOT = Path(__file__).resolve().parents[2]


class Page(unittest.TestCase):
    def test_the_example_of_the_page(self):
        (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.S)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "example.py"
            file.write_text(code)
            ran = subprocess.run([sys.executable, file], cwd=ROOT, capture_output=True, text=True, env=os.environ)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("for i in T.parallel(64):", ran.stdout)
        self.assertIn("'predictions': 126", ran.stdout)


    def test_mistakes_and_what_they_are_answered_with(self):
        pages.run("docs/mistakes.md")

    def test_kernels_of_a_library(self):
        pages.run("docs/backends.md")

    def test_questions_of_the_seeds(self):
        pages.run("docs/questions.md")


if __name__ == "__main__":
    unittest.main()
