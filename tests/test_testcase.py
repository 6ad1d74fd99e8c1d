import stat
from pathlib import Path

import numpy as np
import pytest

from grader.base.errors import UsageError
from grader.course.distributions import Uniform
from grader.course.seeds import draw_unit, hidden_seed, load_secret, public_seed
from grader.course.testcase import load_suite

HW4 = Path(__file__).parent.parent / "testcases" / "hw4.yaml"
SECRET = "0123456789abcdef" * 4
U3 = Uniform(low=-3, high=3)

SMALL = """\
assignment: toy
operator: attention_forward
groups:
  - name: official
    graded: true
    hidden: true
    distribution: {kind: uniform, low: -3, high: 3}
    cases:
      a1: [2, 128, 32]
"""


@pytest.fixture(autouse=True)
def no_secret_from_outside(monkeypatch):
    monkeypatch.delenv("GRADER_SECRET", raising=False)
    monkeypatch.delenv("GRADER_SECRET_FILE", raising=False)


def names(selection):
    return [case.name for case in selection]


def suite_from(tmp_path, text):
    path = tmp_path / "toy.yaml"
    path.write_text(text)
    return load_suite(path)


# ---- the official suite ---------------------------------------------------------------------------------------


def test_the_official_suite_has_thirty_graded_cases_and_eight_public_samples():
    suite = load_suite(HW4)
    assert names(suite.graded) == [f"t{i:02}" for i in range(1, 31)]
    assert names(suite.select("public")) == [f"s{i:02}" for i in range(1, 9)]
    assert suite.cases["t12"].shape == (9600, 128, 64)
    assert suite.cases["t30"].shape == (2, 32768, 64)
    assert all(case.hidden for case in suite.graded)


def test_public_is_the_samples_of_all_groups() -> None:
    bfs = load_suite(HW4.with_name("bfs.yaml"))
    samples = [name for group in ("public", "public-grid", "public-skewed") for name in bfs.groups[group]]
    assert names(bfs.select("public")) == samples


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("t23", ["t23"]),
        ("t05..t07", ["t05", "t06", "t07"]),
        ("t23,t01,t01..t02", ["t01", "t02", "t23"]),
        (" s08 , t30", ["t30", "s08"]),
        ("all", [f"t{i:02}" for i in range(1, 31)]),
    ],
)
def test_words_select_cases_in_the_order_of_the_suite(words, expected):
    assert names(load_suite(HW4).select(words)) == expected


def test_an_unknown_testcase_is_named_with_close_ones_and_what_exists():
    with pytest.raises(UsageError) as caught:
        load_suite(HW4).select("t01,t31")
    message = str(caught.value)
    assert "hw4 has no testcase 't31'" in message
    assert "t01..t30 (official), s01..s08 (public) and all" in message
    assert "Did you mean" in message


def test_a_backward_range_and_an_empty_selection_are_refused():
    with pytest.raises(UsageError, match=r"runs backwards: write t05\.\.t10"):
        load_suite(HW4).select("t10..t05")
    with pytest.raises(UsageError, match="No testcase is named"):
        load_suite(HW4).select(" , ")


# ---- the YAML -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("graded: true", "graded: true\n    colour: red", "groups[0].colour: this key is unknown"),
        ("[2, 128, 32]", "[2, 100, 32]", "cases.a1: the shape [2, 100, 32] is not legal: N must be a power of two"),
        ("[2, 128, 32]", "[2, 128]", "3 numbers (B, N, d) expected, found 2"),
        ("[2, 128, 32]", "[2, x, 32]", "cases.a1[1]: expected a number, found 'x'."),
        ("[2, 128, 32]", "[2, {a: 1}, 32]", "cases.a1[1]: expected a number, found keys and values (a)."),
        ("operator: attention_forward", "operator: attention", "operator: There is no operator 'attention'"),
        ("low: -3", "low: 5", "low must be less than high"),
        (
            "    distribution: {kind: uniform, low: -3, high: 3}\n",
            "",
            "groups[0] (official) has no distribution, and the file has none",
        ),
        ("hidden: true", "hidden: true\n    seed: x", "remove its seed"),
        ("a1:", "all:", "'all' cannot be a name"),
        ("a1:", "../x:", "'../x' cannot be a name"),
    ],
)
def test_a_mistake_in_the_yaml_is_named_by_file_key_and_value(tmp_path, old, new, says):
    with pytest.raises(UsageError) as caught:
        suite_from(tmp_path, SMALL.replace(old, new))
    assert "toy.yaml" in str(caught.value) and says in str(caught.value)


def test_what_most_suites_have_in_common_need_not_be_written(tmp_path):
    short = """\
assignment: saxpy
distribution: {kind: uniform, low: 0, high: 1}
groups:
  - {name: official, cases: {t01: [5, 2]}}
  - {name: ones, distribution: {kind: constant, value: 1}, cases: {t02: [5, 2]}}
  - {name: public, graded: false, cases: {s01: [5, 2]}}
"""
    suite = suite_from(tmp_path, short)
    found = [
        (c.name, c.operator.name, c.graded, c.hidden, c.public_seed, c.distribution.kind) for c in suite.select("every")
    ]
    assert found == [
        ("t01", "saxpy", True, True, None, "uniform"),
        ("t02", "saxpy", True, True, None, "constant"),
        ("s01", "saxpy", False, False, "saxpy-public", "uniform"),
    ]


@pytest.mark.parametrize(("text", "found"), [("", "nothing"), ("# a comment", "nothing"), ("[1, 2]", "[1, 2]")])
def test_a_yaml_without_keys_is_told_which_are_expected(tmp_path, text, found):
    with pytest.raises(
        UsageError, match=r"expected keys and values at the top \(assignment, operator, distribution, groups\)"
    ) as caught:
        suite_from(tmp_path, text)
    assert str(caught.value).endswith(f"found {found}.")


# ---- seeds ----------------------------------------------------------------------------------------------------


def test_the_values_of_a_seed_never_change():
    """The files of a class must be reproducible years later: these numbers are a promise."""
    first = draw_unit(public_seed("x"), "hw4/s01", 0, 4, U3)
    again = draw_unit(public_seed("x"), "hw4/s01", 0, 5, U3)
    assert first.dtype == np.float32
    assert [float(v).hex() for v in first] == PROMISED
    assert (again[:4] == first).all()


PROMISED = ["0x1.6186200000000p-1", "0x1.1d50200000000p-1", "0x1.2bcf740000000p+1", "0x1.73f8c00000000p-2"]


def test_values_fill_the_interval_uniformly():
    values = draw_unit(public_seed("x"), "case", 1, 200_000, U3)
    assert values.min() >= -3 and values.max() <= 3
    counts = np.histogram(values, bins=6, range=(-3, 3))[0]
    assert np.abs(counts / len(values) - 1 / 6).max() < 0.005


def test_seed_identity_and_unit_each_change_all_values():
    base = draw_unit(public_seed("x"), "case", 0, 1000, U3)
    for other in (
        draw_unit(public_seed("y"), "case", 0, 1000, U3),
        draw_unit(hidden_seed("x"), "case", 0, 1000, U3),
        draw_unit(public_seed("x").fresh("1"), "case", 0, 1000, U3),
        draw_unit(public_seed("x"), "case2", 0, 1000, U3),
        draw_unit(public_seed("x"), "case", 1, 1000, U3),
    ):
        assert (other == base).mean() < 0.01


def test_a_seed_is_not_shown_by_printing_it():
    seed = hidden_seed(SECRET)
    assert seed.key.hex() not in repr(seed) and str(seed.key) not in repr(seed)
    assert len(seed.id) == 12 and seed.id not in seed.key.hex()


# ---- the secret -----------------------------------------------------------------------------------------------


def test_the_secret_is_made_once_and_private(tmp_path):
    suite = suite_from(tmp_path, SMALL)
    path = tmp_path / "secret"
    assert not path.exists()
    secret = suite.secret
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(path.read_text().strip()) == 64
    again = load_secret(tmp_path)
    assert again.id == secret.id
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".secret")] == []


def test_the_environment_goes_before_the_named_file_before_the_default(tmp_path, monkeypatch):
    (tmp_path / "secret").write_text("d" * 64)
    default = load_secret(tmp_path).id
    other = tmp_path / "other"
    other.write_text("e" * 64 + "\n")
    monkeypatch.setenv("GRADER_SECRET_FILE", str(other))
    named = load_secret(tmp_path).id
    monkeypatch.setenv("GRADER_SECRET", SECRET)
    assert len({default, named, load_secret(tmp_path).id}) == 3


@pytest.mark.parametrize("text", ["", "  \n", "short"])
def test_an_empty_or_short_secret_is_refused(tmp_path, monkeypatch, text):
    monkeypatch.setenv("GRADER_SECRET", text)
    with pytest.raises(UsageError, match=r"GRADER_SECRET: the secret must have at least 32 characters, found"):
        load_secret(tmp_path)
    monkeypatch.delenv("GRADER_SECRET")
    (tmp_path / "secret").write_text(text)
    with pytest.raises(UsageError, match="secret must have at least 32 characters"):
        load_secret(tmp_path)


def test_a_named_secret_file_that_is_missing_is_not_made(tmp_path, monkeypatch):
    monkeypatch.setenv("GRADER_SECRET_FILE", str(tmp_path / "gone"))
    with pytest.raises(UsageError, match="gone: the secret of the hidden testcases cannot be read"):
        load_secret(tmp_path)
    assert not (tmp_path / "gone").exists()


def test_public_cases_need_no_secret(tmp_path):
    text = SMALL.replace("hidden: true", "hidden: false\n    seed: open")
    suite = suite_from(tmp_path, text)
    assert suite.seed(suite.cases["a1"]).kind == "public"
    assert not (tmp_path / "secret").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["toy.yaml"]
