#!/usr/bin/env python3
"""Faults in the program's calls on files: kills, full disks, broken disks, short writes, little memory, signals, and several
processes at once. Afterwards every file is whole or absent, and the same command finishes the work with the same result.

    campaign.py --program SATOR --preload LIBRARY [--slice] [--only WORDS] [--report FILE] [--keep FOLDER]

A site is a call of write, rename, fsync, open, mkdir, ftruncate or unlink with the callers that led there (preload.cc). --slice
takes a few commands and one fault per site: for `./dev test`. The last line sums up; --report writes it as GoogleTest's JSON.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

from world import COMMANDS, CROWDS, MEMORY, Stock, World

KILLED = ("write", "pwrite", "writev", "rename", "fsync", "open", "mkdir", "ftruncate", "unlink")
ERRORS = {"write": ("ENOSPC", "EIO", "short"), "pwrite": ("ENOSPC", "EIO", "short"), "writev": ("ENOSPC", "short"),
          "rename": ("EROFS", "EIO"), "fsync": ("EIO", "ENOSPC"), "open": ("EROFS", "ENOSPC"), "mkdir": ("EROFS", "ENOSPC"),
          "ftruncate": ("ENOSPC",), "unlink": ("EROFS",)}
SLICE = ("calibrate", "convert_weight again", "study again")
TRIES = 4         # to come to a call
SLICE_CASES = 24  # of a command, spread over its sites


class Campaign:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.commands = [c for c in COMMANDS if re.search(args.only, c.name) and (not args.slice or c.name in SLICE)]
        self.crowds = [c for c in CROWDS if re.search(args.only, f"together: {c.name}") and not args.slice]
        self.stock = Stock(args.program, args.preload, folder / "stock", self.commands + [m for c in self.crowds for m in c.members])
        self.worlds = threading.local()
        self.number, self.rng = 0, random.Random(args.seed)
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
            same = [command.told(name, c) for c in (before.get(name), end.get(name)) if c is not None]
            mine = command.told(name, content)
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
                     if command.told(n, want[n]) != command.told(n, have[n])]
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
        mark = self.folder / f"mark{threading.get_ident()}"
        # Where threads share the work it is chance which of them comes to a call, by which callers.
        for _ in range(TRIES):
            world.reset(command)
            mark.unlink(missing_ok=True)
            status, _, notes = world.faulted(command.args, SATOR_FAULT_AT=f"{call} {site} {number}", SATOR_FAULT_DO=what,
                                             SATOR_FAULT_MARK=str(mark))
            if mark.exists():
                break
        else:
            self.count("not reached", command, [], "")
            return
        problems = []
        if what == "kill":
            if status not in (-signal.SIGKILL, 1):
                problems.append(f"is survived: it ends with {status}")
        elif status not in (0, 1) or (status == 1 and ("error: " not in notes or "needs: " not in notes)):
            problems.append(f"ends with {status}: {notes.strip()[-300:]}")
        elif call != "unlink" and world.temporaries():
            problems.append(f"leaves {[str(p.relative_to(world.folder)) for p in world.temporaries()]}")
        if status == 0:
            problems += [f"leaves another {n}" for n, c in self.stock.ends[command.name].items()
                         if command.told(n, world.files(command).get(n, b"")) != command.told(n, c)]
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
                if command.slow and what not in ("kill", ERRORS[call][0]):
                    continue
                for number in {1, most} if not self.args.slice and (what == "kill" or not command.slow) else {most}:
                    yield command, call, site, number, what

    # --- signals, memory, several at once

    def interrupt(self, command, which, delay):
        world = self.world()
        world.reset(command)
        process = world.start(command.args)
        time.sleep(delay)
        process.send_signal(which)
        status, _, notes = world.end(process)
        problems = []
        # Before main the signals have their default effect.
        if status not in (0, 128 + which) and not (status == -which and not notes):
            problems.append(f"ends with {status}: {notes[-300:]}")
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

    def together(self, crowd, killed):
        """Commands at once in one world, on one cache; the first may be killed at a random time or call."""
        world, first = self.world(), crowd.members[0]
        faults, place = {}, "all"
        if killed == "call":
            call, site, most = self.rng.choice([(c, s, n) for (c, s), n in sorted(self.sites_of(first).items()) if c in KILLED])
            place = f"{call} {site} {self.rng.choice((1, most))}"
            faults = {"LD_PRELOAD": str(self.args.preload), "SATOR_FAULT_BELOW": str(world.folder), "SATOR_FAULT_AT": place,
                      "SATOR_FAULT_DO": "kill"}
        world.reset(first)
        processes = [world.start(m.args, **(faults if i == 0 else {})) for i, m in enumerate(crowd.members)]
        if killed == "time":
            delay = self.rng.uniform(0.02, 3 * self.stock.seconds[first.name])
            place = f"{delay:.3f} s"
            time.sleep(delay)
            processes[0].kill()
        problems, done = [], 0
        for i, (member, process) in enumerate(zip(crowd.members, processes)):
            status, out, notes = world.end(process)
            wrong_text = status == 0 and member.text and out != self.stock.texts[member.name]
            done += status == 0
            if (killed and i == 0 and status in (-signal.SIGKILL, 1)) or (crowd.refused and status == 1 and crowd.refused in notes):
                continue
            if status != 0 or wrong_text:
                problems.append(f"`sator {' '.join(member.args)}` ends with {status}: {notes[-300:]}" + wrong_text * " another text")
        if done == 0 and not killed:
            problems.append("none of them ends with its result")
        for member in {m.name: m for m in crowd.members if m.results}.values():
            problems += self.whole(world, crowd, member)
        self.count("four at once", crowd, problems, f"one killed at {place}" if killed else place)

    def whole(self, world, crowd, member):
        """After several at once: each result of one of them is whole, and the same command finishes."""
        ends = {}
        for m in crowd.members:
            ends.update({name: (m, content) for name, content in self.stock.ends[m.name].items()})
        problems = []
        for again in (False, True):
            if again:
                world.age()
                status, out, notes = world.run(member.args)
                if status != 0 or (member.text and out != self.stock.texts[member.name]):
                    problems.append(f"run again it ends with {status}: {notes[-300:]}")
            for name, content in world.files(member).items():
                of, end = ends.get(name, (member, None))
                if end is None or of.told(name, content) != of.told(name, end):
                    problems.append(f"{name} is none of the results" + again * ", even when it is run again")
        lost = self.stock.ends[member.name].keys() - world.files(member).keys()
        if world.temporaries():  # what was killed while it compiled is cleared away by whoever compiles
            world.run(["cache", "clear"])
            world.run(member.args)
        problems += [f"run again it leaves no {n}" for n in lost]
        problems += [f"{p.relative_to(world.folder)} is never removed" for p in world.temporaries()]
        return problems

    def work(self):
        jobs = []
        for command in self.commands:
            cases = list(self.all_faults(command))
            step = max(1, len(cases) // SLICE_CASES) if self.args.slice else 1
            jobs += [(self.fault, case) for case in cases[::step]]
            print(f"{command.name}: {len(jobs)} cases so far", flush=True)
        if not self.args.slice:
            for command in self.commands:
                took = self.stock.seconds[command.name]
                signals = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
                jobs += [(self.interrupt, (command, self.rng.choice(signals), self.rng.uniform(0.02, took))) for _ in range(4 if command.slow else 12)]
                sizes = (160, 200, 230, 260, 300, 350, 420, 500, 650, 900)
                jobs += [(self.memory, (command, size * MEMORY)) for size in sizes[::3 if command.slow else 1]]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            futures = [pool.submit(call, *case) for call, case in jobs]
            for done, future in enumerate(concurrent.futures.as_completed(futures), 1):
                future.result()
                if done % 100 == 0:
                    print(f"{done} of {len(jobs)} cases, {len(self.failures)} failures", flush=True)
        for crowd in self.crowds:
            for killed in ("", "time", "time", "call", "call", "call"):
                self.together(crowd, killed)


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
    parser.add_argument("--only", default="", metavar="WORDS",
                        help="commands whose name contains them, a regular expression; `together`: groups that run at once")
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
    print(f"faults: {len(campaign.commands)} commands, {len(campaign.crowds)} groups of four at once, {sum(campaign.sites.values())} call sites ({sites}); "
          f"{sum(campaign.cases.values())} cases ({cases}) in {seconds:.0f} s, seed {args.seed}: {len(campaign.failures)} failures")
    return 1 if campaign.failures else 0


if __name__ == "__main__":
    sys.exit(main())
