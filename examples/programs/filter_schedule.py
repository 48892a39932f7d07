# Blocks of 32 points in time run in parallel; in each the taps stand outside of the channels, which are one vector.
def apply_trace(sch):
    block = sch.get_block(name="Y", func_name="smooth")
    i, j, k = sch.get_loops(block)
    outer, inner = sch.split(i, factors=[None, 32])
    vectors, lanes = sch.split(j, factors=[None, 16])
    sch.reorder(outer, inner, vectors, k, lanes)
    sch.parallel(outer)
    sch.vectorize(lanes)
    sch.decompose_reduction(block, k)
