"""A YAML file read into a pydantic model; what is wrong with it in one sentence: file, key, value, what is allowed."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from grader.errors import UsageError
from grader.paths import shown

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The same in C, ten times as fast, where PyYAML was built with libyaml."""

Model = TypeVar("Model", bound=BaseModel)


def read_yaml_model(path: Path, model: type[Model]) -> Model:
    """Read `path` as YAML and validate it as `model`. Raises UsageError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"{shown(path)} cannot be read ({reason}): check the path and its permissions.") from error
    try:
        content = yaml.load(text, _LOADER)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "it cannot be parsed"
        raise UsageError(f"{shown(path)}{where}: this is not YAML: {problem}.") from error
    if not isinstance(content, dict):
        raise UsageError(
            f"{shown(path)}: expected keys and values at the top ({', '.join(model.model_fields)}), "
            f"found {'nothing' if content is None else type(content).__name__}."
        )
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise UsageError(f"{shown(path)}: {_sentence(error, model)}") from error


def _sentence(error: ValidationError, model: type[BaseModel]) -> str:
    # An unknown key first: when it is a misspelling, the "missing" key beside it is only its echo.
    problems = sorted(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
    first = problems[0]
    key = _key(first["loc"], model) or "the file"
    found = first.get("input")
    if first["type"] == "extra_forbidden":
        allowed = _fields_at(model, first["loc"][:-1])
        wrong = str(first["loc"][-1])
        close = difflib.get_close_matches(wrong, allowed, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        listing = f"allowed here: {', '.join(allowed)}." if allowed else "remove it."
        text = f"{key}: this key is not known; {hint}{listing}"
    elif first["type"] == "missing":
        text = f"{key}: this key is missing; add it."
    else:
        text = f"{key}: {_decapitalised(first['msg'])}, found {found!r}."
    more = len(problems) - 1
    return text + (f" ({more} more problem{'s' if more > 1 else ''} after this one.)" if more else "")


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
