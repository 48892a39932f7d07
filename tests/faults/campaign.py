#!/usr/bin/env python3
"""Faults in the program's calls on files: kills, full disks, broken disks, short writes, little memory, signals, and several
processes at once. Afterwards every file is whole or absent, and the same command finishes the work with the same result.

    campaign.py --program SATOR --preload LIBRARY [--slice] [--only WORD] [--report FILE] [--keep FOLDER]

A site is a call of write, rename, fsync, open, mkdir, ftruncate or unlink with the callers that led there (preload.cc). --slice
takes a few commands and one fault per site: for `./dev test`. The last line sums up; --report writes it as GoogleTest's JSON.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

from world import COMMANDS, MEMORY, Stock, World, must, without_measures

KILLED = ("write", "pwrite", "writev", "rename", "fsync", "open", "mkdir", "ftruncate", "unlink")
ERRORS = {"write": ("ENOSPC", "EIO", "short"), "pwrite": ("ENOSPC", "EIO", "short"), "writev": ("ENOSPC", "short"),
          "rename": ("EROFS", "EIO"), "fsync": ("EIO", "ENOSPC"), "open": ("EROFS", "ENOSPC"), "mkdir": ("EROFS", "ENOSPC"),
          "ftruncate": ("ENOSPC",), "unlink": ("EROFS",)}
SLICE = ("calibrate", "convert_weight again", "study again")
SLICE_CASES = 24  # of a command, spread over its sites


class Campaign:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.commands = [c for c in COMMANDS if args.only in c.name and (not args.slice or c.name in SLICE)]
        self.stock = Stock(args.program, args.preload, folder / "stock", self.commands)
        self.worlds = threading.local()
        self.number = 0
        self.lock = threading.Lock()
        self.sites, self.cases, self.failures = collections.Counter(), collections.Counter(), []

    def world(self):
        """The calling thread's own."""
        if not hasattr(self.worlds, "own"):
            with self.lock:
                self.number += 1
                self.worlds.own = World(self.args.program, self.args.preload, self.stock.folder, self.folder / f"world{self.number}")
        return self.worlds.own

    def count(self, kind, command, problems, case):
        with self.lock:
            self.cases[kind] += 1
            for problem in problems:
                self.failures.append(f"{command.name}: {case}: {problem}")
                print("FAILED", self.failures[-1], flush=True)

    # --- what must hold

    def broken(self, world, command):
        """Files that are neither as before, nor as the command leaves them."""
        before, end = self.stock.states[command.name], self.stock.ends[command.name]
        problems = []
        for name, content in world.files(command).items():
            same = [without_measures(name, c) for c in (before.get(name), end.get(name)) if c is not None]
            mine = without_measures(name, content)
            if Path(name).name.startswith(".sator-"):
                try:
                    json.loads(content)
                except ValueError:
                    problems.append(f"{name} is no whole list")
            elif not same:
                problems.append(f"{name} is a file that the command does not leave")
            elif mine not in same:
                problems.append(f"{name} is neither the old nor the new file ({len(content)} bytes)")
        return problems

    def finishes(self, world, command):
        """The same command again."""
        world.age()
        status, out, notes = world.run(command.args)
        if status != 0:
            return [f"run again it ends with {status}: {notes.strip()[-400:]}"]
        problems = []
        want, have = self.stock.ends[command.name], world.files(command)
        if want.keys() != have.keys():
            problems.append(f"run again it leaves other files: {sorted(want.keys() ^ have.keys())[:5]}")
        problems += [f"run again it leaves another {n}" for n in want.keys() & have.keys()
                     if without_measures(n, want[n]) != without_measures(n, have[n])]
        if command.text and out != self.stock.texts[command.name]:
            problems.append("run again it prints something else")
        problems += [f"{p.relative_to(world.folder)} is never removed" for p in world.temporaries()]
        return problems

    # --- kills and failing calls

    def sites_of(self, command):
        """(call, site) to how often it is called."""
        world = self.world()
        world.reset(command)
        log = self.folder / f"log{threading.get_ident()}"
        log.unlink(missing_ok=True)
        status, _, notes = world.faulted(command.args, SATOR_FAULT_LOG=str(log))
        if status != 0:
            raise SystemExit(f"error: with the preloaded library `sator {command.name}` ends with {status}:\n{notes}")
        counts = collections.Counter()
        for line in log.read_text().splitlines():
            call, site, number, _ = line.split(" ", 3)
            counts[call, site] = max(counts[call, site], int(number))
        return counts

    def fault(self, command, call, site, number, what):
        world = self.world()
        world.reset(command)
        status, _, notes = world.faulted(command.args, SATOR_FAULT_AT=f"{call} {site} {number}", SATOR_FAULT_DO=what)
        problems = []
        if what == "kill":
            if status not in (-signal.SIGKILL, 1):
                problems.append(f"is not reached: it ends with {status}")
        elif status not in (0, 1) or (status == 1 and ("error: " not in notes or "needs: " not in notes)):
            problems.append(f"ends with {status}: {notes.strip()[-300:]}")
        elif call != "unlink" and world.temporaries():
            problems.append(f"leaves {[str(p.relative_to(world.folder)) for p in world.temporaries()]}")
        if status == 0:
            problems += [f"leaves another {n}" for n, c in self.stock.ends[command.name].items()
                         if without_measures(n, world.files(command).get(n, b"")) != without_measures(n, c)]
        problems += self.broken(world, command)
        problems += self.finishes(world, command)
        self.count("kill" if what == "kill" else "short write" if what == "short" else "failing call", command, problems,
                   f"{what} at {call} {site} number {number}")

    def all_faults(self, command):
        for (call, site), most in sorted(self.sites_of(command).items()):
            self.sites[call] += 1
            for what in (("kill",) if call in KILLED else ()) + ERRORS[call]:
                if self.args.slice and what not in ("kill", "ENOSPC", "EIO"):
                    continue
                for number in {1, most} if not self.args.slice else {most}:
                    yield command, call, site, number, what

    # --- signals, memory, several at once

    def interrupt(self, command, which, delay):
        world = self.world()
        world.reset(command)
        process = world.start(command.args)
        time.sleep(delay)
        process.send_signal(which)
        notes = process.communicate()[1].decode(errors="replace")
        problems = []
        # Before main the signals have their default effect.
        if process.returncode not in (0, 128 + which) and not (process.returncode == -which and not notes):
            problems.append(f"ends with {process.returncode}: {notes[-300:]}")
        problems += [f"leaves {p.relative_to(world.folder)}" for p in world.temporaries()]
        problems += self.broken(world, command)
        problems += self.finishes(world, command)
        self.count("signal", command, problems, f"{which.name} after {delay:.3f} s")

    def memory(self, command, limit):
        world = self.world()
        world.reset(command)
        status, _, notes = world.run(command.args, limit=limit)
        problems = []
        if status == 127 or "error while loading shared libraries" in notes or "failed to map segment" in notes:
            return  # the loader of the system: no line of ours has run
        if status not in (0, 1) or (status == 1 and "error: " not in notes):
            problems.append(f"ends with {status}: {notes.strip()[-300:]}")
        problems += [f"leaves {p.relative_to(world.folder)}" for p in world.temporaries()]
        problems += self.broken(world, command)
        problems += self.finishes(world, command)
        self.count("memory", command, problems, f"{limit // MEMORY} MB of address space")

    def together(self, command, killed):
        """Four processes on one cache, of which one may be killed amid its work."""
        world = self.world()
        world.reset(command)
        processes = [world.start(command.args) for _ in range(4)]
        if killed:
            time.sleep(random.uniform(0.05, 0.6))
            processes[0].kill()
        ends = [p.communicate() for p in processes]
        problems = []
        for i, (process, (out, notes)) in enumerate(zip(processes, ends)):
            if killed and i == 0:
                continue
            if process.returncode != 0 or out.decode() != self.stock.texts[command.name]:
                problems.append(f"one of four ends with {process.returncode}: {notes.decode()[-300:]}")
        problems += self.broken(world, command)
        problems += self.finishes(world, command)
        self.count("four processes", command, problems, "one killed" if killed else "all")

    def work(self):
        jobs = []
        for command in self.commands:
            cases = list(self.all_faults(command))
            step = max(1, len(cases) // SLICE_CASES) if self.args.slice else 1
            jobs += [(self.fault, case) for case in cases[::step]]
            print(f"{command.name}: {len(jobs)} cases so far", flush=True)
        if not self.args.slice:
            rng = random.Random(self.args.seed)
            for command in self.commands:
                took = time.monotonic()
                world = self.world()
                world.reset(command)
                must(world, command.args)
                took = time.monotonic() - took
                signals = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
                jobs += [(self.interrupt, (command, rng.choice(signals), rng.uniform(0.02, took))) for _ in range(12)]
                jobs += [(self.memory, (command, int(size) * MEMORY)) for size in (160, 200, 230, 260, 300, 350, 420, 500, 650, 900)]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            futures = [pool.submit(call, *case) for call, case in jobs]
            for done, future in enumerate(concurrent.futures.as_completed(futures), 1):
                future.result()
                if done % 100 == 0:
                    print(f"{done} of {len(jobs)} cases, {len(self.failures)} failures", flush=True)
        for command in self.commands:
            if command.text and not self.args.slice:
                for killed in (False, True, True):
                    self.together(command, killed)


def report(path, campaign, seconds):
    """One test, Faults.Slice; none where the campaign was not run."""
    test = {"name": "Slice", "status": "RUN", "result": "COMPLETED"}
    if campaign and campaign.failures:
        test["failures"] = [{"failure": f} for f in campaign.failures]
    Path(path).write_text(json.dumps({"testsuites": [{"name": "Faults", "testsuite": [test] if campaign else []}],
                                      "time": f"{seconds}s"}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--preload", required=True)
    parser.add_argument("--slice", action="store_true")
    parser.add_argument("--only", default="", metavar="WORD", help="commands whose name contains it")
    parser.add_argument("--report", metavar="FILE")
    parser.add_argument("--keep", metavar="FOLDER", help="work there and leave it")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the times at which signals come")
    args = parser.parse_args()
    wanted = os.environ.get("SATOR_TEST_FILTER", "") if args.report else ""
    if wanted.lower() not in "faults/faults.slice":
        report(args.report, None, 0)
        return 0
    args.program, args.preload = str(Path(args.program).resolve()), Path(args.preload).resolve()
    start = time.monotonic()
    folder = Path(args.keep or tempfile.mkdtemp(prefix="sator_faults_")).resolve()
    folder.mkdir(exist_ok=True)
    try:
        campaign = Campaign(args, folder)
        campaign.work()
    finally:
        if not args.keep:
            shutil.rmtree(folder, ignore_errors=True)
    seconds = time.monotonic() - start
    if args.report:
        report(args.report, campaign, seconds)
    sites = ", ".join(f"{n} of {call}" for call, n in sorted(campaign.sites.items()))
    cases = ", ".join(f"{n} {kind}" for kind, n in sorted(campaign.cases.items()))
    print(f"faults: {len(campaign.commands)} commands, {sum(campaign.sites.values())} call sites ({sites}); "
          f"{sum(campaign.cases.values())} cases ({cases}) in {seconds:.0f} s, seed {args.seed}: {len(campaign.failures)} failures")
    return 1 if campaign.failures else 0


if __name__ == "__main__":
    sys.exit(main())
