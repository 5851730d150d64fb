#!/usr/bin/env python3
"""The one door: `python3 run.py [chat|web|test|slow] [arguments for the job]`.

    chat   talk in this terminal (the default)
    web    talk in the browser: LiveKit server, agent, token server and page on this machine
    test   the tests that need no network and nothing installed besides
    slow   the tests that need a LiveKit server, speech models or a browser

It asks nothing and needs only Python with pip. It takes `uv` from PATH, or fetches the pinned one
into `.uv/`; puts the packages that the job needs into `.venv/`, by version and hash as `locks/`
says; and then becomes the job, run from this folder. When nothing changed it only does the last.

It is written for Python 3.8, so that an old machine gets further: uv looks for a Python that the
packages support, or fetches one. Exit status: the job's own; 2 for an unknown job; 1 with a
sentence when the environment could not be made.
"""

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Dict, Iterator, List, NoReturn, Optional

ROOT = Path(__file__).resolve().parent
LOCKS = ROOT / "locks"
UV = ROOT / ".uv"
VENV = ROOT / ".venv"
STAMP = VENV / ".installed"
PAGE = ROOT / "frontend"
WINDOWS = os.name == "nt"
PYTHON = VENV / ("Scripts/python.exe" if WINDOWS else "bin/python")
# Run from an activated environment, perhaps the very one to be replaced, the Python behind it goes on.
BASE_PYTHON = getattr(sys, "_base_executable", None) or sys.executable

SETS = ("run", "test", "voice", "browser")
"""The sets of packages, smallest first; each holds the ones before it."""

JOBS = {
    "chat": ("run", ["-m", "local.chat"]),
    "web": ("voice", ["-m", "local"]),
    "test": ("test", ["-m", "pytest"]),
    "slow": ("browser", ["-m", "pytest", "-m", "slow"]),
}

# The newest onnxruntime for Intel Macs has no wheel for Python 3.14.
INTEL_MAC = sys.platform == "darwin" and os.uname().machine == "x86_64"
PYTHON_FROM, PYTHON_BELOW = (3, 11), (3, 14) if INTEL_MAC else (3, 15)
PYTHON_RANGE = ">={}.{},<{}.{}".format(*PYTHON_FROM, *PYTHON_BELOW)

UV_HOME = "https://docs.astral.sh/uv/"
NO_NETWORK = re.compile(
    r"dns|resolv\w* host|lookup|getaddrinfo|connect|timed? ?out|unreachable|sending request|no matching dist",
    re.I,
)


class Stop(Exception):
    """The job cannot be started; the message tells the person why and what to do."""


def main(arguments: List[str]) -> int:
    if arguments[:1] in (["-h"], ["--help"]):
        print(__doc__)
        return 0
    job, rest = "chat", arguments
    if arguments and not arguments[0].startswith("-"):
        job, rest = arguments[0], arguments[1:]
    if job not in JOBS:
        say(f"There is no job {job!r}. The jobs are {', '.join(JOBS)}.")
        return 2
    needed, command = JOBS[job]
    os.chdir(ROOT)
    try:
        if not is_ready(needed):
            with only_one():
                if not is_ready(needed):
                    install(needed)
        if job in ("web", "slow"):
            install_page()
    except Stop as stop:
        say(str(stop))
        return 1
    except OSError as error:
        say(f"{error}. This needs the whole project, in a folder that can be written: copy it to yours.")
        return 1
    except KeyboardInterrupt:
        say("Stopped. Run it again to go on from here.")
        return 130
    become([str(PYTHON)] + command + rest)


def say(line: str) -> None:
    """Words for the person go to standard error: standard output belongs to the job."""
    print(line, file=sys.stderr, flush=True)


# --- What is installed ---------------------------------------------------------------------------
# The stamp in the environment is "<set> <hash of its lock>", or "<set> unfinished" while uv works:
# an environment whose installation was killed may hold packages that are there only in part. It is
# void once anything else, `uv sync` for one, has put packages in or taken some out since.


def read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def target(needed: str) -> str:
    """The set to have: the one that the job needs, or the larger one that is already there."""
    present = read(STAMP).partition(" ")[0]
    return present if present in SETS and SETS.index(present) > SETS.index(needed) else needed


def is_ready(needed: str) -> bool:
    name = target(needed)
    if not PYTHON.exists() or read(STAMP) != f"{name} {digest(LOCKS / (name + '.txt'))}":
        return False
    return all(folder.stat().st_mtime <= STAMP.stat().st_mtime for folder in site_packages())


def site_packages() -> List[Path]:
    return list(VENV.glob("Lib/site-packages" if WINDOWS else "lib/python3*/site-packages"))


def is_usable() -> bool:
    """Whether `.venv` is an environment of its own, with a Python that the packages support."""
    probe = "import sys; print(sys.prefix != sys.base_prefix and {} <= sys.version_info[:2] < {})".format(
        PYTHON_FROM, PYTHON_BELOW
    )
    try:
        answer = subprocess.run([str(PYTHON), "-c", probe], stdout=subprocess.PIPE, env=environment())
    except OSError:
        return False
    return answer.stdout.strip() == b"True" and not read(STAMP).endswith(" unfinished")


# --- Installing ----------------------------------------------------------------------------------


def install(needed: str) -> None:
    """Makes or updates `.venv`; when this returns, it holds exactly the set that is stamped on it."""
    name = target(needed)
    lockfile = LOCKS / (name + ".txt")
    pins = re.findall(r"^([a-z0-9_.-]+)==", lockfile.read_text(encoding="utf-8"), re.MULTILINE)
    uv = find_uv()
    doing = f"Bringing {len(set(pins))} packages up to date"
    if not is_usable():
        doing = f"Installing {len(set(pins))} packages, about a minute the first time"
        if VENV.exists():
            shutil.rmtree(VENV)
        make = ["venv", "--quiet", "--python", this_python() or PYTHON_RANGE, str(VENV)]
        failed = step("Preparing Python", uv + make)
        if failed:
            raise Stop(
                f"{failed}\nThe packages need Python {PYTHON_RANGE}. This is {sys.version.split()[0]}, and "
                "uv could not use it, find another or fetch one: install a newer Python and run this again."
            )
    STAMP.write_text(f"{name} unfinished", encoding="utf-8")
    sync = ["pip", "sync", "--quiet", "--require-hashes", "--no-build", "--python", str(PYTHON)]
    failed = step(doing, uv + sync + [str(lockfile)])
    if failed:
        raise Stop(explain(failed, "uv could not install the packages"))
    for folder in site_packages():
        (folder / "__pycache__").mkdir(
            exist_ok=True
        )  # else the first import would touch the folder after the stamp
    STAMP.write_text(f"{name} {digest(lockfile)}", encoding="utf-8")


def this_python() -> Optional[str]:
    """The Python that runs this file, where the packages have builds for it."""
    usual = sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
    fits = PYTHON_FROM <= sys.version_info[:2] < PYTHON_BELOW and sys.version_info.releaselevel == "final"
    return BASE_PYTHON if usual and fits else None


def find_uv() -> List[str]:
    """The command for uv: the one on PATH when it runs, else the pinned one, fetched by pip."""
    on_path = shutil.which("uv")
    if on_path and works([on_path, "--version"]):
        return [on_path]
    pinned = re.findall(r"^uv==([0-9.]+)", (LOCKS / "uv.txt").read_text(encoding="utf-8"), re.MULTILINE)[0]
    if not (UV / f"uv-{pinned}.dist-info").is_dir():
        fetch_uv()
    return [BASE_PYTHON, "-m", "uv"]


def fetch_uv() -> None:
    """Lets pip put uv into a folder of ours: this needs no rights and no virtual environment, and
    is allowed where the system's own Python refuses other installations."""
    if sys.version_info < (3, 8):
        raise Stop(
            f"This is Python {sys.version.split()[0]}. Install Python 3.11 or newer and run this with it, or "
            f"install uv ({UV_HOME}), which finds or fetches one."
        )
    pip = next((p for p in (sys.executable, BASE_PYTHON) if works([p, "-m", "pip", "--version"])), None)
    if not pip:
        raise Stop(
            f"This Python ({sys.executable}) has no pip. Install it (Debian and Ubuntu: `sudo apt install "
            f"python3-pip`), or install uv ({UV_HOME}), and run this again."
        )
    # A half-fetched uv must never look like a whole one: it is renamed into place when complete.
    incoming = ROOT / ".uv-incoming"
    for old in (incoming, UV):
        if old.exists():
            shutil.rmtree(old)
    command = [pip, "-m", "pip", "install", "--quiet", "--require-hashes", "--only-binary", ":all:"]
    command += ["--target", str(incoming), "-r", str(LOCKS / "uv.txt")]
    failed = step("Fetching uv, which installs the packages", command)
    if failed:
        advice = f"pip could not fetch uv. You can also install uv yourself ({UV_HOME}); this then uses it"
        raise Stop(explain(failed, advice))
    incoming.rename(UV)


def install_page() -> None:
    """Puts the page's library where the page serves it from; without npm it comes from a CDN."""
    npm, lockfile = shutil.which("npm"), PAGE / "package-lock.json"
    installed = PAGE / "node_modules" / ".package-lock.json"  # npm writes it last
    if not npm or not lockfile.exists():
        return
    if installed.exists() and installed.stat().st_mtime >= lockfile.stat().st_mtime:
        return
    with only_one():
        failed = step("Installing the page's library", [npm, "ci", "--prefix", str(PAGE), "--ignore-scripts"])
    if failed:
        say(f"{failed}\nnpm could not install the page's library, so the browser will fetch it from a CDN.")


def explain(failed: str, what: str) -> str:
    if NO_NETWORK.search(failed):
        return (
            f"{failed}\n{what}. Is this machine online? Behind a proxy set HTTPS_PROXY; for a mirror of the "
            "package index set PIP_INDEX_URL. Then run this again."
        )
    return f"{failed}\n{what}; its last words are above. Run this again when that is mended."


# --- Running things ------------------------------------------------------------------------------


def environment() -> Dict[str, str]:
    """The person's environment without what would bend another Python, pip or uv out of shape."""
    bends = {"PYTHONHOME", "PYTHONPATH", "PYTHONSAFEPATH", "PYTHONEXECUTABLE", "__PYVENV_LAUNCHER__"}
    bends |= {"VIRTUAL_ENV", "UV_PYTHON", "UV_SYSTEM_PYTHON", "PIP_USER", "PIP_TARGET", "PIP_PREFIX"}
    return {name: value for name, value in os.environ.items() if name not in bends}


@lru_cache(maxsize=None)
def mirror() -> str:
    """The package index that pip was told to use; uv does not read pip's configuration."""
    ask = [BASE_PYTHON, "-m", "pip", "config", "get", "global.index-url"]
    answer = subprocess.run(ask, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment())
    return os.environ.get("PIP_INDEX_URL") or answer.stdout.decode("utf-8", "replace").strip()


def works(command: List[str]) -> bool:
    quiet = subprocess.DEVNULL
    try:
        return subprocess.call(command, stdin=quiet, stdout=quiet, stderr=quiet, env=environment()) == 0
    except OSError:
        return False


def step(doing: str, command: List[str]) -> str:
    """Runs one step of the installation; returns nothing, or the last words of a step that failed."""
    env = environment()
    env.update(PIP_REQUIRE_VIRTUALENV="0", PIP_USER="0", PIP_NO_INPUT="1", PIP_DISABLE_PIP_VERSION_CHECK="1")
    if command[1:3] == ["-m", "uv"]:
        env["PYTHONPATH"] = str(UV)
        if mirror():
            env.setdefault("UV_DEFAULT_INDEX", mirror())
    with tempfile.TemporaryFile() as words:
        say(f"{doing}…")
        began = time.monotonic()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=words,
            stderr=words,
            env=env,
            close_fds=WINDOWS,  # elsewhere the lock is inherited, and held until this step has ended
        )
        previous = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        try:
            while process.poll() is None:
                time.sleep(0.05)
                if sys.stderr.isatty():
                    sys.stderr.write(f"\r{time.monotonic() - began:4.0f} s\r")
        finally:
            signal.signal(signal.SIGTERM, previous)
            if process.poll() is None:
                process.terminate()
                process.wait()
        if process.returncode == 0:
            return ""
        words.seek(0)
        said = [
            line for line in words.read().decode("utf-8", "replace").splitlines() if "Retrying" not in line
        ]
        return "\n".join("    " + line for line in said[-8:]) or f"    exit status {process.returncode}"


@contextmanager
def only_one() -> Iterator[None]:
    """Holds `.run.lock`, so that two runs at once do not write into one environment.

    The children of this process hold it too: when this one is killed, the next waits for its uv.
    """
    descriptor = os.open(ROOT / ".run.lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        os.set_inheritable(descriptor, True)
        if not locked(descriptor):
            say("Another run.py is installing; waiting for it…")
            while not locked(descriptor):
                time.sleep(0.2)
        yield
    finally:
        os.close(descriptor)


def locked(descriptor: int) -> bool:
    try:
        if WINDOWS:
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except (BlockingIOError, PermissionError):
        return False


def become(command: List[str]) -> NoReturn:
    """Replaces this process by the job, so that signals and the exit status are the job's own."""
    env = environment()
    env["VIRTUAL_ENV"] = str(VENV)
    env["PATH"] = str(PYTHON.parent) + os.pathsep + env.get("PATH", os.defpath)
    sys.stdout.flush()
    if not WINDOWS:
        os.execve(command[0], command, env)
    job = subprocess.Popen(command, env=env)
    while True:
        try:
            sys.exit(job.wait())
        except KeyboardInterrupt:
            continue  # the job got the same Ctrl-C and decides what it means


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
