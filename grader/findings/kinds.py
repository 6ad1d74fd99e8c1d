"""The kinds of findings: what each is, and where it stands among the evidence. Its words are in the catalogues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from grader.findings.finding import Finding

Severity = Literal["error", "warning", "note"]
Check = Literal["memory", "race", "init", "sync", "api", "emulator", "source", "probe", "watch"]
"""What finds it: one of the four checks of sanitizers, a call of the CUDA API, the emulator about itself, the reader of
the source, an experiment or a pattern of the output, watched values."""

Standing = Literal["contradiction", "slip", "fault", "repair", "weak fault", "step", "luck", "none"]
"""What comes before what. A contradiction leaves no result that could be right, so everything else follows from it. A
slip is a mistake that the source shows by itself, such as a size that faults follow from. A fault breaks a rule of
CUDA. A repair is a change with which all samples are right. A weak fault may do no harm, or is a consequence. A step
computes another value than it should. Luck: GPUs mostly get away with it. None: this is no cause of a wrong result."""
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


_ACCESSES = """
    past_parameters misaligned cluster_block_ended cluster_block_missing cluster_outside cluster_block_may_end
    system_shared past_dynamic_shared past_shared past_local past_local_arrays past_the_end before_start outside
    use_after_free null_pointer no_allocation invalid_access tool_found trap assertion bad_function_pointer
    alloca_too_large local_overflow stack_overflow kernel_free host_use_after_free host_dereference host_crash
    registered_unmapped copy_too_long copy_outside"""
_ASYNCHRONOUS = """
    barrier_number barrier_threads reduction_in_branch object_not_initialised object_count object_arrivals object_bytes
    bulk_size box_start box_before pixels_outside pixels_stored_outside not_a_map map_mode box_misaligned
    store_and_object_apart not_a_texture texture_memory_freed surface_misaligned surface_outside wgmma_differs
    wgmma_alone wgmma_outside wgmma_system_shared swizzle_differs"""
_WAITING = """
    barrier_in_branch barrier_counts_differ mask_without_caller mask_not_reached mask_wrong_argument syncwarp_unmet
    deadlock_barrier deadlock_cluster deadlock_object deadlock_registers endless_loop endless_in_function
    loop_never_ends kernel_stopped expect_too_few object_gone wgmma_unfenced wgmma_registers wgmma_touched
    wgmma_under_way setmaxnreg"""
_UNWRITTEN = "uninitialised uninitialised_read unwritten_shared unwritten_local never_written"
_CALLS = """
    too_much_shared copy_null copy_direction not_device_memory symbol_too_small out_of_memory call_failed graph_cycle
    bad_channels not_for_surfaces bad_tensor_map bad_free"""
_NO_RESULT = """
    no_launch kernel_not_launched kernel_empty not_copied_back copied_the_wrong_way copied_in_part
    input_copied_back"""
_SLIPS = """
    bytes_without_sizeof maximum_starts_high integer_sum narrow_sum integer_division
    guard_makes_zero"""
_STEPS = """
    step_wrong not_rescaled rescaled_wrongly weight_of_other_maximum terms_missing terms_repeated terms_unseen
    carried_over start_wrong padding_added maximum_wrong operands_wrong other_input other_result
    stored_elsewhere result_scaled difference_wrong old_sum_left_out sums_mixed wrong_value_from"""
_OUTPUTS = """
    scale_wrong keys_unused rows_not_normalised mask_wrong transposed inputs_exchanged values_of_other_keys
    columns_unused other_unit_read smallest_input row_sum_not_subtracted known_mistake
    output_zero output_not_finite output_overflows precision_lost rows_scaled"""

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        # The program as a whole.
        *_kinds("api", "error", "contradiction", "launch_refused"),
        *_kinds("api", "error", "contradiction", _NO_RESULT, leads=False),
        # Rules of CUDA.
        *_kinds("memory", "error", "fault", _ACCESSES),
        *_kinds("memory", "error", "fault", _ASYNCHRONOUS),
        *_kinds("race", "error", "fault", "race copy_not_awaited copy_before_kernel"),
        *_kinds("sync", "error", "fault", _WAITING),
        *_kinds("race", "warning", "weak fault", "race_of_writes"),
        *_kinds("init", "warning", "weak fault", _UNWRITTEN),
        *_kinds("sync", "warning", "weak fault", "bulk_unfinished bulk_still_read"),
        *_kinds("api", "error", "weak fault", _CALLS),
        *_kinds("api", "error", "weak fault", "launch_not_reached", leads=False),
        *_kinds("race", "warning", "luck", "race_in_warp"),
        *_kinds("race", "warning", "none", "too_many_barriers"),
        *_kinds("race", "note", "none", "outdated_read"),
        *_kinds("sync", "note", "none", "launches_endless host_endless"),
        *_kinds("memory", "note", "none", "leak"),
        *_kinds("api", "note", "none", "emulator_lacks"),
        *_kinds("emulator", "error", "none", "emulator_failed"),
        # Mistakes that the source shows by itself.
        *_kinds("source", "error", "slip", _SLIPS, leads=False),
        *_kinds("probe", "error", "repair", "repaired"),
        # What the computation does. Their `words` name a quantity of the operator ("scores", "O") or a tensor.
        *_kinds("watch", "error", "step", "not_finite"),
        *_kinds("watch", "error", "step", _STEPS, leads=False),
        *_kinds("probe", "error", "step", _OUTPUTS, leads=False),
    )
}


def kind_of(finding: Finding) -> Kind:
    """The row of a finding's kind. One that this grader does not know, in a record of another one, is no cause."""
    return KINDS.get(finding.kind) or Kind(finding.kind, "emulator", "note", "none")
