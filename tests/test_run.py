"""run.py, with pip and uv played by `fake_installers.py`; and once for real, with nothing but Python."""

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
DEADLINE = 20.0

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the stand-ins for pip and uv are POSIX scripts")

JOB = """
import json, os, sys, time
print(json.dumps({"argv": sys.argv[1:], "prefix": sys.prefix, "cwd": os.getcwd(), "pid": os.getpid(),
                  "environment": dict(os.environ)}), flush=True)
if "--wait" in sys.argv:
    time.sleep(60)
sys.exit(7)
"""

# Puts the stand-in in the place of the Python that runs run.py, as far as run.py can see.
LAUNCH = """
import os, runpy, sys
script, fake, *sys.argv[1:] = sys.argv[1:]
sys.argv[0] = script
os.environ.update(PYTHONHOME=os.environ.pop("LATER_PYTHONHOME", ""))
sys.executable = sys._base_executable = fake
runpy.run_path(script, run_name="__main__")
"""


@dataclass
class Machine:
    """A project with run.py and little else, on a machine whose pip and uv are stand-ins."""

    folder: Path
    project: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def stamp(self) -> Path:
        return self.project / ".venv" / ".installed"

    def start(self, *arguments: str, cwd: Path | None = None, **environment: str) -> subprocess.Popen[str]:
        env = {
            "PATH": str(self.folder / "bin"),
            "FAKE_LOG": str(self.folder / "log"),
            "HOME": str(self.folder),
        }
        return subprocess.Popen(
            [
                sys.executable,
                "-c",
                LAUNCH,
                str(self.project / "run.py"),
                str(self.folder / "python"),
                *arguments,
            ],
            env={**env, **self.environment, **environment},
            cwd=cwd or self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
        )

    def run(self, *arguments: str, **options: Any) -> tuple[int, str, str]:
        """Exit status, standard output and standard error of one `run.py`."""
        process = self.start(*arguments, **options)
        out, err = process.communicate(timeout=DEADLINE)
        return process.returncode, out, err

    def talk(self, *arguments: str, **options: Any) -> dict[str, Any]:
        """What the job saw of the world; fails unless it ran."""
        status, out, err = self.run(*arguments, **options)
        assert status == 7, err
        seen: dict[str, Any] = json.loads(out)
        return seen

    def steps(self) -> list[str]:
        """The steps taken since the last look, without the mere questions."""
        return [call["step"] for call in self.calls() if call["step"] in ("fetch", "venv", "sync")]

    def calls(self) -> list[dict[str, Any]]:
        log = self.folder / "log"
        calls = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        log.unlink(missing_ok=True)
        return calls

    def add_uv(self) -> None:
        shutil.copy(self.folder / "python", self.folder / "bin" / "uv")


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.01)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    folder = tmp_path / "a machine"
    project = folder / "the project"
    for directory in (folder / "bin", project / "locks", project / "local"):
        directory.mkdir(parents=True)
    fake = folder / "python"
    fake.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT / "tests" / "fake_installers.py"}" "$@"\n')
    fake.chmod(0o755)
    shutil.copy(ROOT / "run.py", project)
    for name in ("run", "test", "voice", "browser"):
        (project / "locks" / f"{name}.txt").write_text(f"a-package==1.0\n# {name}\n")
    (project / "locks" / "uv.txt").write_text("uv==1.2.3\n")
    (project / "local" / "__init__.py").touch()
    for job in ("chat", "__main__"):
        (project / "local" / f"{job}.py").write_text(JOB)
    (project / "pytest.py").write_text(JOB)
    return Machine(folder, project)


def test_a_new_machine_goes_from_nothing_to_the_job(machine: Machine) -> None:
    """The first run fetches uv, makes the environment, installs, and starts the chat without a question."""
    status, out, err = machine.run("--caller", "anna")
    seen = json.loads(out)
    assert status == 7
    assert machine.steps() == ["fetch", "venv", "sync"]
    assert seen["argv"] == ["--caller", "anna"]
    assert seen["prefix"] == str(machine.project / ".venv")
    assert seen["cwd"] == str(machine.project)
    assert "Installing 1 packages" in err


def test_nothing_is_installed_twice(machine: Machine) -> None:
    """When nothing changed, the second run calls neither pip nor uv and says nothing."""
    machine.run()
    machine.calls()
    status, _, err = machine.run()
    assert (status, err, machine.calls()) == (7, "", [])


def test_a_uv_on_path_is_used(machine: Machine) -> None:
    """Whoever has uv already does not get another."""
    machine.add_uv()
    machine.talk()
    assert machine.steps() == ["venv", "sync"]
    assert not (machine.project / ".uv").exists()


def test_a_uv_on_path_that_does_not_run_is_passed_over(machine: Machine) -> None:
    """A version manager's shim without a version behind it counts as no uv."""
    machine.add_uv()
    machine.talk(FAKE_FAILS=json.dumps({"uv": "no version is set"}))
    assert machine.steps() == ["fetch", "venv", "sync"]


def test_uv_is_fetched_anew_when_its_pin_moves(machine: Machine) -> None:
    """The fetched uv is the one that the lock names, also after an upgrade."""
    (machine.project / ".uv" / "uv-1.0.0.dist-info").mkdir(parents=True)
    machine.talk()
    assert [path.name for path in (machine.project / ".uv").iterdir()] == ["uv-1.2.3.dist-info"]


def test_each_job_gets_its_set_and_a_larger_one_is_left_alone(machine: Machine) -> None:
    """Going back from the tests to the chat does not take the tests' packages away."""
    for job, name in (("chat", "run"), ("test", "test"), ("web", "voice"), ("slow", "browser")):
        machine.talk(job)
        [sync] = [call for call in machine.calls() if call["step"] == "sync"]
        assert sync["words"][-1].endswith(f"{name}.txt")
        assert "--require-hashes" in sync["words"]
    for job in ("chat", "test", "web"):
        machine.talk(job)
    assert machine.calls() == []


def test_a_changed_lock_updates_the_set_that_is_there(machine: Machine) -> None:
    """After a pull, the environment of the larger set is brought up to date, not shrunk to the job's."""
    machine.talk("slow")
    machine.calls()
    (machine.project / "locks" / "browser.txt").write_text("a-package==2.0\n")
    machine.talk("chat")
    [sync] = [call for call in machine.calls() if call["step"] in ("venv", "sync")]
    assert sync["words"][-1].endswith("browser.txt")


def test_the_jobs_arguments_are_its_own(machine: Machine) -> None:
    """Whatever follows the job goes to it unread, help flags included."""
    assert machine.talk("test", "-q", "--help", "tests")["argv"] == ["-q", "--help", "tests"]
    assert machine.talk("slow", "-x")["argv"] == ["-m", "slow", "-x"]


def test_an_unknown_job_names_the_known_ones(machine: Machine) -> None:
    """A typo costs one line and installs nothing."""
    status, _, err = machine.run("wbe")
    assert status == 2
    assert err == "There is no job 'wbe'. The jobs are chat, web, test, slow.\n"
    assert machine.calls() == []


def test_help_installs_nothing(machine: Machine) -> None:
    """A look at what there is costs nothing."""
    status, out, _ = machine.run("--help")
    assert status == 0
    assert "web    talk in the browser" in out
    assert machine.calls() == []


@pytest.mark.parametrize(
    ("fails", "says"),
    [
        (
            {"pip": "No module named pip"},
            "has no pip. Install it (Debian and Ubuntu: `sudo apt install python3-pip`",
        ),
        ({"fetch": "ERROR: something odd"}, "pip could not fetch uv."),
        ({"fetch": "Temporary failure in name resolution: connection broken"}, "Is this machine online?"),
        ({"fetch": "ERROR: No matching distribution found for uv"}, "PIP_INDEX_URL"),
        ({"venv": "error: No interpreter found"}, "install a newer Python and run this again"),
        ({"sync": "error: failed to lookup address information"}, "Is this machine online?"),
        ({"sync": "error: No space left on device"}, "uv could not install the packages"),
    ],
)
def test_a_failed_step_ends_in_a_sentence(machine: Machine, fails: dict[str, str], says: str) -> None:
    """Each way to fail shows the tool's own last words, says what to do, and is no traceback."""
    status, out, err = machine.run(FAKE_FAILS=json.dumps(fails))
    assert (status, out) == (1, "")
    assert says in err
    assert "Traceback" not in err
    if "pip" not in fails:
        assert f"    {next(iter(fails.values()))}\n" in err
    machine.calls()
    machine.talk()  # and the next run makes it good


def test_a_folder_that_cannot_be_written_is_named(machine: Machine) -> None:
    """Where no file can be made the sentence says which, and what to do."""
    (machine.project / ".run.lock").mkdir()  # stands in for a read-only folder, which root could write to
    status, _, err = machine.run()
    assert status == 1
    assert ".run.lock" in err
    assert "copy it to yours" in err


def test_an_installed_project_runs_from_a_folder_that_cannot_be_written(machine: Machine) -> None:
    """Once everything is there, starting a job writes nothing."""
    machine.talk()
    (machine.project / ".run.lock").unlink()
    (machine.project / ".run.lock").mkdir()
    machine.talk()


def test_a_killed_installation_is_made_anew(machine: Machine) -> None:
    """Packages that are there only in part are not taken for whole ones."""
    hold = machine.folder / "hold"
    hold.touch()
    first = machine.start("test", FAKE_HOLD=str(hold))
    until(lambda: machine.stamp.exists() and "sync" in (machine.folder / "log").read_text())
    (machine.project / ".venv" / "half-a-package").touch()
    first.kill()
    first.communicate(timeout=DEADLINE)
    hold.unlink()
    machine.calls()
    machine.talk("chat")
    assert machine.steps() == ["venv", "sync"]
    assert not (machine.project / ".venv" / "half-a-package").exists()


@pytest.mark.parametrize("broken", ["no python", "not an environment", "python gone"])
def test_a_broken_environment_is_made_anew(machine: Machine, broken: str) -> None:
    """A folder that is no environment, or one whose Python was removed, is replaced, never installed into."""
    machine.talk()
    python = machine.project / ".venv" / "bin" / "python"
    if broken == "no python":
        shutil.rmtree(python.parent)
    elif broken == "not an environment":
        (machine.project / ".venv" / "pyvenv.cfg").unlink()
        machine.stamp.unlink()
    else:
        python.unlink()
        python.symlink_to("/no/such/python")
    machine.calls()
    machine.talk()
    assert machine.steps() == ["venv", "sync"]


def test_an_environment_of_uv_run_is_kept(machine: Machine) -> None:
    """What plain uv made is synchronised and stamped, not thrown away."""
    machine.talk()
    machine.stamp.unlink()
    machine.calls()
    machine.talk()
    assert machine.steps() == ["sync"]


def test_an_environment_that_something_else_changed_is_synchronised(machine: Machine) -> None:
    """After `uv sync` or a stray `pip install` the job gets the versions of the lock again."""
    machine.talk()
    machine.calls()
    [site_packages] = (machine.project / ".venv").glob("lib/python3*/site-packages")
    (site_packages / "foreign").mkdir()
    before = site_packages.stat().st_mtime - 1  # whatever the resolution of this file system's clock
    os.utime(machine.stamp, (before, before))
    _, _, err = machine.run()
    assert machine.steps() == ["sync"]
    assert "Bringing 1 packages up to date" in err
    machine.talk()
    assert machine.calls() == []


def test_two_at_once_install_once(machine: Machine) -> None:
    """The second run waits for the first, says so, and finds everything done."""
    hold = machine.folder / "hold"
    hold.touch()
    first = machine.start(FAKE_HOLD=str(hold))
    until(lambda: machine.stamp.exists())
    second = machine.start(FAKE_HOLD=str(hold))
    assert second.stderr is not None
    assert second.stderr.readline() == "Another run.py is installing; waiting for it…\n"
    hold.unlink()
    assert [process.wait(timeout=DEADLINE) for process in (first, second)] == [7, 7]
    for process in (first, second):
        process.communicate()
    assert machine.steps() == ["fetch", "venv", "sync"]


def test_after_a_kill_the_next_run_waits_for_the_orphaned_uv(machine: Machine) -> None:
    """A uv that outlived its run.py is not joined by a second one in the same environment."""
    hold = machine.folder / "hold"
    hold.touch()
    first = machine.start(FAKE_HOLD=str(hold))
    until(lambda: machine.stamp.exists() and "sync" in (machine.folder / "log").read_text())
    first.kill()
    second = machine.start(FAKE_HOLD=str(hold))
    assert second.stderr is not None
    assert second.stderr.readline() == "Another run.py is installing; waiting for it…\n"
    hold.unlink()
    second.communicate(timeout=DEADLINE)
    assert second.returncode == 7
    first.communicate()


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopping_an_installation_stops_uv(machine: Machine, sent: int, status: int) -> None:
    """Neither Ctrl-C nor a supervisor leaves a uv behind, and the next run goes on."""
    hold = machine.folder / "hold"
    hold.touch()
    process = machine.start(FAKE_HOLD=str(hold))
    until(lambda: machine.stamp.exists() and "sync" in (machine.folder / "log").read_text())
    process.send_signal(sent)
    _, err = process.communicate(timeout=DEADLINE)  # returns only when uv has let go of the pipe, too
    assert process.returncode == status
    assert "Traceback" not in err
    hold.unlink()
    machine.talk()


def test_the_job_takes_the_place_of_run_py(machine: Machine) -> None:
    """Signals reach the job, and its end is what the caller of run.py sees."""
    process = machine.start("chat", "--wait")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["pid"] == process.pid
    process.terminate()
    process.communicate(timeout=DEADLINE)
    assert process.returncode == -signal.SIGTERM


def test_what_bends_python_does_not_reach_the_job_or_the_installers(machine: Machine) -> None:
    """Settings made for another Python, another environment or another uv stay outside."""
    bends = {
        "PYTHONPATH": "/elsewhere",
        "LATER_PYTHONHOME": "/elsewhere",
        "VIRTUAL_ENV": "/elsewhere",
        "UV_SYSTEM_PYTHON": "1",
        "UV_PYTHON": "3.8",
        "__PYVENV_LAUNCHER__": "/elsewhere",
    }
    status, out, err = machine.run(**bends, PIP_USER="1", PIP_REQUIRE_VIRTUALENV="1", KEPT="yes")
    assert status == 7, err
    seen = json.loads(out)["environment"]
    assert seen["KEPT"] == "yes"
    assert seen["VIRTUAL_ENV"] == str(machine.project / ".venv")
    assert seen["PATH"].split(os.pathsep)[0] == str(machine.project / ".venv" / "bin")
    assert not {"PYTHONPATH", "PYTHONHOME", "UV_SYSTEM_PYTHON", "UV_PYTHON", "__PYVENV_LAUNCHER__"} & set(
        seen
    )
    for call in machine.calls():
        given = call["environment"]
        assert "/elsewhere" not in given.values()
        if call["step"] == "fetch":
            assert (given["PIP_USER"], given["PIP_REQUIRE_VIRTUALENV"]) == ("0", "0")


def test_the_mirror_that_pip_uses_serves_uv_too(machine: Machine) -> None:
    """Behind a company's package index, the one setting that people have made is enough."""
    machine.talk(FAKE_MIRROR="https://packages.example/simple")
    [sync] = [call for call in machine.calls() if call["step"] == "sync"]
    assert sync["environment"]["UV_DEFAULT_INDEX"] == "https://packages.example/simple"


def test_it_is_written_for_python_3_8() -> None:
    """An old Python reads the file far enough to fetch uv, which finds a newer one."""
    ast.parse((ROOT / "run.py").read_text(), feature_version=(3, 8))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_machine_with_only_python_and_pip_gets_to_the_tests(tmp_path: Path) -> None:
    """A copy of the tree in a folder with a blank in its name, and a PATH with nothing but python3."""
    copy, tools = tmp_path / "a copy", tmp_path / "tools"
    tools.mkdir()
    (tools / "python3").symlink_to(getattr(sys, "_base_executable", sys.executable))
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
    environment = {**os.environ, "PATH": str(tools)}
    answer = subprocess.run(
        [tools / "python3", copy / "run.py", "test", "-q", "tests/test_repository.py"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "Fetching uv" in answer.stderr
    assert (copy / ".venv" / ".installed").read_text().startswith("test ")
