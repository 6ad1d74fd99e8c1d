"""Findings: facts with bounded sizes, their order, and their words."""

import json
import re
from collections.abc import Callable
from random import Random
from xml.etree import ElementTree

import pytest
from pydantic import TypeAdapter, ValidationError

from grader.base.verdict import Verdict
from grader.findings import KINDS, Finding, Place, claimed, detail, phrase, rank, select_language, sentence
from grader.findings.chinese import CHINESE
from grader.findings.english import ENGLISH
from grader.findings.finding import MAX_FACTS, MAX_INT, MAX_NAME, MAX_NUMBERS
from grader.report import junit, sarif
from tests.support.records import made_record, made_test

RACE_OF_LANES = Finding(
    kind="race_in_warp",
    file="hw4.cu",
    line=40,
    other=Place(file="hw4.cu", line=42),
    array="tile",
    certainty=0.6,
    words={"does": "read", "other_does": "write"},
)
RACE_OF_WARPS = RACE_OF_LANES.model_copy(
    update={"kind": "race", "certainty": 1.0, "words": {**RACE_OF_LANES.words, "between": "warps"}}
)


def names(template: str) -> set[str]:
    return set(re.findall(r"\{([a-z_]\w*)\}", template))


def test_every_kind_has_its_words_in_every_language() -> None:
    named = {key.partition(".")[0] for key in ENGLISH.sentences}
    assert set(KINDS) - named == {"race_of_writes", "race_in_warp"}  # these have the words of `race`
    assert named <= set(KINDS)
    assert set(ENGLISH.sentences) == set(CHINESE.sentences)
    assert set(ENGLISH.phrases) == set(CHINESE.phrases)
    assert {name: set(words) for name, words in ENGLISH.words.items()} == {
        name: set(words) for name, words in CHINESE.words.items()
    }


@pytest.mark.parametrize("kind", ENGLISH.sentences)
def test_both_languages_say_the_same_facts(kind: str) -> None:
    assert names("".join(ENGLISH.sentences[kind])) == names("".join(CHINESE.sentences[kind]))


def test_a_finding_survives_json() -> None:
    found = RACE_OF_WARPS.model_copy(
        update={"thread": (1, 2, 3), "values": {"bytes": 4, "slope": 8.0, "keys": (31, 63)}}
    )
    assert Finding.model_validate_json(found.model_dump_json()) == found


def test_texts_of_a_finding_are_printable_and_short() -> None:
    found = Finding(kind="race", file="\x1b[31m" + "x" * 10_000, array="a\nb", words={"why": "y" * 10_000})
    assert found.file is not None and "\x1b" not in found.file and len(found.file) <= MAX_NAME
    assert found.array == "a\\nb"
    assert len(found.model_dump_json()) < 1000


@pytest.mark.parametrize(
    "fields",
    [
        {"values": {f"n{number}": number for number in range(MAX_FACTS + 1)}},
        {"values": {"keys": tuple(range(100))}},
        {"certainty": 2.0},
        {"line": 0},
        {"kind": "Race!"},
    ],
)
def test_a_finding_out_of_bounds_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Finding.model_validate({"kind": "race", **fields})


def test_a_contradiction_comes_before_a_race_and_its_consequences() -> None:
    zero = Finding(kind="rows_not_normalised", certainty=1.0)
    not_copied = Finding(kind="not_copied_back", array="d_out", certainty=0.9)
    assert [f.kind for f in rank([[zero, RACE_OF_LANES], [not_copied]])] == [
        "not_copied_back",
        "rows_not_normalised",
        "race_in_warp",
    ]


def test_the_best_evidence_over_all_tests_comes_first() -> None:
    weak = Finding(kind="scale_wrong", certainty=0.6, file="a.cu", line=3, values={"slope": 8.0, "expected": 1.0})
    strong = Finding(kind="keys_unused", certainty=0.9, values={"keys": (31,)})
    assert claimed([[weak], [strong]]) == strong
    often = Finding(kind="keys_unused", certainty=0.6, values={"keys": (31,)})
    assert claimed([[weak, often], [often]]) == often


def test_a_repair_comes_before_its_consequences_and_a_line_before_none() -> None:
    unreached = Finding(kind="launch_not_reached", file="a.cu", line=9)
    repaired = Finding(kind="repaired", certainty=0.8, file="a.cu", line=3)
    assert claimed([[unreached], [repaired]]) == repaired
    without = Finding(kind="inputs_exchanged", certainty=0.95)
    assert claimed([[without, without.model_copy(update={"file": "a.cu", "line": 5})]]) != without


def test_the_slope_is_that_of_the_operators_scores() -> None:
    slope = {"slope": -1.0, "expected": 1.0}
    said = sentence(Finding(kind="scale_wrong", values=slope, words={"of": "X", "meaning": "negative"}))
    assert said == "The exponent grows -1 times as fast as X: it should be 1 times (its sign is reversed)."


def test_nothing_is_claimed_that_is_not_certain_enough() -> None:
    assert claimed([[Finding(kind="scale_wrong", certainty=0.3)]]) is None


def test_a_race_within_a_warp_is_left_out_where_warps_race() -> None:
    assert rank([[RACE_OF_LANES, RACE_OF_WARPS]]) == (RACE_OF_WARPS,)


def test_a_sentence_says_where_what_and_what_to_do() -> None:
    found = Finding(
        kind="past_the_end",
        file="hw4.cu",
        line=60,
        kernel="attention",
        thread=(3, 0, 0),
        block=(0, 1, 0),
        array="d_out",
        allocated=Place(file="hw4.cu", line=107),
        values={"bytes": 4, "size": 4096},
        words={"did": "write", "relation": "just_past", "of": "allocation"},
    )
    assert sentence(found).startswith(
        "hw4.cu:60: kernel attention, thread (3,0,0) of block (0,1,0) wrote 4 bytes just past the end of `d_out` "
        "(4096 bytes, allocated at hw4.cu:107). Check the index"
    )


def test_a_step_ends_with_its_line() -> None:
    def line_of(file: str, line: int) -> str:
        return "  float s = dot(q, k);  // scores" if (file, line) == ("hw4.cu", 7) else ""

    found = Finding(kind="keys_unused", file="hw4.cu", line=7, values={"keys": (31, 63), "tile": 32})
    assert sentence(found, line_of) == (
        "No row gives any weight to keys: 31 and 63, the same in every tile of 32. Look at where the loops over the "
        "keys begin and end, and at what they skip. Look at hw4.cu:7: `float s = dot(q, k);`."
    )


def test_words_for_triton_are_tritons(restored_language: Callable[[], None]) -> None:
    found = Finding(kind="past_the_end", file="a.py", line=3, kernel="f", block=(1, 0, 0), thread=(0, 0, 0))
    assert "of program (1,0,0)" in sentence(found)


def test_a_sentence_in_chinese(restored_language: Callable[[], None]) -> None:
    select_language("zh-TW")
    assert phrase("passes", cause="x") == "測試通過，但是：x"
    assert sentence(Finding(kind="no_launch")) == (
        "程式沒有啟動任何 kernel。請在複製到裝置之後、複製回主機之前啟動 kernel。"
    )


@pytest.fixture
def restored_language(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    monkeypatch.setenv("GRADER_LANG", "en")
    return lambda: None


def random_finding(random: Random, kind: str) -> Finding:
    """A finding of this kind with random facts, within the bounds of the type, whether or not they make sense."""

    def text(most: int) -> str:
        return "".join(random.choice("ab{}[]%\\\"'<&>\x1b\n漢 .:") for _ in range(random.choice((0, 1, 5, most))))

    def number() -> int | float:
        return random.choice((0, 1, -1, MAX_INT, -MAX_INT, 1e-300, 1e308, random.random(), random.getrandbits(40)))

    def value() -> int | float | tuple[int | float, ...]:
        many = random.choice((0, 1, 2, MAX_NUMBERS))
        return tuple(number() for _ in range(many)) if many else number()

    def place() -> Place | None:
        return random.choice((None, Place(file=text(9), line=random.choice((1, 10_000_000)))))

    named = [*random.sample(sorted(USED), MAX_FACTS - 1), "unheard_of"]
    split = random.randrange(len(named))
    return Finding(
        kind=kind,
        certainty=random.random(),
        file=random.choice((None, "a.cu", "a.py", text(MAX_NAME))),
        line=random.choice((None, 1, 10_000_000)),
        kernel=random.choice((None, text(MAX_NAME), "void f<int, g<(int)2>>(float*)")),
        block=random.choice((None, (0, 0, 0), (MAX_INT, 0, 1))),
        thread=random.choice((None, (0, 0, 0), (MAX_INT, 0, 1))),
        array=random.choice((None, text(MAX_NAME))),
        allocated=place(),
        other=place(),
        values={name: value() for name in named[:split]},
        words={name: random.choice((text(9), *WORDS)) for name in named[split:]},
    )


WORDS = sorted({word for words in ENGLISH.words.values() for word in words})
USED = {name for said in ENGLISH.sentences.values() for name in names("".join(said))}
USED = {name for name in USED | set(ENGLISH.words) if name.islower()}


@pytest.mark.parametrize("language", ["en", "zh-TW"])
def test_whatever_the_type_admits_is_said(language: str, restored_language: Callable[[], None]) -> None:
    select_language(language)
    random = Random(7)
    for _ in range(8):
        found = [random_finding(random, kind) for kind in (*KINDS, "of_a_later_version")]
        for each in found:
            assert sentence(each) and isinstance(detail(each), str)
        record = made_record(tests=[made_test("t01", Verdict.WRONG_ANSWER, findings=random.sample(found, 20))])
        assert json.loads(sarif.render([record]))["runs"] and ElementTree.fromstring(junit.render([record])) is not None


def test_a_list_of_facts_has_a_number_and_facts_are_numbers() -> None:
    with pytest.raises(ValidationError):
        Finding(kind="race", values={"keys": ()})
    odd = Finding(kind="race", values={"factor": float("inf"), "sum": float("nan"), "bytes": 4})
    assert odd.values == {"bytes": 4}


def test_a_finding_with_a_list_of_numbers_comes_out_of_the_room() -> None:
    finding = Finding(kind="terms_missing", values={"numbers": (1, 2), "count": 2})
    assert TypeAdapter(Finding).validate_json(finding.model_dump_json(), strict=True) == finding
