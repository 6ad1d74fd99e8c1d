"""A YAML file read into a pydantic model; what is wrong with it in one sentence: file, line, key, value, what to do."""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError

from grader.errors import UsageError
from grader.paths import shown
from grader.yaml_text import Location, line_of, read_yaml

_LARGEST_WHOLE = 2**53
"""Larger whole numbers are typing errors, and some are more than the system's calls take."""
_SHOWN_CHARACTERS = 60


class StrictModel(BaseModel):
    """What every model of a YAML file is: frozen, without unknown keys and without infinities."""

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
        location, sentence = _problem(error, model)
        raise UsageError(f"{shown(path)}, line {line_of(root, location)}: {sentence}") from error


def _mistaken(value: Any, annotation: Any, location: tuple[int | str, ...] = ()) -> Iterator[tuple[Location, str, Any]]:
    """(location, what is expected, what is there) where pydantic would take a truth value for a number, or the other
    way round, and where a whole number is larger than anything means."""
    if isinstance(value, list):
        for number, one in enumerate(value):
            yield from _mistaken(one, annotation, (*location, number))
    elif isinstance(value, dict):
        fields = _fields_of(annotation, value.get("kind"))
        for key, one in value.items():
            wanted = fields[key].annotation if key in fields else Any if fields else annotation
            yield from _mistaken(one, wanted, (*location, key))
    else:
        types = set(_leaves(annotation))
        if isinstance(value, bool) and types & {int, float} and bool not in types:
            yield location, "expected a number", value
        elif types == {bool} and not isinstance(value, bool):
            yield location, "expected true or false", value
        elif isinstance(value, int) and abs(value) > _LARGEST_WHOLE:
            yield location, f"expected a number of at most {_LARGEST_WHOLE}", value


def _fields_of(annotation: Any, kind: Any) -> dict[str, Any]:
    """The fields of the model in `annotation`; of several, of the one for this `kind`."""
    models = [leaf for leaf in _leaves(annotation) if isinstance(leaf, type) and issubclass(leaf, BaseModel)]
    fitting = [model for model in models if len(models) == 1 or kind in _leaves_of_kind(model)]
    return dict(fitting[0].model_fields) if fitting else {}


def _leaves_of_kind(model: type[BaseModel]) -> tuple[Any, ...]:
    return get_args(model.model_fields["kind"].annotation) if "kind" in model.model_fields else ()


def _leaves(annotation: Any) -> Iterator[Any]:
    """The plain types that an annotation is made of."""
    arguments = get_args(annotation)
    if get_origin(annotation) is Literal or not arguments:
        yield annotation
    elif get_origin(annotation) is Annotated:
        yield from _leaves(arguments[0])
    else:
        for argument in arguments:
            yield from _leaves(argument)


def place(path: Path, location: Location) -> str:
    """`file, line 12: rubric[1].tests`: where in a YAML file, which was read before, a value stands."""
    root, _ = read_yaml(path)
    return f"{shown(path)}, line {line_of(root, location)}: {_dotted(location)}"


_EXPECTED = {
    "tuple_type": "expected a list, [like, this]",
    "dict_type": "expected keys and values",
    "model_type": "expected keys and values",
    "model_attributes_type": "expected keys and values",
    "string_type": "expected text (quotes make text of anything)",
    "float_type": "expected a number",
    "float_parsing": "expected a number",
    "int_type": "expected a whole number",
    "int_parsing": "expected a whole number",
    "int_from_float": "expected a whole number",
    "finite_number": "expected a finite number",
    "timezone_aware": "expected a time with its zone, as 2026-12-01T23:59:00+01:00",
    "datetime_type": "expected a time, as 2026-12-01T23:59:00+01:00",
    "datetime_parsing": "expected a time, as 2026-12-01T23:59:00+01:00",
    "datetime_from_date_parsing": "expected a time, as 2026-12-01T23:59:00+01:00",
}
"""What pydantic says in Python's words, in those of somebody who writes YAML."""


def _problem(error: ValidationError, model: type[BaseModel]) -> tuple[Location, str]:
    """Where the first problem is, and a sentence on it that begins with its key."""
    # An unknown key first: when it is a misspelling, the "missing" key beside it is only its echo.
    problems = sorted(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
    first = problems[0]
    key = _key(first["loc"], model)
    found = first.get("input")
    if first["type"] == "extra_forbidden":
        allowed = _fields_at(model, first["loc"][:-1])
        wrong = str(first["loc"][-1])
        close = difflib.get_close_matches(wrong, allowed, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        listing = f"allowed here: {', '.join(allowed)}." if allowed else "remove it."
        text = f"this key is not known; {hint}{listing}"
    elif first["type"] == "missing":
        text = "this key is missing; add it."
    else:
        expected = _EXPECTED.get(first["type"]) or _decapitalised(first["msg"])
        whole = first["type"] == "value_error" and isinstance(found, dict | BaseModel)  # it says itself what it found
        text = f"{expected}." if whole else f"{expected}, found {_described(found)}."
    more = len(problems) - 1
    text = f"{key}: {text}" if key else text
    return first["loc"], text + (f" ({more} more problem{'s' if more > 1 else ''} after this one.)" if more else "")


def _described(value: Any) -> str:
    """A value as a person wrote it, not too long."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return f"keys and values ({', '.join(map(str, value))[:_SHOWN_CHARACTERS]})"
    text = str(value).lower() if isinstance(value, bool | datetime.date) else repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _dotted(location: Location) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")


def _key(location: tuple[int | str, ...], model: type[BaseModel]) -> str:
    """`rubric[0].points` from pydantic's location, which also holds the tag of a discriminated union."""
    text = ""
    current: Any = model
    for part in location:
        if isinstance(part, int):
            text += f"[{part}]"
        elif (tagged := _tagged(current, part)) is not None:
            current = tagged
        else:
            text += f".{part}" if text else part
            fields = current.model_fields if isinstance(current, type) and issubclass(current, BaseModel) else {}
            current = _model_in(fields[part].annotation) if part in fields else None
    return text


def _decapitalised(message: str) -> str:
    message = message.removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


def _fields_at(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """The field names of the model found by following `location` from `model`; empty when that is not one model."""
    current: Any = model
    for part in location:
        if isinstance(part, int):
            continue
        if isinstance(current, type) and issubclass(current, BaseModel) and part in current.model_fields:
            current = _model_in(current.model_fields[part].annotation)
        else:
            tagged = _tagged(current, part)
            if tagged is None:
                return []
            current = tagged
    return list(current.model_fields) if isinstance(current, type) and issubclass(current, BaseModel) else []


def _model_in(annotation: Any) -> Any:
    """The model inside `tuple[Model, ...]`, `Model | None` or `Model` itself; a union is given back whole."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    arguments = [argument for argument in getattr(annotation, "__args__", ()) if argument not in (type(None), Ellipsis)]
    if len(arguments) == 1:
        return _model_in(arguments[0])
    if arguments and all(isinstance(argument, type) and issubclass(argument, BaseModel) for argument in arguments):
        return annotation
    return _model_in(arguments[0]) if arguments else annotation


def _tagged(union: Any, tag: str | int) -> type[BaseModel] | None:
    for member in getattr(union, "__args__", ()):
        if not (isinstance(member, type) and issubclass(member, BaseModel)):
            continue
        kind = member.model_fields.get("kind")
        if kind is not None and tag in getattr(kind.annotation, "__args__", ()):
            return member
    return None
