"""Stage.tensorize: a part of a stage's loops becomes a call of an instruction that te.decl_tensor_intrin made, on the tensor program."""
import itertools

from sator import _core, te_stage

_BEGINS = "te.instruction_begins_its_sum"  # on a block of whose sum the instruction also sets the first value

_numbers = itertools.count(1)


def without_begins(mod):
    """The module, in which instructions that do all of a sum are not preceded by its first value."""
    from sator import tir

    def changed(block):
        if _BEGINS not in block.annotations:
            return None
        fields = {f: getattr(block, f) for f in tir.Block._fields}
        fields.update(init=None, annotations={k: v for k, v in block.annotations.items() if k != _BEGINS})
        return _core.make(tir.Block, list(fields.values()))

    funcs = {name: f.with_body(tir.stmt_functor.ir_transform(f.body, None, changed, ["tir.Block"])) for name, f in mod.functions.items()}
    return _core.module(funcs, mod.attrs, mod.global_infos)


def take(sch, block, stage, loops, axis, intrin):
    """Puts the instruction in the place of the loops of a stage from `axis` inwards.

    loops    {key of an axis: loop}, when no later step changes them
    Errors: ValueError for loops of two axes in one; ScheduleError where the instruction's formula is another one.
    """
    leaves, roots = stage._loops(), _roots(stage)
    at = [te_stage.key_of(a) for a in leaves].index(te_stage.key_of(axis))
    outer, inner = ([te_stage.key_of(a) for a in part] for part in (leaves[:at], leaves[at:]))
    own = [te_stage.key_of(a) for a in stage._axes]
    summed = {te_stage.key_of(a) for a in stage.op.reduce_axis}
    inside, sums_inside = [], 0
    for root in own:
        parts = [loops[leaf] for leaf in inner if roots[leaf] == {root}]
        if parts:
            inside.append(parts)
            sums_inside += root in summed
    if any(len(roots[leaf]) > 1 for leaf in inner):
        raise ValueError(f"tensorize({te_stage.name_of(axis)}): a loop of {stage._tensor.name} inside of it is fused of several axes\n"
                         "  needs: loops of one axis each\n  hint:  tensorize before fuse, or fuse the loops outside")
    if len(inside) > 1 or len(inside[0]) > 1:
        sch.reorder(*(loop for parts in inside for loop in parts))
    inside = [parts[0] if len(parts) == 1 else sch.fuse(*parts) for parts in inside]
    outer_sums = [loops[leaf] for leaf in outer if roots[leaf] & summed]
    if not outer_sums:
        whole = sch.blockize(inside[0])
        if sch.get(whole).init is not None:
            sch.annotate(whole, _BEGINS, 1)
        sch.tensorize(whole, _registered(intrin, "body"))
        return
    if intrin.reduce_update is None or intrin.reduce_init is None:
        raise ValueError(f"tensorize({te_stage.name_of(axis)}): {stage._tensor.name} is summed by a loop outside, and {intrin.name} has no statements to begin and go on\n"
                         "  needs: a fcompute of decl_tensor_intrin that gives (body, reduce_init, reduce_update), or all loops of the sum inside")
    first = sch.decompose_reduction(block, outer_sums[0])
    sch.tensorize(inside[0], _registered(intrin, "reduce_update"))
    sch.tensorize(sch.get_loops(first)[sums_inside - len(inside)], _registered(intrin, "reduce_init"))


def _roots(stage):
    """{key of a loop: the keys of the axes that it comes from}."""
    out = {te_stage.key_of(a): {te_stage.key_of(a)} for a in stage._axes}
    for _, of, made, _, _ in stage._steps:
        for axis in made:
            out[te_stage.key_of(axis)] = set().union(*(out[te_stage.key_of(a)] for a in of))
    return out


def _registered(intrin, part):
    """The name under which tir's schedules find one of an instruction's statements."""
    from sator import tir

    if part not in intrin.registered:
        intrin.registered[part] = f"te.{intrin.name}.{part}.{next(_numbers)}"
        tir.TensorIntrin.register(intrin.registered[part], _formula(intrin, part), _call(intrin, part))
    return intrin.registered[part]


def _formula(intrin, part):
    """What the instruction computes, as a tensor program: its steps, or the first value of its sum alone."""
    from sator import te, tir

    results = [intrin.op.output(i) for i in range(intrin.op.num_outputs)]
    program = te.create_prim_func([*intrin.inputs, *results])
    if not intrin.op.reduce_axis:
        return program

    def changed(node):
        if not isinstance(node, tir.Block) or not node.iter_vars:
            return None
        fields = {f: getattr(node, f) for f in tir.Block._fields}
        fields.update(reads=[*node.writes, *node.reads], init=None)
        if part == "reduce_init":
            fields.update(reads=[], body=node.init, iter_vars=[v for v in node.iter_vars if v.iter_type == tir.IterVar.DataPar])
        return _core.make(tir.Block, list(fields.values()))

    def spatial(node):
        if isinstance(node, tir.BlockRealize) and node.block.iter_vars:
            kept = [value for v, value in zip(node.block.iter_vars, node.iter_values) if v.iter_type == tir.IterVar.DataPar]
            return tir.BlockRealize(kept, node.predicate, changed(node.block))
        if isinstance(node, tir.For) and any(node.loop_var.same_as(v) for v in summed):
            return node.body
        return None

    if part != "reduce_init":
        return program.with_body(tir.stmt_functor.ir_transform(program.body, None, changed, ["tir.Block"]))
    summed = []
    tir.stmt_functor.post_order_visit(program.body, lambda n: summed.extend(
        value for v, value in zip(n.block.iter_vars, n.iter_values) if v.iter_type == tir.IterVar.CommReduce) if isinstance(n, tir.BlockRealize) else None)
    params = program.params[len(intrin.inputs):]
    body = tir.stmt_functor.ir_transform(program.body, None, spatial, ["tir.BlockRealize", "tir.For"])
    return tir.PrimFunc(params, body, None, {p: program.buffer_map[p] for p in params})


def _call(intrin, part):
    """The statement of the instruction, on buffers of its own."""
    from sator import ir, tir

    given, results = intrin.buffers[:len(intrin.inputs)], intrin.buffers[len(intrin.inputs):]
    buffers = results if part == "reduce_init" else intrin.buffers

    def whole(buffer):
        return tir.BufferRegion(buffer, [ir.Range.from_min_extent(tir.const(0, e.dtype), e) for e in buffer.shape])

    reads = [] if part == "reduce_init" else [whole(b) for b in ([*results, *given] if part == "reduce_update" else given)]
    block = tir.Block([], reads, [whole(b) for b in results], "root", getattr(intrin, part))
    params = [tir.Var(f"var_{b.name}", "handle") for b in buffers]
    return tir.PrimFunc(params, tir.BlockRealize([], True, block), None, dict(zip(params, buffers)))
