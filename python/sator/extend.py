"""Classes of the extension with methods written here."""
import inspect
import types

from sator import answers, dtype_rules


def extends(cls):
    """Adds what a class body defines to the class `cls` of the extension, and is that class.

        @extends(_core.tir.PrimFunc)
        class PrimFunc:
            def with_attr(self, key, value): ...
    """

    def add(body):
        for name, value in vars(body).items():
            if name not in ("__dict__", "__weakref__", "__slots__", "__qualname__") and (name, value) != ("__doc__", None):
                if isinstance(value, types.FunctionType):  # Python's own errors say what was called
                    value.__qualname__ = f"{cls.__name__}.{name}"
                    value = answers.spoken(value) if value.__module__ != "sator.relax.operators" and (name == "__init__" or not name.startswith("_")) else value
                setattr(cls, name, value)
        return cls

    return add


def add_constructors(space, docs, signatures=None):
    """Gives every class of nodes in `space` a constructor that takes its fields, by position or by name.

    docs         what each class is
    signatures   the arguments of classes whose order is TVM's (constructors.py)
    """
    from sator import _core

    for name, cls in list(vars(space).items()):
        if isinstance(cls, type) and hasattr(cls, "_kind") and "__init__" not in vars(cls):
            setattr(cls, "__init__", _constructor(cls, _core, (signatures or {}).get(name)))
        if isinstance(cls, type) and name in docs and not vars(cls).get("__doc__"):
            setattr(cls, "__doc__", docs[name])


def _constructor(cls, core, text):
    made = _plain_constructor(cls, core, text)
    made.__qualname__ = f"{cls.__name__}.__init__"
    return answers.spoken(made)


def _plain_constructor(cls, core, text):
    from sator.constructors import signature

    names = _names(cls)
    order, defaults = list(cls._fields), {}
    if text is not None:
        order, defaults, more = signature(cls, text, names)
        names = {**names, **more}
    if "sinfo" in cls._fields and "sinfo" not in order:
        order.append("sinfo")
    if "sinfo" in cls._fields:
        defaults.setdefault("sinfo", None)
    shown = ", ".join(f for f in order if f not in defaults) + "".join(f", {f}={v!r}" for f, v in defaults.items() if f != "sinfo")

    def __init__(self, *args, **kwargs):
        given = dict(zip(order, args))
        for key, value in kwargs.items():
            if key == "span" or key == "predicate" and value is None and key not in order:
                continue
            if names.get(key) is None or names[key] in given:
                raise TypeError(f"{cls.__name__} has no field {key}\n  needs: {cls.__name__}({shown})")
            given[names[key]] = value
        for field, value in defaults.items():
            given.setdefault(field, value)
        missing = [f for f in cls._fields if f not in given]
        # TVM's last arguments are a span, which nothing keeps, and of loads and stores a predicate before it.
        if missing or any(a is not None and type(a).__name__ != "Span" for a in args[len(order):]) or len(args) > len(order) + 2:
            raise TypeError(f"{cls.__name__}: missing {', '.join(missing) or 'nothing'}, given {len(args)} by position"
                            f"\n  needs: {cls.__name__}({shown})")
        if cls is core.tir.PrimFunc:
            given.update(_with_buffers_as_parameters(core, given))
        if cls is core.relax.Constant and given["sinfo"] is None:
            given["sinfo"] = core.constant(core.share(given["data"])).struct_info
        if cls is core.relax.SeqExpr and given["sinfo"] is None and isinstance(given["body"], core.RelaxExpr):
            given["sinfo"] = given["body"].struct_info
        if cls is core.relax.Function:
            given["ret"] = _result_of(core, given["body"], given["ret"])
        dtype_rules.check(core, cls, given)
        core.Object.__init__(self, core.make(cls, [_made(core, cls, f, given[f]) for f in cls._fields]))

    __init__.__doc__ = f"{cls.__name__}({shown})"
    __init__.__signature__ = _shown_signature(order, defaults, {} if text is None else {field: name for name, field in more.items()})
    return __init__


def _shown_signature(order, defaults, named):
    """What help() and type stubs show: TVM's names, and what may be left out at the end or by name."""
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for field in order:
        is_late = field in defaults or any(p.default is not p.empty for p in parameters)
        parameters.append(inspect.Parameter(named.get(field, field), inspect.Parameter.POSITIONAL_OR_KEYWORD,
                                            default=defaults.get(field) if is_late else inspect.Parameter.empty))
    return inspect.Signature(parameters)


def _with_buffers_as_parameters(core, given):
    """The parameters and the buffer map of a function among whose parameters are buffers: each is a handle of its name."""
    params, buffers = [], dict(given["buffer_map"] or {})
    for p in given["params"]:
        params.append(core.make_var(p.name, "handle", False) if isinstance(p, core.tir.Buffer) else p)
        if params[-1] is not p:
            buffers[params[-1]] = p
    return {"params": params, "buffer_map": buffers}


def _result_of(core, body, stated):
    """What a function gives: what is stated, or what is known of its body where that is finer; a sequence, as one writes it by hand, tells only where
    nothing is stated. Errors: nothing is known of either; other values."""
    if not isinstance(body, core.RelaxExpr):
        raise TypeError(f"Function: the body {body!r} is a {type(body).__name__}\n  needs: an expression of a graph\n"
                        "  hint:  relax.Tuple([...]) of several, relax.PrimValue(3) of a number")
    if stated is not None and not hasattr(stated, "is_base_of"):
        raise TypeError(f"Function: ret_struct_info {stated!r} is a {type(stated).__name__}\n  needs: struct info, as relax.TensorStructInfo([2], \"float32\")")
    known = body.struct_info
    if known is None and stated is None:
        raise ValueError("a Function without ret_struct_info, of a body of which nothing is known\n  needs: ret_struct_info, or a body in normal form\n"
                         "  hint:  sator.relax.BlockBuilder makes one: bb.function(...), bb.normalize(expr)")
    if stated is not None and (isinstance(body, core.relax.SeqExpr) or known is None or not stated.is_base_of(known)):
        return stated
    return known


def _made(core, cls, field, value):
    """A field's value where Python writes it shorter than the node has it."""
    if field == "name" and cls is core.tir.Block and isinstance(value, str):
        return core.make(core.tir.BlockName, [value])
    if field == "ret_dtype" and value is None:
        return "void"
    if field == "is_dataflow" and value is None:  # a span
        return False
    if field == "value" and cls is core.relax.VarBinding and isinstance(value, core.relax.Function):
        return core.local_function(value)
    if field in ("true_branch", "false_branch") and cls is core.relax.If and isinstance(value, core.RelaxExpr) and not isinstance(value, core.relax.SeqExpr):
        return core.make(core.relax.SeqExpr, [[], value, None])
    if field == "thread":
        return getattr(value, "thread_tag", value) or ""
    return value


def names_of_fields(cls):
    """TVM's name of each field of a class of nodes, or its own where TVM has none."""
    other = {field: name for name, field in _names(cls).items() if name != field}
    return [other.get(f, f) for f in cls._fields]


def _names(cls):
    """Field by each of its names."""
    properties = {name: value for name, value in vars(cls).items() if isinstance(value, property)}
    fields = {properties[f].fget: f for f in cls._fields if f in properties}
    return {**{f: f for f in cls._fields}, **{name: fields[p.fget] for name, p in properties.items() if p.fget in fields}}
