"""A small model, the commands that are tried on it, and what of their results must hold: for campaign.py."""
import json
import os
import random
import re
import shutil
import struct
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLE = ROOT / "examples" / "gpt2-stories"
# Sizes of the small model, by those of the example that they stand for.
SMALL = {8192: 8192, 256: 16, 768: 48, 1024: 64, 512: 64}
CONFIG = {"n_embd": 16, "n_head": 2, "n_layer": 1, "n_positions": 64}
TEMPORARY = re.compile(r"^\.sator-temporary-\w{6}$|\.sator-\w{6}\.partial$")
# What is measured, and so differs from run to run.
MEASURED = re.compile(r"(host|seconds|_here|load_s|compile_s|duration|tokens_per_s)")
MEMORY = 1 << 20


def make_model(folder):
    """The example's configuration and tokenizer with one narrow layer of random weights."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(json.loads((EXAMPLE / "config.json").read_text()) | CONFIG))
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
        shape = [SMALL[n] for n in tensor["shape"]]
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
    parts     which of the calls on files count here, by the path's part; empty: all
    """

    def __init__(self, name, args, results, before=(), warm=False, text=False):
        self.name, self.args, self.results, self.before = name, args, results, before
        self.warm, self.text = warm, text


STUDY = ["study", "model", "--chip", "edge_npu32", "--prompt-len", "8", "--gen-len", "2", "--windows", "1", "--threads", "1"]
COMMANDS = [
    Command("compile", ["compile", "model", "-o", "out/model.so"], ["out"]),
    Command("generate", ["generate", "model", "--prompt", "Once", "--max-tokens", "4", "--greedy", "--threads", "1"], ["home"], text=True),
    Command("convert_weight", ["convert_weight", "model", "--quantization", "int8-channel", "-o", "out"], ["out"]),
    Command("convert_weight again", ["convert_weight", "model", "--quantization", "int8-channel", "-o", "out"], ["out"],
            before=[["convert_weight", "model", "--quantization", "f32", "-o", "out"]]),
    Command("calibrate", ["calibrate", "--data", "rows.jsonl", "--model", "gpu_gemm", "--chip", "h100", "-o", "out/c.toml"], ["out"]),
    Command("gen_config", ["gen_config", "model", "--quantization", "int8-channel", "-o", "out"], ["out"]),
    Command("explore", ["explore", "--workload", "32,64,64", "--chip", "edge_npu32", "--pe", "8x8,16x16", "-o", "out"], ["out"]),
    Command("study --shapes-only", STUDY + ["--shapes-only", "--quant", "f16", "-o", "out"], ["out"]),
    Command("study", STUDY + ["--quant", "f16", "-o", "out"], ["out"], warm=True),
    Command("study again", STUDY + ["--shapes-only", "--quant", "int8-channel", "-o", "out"], ["out"],
            before=[["study", "model", "--chip", "tpuv1", "--prompt-len", "8", "--gen-len", "2", "--shapes-only", "--quant", "f16",
                     "--chakra", "-o", "out"]]),
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
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=before if limit else None)

    def run(self, args, timeout=300, **more):
        process = self.start(args, **more)
        try:
            out, notes = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return -1000, "", "the command hung"
        return process.returncode, out.decode(errors="replace"), notes.decode(errors="replace")

    def faulted(self, args, **more):
        return self.run(args, LD_PRELOAD=str(self.preload), SATOR_FAULT_BELOW=str(self.folder), **more)

    def files(self, command):
        """The results: name to content, measured figures left out. Temporary files are not among them."""
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
    """What two runs must have in common."""
    if Path(name).name.startswith(".sator-") or name.endswith((".html", ".csv")):
        return None if "study" in name or name.endswith((".html", ".csv")) else content
    if not name.endswith(".json"):
        return content
    def cleaned(tree):
        if isinstance(tree, dict):
            return {k: cleaned(v) for k, v in tree.items() if not MEASURED.search(k)}
        return [cleaned(v) for v in tree] if isinstance(tree, list) else tree
    try:
        text = content.decode()
        return json.dumps(cleaned(json.loads(text.split("\nsator-seal ")[0])), sort_keys=True)
    except ValueError:
        return content


class Stock:
    """For each command the folder before it, and what it leaves: made once, without faults."""

    def __init__(self, program, preload, folder, commands):
        self.folder, self.states, self.ends, self.texts = folder, {}, {}, {}
        folder.mkdir()
        model = folder / "the model"
        make_model(model)
        for command in commands:
            place = folder / command.name
            place.mkdir()
            for sub in ("home", "tmp", "user", "out"):
                (place / sub).mkdir()
            os.symlink(model, place / "model")
            make_measurements(place / "rows.jsonl")
            world = World(program, preload, folder, place)
            for args in list(command.before) + ([command.args] if command.warm else []):
                must(world, args)
            if command.warm:
                shutil.rmtree(place / "out")
                (place / "out").mkdir()
            self.states[command.name] = world.files(command)
            trial = World(program, preload, folder, folder / "trial")
            trial.reset(command)
            out = must(trial, command.args)
            self.ends[command.name] = trial.files(command)
            self.texts[command.name] = out
            shutil.rmtree(trial.folder)


def must(world, args):
    status, out, notes = world.run(args)
    if status != 0:
        raise SystemExit(f"error: without faults, `sator {' '.join(args)}` ends with {status}:\n{notes}")
    return out
