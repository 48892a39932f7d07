"""te.create_schedule: the loops of formulas, rearranged. The steps are taken on the tensor program when it is made."""
from sator import _core, te_tensorize
from sator.error import ScheduleError, UseError
from sator.te_stage import MARKS, Axis, Fuse, Singleton, Split, Stage, StageOp, StageTensor, copied, key_of, name_of  # noqa: F401


class Schedule:
    """The stages of formulas: `s[C]` has the loops of the tensor C."""

    def __init__(self, outputs):
        self._outputs = outputs
        self._stages = {}
        self._events = []  # what makes stages: taken first, in this order

    def __getitem__(self, tensor):
        tensor = _first_of(_tensor_of(tensor))
        return self._stages.setdefault(tensor, Stage(tensor))

    @property
    def outputs(self):
        """The operations that the schedule was made of."""
        return list(self._outputs)

    def normalize(self):
        """The schedule itself: bounds begin with 0 where a tensor is computed by itself."""
        return self

    # New stages.

    def cache_write(self, tensor, scope):
        """A tensor that takes the place of this one in its formula; this one becomes a copy of it.

        scope   where the new one lies: "local", "global", ...
        Errors: UseError where `tensor` has steps already: its formula, with its reduction, becomes the new one's.
        """
        stage = self[tensor]
        if len(_results_with(stage._tensor)) > 1:
            raise UseError(f"cache_write({stage._tensor.name}): one reduction computes {stage.op.num_outputs} tensors\n  needs: a tensor that is computed alone\n"
                           "  hint:  cache_read, for what reads it")
        if stage._steps or stage._place:
            raise UseError(f"cache_write({stage._tensor.name}) after other steps of it\n  needs: the tensor as it was made\n"
                            "  hint:  cache_write first, then steps on both")
        tensor, old = stage._tensor, stage.op
        made = StageTensor(f"{tensor.name}.{scope}", tensor.shape, tensor.dtype, copied(old.axis), old.reduce_axis)
        stage._op = StageOp(tensor, old.axis, [])

        def take(sch, blocks):
            blocks[made] = blocks[tensor]
            blocks[tensor] = sch.cache_write(blocks[made], 0, scope)

        self._events.append(take)
        return made

    def cache_read(self, tensor, scope, readers):
        """A copy of a tensor, which these readers read in its place.

        scope     where the copy lies: "local", "shared", ...
        readers   tensors or operations that read it
        Errors: ScheduleError, when the program is made, where one of them does not read it.
        """
        tensor = _tensor_of(tensor)
        readers = [_first_of(_tensor_of(r)) for r in (readers if isinstance(readers, (list, tuple)) else [readers])]
        if not readers:
            raise UseError(f"cache_read({tensor.name}) for no reader\n  needs: at least one")
        made = StageTensor(f"{tensor.name}.{scope}", tensor.shape, tensor.dtype, [Axis(f"ax{i}") for i in range(len(tensor.shape))])

        def take(sch, blocks):
            named = [blocks[r] for r in readers]
            first, results = _first_of(tensor), _results_with(tensor)
            buffer = sch.get(blocks[first]).writes[results.index(tensor)].buffer if first in blocks else self._given[tensor]
            reads = [r.buffer.same_as(buffer) for r in sch.get(named[0]).reads]
            if True not in reads:
                raise UseError(f"cache_read: {readers[0].name} does not read {tensor.name}\n  needs: readers of the tensor")
            blocks[made] = sch.cache_read(named[0], reads.index(True), scope, named)

        self._events.append(take)
        return made

    def rfactor(self, tensor, axis, factor_axis=0):
        """A tensor of the partial results of a reduction, one for each iteration of a loop of it; the old tensor reduces these.

        Of a reduction with several results it gives as many tensors, which one statement computes.

        axis          the loop: a reduce axis, or what a split of one gave
        factor_axis   where the new tensor has the dimension of the loop
        Errors: UseError for a loop that no reduction runs over.
        """
        stage = self[tensor]
        stage._positions([axis])
        tensor, old, steps = stage._tensor, stage.op, Stage(stage._tensor, stage.op)
        steps._steps = stage._steps
        if any(step[0] in MARKS for step in stage._steps):
            raise UseError(f"rfactor({tensor.name}) after marks of its loops\n  needs: splits, fusions and orders alone before it\n"
                            "  hint:  parallel, vectorize and unroll afterwards")
        leaves, spatial = stage._loops(), {key_of(a) for a in old.axis}
        if not spatial <= {key_of(a) for a in leaves}:
            raise UseError(f"rfactor({tensor.name}) after splits of its own axes\n  needs: splits of the reduction alone before it")
        if key_of(axis) in spatial:
            raise UseError(f"rfactor: {name_of(axis)} is an axis of the tensor {tensor.name}\n  needs: a loop of its reduction")
        rest = [a for a in leaves if key_of(a) not in spatial and key_of(a) != key_of(axis)]
        own, lane, partial = copied(old.axis), Axis(name_of(axis)), copied(rest)
        all_axes = list(own)
        all_axes.insert(factor_axis if factor_axis >= 0 else len(own) + 1 + factor_axis, lane)
        shape = list(tensor.shape)
        shape.insert(all_axes.index(lane), stage._extent(axis))
        all_made = [StageTensor(f"{t.name}.rf", shape, t.dtype, all_axes, partial) for t in _results_with(tensor)]
        made = all_made[0]
        for other in all_made[1:]:
            other.first = made
        stage._op, stage._steps = StageOp(tensor, old.axis, [Axis(name_of(axis))]), []
        of_leaf = dict(zip(map(key_of, [*old.axis, *rest, axis]), [*own, *partial, lane]))

        def take(sch, blocks):
            loops = steps._begin(sch, blocks[tensor])
            steps._apply(sch, blocks[tensor], loops, False)
            # Where the loops do not divide the reduction, all parts are set before any is added to.
            blocks[made] = sch.rfactor(loops[key_of(axis)], factor_axis, True)
            self._own_init.append(made)
            named = {loop: of_leaf[key_of(a)] for a, loop in zip(leaves, sch.get_loops(blocks[made]))}
            of_variable = {sch.get(loop).loop_var: (loop, a) for loop, a in named.items()}
            order = [of_variable[v] for v in _realize(sch, blocks[made]).iter_values]
            sch.reorder(*(loop for loop, _ in order))
            self[made]._block_axes = [a for _, a in order]

        self._events.append(take)
        return made if len(all_made) == 1 else all_made

    # The tensor program.

    def _module(self, args):
        """The module of the tensor program with these arguments, its steps taken."""
        sch, _ = self._scheduled(args)
        mod = te_tensorize.without_begins(sch.mod) if any(stage._intrinsics for stage in self._stages.values()) else sch.mod
        return _with_parameters(mod, args, self._moved) if self._moved else mod

    def _placed_together(self):
        """The stages; a formula of several results is in one place with all of them."""
        out = dict(self._stages)
        for tensor, stage in self._stages.items():
            if stage._place and isinstance(tensor, _core.Tensor):
                for other in (tensor.op.output(i) for i in range(tensor.op.num_outputs)):
                    if other not in out and _first_of(other) == other:
                        out[other] = Stage(other)
                        out[other]._steps, out[other]._place = stage._steps, stage._place
        return out

    def _scheduled(self, args):
        """The schedule of the tensor program, its steps taken, and the bounds of each axis: {axis: Range}."""
        from sator import tir

        # A parameter that is computed inside of a loop of another tensor is scheduled as what lies between.
        args, self._moved = list(args), {}
        moved = {a for a in args if isinstance(a, _core.Tensor) and a in self._stages and isinstance(self._stages[a]._place, tuple)}
        inlined = {a for a in args if isinstance(a, _core.Tensor) and a in self._stages and self._stages[a]._place == "inline" and a.op not in self._outputs}
        kept = [a for a in args if not isinstance(a, _core.Tensor) or a not in moved and a not in inlined]
        program = _core.te.create_prim_func(kept)
        sch = _core.Schedule(program)
        buffers = program.buffer_map
        self._given = {a: buffers[p] for a, p in zip(kept, program.params) if p in buffers}
        blocks, self._own_init = _blocks_of(sch, _computed(self._outputs)), []
        for take in self._events:
            take(sch, blocks)
        stages = {t: s for t, s in self._placed_together().items() if t in self._stages or t in blocks and sch.get_consumers(blocks[t])}
        for tensor, stage in stages.items():
            if tensor not in blocks and (stage._steps or stage._place):
                sch.get_block(tensor.name)  # which says what there is
            if stage._place == "inline":
                sch.compute_inline(blocks.pop(tensor))
        bounds, loops, names = {}, {}, {}
        for tensor in _readers_first(sch, blocks):
            stage, block = stages.get(tensor) or Stage(tensor), blocks[tensor]
            if stage._place:
                parent, axis = stage._place
                if tensor not in moved and not any(primitive == "set_scope" for primitive, *_ in stage._steps):
                    _set_scope_of_threads(sch, block, parent._loop(loops.get(parent._tensor, {}), axis))
                sch.compute_at(block, parent._loop(loops.get(parent._tensor, {}), axis), True)
                if tensor in moved:
                    if missed := sch._misses_values(block):
                        raise ScheduleError(f"compute_at: {tensor.name} is a parameter, and inside of {name_of(axis)} not each of its elements is computed once: "
                                            f"{missed}\n"
                                            "  needs: a loop whose iterations compute all of a parameter, no element twice\n"
                                            f"  hint:  leave {tensor.name} where it is, or out of the arguments")
                    self._moved[tensor] = sch.get(block).writes[0].buffer
            own = loops[tensor] = stage._begin(sch, block)
            bounds.update(_bounds(sch, block, stage, own, names))
            bounds.update(stage._apply(sch, block, own, False))
            for loop, axis in ((sch.get(own[key_of(a)]).loop_var, a) for a in stage._loops() if key_of(a) in own):
                names[loop] = axis.var if loop.dtype == axis.var.dtype else axis.var.astype(loop.dtype)
        for tensor, stage in stages.items():
            if tensor in loops:
                stage._apply(sch, blocks[tensor], loops[tensor], True)
                for axis, intrin in stage._intrinsics:
                    te_tensorize.take(sch, blocks[tensor], stage, loops[tensor], axis, intrin)
        for tensor in inlined:  # a parameter that nobody writes
            self._moved[tensor] = tir.decl_buffer(tensor.shape, tensor.dtype, tensor.name)
        for tensor in self._own_init:
            _set_first(sch, blocks[tensor])
        return sch, bounds


def _with_parameters(mod, args, moved):
    """The module of one program with buffers that it allocates, `moved`, as parameters in their places among `args`."""
    from sator import tir

    ((name, func),) = mod.functions.items()
    rest = iter(func.params)
    params, buffers = [], dict(func.buffer_map)
    for arg in args:
        if isinstance(arg, _core.Tensor) and arg in moved:
            params.append(tir.Var(f"var_{moved[arg].name}", "handle"))
            buffers[params[-1]] = moved[arg]
        else:
            params.append(next(rest))
    root = func.body.block
    left = [b for b in root.alloc_buffers if not any(b.same_as(m) for m in moved.values())]
    block = _core.make(tir.Block, [left if f == "alloc_buffers" else getattr(root, f) for f in tir.Block._fields])
    body = _core.make(tir.BlockRealize, [block if f == "block" else getattr(func.body, f) for f in tir.BlockRealize._fields])
    return _core.module({name: tir.PrimFunc(params, body, None, buffers, func.attrs)}, mod.attrs, mod.global_infos)


def _set_scope_of_threads(sch, block, loop):
    """A tensor that threads compute, each its own, lies in their registers, and one of a block of threads in what these share."""
    threads = [t.thread_tag for t in (around.thread_binding for around in _around(sch, loop)) if t is not None]
    if threads and sch.get(block).writes[0].buffer.scope() == "global":
        sch.set_scope(block, 0, "local" if any(t.startswith(("threadIdx", "vthread")) for t in threads) else "shared")


def _around(sch, loop):
    """A loop, and those around it."""
    out, place = [], sch.get_sref(loop)
    while place is not None:
        if hasattr(place.stmt, "loop_var"):
            out.append(place.stmt)
        place = place.parent
    return out


def _tensor_of(tensor):
    """The tensor of an operation or of a stage; a tensor itself."""
    tensor = getattr(tensor, "_tensor", tensor)
    if not isinstance(tensor, (_core.Tensor, StageTensor)):
        raise TypeError(f"{tensor!r} is a {type(tensor).__name__}\n  needs: a tensor of te, or its operation")
    return tensor


def _results_with(tensor):
    """The tensors that one statement computes with this one: the results of its reduction, else itself."""
    op = tensor.op
    is_one = isinstance(tensor, _core.Tensor) and op.num_outputs > 1 and op.reduce_axis
    return [op.output(i) for i in range(op.num_outputs)] if is_one else [tensor]


def _first_of(tensor):
    """The tensor that stands for all that its statement computes."""
    return getattr(tensor, "first", None) or _results_with(tensor)[0]


def _computed(ops):
    """The tensors that these operations and those that they read compute, one for each statement."""
    out = []
    for op in PostDFSOrder(ops, CreateReadGraph(ops)):
        if op.axis or op.input_tensors:
            out.extend(t for t in (op.output(i) for i in range(op.num_outputs)) if _first_of(t) == t)
    return out


class _Blocks(dict):
    """{tensor: the block that computes it}."""

    def __missing__(self, tensor):
        raise UseError(f"the schedule computes no tensor {tensor.name}\n  needs: one of {', '.join(t.name for t in self) or 'none'}")


def _blocks_of(sch, tensors):
    """The blocks of tensors; results of one statement have the operation's block."""
    found = _Blocks()
    for tensor in tensors:
        for name in (tensor.name, tensor.op.name):
            try:
                found[tensor] = sch.get_block(name)
                break
            except ScheduleError:
                pass
    return found


def _readers_first(sch, blocks):
    """The tensors, each behind those that read it."""
    tensors, out, seen = {block: tensor for tensor, block in blocks.items()}, [], set()

    def visit(block):
        if block in seen:
            return
        seen.add(block)
        for reader in sch.get_consumers(block):
            visit(reader)
        if block in tensors:
            out.append(tensors[block])

    for block in tensors:
        visit(block)
    return out


def _set_first(sch, block):
    """Takes the init of a reduction out, before its first reduction loop, where the loops leave some of its terms out."""
    from sator import tir

    realize = _realize(sch, block)
    summed = [v for v, value in zip(realize.block.iter_vars, realize.iter_values) if v.iter_type == tir.IterVar.CommReduce for v in tir.analysis.undefined_vars(value)]
    if not any(v.same_as(s) for v in tir.analysis.undefined_vars(realize.predicate) for s in summed):
        return
    loop = next(loop for loop in sch.get_loops(block) if any(sch.get(loop).loop_var.same_as(v) for v in summed))
    sch.decompose_reduction(block, loop)


def _bounds(sch, block, stage, loops, names):
    """{axis: Range} of a block's axes where it stands: what it computes there. `names` has the axes of the loops around it."""
    from sator import arith, ir, tir

    axes, block_axes = stage._axes, stage._block_axes or stage._axes
    if not axes:
        return {}
    values = dict(zip(map(key_of, block_axes), _realize(sch, block).iter_values))
    own = {sch.get(loops[key_of(a)]).loop_var: tir.IntImm(sch.get(loops[key_of(a)]).loop_var.dtype, 0) for a in axes}
    analyzer, out = arith.Analyzer(), {}
    for axis in axes:
        begin = analyzer.simplify(tir.stmt_functor.substitute(tir.stmt_functor.substitute(values[key_of(axis)], own), names))
        out[axis] = ir.Range.from_min_extent(begin, sch.get(loops[key_of(axis)]).extent)
    return out


def _realize(sch, block):
    """The BlockRealize of a block: its iterators' values are expressions of the loops around."""
    from sator import tir

    here, found = sch.get(block), []
    tir.stmt_functor.post_order_visit(sch.get(sch.get_loops(block)[0]),
                                      lambda n: found.append(n) if isinstance(n, tir.BlockRealize) and n.block.same_as(here) else None)
    return found[0]


def InferBound(sch):  # noqa: N802
    """{axis: Range} of every axis of a schedule: what each loop runs over, where its tensor is computed.

    Errors: those of the schedule's steps.
    """
    args = [t for op in PostDFSOrder(sch._outputs, CreateReadGraph(sch._outputs)) if not (op.axis or op.input_tensors)
            for t in [op.output(0)]]
    return sch._scheduled([*args, *(op.output(i) for op in sch._outputs for i in range(op.num_outputs))])[1]


def _inlined(sch, is_of_kind):
    for op in PostDFSOrder(sch._outputs, CreateReadGraph(sch._outputs)):
        if op.axis and not op.reduce_axis and op not in sch._outputs and op.num_outputs == 1 and hasattr(op, "body") and is_of_kind(op):
            sch[op.output(0)].compute_inline()


def _reads(op):
    """The indices of each element that an operation reads, with the variables of its axes."""
    from sator import tir

    out = []
    tir.stmt_functor.post_order_visit(tir.Evaluate(op.body[0]), lambda n: out.append(list(n.indices)) if isinstance(n, tir.ProducerLoad) else None)
    return out, [a.var for a in op.axis]


def AutoInlineElemWise(sch):  # noqa: N802
    """Computes inline what is no output and reads others at its own element alone."""
    def elementwise(op):
        reads, own = _reads(op)
        return all(len(at) == len(own) and all(i.same_as(v) for i, v in zip(at, own)) for at in reads)

    _inlined(sch, elementwise)


def AutoInlineBroadcast(sch):  # noqa: N802
    """Computes inline what is no output and reads others by its own indices, each once and in order, some left out."""
    def broadcast(op):
        reads, own = _reads(op)
        order = [[next((n for n, v in enumerate(own) if i.same_as(v)), None) for i in at] for at in reads]
        return all(None not in at and at == sorted(set(at)) for at in order)

    _inlined(sch, broadcast)


def AutoInlineInjective(sch):  # noqa: N802
    """Computes inline what is no output and reduces nothing."""
    _inlined(sch, lambda op: True)


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
    """A schedule of the tensors that `ops` (tensor.op, or a list of them) compute; sator.build(s, [A, B, C]) builds it.

    Errors: TypeError for something else than operations.
    """
    ops = list(ops) if isinstance(ops, (list, tuple)) else [ops]
    for op in ops:
        if not hasattr(op, "input_tensors"):
            raise TypeError(f"create_schedule: {op!r} is a {type(op).__name__}\n  needs: the operation of a tensor of te\n  hint:  C.op")
    return Schedule(ops)


def __getattr__(name):
    # What TVM's module of schedules also holds.
    if name in ("Buffer", "IterVar"):
        from sator import tir

        return getattr(tir, name)
    if name == "AXIS_SEPARATOR":
        return "axis_separator"
    from sator import paths

    raise paths.missing("sator.te.schedule", name, globals())


def module_of(inp, args=None, name="main"):
    """The module of a schedule with its arguments, which gets the name, or of one tensor program, which gets it if it has none; a module itself."""
    if isinstance(inp, Schedule):
        mod = inp._module(args)
        if name == "main":
            return mod
        (func,) = mod.functions.values()
        return _core.module({name: func.with_attrs({"global_symbol": name})}, None, None)
    if not isinstance(inp, (_core.ir.IRModule, _core.BaseFunc)):
        raise TypeError(f"{inp!r} is a {type(inp).__name__}\n  needs: an IRModule, a tensor program, or a schedule of te with its arguments")
    return inp if isinstance(inp, _core.ir.IRModule) else _core.module({inp.attrs.get("global_symbol", name): inp}, None, None)
