"""A small model, the commands that are tried on it, and what of their results must hold: for campaign.py."""
import json
import os
import random
import re
import shutil
import struct
import subprocess
import time
import tomllib
from pathlib import Path

from processes import wait

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLE = ROOT / "examples" / "gpt2-stories"
# Sizes of the small model, by those of the example that they stand for.
SMALL = {8192: 8192, 256: 16, 768: 48, 1024: 64, 512: 64}
CONFIG = {"n_embd": 16, "n_head": 2, "n_layer": 1, "n_positions": 64}
# Another model, of which other code is made: another epsilon.
OTHER_CONFIG = CONFIG | {"layer_norm_epsilon": 0.001}
# One whose kernels take long enough to be fitted to, how fast the machine may be.
WIDE = 6
TEMPORARY = re.compile(r"^\.sator-temporary-\w{6}$|\.sator-\w{6}\.partial$")
# What is measured, and so differs from run to run.
MEASURED = re.compile(r"(host|seconds|_here|measured_at|load_s|compile_s|duration|tokens_per_s)")
NUMBER = re.compile(r"[-+]?\d[\d.e+-]*")
MEMORY = 1 << 20


def make_model(folder, config=CONFIG, width=1):
    """The example's configuration and tokenizer with one narrow layer of random weights, so many times as wide."""
    folder.mkdir()
    config = config | {"n_embd": width * CONFIG["n_embd"]}
    (folder / "config.json").write_text(json.dumps(json.loads((EXAMPLE / "config.json").read_text()) | config))
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        shutil.copy(EXAMPLE / name, folder / name)
    with open(EXAMPLE / "validation.txt", encoding="utf-8") as text:
        (folder / "validation.txt").write_text(text.read(3000))
    with open(EXAMPLE / "model.safetensors", "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        tensors = json.loads(file.read(size))
    rng = random.Random(1)
    header, data = {}, b""
    for name, tensor in tensors.items():
        if name == "__metadata__" or (".h." in name and ".h.0." not in name):
            continue
        shape = [SMALL[n] * (width if n in (256, 768, 1024) else 1) for n in tensor["shape"]]
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        values = struct.pack(f"<{count}e", *[rng.uniform(-0.5, 0.5) for _ in range(count)])
        header[name] = {"dtype": "F16", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


def make_measurements(path):
    """Times of matrix products that follow a formula: 5 us, and 300 TFLOP/s or 2 TB/s."""
    rows = []
    for n in (256, 512, 1024, 2048, 4096):
        for m in (1, 16, 256, 1024):
            flops, moved = 2 * m * n * n, 2 * (m * n * 2 + n * n)
            us = 5 + max(flops / 300e6, moved / 2e6)
            rows.append({"device": "H100", "M": m, "N": n, "K": n, "dtype": "fp16", "us": round(us, 3)})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


class Command:
    """One command line with what it leaves.

    results   what it writes, relative to the world's folder
    before    command lines that are run first, without faults
    warm      whether models are compiled beforehand
    text      whether what it prints is the same each time
    measures  whether the results hold measured figures, which differ from run to run
    slow      it takes long: one failing call of each site, not every kind at the first and the last
    """

    def __init__(self, name, args, results, before=(), warm=False, text=False, measures=False, slow=False):
        self.name, self.args, self.results, self.before = name, args, results, before
        self.warm, self.text, self.measures, self.slow = warm, text, measures, slow

    def told(self, name, content):
        """What two runs must have in common of a result."""
        return without_measures(name, content) if self.measures else content


def generate(model, *more):
    return ["generate", model, "--prompt", "Once", "--max-tokens", "4", "--greedy", "--threads", "1", *more]


def convert(scheme):
    return ["convert_weight", "model", "--quantization", scheme, "-o", "out"]


def study(model, out, *more):
    return ["study", model, "--chip", "edge_npu32", "--prompt-len", "8", "--gen-len", "2", "--windows", "1", "--threads", "1", *more,
            "-o", out]


COMMANDS = [
    Command("compile", ["compile", "model", "-o", "out/model.so"], ["out"]),
    Command("generate", generate("model"), ["home"], text=True),
    Command("convert_weight", convert("int8-channel"), ["out"]),
    Command("convert_weight again", convert("int8-channel"), ["out"], before=[convert("f32")]),
    Command("calibrate", ["calibrate", "--data", "rows.jsonl", "--model", "gpu_gemm", "--chip", "h100", "-o", "out/c.toml"], ["out"]),
    Command("calibrate --host", ["calibrate", "--host", "wide", "--threads", "1", "--rounds", "1", "-o", "out"], ["out"], warm=True,
            measures=True, slow=True),
    Command("gen_config", ["gen_config", "model", "--quantization", "int8-channel", "-o", "out"], ["out"]),
    Command("explore", ["explore", "--workload", "32,64,64", "--chip", "edge_npu32", "--pe", "8x8,16x16", "-o", "out"], ["out"]),
    Command("study --shapes-only", study("model", "out", "--shapes-only", "--quant", "f16"), ["out"]),
    Command("study", study("model", "out", "--quant", "f16"), ["out"], warm=True, measures=True),
    Command("study again", study("model", "out", "--shapes-only", "--quant", "int8-channel"), ["out"],
            before=[["study", "model", "--chip", "tpuv1", "--prompt-len", "8", "--gen-len", "2", "--shapes-only", "--quant", "f16",
                     "--chakra", "-o", "out"]]),
]


class Crowd:
    """Four commands that are run at once in one world. Those that write to one folder take turns: one may be refused."""

    def __init__(self, name, members, refused=""):
        self.name, self.members, self.refused = name, members, refused


RUN = Command("generate", generate("model"), ["home"], text=True)
RUN_INT8 = Command("generate int8", generate("model", "--quantization", "int8-channel"), ["home"], text=True)
OTHER = Command("generate another", generate("another"), ["home"], text=True)
OTHER_INT8 = Command("generate another int8", generate("another", "--quantization", "int8-channel"), ["home"], text=True)


def studies(*places):
    return [Command(f"study {model} {scheme} {out}", study(model, out, "--quant", scheme), [out, "home"], measures=True)
            for model, scheme, out in places]


BUSY = "another process is writing"
CROWDS = [
    Crowd("one model", [RUN] * 4),
    Crowd("four models", [RUN, RUN_INT8, OTHER, OTHER_INT8]),
    Crowd("two of each of two models", [RUN, OTHER, RUN, OTHER]),
    Crowd("a cache that is cleared", [RUN, Command("cache clear", ["cache", "clear"], []), RUN,
                                      Command("cache prune", ["cache", "prune", "--limit", "0"], [])]),
    Crowd("studies of one cache", studies(("model", "f16", "out"), ("model", "f16", "out2"), ("another", "f16", "out3"),
                                          ("model", "int8-channel", "out4"))),
    Crowd("studies in one folder", [s for s in studies(("model", "f16", "out")) for _ in range(4)], BUSY),
    Crowd("conversions in one folder", [Command("convert", convert("int8-channel"), ["out"])] * 4, BUSY),
    Crowd("compilations to one file", [COMMANDS[0]] * 4),
]


class World:
    """A folder with the model, in which one command is run, then looked at."""

    def __init__(self, program, preload, stock, folder):
        self.program, self.preload, self.stock, self.folder = program, preload, stock, folder

    def reset(self, command):
        """As before the command: the state that Stock has prepared for it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.stock / command.name, self.folder, symlinks=True)

    def environment(self, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith("SATOR_")}
        env.update(HOME=str(self.folder / "user"), SATOR_HOME=str(self.folder / "home"), TMPDIR=str(self.folder / "tmp"), **more)
        return env

    def start(self, args, limit=0, **more):
        def before():
            if limit:
                import resource
                resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        return subprocess.Popen([self.program, *args], cwd=self.folder, env=self.environment(**more), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=before if limit else None,
                                start_new_session=True)

    def end(self, process):
        """Status, standard output and standard error of a process that `start` began."""
        out, notes, hangs = wait(process)
        if hangs:
            return -1000, "", hangs
        return process.returncode, out.decode(errors="replace"), notes.decode(errors="replace")

    def run(self, args, **more):
        return self.end(self.start(args, **more))

    def faulted(self, args, **more):
        return self.run(args, LD_PRELOAD=str(self.preload), SATOR_FAULT_BELOW=str(self.folder), **more)

    def files(self, command):
        """The results: name to content. Temporary files are not among them."""
        found = {}
        for place in command.results:
            for path in sorted((self.folder / place).rglob("*")):
                name = str(path.relative_to(self.folder))
                if path.is_file() and not any(TEMPORARY.search(part) for part in Path(name).parts):
                    found[name] = path.read_bytes()
        return found

    def temporaries(self):
        """Temporary files and folders anywhere below, the outermost of each."""
        found = []
        for base, folders, files in os.walk(self.folder):
            hits = [n for n in folders + files if TEMPORARY.search(n)]
            found += [Path(base) / n for n in hits]
            folders[:] = [n for n in folders if not TEMPORARY.search(n)]
        return found

    def age(self):
        """Makes what was left look an hour old."""
        for path in self.temporaries():
            then = path.lstat().st_mtime - 3600
            os.utime(path, (then, then))


def without_measures(name, content):
    """A whole result without its measured figures; where only a part of it is there, something else."""
    if name.endswith(".json"):
        def cleaned(tree):
            if isinstance(tree, dict):
                return {k: cleaned(v) for k, v in tree.items() if not MEASURED.search(k)}
            return [cleaned(v) for v in tree] if isinstance(tree, list) else tree
        try:
            tree = json.loads(content.decode().split("\nsator-seal ")[0])
        except ValueError:
            return content
        if Path(name).name.startswith(".sator-"):
            return sorted({file["name"] for file in tree["files"]})
        return json.dumps(cleaned(tree), sort_keys=True)
    if name.endswith(".html"):
        return content.endswith(b"</html>\n")
    if name.endswith(".csv"):
        return NUMBER.sub("#", content.decode(errors="replace"))
    # Which kernels count, what is known of each, and which constants are fitted to them, depends on their times.
    if name.endswith((".jsonl", ".toml")):
        return is_whole(name, content.decode(errors="replace"))
    return content


def is_whole(name, text):
    """Whether all rows are there to their ends, or all of a table."""
    try:
        rows = [tomllib.loads(text)] if name.endswith(".toml") else [json.loads(line) for line in text.splitlines()]
    except ValueError:
        return False
    return text.endswith("\n") and all(rows)


class Stock:
    """For each command the folder before it, and what it leaves: made once, without faults."""

    def __init__(self, program, preload, folder, commands):
        self.program, self.preload, self.folder = program, preload, folder
        self.states, self.ends, self.texts, self.seconds = {}, {}, {}, {}
        folder.mkdir()
        make_model(folder / "the model")
        make_model(folder / "another model", OTHER_CONFIG)
        for command in commands:
            if command.name not in self.ends:
                self.add(command)

    def add(self, command):
        place = self.folder / command.name
        place.mkdir()
        for sub in ("home", "tmp", "user", "out"):
            (place / sub).mkdir()
        os.symlink(self.folder / "the model", place / "model")
        os.symlink(self.folder / "another model", place / "another")
        if "wide" in command.args:
            make_model(place / "wide", width=WIDE)
        make_measurements(place / "rows.jsonl")
        world = World(self.program, self.preload, self.folder, place)
        for args in list(command.before) + ([command.args] if command.warm else []):
            must(world, args)
        if command.warm:
            shutil.rmtree(place / "out")
            (place / "out").mkdir()
        self.states[command.name] = world.files(command)
        trial = World(self.program, self.preload, self.folder, self.folder / "trial")
        trial.reset(command)
        start = time.monotonic()
        self.texts[command.name] = must(trial, command.args)
        self.seconds[command.name] = time.monotonic() - start
        self.ends[command.name] = trial.files(command)
        shutil.rmtree(trial.folder)


def must(world, args):
    status, out, notes = world.run(args)
    if status != 0:
        raise SystemExit(f"error: without faults, `sator {' '.join(args)}` ends with {status}:\n{notes}")
    return out
