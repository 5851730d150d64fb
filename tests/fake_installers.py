"""Stands in for uv, and for a Python that runs pip and uv: makes what they would make, but installs nothing.

Each call is appended to the file that FAKE_LOG names, one JSON object a line. FAKE_FAILS maps a step
(`pip`, `fetch`, `uv`, `venv` or `sync`) to the words it fails with. While the file that FAKE_HOLD names
exists, `sync` does not end.
"""

import json
import os
import sys
import time
import venv
from pathlib import Path


def step_of(words: list[str]) -> str:
    if words[:3] == ["-m", "pip", "--version"]:
        return "pip"
    if words[:3] == ["-m", "pip", "install"]:
        return "fetch"
    if words[:3] == ["-m", "pip", "config"]:
        return "config"
    words = words[2:] if words[:2] == ["-m", "uv"] else words
    return {"--version": "uv", "venv": "venv", "pip": "sync"}[words[0]]


def main(words: list[str]) -> int:
    step = step_of(words)
    with open(os.environ["FAKE_LOG"], "a") as log:
        log.write(json.dumps({"step": step, "words": words, "environment": dict(os.environ)}) + "\n")
    failure = json.loads(os.environ.get("FAKE_FAILS", "{}")).get(step)
    if failure:
        sys.stderr.write(failure + "\n")
        return 1
    if step == "fetch":
        target = Path(words[words.index("--target") + 1])
        (target / "uv-1.2.3.dist-info").mkdir(parents=True)
    elif step == "venv":
        venv.create(words[-1], symlinks=True)
    elif step == "sync":
        while Path(os.environ.get("FAKE_HOLD", "/no/hold")).exists():
            time.sleep(0.01)
    elif step == "config":
        sys.stdout.write(os.environ.get("FAKE_MIRROR", "") + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
