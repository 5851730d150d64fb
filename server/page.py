"""The page and its files, and the one library that it needs."""

from __future__ import annotations

import asyncio
import functools
import gzip
import hashlib
import json
import re
from pathlib import Path

from aiohttp import ETag, web

from server.errors import ApiError

# The library's minified build has no `.min` in its name.
LIBRARY_FILE = "livekit-client.umd.js"
LIBRARY_VERSION = "2.23.0"
LIBRARY_INTEGRITY = "sha384-HkA7rQNo8H04l1p4zoXX1Cy+h9YoYp8LvKt4vfMFhv4KFk07UkrNwIUnyBum8Pw6"
LIBRARY_ON_CDN = f"https://cdn.jsdelivr.net/npm/livekit-client@{LIBRARY_VERSION}/dist/{LIBRARY_FILE}"
LIBRARY_PATH = "/static/vendor/livekit-client.umd.min.js"
SCRIPT = f'<script src="{LIBRARY_PATH}" defer></script>'

_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".ico": "image/x-icon",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
_COMPRESSED = frozenset({".css", ".html", ".js", ".mjs", ".svg", ".webmanifest"})
# One folder deep at most, and nothing hidden; `resolve` below has the last word.
_NAME = re.compile(r"(?:[A-Za-z0-9][\w-]*/)?[A-Za-z0-9][\w-]*(?:\.[\w-]+)*\.[a-z0-9]+", re.ASCII)
_NOT_SERVED = frozenset({"index.html", "node_modules", "tests"})
_LONGEST_NAME = 200


class Page:
    """The files of `frontend/`, read as they are asked for, so that an edit shows on reload.

    livekit-client comes from `node_modules` when npm has put it there. Otherwise the page loads the same
    file from a CDN, and the browser runs it only with the hash that stands here. Looked up once: the
    policy that goes out with every answer depends on it.
    """

    def __init__(self, frontend: Path) -> None:
        self._root = frontend.resolve()
        package = self._root / "node_modules" / "livekit-client"
        self._library = package / "dist" / LIBRARY_FILE
        self.has_library = self._library.is_file()
        self._version = LIBRARY_VERSION
        if self.has_library:
            self._version = str(json.loads((package / "package.json").read_text())["version"])

    @property
    def script_source(self) -> str:
        """What `script-src` admits besides `'self'`: nothing, or one file."""
        return "" if self.has_library else f" {LIBRARY_ON_CDN}"

    async def index(self, request: web.Request) -> web.StreamResponse:
        return await asyncio.to_thread(self._index, request)

    async def static(self, request: web.Request) -> web.StreamResponse:
        return await asyncio.to_thread(self._static, request, request.match_info["name"])

    def _index(self, request: web.Request) -> web.Response:
        path = self._root / "index.html"
        if not path.is_file():
            raise ApiError(404, "no_page", "This server has no page. The API is under /api/.")
        if self.has_library:
            script = f'<script src="{LIBRARY_PATH}?v={self._version}" defer></script>'
        else:
            script = (
                f'<script src="{LIBRARY_ON_CDN}" integrity="{LIBRARY_INTEGRITY}" '
                'crossorigin="anonymous" defer></script>'
            )
        content = path.read_text(encoding="utf-8").replace(SCRIPT, script).encode()
        return _answer(request, content, path.suffix, "no-cache")

    def _static(self, request: web.Request, name: str) -> web.Response:
        if f"/static/{name}" == LIBRARY_PATH and self.has_library:
            # The version in the address makes it new when the library is.
            known = request.query.get("v") == self._version
            cache = "public, max-age=31536000, immutable" if known else "no-cache"
            return _answer(request, self._library.read_bytes(), ".js", cache)
        known_form = len(name) <= _LONGEST_NAME and _NAME.fullmatch(name)
        path = (self._root / name).resolve() if known_form else self._root
        inside = path.is_relative_to(self._root) and not _NOT_SERVED & set(path.relative_to(self._root).parts)
        if not inside or path.suffix not in _TYPES or not path.is_file():
            raise ApiError(404, "not_found", "There is nothing at this address.")
        return _answer(request, path.read_bytes(), path.suffix, "no-cache")


def _answer(request: web.Request, content: bytes, suffix: str, cache: str) -> web.Response:
    digest = hashlib.sha256(content).hexdigest()[:32]
    headers = {"Cache-Control": cache, "Vary": "Accept-Encoding"}
    if any(tag.value in (digest, "*") for tag in request.if_none_match or ()):
        response = web.Response(status=304, headers=headers)
    else:
        if suffix in _COMPRESSED and _takes_gzip(request):
            headers["Content-Encoding"] = "gzip"
            content = _compressed(content)
        text = suffix in _COMPRESSED
        response = web.Response(
            body=content, content_type=_TYPES[suffix], charset="utf-8" if text else None, headers=headers
        )
    # Weak: the same file, whether compressed or not.
    response.etag = ETag(digest, is_weak=True)
    return response


def _takes_gzip(request: web.Request) -> bool:
    for part in request.headers.get("Accept-Encoding", "").split(","):
        coding, _, quality = part.replace(" ", "").partition(";q=")
        if coding == "gzip":
            return not re.fullmatch(r"0(\.0*)?", quality)
    return False


@functools.lru_cache(maxsize=32)
def _compressed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)
