#!/usr/bin/env python3
"""Writes type stubs of the Python package: what its modules make of the compiler's tables when they are asked for a name.

    make_stubs.py PACKAGE [TO]      PACKAGE: the built package's folder, importable from its parent; TO: where stubs go, PACKAGE unless given

Modules that say in their source what they hold need no stub: `py.typed` tells type checkers to read them.
"""
import enum
import importlib
import inspect
import keyword
import sys
from pathlib import Path

HEAD = '"""{doc}"""\n# Written by tools/make_stubs.py from the compiler\'s tables.\nimport enum\nfrom typing import Any\n\n'


def words(doc, indent):
    """A docstring's first line."""
    line = (doc or "").strip().split("\n")[0].replace('"""', "'''").replace("\\", "\\\\")
    return f'{indent}"""{line}"""' if line else f"{indent}..."


def parameters(signature):
    """"add(x1, x2, out=...)" as Python parameters with types."""
    inside = signature[signature.index("(") + 1:signature.rindex(")")]
    out, optional = [], False
    for part in filter(None, (p.strip() for p in inside.split(","))):
        name, _, default = part.partition("=")
        name = name.strip() + ("_" if keyword.iskeyword(name.strip()) else "")
        optional = optional or bool(default)  # what follows an optional one can be left out or is given by name
        out.append(f"{name}: Any" + (" = ..." if optional else ""))
    return ", ".join(out)


def signature_of(function):
    """The parameters of a function of Python's."""
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return "*args: Any, **kwargs: Any"
    parts, star = [], False
    for at, p in enumerate(found.parameters.values()):
        if p.kind is p.VAR_POSITIONAL:
            parts.append(f"*{p.name}: Any")
            star = True
        elif p.kind is p.VAR_KEYWORD:
            parts.append(f"**{p.name}: Any")
        else:
            if p.kind is p.KEYWORD_ONLY and not star:
                parts.append("*")
                star = True
            parts.append((p.name if at == 0 and p.name in ("self", "cls") else f"{p.name}: Any") + ("" if p.default is p.empty else " = ..."))
    return ", ".join(parts)


_DUNDERS = {"__init__", "__getitem__", "__setitem__", "__delitem__", "__contains__", "__iter__", "__call__", "__len__", "__enter__", "__exit__",
            *(f"__{side}{op}__" for side in ("", "r") for op in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and", "or", "xor")),
            "__neg__", "__invert__", "__int__", "__index__", "__float__", "__array__", "__dlpack__", "__lt__", "__le__", "__gt__", "__ge__"}


_GENERIC = {tuple: "tuple[Any, ...]", list: "list[Any]", dict: "dict[Any, Any]"}


def class_stub(name, cls, known, indent=""):
    if issubclass(cls, enum.Enum):
        base = "enum.IntEnum" if issubclass(cls, int) else "enum.Enum"
        return [f"{indent}class {name}({base}):", words(cls.__doc__, indent + "    "), *(f"{indent}    {m.name} = {m.value!r}" for m in cls)]
    base = next((b for b in cls.__mro__[1:] if b in known or b.__module__ == "builtins" and b is not object), None)
    shown = base and (_GENERIC.get(base, base.__name__) if base.__module__ == "builtins" else known[base])
    lines = [f"{indent}class {name}{f'({shown})' if base else ''}:", words(cls.__doc__, indent + "    ")]
    members = {}
    for c in reversed(cls.__mro__[:cls.__mro__.index(base) if base else -1]):  # of bases that the module does not name too
        members.update(vars(c))
    for member, value in sorted(members.items()):
        if member.startswith("_") and member not in _DUNDERS:
            continue
        gives = "None" if member == "__init__" else "Any"
        if isinstance(value, property):
            lines += [f"{indent}    @property", f"{indent}    def {member}(self) -> Any: ..."]
        elif isinstance(value, (staticmethod, classmethod)):
            lines += [f"{indent}    @staticmethod", f"{indent}    def {member}({signature_of(value.__func__)}) -> Any:",
                      words(value.__func__.__doc__, indent + "        ")]
        elif callable(value) and not isinstance(value, type):
            doc = getattr(value, "__doc__", "") or ""
            text = getattr(value, "__nb_signature__", None)
            shown = text[0][0] if text else None
            if shown and shown.startswith("def "):
                lines += [f"{indent}    def {member}({parameters_of_nb(shown)}) -> {gives}:", words(doc_after_signature(doc), indent + "        ")]
            else:
                lines += [f"{indent}    def {member}({signature_of(value)}) -> {gives}:", words(doc, indent + "        ")]
        elif not callable(value) and not inspect.isdatadescriptor(value):
            lines.append(f"{indent}    {member}: Any")
    return lines


def parameters_of_nb(shown):
    inside = shown[shown.index("(") + 1:shown.rindex(")")]
    parts = [p.strip() for p in inside.split(",") if p.strip()]
    if any(":" in p or "/" in p or "[" in p for p in parts):
        return "self, *args: Any, **kwargs: Any"
    return ", ".join(p if p == "self" else p.replace("=...", ": Any = ...") if "=" in p else f"{p}: Any" for p in parts)


def doc_after_signature(doc):
    parts = doc.strip().split("\n\n")
    return parts[1] if len(parts) > 1 and "(" in parts[0].split("\n")[0] else doc


def module_stub(module, names=None):
    """The stub of a module: each public name that it has or makes."""
    lines = []
    members = {n: getattr(module, n) for n in (names or dir(module)) if not n.startswith("_")}
    known = {v: n for n, v in sorted(members.items(), reverse=True) if isinstance(v, type)}
    for name, value in sorted(members.items(), key=lambda item: (not isinstance(item[1], type), depth(item[1]), item[0])):
        if keyword.iskeyword(name) or not is_ours(value):
            continue
        if inspect.ismodule(value):
            if value.__name__.startswith("sator"):
                package, _, last = value.__name__.rpartition(".")
                is_file = package and getattr(value, "__file__", None) and last == name
                lines.append(f"from {package} import {name} as {name}" if is_file else f"{name}: Any")
        elif isinstance(value, type):
            lines += ["", *class_stub(name, value, known)]
        elif callable(value):
            shown = signature_of(value)
            lines += [f"def {name}({'cls: Any' + shown[3:] if shown.startswith('cls') else shown}) -> Any:", words(value.__doc__, "    ")]
        else:
            lines.append(f"{name}: Any")
    return HEAD.format(doc=(module.__doc__ or "").strip().split("\n")[0]) + "\n".join(lines) + "\n"


def is_ours(value):
    """Whether a module of this package made it, or the extension; other modules' functions and classes are these modules' own."""
    if inspect.ismodule(value):
        return value.__name__.startswith("sator.")
    return not callable(value) or str(getattr(value, "__module__", None) or "sator").startswith("sator")


def depth(value):
    return len(value.__mro__) if isinstance(value, type) else 0


def ops_stub(module, core):
    """relax.op: a function per op, a class per group of them."""
    tree = {}
    for name, signature in core.ops():
        at = tree
        *groups, last = name.split(".")
        for group in groups:
            at = at.setdefault(group, {})
            if not isinstance(at, dict):
                break
        if isinstance(at, dict):
            at[last] = signature
    lines = []

    def put(at, indent, is_method):
        for name, value in sorted(at.items()):
            if isinstance(value, dict):
                lines.append(f"{indent}class {name}:")
                put(value, indent + "    ", True)
            else:
                if is_method:
                    lines.append(f"{indent}@staticmethod")
                lines.extend([f"{indent}def {name}({parameters(value)}) -> Any:", f'{indent}    """{value}"""'])

    put(tree, "", False)
    return HEAD.format(doc=module.__doc__.strip().split("\n")[0]) + "\n".join(lines) + "\n"


def passes_stub(module, core):
    lines = module_stub(module, [n for n in vars(module) if not n.startswith("_") and n not in {p[0] for p in core.passes()}])
    for name, does, options in core.passes():
        taken = ", ".join(f"{o}: Any = ..." for o in options)
        lines += f'def {name}({taken}{", " if taken else ""}**kwargs: Any) -> Pass:\n    """{does}."""\n'
    return lines


def top_stub(module):
    """The package: what comes from which of its modules, and its modules themselves."""
    lines = [f"from sator.{file} import {name} as {name}" for name, file in sorted(module._NAMES.items())]
    lines += [f"from sator import {name} as {name}" for name in module._SUBMODULES]
    return HEAD.format(doc=module.__doc__.strip().split("\n")[0]) + "\n".join(lines) + "\n__version__: str\n"


def main():
    package = Path(sys.argv[1]).resolve()
    target = Path(sys.argv[2]) if len(sys.argv) > 2 else package
    sys.path.insert(0, str(package.parent))
    core = importlib.import_module("sator._core")
    written = {
        "__init__.pyi": top_stub(importlib.import_module("sator")),
        "te.pyi": module_stub(importlib.import_module("sator.te")) + "def __getattr__(name: str) -> Any: ...\n",
        "tir/__init__.pyi": module_stub(importlib.import_module("sator.tir")),
        "relax/__init__.pyi": module_stub(importlib.import_module("sator.relax")),
        "relax/op.pyi": ops_stub(importlib.import_module("sator.relax.op"), core),
        "ir/__init__.pyi": module_stub(importlib.import_module("sator.ir")),
        "transform.pyi": passes_stub(importlib.import_module("sator.transform"), core),
        "relax/transform.pyi": "from sator.transform import *\n",
        "tir/transform.pyi": "from sator.transform import *\n",
        "_core.pyi": module_stub(core) + "def __getattr__(name: str) -> Any: ...\n",
        "script/tir.pyi": "from typing import Any\n\ndef prim_func(func: Any = ..., *, private: bool = ..., check_well_formed: bool = ...) -> Any: ...\n"
                          "def __getattr__(name: str) -> Any: ...\n",
        "script/relax.pyi": "from typing import Any\n\ndef function(func: Any = ..., *, pure: bool = ..., private: bool = ..., "
                            "check_well_formed: bool = ...) -> Any: ...\ndef __getattr__(name: str) -> Any: ...\n",
        "dlight/gpu/__init__.pyi": module_stub(importlib.import_module("sator.dlight.gpu")),
        "topi/__init__.pyi": module_stub(importlib.import_module("sator.topi")),
        **{f"{path.replace('.', '/')}.pyi": module_stub(importlib.import_module(f"sator.{path.removesuffix('.__init__')}")) + "def __getattr__(name: str) -> Any: ...\n"
           for path in ("commands", "driver", "model", "nd", "runtime.__init__", "target")},
    }
    for name, text in written.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text)
    (target / "py.typed").write_text("")


if __name__ == "__main__":
    main()
