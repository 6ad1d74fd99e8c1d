"""Classes that a program may use, but not change, because the grader relies on what their objects do."""

from __future__ import annotations

from typing import Any


class Final(type):
    """The type of classes that can be neither changed nor extended after `seal` is called."""

    def __setattr__(cls, name: str, value: object) -> None:
        if _sealed:
            raise TypeError(f"{cls.__name__} cannot be changed")
        super().__setattr__(name, value)

    def __delattr__(cls, name: str) -> None:
        raise TypeError(f"{cls.__name__} cannot be changed")

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Final:
        if _sealed:
            raise TypeError(f"{bases[0].__name__} cannot be extended")
        return super().__new__(cls, name, bases, body)


_sealed: list[bool] = []


def seal() -> None:
    """From now on, classes of type `Final` stay as they are."""
    _sealed.append(True)
