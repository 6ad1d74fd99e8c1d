"""Every field of a record, of a plan and of an answer from the room has a bounded size, by its type."""

import ast
import importlib
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, TypeAdapter

from grader.base.sizes import MAX_NAME, Names, Sentences
from grader.base.verdict import Verdict
from grader.plans.plan import Plan
from grader.records.disclosure import fitting
from grader.records.record import MAX_RECORD_BYTES, Record
from grader.sandbox.room import answer_type
from tests.support.records import made_record, made_test
from tests.test_packages import is_confined, trees

_CHARACTER = 6
"""The most bytes of a character in JSON: \\u001b."""
_NUMBER = 25


def answers() -> Iterator[tuple[str, TypeAdapter[Any]]]:
    """What each function answers that runs in the room."""
    for module, tree in trees().items():
        for function in tree.body:
            if isinstance(function, ast.FunctionDef) and is_confined(function):
                made = getattr(importlib.import_module(module), function.name)
                yield f"{module}.{function.name}", answer_type(made.__wrapped__)


class Walk:
    """A walk over a JSON schema: `unbounded` has the places of what may have any size."""

    def __init__(self, model: TypeAdapter[Any], name: str) -> None:
        schema = model.json_schema(by_alias=False)
        self.definitions = schema.get("$defs", {})
        self.unbounded: list[str] = []
        self.bytes = self.most(schema, name)

    def most(self, node: Any, where: str) -> int:
        """The most bytes that the JSON of a value of this schema takes, roughly."""
        if "$ref" in node:
            name = node["$ref"].rpartition("/")[2]
            return self.most(self.definitions[name], name)
        if choices := [*node.get("anyOf", ()), *node.get("oneOf", ())]:
            return max(self.most(each, where) for each in choices)
        if {"const", "enum"} & set(node):
            return 100
        match node.get("type"):
            case "string":
                return _CHARACTER * self.limit(node, where, "maxLength") + 2
            case "array":
                items = [self.most(each, where) for each in node.get("prefixItems", ())]
                length = self.limit(node, where, "maxItems")
                return sum(items) if items else length * (self.most(node["items"], where) + 1) + 2
            case "object":
                known = node.get("properties", {})
                size = sum(self.most(each, f"{where}.{key}") + len(key) + 4 for key, each in known.items())
                others = node.get("additionalProperties", False)
                if others is False:
                    return size + 2
                key = self.most(node.get("propertyNames", {}) | {"type": "string"}, where) if others is not True else 0
                value = self.most(others, where) if others is not True else self.unknown(where)
                return size + self.limit(node, where, "maxProperties") * (key + value + 2)
            case "integer":
                if not {"maximum", "exclusiveMaximum"} & set(node):
                    self.unbounded.append(where)
                return _NUMBER
            case "number" | "boolean" | "null":
                return _NUMBER
        return self.unknown(where)

    def limit(self, node: Any, where: str, name: str) -> int:
        if name not in node:
            self.unbounded.append(where)
        return int(node.get(name, 0))

    def unknown(self, where: str) -> int:
        self.unbounded.append(where)
        return 0


def test_every_field_is_bounded_by_its_type() -> None:
    models: dict[str, TypeAdapter[Any]] = {"Record": TypeAdapter(Record), "Plan": TypeAdapter(Plan)}
    for name, model in (models | dict(answers())).items():
        walk = Walk(model, name)
        assert walk.unbounded == [], name
        assert walk.bytes > 0


def test_the_walk_finds_fields_without_a_bound() -> None:
    class Part(BaseModel):
        text: str
        pairs: dict[str, int]

    class Whole(BaseModel):
        parts: list[Part]
        anything: Any

    walk = Walk(TypeAdapter(Whole), "Whole")
    assert {*walk.unbounded} == {"Whole.parts", "Part.text", "Part.pairs", "Whole.anything"}


def test_long_texts_and_lists_are_cut() -> None:
    assert TypeAdapter(Names).validate_python(["x" * 1000] * 2000) == ("x" * (MAX_NAME - 1) + "…",) * 1000
    (*_, last) = TypeAdapter(Sentences).validate_json("[" + ",".join(['"no"'] * 3000) + "]")
    assert last == "2,981 more of this kind."


def test_a_record_is_smaller_than_stated_whatever_its_programs_say() -> None:
    loud = "\U0001f480" * 20_000
    many = (loud,) * 3000
    says: dict[str, Any] = dict.fromkeys(("reason", "cause", "output", "exit"), loud)
    says |= dict.fromkeys(("warnings", "flags"), many)
    for number in (1, 30, 1000):
        tests = fitting([made_test(f"t{place:03}", Verdict.PASSED, **says) for place in range(number)])
        record = made_record(tests=tests).model_copy(update={"notes": many, "flags": many})
        assert len(record.model_dump_json()) < MAX_RECORD_BYTES
        assert tests[-1].reason
