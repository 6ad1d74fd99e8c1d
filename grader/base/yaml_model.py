"""Reads a YAML file into a pydantic model, and reports an error in one sentence: file, line, key, value, what to do."""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from grader.base.errors import UsageError
from grader.base.paths import shown
from grader.base.yaml_text import Location, line_of, read_yaml

_LARGEST_WHOLE = 2**53
"""A larger whole number is a typo, and could overflow a system call."""
_SHOWN_CHARACTERS = 60


class StrictModel(BaseModel):
    """Base of all YAML models: frozen, without unknown keys or infinities."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


Model = TypeVar("Model", bound=BaseModel)


def read_yaml_model(path: Path, model: type[Model]) -> Model:
    """Read `path` as YAML and validate it as `model`. Raises UsageError."""
    root, content = read_yaml(path)
    if not isinstance(content, dict):
        raise UsageError(
            f"{shown(path)}: expected keys and values at the top ({', '.join(model.model_fields)}), "
            f"found {'nothing' if content is None else _described(content)}."
        )
    for location, expected, found in _mistaken(content, model):
        where = f"{shown(path)}, line {line_of(root, location)}: {_dotted(location)}"
        raise UsageError(f"{where}: {expected}, found {_described(found)}.")
    try:
        return model.model_validate(content)
    except ValidationError as error:
        location, sentence = _problem(error, content, model)
        raise UsageError(f"{shown(path)}, line {line_of(root, location)}: {_dotted(location)}: {sentence}") from error


def _mistaken(value: Any, annotation: Any, location: tuple[int | str, ...] = ()) -> Iterator[tuple[Location, str, Any]]:
    """Yield (location, expected, found) of every value that pydantic would wrongly accept: a boolean as a number, a
    number as a boolean or a time, and a whole number above the limit. pydantic's strict mode refuses them, but also
    refuses values that are fine in YAML: a list for a tuple, 1e3 for a whole number, and a time in quotes."""
    if isinstance(value, list):
        for number, one in enumerate(value):
            yield from _mistaken(one, annotation, (*location, number))
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from _mistaken(one, _annotation_at(key, value, annotation), (*location, key))
    else:
        types = set(_leaves(annotation))
        if isinstance(value, bool) and types & {int, float} and bool not in types:
            yield location, "expected a number", value
        elif types == {bool} and not isinstance(value, bool):
            yield location, "expected true or false", value
        elif isinstance(value, int | float) and AwareDatetime in types:  # pydantic counts seconds since 1970
            yield location, _EXPECTED["datetime_type"], value
        elif isinstance(value, int) and abs(value) > _LARGEST_WHOLE:
            yield location, f"expected a number of at most {_LARGEST_WHOLE}", value


def _annotation_at(key: int | str, value: dict[str, Any], annotation: Any) -> Any:
    """The type expected at `key` of `value`, where `annotation` is the type expected of `value` itself."""
    fields = _fields_of(annotation, value)
    return fields[str(key)].annotation if key in fields else Any if fields else annotation


def _fields_of(annotation: Any, value: dict[str, Any]) -> dict[str, Any]:
    """The fields of the model in `annotation`. If that is a union of models, the key `kind` selects one of them, or, if
    they have no such key, the first that has all keys of `value`."""
    models = _models(annotation)
    fitting = [model for model in models if len(models) == 1 or value.get("kind") in _leaves_of_kind(model)]
    fitting += [
        model for model in models if "kind" not in model.model_fields and value.keys() <= model.model_fields.keys()
    ]
    return dict(fitting[0].model_fields) if fitting else {}


def _models(annotation: Any) -> list[type[BaseModel]]:
    return [leaf for leaf in _leaves(annotation) if isinstance(leaf, type) and issubclass(leaf, BaseModel)]


def _leaves_of_kind(model: type[BaseModel]) -> tuple[Any, ...]:
    return get_args(model.model_fields["kind"].annotation) if "kind" in model.model_fields else ()


def _leaves(annotation: Any) -> Iterator[Any]:
    """The plain types that make up an annotation."""
    arguments = get_args(annotation)
    if get_origin(annotation) is Literal or not arguments:
        yield annotation
    elif get_origin(annotation) is Annotated:
        yield from _leaves(arguments[0])
    else:
        for argument in arguments:
            yield from _leaves(argument)


def place(path: Path, location: Location) -> str:
    """The place of a value in a YAML file, for messages, as in `file, line 12: rubric[1].tests`."""
    root, _ = read_yaml(path)
    return f"{shown(path)}, line {line_of(root, location)}: {_dotted(location)}"


_EXPECTED = {
    "tuple_type": "expected a list, [like, this]",
    "dict_type": "expected keys and values",
    "model_type": "expected keys and values",
    "model_attributes_type": "expected keys and values",
    "string_type": "expected text (quotes turn anything into text)",
    "float_type": "expected a number",
    "float_parsing": "expected a number",
    "int_type": "expected a whole number",
    "int_parsing": "expected a whole number",
    "int_from_float": "expected a whole number",
    "finite_number": "expected a finite number",
    "timezone_aware": "expected a time with its zone, like 2026-12-01T23:59:00+01:00",
    "datetime_type": "expected a time, like 2026-12-01T23:59:00+01:00",
    "datetime_parsing": "expected a time, like 2026-12-01T23:59:00+01:00",
    "datetime_from_date_parsing": "expected a time, like 2026-12-01T23:59:00+01:00",
}
"""The grader's message for each of pydantic's error types, in the words of YAML; pydantic's own messages name Python
types."""


def _problem(error: ValidationError, content: Any, model: type[BaseModel]) -> tuple[Location, str]:
    """The location of the first problem, and a sentence about it."""
    # Unknown keys come first, since a misspelled key also makes the right one "missing". A value that fits neither
    # member of `int | float` causes an error for each of them; the one for `float` is the better description.
    problems = sorted(
        error.errors(), key=lambda each: (each["type"] != "extra_forbidden", each["loc"][-1:] == ("int",))
    )
    first = problems[0]
    location, allowed = _place_in_file(first["loc"], content, model)
    found = first.get("input")
    if first["type"] == "extra_forbidden":
        close = difflib.get_close_matches(str(location[-1]), allowed, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        listing = f"allowed here: {', '.join(allowed)}." if allowed else "remove it."
        text = f"this key is unknown; {hint}{listing}"
    elif first["type"] == "missing":
        text = "this key is missing; add it."
    else:
        expected = _EXPECTED.get(first["type"]) or _decapitalised(first["msg"])
        # An error of a whole model already says what it found.
        whole = first["type"] == "value_error" and isinstance(found, dict | BaseModel)
        text = f"{expected}." if whole else f"{expected}, found {_described(found)}."
    places = {tuple(_place_in_file(problem["loc"], content, model)[0]) for problem in problems}
    more = len(places) - 1
    return location, text + (f" ({more} more problem{'s' if more > 1 else ''} after this one.)" if more else "")


def _place_in_file(location: Location, content: Any, model: type[BaseModel]) -> tuple[list[int | str], list[str]]:
    """(keys, allowed). `keys` are the keys and indices in pydantic's `location`, without pydantic's names for the
    members of unions; `allowed` are the keys that the file could have in place of the last key."""
    keys: list[int | str] = []
    allowed: list[str] = []
    value, annotation = content, model
    for part in location:
        if isinstance(value, dict):
            kind = value.get("kind")
            if part == kind and len(_models(annotation)) > 1:
                continue
            allowed = list(_fields_of(annotation, value))
            if not allowed and part not in value:
                break
            annotation = _annotation_at(part, value, annotation)
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int):
            allowed, value = [], value[part]
        else:
            break
        keys.append(part)
    return keys, allowed


def _described(value: Any) -> str:
    """A value as the user wrote it, abbreviated."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return f"keys and values ({', '.join(map(str, value))[:_SHOWN_CHARACTERS]})"
    text = str(value).lower() if isinstance(value, bool | datetime.date) else repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _dotted(location: Location) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")


def _decapitalised(message: str) -> str:
    message = message.removeprefix("Value error, ")
    return message[:1].lower() + message[1:]
