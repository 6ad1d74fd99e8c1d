"""A float that is a number: JSON has no other, and no sum or order of points survives infinity or NaN."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

Finite = Annotated[float, Field(allow_inf_nan=False)]
