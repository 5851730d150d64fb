"""Settings from the environment and from env files."""

from __future__ import annotations

from pathlib import Path

import pytest

import settings


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder without env files, in an environment that has none of our settings."""
    monkeypatch.setattr(settings, "ROOT", tmp_path)
    monkeypatch.setattr(settings, "_unreadable", [])
    for name in ("AGENT_LLM", "AGENT_STT"):
        monkeypatch.setenv(name, "")
    return tmp_path


def test_blank_value_hides_no_other_one(folder: Path) -> None:
    """A copied example file is full of blank lines."""
    (folder / ".env.local").write_text("AGENT_LLM=\nAGENT_STT=local\n")
    (folder / ".env").write_text("AGENT_LLM=from-env\nAGENT_STT=other\n")
    settings.load()
    assert settings.get("AGENT_LLM") == "from-env"
    assert settings.get("AGENT_STT") == "local"


def test_environment_wins_over_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deployment sets what counts."""
    monkeypatch.setenv("AGENT_LLM", "deployed")
    (folder / ".env.local").write_text("AGENT_LLM=local\n")
    settings.load()
    assert settings.get("AGENT_LLM") == "deployed"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_file_of_another_encoding_is_read_or_named(folder: Path, encoding: str) -> None:
    """Windows editors write them."""
    (folder / ".env.local").write_text("AGENT_LLM=model\n# é\n", encoding=encoding)
    settings.load()
    if encoding == "utf-8-sig":
        assert settings.get("AGENT_LLM") == "model"
    else:
        with pytest.raises(settings.SettingsError, match=r"\.env\.local is not UTF-8"):
            settings.get("AGENT_LLM")


@pytest.mark.parametrize("value", ['"quoted"', "two words", "naïve", "line\nbreak", "'x"])
def test_value_that_could_not_be_sent_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """It would fail later, in a less obvious place."""
    monkeypatch.setenv("AGENT_LLM", value)
    with pytest.raises(settings.SettingsError, match="AGENT_LLM"):
        settings.get("AGENT_LLM")


@pytest.mark.parametrize("value", [" model ", "model\n", "\tmodel"])
def test_white_space_round_a_value_is_stripped(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """Copying brings it along."""
    monkeypatch.setenv("AGENT_LLM", value)
    assert settings.get("AGENT_LLM") == "model"


def test_agent_name_is_one_for_all_and_blank_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Agent and token server read it here."""
    monkeypatch.setenv("LIVEKIT_AGENT_NAME", "  ")
    assert settings.agent_name() == settings.DEFAULT_AGENT_NAME
    monkeypatch.setenv("LIVEKIT_AGENT_NAME", " mine ")
    assert settings.agent_name() == "mine"
