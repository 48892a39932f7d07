#!/usr/bin/env python3
"""The checks that need no compiler: order of the rooms, names that meet, format, sizes of files.

    check.py                 prints every finding as file:line: words; exit status 1 if there is one
    check.py --fix [FILE...] rewrites sources in the house's format

A room (folder of src/) includes only itself and rooms above it in src/LAYERS; so do folders of a room with a LAYERS. Names in the unnamed namespaces of a room's
files are unique in the room, are no types or constants of any room's headers, and hide none of an outer namespace that another file of the room uses, for the
release build compiles several files at once; two may have the same alias. Sizes are hints and fail nothing.
"""
import argparse
import concurrent.futures
import difflib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE_FOLDERS = ("src", "tests", "bench")
INCLUDE = re.compile(r'\s*#\s*include\s+"([^"]+)"')
# Lines beyond which a file is worth a second look; a pure table may be longer.
SIZE_HINTS = {".cc": 400, ".h": 300, ".py": 400}
FORMATTER = "clang-format-19"  # another version breaks lines differently


def read_layers(folder):
    """The folders of a folder in their order."""
    lines = (folder / "LAYERS").read_text().splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def sources(root, folders=SOURCE_FOLDERS, suffixes=(".cc", ".h")):
    """All source files below the folders, sorted."""
    return sorted(p for folder in folders for p in (root / folder).rglob("*") if p.suffix in suffixes and p.is_file())


def layer_findings(root):
    """Includes that break the order of the rooms, or of folders within one: (path, line, words)."""
    src = root / "src"
    orders = {file.parent.relative_to(src): read_layers(file.parent) for file in sorted(src.rglob("LAYERS"))}
    for path in sources(root, ("src",)):
        relative = path.relative_to(src)
        places = []  # (folder with an order, the part of it that the file is in)
        for folder, order in orders.items():
            if not relative.is_relative_to(folder):
                continue
            part = relative.relative_to(folder).parts[0]
            if part in order:
                places.append((folder, part))
            else:
                yield path, 1, f"src/{relative} is in no folder of src/{folder / 'LAYERS'}"
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            included = Path(match.group(1))
            if not (src / included).is_file():
                yield path, number, f'"{included}" is no file of src/ (system headers stand in <>, ours are named from src/)'
                continue
            for folder, part in places:
                if not included.is_relative_to(folder):
                    continue
                order, other = orders[folder], included.relative_to(folder).parts[0]
                if other not in order or order.index(other) > order.index(part):
                    yield path, number, f"{folder / part} includes {folder / other}, which stands below it in src/{folder / 'LAYERS'}"


# What stands at the begin of a line in an unnamed namespace: a type, an alias, a constant or table, a function's head.
UNNAMED = (
    re.compile(r"(?:struct|class|enum class|enum|union) (\w+)\b(?!;)"),
    re.compile(r"using (\w+ = [^;]*)"),  # twice the same alias is fine
    re.compile(r"(?:inline |static )*(?:constexpr|const)\b[^(]*?\b(\w+)(?:\[[^\]]*\])* *(?:=|\{|;)"),
)
FUNCTION = re.compile(r"(?:inline |static |constexpr )*[\w:<>,&* ]+?[ &*>](\w+)\((.*)")


def parameter_types(rest):
    """The types of a parameter list that begins behind its bracket; nothing where it is only declared."""
    depth, types, word = 0, [], ""
    for at, c in enumerate(rest):
        if c in "([{<":
            depth += 1
        elif c in ")]}>":
            if depth == 0 and c == ")":
                if rest[at + 1 :].lstrip().startswith(";"):
                    return None
                break
            depth -= 1
        if c == "," and depth == 0:
            types, word = types + [word], ""
        else:
            word += c
    return tuple(re.sub(r"\w+$", "", t.split(" = ")[0].strip()).strip() for t in types + [word])


def further_names(line, following):
    """What a definition names beside its first name: the other constants of a line, the values of an enumeration without a scope."""
    if re.match(r"enum \w+", line) and not line.startswith(("enum class", "enum struct")):
        body = " ".join([line] + following[:40]).partition("{")[2].partition("}")[0]
        return re.findall(r"(\w+)(?: = [^,]*)?(?:,|$)", re.sub(r"//.*", "", body).strip())
    if re.match(r"(?:inline |static )*(?:constexpr|const)\b", line):
        depth, at_depth = 0, ""
        for c in line.partition("//")[0]:
            depth += (c in "([{") - (c in ")]}")
            at_depth += c if depth == 0 else ""
        return re.findall(r", \*?(\w+)(?=[\])}]* *[=;])", re.sub(r"<[^>]*>", "", at_depth))
    return []


def unnamed_names(text):
    """(name, line) of what a source defines in unnamed namespaces; a function's name has its parameters' types."""
    lines, inside = text.splitlines(), False
    for number, line in enumerate(lines, 1):
        if line == "namespace {" or line.startswith("}  // namespace"):
            inside = line == "namespace {"
        elif (inside or line.startswith("static ")) and line[:1].isalpha():
            found = next((m for m in (pattern.match(line) for pattern in UNNAMED) if m), None)
            if found:
                yield found.group(1), number
                for name in further_names(line, lines[number:]):
                    yield name, number
            elif function := FUNCTION.match(line):
                types = parameter_types(" ".join([function.group(2)] + [l.strip() for l in lines[number : number + 8]]))
                if types is not None:
                    yield f"{function.group(1)}({', '.join(types)})", number


RAW_STRING = re.compile(r'R"(\w*)\(.*?\)\1"', re.DOTALL)
TYPE = re.compile(r"(?:struct|class|enum class|union) (\w+)\b")
NAMESPACE = re.compile(r"namespace (\w[\w:]*) \{")


def namespace_of(text):
    """The first namespace that a file opens."""
    found = NAMESPACE.search(text)
    return found.group(1) if found else ""


def name_findings(root):
    """Names that a file of a room defines in an unnamed namespace and another file there, or a header of any room as a type or constant of
    the same namespace, defines too, or that hide a header's of an outer namespace from another file of the room: (path, line, words)."""
    seen, types = {}, {}
    for path in sources(root, ("src",), (".h",)):
        namespace = ""
        for line in path.read_text(errors="replace").splitlines():
            if opened := NAMESPACE.match(line):
                namespace = opened.group(1)
            elif found := TYPE.match(line) or UNNAMED[-1].match(line):
                types.setdefault((namespace, found.group(1)), path)
    texts = {path: path.read_text(errors="replace") for path in sources(root, ("src",), (".cc",))}
    texts = {path: RAW_STRING.sub(lambda raw: "\n" * raw.group().count("\n"), text) for path, text in texts.items()}

    def uses(path, room, namespace, name):
        return (
            path.relative_to(root / "src").parts[0] == room
            and f"{namespace_of(texts[path])}::".startswith(f"{namespace}::")
            and re.search(rf"(?<![:.>\w]){name}\b", re.sub(r"//.*", "", texts[path]))
        )

    for path, text in texts.items():
        room, namespace = path.relative_to(root / "src").parts[0], namespace_of(text)
        for definition, line in unnamed_names(text):
            name = definition.partition(" = ")[0]
            outer = namespace.rpartition("::")[0]
            while outer and (outer, name) not in types:
                outer = outer.rpartition("::")[0]
            if outer and (other := next((p for p in texts if p != path and uses(p, room, namespace, name)), None)):
                declared = types[outer, name].relative_to(root)
                yield path, line, f"{declared} defines {name} too, and {other.relative_to(root)} uses it: call this one what it is"
                continue
            declared = types.get((namespace, name))
            first, other = (None, declared) if declared else seen.setdefault((room, name), (definition, path))
            is_same_alias = definition != name and definition == first
            if other != path and not is_same_alias:
                yield path, line, f"{other.relative_to(root)} defines {name} too: share it, or call one of them what it is"


def size_findings(root):
    for path in sources(root, SOURCE_FOLDERS + ("tools",), tuple(SIZE_HINTS)):
        lines = path.read_text(errors="replace").count("\n")
        limit = SIZE_HINTS[path.suffix]
        if lines > limit * 1.5:
            yield path, lines, f"{lines} lines; about {limit} read well"


def formatted(path, style):
    """The file's text in the house's format."""
    run = subprocess.run([FORMATTER, f"--style=file:{style}", str(path)], capture_output=True, text=True)
    if run.returncode != 0:
        raise RuntimeError(f"{FORMATTER} failed on {path}: {run.stderr.strip()}")
    return run.stdout


def format_findings(root, paths, fix=False):
    """Files whose format differs. A cache under build/ keeps what was found well, so a whole-tree check is quick."""
    style = root / ".clang-format"
    cache_path = root / "build" / "format-cache.json"
    try:
        known = set(json.loads(cache_path.read_text()))
    except (OSError, ValueError):
        known = set()

    def key(text):
        return hashlib.sha1(style.read_bytes() + text.encode()).hexdigest()

    def examine(path):
        text = path.read_text()
        if key(text) in known:
            return path, key(text), None
        new = formatted(path, style)
        if new != text and fix:
            path.write_text(new)
        return path, key(new) if new == text or fix else None, None if new == text else (text, new)

    good, findings = set(), []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, digest, change in pool.map(examine, paths):
            if digest:
                good.add(digest)
            if change:
                old, new = (t.splitlines() for t in change)
                blocks = [op for op in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if op[0] != "equal"]
                findings.append((path, blocks[0][1] + 1, f"{len(blocks)} places differ from the format (./dev format {path.relative_to(root)})"))
    cache_path.parent.mkdir(exist_ok=True)
    cache_path.write_text(json.dumps(sorted(good | known if fix else good)))
    return findings


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fix", action="store_true", help="rewrite sources in the house's format")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    parser.add_argument("files", nargs="*", type=Path)
    args = parser.parse_args()
    root = args.root.resolve()

    def show(findings):
        count = 0
        for path, line, words in findings:
            print(f"{path.relative_to(root)}:{line}: {words}")
            count += 1
        return count

    if not shutil.which(FORMATTER):
        sys.exit(f"error: {FORMATTER} is not installed\n  needs: the packages of tools/packages.txt\n  hint:  ./dev check installs them")
    if args.fix:
        named = [p.resolve() for p in args.files]
        paths = [p for p in named if p.suffix in (".cc", ".h")] if named else sources(root)
        print(f"{len(format_findings(root, paths, fix=True))} of {len(paths)} files rewritten")
        return 0
    layers = show(layer_findings(root))
    names = show(name_findings(root))
    formats = show(format_findings(root, sources(root)))
    hints = show(size_findings(root))
    print(f"check: {layers} includes against the order of the rooms, {names} names that meet, {formats} files out of format, {hints} hints on size")
    return 1 if layers or names or formats else 0


if __name__ == "__main__":
    sys.exit(main())
