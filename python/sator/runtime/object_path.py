"""Paths from a root to one of its parts: `ObjectPath.root().attr("body").array_index(2)` is `<root>.body[2]`.

A printer underlines what a path names (`sator.script.printer.doc_printer`).
"""
_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\", '"': '\\"'}


class ObjectPath:
    """A path from a root: steps by attributes, positions and keys. It never changes; each step is a new path.

    Paths are equal where each step is. `len(path)` counts the steps and the root; `str(path)` writes it as Python does.
    """

    def __init__(self):
        raise ValueError("ObjectPath() has no root\n  needs: a path that begins somewhere\n  hint:  ObjectPath.root().attr(\"body\")")

    @staticmethod
    def root(root_name=None):
        """The path that begins all others, printed as its name, or as `<root>`. Errors: TypeError for a name that is no text."""
        if root_name is not None and not isinstance(root_name, str):
            raise _wrong("root", "root_name", root_name, "a text, or None")
        return _step(RootPath, None, root_name)

    def attr(self, attr_key):
        """The path to an attribute: `<root>.body`; of an unknown one for None. Errors: TypeError for a name that is no text."""
        if attr_key is None:
            return _step(UnknownAttributeAccessPath, self, None)
        if not isinstance(attr_key, str):
            raise _wrong("attr", "attr_key", attr_key, "a text, or None")
        return _step(AttributeAccessPath, self, attr_key)

    def array_index(self, index):
        """The path to an item of a list: `<root>[2]`. Errors: TypeError for what is no position."""
        return _step(ArrayIndexPath, self, _position("array_index", index))

    def missing_array_element(self, index):
        """The path to an item that this list lacks and another one has: `<root>[<missing element #2>]`. Errors: TypeError for what is no position."""
        return _step(MissingArrayElementPath, self, _position("missing_array_element", index))

    def map_value(self, key):
        """The path to the value of a key: `<root>["foo"]`. Errors: TypeError for a key that no dictionary takes."""
        try:
            hash(key)
        except TypeError:
            raise _wrong("map_value", "key", key, "what can be the key of a dictionary") from None
        return _step(MapValuePath, self, key)

    def missing_map_entry(self):
        """The path to a value that this dictionary lacks and another one has: `<root>[<missing entry>]`."""
        return _step(MissingMapEntryPath, self, None)

    @property
    def parent(self):
        """The path without its last step; None of a root."""
        return self._parent

    def get_prefix(self, length):
        """The first steps of the path, the root counted. Errors: IndexError for fewer than one, or more than the path has."""
        if not isinstance(length, int):
            raise _wrong("get_prefix", "length", length, "an integer")
        if length < 1:
            raise IndexError(f"get_prefix({length}): Prefix length must be at least 1\n  needs: 1 <= length <= {len(self)}")
        if length > len(self):
            raise IndexError(f"get_prefix({length}): Attempted to get a prefix longer than the path itself\n  needs: 1 <= length <= {len(self)}")
        return self._steps()[length - 1]

    def is_prefix_of(self, other):
        """Whether the other path begins with this one, or is it. Errors: TypeError for what is no path."""
        if not isinstance(other, ObjectPath):
            raise _wrong("is_prefix_of", "other", other, "an ObjectPath")
        return len(self) <= len(other) and self == other.get_prefix(len(self))

    def _steps(self):
        """The paths from the root to this one."""
        steps, at = [], self
        while at is not None:
            steps.append(at)
            at = at._parent
        return steps[::-1]

    def __len__(self):
        return self._length

    def __bool__(self):
        return True

    def __eq__(self, other):
        if not isinstance(other, ObjectPath):
            return NotImplemented
        return len(self) == len(other) and all(type(a) is type(b) and _same(a._key, b._key) for a, b in zip(self._steps(), other._steps()))

    def __hash__(self):
        return hash(tuple((type(step), step._key) for step in self._steps()))

    def __str__(self):
        return "".join(step._text() for step in self._steps())

    __repr__ = __str__


class RootPath(ObjectPath):
    """Where a path begins."""

    def _text(self):
        return "<root>" if self._key is None else self._key


class AttributeAccessPath(ObjectPath):
    """A step to an attribute."""

    def _text(self):
        return "." + self._key


class UnknownAttributeAccessPath(ObjectPath):
    """A step to an attribute of which no name is known."""

    def _text(self):
        return ".<unknown attribute>"


class ArrayIndexPath(ObjectPath):
    """A step to an item of a list."""

    def _text(self):
        return f"[{self._key}]"


class MissingArrayElementPath(ObjectPath):
    """A step to an item that a list lacks."""

    def _text(self):
        return f"[<missing element #{self._key}>]"


class MapValuePath(ObjectPath):
    """A step to the value of a key."""

    def _text(self):
        if type(self._key).__name__ == "GlobalVar":
            return f"[I.GlobalVar({_quoted(self._key.name_hint)})]"
        return f"[{_quoted(self._key) if isinstance(self._key, str) else self._key}]"


class MissingMapEntryPath(ObjectPath):
    """A step to a value that a dictionary lacks."""

    def _text(self):
        return "[<missing entry>]"


def _step(kind, parent, key):
    path = object.__new__(kind)
    path._parent, path._key, path._length = parent, key, 1 + (len(parent) if parent is not None else 0)
    return path


def _quoted(text):
    """A text in double quotes; what cannot be printed is escaped."""
    return '"' + "".join(_ESCAPES.get(c) or (c if c.isprintable() else c.encode("unicode_escape").decode()) for c in text) + '"'


def _same(a, b):
    """Whether two keys are one: nodes of programs compare as expressions, so of these the object counts."""
    if hasattr(a, "same_as") or hasattr(b, "same_as"):
        return type(a) is type(b) and a.same_as(b)
    return a == b


def _position(method, index):
    if not isinstance(index, int) or index < 0:
        raise _wrong(method, "index", index, "a position, an integer from 0")
    return index


def _wrong(method, name, value, needs):
    return TypeError(f"{method}: {name} = {value!r} is a {type(value).__name__}\n  needs: {needs}")
