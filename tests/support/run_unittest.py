#!/usr/bin/env python3
"""Runs the unittest files *_test.py of a folder and writes a report in the shape of GoogleTest's JSON.

    run_unittest.py --report FILE FOLDER        environment: SATOR_TEST_FILTER, part of `folder/Class.name`
"""
import argparse
import json
import os
import sys
import unittest
from pathlib import Path


class Recorder(unittest.TextTestResult):
    """Notes each test's end for the report."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.entries = []

    def note(self, test, result="COMPLETED", failure=None):
        kind, name = test.id().rsplit(".", 2)[-2:]
        entry = {"name": f"{kind}.{name}", "status": "RUN", "result": result}
        if failure:
            entry["failures"] = [{"failure": failure, "type": ""}]
        self.entries.append(entry)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note(test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, "SKIPPED")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, failure=str(err[1]))

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, failure=str(err[1]))


def chosen(suite, text, folder):
    """The tests of a suite whose name contains the text."""
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from chosen(test, text, folder)
        elif text.lower() in f"{folder}/{test.id()}".lower():
            yield test


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", type=Path, required=True)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    sys.dont_write_bytecode = True
    found = unittest.TestLoader().discover(str(args.folder), pattern="*_test.py")
    tests = unittest.TestSuite(chosen(found, os.environ.get("SATOR_TEST_FILTER", ""), args.folder.name))
    result = unittest.TextTestRunner(resultclass=Recorder, verbosity=1).run(tests)
    suites = [{"name": args.folder.name, "testsuite": result.entries}] if result.entries else []
    args.report.parent.mkdir(parents=True, exist_ok=True)
    args.report.write_text(json.dumps({"testsuites": suites}, indent=1))
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
