#!/usr/bin/env python3
"""Runs the cases extracted from TVM's own tests against a program, and counts passed, failed, not supported.

    conformance.py DIR --program PROGRAM [--release v0.17.0] [--category C] [--kind K] [--filter TEXT] [--core]
                   [--show N] [--json FILE] [--against FILE] [--passing FILE] [--accept]

DIR holds `<release>.<category>.jsonl` and `<release>.texts.jsonl`. PROGRAM answers JSON lines as tools/conformance.md says. A case during
which it crashes or exceeds --limit-s seconds has failed; the program is then started again. The exit status is 0 unless
a case is lost: one of --passing, or one that passed in the earlier result (of --json) that --against names.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import queue
import re
import selectors
import subprocess
import sys
import time
from pathlib import Path

import arith_queries

# The cases of v0.17.0 that pass, one id a line: of these none may be lost.
PASSING = Path(__file__).parent.parent / "tests" / "conformance" / "passing.txt"
STATUSES = ("passed", "failed", "unsupported", "incomplete")
# The primitives of a first CPU compiler: what --core keeps of the schedule cases uses no others.
CORE = set("""get_block get_sblock get_loops get_child_blocks get_producers get_consumers split fuse reorder parallel vectorize unroll
    bind annotate unannotate compute_at reverse_compute_at compute_inline reverse_compute_inline cache_read cache_write
    decompose_reduction reindex transform_layout transform_block_layout pad_einsum set_scope storage_align rfactor""".split())
REFERENCE = re.compile(r"@[0-9a-f]{12}")


def filled(value, texts):
    """The value with references to shared texts replaced by the texts."""
    if isinstance(value, str):
        return texts.get(value, value) if REFERENCE.fullmatch(value) else value
    if isinstance(value, dict):
        return {key: filled(item, texts) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, texts) for item in value]
    return value


def read_lines(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def load_cases(folder, release):
    """All cases of a release, each with its category and an id that stays the same from run to run."""
    shared = folder / f"{release}.texts.jsonl"
    texts = {row["key"]: row["text"] for row in read_lines(shared)} if shared.exists() else {}
    files = sorted(p for p in folder.glob(f"{release}.*.jsonl") if p != shared)
    seen = collections.Counter()
    refused = collections.defaultdict(list)  # test -> the actions that it expects to be refused
    for path in files:
        category = path.name[len(release) + 1 : -len(".jsonl")]
        for case in read_lines(path):
            case = filled(case, texts)
            if case["kind"].startswith("schedule"):
                # A test that goes on after a refusal was extracted with the refused action still in its list.
                known = refused[case["source_test"]]
                *before, last = case["actions"]
                case["actions"] = [action for action in before if action not in known] + [last]
                if case["kind"] == "schedule_error":
                    known.append(last)
            base = f"{category}/{case['source_test'].split('/')[-1]}#{case.get('n', 0)}"
            seen[base] += 1
            yield dict(case, category=category, id=base if seen[base] == 1 else f"{base}.{seen[base]}")


def as_asked(case):
    """The request: an arithmetic case as a query, any other as it is."""
    if case["category"] == "arith" and case["kind"] in ("arith", "expr_equal", "expr_query"):
        return arith_queries.query_of(case)
    return case


def uses_only_core(case):
    actions = case.get("actions")
    return bool(actions) and all(action.get("do") in CORE for action in actions)


class Program:
    """The program under test, started again after a crash."""

    def __init__(self, command, limit_s):
        self.command, self.limit_s, self.process, self.rest = command, limit_s, None, b""

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.rest = b""

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None

    def answer_line(self):
        """The next line, or None when the program ends first; TimeoutError when it is late."""
        end = time.monotonic() + self.limit_s
        with selectors.DefaultSelector() as ready:
            ready.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in self.rest:
                if not ready.select(max(0, end - time.monotonic())):
                    raise TimeoutError
                chunk = os.read(self.process.stdout.fileno(), 1 << 16)
                if not chunk:
                    return None
                self.rest += chunk
        line, self.rest = self.rest.split(b"\n", 1)
        return line

    def run(self, case):
        """The answer to one case: {"status", "detail"}."""
        if not self.process:
            self.start()
        try:
            self.process.stdin.write(json.dumps(case).encode() + b"\n")
            self.process.stdin.flush()
            line = self.answer_line()
        except BrokenPipeError:
            line = None
        except TimeoutError:
            self.stop()
            return {"status": "failed", "detail": f"no answer after {self.limit_s} s"}
        if line is None:
            code = self.process.wait()
            self.stop()
            return {"status": "failed", "detail": f"crashed: {'signal' if code < 0 else 'exit status'} {abs(code)}"}
        try:
            answer = json.loads(line)
            if answer["id"] == case["id"] and answer["status"] in STATUSES:
                return {"status": answer["status"], "detail": str(answer.get("detail", ""))}
        except (ValueError, KeyError, TypeError):
            pass
        self.stop()
        return {"status": "failed", "detail": f"not an answer: {line[:200].decode(errors='replace')}"}


def run_cases(cases, command, limit_s, jobs):
    """Answers in the order of the cases."""
    idle = queue.Queue()
    programs = [Program(command, limit_s) for _ in range(jobs)]
    for program in programs:
        idle.put(program)

    def run(case):
        program = idle.get()
        try:
            return program.run(as_asked(case))
        finally:
            idle.put(program)

    try:
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(run, cases))
    finally:
        for program in programs:
            program.stop()


def table(cases, answers):
    """Counts per category and kind, and their sum."""
    counts = collections.defaultdict(collections.Counter)
    for case, answer in zip(cases, answers):
        counts[case["category"], case["kind"]][answer["status"]] += 1
    counts["all", ""] = sum(counts.values(), collections.Counter())
    yield (f"{'category':18s} {'kind':16s} {'passed':>7s} {'failed':>7s} {'not supported':>14s} {'incomplete':>10s} {'passed of all':>14s}"
           f" {'of complete':>12s}")
    for (category, kind), n in counts.items():
        all_cases = sum(n.values())
        share, of_complete = (100 * n["passed"] / max(1, count) for count in (all_cases, all_cases - n["incomplete"]))
        yield (f"{category:18s} {kind:16s} {n['passed']:7d} {n['failed']:7d} {n['unsupported']:14d} {n['incomplete']:10d} {share:12.1f} %"
               f" {of_complete:10.1f} %")


def most_frequent(answers, status, rows=10):
    """The first lines of the details that occur most often."""
    firsts = collections.Counter((a["detail"].splitlines() or ["(no words)"])[0][:120] for a in answers if a["status"] == status)
    return [f"{count:6d}  {words}" for words, count in firsts.most_common(rows)]


def shown(case, answer):
    """A case in full, for reading."""
    yield "=" * 100
    yield f"{case['id']}: {answer['status']}"
    for key, value in case.items():
        if key in ("id", "category"):
            continue
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield f"--- {key}\n{text}" if "\n" in text else f"{key}: {text}"
    yield f"--- answer\n{answer['detail']}"


def report_lost(known, now, source):
    """Prints the ids of `known` that do not pass now, of those that were run; 1 if there are any."""
    lost = sorted(case for case in known if now.get(case, "passed") != "passed")
    print(f"\n{len(lost)} cases passed in {source} and do not now", *lost, sep="\n")
    return 1 if lost else 0


def written_ids(ids):
    """In order, the cases of one test in a line, `test#0-3,5`; behind a line that ends with "::", which begins them, ids go on behind a blank.

    Two blanks stand for `test_`, and ` [` for the name of the test in the line before.
    """
    numbers = collections.defaultdict(list)  # of a test
    for case in ids:
        test, mark, number = case.rpartition("#")
        plain = mark and re.fullmatch(r"\d+(\.\d+)?", number)
        numbers[test if plain else case].append(tuple(map(int, number.split("."))) if plain else None)
    lines, begun, last = [], "", None
    for test in sorted(numbers):
        file, separator, rest = test.partition("::")
        if separator and file != begun:
            lines.append(f"{file}::")
        given = sorted(n for n in numbers[test] if n is not None)
        text = f" {rest}" if separator else test
        if separator:
            name, bracket, label = rest.partition("[")
            if bracket and (file, name) == last:
                text = f" [{label}"
            elif rest.startswith("test_"):
                text = f"  {rest.removeprefix('test_')}"
            last = file, name
        lines.extend([text] * (None in numbers[test]) + [f"{text}#{runs_of(given)}"] * bool(given))
        begun = file if separator else ""
    return "".join(f"{line}\n" for line in lines)


def runs_of(numbers):
    """(0,), (1,), (2,), (5,), (5, 2) as 0-2,5,5.2."""
    runs = []
    for n in numbers:
        if runs and len(n) == 1 and runs[-1][1] == (n[0] - 1,):
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return ",".join(".".join(map(str, a)) + (f"-{b[0]}" if a != b else "") for a, b in runs)


def read_ids(text):
    """What written_ids wrote; whole ids too."""
    ids, begun, name = set(), "", ""
    for line in text.splitlines():
        if line.endswith("::"):
            begun = line
            continue
        if line.startswith(" "):
            rest = "test_" + line[2:] if line.startswith("  ") else name + line[1:] if line.startswith(" [") else line[1:]
            name = re.split(r"[\[#]", rest)[0]
        case = begun + rest if line.startswith(" ") else line
        test, _, numbers = case.rpartition("#")
        if not test or not re.fullmatch(r"[\d.,-]+", numbers):
            ids.add(case)
            continue
        for run in numbers.split(","):
            first, _, last = run.partition("-")
            ids.update(f"{test}#{n}" for n in range(int(first), int(last) + 1)) if last else ids.add(f"{test}#{run}")
    return ids


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the cases were extracted")
    parser.add_argument("--program", required=True, help="answers cases: tools/conformance.md")
    parser.add_argument("--release", default="v0.17.0")
    parser.add_argument("--category")
    parser.add_argument("--kind")
    parser.add_argument("--filter", default="", help="keep cases that contain this text anywhere")
    parser.add_argument("--core", action="store_true", help="keep cases whose actions are all among the core schedule primitives")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print the first N failed cases in full")
    parser.add_argument("--status", default="failed", choices=STATUSES, help="which cases --show prints")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write status and detail of each case")
    parser.add_argument("--against", type=Path, metavar="FILE", help="an earlier --json: exit 1 if a case passed then and does not now")
    parser.add_argument("--passing", type=Path, metavar="FILE", help="the ids that have to pass (v0.17.0: tests/conformance/passing.txt)")
    parser.add_argument("--accept", action="store_true", help="write the ids that pass now to that file")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit-s", type=float, default=20)
    args = parser.parse_args()

    cases = [
        case
        for case in load_cases(args.folder, args.release)
        if (not args.category or case["category"] == args.category)
        and (not args.kind or case["kind"] == args.kind)
        and (not args.core or uses_only_core(case))
        and args.filter in json.dumps(case, ensure_ascii=False)
    ]
    if not cases:
        sys.exit(
            f"error: no case of release {args.release} in {args.folder} is left\n"
            "  needs: files RELEASE.CATEGORY.jsonl there, and options that keep some of their cases\n"
            "  hint:  tools/conformance.md says where the cases come from"
        )
    answers = run_cases(cases, [args.program], args.limit_s, args.jobs)
    chosen = [(c, a) for c, a in zip(cases, answers) if a["status"] == args.status]
    for case, answer in chosen[: args.show]:
        print("\n".join(shown(case, answer)))
    print("\n".join(table(cases, answers)))
    for status, title in (("failed", "failed, by the first line of the answer"), ("unsupported", "not supported")):
        rows = most_frequent(answers, status)
        if rows:
            print(f"\n{title}:", *rows, sep="\n")
    shown_wrong = [(c["id"], a["detail"]) for c, a in zip(cases, answers) if a["status"] == "passed" and a["detail"].startswith("counterexample")]
    if shown_wrong:
        print(f"\n{len(shown_wrong)} of the passed by a counterexample to TVM's result:", *(f"  {case}: {words}" for case, words in shown_wrong), sep="\n")
    if args.json:
        args.json.write_text(json.dumps({c["id"]: a for c, a in zip(cases, answers)}, indent=1))
    now = {c["id"]: a["status"] for c, a in zip(cases, answers)}
    status = 0
    if args.against:
        before = json.loads(args.against.read_text())
        status |= report_lost({case for case, a in before.items() if a["status"] == "passed"}, now, args.against)
    passing = args.passing or (PASSING if args.release == "v0.17.0" else None)
    if passing:
        known = read_ids(passing.read_text()) if passing.exists() else set()
        if args.accept:
            kept = {case for case in known if case not in now} | {case for case, s in now.items() if s == "passed"}
            if passing.resolve() != PASSING.resolve() and passing.parent.resolve() == PASSING.parent.resolve():
                kept -= read_ids(PASSING.read_text())  # its own list holds them
            passing.write_text(written_ids(kept))
        else:
            status |= report_lost(known, now, passing)
    return status


if __name__ == "__main__":
    sys.exit(main())
