"""Waits for a process without a limit on wall time, which other work on the machine would stretch: what counts is the processor time
that the process and what it started have used, and whether any of them runs at all."""
import os
import signal
import subprocess
import time

MOST_CPU_S = 240    # of a process and all that it starts; the slowest command takes 30
MOST_ASLEEP_S = 60  # in which none of its threads runs, waits for a disk, or gets any work done
LOOK_EVERY_S = 2


def parts_of(session):
    """Of the processes of a session: ids, states of their threads, and the seconds of processor time that they have used."""
    pids, states, ticks = [], set(), 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
            if int(fields[3]) != session:
                continue
            pids.append(int(pid))
            ticks += sum(map(int, fields[11:15]))  # its own and those of ended children
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/stat", encoding="ascii", errors="replace") as file:
                    states.add(file.read().rpartition(")")[2].split()[0])
        except OSError:
            continue  # it has ended
    return pids, states, ticks / os.sysconf("SC_CLK_TCK")


def stacks_of(pids):
    """Where the threads stand, as far as gdb can tell."""
    words = []
    for pid in pids:
        try:
            told = subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt 14"], capture_output=True, text=True,
                                  timeout=60)
            words += [line for line in told.stdout.splitlines() if line.startswith(("Thread", "#"))]
        except (OSError, subprocess.TimeoutExpired):
            words.append(f"process {pid}")
    return "\n".join(words)


def wait(process):
    """What a process that leads a session says until its end: standard output, standard error, and None; or instead of None why it
    was ended."""
    last, since = -1.0, time.monotonic()
    while True:
        try:
            return *process.communicate(timeout=LOOK_EVERY_S), None
        except subprocess.TimeoutExpired:
            pids, states, seconds = parts_of(process.pid)
        if seconds != last or states & {"R", "D"}:
            last, since = seconds, time.monotonic()
        if seconds <= MOST_CPU_S and time.monotonic() - since <= MOST_ASLEEP_S:
            continue
        why = f"hangs: {seconds:.0f} s of processor time, asleep for {time.monotonic() - since:.0f} s\n{stacks_of(pids)}"
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        return *process.communicate(), why
