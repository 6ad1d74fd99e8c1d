"""The cycles that one scheduler of an SM needs for its warps to execute a sequence of machine instructions.

An SM has four schedulers. Each issues at most one instruction a cycle, from a warp whose next instruction may issue:
the stall count of the one before has passed, and the scoreboards that it waits for are free (see sass.py). Arithmetic
pipes belong to a scheduler. Shared memory, L1 and shuffles are one queue for the whole SM, so with four schedulers that
do the same each gets a quarter of it. The simulation runs the warps of one scheduler and takes the other three to be
equal.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from grader.estimates.sass import NO_SCOREBOARD


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction with its costs in cycles. `pipe` is busy for `busy`; a result is there `latency` after the pipe
    took it. Queued steps wait in the SM's queue, not in the warp. `barrier`: waits for all warps of its block."""

    pipe: int
    busy: float
    latency: float
    stall: int
    sets_write: int
    sets_read: int
    waits: int
    queued: bool = False
    barrier: bool = False


_QUEUE_CYCLES = 96.0
"""A warp waits to issue when the queue in front of it is longer than this: about 24 requests of a wavefront."""
_OPERANDS_READ = 12.0
_MAX_ISSUES = 60_000


def cycles(steps: Sequence[Step], warps: int, group: int, repeats: int) -> float:
    """The cycles until `warps` warps have executed `steps` `repeats` times. Every `group` warps meet at barriers."""
    count = len(steps)
    if not count or not warps:
        return 0.0
    pipes: dict[int, float] = {}
    boards = [[0.0] * 6 for _ in range(warps)]
    place = [0] * warps
    at_barrier: dict[int, list[tuple[int, float]]] = {}
    ready = [(float(w % 2), w) for w in range(warps)]
    heapq.heapify(ready)
    now = last = 0.0
    total = count * repeats
    issued = 0
    limit = _MAX_ISSUES
    while ready:
        when, warp = heapq.heappop(ready)
        step = steps[place[warp] % count]
        start = when
        if step.waits:
            board = boards[warp]
            mask = step.waits
            for bit in range(6):
                if mask >> bit & 1 and board[bit] > start:
                    start = board[bit]
        free = pipes.get(step.pipe, 0.0)
        if step.queued:
            if free - start > _QUEUE_CYCLES:
                start = free - _QUEUE_CYCLES
        elif free > start:
            start = free
        start = max(start, now)
        if start > when and ready and ready[0][0] < start:
            heapq.heappush(ready, (start, warp))
            continue
        now = start + 1.0
        begin = max(start, free)
        pipes[step.pipe] = begin + step.busy
        done = begin + step.busy + step.latency
        if step.sets_write != NO_SCOREBOARD:
            boards[warp][step.sets_write] = max(boards[warp][step.sets_write], done)
        if step.sets_read != NO_SCOREBOARD:
            boards[warp][step.sets_read] = max(boards[warp][step.sets_read], begin + step.busy + _OPERANDS_READ)
        last = max(last, start + max(step.stall, 1))
        place[warp] += 1
        issued += 1
        if place[warp] == total or issued > limit:
            last = max(last, max(boards[warp]))
            if issued > limit:
                return last * total * warps / issued
            continue
        after = start + max(step.stall, 1)
        if step.barrier:
            waiting = at_barrier.setdefault(warp // group, [])
            waiting.append((warp, after))
            members = min(group, warps - warp // group * group)
            if len(waiting) == members:
                go = max(t for _, t in waiting) + step.latency
                for other, _ in waiting:
                    heapq.heappush(ready, (go, other))
                waiting.clear()
            continue
        heapq.heappush(ready, (after, warp))
    return last
