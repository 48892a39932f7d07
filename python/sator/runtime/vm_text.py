"""The machine's code in TVM's forms, read from its text."""
import re

_ARG = re.compile(r'%(?P<r>\w+)|i(?P<i>-?\d+)|c\[(?P<c>\d+)\]|f\[(?P<f>[^\]]+)\]')


def _parts(text):
    """(constants, kernels, {function of graphs: [lines]}) of the text."""
    constants, kernels, functions, lines = [], [], {}, []
    for line in text.splitlines():
        if line.startswith("kernel "):
            kernels.append(line.removeprefix("kernel ").partition("(")[0])
        elif line.startswith("c["):
            constants.append(line.partition(": ")[2])
        elif line.startswith("@"):
            lines = functions.setdefault(line, [])
        elif line.startswith("  "):
            lines.append(line.strip())
    return constants, kernels, functions


def _constant(words):
    tensor = re.fullmatch(r"a \w+\[(.*)\] tensor", words)
    if tensor:
        return f"[{tensor[1]}]" if tensor[1] else "scalar"
    return words.removeprefix("the string ").removeprefix("the dtype ")


def stats(text):
    """What the program has: its constants, and the functions that it defines or calls."""
    constants, kernels, functions = _parts(text)
    names = [*kernels, *(f[1:].partition("(")[0] for f in functions)]
    called = (line.split()[1] for lines in functions.values() for line in lines if line.startswith("call "))
    names = list(dict.fromkeys([*names, *called]))
    return ("Relax VM executable statistics:\n"
            f"  Constant pool (# {len(constants)}): [{', '.join(map(_constant, constants))}]\n"
            f"  Globals (#{len(names)}): [{', '.join(names)}]\n")


def _arg(match):
    kind, value = match.lastgroup, match[match.lastgroup]
    if kind == "f":
        return f'ib.f("{value}")'
    return f"ib.{'imm' if kind == 'i' else kind}({value})"


def as_python(text):
    """The functions of graphs as calls of TVM's builder of instructions."""
    out = ["ib = rx.Builder()"]
    for head, lines in _parts(text)[2].items():
        name, _, params = head[1:].rstrip(":").partition("(")
        out.append(f'with ib.function("{name}", num_inputs={len([p for p in params.rstrip(")").split(",") if p.strip()])}):')
        for line in lines:
            word, _, rest = line.partition(" ")
            rest = rest.partition("  # ")[0].strip()
            if word == "call":
                callee, _, more = rest.partition(" ")
                given, _, dst = more.strip().removeprefix("in:").partition("dst:")
                args = ", ".join(_arg(m) for m in _ARG.finditer(given))
                to = "" if dst.strip() == "%void" else f", dst=ib.r({dst.strip()[1:]})"
                out.append(f'    ib.emit_call("{callee}", args=[{args}]{to})')
            elif word == "if":
                condition, target = re.match(r"%(\d+)\D*(-?\d+)", rest).groups()
                out.append(f"    ib.emit_if(ib.r({condition}), {int(target)})")
            else:
                value = rest.strip().lstrip("%")
                out.append(f"    ib.emit_ret(ib.r({value}))" if word == "ret" else f"    ib.emit_goto({int(value)})")
    return "\n".join(out) + "\n"
