"""Draws the values of testcases from a public seed or from the secret, one unit at a time.

Every unit of every input (a batch, a head, a matrix) has its own key,

    HMAC-SHA256(seed, "grader/input/1" ‖ identity of the case ‖ number of the unit),

whose first 16 bytes key a Philox4x64-10 counter generator (Salmon et al., 2011; numpy.random.Philox, counter starting
at 0). Its 64-bit words are split into little-endian 32-bit halves. Each half yields u = (half >> 8) / 2^24, which
`uniform` and `normal` turn into a value; the other distributions draw from a numpy Generator with that key. So any
unit can be generated alone, no unit reveals another, and nothing can be generated without the seed. The seed of a
public testcase is the text in the YAML file; the seed of a hidden testcase is the secret of the course. The two are
hashed with different prefixes, so that a public seed that happens to equal the secret still does not reveal hidden
values.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from grader.base.errors import MachineFault, UsageError
from grader.base.paths import shown
from grader.course.distributions import Constant, Distribution, Normal, Uniform
from grader.operators import Operator, Shape
from grader.operators.base import Tensors

GENERATOR = "philox4x64-u24-1"
"""The name of the method that turns bits into values; files made with another method are regenerated."""

MIN_SECRET_CHARACTERS = 32
"""32 hexadecimal digits hold 128 bits. The grader refuses a shorter secret, which could be found by search."""


# ---- seeds ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Seed:
    """The key from which a testcase's values are drawn. Printing a seed never shows the key."""

    kind: Literal["public", "hidden", "fresh"]
    key: bytes = field(repr=False)

    @property
    def id(self) -> str:
        """A name of the seed that does not reveal it: 12 hex digits of a hash with no other use."""
        return hmac.new(self.key, b"grader/seed-id/1", hashlib.sha256).hexdigest()[:12]

    def fresh(self, nonce: str) -> Seed:
        """Another seed, derived from this seed and `nonce`, for inputs that no earlier file contains."""
        return Seed("fresh", hmac.new(self.key, b"grader/fresh/1\0" + nonce.encode(), hashlib.sha256).digest())


def public_seed(text: str) -> Seed:
    """The seed of a public testcase, from the text in the YAML file."""
    return Seed("public", hashlib.sha256(b"grader/public/1\0" + text.encode()).digest())


def hidden_seed(secret: str) -> Seed:
    """The seed of hidden testcases, from the secret."""
    return Seed("hidden", hashlib.sha256(b"grader/hidden/1\0" + secret.encode()).digest())


def draw_tensors(
    operator: Operator, shape: Shape, distribution: Distribution, seed: Seed, identity: str, unit: int
) -> Tensors:
    """The input tensors of unit number `unit` of the testcase with this identity, rounded to their types."""
    if isinstance(distribution, Uniform | Constant | Normal):
        count = operator.unit_input_values(shape)
        return operator.split_unit(shape, draw_unit(seed, identity, unit, count, distribution))
    made = distribution.of_unit(operator, shape, np.random.Generator(_bits(seed, identity, unit)))
    return tuple(
        tensor.type.rounded(np.asarray(values).reshape(tensor.rows, tensor.columns))
        for tensor, values in zip(operator.inputs(shape), made, strict=True)
    )


def draw_unit(
    seed: Seed, identity: str, unit: int, count: int, distribution: Uniform | Constant | Normal
) -> NDArray[np.float32]:
    """The `count` float32 values of unit number `unit` of the testcase with this identity."""
    words = _bits(seed, identity, unit).random_raw((count + 1) // 2)
    bits = np.asarray(words, dtype="<u8").view("<u4")[:count]
    bits >>= 8
    u = bits.astype(np.float32)
    u *= np.float32(2.0**-24)
    return distribution.values(u)


def _bits(seed: Seed, identity: str, unit: int) -> np.random.Philox:
    message = b"grader/input/1\0" + identity.encode() + b"\0" + str(unit).encode()
    digest = hmac.new(seed.key, message, hashlib.sha256).digest()
    return np.random.Philox(key=int.from_bytes(digest[:16], "little"))


# ---- the secret -------------------------------------------------------------------------------------------


def load_secret(folder: Path) -> Seed:
    """The seed of hidden testcases, from GRADER_SECRET, or else from the file that GRADER_SECRET_FILE names, or else
    from the file `secret` in `folder`. If that file is missing, it is created with 32 random bytes in hexadecimal,
    readable by its owner only. Raises UsageError for a short secret or an unreadable file, MachineFault if a
    new one cannot be written.
    """
    text = os.environ.get("GRADER_SECRET")
    if text is not None:
        return hidden_seed(_checked(text, "GRADER_SECRET"))
    named = os.environ.get("GRADER_SECRET_FILE")
    path = Path(named).expanduser() if named else folder / "secret"
    if named or path.exists():
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise UsageError(
                f"{path}: the secret of the hidden testcases cannot be read ({reason}); "
                f"{'correct GRADER_SECRET_FILE' if named else 'make the file readable'} or set GRADER_SECRET."
            ) from error
        return hidden_seed(_checked(text, shown(path)))
    return _make_secret(path)


def _checked(text: str, source: str) -> str:
    text = text.strip()
    if len(text) < MIN_SECRET_CHARACTERS:
        raise UsageError(
            f"{source}: the secret must have at least {MIN_SECRET_CHARACTERS} characters, found {len(text)}; "
            "make one with `openssl rand -hex 32`."
        )
    return text


def _make_secret(path: Path) -> Seed:
    text = secrets.token_hex(32)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)  # unlike rename, never replaces a file that another process has made meanwhile
        except FileExistsError:
            return load_secret(path.parent)
    except OSError as error:
        raise MachineFault(
            f"{path}: a secret for the hidden testcases cannot be written ({error.strerror}); "
            "set GRADER_SECRET or GRADER_SECRET_FILE."
        ) from error
    finally:
        temporary.unlink(missing_ok=True)
    return hidden_seed(text)
