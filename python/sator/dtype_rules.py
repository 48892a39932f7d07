"""What the constructors of nodes ask of the dtypes of their parts, as TVM's do."""

# Parts that have one dtype, by the name of the node.
_ONE_DTYPE = {**dict.fromkeys(("Add", "Sub", "Mul", "Div", "Mod", "FloorDiv", "FloorMod", "Min", "Max", "EQ", "NE", "LT", "LE", "GT", "GE", "And", "Or"), ("a", "b")),
              "Select": ("true_value", "false_value"), "Ramp": ("base", "stride"), "Let": ("var", "value"), "LetStmt": ("var", "value"),
              "BufferStore": ("buffer", "value")}
_BOOL = {"And": ("a", "b"), "Or": ("a", "b"), "Not": ("a",), "Select": ("condition",)}
_INTEGER = {"For": ("var",), "BufferLoad": ("indices",), "BufferStore": ("indices",)}


def check(core, cls, given):
    """Errors: TypeError where a part has another dtype than its node takes. given: {field: part}; numbers of Python's fit all."""
    name = cls.__name__
    pair = [_dtype(core, given.get(f)) for f in _ONE_DTYPE.get(name, ())]
    if name == "BufferStore":  # vectors are stored in buffers of elements
        pair = [dtype and dtype.split("x")[0] for dtype in pair]
    if len(pair) == 2 and None not in pair and pair[0] != pair[1]:
        raise TypeError(f"{name}: mismatched types: {' and '.join(f'{f} of {d}' for f, d in zip(_ONE_DTYPE[name], pair))}"
                        "\n  needs: one dtype\n  hint:  value.astype(dtype)")
    for field in _BOOL.get(name, ()):
        dtype = _dtype(core, given.get(field))
        if dtype and not dtype.startswith("bool"):
            raise TypeError(f"{name}: {field} of {dtype}\n  needs: a bool\n  hint:  compare it: value != 0")
    for field in _INTEGER.get(name, ()):
        parts = given.get(field)
        for part in parts if isinstance(parts, (list, tuple)) else [parts]:
            dtype = _dtype(core, part)
            if dtype and dtype.startswith(("float", "bfloat")):
                raise TypeError(f"{name}: {field} of {dtype}\n  needs: an integer\n  hint:  value.astype(\"int32\")")


def _dtype(core, part):
    return part.dtype if isinstance(part, (core.PrimExpr, core.tir.Buffer)) else None
