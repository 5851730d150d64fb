"""The files of the way to the cloud: what they name exists, and nothing private is in them."""

import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCKERFILE = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")


def instructions(keyword: str) -> list[str]:
    return [
        line[len(keyword) :].strip() for line in DOCKERFILE.splitlines() if line.startswith(keyword + " ")
    ]


def ignored() -> list[str]:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_what_the_image_copies_exists() -> None:
    """Each path of a COPY from the build context is in the repository, and not kept out of the context."""
    copied = [words.split()[:-1] for words in instructions("COPY") if not words.startswith("--from")]
    for source in (source for sources in copied for source in sources):
        assert (ROOT / source).exists(), source
        assert source not in ignored()


def test_the_commands_of_the_image_exist() -> None:
    """Default command, second command and compiled files are there under these names."""
    assert instructions("CMD") == ['["python", "agent.py", "start"]']
    assert "python token_server.py" in DOCKERFILE
    compiled = re.search(r"compileall -q (.*)", DOCKERFILE)
    assert compiled
    for name in ("agent.py", "token_server.py", *compiled[1].split()):
        assert list(ROOT.glob(name)), name
        assert name not in ignored()


def test_the_image_installs_by_hash_and_runs_as_a_user() -> None:
    """Both installations check hashes, and everything after the last USER is unprivileged."""
    installs = [run for run in instructions("RUN") if "pip install" in run or "pip sync" in run]
    assert installs
    assert all("--require-hashes" in run for run in installs)
    assert "--uid 10001" in DOCKERFILE
    assert instructions("USER")[-1] == "agent"
    models = DOCKERFILE.index("download-files")
    assert DOCKERFILE.rindex("\nUSER ", 0, models) == DOCKERFILE.index("\nUSER agent")


def test_the_image_looks_after_both_commands() -> None:
    """The health check asks the worker's port and the token server's, as their code has them."""
    from server.config import DEFAULT_PORT

    [check] = instructions("HEALTHCHECK")
    assert "127.0.0.1:8081/" in check
    assert f"127.0.0.1:{DEFAULT_PORT}/healthz" in check
    assert instructions("EXPOSE") == [f"8081 {DEFAULT_PORT}"]


def test_the_image_has_a_python_that_the_locks_know() -> None:
    """Both stages use one Python, within the range of pyproject.toml."""
    versions = set(re.findall(r"FROM python:3\.(\d+)", DOCKERFILE))
    assert len(versions) == 1
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    lowest, below = re.findall(r"3\.(\d+)", asked)
    assert int(lowest) <= int(versions.pop()) < int(below)


@pytest.mark.parametrize("private", [".env", ".env.*", ".git", ".memory", ".venv", ".uv", "tests"])
def test_the_build_context_leaves_out(private: str) -> None:
    """Secrets, callers' words and this machine's environment never leave with the build."""
    assert private in ignored()


def test_ignore_files_suit_the_livekit_cli() -> None:
    """It reads both files line by line as globs and path prefixes: a slash at an end would match nothing."""
    for name in (".gitignore", ".dockerignore"):
        for line in (ROOT / name).read_text().splitlines():
            if line and not line.startswith("#"):
                assert not line.startswith("/"), line
                assert not line.endswith("/"), line
            assert not set(line) & set("[]?{}"), line


def test_livekit_toml_holds_visible_placeholders() -> None:
    """No real project or agent is committed, and whoever forgets to set them sees it in the CLI's message."""
    config = tomllib.loads((ROOT / "livekit.toml").read_text())
    assert config == {
        "project": {"subdomain": "your-project-subdomain"},
        "agent": {"id": "set-by-lk-agent-create"},
    }


def test_the_page_library_is_pinned() -> None:
    """The image, CI and the page's own fallback speak of one version of livekit-client."""
    package = json.loads((ROOT / "frontend" / "package.json").read_text())
    lock = json.loads((ROOT / "frontend" / "package-lock.json").read_text())
    version = package["dependencies"]["livekit-client"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert lock["packages"]["node_modules/livekit-client"]["version"] == version
