"""The program's commands as functions: options by their names, results as plain objects."""
import json
import os
from pathlib import Path

from sator import _core


def _find_chips():
    """Tells the compiler where the shipped chips lie: in the package, or in the checkout that this file is in."""
    here = Path(__file__).resolve().parent
    for folder in (here / "chips", here.parents[1] / "chips"):
        if folder.is_dir():
            os.environ.setdefault("SATOR_CHIPS", str(folder))
            return


_find_chips()


class Result:
    """What a command found: `to_dict()` has it as plain values, `text` as the program prints it."""

    def __init__(self, value, text):
        self._value, self.text = value, text

    def to_dict(self):
        return self._value

    def __getitem__(self, key):
        return self._value[key]

    def __getattr__(self, name):
        if not name.startswith("_") and isinstance(self._value, dict) and name in self._value:
            return self._value[name]
        raise AttributeError(f"the result has no {name}")

    def __dir__(self):
        return sorted([*super().__dir__(), *(self._value if isinstance(self._value, dict) else ())])

    def __repr__(self):
        return self.text


def command(name, *positional, progress=None, **options):
    """Runs a command of the program: command("schemes"), command("estimate", workload="64,64,64", chip="edge_npu32").

    options    by their names with _ for -; True for a flag, a list for one that may be repeated
    progress   called with each line that the command says while it works
    Errors: those of the command.
    """
    args = [name, *(str(p) for p in positional)]
    for key, value in options.items():
        flag = "--" + key.replace("_", "-")
        for item in value if isinstance(value, (list, tuple)) else [value]:
            if item is True:
                args.append(flag)
            elif item is not None and item is not False:
                args += [flag, str(item)]
    text, results = _core.command(args, progress)
    return Result(json.loads(results), text)


def study(model, quant=(), chip=(), progress=None, **options):
    """Evaluates, measures and costs a model: quantization schemes by chips, as `sator study`.

    model    a Hugging Face folder
    quant    a name of a scheme, or several; the defaults where there are none
    chip     a name or file of a chip, or several; the defaults where there are none
    options  of the command: windows=2, output="folder", shapes_only=True, ...
    """
    if not isinstance(model, (str, os.PathLike)):
        raise TypeError(f"study: the model {model!r} is a {type(model).__name__}\n  needs: the path of a model's folder or GGUF file")
    return command("study", model, quant=_names("quant", quant), chip=_names("chip", chip), progress=progress, **options)


def _names(argument, given):
    """A name or several as a list. Errors: TypeError for what is neither."""
    if isinstance(given, (str, os.PathLike)):
        return [given]
    if given is None:
        return []
    if isinstance(given, bytes) or not hasattr(given, "__iter__") or not all(isinstance(n, (str, os.PathLike)) for n in given):
        raise TypeError(f"study: {argument}={given!r} is a {type(given).__name__}\n  needs: a name, or a list of names\n"
                        f"  hint:  sator.{'schemes' if argument == 'quant' else 'chips'}() lists them")
    return list(given)


def estimate(func=None, chip=None, progress=None, **options):
    """What a tensor program costs on a described chip, as `sator estimate`.

    func     a PrimFunc or an IRModule; or options of the command: workload="I,J,K" or (I, J, K), ...
    chip     a name or a file
    """
    for name in ("workload", "tile"):  # extents, not several workloads
        if isinstance(options.get(name), (list, tuple)):
            options[name] = ",".join(map(str, options[name]))
    if func is None:
        return command("estimate", chip=chip, progress=progress, **options)
    if not hasattr(func, "script"):
        raise TypeError(f"estimate: {func!r} is a {type(func).__name__}\n  needs: a tensor program, or options of the command\n"
                        "  hint:  sator.study(model, chip=...) costs a model")
    import tempfile

    with tempfile.TemporaryDirectory(prefix="sator-") as folder:
        file = Path(folder) / "program.py"
        file.write_text(func.script())
        return command("estimate", script=file, chip=chip, progress=progress, **options)


def explain(study, progress=None, **options):
    """Why a figure of a study is what it is, as `sator explain`: `study` is the study's folder. Errors: TypeError for what is no path."""
    if not isinstance(study, (str, os.PathLike)):
        raise TypeError(f"explain: study is a {type(study).__name__}\n  needs: the folder of a study\n"
                        "  hint:  sator.study(model, output=\"folder\") writes it, sator.explain(\"folder\") reads it")
    return command("explain", study, progress=progress, **options)


def schemes():
    """The quantization schemes: {"names", "means", "scales"} each."""
    return command("schemes").to_dict()


def chips():
    """The names of the chips that are described."""
    return list(_core.shipped_chips())
