"""The catalogue of findings in English: (what happened, what to do) for each kind. See sentences.py for the form."""

from __future__ import annotations

from grader.findings import english_calls, english_cuda
from grader.findings.catalogue import Catalogue

_PHRASES = {
    "where": "[{place}][: kernel {kernel}][, thread {thread} of {BLOCK} {block}]",
    "then": ": ",
    "continues": " ",
    "stop": ".",
    "space": " ",
    "and": " and ",
    "comma": ", ",
    "look": "Look at {quoted}.",
    "passes": "It passes, but: {cause}",
    "seen": " (Seen on {test} with checks.)",
}

_WORDS = {
    "did": {"read": "read", "write": "wrote", "update": "updated", "copy": "copied"},
    "does": {"read": "reads", "write": "writes", "update": "updates", "copy": "copies (cp.async) into"},
    "other_does": {"read": "reads", "write": "writes", "update": "updates", "copy": "copies (cp.async) into"},
    "meaning": {
        "no_scale": "the scale is missing",
        "scale_twice": "the scale is applied twice",
        "inverse": "it is divided by the scale instead of multiplied",
        "base_two": "2 is the base, not e: multiply by log2(e)",
        "negative": "its sign is reversed",
        "as_integer": "the bits of the scale, a float, were taken for an integer",
        "unused": "every key has the same weight; is the scale 0 because of an integer division?",
    },
}

_LEFT_OUT = "[Kernel {left_out} (line {left_line}) is never launched. ]"

_SENTENCES: dict[str, tuple[str, str]] = {
    "no_launch": (
        "The program launches no kernel",
        "Launch the kernel between the copy to the device and the copy back.",
    ),
    "kernel_not_launched": ("Kernel {launched} is never launched, so nothing is computed: launch it", ""),
    "kernel_empty": ("Kernel {launched} is empty, so nothing is computed: write its code", ""),
    "launch_not_reached": (
        "No kernel ran: the program ended without reaching its launch[, in the loop of line {loop_line}][, which line "
        "{leave_line} leaves before][ (line {end_line} sets `{end}`)]",
        "",
    ),
    "not_copied_back": (
        "No result is copied back to the host: after the last launch, copy it with "
        "cudaMemcpy(…, cudaMemcpyDeviceToHost)",
        "",
    ),
    "copied_the_wrong_way": (
        "No result is copied back to the host: after the last launch, this copies to the device "
        "(cudaMemcpyHostToDevice); it must be cudaMemcpyDeviceToHost, with the host's array first",
        "",
    ),
    "copied_in_part": (
        "Only {copied} of the result's {needed} bytes are copied back to the host, and these are right",
        "The size is in bytes: the number of values times sizeof.",
    ),
    "input_copied_back": (
        "`{copied}` is copied back to the host, but no kernel writes it, and `{written}`, which a kernel writes, is "
        "not copied back",
        "",
    ),
    "bytes_without_sizeof": (
        "{call} takes a size in bytes, but this one counts values: multiply by sizeof({element})",
        "",
    ),
    "maximum_starts_high": (
        "The maximum `{name}` starts at {start}, above every value, so every exponential is 0 and the result 0/0: "
        "start it at −INFINITY",
        "",
    ),
    "integer_sum": ("`{name}` is an integer, so it loses every fraction: declare it as float", ""),
    "narrow_sum": ("`{name}` overflows: wrong values differ by multiples of what {type} holds; declare it as int", ""),
    "integer_division": ("{left} / {right} divides integers and is {result}: write {left}.0f / {right}", ""),
    "guard_makes_zero": (
        "Threads with `{index}` ≥ `{limit}` return here, so `{index} / {limit}` is always 0: compare `{index}` with "
        "the number of threads that have work",
        "",
    ),
    "step_wrong": (
        "The values are right up to this line, which computes `{array}`: it should be {expected}[, and is {found}]",
        "",
    ),
    "scale_wrong": (
        "The exponent grows {slope} times as fast as {of}: it should be {expected} times[ ({meaning})]",
        "",
    ),
    "not_rescaled": (
        "{array} so far must be multiplied by exp(m_old − m_new) when the running maximum grows, which is missing: the "
        "old terms are relative to another maximum than the one that is added",
        "",
    ),
    "rescaled_wrongly": (
        "{array} so far is multiplied by a wrong factor when the running maximum grows[ (it is used at {other})]: it "
        "should be exp(m_old − m_new)",
        "",
    ),
    "old_sum_left_out": (
        "{array} so far was divided by the old l, and more is added without being multiplied by the old l first",
        "",
    ),
    "weight_of_other_maximum": (
        "The weight is relative to another maximum than {array} so far, to which it is added[ at {other}]: subtract "
        "the new running maximum",
        "",
    ),
    "terms_missing": (
        "{array} is summed without {count} of its {over} ({numbers}[: one in every {tile}])[, seen where it is used, "
        "at {other}]",
        "Look at where the loop begins and ends[ (line {end_line} sets `{end}`)], and at what it skips.",
    ),
    "terms_repeated": ("{array} counts {over} twice: {numbers}", ""),
    "terms_unseen": ("{array} counts {over} that the mask hides: {numbers}", ""),
    "carried_over": (
        "{right} still contains {left}: reset {array} before it is summed[; line {set_line} sets `{set_name}` once, "
        "before the loop of line {loop_line}]",
        "",
    ),
    "sums_mixed": ("Terms of {left} and of {right} are added up, which are different sums", ""),
    "start_wrong": ("{array} starts at {value} and should start at 0", ""),
    "padding_added": (
        "{array} counts exp(0 − m) = {value}: the score of a key that does not exist, or was not loaded",
        "",
    ),
    "maximum_wrong": ("{value} is subtracted from the score before exp, and not the maximum of the row's scores", ""),
    "operands_wrong": (
        "{left} is multiplied by {right}[ (loaded at {other})]: their indices do not belong together",
        "",
    ),
    "other_input": (
        "{left} is multiplied by {right}: {found} is used where {wanted} should be[ (loaded at {other})][; line "
        "{set_line} sets `{set_name}`]",
        "",
    ),
    "other_result": ("{found} is stored as {array}", ""),
    "stored_elsewhere": (
        "The value of row {row_found}, column {column_found} of unit {unit_found} is stored as row {row_expected}, "
        "column {column_expected} of unit {unit_expected} of {array}",
        "",
    ),
    "result_scaled": ("{array} is {factor} times what it should be", ""),
    "difference_wrong": ("{found} is subtracted from {array}, and should be {less} = {expected}", ""),
    "keys_unused": (
        "No row gives any weight to keys[ ({count} of {of})]: {keys}[, the same in every tile of {tile}]",
        "Look at where the loops over the keys begin and end, and at what they skip.",
    ),
    "values_of_other_keys": (
        "The weight of key {key} is multiplied by row {other} of V[: every tile of {tile} keys uses the first {tile} "
        "rows]",
        "Look at the offset with which V is loaded.",
    ),
    "row_sum_not_subtracted": (
        "{array} is not 0 where all dP of a row are equal: D, the row's sum of dO ∘ O, is not subtracted from dP",
        "",
    ),
    "columns_unused": ("Columns {columns} of Q and K have no effect on the scores: sum over all {of} columns", ""),
    "other_unit_read": (
        "The result of {label} is computed with {array} of {other_unit}[: line {set_line} sets `{set_name}`]",
        "",
    ),
    "rows_not_normalised": ("The weights of row {row} add up to {sum}, and should add up to 1", ""),
    "rows_not_normalised.undivided": (
        "The weights of row {row} add up to {sum}: they are exponentials without the division by their sum",
        "",
    ),
    "rows_not_normalised.maximum": (
        "The weights of row {row} add up to {sum}, a power of e by the row's maximum: the maximum is subtracted either "
        "from the exponentials or from those in the sum, but not from both",
        "",
    ),
    "mask_wrong.causal": (
        "Query {query} uses keys {found} only, as with a causal mask: it should use keys {expected}",
        "",
    ),
    "mask_wrong": ("Query {query} uses keys {found}, and should use keys {expected}", ""),
    "transposed": (
        "{array} is read with rows and columns exchanged[, in each tile of {tile} rows]",
        "Look at how it is stored and at how it is read.",
    ),
    "inputs_exchanged": ("It matches {first} and {second} exchanged: the input has {order}, in this order", ""),
    **{
        f"smallest_input{how}": (
            f"{said}With only {{given}}, and all else in {{zeros}} 0, {{first}} is {{got}}, expected {{expected}}",
            "[The first {before} values of {tensor} do no harm.]",
        )
        for how, said in (
            ("", ""),
            (".infinite", "Look for exp of a large number (is the maximum subtracted first?), 0/0 or inf − inf. "),
            (".missing", f"{{element}} is missing in {{right_at}}. {_LEFT_OUT}"),
            (".missing_in_part", f"{{element}} is missing in {{right_at}}. {_LEFT_OUT}"),
            (".moved", "{element} counts in {got_at}, but belongs in {right_at}. "),
            (".extra", "{element} counts in {got_at}, where it does not belong. "),
            (".scaled", "{element} counts {factor} times in {right_at}. "),
        )
    },
    "smallest_input.zeros": ("With nothing but zeros in {zeros}, {first} is {got}, expected {expected}", ""),
    "known_mistake": ("{said}", ""),
    "rows_scaled": (
        "Every wrong row of {array} is the right one times a factor of its own, {low} to {high} in the sampled rows",
        "Look at what each row is divided by.",
    ),
    "output_zero": (
        "Every wrong value is exactly 0: either this part of the output is never written (the grid, the guard, the "
        "copy back), or zeros are written there",
        "",
    ),
    "output_not_finite": (
        "{count} of the {of} wrong values are NaN or infinite: look for exp of a large number (is the row's maximum "
        "subtracted first?), 0/0 (a sum that stays 0), inf − inf, or memory that was never written",
        "",
    ),
    "output_overflows": ("Every wrong value is right but for its highest bits: a number of {bits} bits overflows", ""),
    "precision_lost": (
        "The values are close to the right ones[ (the largest error is {error})]: it looks like lost precision, such "
        "as a sum or a score kept in a smaller type, or a few terms of the sums missing or counted twice",
        "",
    ),
    "not_finite": ("{array} becomes {what} in this line[: {computed}]", ""),
    "wrong_value_from": ("This is where the wrong value of {array} comes from", ""),
    **{
        f"repaired.{how}": (f"{said}: with `{{new}}`, all {{samples}} samples that were tried are right", "")
        for how, said in (
            ("comparison", "`{old}` compares wrongly"),
            ("rounding", "`{old}` is rounded down"),
            ("axis", "`{old}` is the wrong variable"),
            ("name", "`{old}` is the wrong variable"),
            ("number", "{old} is the wrong number"),
            ("width", "`{old}` has a wrong factor"),
            ("called", "`{old}` calls the wrong function"),
            ("indices", "the indices in `{old}` are in the wrong order"),
            ("index", "`{old}` is the wrong place"),
            ("factor", "a factor is wrong at `{old}`"),
            ("base", "the base of the exponentials is wrong at `{old}`"),
            ("size", "`{old}` is too small"),
        )
    },
    "repaired.reset": ("a sum is not set back: with `{new}` here, all {samples} samples that were tried are right", ""),
}

ENGLISH = Catalogue(
    {**_SENTENCES, **english_cuda.SENTENCES, **english_calls.SENTENCES},
    {**_WORDS, **english_cuda.WORDS, **english_calls.WORDS},
    {**_PHRASES, **english_cuda.PHRASES},
)
