"""te.create_schedule: the loops of formulas, rearranged. The steps are taken on the tensor program when it is made."""
from sator import _core


class Axis:
    """A loop that a step made."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return self.name


class Stage:
    """The loops of one tensor."""

    def __init__(self, tensor):
        self._tensor = tensor
        self._steps = []

    @property
    def op(self):
        """The operation of the tensor: `s[C].op.axis`, `s[C].op.reduce_axis`."""
        return self._tensor.op

    def _add(self, primitive, axes, made=(), **options):
        self._steps.append((primitive, list(axes), list(made), options))

    def _loops(self):
        """The loops now, outermost first."""
        loops = [*self._tensor._axes(), *self._tensor._reduce_axes()]
        for primitive, of, made, _ in self._steps:
            keys = [_key(a) for a in of]
            if primitive == "reorder":
                slots = [i for i, a in enumerate(loops) if _key(a) in keys]
                for slot, axis in zip(slots, of):
                    loops[slot] = axis
            elif made:
                first = min(i for i, a in enumerate(loops) if _key(a) in keys)
                loops = [a for a in loops if _key(a) not in keys]
                loops[first:first] = made
        return loops

    def _positions(self, axes):
        loops = [_key(a) for a in self._loops()]
        for axis in axes:
            if _key(axis) not in loops:
                raise ValueError(f"{axis} is no loop of the tensor {self._tensor.name} now\n  needs: one of its op.axis and op.reduce_axis, or "
                                 "what a step gave, that no later step replaced")
        return [loops.index(_key(a)) for a in axes]

    def split(self, parent, factor=None, nparts=None):
        """Two loops, of `factor` iterations inside or `nparts` outside. Errors: both or neither are given."""
        if (factor is None) == (nparts is None):
            raise ValueError("split takes factor or nparts\n  needs: one of them")
        self._positions([parent])
        outer, inner = Axis("outer"), Axis("inner")
        self._add("split", [parent], [outer, inner], factors=[nparts, factor])
        return outer, inner

    def tile(self, x_parent, y_parent, x_factor, y_factor):
        """Four loops: both outer ones, then both inner ones."""
        x_outer, x_inner = self.split(x_parent, factor=x_factor)
        y_outer, y_inner = self.split(y_parent, factor=y_factor)
        self.reorder(x_outer, y_outer, x_inner, y_inner)
        return x_outer, y_outer, x_inner, y_inner

    def fuse(self, *axes):
        """One loop in the place of several. Errors: they do not follow each other, each directly inside of the one before."""
        at = self._positions(axes)
        if at != list(range(at[0], at[0] + len(at))):
            raise ValueError(f"fuse{tuple(axes)}: these loops of {self._tensor.name} do not follow each other\n  needs: loops of which each "
                             "stands directly inside of the one before, outermost first\n  hint:  reorder them first")
        fused = Axis("fused")
        self._add("fuse", axes, [fused])
        return fused

    def reorder(self, *axes):
        """These loops in this order, outermost first."""
        self._positions(axes)
        self._add("reorder", axes)

    def parallel(self, axis):
        self._add("parallel", [axis])

    def vectorize(self, axis):
        if any(_key(axis) == _key(a) for a in self._tensor._reduce_axes()):
            raise ValueError(f"vectorize({axis}): a reduction of {self._tensor.name} runs over it\n  needs: a loop over elements of the result")
        self._positions([axis])
        self._add("vectorize", [axis])

    def unroll(self, axis):
        self._add("unroll", [axis])

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(f"te's schedules have no step {name}\n  needs: split, tile, fuse, reorder, parallel, vectorize or "
                             "unroll\n  hint:  sator.tir.Schedule(te.create_prim_func(...)) has every step")

    def _apply(self, sch):
        block = sch.get_block(self._tensor.name)
        axes = [*self._tensor._axes(), *self._tensor._reduce_axes()]
        loops = {_key(axis): loop for axis, loop in zip(axes, sch.get_loops(block))}
        for primitive, of, made, options in self._steps:
            result = getattr(sch, primitive)(*(self._loop(loops, a) for a in of), **options)
            for axis, loop in zip(made, result if isinstance(result, list) else [result]):
                loops[_key(axis)] = loop

    def _loop(self, loops, axis):
        if _key(axis) not in loops:
            raise ValueError(f"{axis} is no loop of the tensor {self._tensor.name}\n  needs: one of its op.axis and op.reduce_axis, "
                             "or what a step gave")
        return loops[_key(axis)]


def _key(axis):
    return axis.handle() if isinstance(axis, _core.Object) else id(axis)


class Schedule:
    """The stages of formulas: `s[C]` has the loops of the tensor C."""

    def __init__(self, outputs):
        self._outputs = outputs
        self._stages = {}

    def __getitem__(self, tensor):
        tensor = getattr(tensor, "_tensor", tensor)
        return self._stages.setdefault(tensor, Stage(tensor))

    def _module(self, args):
        """The module of the tensor program with these arguments, its steps taken."""
        sch = _core.Schedule(_core.te.create_prim_func(args))
        for stage in self._stages.values():
            stage._apply(sch)
        return sch.mod


def CreateReadGraph(ops):  # noqa: N802
    """{operation: the tensors that it reads} of these operations and all that they read."""
    out, rest = {}, list(ops)
    while rest:
        op = rest.pop()
        if op not in out:
            out[op] = op.input_tensors
            rest.extend(t.op for t in out[op])
    return out


def PostDFSOrder(roots, read_graph):  # noqa: N802
    """The operations of a read graph, each behind those that it reads."""
    out = []

    def visit(op):
        if op in out:
            return
        for tensor in read_graph[op]:
            visit(tensor.op)
        out.append(op)

    for root in roots:
        visit(root)
    return out


def create_schedule(ops):
    """A schedule of the tensors that `ops` (tensor.op, or a list of them) compute; sator.build(s, [A, B, C]) builds it."""
    return Schedule(ops if isinstance(ops, (list, tuple)) else [ops])


def module_of(inp, args=None, name="main"):
    """The module of a schedule with its arguments, or of one tensor program; a module itself."""
    if isinstance(inp, Schedule):
        return inp._module(args)
    if not isinstance(inp, (_core.ir.IRModule, _core.BaseFunc)):
        raise TypeError(f"{inp!r} is a {type(inp).__name__}\n  needs: an IRModule, a tensor program, or a schedule of te with its arguments")
    return inp if isinstance(inp, _core.ir.IRModule) else _core.module({inp.attrs.get("global_symbol", name): inp}, None, None)
