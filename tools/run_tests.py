#!/usr/bin/env python3
"""Runs the tests of a build folder through ctest and sums them up.

    run_tests.py BUILD_DIR [FILTER] [--label WORDS]

Each test program writes a report into BUILD_DIR/results: GoogleTest's JSON, or the text tests' in the same shape. The last
line is `N passed, N failed` (`, N skipped` may follow), after the label if there is one. A program that ends without a
report, or badly after its last test (a leak, say), counts as one failure. A report's "note" is printed: the seed of a fuzzer. FILTER keeps the tests whose `room/Suite.Name` or `tests/path.test:case` contains it, in any case of letters.
"""
import argparse
import collections
import json
import os
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path


def ctest_programs(build_dir):
    """The programs that ctest knows: name to command."""
    listing = subprocess.run(["ctest", "--show-only=json-v1"], cwd=build_dir, capture_output=True, text=True, check=True)
    return {test["name"]: test["command"] for test in json.loads(listing.stdout)["tests"]}


def gtest_names(command):
    """The tests of a GoogleTest program: "Suite.Name"."""
    listing = subprocess.run([command[0], "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
    names, suite = [], ""
    for line in listing.splitlines():
        word = line.split("#")[0].strip()
        if line.startswith(" "):
            names.append(suite + word)
        elif word.endswith("."):
            suite = word
    return names


def is_gtest(command):
    return any("--gtest_output" in word for word in command)


def gtest_selection(programs, text):
    """What the filter keeps: per program the patterns of GTEST_FILTER, without programs that keep nothing."""
    kept = {}
    for program, command in programs.items():
        if not is_gtest(command):
            continue
        suites = collections.defaultdict(lambda: ([], []))
        for name in gtest_names(command):
            suites[name.split(".")[0]][text.lower() in f"{program}/{name}".lower()].append(name)
        # A whole suite is one pattern: the environment has no room for thousands of names.
        patterns = [p for suite, (out, inside) in suites.items() for p in (inside if out else [suite + ".*"])]
        if patterns:
            kept[program] = patterns
    return kept


def ended_badly(junit_path):
    """The programs whose exit status ctest reports as a failure."""
    cases = xml.etree.ElementTree.parse(junit_path).getroot().iter("testcase")
    return {case.get("name") for case in cases if case.get("status") != "run"}


def read_report(path):
    """(passed, failed, skipped, names of failures, note) of one report."""
    report = json.loads(path.read_text())
    passed, failed, skipped, failures = 0, 0, 0, []
    for suite in report["testsuites"]:
        for test in suite["testsuite"]:
            if test.get("status") == "NOTRUN":
                continue
            if test.get("result") == "SKIPPED":
                skipped += 1
            elif test.get("failures"):
                failed += 1
                failures.append(f"{suite['name']}.{test['name']}")
            else:
                passed += 1
    return passed, failed, skipped, failures, report.get("note")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build_dir", type=Path)
    parser.add_argument("filter", nargs="?", default="")
    parser.add_argument("--label", default="")
    args = parser.parse_intermixed_args()
    results = args.build_dir / "results"
    results.mkdir(exist_ok=True)
    for old in results.glob("*.json"):
        old.unlink()

    programs = ctest_programs(args.build_dir)
    environment = dict(os.environ, SATOR_TEST_FILTER=args.filter, CTEST_OUTPUT_ON_FAILURE="1")
    junit = (results / "ctest.xml").resolve()
    command = ["ctest", "-j", str(os.cpu_count()), "--output-junit", str(junit)]
    chosen = list(programs)
    if args.filter:
        kept = gtest_selection(programs, args.filter)
        environment["GTEST_FILTER"] = ":".join(pattern for patterns in kept.values() for pattern in patterns)
        # The other kinds of programs read SATOR_TEST_FILTER themselves.
        chosen = [p for p in programs if p in kept or not is_gtest(programs[p])]
        command += ["-R", "^(" + "|".join(chosen) + ")$"]
    subprocess.run(command, cwd=args.build_dir, env=environment)

    bad = ended_badly(junit)
    passed = failed = skipped = 0
    for program in chosen:
        report = results / f"{program}.json"
        try:
            p, f, s, failures, note = read_report(report)
        except (OSError, ValueError, KeyError):
            p, f, s, failures, note = 0, 1, 0, ["the program ended without a report"], None
        if program in bad and not f:
            f, failures = 1, ["the program ended badly after its last test"]
        passed, failed, skipped = passed + p, failed + f, skipped + s
        if note:
            print(f"{program}: {note}")
        for name in failures:
            print(f"failed: {program}: {name}")
    if passed + failed + skipped == 0:
        print(f"no test matches {args.filter!r}" if args.filter else "there are no tests")
        return 1
    print(f"{args.label}{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
