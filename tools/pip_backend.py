"""scikit-build-core, told to go on in the folder of a build that is there: with its objects `pip install .` links and little more.

./dev builds in build/dev, ./sator in build/release; without either, pip's own build/pip compiles everything.
"""
import contextlib
from pathlib import Path

from scikit_build_core import build as _build
from scikit_build_core.build import *  # noqa: F401,F403

ROOT = Path(__file__).resolve().parent.parent


def _settings(given):
    """The settings of a build, and where it goes on."""
    for name in ("dev", "release"):
        folder = ROOT / "build" / name
        cache = folder / "CMakeCache.txt"
        if not cache.exists() or f"CMAKE_HOME_DIRECTORY:INTERNAL={ROOT}\n" not in cache.read_text():
            continue
        # What it notes here makes scikit-build-core throw all objects away when it runs from another temporary environment.
        (folder / ".skbuild-info.json").unlink(missing_ok=True)
        variables = dict(line.split("=", 1) for line in cache.read_text().splitlines() if ":" in line.split("=")[0] and "=" in line)
        kept = {key.split(":")[0]: value for key, value in variables.items() if key.startswith("SATOR_")}
        defines = {f"cmake.define.{key}": value for key, value in kept.items() if key != "SATOR_PYTHON"}
        return {"build-dir": f"build/{name}", **defines, **(given or {})}
    return given


@contextlib.contextmanager
def _cache_as_it_was(settings):
    """The folder goes on with the interpreter that it had: pip's may be gone tomorrow."""
    cache = ROOT / (settings or {}).get("build-dir", "build/pip") / "CMakeCache.txt"
    before = cache.read_text() if cache.exists() else None
    try:
        yield
    finally:
        if before is not None:
            cache.write_text(before)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    settings = _settings(config_settings)
    with _cache_as_it_was(settings):
        return _build.build_wheel(wheel_directory, settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    settings = _settings(config_settings)
    with _cache_as_it_was(settings):
        return _build.build_editable(wheel_directory, settings, metadata_directory)
