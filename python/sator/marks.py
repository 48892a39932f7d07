"""Programs as text with some of their parts underlined, or with a comment."""
import re

from sator import _core

_PLACE = re.compile(r"([\x01\x02])(\d+)\x03")


def marked_text(program, options, underlined, annotated):
    """The text with its comments, and which of its characters are underlined.

    underlined, annotated   pairs of a part, or a path to one, and a comment
    Errors: ValueError for a part that the text does not have.
    """
    chains = [_parts(program, part) for part, _ in [*underlined, *annotated]]
    while True:
        text, spans = _split(program._script_with(options, [chain[-1] for chain in chains]))
        missing = [i for i in range(len(chains)) if i not in spans]
        if not missing:
            break
        for i in missing:  # the next larger part around it
            chains[i] = chains[i][:-1]
            if not chains[i]:
                part = [*underlined, *annotated][i][0]
                raise ValueError(f"script: {str(part)[:80]}, a {type(part).__name__}, does not stand in the text\n  needs: a part of the program\n"
                                 "  hint:  lists and expressions around it may do")
    comments = [(spans[len(underlined) + i], comment) for i, (_, comment) in enumerate(annotated)]
    return _commented(text, _characters(text, [s for i in range(len(underlined)) for s in spans[i]]), comments)


def _parts(program, part):
    """A part alone; of a path all parts on it."""
    from sator.runtime.object_path import ObjectPath

    if not isinstance(part, ObjectPath):
        if not isinstance(part, _core.Object):
            raise TypeError(f"script: {part!r} is a {type(part).__name__}\n  needs: a part of the program, or an ObjectPath")
        return [part]
    out, at = [], program
    for step in part._steps():
        at = _followed(at, step, part)
        if isinstance(at, _core.Object):
            out.append(at)
    return out


def _followed(at, step, path):
    kind = type(step).__name__
    try:
        if kind == "AttributeAccessPath":
            return getattr(at, step._key)
        if kind == "ArrayIndexPath":
            return at[step._key]
        if kind == "MapValuePath":
            return at[step._key]
    except (AttributeError, LookupError, TypeError, ValueError):
        raise ValueError(f"script: there is nothing at {path}\n  needs: a path through attributes, positions and keys of the program") from None
    return at


def _split(text):
    """The text without its control characters, and {number: [(begin, end)]}."""
    out, spans, opened, at, length = [], {}, {}, 0, 0
    for found in _PLACE.finditer(text):
        out.append(text[at:found.start()])
        length += found.start() - at
        at = found.end()
        number = int(found[2])
        if found[1] == "\x01":
            opened[number] = length
        else:
            spans.setdefault(number, []).append((opened.pop(number), length))
    return "".join(out) + text[at:], spans


def _characters(text, spans):
    marks = [False] * len(text)
    for begin, end in spans:
        marks[begin:end] = [True] * (end - begin)
    return marks


def _commented(text, marks, comments):
    """Comments stand behind a line, and above one that has a body."""
    lines, starts = text.split("\n"), []
    for line in lines:
        starts.append(starts[-1] + len(lines[len(starts) - 1]) + 1 if starts else 0)
    above, behind = {}, {}
    for spans, comment in comments:
        for begin, _ in spans[:1]:
            at = max(i for i, start in enumerate(starts) if start <= begin)
            (above if lines[at].endswith(":") else behind).setdefault(at, []).append(comment)
    out, kept = [], []
    for i, line in enumerate(lines):
        own = marks[starts[i]:starts[i] + len(line)]
        blanks = len(line) - len(line.lstrip())
        for words in (part for comment in above.get(i, ()) for part in comment.split("\n")):
            out.append(" " * blanks + "# " + words)
            kept.append([False] * len(out[-1]))
        tail = "".join("  # " + " ".join(comment.split("\n")) for comment in behind.get(i, ()))
        out.append(line + tail)
        kept.append(own + [False] * len(tail))
    return "\n".join(out), [m for own in kept for m in [*own, False]]


def laid_out(text, marks, indent_spaces, print_line_numbers, num_context_lines):
    """The text with another indentation, numbers, and carets under what is marked."""
    for option, value, least in (("indent_spaces", indent_spaces, 0), ("num_context_lines", -1 if num_context_lines is None else num_context_lines, -1)):
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ValueError(f"script: {option} = {value!r}\n  needs: an integer from {least} on")
    marks = marks or [False] * (len(text) + 1)
    if indent_spaces != 4:
        text, marks = _indented(text, marks, indent_spaces)
    if not any(marks) and not print_line_numbers:
        return text
    from sator.script.printer.doc_printer import _with_marks

    return "\n".join(_with_marks(text, marks, print_line_numbers, None if num_context_lines in (-1, None) else num_context_lines)).rstrip()


def _indented(text, marks, indent_spaces):
    lines, out, at = [], [], 0
    for line in text.split("\n"):
        levels, rest = divmod(len(line) - len(line.lstrip(" ")), 4)
        lines.append(" " * (levels * indent_spaces + rest) + line[4 * levels + rest:])
        own = marks[at + 4 * levels + rest:at + len(line)]
        out += [False] * (len(lines[-1]) - len(own)) + own + [False]
        at += len(line) + 1
    return "\n".join(lines), out
