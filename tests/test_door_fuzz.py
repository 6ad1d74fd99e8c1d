"""A short run of the fuzzer of what reads untrusted bytes; hours of it are `python -m tools.door_fuzz`."""

import random

from tools.door_fuzz import TARGETS, Target, changed, fuzz, try_one


def test_random_inputs_break_no_parser_and_not_the_door() -> None:
    done, found = fuzz(inputs=150, seconds=120, seed=16)
    assert done > 0 and found == []


def test_the_fuzzer_itself_sees_a_crash() -> None:
    crashes = Target("x", (b"x",), lambda text: text.decode("ascii").index("no such word"))
    assert try_one(crashes, b"x").startswith("ValueError")
    assert try_one(Target("x", (b"x",), int, (ValueError,)), b"no number") == ""


def test_every_honest_seed_is_taken() -> None:
    assert [(target.name, try_one(target, seed)) for target in TARGETS for seed in target.seeds] == [
        (target.name, "") for target in TARGETS for _ in target.seeds
    ]
    dice = random.Random(1)
    assert len({changed(dice, (b"honest text",)) for _ in range(100)}) > 50
