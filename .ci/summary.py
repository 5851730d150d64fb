"""Closes a run of all tests: names what was skipped, and says how many passed.

Run with: python .ci/summary.py tests.xml
Exit status 1 when a test failed, 2 when one was skipped: there, everything that a test may miss is installed.
"""

import sys
import xml.etree.ElementTree as ElementTree


def main(path: str) -> int:
    cases = list(ElementTree.parse(path).iter("testcase"))
    skipped = [
        (case, found)
        for case in cases
        if (found := case.find("skipped")) is not None and found.get("type") != "pytest.xfail"
    ]
    for case, found in skipped:
        sys.stdout.write(f"SKIPPED {case.get('classname')}.{case.get('name')}: {found.get('message')}\n")
    failed = sum(case.find("failure") is not None or case.find("error") is not None for case in cases)
    failed += len(skipped)
    sys.stdout.write(f"{len(cases) - failed} passed, {failed} failed\n")
    return 2 if skipped else 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
