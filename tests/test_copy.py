"""The folder `memory/` alone, in somebody else's project and under a name of theirs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MODULE = Path(__file__).parent.parent / "memory"

CALL = '''
import asyncio
import sys

from livekit.agents import Agent, AgentSession, llm

import recollection
from recollection import InputParams, SupermemoryLiveKit
from recollection import embedded


class Parrot(llm.LLM):
    """Answers with all that it was shown."""

    def chat(self, *, chat_ctx, tools=None, conn_options=None, **kwargs):
        return Echo(self, chat_ctx=chat_ctx, tools=tools or [], conn_options=conn_options)


class Echo(llm.LLMStream):
    async def _run(self):
        shown = " | ".join(item.text_content or "" for item in self.chat_ctx.items if item.type == "message")
        delta = llm.ChoiceDelta(role="assistant", content=shown)
        self._event_ch.send_nowait(llm.ChatChunk(id="1", delta=delta))


async def call(words):
    client = embedded.client("theirs.sqlite3")
    memory = SupermemoryLiveKit(client=client, params=InputParams(capture_interval=0.0))
    memory.bind(container_tag="customer-1")
    session = AgentSession(llm=Parrot(), vad=None, turn_handling={"turn_detection": None})
    memory.attach(session)
    await session.start(Agent(instructions="Be brief.", tools=memory.tools()))
    result = await session.run(user_input=words)
    await session.aclose()
    await memory.aclose()
    await client.close()
    return session.history.items[-1].text_content


async def main():
    await call("I am vegetarian")
    shown = await call("What should I cook?")
    assert "caller is vegetarian" in shown, shown
    print("remembered", recollection.__version__)


asyncio.run(main())
'''

WITHOUT_STORE = """
import recollection

memory = recollection.SupermemoryLiveKit(api_key="sm_x", container_tag="customer-1")
assert memory.container_tag == "customer-1" and len(memory.tools()) == 3
print("remembered", recollection.__version__)
"""


def run(folder: Path, script: str) -> str:
    (folder / "theirs.py").write_text(script)
    # Only the packages of this environment: nothing of this project is on the path.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SUPERMEMORY"))
    }
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "theirs.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def copy(folder: Path, *without: str) -> None:
    shutil.copytree(MODULE, folder / "recollection", ignore=shutil.ignore_patterns("__pycache__"))
    for name in without:
        path = folder / "recollection" / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize("without", [(), ("embedded/vectors.py",), ("agent.py", "README.md", "py.typed")])
def test_copy_under_another_name_remembers_in_an_empty_project(
    tmp_path: Path, without: tuple[str, ...]
) -> None:
    """A plain `Agent`, none of our files beside it, optional files deleted."""
    copy(tmp_path, *without)
    assert run(tmp_path, CALL).startswith("remembered")


def test_copy_without_the_embedded_store_works_with_a_key(tmp_path: Path) -> None:
    """Whoever has an account needs no store in a file."""
    copy(tmp_path, "embedded")
    assert run(tmp_path, WITHOUT_STORE).startswith("remembered")


def test_readme_of_the_module_names_what_can_be_deleted() -> None:
    """What these tests delete is what its readers are told."""
    text = (MODULE / "README.md").read_text().split("## What can be left out")[1]
    assert {"`embedded/`", "`embedded/vectors.py`", "`agent.py`"} <= set(text.replace(",", " ").split())


def test_identity_and_store_load_no_agent_framework() -> None:
    """A token server needs both, and starts in a fraction of the time without it."""
    code = (
        "import sys, memory.identity, memory.store, memory.embedded;"
        "from memory import MemoryStore, Fact, InputParams, container_tag_for;"
        "sys.exit('livekit.agents' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=MODULE.parent, timeout=60).returncode == 0


def test_public_names_are_the_contract() -> None:
    """Copies rely on them."""
    import memory

    assert set(memory.__all__) == {
        "Fact",
        "InputParams",
        "MemoryConfigurationError",
        "MemoryEvent",
        "MemoryStore",
        "MemoryStoreError",
        "SupermemoryAgent",
        "SupermemoryLiveKit",
        "__version__",
        "container_tag_for",
    }
    assert all(getattr(memory, name) is not None for name in memory.__all__)
    with pytest.raises(AttributeError):
        memory.something_else  # noqa: B018
