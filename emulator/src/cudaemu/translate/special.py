"""C text of special registers, such as %tid.x and %laneid."""

from __future__ import annotations


def special_scalar(name: str) -> str | None:
    """C text of a special register that is the same in all lanes, or of %tid in lane 0; None for other registers."""
    head, _, axis = name.partition(".")
    index = "xyz".find(axis) if axis else 0
    simple = {
        "%ntid": f"w->ntid[{index}]", "%ctaid": f"w->ctaid[{index}]", "%nctaid": f"w->nctaid[{index}]",
        "%tid": f"w->tid0[{index}]", "%warpid": "w->index",
        "%nwarpid": "((w->ntid[0] * w->ntid[1] * w->ntid[2] + 31) / 32)", "%smid": "w->smid", "%nsmid": "rt_multiprocessors()",
        "%gridid": "w->grid_id", "%dynamic_smem_size": "w->dynamic_shared", "%total_smem_size": "rt_shared_bytes(w)",
        "%aggr_smem_size": "w->shared_size", "%envreg0": "grader_change_of_host()",
        "%envreg1": "w->environment[0]", "%envreg2": "w->environment[1]",
        "%reserved_smem_offset_begin": "w->reserved", "%reserved_smem_offset_0": "w->reserved",
        "%cluster_ctaid": f"w->in_cluster[{index}]", "%cluster_nctaid": f"w->cluster[{index}]",
        "%clusterid": f"(w->ctaid[{index}] / w->cluster[{index}])",
        "%nclusterid": f"(w->nctaid[{index}] / w->cluster[{index}])", "%cluster_ctarank": "w->cluster_rank",
        "%cluster_nctarank": "(w->cluster[0] * w->cluster[1] * w->cluster[2])",
        "%reserved_smem_offset_1": "(w->reserved + RESERVED_BYTES / 2)",
        "%reserved_smem_offset_end": "(w->reserved + RESERVED_BYTES)", "%reserved_smem_offset_cap": "RESERVED_BYTES",
    }  # fmt: skip
    return simple.get(head)


def special_vector(name: str, i: int, *, linear: bool, lanes: int) -> str | None:
    """C text of piece `i`, of `lanes` lanes, of a special register that differs between lanes; None for others."""
    head, _, axis = name.partition(".")
    if name == "%laneid":
        return f"IOTA({i})"
    if head == "%tid":
        if linear and axis == "x":
            return f"(BU(w->tid0[0]) + IOTA({i}))"
        return f"(*(const VU *)&w->tid[{'xyz'.index(axis)}][{i * lanes}])"
    masks = {
        "%lanemask_eq": "(BU(1) << IOTA({i}))", "%lanemask_lt": "((BU(1) << IOTA({i})) - BU(1))",
        "%lanemask_le": "((BU(2) << IOTA({i})) - BU(1))", "%lanemask_gt": "~((BU(2) << IOTA({i})) - BU(1))",
        "%lanemask_ge": "~((BU(1) << IOTA({i})) - BU(1))",
    }  # fmt: skip
    if head in masks:
        return masks[head].replace("{i}", str(i))
    clocks = {
        "%clock": "BU((u32)rt_clock())", "%clock_hi": "BU((u32)(rt_clock() >> 32))", "%clock64": "BQ(rt_clock())",
        "%globaltimer": "BQ(rt_nanoseconds())", "%globaltimer_lo": "BU((u32)rt_nanoseconds())",
        "%globaltimer_hi": "BU((u32)(rt_nanoseconds() >> 32))",
    }  # fmt: skip
    return clocks.get(head)
