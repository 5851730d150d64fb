"""The file: several processes, killed ones, closed ones, and places where no memory can be."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
import sys
from pathlib import Path

import httpx
import pytest
from supermemory import APITimeoutError, AsyncSupermemory, InternalServerError

from memory.embedded import EmbeddedMemoryError, EmbeddedTransport, client
from tests.embedded.conversation import MakeClient, known, stored

ROOT = Path(__file__).resolve().parents[2]

WRITER = """
import asyncio, sys
import httpx
from supermemory import AsyncSupermemory
from memory.embedded import EmbeddedTransport

async def main(path, name, count):
    http = httpx.AsyncClient(transport=EmbeddedTransport(path, vectors=False))
    sdk = AsyncSupermemory(
        api_key="test", base_url="http://memory.embedded", http_client=http, max_retries=0
    )
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(1, count + 1):
        line = f"[{number}] 2026-11-30T18:00:00.000Z Caller: I have a {name}{number}\\n"
        await sdk.add("anna", id=f"lk-{name}", content=line, metadata={"kind": "transcript"})
        print(number, flush=True)
    await http.aclose()

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


async def writer(path: Path, name: str, count: int) -> asyncio.subprocess.Process:
    """A process that has opened the memory at `path` and writes `count` lines once it is told to."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", WRITER, str(path), name, str(count)),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert await said(process) == "ready"
    return process


async def said(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(30):
        return (await process.stdout.readline()).decode().strip()


def start(process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    process.stdin.write(b"\n")


def scramble(path: Path) -> None:
    """Destroys everything behind the header."""
    content = path.read_bytes()
    path.write_bytes(content[:100] + b"\xff" * (len(content) - 100))


def rights(*files: Path) -> set[int]:
    return {stat.S_IMODE(file.stat().st_mode) for file in files}


def sound(path: Path) -> bool:
    with sqlite3.connect(path) as connection:
        (verdict,) = connection.execute("PRAGMA integrity_check").fetchone()
    connection.close()
    return bool(verdict == "ok")


async def test_two_processes_write_at_once_and_neither_loses_a_line(
    path: Path, sdk: AsyncSupermemory
) -> None:
    """Both make the file, both write; a third one reads all of it."""
    writers = [await writer(path, name, 40) for name in ("dog", "cat")]
    for process in writers:
        start(process)
    async with asyncio.timeout(50):
        outputs = [await process.communicate() for process in writers]
    assert [process.returncode for process in writers] == [0, 0]
    assert all(output[0].split()[-1] == b"40" for output in outputs)
    for name in ("dog", "cat"):
        document = await sdk.documents.get("anna", f"lk-{name}", include=["memories"])
        assert document.content is not None
        assert document.content.count("\n") == 40
        assert document.memories is not None
        assert len(document.memories) == 40
    assert sound(path)


async def test_a_killed_writer_leaves_a_sound_file_with_all_it_was_told_is_stored(
    path: Path, sdk: AsyncSupermemory
) -> None:
    """SIGKILL in the middle of writing: what was acknowledged is there, and the next one writes on."""
    process = await writer(path, "dog", 100_000)
    start(process)
    acknowledged = 0
    while acknowledged < 20:
        acknowledged = int(await said(process))
    process.kill()
    assert process.stdout is not None
    rest = (await process.stdout.read()).split(b"\n")
    await process.wait()
    acknowledged = max([acknowledged, *(int(number) for number in rest[:-1] if number)])
    document = await sdk.documents.get("anna", "lk-dog")
    assert document.content is not None
    assert document.content.count("\n") in (acknowledged, acknowledged + 1)
    await sdk.add("anna", content="I have a cat")
    assert "The caller has a cat." in await known(sdk)
    assert sound(path)


async def test_another_clients_writes_are_seen_by_the_next_search(make_client: MakeClient) -> None:
    """What is kept in memory of the file is not older than the file."""
    reader, other = make_client(vectors=True), make_client()
    await reader.add("anna", id="one", content="I have a dog")
    assert len((await reader.search("anna", query="dog cat", threshold=0.0)).results) == 1
    await other.add("anna", id="two", content="I have a cat")
    assert len((await reader.search("anna", query="dog cat", threshold=0.0)).results) == 2
    await other.documents.delete("anna", ids=["one"])
    (hit,) = (await reader.search("anna", query="dog cat", threshold=0.0)).results
    assert hit.memory == "The caller has a cat."


async def test_a_file_that_stays_locked_is_a_server_error(
    path: Path, make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK may try again; the lock of another program is not this memory's damage."""
    monkeypatch.setattr("memory.embedded.database.WAIT", 0.05)
    sdk = make_client()
    await sdk.add("anna", content="I have a dog")
    lock = sqlite3.connect(path, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    with pytest.raises(InternalServerError) as caught:
        await sdk.add("anna", content="I have a cat")
    assert caught.value.status_code == 503
    assert await known(sdk) == {"The caller has a dog."}
    lock.rollback()
    lock.close()
    await sdk.add("anna", content="I have a cat")


@pytest.mark.skipif(os.name != "posix", reason="Windows keeps rights in another way")
async def test_only_the_user_can_read_the_file(path: Path, sdk: AsyncSupermemory) -> None:
    """What callers said is private: the folder, the file and those beside it, an older file too."""
    await sdk.add("anna", content="I have a dog")
    beside = [path.with_name(f"{path.name}-{suffix}") for suffix in ("wal", "shm")]
    assert rights(path.parent) == {0o700}
    assert rights(path, *beside) == {0o600}
    os.chmod(path, 0o644)
    await client(path).close()
    assert rights(path) == {0o600}


def test_a_file_that_is_no_memory_is_named_with_a_way_out(path: Path) -> None:
    """A wrong path never overwrites somebody's notes."""
    path.parent.mkdir()
    path.write_text("my notes, which are longer than a header")
    with pytest.raises(
        EmbeddedMemoryError, match="memory.sqlite3' is damaged or no memory file. Move it away"
    ):
        client(path)
    assert stored(path.parent) == b"my notes, which are longer than a header"


async def test_a_damaged_file_is_named_with_a_way_out(path: Path, make_client: MakeClient) -> None:
    """Damage behind the header shows at the first request, once, without retries."""
    sdk = make_client()
    await sdk.add("anna", content="I have a dog")
    await sdk._http_client.aclose()
    scramble(path)
    with pytest.raises(
        EmbeddedMemoryError, match="memory.sqlite3' is damaged or no memory file. Move it away"
    ):
        await make_client().profile("anna")


def test_a_place_that_cannot_hold_a_memory_is_named_with_a_way_out(tmp_path: Path) -> None:
    """A folder, or a file in the place of a folder, is told at construction."""
    (tmp_path / "file").write_text("")
    for place in (tmp_path, tmp_path / "file" / "memory.sqlite3"):
        with pytest.raises(EmbeddedMemoryError, match=r"cannot be written \(.*\)\. Choose another place"):
            client(place)


async def test_a_file_of_a_newer_version_is_left_alone(path: Path, make_client: MakeClient) -> None:
    """An older copy of the module does not guess at a layout that it does not know."""
    os.mkdir(path.parent)
    newer = sqlite3.connect(path)
    newer.execute("PRAGMA user_version = 99")
    newer.execute("CREATE TABLE items (id)")
    newer.close()
    with pytest.raises(EmbeddedMemoryError, match="written by a newer version"):
        await make_client().profile("anna")


async def test_a_folder_deleted_in_use_starts_anew(path: Path, sdk: AsyncSupermemory) -> None:
    """Deleting the memory by hand works while somebody has it open."""
    await sdk.add("anna", content="I have a dog")
    shutil.rmtree(path.parent)
    assert await known(sdk) == set()
    await sdk.add("anna", content="I have a cat")
    assert b"cat" in stored(path.parent)
    assert await known(sdk) == {"The caller has a cat."}


async def test_closing_closes_everything_once(path: Path) -> None:
    """`close` of the shipped client needs no second step; later requests are refused, not retried."""
    sdk = client(path)
    copy = sdk.with_options(max_retries=0)
    await sdk.add("anna", content="I have a dog")
    await copy.close()
    assert await known(sdk) == {"The caller has a dog."}
    await sdk.close()
    await sdk.close()
    assert os.listdir(path.parent) == ["memory.sqlite3"]
    for closed in (sdk, copy):
        with pytest.raises(RuntimeError, match="closed"):
            await closed.profile("anna")


async def test_a_closed_transport_says_so(path: Path) -> None:
    """Also below the client, and after being closed twice at once."""
    transport = EmbeddedTransport(path, vectors=False)
    await asyncio.gather(transport.aclose(), transport.aclose())
    with pytest.raises(RuntimeError, match="The embedded memory is closed"):
        await transport.handle_async_request(httpx.Request("POST", "http://x/ns/anna/profile", json={}))


async def test_closing_waits_for_what_was_asked(path: Path, make_client: MakeClient) -> None:
    """A write that was on its way when the client closed is stored."""
    transport = EmbeddedTransport(path, vectors=False)
    request = httpx.Request("POST", "http://x/ns/anna/document", json={"content": "I have a dog"})
    write = asyncio.ensure_future(transport.handle_async_request(request))
    await asyncio.sleep(0)
    await transport.aclose()
    assert (await write).status_code == 200
    assert await known(make_client()) == {"The caller has a dog."}


async def test_a_cancelled_request_harms_nobody(make_client: MakeClient) -> None:
    """Callers hang up: the next request is answered, whichever of the cancelled ones were carried out."""
    sdk = make_client()
    asked = [asyncio.ensure_future(sdk.add("anna", id=f"{n}", content="I have a dog")) for n in range(20)]
    await asyncio.sleep(0)
    for task in asked[::2]:
        task.cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    documents = (await sdk.list("anna", "documents", limit=100)).documents
    assert {document.id for document in documents} >= {f"{n}" for n in range(1, 20, 2)}


async def test_one_transport_serves_one_loop_after_another(path: Path) -> None:
    """A client that is made in one event loop can be used in the next: no state of a loop is kept."""
    transport = EmbeddedTransport(path, vectors=False)

    async def ask() -> int:
        request = httpx.Request("POST", "http://x/ns/anna/profile", json={})
        return (await transport.handle_async_request(request)).status_code

    assert await asyncio.to_thread(lambda: asyncio.run(ask())) == 200
    assert await ask() == 200
    await transport.aclose()


async def test_work_that_takes_too_long_is_a_read_timeout(path: Path, make_client: MakeClient) -> None:
    """The transport keeps the client's timeout when it is the SQL that waits; the write comes later."""
    patient, hasty = make_client(), make_client(timeout=0.1)
    await patient.profile("anna")
    lock = sqlite3.connect(path, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    with pytest.raises(APITimeoutError):
        await hasty.add("anna", content="I have a dog")
    lock.rollback()
    lock.close()
    await hasty._http_client.aclose()
    assert await known(patient) == {"The caller has a dog."}


async def test_without_the_file_for_vectors_search_is_by_words(tmp_path: Path) -> None:
    """A copy of the folder without `vectors.py`, under another name, still finds what was said."""
    copied = tmp_path / "notes"
    shutil.copytree(ROOT / "memory" / "embedded", copied, ignore=shutil.ignore_patterns("__pycache__"))
    (copied / "vectors.py").unlink()
    script = (
        "import asyncio, sys, notes\n"
        "async def main():\n"
        "    sdk = notes.client(sys.argv[1])\n"
        "    await sdk.add('anna', content='I have a dog')\n"
        "    print((await sdk.search('anna', query='my dog', threshold=0.1)).results[0].memory)\n"
        "    await sdk.close()\n"
        "    print([name for name in ('numpy', 'onnxruntime', 'livekit') if name in sys.modules])\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", script, str(tmp_path / "memory.sqlite3")),
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(30):
        output, _ = await process.communicate()
    assert output.decode().splitlines() == ["The caller has a dog.", "[]"]
