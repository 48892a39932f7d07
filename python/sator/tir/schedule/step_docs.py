"""What the arguments of schedule steps are, for help(): by their names, and by step where a name has another meaning there."""

ARGUMENTS = {
    "loop": "what get_loops or another step gave",
    "loops": "loops, as get_loops or other steps gave them",
    "block": "what get_block gave, or the block's name",
    "block_or_loop": "what get_block, get_loops or another step gave",
    "scope_block": "the block around, such as get_block(\"root\"), or its name",
    "factors": "integers or expressions, the extents of the new loops from the outermost on; None, at most one, is what remains: "
               "ceil(extent / product of the others)",
    "preserve_unit_iters": "whether iterators of one iteration stay in the blocks; False simplifies them away",
    "preserve_unit_loops": "whether loops of one iteration are kept around the moved block",
    "disable_predication": "True leaves out the guard T.where, which a product of factors above the extent needs",
    "fits_dtype": "True: the caller knows that the iterations fit into the loops' dtype, so that it stays",
    "thread_axis": "\"threadIdx.x\", \"blockIdx.x\", \"vthread.x\", ..., or what te.thread_axis gave",
    "ann_key": "a text",
    "ann_val": "a number, a text, or a list of them",
    "read_buffer_index": "which of the buffers that the block reads: its position, its name, or the tir.Buffer",
    "write_buffer_index": "which of the buffers that the block writes: its position, its name, or the tir.Buffer",
    "buffer_index": "which of the buffers that the block writes: its position, its name, or the tir.Buffer",
    "buffer": "its name, (\"read\", 0), (\"write\", 0), or the tir.Buffer",
    "storage_scope": "the memory: \"global\", \"shared\", \"local\", ...",
    "consumer_blocks": "the blocks that use the copy; all that come later where it is left out",
    "index_map": "iterators -> indices: `lambda i, j: (j, i)`, or a tir.IndexMap",
    "index": "the position among the statements of the loop's body; -1 the last one that is possible, -2 the first",
    "factor_axis": "the position of the new dimension in the buffer of partial results; negative ones count from the end",
    "init_follows": "True: decompose_reduction follows, so that the guard of a tail may depend on the summed loops",
    "new_order": "positions of the iterators, each once: [1, 0, 2]",
    "padding": "integers, one per iterator of the block: each extent is rounded up to a multiple",
    "axis": "the dimension of the buffer whose stride is aligned",
    "factor": "stride = k * factor + offset, in elements",
    "offset": "see factor",
    "axis_separators": "positions between indices, ascending",
    "dtype": "such as \"float16\"",
    "buf_type": "\"read\" or \"write\"",
    "buf_index_array": "positions of the regions",
    "tensor_intrin": "the name of an intrinsic, as tir.TensorIntrin.register had it",
    "target": "a loop, or a list of blocks",
    "cse_thresh": "how often an instance of the block has to compute an expression, 0 for any",
    "name": "the block's name",
    "func_name": "the function of the module, where it is not the one that the schedule works on",
    "n": "how many factors",
    "max_innermost_factor": "the largest last factor",
    "partition_pos": "from which factor on their product is a multiple of innerpart_factor",
    "innerpart_factor": "see partition_pos",
    "candidates": "integers",
    "probs": "the probability of each candidate",
    "decision": "what is chosen, where it is known, as in a replayed trace; None draws it by the schedule's seed",
}

# (step, argument): what it is there.
SPECIAL = {
    ("unsafe_subtract_early", "consumer"): "the block that subtracts a constant times a sum, or its name",
    ("unsafe_set_dtype", "buffer_index"): "the position among the buffers that the block writes",
    ("loop_partition", "factors"): "integers, the extents of the loops one after the other; None, at most one, is what remains",
    ("reorder", "loops"): "loops of one nest in their new order, the outermost first; loops that are not named stay in their places",
    ("fuse", "loops"): "loops directly inside each other, the outermost first",
    ("merge", "loops"): "one loop of each nest, with the same extents and depth",
    ("vectorize", "loop"): "its extent becomes the number of lanes",
    ("rfactor", "loop"): "a loop of a reduction",
    ("decompose_reduction", "loop"): "the loop that the init comes in front of",
    ("decompose_padding", "loop"): "the loop that the padding value comes in front of",
    ("compute_at", "block"): "the producer, as get_block gave it, or its name",
    ("compute_at", "loop"): "a loop around all its consumers",
    ("reverse_compute_at", "block"): "the consumer, as get_block gave it, or its name",
    ("reverse_compute_at", "loop"): "a loop around all its producers",
    ("sample_compute_location", "decision"): "the position of the loop, -1 for the root, -2 for inlined; None draws it by the schedule's seed",
}

GIVES = {"split": "the new loops, the outermost first", "loop_partition": "the new loops, the first one first", "fuse": "the new loop", "merge": "the new loop",
         "cache_read": "the block that copies", "cache_write": "the block that copies", "reindex": "the block that copies",
         "decompose_reduction": "the block of the init", "decompose_padding": "the block of the padding", "rfactor": "the block of the partial results",
         "blockize": "the new block", "add_unit_loop": "the new loop", "sample_perfect_tile": "the factors, the outermost first",
         "sample_partitioned_tile": "the factors, the outermost first", "sample_categorical": "the number"}

ERRORS = {
    "split": "the loop is bound or annotated; two factors are None; the product is below the extent; a factor is not positive",
    "loop_partition": "the loop is bound or annotated; its extent is symbolic; the parts are longer than it",
    "fuse": "the loops are not directly nested; the range of one depends on another",
    "reorder": "the loops are not in one nest; bindings are not affine below the outermost one",
    "parallel": "the loop carries a reduction; its iterations overwrite each other's results",
    "vectorize": "the loop carries a reduction; its iterations overwrite each other's results",
    "bind": "the loop carries a reduction and the axis is no threadIdx; its iterations overwrite each other's results",
    "compute_at": "the block writes an output; a consumer is elsewhere",
    "reverse_compute_at": "the block would lose instances, or read what is not there yet",
    "compute_inline": "the block writes an output; it is not of the form B[v0, v1] = f",
    "reverse_compute_inline": "the block's iterators do not follow from the element that it reads",
    "cache_read": "several blocks write the buffer",
    "cache_write": "several blocks write the buffer",
    "decompose_reduction": "the loop is inside a reduction loop; instances run twice below it",
    "rfactor": "how values are combined is not known; the loop is spatial",
    "set_scope": "the buffer is a parameter",
    "storage_align": "the buffer is a parameter; there is no such axis",
    "blockize": "bindings are not outer * n + inner",
    "tensorize": "loops, blocks or operations differ from the intrinsic's description",
    "get_block": "no block or several have the name",
}


def describe(cls):
    """Adds the arguments to the help of each step of `cls`; what its first lines say stays."""
    import re

    for name, step in vars(cls).items():
        words = getattr(step, "__doc__", None) or ""
        found = re.search(rf"^{name}\((?!self)(.*)\)$", words, re.M)
        if found is None or "\n    " in words:
            continue
        names = [a.partition("=")[0].strip("* ") for a in re.split(r", (?![^(\[]*[)\]])", found[1]) if a]
        rows = [f"    {a:<20} {SPECIAL.get((name, a)) or ARGUMENTS[a]}" for a in names]
        rows += [f"    {'→':<20} {GIVES[name]}"] if name in GIVES else []
        rows += [f"Errors: ScheduleError, {ERRORS[name]}."] if name in ERRORS else []
        if rows:
            step.__doc__ = words + "\n\n" + "\n".join(rows)
