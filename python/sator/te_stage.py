"""The loops of one tensor in a schedule of te, and the steps that rearrange them."""
from sator import _core
from sator.error import UseError

# Steps that only mark loops: they are taken when all loops are where they shall be.
MARKS = ("parallel", "vectorize", "unroll", "annotate", "storage_align")
# Steps of TVM's that are not here: why, and what is.
_NOT_HERE = {
    "double_buffer": ("two halves of a buffer are made by the software pipeline", "sch.annotate(loop, \"software_pipeline_stage\", [0, 1]) on a tir.Schedule"),
    "attach_ivar": ("places are loops of stages", "s[C].compute_at(parent, scope)"),
    "attach_stage": ("places are loops of stages", "s[C].compute_at(parent, scope)"),
    "env_threads": ("threads are bound to loops", "s[C].bind(loop, te.thread_axis(\"threadIdx.x\"))"),
    "prefetch": ("processors fetch ahead by themselves", "s.cache_read(tensor, scope, readers), and compute_at"),
    "set_store_predicate": ("each element is stored where its loops run", "te.if_then_else(condition, value, other) in the formula"),
}


class Axis:
    """A loop that a step made; `var` stands for it in bounds."""

    def __init__(self, name):
        self.name = name
        self.var = _core.make_var(name, "int32", False)

    def __repr__(self):
        return self.name


class Split:
    """What a split was: the loop, the two in its place, and what was given."""

    def __init__(self, parent, outer, inner, nparts, factor):
        self.parent, self.outer, self.inner, self.nparts, self.factor = parent, outer, inner, nparts, factor


class Fuse:
    """What a fusion of two loops was."""

    def __init__(self, outer, inner, fused):
        self.outer, self.inner, self.fused = outer, inner, fused


class Singleton:
    """A loop of one iteration around a tensor that has none."""

    def __init__(self, iter):  # noqa: A002  (TVM's name)
        self.iter = iter


class IterVarAttr:
    """What is said of a loop: `iter_type`, a constant of tir.IterVar, and the pragmas."""

    def __init__(self, iter_type, pragma_keys, pragma_values):
        self.iter_type, self.pragma_keys, self.pragma_values = iter_type, pragma_keys, pragma_values


class StageOp:
    """What a tensor that a schedule made computes: its axes, and the axes of its reduction."""

    def __init__(self, tensor, axis, reduce_axis):
        self._tensor, self.axis, self.reduce_axis = tensor, list(axis), list(reduce_axis)
        self.name = tensor.name

    def output(self, index):
        """Its tensor."""
        return self._tensor

    @property
    def body(self):
        """Refused: the program says what the tensor computes."""
        raise AttributeError(f"{self.name} is a tensor that the schedule changed: its operation has no formula\n  needs: an operation of te.compute\n"
                             "  hint:  sator.lower(s, [A, B, C], simple_mode=True) shows what it computes")


class StageTensor:
    """A tensor that a schedule made: by cache_read, cache_write or rfactor."""

    def __init__(self, name, shape, dtype, axis, reduce_axis=()):
        self.name, self.shape, self.dtype = name, tuple(shape), dtype
        self.first = self  # of the tensors that one statement computes
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


def _in_layout(mapping_function, index_map):
    """The step that stores a tensor, and runs over its elements, in the layout of a map."""
    from sator import tir

    rank = len(index_map.initial_indices)

    def take(sch, block):
        sums = len(sch.get(block).iter_vars) - rank
        sch.transform_layout(block, ("write", 0), mapping_function)
        sch.transform_block_layout(block, tir.IndexMap.from_func(lambda *i: [*index_map.map_indices(list(i[:rank])), *i[rank:]], rank + sums))
        loops = sch.get_loops(block)
        return loops[:len(loops) - sums]

    return take


class Stage:
    """The loops of one tensor."""

    def __init__(self, tensor, op=None):
        self._tensor, self._op = tensor, op
        self._steps = []
        self._intrinsics = []  # pairs of an axis and the instruction in its place
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

    @property
    def all_iter_vars(self):
        """Every loop that there was."""
        return [*self._axes, *(a for _, _, made, _, _ in self._steps for a in made)]

    @property
    def attach_type(self):
        """1 of a tensor computed by itself, 2 of one computed inline, 4 of one computed in a loop of another."""
        return 1 if self._place is None else 2 if self._place == "inline" else 4

    @property
    def relations(self):
        """The splits and fusions, in their order."""
        out = []
        for primitive, of, made, _, options in self._steps:
            if primitive == "split":
                out.append(Split(of[0], *made, *options["factors"]))
            elif primitive == "fuse":
                out.append(Fuse(of[0], of[-1], made[0]))
            elif primitive == "add_unit_loop":
                out.append(Singleton(made[0]))
        return out

    @property
    def iter_var_attrs(self):
        """{loop: what is said of it} of those of which something is."""
        from sator.tir import IterVar

        kinds = {"parallel": IterVar.Parallelized, "vectorize": IterVar.Vectorized, "unroll": IterVar.Unrolled, "bind": IterVar.ThreadIndex}
        out = {}
        for primitive, of, _, more, _ in self._steps:
            if primitive in kinds:
                out.setdefault(of[0], IterVarAttr(0, [], [])).iter_type = kinds[primitive]
            elif primitive == "annotate":
                attr = out.setdefault(of[0], IterVarAttr(0, [], []))
                attr.pragma_keys.append(more[0].removeprefix("pragma_"))
                attr.pragma_values.append(more[1])
        return out

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
            elif made and not of:
                loops = [*made, *loops]
            elif made:
                first = min(i for i, a in enumerate(loops) if key_of(a) in keys)
                loops = [a for a in loops if key_of(a) not in keys]
                loops[first:first] = made
        return loops

    def _extent(self, axis):
        """How many iterations a loop has."""
        from sator import tir

        extents = {key_of(a): a.dom.extent for a in self._axes if hasattr(a, "dom")}
        for primitive, of, made, _, options in self._steps:
            known = [extents.get(key_of(a)) for a in of]
            if None in known:
                continue
            if primitive == "split":
                nparts, factor = options["factors"]
                other = tir.ceildiv(known[0], nparts if factor is None else factor)
                extents.update({key_of(made[0]): nparts if factor is None else other, key_of(made[1]): other if factor is None else factor})
            elif primitive == "fuse":
                product = known[0]
                for extent in known[1:]:
                    product = product * extent
                extents[key_of(made[0])] = product
        return extents.get(key_of(axis))

    def _positions(self, axes):
        loops = [key_of(a) for a in self._loops()]
        for axis in axes:
            if key_of(axis) not in loops:
                raise UseError(f"{name_of(axis)} is no loop of the tensor {self._tensor.name} now\n  needs: one of its op.axis and op.reduce_axis, or "
                                "what a step gave, that no later step replaced")
        return [loops.index(key_of(a)) for a in axes]

    # Loops.

    def split(self, parent, factor=None, nparts=None, disable_predication=False):
        """Two loops, of `factor` iterations inside or `nparts` outside; disable_predication as of tir.Schedule.split.

        Errors: both or neither are given.
        """
        if (factor is None) == (nparts is None):
            raise UseError("split takes factor or nparts\n  needs: one of them")
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
        """One loop in the place of several; of none of a tensor of one element a loop of one iteration. Errors: they do not follow each other, each directly inside of the one before."""
        if not axes and not self._loops():  # of a single element
            self._add("add_unit_loop", [], [Axis("singleton")])
            return self._steps[-1][2][0]
        at = self._positions(axes)
        if not at or at != list(range(at[0], at[0] + len(at))):
            raise UseError(f"fuse({', '.join(map(name_of, axes))}): these loops of {self._tensor.name} do not follow each other\n  needs: loops of which each "
                            "stands directly inside of the one before, outermost first\n  hint:  reorder them first")
        fused = Axis("fused")
        self._add("fuse", axes, [fused])
        return fused

    def reorder(self, *axes):
        """These loops in this order, outermost first."""
        at = self._positions(axes)
        if len(set(at)) < len(at):
            raise UseError(f"reorder({', '.join(map(name_of, axes))}): a loop stands there twice\n  needs: each loop once")
        self._add("reorder", axes)

    def parallel(self, var):
        """The loop's iterations run on all cores."""
        self._positions([var])
        self._add("parallel", [var])

    def vectorize(self, var):
        """The loop is one vector operation. Errors: UseError for a loop of a reduction."""
        if any(key_of(var) == key_of(a) for a in self.op.reduce_axis):
            raise UseError(f"vectorize({name_of(var)}): a reduction of {self._tensor.name} runs over it\n  needs: a loop over elements of the result")
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
        """The tensor's memory: a step along the axis goes factor * k + offset elements, for some k. Errors: UseError for no axis of it."""
        keys = [key_of(a) for a in self.op.axis]
        if key_of(axis) not in keys:
            raise UseError(f"storage_align: {name_of(axis)} is no axis of the tensor {self._tensor.name}\n  needs: one of its op.axis")
        self._add("storage_align", [], (), 0, keys.index(key_of(axis)), factor, offset)

    def set_scope(self, scope):
        """Where the tensor lies: "local", "shared", ..."""
        self._add("set_scope", [], (), 0, scope)

    def tensorize(self, var, tensor_intrin):
        """An instruction in the place of the loops from this one inwards.

        var             the loop
        tensor_intrin   what te.decl_tensor_intrin gave; where loops outside sum too, its reduce_init and reduce_update are called
        Errors: UseError for an instruction with scalars; ScheduleError, when the program is made, where its formula is another one.
        """
        if not hasattr(tensor_intrin, "reduce_update"):
            raise TypeError(f"tensorize: {tensor_intrin!r} is a {type(tensor_intrin).__name__}\n  needs: what te.decl_tensor_intrin gives")
        if tensor_intrin.scalar_params:
            raise UseError(f"tensorize: {tensor_intrin.name} reads scalars\n  needs: an instruction without scalar_params")
        self._positions([var])
        self._intrinsics.append((var, tensor_intrin))

    def rolling_buffer(self):
        """The tensor's memory holds what later iterations of the loop that it is computed at still read, and no more."""
        self._add("rolling_buffer", [], (), 0)

    def transform_layout(self, mapping_function):
        """Stores the tensor's elements at other indices, and runs over them in that order. The loops over the new indices.

        mapping_function   index -> new index: lambda i, j: [j, i // 4, te.AXIS_SEPARATOR, i % 4]
        Errors: UseError where the loops of its axes were changed before; ScheduleError, when the program is made, for a map that is not one to one.
        """
        from sator import tir

        axes = list(self.op.axis)
        index_map, _ = tir.IndexMap.from_func_with_separators(mapping_function, len(axes))
        self._positions(axes)
        made = [Axis(f"axis{i}") for i in range(len(index_map.final_indices))]
        self._add(_in_layout(mapping_function, index_map), axes, made)
        return made

    # Where the tensor is computed.

    def compute_at(self, parent, scope):
        """The tensor is computed inside of a loop of one that reads it: what that iteration needs.

        parent   the stage whose loop it is
        scope    the loop
        Errors: UseError for a loop that the stage has not; ScheduleError, when the program is made, where a reader lies outside of the loop.
        """
        if not isinstance(parent, Stage):
            raise TypeError(f"compute_at: {parent!r} is a {type(parent).__name__}\n  needs: a stage, such as s[C]")
        if parent is self:
            raise UseError(f"compute_at: {self._tensor.name} inside of itself\n  needs: the stage of a tensor that reads it")
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
        if name in _NOT_HERE:
            why, instead = _NOT_HERE[name]
            raise AttributeError(f"te's schedules have no step {name}: {why}\n  needs: {instead}")
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
                result = primitive(sch, block) if callable(primitive) else getattr(sch, primitive)(*places, *more, **options)
                for axis, loop in zip(made, result if isinstance(result, list) else [result]):
                    loops[key_of(axis)] = loop
                    made_loop = sch.get(loop)
                    bounds[axis] = ir.Range.from_min_extent(made_loop.min, made_loop.extent)
        return bounds

    def _loop(self, loops, axis):
        if key_of(axis) not in loops:
            raise UseError(f"{name_of(axis)} is no loop of the tensor {self._tensor.name}\n  needs: one of its op.axis and op.reduce_axis, "
                            "or what a step gave")
        return loops[key_of(axis)]
