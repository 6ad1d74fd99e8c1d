"""The judge's metrics in Prometheus's text format (version 0.0.4). They hold no names of students."""

from __future__ import annotations

import resource
from collections.abc import Iterator

from grader.judge.guard import BUCKETS_S
from grader.judge.ledger import Ledger, Stage
from grader.judge.office import Judge


def metrics_text(judge: Judge, ledger: Ledger) -> str:
    """All metrics of the judge, one per line."""
    return "\n".join([*_queue(judge, ledger), *_lanes(judge), *_requests(judge)]) + "\n"


def _queue(judge: Judge, ledger: Ledger) -> Iterator[str]:
    yield "# TYPE judge_uploads gauge"
    for (stage, state), count in sorted(ledger.counts().items()):
        yield f'judge_uploads{{stage="{stage}",state="{state}"}} {count}'
    yield "# TYPE judge_run_seconds gauge"
    for stage in Stage:
        yield f'judge_run_seconds{{stage="{stage}"}} {ledger.typical_s(stage):.3f}'
    yield f"judge_paused {int(ledger.switch('paused'))}"
    yield f"judge_stuck {int(bool(judge.foreman.problem))}"


def _lanes(judge: Judge) -> Iterator[str]:
    lanes = [(f'{{lane="{number}",stage="{lane.stage}"}}', lane) for number, lane in enumerate(judge.foreman.lanes)]
    yield from (f"judge_lane_busy{labels} {int(lane.upload is not None)}" for labels, lane in lanes)
    yield "# TYPE judge_lane_busy_seconds_total counter"
    yield from (f"judge_lane_busy_seconds_total{labels} {lane.busy_s:.3f}" for labels, lane in lanes)
    yield "# TYPE judge_lane_finished_total counter"
    yield from (f"judge_lane_finished_total{labels} {lane.finished}" for labels, lane in lanes)


def _requests(judge: Judge) -> Iterator[str]:
    traffic = judge.traffic
    yield "# TYPE judge_requests_total counter"
    for status, count in sorted(traffic.by_status.items()):
        yield f'judge_requests_total{{status="{status}"}} {count}'
    yield "# TYPE judge_request_seconds histogram"
    for bound in BUCKETS_S:
        yield f'judge_request_seconds_bucket{{le="{bound}"}} {traffic.within[bound]}'
    total = sum(traffic.by_status.values())
    yield f'judge_request_seconds_bucket{{le="+Inf"}} {total}'
    yield f"judge_request_seconds_sum {traffic.seconds:.3f}"
    yield f"judge_request_seconds_count {total}"
    yield f"judge_streams {len(judge.hub)}"
    yield f"judge_memory_peak_bytes {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}"
