"""The page, its files and its one library, and nothing else from the disk."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from yarl import URL

from server.page import LIBRARY_FILE, LIBRARY_INTEGRITY, LIBRARY_ON_CDN, LIBRARY_VERSION, SCRIPT
from settings import ROOT
from tests.token_server.service import PAGE, Service, StartService

PLAIN = {"Accept-Encoding": "identity"}


@pytest.fixture
def library(frontend: Path) -> bytes:
    """livekit-client where npm puts it."""
    package = frontend / "node_modules" / "livekit-client"
    (package / "dist").mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"version": "9.8.7"}))
    content = b"var LivekitClient = {};" * 1000
    (package / "dist" / LIBRARY_FILE).write_bytes(content)
    return content


async def get(service: Service, path: str | URL, **headers: str) -> tuple[int, bytes, Mapping[str, str]]:
    session = service.browser().session
    async with session.get(path, headers={**PLAIN, **headers}, allow_redirects=False) as answer:
        return answer.status, await answer.read(), answer.headers


async def test_without_npm_the_page_loads_one_file_from_a_cdn_by_its_hash(service: Service) -> None:
    """The policy admits exactly that file, and the browser runs it only when the hash is right."""
    _, page, headers = await get(service, "/")
    assert SCRIPT not in page.decode()
    assert f'src="{LIBRARY_ON_CDN}" integrity="{LIBRARY_INTEGRITY}" crossorigin="anonymous"' in page.decode()
    assert f"script-src 'self' {LIBRARY_ON_CDN};" in headers["Content-Security-Policy"]
    status, _, _ = await get(service, "/static/vendor/livekit-client.umd.min.js")
    assert status == 404


async def test_with_npm_the_library_comes_from_here(start: StartService, library: bytes) -> None:
    """No other host is admitted, and the address changes with the version."""
    service = await start()
    _, page, headers = await get(service, "/")
    address = "/static/vendor/livekit-client.umd.min.js?v=9.8.7"
    assert f'<script src="{address}" defer></script>' in page.decode()
    assert "script-src 'self';" in headers["Content-Security-Policy"]
    status, content, headers = await get(service, address)
    assert (status, content) == (200, library)
    assert headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert headers["Content-Type"].startswith("text/javascript")


async def test_the_library_is_not_kept_under_an_address_without_its_version(
    start: StartService, library: bytes
) -> None:
    """Else an old version could stay in a browser for a year."""
    service = await start()
    for path in ("/static/vendor/livekit-client.umd.min.js", "/static/vendor/livekit-client.umd.min.js?v=1"):
        assert (await get(service, path))[2]["Cache-Control"] == "no-cache"


@pytest.mark.parametrize(
    ("accepts", "compressed"),
    [("gzip", True), ("br, gzip;q=0.5", True), ("identity", False), ("gzip;q=0", False), ("br", False)],
)
async def test_files_travel_compressed_where_the_browser_takes_it(
    start: StartService, library: bytes, accepts: str, compressed: bool
) -> None:
    """The library is half a megabyte; a client without gzip gets it plain."""
    service = await start()
    session = service.browser().session
    async with session.get(
        "/static/vendor/livekit-client.umd.min.js", headers={"Accept-Encoding": accepts}
    ) as answer:
        assert (answer.headers.get("Content-Encoding") == "gzip") is compressed
        assert answer.headers["Vary"] == "Accept-Encoding"
        size = int(answer.headers["Content-Length"])
        assert await answer.read() == library
    assert size == len(gzip.compress(library, mtime=0) if compressed else library)


async def test_an_unchanged_file_is_not_sent_again(service: Service, frontend: Path) -> None:
    """The page's own files are asked for each time, and an edit shows on reload."""
    (frontend / "app.js").write_text("one")
    status, content, headers = await get(service, "/static/app.js")
    assert (status, content, headers["Cache-Control"]) == (200, b"one", "no-cache")
    etag = headers["ETag"]
    assert (await get(service, "/static/app.js", **{"If-None-Match": etag}))[0] == 304
    (frontend / "app.js").write_text("two")
    assert (await get(service, "/static/app.js", **{"If-None-Match": etag}))[1] == b"two"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("app.js", "text/javascript; charset=utf-8"),
        ("styles.css", "text/css; charset=utf-8"),
        ("icon.svg", "image/svg+xml; charset=utf-8"),
        ("icon.png", "image/png"),
        ("icons/talk-1.svg", "image/svg+xml; charset=utf-8"),
        ("memory-panel.v2.js", "text/javascript; charset=utf-8"),
    ],
)
async def test_files_have_their_type(service: Service, frontend: Path, name: str, kind: str) -> None:
    """With `nosniff` a wrong type is a page that does not load."""
    (frontend / name).parent.mkdir(exist_ok=True)
    (frontend / name).write_bytes(b"x")
    status, _, headers = await get(service, f"/static/{name}")
    assert (status, headers["Content-Type"]) == (200, kind)


@pytest.mark.parametrize(
    "path",
    [
        "../secret.js",
        "..%2fsecret.js",
        "%2e%2e/secret.js",
        "%2e%2e%2fsecret.js",
        "..%5csecret.js",
        "a/../../secret.js",
        "a/b/c.js",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        ".env.js",
        ".hidden/x.js",
        "node_modules/livekit-client/index.js",
        "tests/x.js",
        "package.json",
        "package-lock.json",
        "app.js%00.js",
        "app.js%0a",
        "app.js/",
        "linked.js",
        "folder.js",
        "%ff.js",
        "",
        "a" * 3000 + ".js",
    ],
)
async def test_nothing_but_the_page_is_served(service: Service, frontend: Path, path: str) -> None:
    """No way out of the folder, no hidden file, no dependency, no link to elsewhere."""
    (frontend.parent / "secret.js").write_text("secret")
    for inside in (".env.js", ".hidden/x.js", "node_modules/livekit-client/index.js", "tests/x.js"):
        (frontend / inside).parent.mkdir(parents=True, exist_ok=True)
        (frontend / inside).write_text("secret")
    (frontend / "package.json").write_text("secret")
    (frontend / "package-lock.json").write_text("secret")
    (frontend / "a" / "b").mkdir(parents=True)
    (frontend / "a" / "b" / "c.js").write_text("secret")
    (frontend / "folder.js").mkdir()
    (frontend / "linked.js").symlink_to(frontend.parent / "secret.js")
    status, content, _ = await get(service, URL(f"/static/{path}", encoded=True))
    assert status == 404
    assert b"secret" not in content


async def test_a_server_without_a_page_says_so(start: StartService, tmp_path: Path) -> None:
    """Whoever brings a page of their own deletes the folder; the API stays."""
    service = await start(frontend=tmp_path / "nowhere")
    status, content, _ = await get(service, "/")
    assert status == 404
    assert b"/api/" in content


def test_the_pinned_library_is_the_one_that_npm_installs() -> None:
    """Both ways to get it give the same version; where npm has run, the very same bytes."""
    package = ROOT / "frontend" / "package.json"
    if not package.is_file():
        pytest.skip("frontend/ is not there")
    assert json.loads(package.read_text())["dependencies"]["livekit-client"] == LIBRARY_VERSION
    file = ROOT / "frontend" / "node_modules" / "livekit-client" / "dist" / LIBRARY_FILE
    if not file.is_file():
        pytest.skip("npm has not run: npm ci --prefix frontend")
    digest = base64.b64encode(hashlib.sha384(file.read_bytes()).digest()).decode()
    assert f"sha384-{digest}" == LIBRARY_INTEGRITY


def test_our_page_has_the_line_that_the_server_replaces() -> None:
    """Without it the page would have no library where npm has not run."""
    index = ROOT / "frontend" / "index.html"
    if not index.is_file():
        pytest.skip("frontend/ is not there")
    assert index.read_text().count(SCRIPT) == 1
    assert SCRIPT in PAGE
