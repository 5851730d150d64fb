"""The terminal chat as a person or a script runs it: a process, lines in, lines out."""

from __future__ import annotations

import getpass
import io
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from livekit.agents import APIConnectionError, APIStatusError

import settings
from local import chat
from local.chat_text import lost_lines, what_failed
from local.memory_log import MemoryLog
from local.terminal import Terminal, shown
from memory import MemoryStore, embedded

ROOT = Path(__file__).resolve().parents[2]
START = "import sys, local.models as m; m.OLLAMA = 'http://127.0.0.1:9'; from local.chat import main; main()"
VENDORS = ("LIVEKIT_", "OPENAI_", "AGENT_", "SUPERMEMORY_", "LOCAL_")


def environment(memory_dir: Path, **values: str) -> dict[str, str]:
    """This machine without anybody's keys: a developer's `.env.local` must not reach a test."""
    known = [line.split("=")[0].lstrip("# ") for line in (ROOT / ".env.example").read_text().splitlines()]
    blank = {name: "" for name in known if name.startswith(VENDORS)}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(VENDORS)}
    return {**inherited, **blank, "MEMORY_DIR": str(memory_dir), "PYTHONIOENCODING": "utf-8", **values}


def tell(process: subprocess.Popen[str], *lines: str) -> None:
    assert process.stdin is not None
    process.stdin.write("".join(f"{line}\n" for line in lines))
    process.stdin.flush()


def heard(process: subprocess.Popen[str], text: str) -> str:
    """What the chat writes up to the line with `text`."""
    assert process.stdout is not None
    output = ""
    while text not in output:
        line = process.stdout.readline()
        assert line, output
        output += line
    return output


def ended(process: subprocess.Popen[str], *, before: str = "") -> str:
    """The whole output, `before` included; a chat ends well and says nothing on standard error."""
    out, errors = process.communicate(timeout=100)
    assert (process.returncode, errors) == (0, ""), before + out
    return before + out


def after(output: str, line: str) -> str:
    """What the chat wrote between `line`, which the caller entered, and the caller's next line."""
    _, _, rest = output.partition(f"you    {line}\n")
    assert rest or output.endswith(f"you    {line}\n"), output
    return rest.split("\nyou    ")[0]


@dataclass(frozen=True)
class Story:
    """Calls over one memory, each hung up in another way: Anna's three, and one of Bob's, whose
    machine it is too. And a call in which neither memory nor model work."""

    first: str
    second: str
    third: str
    bob: str
    unlucky: str
    place: Path


class Chats:
    """Chat processes over one memory."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._started: list[subprocess.Popen[str]] = []

    def start(self, *arguments: str, **values: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", START, *arguments],
            cwd=ROOT,
            env=environment(self.place, **values),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self._started.append(process)
        return process

    def close(self) -> None:
        for process in self._started:
            process.kill()
            process.communicate()


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chats]:
    chats = Chats(tmp_path_factory.mktemp("memory"))
    yield chats
    chats.close()


@pytest.fixture(scope="module")
def story(chats: Chats) -> Story:
    start = chats.start
    unlucky = start("--caller", "console", OPENAI_BASE_URL="http://127.0.0.1:9/v1", OPENAI_MODEL="absent")
    first = start("--caller", "anna")
    tell(unlucky, "one", "two", "three", "four", "five", "/memory", "/help")
    tell(
        first,
        "My name is Anna. I'm vegetarian and I live in Lisbon.",
        "Remember that my cat is called Miso.",
        "/pause",
        "/pause",
        "I hate mint.",
        "/RESUME",
        "I play the oboe.",
        "/whatever",
        "I collect stamps but please don't save that.",
        "I love opera.",
    )
    first_said, unlucky_said = ended(first), ended(unlucky)

    second, bob = start("--caller", "anna"), start("--caller", "bob")
    tell(
        second,
        "What should I cook tonight?",
        "What is my cat's name?",
        "/memory",
        "/forget vegetarian",
        "no",
        "/forget oboe",
        "/pause",
        "/resume",
        "/forget Lisbon",
        "yes please",
        "Where do I live?",
        "/forget cat",
        "What is my name?",
        "/Quit now",
        "This line comes after the call.",
    )
    tell(bob, "What do you know about me?", "/memory", "/forget Lisbon", "I live in Porto.")
    bob_said = heard(bob, "Noted: you live in Porto.")
    bob.send_signal(signal.SIGTERM)
    bob_said, second_said = ended(bob, before=bob_said), ended(second)

    third = start("--caller", "anna")
    tell(third, "Where do I live?", "What do you know about me?", "/memory", "I was born in Oslo.")
    third_said = heard(third, "Noted: you were born in Oslo.")
    third.send_signal(signal.SIGINT)
    third_said = ended(third, before=third_said)
    return Story(first_said, second_said, third_said, bob_said, unlucky_said, chats.place)


pytestmark = pytest.mark.timeout(300)


def test_it_opens_with_the_memory_the_model_and_lines_to_try(story: Story) -> None:
    """A newcomer reads what answers them, where it is kept and what to type, before anything else."""
    opening = story.first.split("agent  ")[0]
    assert "You are anna." in opening
    assert "memory.sqlite3" in opening
    assert "The demo model answers" in opening
    assert "I'm vegetarian and I live in Lisbon." in opening
    assert "What should I cook tonight?" in opening


def test_what_was_said_in_one_call_is_known_in_the_next(story: Story) -> None:
    """The heart of it all: another process, another day, and the caller is remembered."""
    assert "I know nothing about you yet" in story.first
    assert "Hello Anna, good to hear from you again." in story.second
    assert "you are vegetarian" in after(story.second, "What should I cook tonight?")
    assert "your cat is called Miso" in after(story.second, "What is my cat's name?")


def test_memory_at_work_is_shown(story: Story) -> None:
    """What was recalled, with the wait it cost, what was saved, what was forgotten and what was kept."""
    assert "· saved: The caller's cat is called Miso" in after(
        story.first, "Remember that my cat is called Miso."
    )
    assert "· recalled" in after(story.second, "What should I cook tonight?")
    assert " ms: " in after(story.second, "What should I cook tonight?")
    assert "· forgotten: " in after(story.second, "yes please")
    assert "· kept from this call: " in story.first
    assert "Hung up." in story.first.splitlines()[-1]


def test_the_memory_is_listed_as_prose(story: Story) -> None:
    """A sentence for each fact, with its age in words and no id."""
    listed = after(story.second, "/memory")
    assert "- The caller's cat is called Miso" in listed
    assert "lives in Lisbon" in listed
    assert "just now" in listed or "minutes ago" in listed
    assert "lk-" not in listed


def test_what_was_said_while_paused_is_not_kept(story: Story) -> None:
    """Off the record is off the record; before and after it everything is kept."""
    assert "Paused" in after(story.first, "/pause")
    assert "mint" not in story.second + story.third
    assert "oboe" in after(story.second, "/memory")


def test_a_wish_within_a_message_keeps_it_out_of_the_memory(story: Story) -> None:
    """The model has the tool for it, and the message that holds the wish is itself not kept."""
    wish = "I collect stamps but please don't save that."
    assert "From here on nothing is stored" in after(story.first, wish)
    assert "Noted" not in after(story.first, "I love opera.")
    assert "stamps" not in story.first.split(wish)[1] + story.second + story.third
    assert "opera" not in story.first.split("I love opera.")[1] + story.second + story.third


def test_a_second_pause_says_that_it_is_one(story: Story) -> None:
    """Nothing happens, and nothing is claimed to."""
    assert "It is paused already" in story.first.split("you    /pause\n")[2]
    assert "Remembering again" in after(story.first, "/RESUME")


def test_what_is_no_answer_to_the_question_is_a_line_of_its_own(story: Story) -> None:
    """It forgets nothing, and it is answered."""
    said = after(story.second, "What is my name?")
    assert said.startswith("Nothing was forgotten.\n")
    assert "agent  You are Anna." in said
    assert "Miso" in after(story.third, "/memory")


async def test_forgetting_all_erases_the_memory_after_a_yes(chats: Chats) -> None:
    """Everything goes, the running call's knowledge with it; before a yes nothing does."""
    client = embedded.client(chats.place / "memory.sqlite3")
    await MemoryStore(client).remember("eva", "The caller plays the harp.", {})
    chat_with_eva = chats.start("--caller", "eva")
    tell(
        chat_with_eva,
        "/forget all",
        "no",
        "/memory",
        "I live in Boston.",
        "/forget everything",
        "OK.",
        "/memory",
        "What do I play?",
    )
    said = ended(chat_with_eva)
    assert "harp" in said.split("you    /memory\n")[1]
    assert "is erased" in after(said, "OK.")
    assert "harp" not in said.split("is erased")[1]
    assert await MemoryStore(client).facts("eva") == []
    await client.close()


@pytest.mark.parametrize("name", ["", "  ", "an\nna", "an\x1b[2Jna"])
def test_a_name_that_is_none_is_refused_with_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Blank, of several lines, or with what moves the cursor."""
    monkeypatch.setattr(settings, "load", lambda: None)
    monkeypatch.setattr(sys, "argv", ["chat", "--caller", name])
    for stream in ("stdout", "stderr"):
        monkeypatch.setattr(sys, stream, io.TextIOWrapper(io.BytesIO()))
    with pytest.raises(SystemExit, match="--caller NAME") as ended_with:
        chat.main()
    assert "\n" not in str(ended_with.value.code)
    assert "\x1b" not in str(ended_with.value.code)


def test_lines_that_were_lost_are_counted_in_the_chat_s_own_words() -> None:
    """The log's hint at its summary, which nobody sees in a chat, is not passed on."""
    out = io.StringIO()
    log = MemoryLog(Terminal(out))
    lost = "memory could not store a part of this call; the summary says how many lines"
    for level, message, extra in (
        (logging.WARNING, lost, {}),
        (logging.WARNING, "memory is off", {}),
        (logging.INFO, "memory of this call", {"lines_stored": 3, "lines_lost": 1}),
    ):
        log.emit(logging.makeLogRecord({"levelno": level, "msg": message, **extra}))
    assert out.getvalue() == "Memory is off.\n"
    assert lost_lines(log.lines_stored, log.lines_lost) == (
        "Hung up. 1 line of this call could not be stored; 3 lines could."
    )


def test_a_signal_while_the_call_is_being_stored_ends_it_with_a_sentence(chats: Chats) -> None:
    """With the service away storing takes a minute; whoever does not wait gets no traceback."""
    away = {"SUPERMEMORY_API_KEY": "sm_test", "SUPERMEMORY_BASE_URL": "http://127.0.0.1:9"}
    process = chats.start("--caller", "anna", **away)
    tell(process, "I love opera.", "/quit")
    said = heard(process, "Storing what was said takes a while.")
    process.send_signal(signal.SIGTERM)
    out, errors = process.communicate(timeout=60)
    assert "Hung up before all that was said could be stored." in out, said + out
    assert (process.returncode, errors) == (143, "")


def test_forgetting_asks_first_and_takes_no_for_an_answer(story: Story) -> None:
    """Only a yes on the next line forgets; a command there means no, and is carried out."""
    assert "Nothing that is remembered matches 'Lisbon'." in after(story.bob, "/forget Lisbon")
    assert "yes or no" in after(story.second, "/forget vegetarian")
    assert after(story.second, "no") == "Nothing was forgotten."
    assert after(story.second, "/pause").startswith("Nothing was forgotten.\nPaused")
    assert "vegetarian" in after(story.third, "/memory")
    assert "oboe" in after(story.third, "/memory")


def test_what_was_forgotten_leaves_the_memory(story: Story) -> None:
    """It is shown, confirmed, said to be forgotten, and not listed in the next call; the rest stays."""
    assert "- The caller lives in Lisbon." in after(story.second, "/forget Lisbon")
    assert "· forgotten: The caller lives in Lisbon" in after(story.second, "yes please")
    assert "Lisbon" not in after(story.third, "/memory")
    assert "Anna" in after(story.third, "/memory")


def test_what_was_forgotten_is_not_recalled_again(story: Story) -> None:
    """Neither later in the same call nor in the next one does recall bring it back in other words."""
    assert "Lisbon" not in after(story.second, "Where do I live?")
    assert "Lisbon" not in story.third.split("agent  ", 1)[1]


def test_another_caller_knows_nothing_of_it(story: Story) -> None:
    """Two people at one machine have two memories."""
    assert "Nothing yet" in after(story.bob, "What do you know about me?")
    assert "Nothing is remembered about you yet." in after(story.bob, "/memory")
    for word in ("Anna", "Miso", "vegetarian", "oboe"):
        assert word not in story.bob.split("agent  ", 1)[1]


def test_an_unknown_command_shows_the_commands(story: Story) -> None:
    """A slip of the finger is not sent to the model."""
    shown_help = after(story.first, "/whatever")
    assert "There is no command /whatever." in shown_help
    for command in ("/memory", "/forget", "/pause", "/resume", "/quit"):
        assert command in shown_help


def test_quitting_ends_the_call_before_the_lines_that_follow(story: Story) -> None:
    """`/quit` in a script is the end of it."""
    assert "This line comes after the call." not in story.second


async def test_an_interrupted_call_is_stored(story: Story) -> None:
    """Ctrl-C and SIGTERM are ways to hang up like any other: the last words are kept, the end is clean."""
    client = embedded.client(story.place / "memory.sqlite3")
    store = MemoryStore(client)
    anna, bob = await store.facts("anna"), await store.facts("bob")
    await client.close()
    assert "Hung up." in story.third.splitlines()[-1]
    assert "Hung up." in story.bob.splitlines()[-1]
    assert any("Oslo" in fact.text for fact in anna)
    assert any("Porto" in fact.text for fact in bob)


def test_a_model_that_is_away_does_not_end_the_chat(story: Story) -> None:
    """Each failed reply is a sentence, however many there are; a session by itself ends after four."""
    assert "absent answers, at http://127.0.0.1:9/v1." in story.unlucky
    assert "could not be reached" in after(story.unlucky, "five")
    assert "/pause" in after(story.unlucky, "/help")
    assert "Traceback" not in story.unlucky


def test_a_name_that_many_share_has_no_memory_and_the_chat_says_so(story: Story) -> None:
    """`console` is nobody in particular; the way out is named at the start and when memory is asked for."""
    assert "Memory is off: 'console'" in story.unlucky.split("you    ")[0]
    assert "--caller NAME" in after(story.unlucky, "/memory")
    assert "nothing was kept" in story.unlucky.splitlines()[-1]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OPENAI_API_KEY", '"sk-quoted"'),
        ("SUPERMEMORY_BASE_URL", "http://127.0.0.1:6767"),
        ("MEMORY_DIR", os.devnull),
    ],
)
def test_a_broken_setting_ends_it_with_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, value: str
) -> None:
    """The setting is named before any call begins."""
    for known, blank in environment(tmp_path, **{name: value}).items():
        monkeypatch.setenv(known, blank)
    monkeypatch.setattr(sys, "argv", ["chat", "--caller", "anna"])
    for stream in ("stdout", "stderr"):
        monkeypatch.setattr(sys, stream, io.TextIOWrapper(io.BytesIO()))
    with pytest.raises(SystemExit) as ended_with:
        chat.main()
    assert name in str(ended_with.value.code)
    assert "\n" not in str(ended_with.value.code)


def test_help_is_there_at_once(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """`--help` explains the one option; an unknown one is refused with the usage."""
    monkeypatch.setattr(sys, "argv", ["chat", "--help"])
    with pytest.raises(SystemExit) as ended:
        chat.main()
    assert ended.value.code == 0
    assert "--caller NAME" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["chat", "--nonsense"])
    with pytest.raises(SystemExit) as ended:
        chat.main()
    assert ended.value.code == 2


def test_a_system_without_users_is_told_to_name_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """In some containers the user has no name."""

    def nobody() -> str:
        raise OSError("No username set in the environment")

    monkeypatch.setattr(getpass, "getuser", nobody)
    monkeypatch.setattr(settings, "load", lambda: None)
    monkeypatch.setattr(sys, "argv", ["chat"])
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, io.TextIOWrapper(io.BytesIO()))
    with pytest.raises(SystemExit, match="--caller NAME"):
        chat.main()


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (401, "Check its key."),
        (404, "Check the name of the model"),
        (429, "over its limit"),
        (503, "Try again"),
    ],
)
def test_a_failed_reply_is_explained_without_the_service_s_words(status: int, advice: str) -> None:
    """The status decides the advice, also when it was retried; a body that echoes the prompt stays out."""
    refused = APIStatusError("You said: my secret", status_code=status, body={"prompt": "my secret"})
    given_up = APIConnectionError("failed after 2 attempts")
    given_up.__cause__ = refused
    for error in (refused, given_up):
        assert advice in what_failed(error)
        assert f"({status})" in what_failed(error)
        assert "secret" not in what_failed(error)


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_text_cannot_take_over_the_terminal() -> None:
    """Escape sequences and direction overrides in what a model or a memory says are not passed on."""
    assert shown("\x1b]0;owned\x07\x1b[2Jred\x9b31m \u202edlrow\rover\n") == "]0;owned[2Jred31m dlrow over\n"
    assert shown("naïve 日本語 👩\u200d💻 می\u200cخواهم") == "naïve 日本語 👩\u200d💻 می\u200cخواهم"


def test_colour_is_for_screens_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe, NO_COLOR and a dumb terminal get plain text."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    written = {}
    for name, out in (("screen", Screen()), ("pipe", io.StringIO())):
        Terminal(out).line("hello", "1")
        written[name] = out.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    plain = Screen()
    Terminal(plain).line("hello", "1")
    assert written == {"screen": "\x1b[1mhello\x1b[0m\n", "pipe": "hello\n"}
    assert plain.getvalue() == "hello\n"


def test_a_note_does_not_tear_a_reply_or_a_prompt_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Something saved in the background gets a line of its own, and the prompt comes back below it."""
    monkeypatch.setenv("NO_COLOR", "1")
    out = Screen()
    terminal = Terminal(out)
    terminal.stream("Hel")
    terminal.note("saved: x")
    terminal.stream("lo")
    terminal.prompt()
    terminal.note("saved: y")
    terminal.unprompt()
    assert out.getvalue() == (
        "agent  Hel\n       · saved: x\nagent  lo\nyou    \r\x1b[K       · saved: y\nyou    \n"
    )
