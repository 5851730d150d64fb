"""The README is true: its commands, files and names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from run import JOBS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_first_thirty_lines_say_what_it_is_and_how_to_start_it() -> None:
    """Nobody reads further to find out."""
    head = "\n".join(README.splitlines()[:30])
    assert "python3 run.py " in head
    assert "python3 run.py test" in head
    assert "Supermemory" in head


@pytest.mark.parametrize("document", ["README.md", "memory/README.md", "AGENTS.md"])
def test_files_and_links_that_are_named_exist(document: str) -> None:
    """A renamed file leaves no dead name behind."""
    text = (ROOT / document).read_text()
    here = (ROOT / document).parent
    paths = set(
        re.findall(r"`((?:memory|local|frontend|server|tests|locks)/[\w./-]*|[\w-]+\.(?:py|toml|md))`", text)
    )
    for path in paths | set(re.findall(r"\]\(([^)#:]+)\)", text)):
        assert (ROOT / path).exists() or (here / path).exists(), path
    anchors = {
        re.sub(r"[^\w\s-]", "", title).strip().lower().replace(" ", "-")
        for title in re.findall(r"^#+ (.+)$", text, re.M)
    }
    for anchor in re.findall(r"\]\(#([^)]+)\)", text):
        assert anchor in anchors, anchor


def test_settings_that_are_named_are_in_the_example_file() -> None:
    """What the README tells to set has its line there."""
    known = set(re.findall(r"^#?([A-Z][A-Z0-9_]+)=", (ROOT / ".env.example").read_text(), re.M))
    named = set(re.findall(r"`([A-Z][A-Z]+_[A-Z_]+)(?:=[^`]*)?`", README)) - {"LIVEKIT_"}
    assert named
    assert named <= known


def test_python_in_the_readmes_compiles() -> None:
    """An example that does not parse was never run."""
    for document in ("README.md", "memory/README.md"):
        for code in re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.S):
            compile(f"async def example():\n{_indented(code)}", document, "exec")


def test_jobs_that_are_named_are_jobs_of_run_py() -> None:
    """`python3 run.py something` must not answer that there is no such job."""
    named = set(re.findall(r"python3 run\.py ([a-z]+)", README))
    assert named
    assert named <= set(JOBS)


def _indented(code: str) -> str:
    return "\n".join(f"    {line}" for line in code.splitlines()) + "\n    pass\n"
