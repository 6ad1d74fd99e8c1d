"""The catalogue in English: calls of the CUDA API that fail, and the asynchronous hardware of Hopper."""

from __future__ import annotations

_REFUSED = "the launch of kernel {launched} was refused: "
_DYNAMIC = (
    f"{_REFUSED}it asks for {{bytes}} bytes of dynamic shared memory[ beside {{static}} of static], but at most "
    "{limit} are allowed"
)
_ASK_FOR_LESS = "Ask for less by the third argument in <<<…>>>"
_SETUP = (
    "Check how the barrier is set up: by one thread, before any other uses it, and for the number of threads that "
    "arrive at it."
)

WORDS = {
    "direction": {
        "to_host": "the destination is host memory, but the direction says device",
        "from_host": "the source is host memory, but the direction says device",
        "from_device": "the source is device memory, but the direction says host",
        "to_device": "the destination is device memory, but the direction says host",
    },
    "touched": {
        "read_sums": "read the sums of",
        "wrote_sums": "wrote sums of",
        "wrote_a": "wrote registers of A of",
    },
}

SENTENCES: dict[str, tuple[str, str]] = {
    # Launches.
    "launch_refused": (f"{_REFUSED}{{why}}", ""),
    "launch_refused.zero": (
        f"{_REFUSED}{{zero}} is 0 (grid {{grid}}, block {{shape}}); if a division rounds down to 0, round up: "
        "(n + size - 1) / size",
        "",
    ),
    "launch_refused.arguments": (f"{_REFUSED}its arguments are null pointers, and the kernel has parameters", ""),
    "launch_refused.grid": (f"{_REFUSED}grid {{grid}} exceeds the limits (2147483647,65535,65535)", ""),
    "launch_refused.block": (
        f"{_REFUSED}block {{shape}} has {{threads}} threads; the limits are 1024 in all and (1024,1024,64)",
        "",
    ),
    "launch_refused.shared": (
        _DYNAMIC,
        f"{_ASK_FOR_LESS}, or allow more before the launch: cudaFuncSetAttribute({{launched}}, "
        "cudaFuncAttributeMaxDynamicSharedMemorySize, {bytes}).",
    ),
    "launch_refused.shared_allowed": (_DYNAMIC, f"{_ASK_FOR_LESS}, or let cudaFuncSetAttribute allow as much."),
    "launch_refused.shared_never": (
        f"{_DYNAMIC}: a block on an sm_{{architecture}} has no more",
        f"{_ASK_FOR_LESS}: make the tiles smaller.",
    ),
    "launch_refused.bounds": (
        f"{_REFUSED}{{threads}} threads per block, but __launch_bounds__ promises at most {{limit}}",
        "",
    ),
    "launch_refused.registers": (
        f"{_REFUSED}{{registers}} registers per thread times {{threads}} threads exceed the {{limit}} registers of a "
        "multiprocessor",
        "",
    ),
    "launch_refused.no_clusters": (f"{_REFUSED}this GPU has no clusters of blocks: use --arch sm_90a", ""),
    "launch_refused.cluster_differs": (f"{_REFUSED}the cluster differs from the kernel's __cluster_dims__", ""),
    "launch_refused.cluster_multiple": (f"{_REFUSED}the grid is not a multiple of the cluster", ""),
    "launch_refused.cluster_size": (f"{_REFUSED}a cluster has at most 16 blocks, 8 if it is to run on every GPU", ""),
    "launch_refused.cooperative": (f"{_REFUSED}the grid has more blocks than the GPU can hold at once", ""),
    "too_much_shared": (
        "[{function}: ]{bytes} bytes of dynamic and {static} bytes of static shared memory; a block on an "
        "sm_{architecture} can have {limit} in all",
        "",
    ),
    # Copies and allocations.
    "copy_too_long": (
        "[{function}: ]{bytes} bytes that begin at {spot} are {excess} too many",
        "Compare the number of bytes in the call with the size of the allocation (bytes, not elements).",
    ),
    "copy_outside": (
        "[{function}: ]the pointer is {relation}",
        "Use the pointer that the allocation returned, before it is freed.",
    ),
    "copy_null": ("[{function}: ]the {side} is a null pointer", ""),
    "copy_direction": ("[{function}: ]{direction}", ""),
    "not_device_memory": ("[{function}: ]the pointer is host memory (or null), not device memory", ""),
    "symbol_too_small": (
        "[{function}: ]{bytes} bytes at offset {offset} do not fit into the symbol's {size} bytes",
        "",
    ),
    "out_of_memory": ("[{function}: ]the request for {bytes} bytes was refused: the GPU has less memory left", ""),
    "call_failed": ("{function} failed with {name} (error {code})[: {why}]", ""),
    "graph_cycle": ("[{function}: ]the graph's nodes wait for each other in a cycle", ""),
    "bad_channels": ("[{function}: ]the channels must be one, two or four, of 8, 16 or 32 bits each", ""),
    "not_for_surfaces": ("[{function}: ]the array was allocated without cudaArraySurfaceLoadStore", ""),
    "bad_tensor_map": ("cuTensorMapEncode: {why}", "The CUDA driver API's page on tensor maps lists the limits."),
    "emulator_lacks": (
        "[{function}: ]the emulator lacks {what}; the call returns cudaErrorNotSupported",
        "To do: {instead}.",
    ),
    # Textures and surfaces.
    "not_a_texture.other": ("an access through what is not a {object} object but an object of the other kind", ""),
    "not_a_texture.none": (
        "an access through what is not a {object} object: was it created, and not yet destroyed?",
        "",
    ),
    "texture_memory_freed": ("the memory of this {object} object was freed", ""),
    "surface_misaligned": ("a surface access of {bytes} bytes at x = {at} bytes: x must be a multiple of its size", ""),
    "surface_outside": (
        "a surface access at x = {x} bytes, y = {y}, z = {z}, outside the surface of {width} x {height} x {depth} "
        "elements of {element} bytes (x counts bytes)",
        "",
    ),
    # Barrier objects, bulk copies, tensor maps.
    "object_not_initialised": (
        "this barrier object (cuda::barrier, mbarrier) was not initialised: init(&barrier, count) by one thread and "
        "__syncthreads() must come before its first use",
        _SETUP,
    ),
    "object_count": (
        "a barrier object for {count} arrivals: the number must be from 1 to {limit}",
        _SETUP,
    ),
    "object_arrivals": (
        "{count} arrivals at a barrier object that waits for only {pending} more of its {expected}: more threads "
        "arrive than the count in init(), or a thread arrives again before the phase is complete",
        _SETUP,
    ),
    "object_bytes": ("a phase of a barrier object would wait for {bytes} bytes: the limit is {limit}", _SETUP),
    "expect_too_few": (
        "the phase of the barrier object was complete before the bulk copy of {bytes} bytes issued here arrived: "
        "expect_tx at line {expect} counts too few bytes",
        "Let expect_tx count the bytes of all copies of a phase, including both halves of a multicast.",
    ),
    "object_gone": (
        "the bulk copy issued here completes at a barrier object that is not initialised, or is no longer",
        "Wait for the copy before the barrier object's memory is used for something else.",
    ),
    "bulk_unfinished": (
        "the block ended while the bulk copy of {bytes} bytes issued here was under way",
        "Wait at the barrier object of every bulk copy before the block ends.",
    ),
    "bulk_still_read": (
        "the block ended while the bulk copy of {bytes} bytes issued here might still read its shared memory",
        "Let the thread that stores execute cp.async.bulk.wait_group.read 0 before it ends.",
    ),
    "bulk_size": ("a bulk copy of {bytes} bytes: the number must be a multiple of 16", ""),
    "box_start": (
        "a box that begins {bytes} bytes from the start of its tensor's rows: the first coordinate times the element's "
        "{element} bytes must be a multiple of 16",
        "",
    ),
    "box_before": (
        "a store of a box that begins before its tensor, at coordinate {at} of dimension {dimension}: only loads may "
        "begin there",
        "",
    ),
    "pixels_outside": (
        "a column of pixels that begins at coordinate {at} of dimension {dimension}, outside its box from {low} to "
        "{high}",
        "",
    ),
    "pixels_stored_outside": (
        "a store of pixels whose box, from {low} to {high} in dimension {dimension}, reaches outside the tensor: only "
        "loads may do so",
        "",
    ),
    "not_a_map": (
        "the map of a bulk copy of {dimensions} dimensions is not a tensor map of {dimensions} dimensions: pass the "
        "CUtensorMap as a const __grid_constant__ parameter",
        "",
    ),
    "map_mode": ("a bulk copy in {mode} mode with a tensor map from {made}", ""),
    "box_misaligned": (
        "a tensor's box in shared memory must begin at a multiple of 128 bytes, but begins {past} bytes past one: "
        "declare it __align__(128)",
        "",
    ),
    "store_and_object_apart": (
        "an asynchronous store to block {peer} of the cluster completes at a barrier object of block {object}: map "
        "both addresses to the same block",
        "",
    ),
    # wgmma.
    "wgmma_unfenced": (
        "a wgmma without a wgmma.fence before it: it may read its registers before they are written",
        "Execute wgmma.fence.sync.aligned before the first wgmma, and again whenever registers of sums or of A have "
        "been written.",
    ),
    "wgmma_differs": (
        "the four warps of a warpgroup execute different wgmma instructions, or the same instruction with different "
        "descriptors",
        "",
    ),
    "wgmma_registers": (
        "a wgmma uses registers that were written at line {line_of}, without a wgmma.fence in between",
        "Execute wgmma.fence.sync.aligned between the last write of the registers and the wgmma.",
    ),
    "wgmma_touched": (
        "{touched} the wgmma at line {line_of}, which has not been waited for",
        "Commit the product (wgmma.commit_group) and wait for its group (wgmma.wait_group) first.",
    ),
    "wgmma_alone": (
        "a wgmma that warp {warp} of the block does not execute: all four warps of a warpgroup, {first} to {last}, "
        "must execute the same instructions",
        "",
    ),
    "wgmma_outside": (
        "wgmma read address {offset} of shared memory, but the block's ends at {size}: check the descriptor's start "
        "and its byte offsets",
        "",
    ),
    "wgmma_system_shared": (
        "wgmma read address {offset} of shared memory; the kernel's variables begin at {begin}, after the system's",
        "Make the descriptor's start from the address of the tile (__cvta_generic_to_shared).",
    ),
    "wgmma_under_way": (
        "wgmma read offset {offset} of shared memory while the bulk copy to it by thread {thread_of} at line {line_of} "
        "was under way",
        "Wait at the copy's barrier object before the wgmma, and for the wgmma's group before the next copy overwrites "
        "its tile.",
    ),
    "swizzle_differs": (
        "the wgmma's descriptor says {says}, but the tensor copy at line {line_of} wrote this tile with {wrote}",
        "Give the tensor map and the descriptor (bits 62 and 63: 1 for 128 bytes, 2 for 64, 3 for 32, 0 for none) the "
        "same swizzle.",
    ),
    "setmaxnreg": (
        "setmaxnreg.{how} to {count} registers in a warp that has {now}",
        "Let setmaxnreg.dec name at most the registers that the warp has, and setmaxnreg.inc at least those.",
    ),
}
