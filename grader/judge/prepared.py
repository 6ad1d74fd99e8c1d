"""Content that is the same for all clients, prepared once: the board after each change, and the static files."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass

from fastapi import Request, Response


@dataclass(frozen=True)
class Prepared:
    """Content ready to be sent, plain and compressed by gzip. `etag` changes with the content."""

    media_type: str
    plain: bytes
    packed: bytes
    etag: str

    def answer(self, request: Request, cache: str) -> Response:
        """The response to a request: 304 if the client has this content already."""
        headers = {"etag": self.etag, "cache-control": cache, "vary": "accept, accept-encoding"}
        if request.headers.get("if-none-match") == self.etag:
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers["content-encoding"] = "gzip"
            return Response(self.packed, media_type=self.media_type, headers=headers)
        return Response(self.plain, media_type=self.media_type, headers=headers)


def prepared(text: str, media_type: str) -> Prepared:
    """Encode a text, compress it, and compute its etag."""
    plain = text.encode()
    # W/ marks a weak validator: the plain and the compressed form share it, though their bytes differ.
    etag = f'W/"{hashlib.sha256(plain).hexdigest()[:16]}"'
    return Prepared(media_type, plain, gzip.compress(plain, 6, mtime=0), etag)
