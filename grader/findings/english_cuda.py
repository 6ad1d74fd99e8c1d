"""The catalogue in English: what breaks the rules of CUDA, as the emulator and compute-sanitizer find it."""

from __future__ import annotations

_INDEX = "Check the index against the size of the array[{beyond_first}]."
_TIMEOUT = "Check the loop's condition, and whether it waits for a thread or block that cannot run."
_SETUP = (
    "Check how the barrier is set up: by one thread, before any other uses it, and for the number of threads that "
    "arrive at it."
)
_LUCK = "On a GPU this can pass by luck."
_ACCESS = "{did} {bytes} bytes {relation}"
_SET = "[; line {set_line} sets `{set_name}`][ and line {other_set_line} sets `{other_set_name}`]"
_LOOSE = "[; {file}:{loose_line} lets `{loose_name}` be {loose_end}, one past the last: it needs {loose_sign}]" + _SET
_RACE = "Race: {here} {does} {named} while another {whom} {other_does} it at {there}"
_STILL = "Race: {here} {does} {named} while another {whom} still {other_does} it at {there}"
_COPIED = "Race: {here} {does} {named} while the asynchronous copy to it, begun at {there}, is in progress"
_ASYNC = "Race: {here} {does} {named}, which an asynchronous operation at {there} uses"

PHRASES = {
    "memory_named": "`{array}` ({size} bytes, allocated at {allocated})",
    "memory_allocation": "the {size} bytes of {by}[ at {allocated}][ (allocation {serial})]",
    "memory_argument": "the argument `{array}` ({size} bytes)",
    "memory_variable": "{by} ({size} bytes)",
    "memory_shared": "the shared variable {array} ({size} bytes)",
    "memory_dynamic": "the dynamic shared memory {array} ({size} bytes)",
    "memory_block": "shared memory",
    "relation_just_past": "just past the end of {memory}[{freed}]",
    "relation_past": "{past} bytes past the end of {memory}[{freed}]",
    "relation_before": "{before} bytes before {memory}[{freed}]",
    "relation_inside": "at offset {offset} of {memory}[{freed}]",
    "relation_whole": "of shared memory",
    "relation_null": "through a null pointer",
    "relation_null_offset": "through a null pointer plus an offset",
    "relation_nowhere": (
        "at an address in no allocation; if it is a host pointer (malloc, new, a local variable), copy the data with "
        "cudaMemcpy or allocate it with cudaMallocManaged"
    ),
    "spot": "offset {offset} of {memory}",
    "named_array": "`{array}`",
    "named_allocated": "memory allocated at {allocated}",
    "named_unknown": "memory",
    "called_once": " (called at line {lines})",
    "called": " (called at lines {lines})",
    "same_line": "the same line",
    "beyond_first": ", for the last block and the last thread too",
    "detail": "offset {offset} of {memory}[; the other side: thread {other_thread}][ of {BLOCK} {other_block}]",
}

WORDS = {
    "none": {"none": "none of which has happened yet (or it waits with the wrong parity)"},
    "last": {"call": "last CUDA call"},
    "stream": {"default": "the default", "this": "this"},
    "some": {"threads": "some threads"},
    "whom": {"blocks": "{BLOCK}", "warps": "warp", "lanes": "thread of the same warp", "copy": "thread"},
    "space": {"shared": "shared", "local": "local", "global": "global"},
    "freed": {"freed": ", which was freed before"},
    "bad_free": {
        "no_allocation": "is not the start of an allocation",
        "freed": "was freed before",
        "other_function": "was allocated by another function",
    },
    "host_does": {"use": "uses", "write": "writes to", "read": "reads"},
    "others": {
        "all": "all other threads of the block wait too",
        "apart": (
            "the threads that still run wait too, or are lanes of its warp outside the function that it waits in, "
            "which the emulator cannot run: make the function __forceinline__"
        ),
    },
    "swizzle": {
        "none": "no swizzle",
        "32": "a swizzle of 32 bytes",
        "64": "a swizzle of 64 bytes",
        "128": "a swizzle of 128 bytes",
    },
}

SENTENCES: dict[str, tuple[str, str]] = {
    # Accesses.
    "past_parameters": ("{did} {bytes} bytes past the end of the kernel's parameters", _INDEX),
    "misaligned": (
        "{did} {bytes} bytes of {space} memory at a misaligned address: it must be a multiple of {bytes}[, but is "
        "{past} bytes past one]",
        "Vector types such as float4 need addresses that are multiples of their size.",
    ),
    "cluster_block_ended": (
        "{did} shared memory of block {peer} of the cluster, which has ended: let all blocks reach a barrier of the "
        "cluster before any of them ends",
        "",
    ),
    "cluster_block_missing": ("{did} shared memory of block {peer} of the cluster, which does not exist", _INDEX),
    "cluster_outside": (
        "{did} {bytes} bytes at offset {offset} of the {size} bytes of shared memory of block {peer} of the cluster",
        _INDEX,
    ),
    "cluster_block_may_end": (
        "used shared memory of block {peer} of the cluster, which may have ended: nothing makes that block wait for "
        "this access",
        "Let all blocks reach a barrier of the cluster (cluster.sync()) after the last access to each other's shared "
        "memory.",
    ),
    "system_shared": (
        "{did} {bytes} bytes at address {offset} of shared memory; the kernel's variables begin at {begin}, after the "
        "system's",
        "Take the address of a shared variable (__cvta_generic_to_shared) instead of a number.",
    ),
    "past_dynamic_shared": (
        f"{_ACCESS}[, launched at {{launch}}][, of the size computed at {{computed}}]",
        "Ask for more in the launch (the third parameter in <<<…>>>), or correct the index.",
    ),
    "past_shared": (
        f"{_ACCESS}; the block has {{shared}} bytes of shared memory ({{static}} static, {{dynamic}} dynamic)",
        _INDEX,
    ),
    "past_local": (
        "{did} {bytes} bytes at offset {offset} of local memory (local arrays), of which the thread has {size} bytes",
        _INDEX,
    ),
    "past_local_arrays": (
        "{did} {bytes} bytes past the end of the thread's local arrays, at offset {offset}; they take {size} bytes",
        "Check the index against the size of the array.",
    ),
    "past_the_end": (f"{_ACCESS}{_LOOSE}", _INDEX),
    "before_start": (f"{_ACCESS}{_SET}", _INDEX),
    "outside": (_ACCESS, _INDEX),
    "use_after_free": (_ACCESS, "Free the memory after its last use."),
    "null_pointer": (_ACCESS, "Check that the allocation succeeded, and that the pointer is set before the launch."),
    "no_allocation": (_ACCESS, _INDEX),
    "invalid_access": ("{did} {bytes} bytes of {space} memory outside every allocation[, {near}]", _INDEX),
    # Uninitialised memory.
    "uninitialised": (
        "read {spot}, which nothing has written since its allocation",
        "Write the memory before it is read: cudaMemset, cudaMemcpy, or a kernel that stores every element.",
    ),
    "uninitialised.copied": (
        "read {spot}, which nothing has written since its allocation: the copy at {other} does not fill it",
        "Compare the copy's size, in bytes, and its place with the allocation's.",
    ),
    "uninitialised_read": (
        "read {bytes} bytes of memory that nothing has written",
        "Write the memory before it is read, in a kernel or with cudaMemset.",
    ),
    "unwritten_shared": (
        "read {spot}, which no thread of the block has written",
        "Store a value in every element before it is read.",
    ),
    "unwritten_shared.gap": (
        "read {spot}, which no thread of the block has written; line {stores}[ (in the loops of lines "
        "{loops})] stores the words before and after it",
        "Do both lines compute the index with the same row length (stride, padding)?",
    ),
    "unwritten_shared.gap_of_two": (
        "read {spot}, which no thread of the block has written; line {stores}[ (in the loops of lines "
        "{loops})] stores the word before it, line {stores_after} the one after it",
        "Do both lines compute the index with the same row length (stride, padding)?",
    ),
    "unwritten_shared.returned": (
        "read {spot}, which no thread of the block has written; {returned} of the block's {threads} threads had "
        "returned before[, at line {return_line}]",
        "If they should have stored a part of it, let no thread return before the last load and the last {BARRIER}.",
    ),
    "unwritten_shared.part": (
        "read {spot}, which no thread of the block has written; {without} of its {words} words have no value",
        "Let the block's threads store all of it before it is read, for example in a loop whose step is the number of "
        "threads.",
    ),
    "unwritten_shared.part_after": (
        "read {spot}, which no thread of the block has written; {without} of its {words} words have no value; line "
        "{stores}[ (in the loops of lines {loops})] stores the word before this one",
        "Let the block's threads store all of it before it is read, for example in a loop whose step is the number of "
        "threads.",
    ),
    "unwritten_local": (
        "read {bytes} bytes of a local array or variable, which this thread has not written",
        "Give every element a value first, by an initialiser or in a loop.",
    ),
    "never_written": (
        "[{function}: ]{count} of the {bytes} bytes copied to the host were never written, beginning at {spot}[; "
        "the grid is set at {grid}]",
        "Check that the kernel writes every element, for the last block too, and that the copy is as long as the "
        "result.",
    ),
    "never_written.argument": (
        "{count} of the {bytes} bytes of `{array}` were never written, beginning at byte {offset}[; line {at} writes "
        "the others][, if the condition of line {guard_line} allows][; `{narrow}` (line {narrow_line}) is of type "
        "{type}, which ends at {most}][; the grid is set at {grid}]",
        "Check that the kernel writes every element, for the last block too, and that it runs for all of them.",
    ),
    "never_written.nothing": (
        "`{array}` was never written",
        "Check that solve gives it to a kernel that writes to it, or copies the result to it.",
    ),
    # Races.
    "race": (f"{_RACE}", f"Put {{BARRIER}} between the two accesses. {_LUCK}"),
    "race.barrier": (f"{_STILL}; put {{barrier}} between them[, after line {{after}}]", _LUCK),
    "race.after_copy": (
        f"{_STILL}; wait for the copy (__pipeline_wait_prior(0)), then put {{barrier}} between them[, after line "
        "{after}]",
        _LUCK,
    ),
    "race.branch": (
        f"{_STILL}. The barrier at {{file}}:{{present}} does not separate them: it is in the `if` of line {{branch}}, "
        "which some threads do not enter. Move it behind the `if`",
        _LUCK,
    ),
    "race.loop_end": (
        f"{_RACE} in another pass of the loop[. The barrier at line {{present}} separates them within one pass only]: "
        "put {barrier} at the end of the loop, before {file}:{closes} closes it",
        _LUCK,
    ),
    "race.update": (
        _RACE,
        f"If several threads add to this place, use an atomic ({{ATOMIC}}). Otherwise put {{barrier}} between the read "
        f"and the write. {_LUCK}",
    ),
    "race.check": (
        f"{_STILL}: several threads may see that the place is free before one of them takes it",
        f"Let one atomic operation look and take, and ask what it returns: atomicCAS, atomicMin, atomicExch. {_LUCK}",
    ),
    "race.at_once": (_RACE, f"Let one thread write, give each its own place, or use an atomic. {_LUCK}"),
    "race.blocks": (
        f"{_STILL}, and no {{BLOCK}} waits for another{_LOOSE}",
        "Let each {BLOCK} write to different places (does the address lack the offset of its batch or rows?), use "
        f"atomics ({{ATOMIC}}), or launch two kernels. {_LUCK}",
    ),
    "race.cluster": (
        f"{_STILL}, and nothing makes one block of the cluster wait for the other",
        "Let both blocks reach a barrier of the cluster (cluster.sync()) between the two accesses, or arrive and wait "
        f"at a barrier object. {_LUCK}",
    ),
    "race.launches": (
        "Race: {here} {does} {named} while the kernel that overlaps with this one {other_does} it at {there}",
        "Call cudaGridDependencySynchronize() (griddepcontrol.wait) in every thread of the later kernel before it "
        "touches what the earlier one uses.",
    ),
    "race.copy": (
        _COPIED,
        "An asynchronous copy to this memory has not been waited for: call __pipeline_wait_prior(0) "
        f"(cp.async.wait_group 0), then __syncthreads(), before this access. {_LUCK}",
    ),
    "race.bulk_copy": (_COPIED, f"Wait at the copy's barrier object before this access. {_LUCK}"),
    "race.wrong_parity": (
        f"{_COPIED}: the wait at line {{wait}} passed at once, because the phase with that parity was already complete",
        "Wait with the parity of the copy's phase: 0 for a barrier object's first phase, then 1, 0, … in turn.",
    ),
    "race.copy_object": (
        f"{_STILL}: this warp has not waited at the copy's barrier object since then",
        "Let every warp that uses the tile wait at the copy's barrier object first.",
    ),
    "race.copy_overwrites": (
        f"{_STILL}: the copy does not wait for it",
        "Let all threads that use the tile reach a barrier, or arrive at a barrier object that the copying thread "
        "waits at, before the copy overwrites the tile.",
    ),
    "race.operand": (
        _ASYNC,
        "Wait for the product's group (wgmma.wait_group) in all its warps, then let them reach a barrier, before its "
        "operand is overwritten.",
    ),
    "race.bulk_read": (
        _ASYNC,
        "Let the thread that copies wait until its group has been read (cp.async.bulk.wait_group.read 0), then reach a "
        "barrier, before the memory is overwritten.",
    ),
    "race.object_unfenced": (
        "Race: {here} uses {named} asynchronously, which {there} initialised without a proxy fence after it",
        "Let the thread that initialises barrier objects execute fence.mbarrier_init (or fence.proxy.async) "
        "afterwards, and then a barrier.",
    ),
    "race.unfenced": (
        "Race: {here} reads {named} asynchronously, which {there} wrote without a proxy fence after it",
        "Let every thread that stores execute fence.proxy.async.shared::cta after its stores, before the barrier.",
    ),
    "outdated_read": (
        "Race: {here} {does} {named} while another thread {other_does} it at {there}: a plain read of a word that "
        "others change atomically",
        "It does no harm if an outdated value only costs time. Else read it by an atomic or volatile access.",
    ),
    "too_many_barriers": (
        "this launch has too many barriers: races after the first {limit} are not detected",
        "Check for races on a smaller problem.",
    ),
    "copy_not_awaited": (
        "host code {host_does} {memory} while the {function} at {there} may still be {how} them",
        "Wait for the copy's stream first (cudaStreamSynchronize).",
    ),
    "copy_before_kernel": (
        "the copy {how} {memory} in {stream} stream does not wait for kernel {launched}, launched at {there} in "
        "another stream",
        "Copy in the kernel's stream, or wait for that stream first.",
    ),
    # Barriers and waiting.
    "barrier_number": ("barrier number {id}: there are 16, 0 to 15", _SETUP),
    "barrier_threads": ("a barrier for {threads} threads: the number must be a multiple of 32", _SETUP),
    "barrier_counts_differ": (
        "barrier {id} is used for {threads} threads here and for {elsewhere} elsewhere",
        "Give all calls of one barrier the same number of threads.",
    ),
    "barrier_in_branch": (
        "{BARRIER} in a branch that only[ lanes {lanes} of the warp][ {some}] take",
        "Move {BARRIER} out of the branch, so that all threads of the block reach the same call.",
    ),
    "reduction_in_branch": (
        "a barrier with a reduction, such as __syncthreads_count, that only some threads of a warp reach",
        "Move it out of the branch, so that all threads of the block reach the same call.",
    ),
    "mask_without_caller": (
        "lanes {lanes} call a warp function whose mask {mask} does not name them",
        "Name every calling lane in the mask.",
    ),
    "mask_not_reached": (
        "the mask {mask} of a warp function names lanes {lanes}, which do not reach this call (they took another "
        "branch)",
        "Let all lanes of the mask reach the same call, or compute the mask before the branch with __ballot_sync.",
    ),
    "mask_wrong_argument": (
        "a barrier or warp function with a wrong mask or argument",
        "Every thread that calls a warp function must be in its mask.",
    ),
    "syncwarp_unmet": (
        "lanes {lanes} wait in __syncwarp() for lanes {missing} of its mask {mask}, which do not call it",
        "Move __syncwarp() to where all lanes of the mask reach it, or name only those that do.",
    ),
    "deadlock_barrier": (
        "deadlock: {waiting} of {warps} warps wait at barrier {id} for {expected} threads, of which {arrived} have "
        "arrived; no other warp of the block can run",
        "Every thread of the block must reach the barrier the same number of times.",
    ),
    "deadlock_cluster": (
        "deadlock: this thread waits at the barrier of its cluster, which {arrived} threads have reached, and all "
        "others wait too",
        _TIMEOUT,
    ),
    "deadlock_object": (
        "deadlock: this thread waits at a barrier object (cuda::barrier, cuda::pipeline, mbarrier) for {pending} more "
        "of {expected} arrivals[ and {lacking} more bytes than its copies bring (expect_tx at line {expect})][ and its "
        "copies bring {excess} bytes more than expect_tx at line {expect} counted][, {none}], and {others}",
        _TIMEOUT,
    ),
    "deadlock_registers": (
        "deadlock: setmaxnreg.inc waits for {count} registers per thread, and the other warps leave {left}: the block "
        "was launched with {registers} per thread for {warps} warps, and together its warps ask for more",
        _TIMEOUT,
    ),
    "endless_loop": ("still in the loop at this line after {seconds} s, which may never end", _TIMEOUT),
    "endless_in_function": (
        "still running after {seconds} s; this thread waits in the loop at this line, in a function, while lanes "
        "{lanes} of its warp are not in the same call; if it waits for these lanes, the emulator cannot run them, nor "
        "can a GPU before compute capability 7.0: take a lock with one lane of a warp, or make the function "
        "__forceinline__",
        _TIMEOUT,
    ),
    "loop_never_ends.unchanged": (
        "the loop at this line never ends: no value that its condition depends on changes any more",
        _TIMEOUT,
    ),
    "loop_never_ends.waits": (
        "the loop at this line never ends: it waits for a value in memory, and all other threads of the kernel have "
        "ended or wait too",
        _TIMEOUT,
    ),
    "launches_endless": (
        "kernel {launched} was running, launch number {launch} of the program",
        "Check the loop that launches kernels: it may never end, or each launch may do too little work.",
    ),
    "host_endless": (
        "host code was still running[; its {last} was] here",
        "Check the condition of the loop around this line.",
    ),
    "kernel_stopped": (
        "the program was stopped while kernel {launched} was still running",
        "Check its loops, and whether it waits for threads that cannot run.",
    ),
    "tool_found": ("{what}", ""),
    "trap": ("the kernel executed a trap instruction (__trap)", ""),
    "assertion": ("assertion `{condition}` failed at {there}", ""),
    "bad_function_pointer.host": (
        "a call through a pointer that is not a device function: was its address taken on the host?",
        "",
    ),
    "bad_function_pointer.prototype": (
        "a call through a pointer to a function with other parameters or another result",
        "Give the pointer the function's own type.",
    ),
    "bad_function_pointer.null": ("a call through a pointer that is null", ""),
    # Memory of the thread, the heap and the host.
    "alloca_too_large": (
        "alloca of {bytes} bytes: local memory (stack) has {size} bytes per thread, of which {used} are in use",
        "",
    ),
    "local_overflow": ("local memory (stack) overflow: {size} bytes per thread", ""),
    "stack_overflow": (
        "stack overflow inside kernel {launched}",
        "Look for recursion that does not end, or for very large local arrays.",
    ),
    "kernel_free": ("free of an address that malloc in a kernel did not return", _INDEX),
    "leak": (
        "leak: {memory} were never freed",
        "Free what you allocate: a program that runs longer would run out of memory.",
    ),
    "bad_free": (
        "[{function}: ]the address {bad_free}[, allocated by {by}]",
        "Free each allocation once, with the function that matches its allocation.",
    ),
    "host_use_after_free": (
        "host code {host_does} memory that was freed[ at {there}]",
        "Free the memory after its last use.",
    ),
    "host_dereference": (
        "host code dereferenced a device pointer, {relation}",
        "Copy the data with cudaMemcpy first, or allocate it with cudaMallocManaged.",
    ),
    "host_crash": (
        "host code accessed address {address}, where no memory is mapped (segmentation fault)",
        "This is in host code: check what malloc and fopen returned, that the program got its arguments, and indices "
        "into host arrays.",
    ),
    "registered_unmapped": (
        "kernel {launched} uses host memory that was registered and has been unmapped",
        "Call cudaHostUnregister before you free the memory, and launch no kernel that uses it after that.",
    ),
    "emulator_failed": (
        "the emulator itself failed with {signal} in kernel {launched}: this is a bug in the grader, not in this "
        "program",
        "Report this to the course staff; the program can still run on a GPU (--engine cuda).",
    ),
}
