"""What holds for the repository as a whole: its locks, its settings, and who may import what."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
SETS = ("run", "test", "voice", "browser")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


@cache
def files() -> list[Path]:
    """Every file of the repository: what git tracks or would; without git, what is not ignored by name."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        answer = subprocess.run(listing, cwd=ROOT, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return list(_walk())
    found = (ROOT / name for name in answer.stdout.decode().split("\0") if name)
    return [path for path in found if path.is_file()]


def _walk() -> Iterator[Path]:
    lines = (ROOT / ".gitignore").read_text().splitlines()
    patterns = [".git", *(line.split("/")[-1] for line in lines if line and line[0] not in "#!")]

    def kept(names: list[str]) -> list[str]:
        return [n for n in names if n == ".env.example" or not any(fnmatch(n, p) for p in patterns)]

    for folder, folders, names in os.walk(ROOT):
        folders[:] = kept(folders)
        yield from (Path(folder) / name for name in kept(names))


def code(*folders: str) -> list[Path]:
    """The Python files under these folders or of these names, without the tests."""
    wanted = [ROOT / folder for folder in folders]
    return [p for p in files() if p.suffix == ".py" and any(w == p or w in p.parents for w in wanted)]


def product() -> list[Path]:
    left_out = (ROOT / "tests", ROOT / ".ci")
    return [p for p in files() if p.suffix == ".py" and not any(folder in p.parents for folder in left_out)]


def imports(path: Path) -> set[str]:
    """The full names of the modules that a file imports by absolute name, wherever in the file."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names.add(node.module)
    return names


# --- Locks ---------------------------------------------------------------------------------------


def requirements(name: str) -> list[Requirement]:
    """What pyproject.toml asks for in one set, included groups and all."""
    groups = PYPROJECT["dependency-groups"]

    def group(name: str) -> Iterator[str]:
        for entry in groups[name]:
            if isinstance(entry, dict):
                yield from group(entry["include-group"])
            else:
                yield entry

    asked = [*PYPROJECT["project"]["dependencies"], *(() if name == "run" else group(name))]
    return [Requirement(text) for text in asked]


def pins(name: str) -> dict[str, list[Requirement]]:
    """The pinned versions of a lock by package, each with the marker it is for."""
    found: dict[str, list[Requirement]] = {}
    for line in (ROOT / "locks" / f"{name}.txt").read_text().splitlines():
        if line and line[0] not in "# ":
            pin = Requirement(line.rstrip("\\ "))
            found.setdefault(canonicalize_name(pin.name), []).append(pin)
    return found


PLACES = [
    {
        "sys_platform": system,
        "platform_machine": machine,
        "python_full_version": version,
        "python_version": version,
    }
    for system, machine in (
        ("linux", "x86_64"),
        ("linux", "aarch64"),
        ("darwin", "arm64"),
        ("darwin", "x86_64"),
        ("win32", "AMD64"),
    )
    for version in ("3.11", "3.13")
]


def applies(marker: Marker | None, place: dict[str, str]) -> bool:
    return marker is None or marker.evaluate(place)


@pytest.mark.parametrize("name", SETS)
def test_the_lock_pins_what_pyproject_asks_for(name: str) -> None:
    """A dependency that was added or moved without a new lock is found without a network."""
    locked = pins(name)
    for asked in requirements(name):
        for place in PLACES:
            if not applies(asked.marker, place):
                continue
            fitting = [p for p in locked.get(canonicalize_name(asked.name), []) if applies(p.marker, place)]
            assert fitting, f"locks/{name}.txt has no {asked.name} for {place}: run `bash .ci/lock`"
            version = next(iter(fitting[0].specifier)).version
            assert version in asked.specifier, (
                f"locks/{name}.txt has {fitting[0]}, not {asked}: run `bash .ci/lock`"
            )


@pytest.mark.parametrize("name", SETS)
def test_the_lock_holds_no_dependency_that_pyproject_dropped(name: str) -> None:
    """What the lock calls a dependency of the project is one."""
    text = (ROOT / "locks" / f"{name}.txt").read_text()
    ours = re.escape(PYPROJECT["project"]["name"])
    direct = {
        re.split(r"[=\s]", entry)[0]
        for entry in re.split(r"\n(?=[a-z0-9])", text)
        if re.search(rf"#.*{ours} \(pyproject\.toml", entry)
    }
    assert direct == {canonicalize_name(asked.name) for asked in requirements(name)}


def test_each_set_holds_the_one_before() -> None:
    """An environment of a larger set serves the jobs of the smaller ones with the same versions."""
    for smaller, larger in zip(SETS, SETS[1:], strict=False):
        for package, versions in pins(smaller).items():
            assert {str(v) for v in versions} <= {str(v) for v in pins(larger).get(package, [])}, package


@pytest.mark.parametrize("name", [*SETS, "uv"])
def test_locks_name_hashes_and_no_place(name: str) -> None:
    """A lock serves every mirror: hashes say what a package is, and nothing says where it came from."""
    text = (ROOT / "locks" / f"{name}.txt").read_text()
    assert "://" not in text
    assert not re.search(r"^--", text, re.MULTILINE)
    for entry in re.split(r"\n(?=[a-z0-9])", text)[1:]:
        assert "--hash=sha256:" in entry, entry


def test_the_page_lock_names_no_place() -> None:
    """The same for npm's lock: it holds hashes, and no address of a registry."""
    text = (ROOT / "frontend" / "package-lock.json").read_text()
    assert '"integrity"' in text
    assert '"resolved"' not in text


def test_run_py_and_pyproject_agree_on_python() -> None:
    """The Python that run.py looks for is the one that the packages are locked for."""
    source = (ROOT / "run.py").read_text()
    match = re.search(r"PYTHON_FROM, PYTHON_BELOW = (\(.*?\)), .* else (\(.*?\))\n", source)
    assert match
    lowest, below = (".".join(map(str, ast.literal_eval(bound))) for bound in match.groups())
    assert PYPROJECT["project"]["requires-python"] == f">={lowest},<{below}"


# --- Files ---------------------------------------------------------------------------------------


def test_every_python_file_compiles() -> None:
    """Also those that no test imports."""
    for path in files():
        if path.suffix == ".py":
            compile(path.read_text(), str(path), "exec", dont_inherit=True)


def test_no_file_names_the_machine_it_was_written_on() -> None:
    """No path of somebody's home or work folder, and no package index of theirs."""
    place = re.compile(
        r"(?<![\w.])(?:/(?:root|work|workspaces?)/|/home/(?!agent\b)[a-z]|/Users/\w)|index-url ?= ?\S",
        re.IGNORECASE,
    )
    for path in files():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        if path != Path(__file__).resolve():
            assert not (found := place.search(text)), f"{path}: {found[0] if found else ''}"


def test_nothing_is_tracked_that_is_the_cloners_own() -> None:
    """No lock with addresses, no secrets, no memory of a caller; and no Node project at the root."""
    names = {str(path.relative_to(ROOT)) for path in files()}
    assert not names & {"uv.lock", "package.json", "package-lock.json", ".env", ".env.local"}
    assert not [name for name in names if name.startswith((".venv", ".uv", ".memory")) or ".sqlite3" in name]


# --- Settings ------------------------------------------------------------------------------------

# Set by the system or by other programs for their own purposes: no settings of this project.
NOT_OURS = {"PATH", "HOME", "USER", "LOGNAME", "USERNAME", "HTTPS_PROXY", "NO_COLOR", "COLUMNS", "TERM"} | {
    "ORT_DISABLE_TELEMETRY",
    "LIVEKIT_AGENTS_PRELOAD_LOCAL_INFERENCE",
}


def documented() -> list[str]:
    return re.findall(r"^#?([A-Z][A-Z0-9_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE)


def variables_read() -> dict[str, Path]:
    """The names that the product looks up in the environment, each with a file that does."""
    getters = {"get", "path", "switch", "getenv", "setdefault", "pop", "_listed", "_own_inference"}
    found = {}
    for path in product():
        tree = ast.parse(path.read_text())
        constants = {
            target.id: node.value.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            key: ast.expr | None = None
            if isinstance(node, ast.Call) and node.args:
                function = node.func
                name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
                key = node.args[0] if name in getters else None
            elif isinstance(node, ast.Subscript):
                key = node.slice if ast.unparse(node.value).endswith("environ") else None
            value = constants.get(key.id) if isinstance(key, ast.Name) else getattr(key, "value", None)
            if isinstance(value, str) and re.fullmatch(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+", value):
                found[value] = path
    return found


def test_every_variable_that_is_read_is_documented() -> None:
    """Nobody has to read the code to learn what can be set."""
    missing = {name: str(path) for name, path in variables_read().items() if path != ROOT / "run.py"}
    for name in [*documented(), *NOT_OURS]:
        missing.pop(name, None)
    assert not missing


def test_every_documented_variable_is_read() -> None:
    """A line that nothing reads would promise what does not happen."""
    source = "\n".join(path.read_text() for path in product() if path != ROOT / "run.py")
    unread = [name for name in documented() if f'"{name}"' not in source]
    # livekit-agents reads these itself.
    assert set(unread) <= {"LIVEKIT_INFERENCE_API_KEY", "LIVEKIT_INFERENCE_API_SECRET"}


def test_no_variable_is_documented_twice() -> None:
    """One line for each."""
    assert len(documented()) == len(set(documented()))


def test_the_cli_is_asked_only_for_what_has_no_default() -> None:
    """`lk app env` asks for every variable that is not behind a `#`, so only keys stand free."""
    free = re.findall(r"^([A-Z0-9_]+)=(.*)$", (ROOT / ".env.example").read_text(), re.MULTILINE)
    assert free == [
        (name, "") for name in ("LIVEKIT_URL", "LIVEKIT_API_KEY", "LIVEKIT_API_SECRET", "SUPERMEMORY_API_KEY")
    ]


# --- Who imports what ----------------------------------------------------------------------------


def test_memory_imports_three_packages_and_nothing_of_the_template() -> None:
    """Whoever copies the folder must add each further package, and has none of the files beside it."""
    allowed = {"livekit", "supermemory", "httpx", *sys.stdlib_module_names}
    for path in code("memory"):
        foreign = {name.partition(".")[0] for name in imports(path)} - allowed
        optional = {"numpy", "onnxruntime", "tokenizers"} if path.name == "vectors.py" else set()
        assert foreign <= optional, path


def test_supermemory_is_known_in_one_place() -> None:
    """A change of its SDK is met in the store and its double; elsewhere a client is only handed on."""
    for path in product():
        if path == ROOT / "memory" / "store.py" or ROOT / "memory" / "embedded" in path.parents:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert not [alias for alias in node.names if alias.name.partition(".")[0] == "supermemory"], (
                    path
                )
            elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "supermemory":
                assert node.module == "supermemory", path
                assert {alias.name for alias in node.names} == {"AsyncSupermemory"}, path


def test_the_rest_works_without_local() -> None:
    """The agent, the token server and the memory import `local` nowhere at their top level."""
    for path in [ROOT / "agent.py", ROOT / "token_server.py", *code("memory", "server")]:
        for node in ast.parse(path.read_text()).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert not [name for name in names if name.partition(".")[0] == "local"], path
