"""What Gradescope accepts as results.json."""

import json
from pathlib import Path
from typing import Any

import jsonschema

SCHEMA = json.loads((Path(__file__).parent / "gradescope_results.schema.json").read_text())


def valid(results: dict[str, Any]) -> dict[str, Any]:
    """`results`, which fit the schema."""
    jsonschema.Draft202012Validator(SCHEMA).validate(results)
    return results
