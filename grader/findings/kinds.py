"""The kinds of findings: what each is, and where it stands among the evidence. Its words are in the catalogues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from grader.findings.finding import Finding

Severity = Literal["error", "warning", "note"]
Check = Literal["memory", "race", "init", "sync", "api", "emulator", "source", "probe", "watch", "output"]
"""What finds it: one of the four checks of sanitizers, a call of the CUDA API, the emulator about itself, the reader of
the source, an experiment, watched values, or the pattern of the output."""

Standing = Literal["contradiction", "fault", "slip", "weak fault", "step", "pattern", "luck", "none"]
"""What comes before what. A contradiction leaves no result that could be right, so everything else follows from it. A
fault breaks a rule of CUDA. A slip is a mistake that the source shows by itself. A weak fault may do no harm. A step
computes another value than it should. A pattern is seen in the output. Luck: GPUs mostly get away with it. None: this
is no cause of a wrong result."""
_ORDER = {standing: order for order, standing in enumerate(get_args(Standing))}


@dataclass(frozen=True)
class Kind:
    """A row of the catalogue. `leads`: its sentence begins with the place; others end with "Look at …"."""

    name: str
    check: Check
    severity: Severity
    standing: Standing
    leads: bool = True

    @property
    def order(self) -> int:
        return _ORDER[self.standing]

    @property
    def is_cause(self) -> bool:
        return self.standing != "none"


def _kinds(check: Check, severity: Severity, standing: Standing, names: str, leads: bool = True) -> list[Kind]:
    return [Kind(name, check, severity, standing, leads) for name in names.split()]


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        # The program as a whole.
        *_kinds("api", "error", "contradiction", "launch_refused launch_failed"),
        *_kinds(
            "api",
            "error",
            "contradiction",
            "no_launch kernel_not_launched kernel_empty launch_not_reached",
            leads=False,
        ),
        *_kinds("api", "error", "contradiction", "not_copied_back copied_the_wrong_way", leads=False),
        *_kinds("api", "error", "contradiction", "input_copied_back", leads=False),
        *_kinds("output", "error", "contradiction", "wrong_size", leads=False),
        # Rules of CUDA.
        *_kinds("memory", "error", "fault", "past_the_end"),
        *_kinds("race", "error", "fault", "race"),
        *_kinds("race", "warning", "luck", "race_in_warp"),
        *_kinds("init", "warning", "weak fault", "uninitialised never_written"),
        *_kinds("sync", "error", "fault", "endless_loop"),
        # Mistakes that the source shows by itself.
        *_kinds(
            "source", "error", "slip", "copied_before_launch bytes_without_sizeof maximum_starts_high", leads=False
        ),
        *_kinds("source", "error", "slip", "integer_sum integer_division guard_makes_zero", leads=False),
        *_kinds("source", "error", "slip", "reduction_begins_late", leads=False),
        # What the computation does. Their `words` name a quantity of the operator ("scores", "O") or a tensor.
        *_kinds("watch", "error", "step", "step_wrong", leads=False),
        *_kinds(
            "watch", "error", "step", "not_rescaled rescaled_wrongly weight_of_other_maximum terms_missing", leads=False
        ),
        *_kinds("watch", "error", "step", "terms_repeated terms_unseen carried_over start_wrong", leads=False),
        *_kinds("watch", "error", "step", "padding_added maximum_wrong operands_wrong other_input", leads=False),
        *_kinds("watch", "error", "step", "other_result stored_elsewhere result_scaled difference_wrong", leads=False),
        *_kinds("watch", "error", "step", "factors_differ old_sum_left_out sums_mixed", leads=False),
        *_kinds("probe", "error", "step", "scale_wrong keys_unused keys_repeated tile_not_rescaled", leads=False),
        *_kinds("probe", "error", "step", "rows_not_normalised mask_wrong rows_moved columns_moved", leads=False),
        *_kinds("probe", "error", "step", "transposed inputs_exchanged input_unused", leads=False),
        *_kinds("output", "error", "pattern", "output_zero output_nan output_constant output_scaled", leads=False),
    )
}


def kind_of(finding: Finding) -> Kind:
    """The row of a finding's kind. One that this grader does not know, in a record of another one, is no cause."""
    return KINDS.get(finding.kind) or Kind(finding.kind, "emulator", "note", "none")
