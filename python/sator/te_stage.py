"""The loops of one tensor in a schedule of te, and the steps that rearrange them."""
from sator import _core

# Steps that only mark loops: they are taken when all loops are where they shall be.
MARKS = ("parallel", "vectorize", "unroll", "annotate", "storage_align")


class Axis:
    """A loop that a step made; `var` stands for it in bounds."""

    def __init__(self, name):
        self.name = name
        self.var = _core.make_var(name, "int32", False)

    def __repr__(self):
        return self.name


class StageOp:
    """What a tensor that a schedule made computes: its axes, and the axes of its reduction."""

    def __init__(self, tensor, axis, reduce_axis):
        self._tensor, self.axis, self.reduce_axis = tensor, list(axis), list(reduce_axis)
        self.name = tensor.name

    def output(self, index):
        """Its tensor."""
        return self._tensor


class StageTensor:
    """A tensor that a schedule made: by cache_read, cache_write or rfactor."""

    def __init__(self, name, shape, dtype, axis, reduce_axis=()):
        self.name, self.shape, self.dtype = name, tuple(shape), dtype
        self.op = StageOp(self, axis, reduce_axis)

    def __repr__(self):
        return f"Tensor(shape={list(self.shape)}, name={self.name}, dtype={self.dtype})"


def copied(axes):
    """Axes like these of their own, as loops of another tensor."""
    return [Axis(name_of(a)) for a in axes]


def name_of(axis):
    """What an axis is called; anything else as its text."""
    return axis.name if isinstance(axis, Axis) else axis.var.name if isinstance(axis, _core.tir.IterVar) else str(axis)


def key_of(axis):
    """What tells an axis from another one: nodes are one where their handles are."""
    return axis.handle() if isinstance(axis, _core.Object) else id(axis)


class Stage:
    """The loops of one tensor."""

    def __init__(self, tensor, op=None):
        self._tensor, self._op = tensor, op
        self._steps = []
        self._block_axes = None  # of the block's iterators in their order, where that is not the operation's
        self._place = None  # "inline", or the stage and the axis that it is computed at

    @property
    def op(self):
        """The operation of the tensor: `s[C].op.axis`, `s[C].op.reduce_axis`."""
        return self._op or self._tensor.op

    @property
    def _axes(self):
        return [*self.op.axis, *self.op.reduce_axis]

    @property
    def leaf_iter_vars(self):
        """The loops now, outermost first."""
        return self._loops()

    def _add(self, primitive, axes, made=(), *more, **options):
        self._steps.append((primitive, list(axes), list(made), more, options))

    def _loops(self):
        loops = self._axes
        for primitive, of, made, _, _ in self._steps:
            keys = [key_of(a) for a in of]
            if primitive == "reorder":
                slots = [i for i, a in enumerate(loops) if key_of(a) in keys]
                for slot, axis in zip(slots, of):
                    loops[slot] = axis
            elif made:
                first = min(i for i, a in enumerate(loops) if key_of(a) in keys)
                loops = [a for a in loops if key_of(a) not in keys]
                loops[first:first] = made
        return loops

    def _positions(self, axes):
        loops = [key_of(a) for a in self._loops()]
        for axis in axes:
            if key_of(axis) not in loops:
                raise ValueError(f"{name_of(axis)} is no loop of the tensor {self._tensor.name} now\n  needs: one of its op.axis and op.reduce_axis, or "
                                 "what a step gave, that no later step replaced")
        return [loops.index(key_of(a)) for a in axes]

    # Loops.

    def split(self, parent, factor=None, nparts=None, disable_predication=False):
        """Two loops, of `factor` iterations inside or `nparts` outside; disable_predication as of tir.Schedule.split.

        Errors: both or neither are given.
        """
        if (factor is None) == (nparts is None):
            raise ValueError("split takes factor or nparts\n  needs: one of them")
        self._positions([parent])
        outer, inner = Axis("outer"), Axis("inner")
        self._add("split", [parent], [outer, inner], factors=[nparts, factor], **({"disable_predication": True} if disable_predication else {}))
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
        if not at or at != list(range(at[0], at[0] + len(at))):
            raise ValueError(f"fuse({', '.join(map(name_of, axes))}): these loops of {self._tensor.name} do not follow each other\n  needs: loops of which each "
                             "stands directly inside of the one before, outermost first\n  hint:  reorder them first")
        fused = Axis("fused")
        self._add("fuse", axes, [fused])
        return fused

    def reorder(self, *axes):
        """These loops in this order, outermost first."""
        self._positions(axes)
        self._add("reorder", axes)

    def parallel(self, var):
        """The loop's iterations run on all cores."""
        self._positions([var])
        self._add("parallel", [var])

    def vectorize(self, var):
        """The loop is one vector operation. Errors: ValueError for a loop of a reduction."""
        if any(key_of(var) == key_of(a) for a in self.op.reduce_axis):
            raise ValueError(f"vectorize({name_of(var)}): a reduction of {self._tensor.name} runs over it\n  needs: a loop over elements of the result")
        self._positions([var])
        self._add("vectorize", [var])

    def unroll(self, var):
        """The loop is written out."""
        self._positions([var])
        self._add("unroll", [var])

    def bind(self, ivar, thread_ivar):
        """The loop's iterations run on threads of a GPU.

        thread_ivar   te.thread_axis("threadIdx.x"), or the text
        """
        self._positions([ivar])
        self._add("bind", [ivar], (), thread_ivar if isinstance(thread_ivar, str) else thread_ivar.tag)

    def pragma(self, var, pragma_type, pragma_value=None):
        """A word to the compiler about a loop: pragma(i, "auto_unroll_max_step", 16)."""
        self._positions([var])
        self._add("annotate", [var], (), f"pragma_{pragma_type}", 1 if pragma_value is None else pragma_value)

    def storage_align(self, axis, factor, offset):
        """The tensor's memory: a step along the axis goes factor * k + offset elements, for some k. Errors: ValueError for no axis of it."""
        keys = [key_of(a) for a in self.op.axis]
        if key_of(axis) not in keys:
            raise ValueError(f"storage_align: {name_of(axis)} is no axis of the tensor {self._tensor.name}\n  needs: one of its op.axis")
        self._add("storage_align", [], (), 0, keys.index(key_of(axis)), factor, offset)

    def set_scope(self, scope):
        """Where the tensor lies: "local", "shared", ..."""
        self._add("set_scope", [], (), 0, scope)

    # Where the tensor is computed.

    def compute_at(self, parent, scope):
        """The tensor is computed inside of a loop of one that reads it: what that iteration needs.

        parent   the stage whose loop it is
        scope    the loop
        Errors: ValueError for a loop that the stage has not; ScheduleError, when the program is made, where a reader lies outside of the loop.
        """
        if not isinstance(parent, Stage):
            raise TypeError(f"compute_at: {parent!r} is a {type(parent).__name__}\n  needs: a stage, such as s[C]")
        if parent is self:
            raise ValueError(f"compute_at: {self._tensor.name} inside of itself\n  needs: the stage of a tensor that reads it")
        parent._positions([scope])
        self._place = (parent, scope)

    def compute_inline(self):
        """The tensor is not computed by itself: those who read it compute its elements."""
        self._place = "inline"

    def compute_root(self):
        """The tensor is computed by itself, before those who read it, as without any step."""
        self._place = None

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        steps = sorted(n for n, v in vars(Stage).items() if not n.startswith("_") and callable(v))
        raise AttributeError(f"te's schedules have no step {name}\n  needs: one of {', '.join(steps)}\n"
                             "  hint:  sator.tir.Schedule(te.create_prim_func(...)) has every step")

    # The steps on the tensor program.

    def _begin(self, sch, block):
        """The loops of the block that runs this stage, by axis. Loops around it belong to those that it is computed at."""
        axes = self._block_axes or self._axes
        loops = sch.get_loops(block)
        out = {key_of(axis): loop for axis, loop in zip(axes, loops[len(loops) - len(axes):] if axes else [])}
        if self._block_axes:
            sch.reorder(*(out[key_of(a)] for a in self._axes))
        return out

    def _apply(self, sch, block, loops, marks):
        """Takes the steps that mark loops, or the others. What the loops that they make run over, {axis: Range}."""
        from sator import ir

        bounds = {}
        for primitive, of, made, more, options in self._steps:
            if (primitive in MARKS) == marks:
                places = [self._loop(loops, a) for a in of] or [block]
                result = getattr(sch, primitive)(*places, *more, **options)
                for axis, loop in zip(made, result if isinstance(result, list) else [result]):
                    loops[key_of(axis)] = loop
                    made_loop = sch.get(loop)
                    bounds[axis] = ir.Range.from_min_extent(made_loop.min, made_loop.extent)
        return bounds

    def _loop(self, loops, axis):
        if key_of(axis) not in loops:
            raise ValueError(f"{name_of(axis)} is no loop of the tensor {self._tensor.name}\n  needs: one of its op.axis and op.reduce_axis, "
                             "or what a step gave")
        return loops[key_of(axis)]
