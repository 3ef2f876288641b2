#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the test cases of a ctest run from its JUnit file.

    summary.py FILE         names what failed and what was skipped, and closes with "N passed, N failed, N skipped"
    summary.py --self-test

A ctest test is one CMocka binary or one TAP suite with many cases, which are what is counted. A test whose output has
neither is one case. A test that failed without a failed case (a crash, a time-out, a sanitizer) adds one failed case.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree

CMOCKA = re.compile(r"^\[\s+(PASSED|FAILED|SKIPPED)\s+\] (\d+) test\(s\)", re.M)
TAP = re.compile(r"^(not ok|ok) \d+(?: -)? ?(.*)$", re.M)
TAP_SKIP = re.compile(r"(.*?)\s*# SKIP\b\s*(.*)", re.I)


def cases(output):
    """The counts [passed, failed, skipped] that the output tells of, and the lines about failed and skipped ones."""
    counts = {"PASSED": 0, "FAILED": 0, "SKIPPED": 0}
    failed, skipped = [], []
    for word, number in CMOCKA.findall(output):
        counts[word] += int(number)
    for word, name in TAP.findall(output):
        skip = TAP_SKIP.match(name)
        if word == "not ok":
            counts["FAILED"] += 1
            failed.append(name)
        elif skip:
            counts["SKIPPED"] += 1
            skipped.append(f"{skip[1]} ({skip[2]})")
        else:
            counts["PASSED"] += 1
    return list(counts.values()), failed, skipped


def read_test(test):
    """One <testcase>: its counts and its lines."""
    name, status = test.get("name"), test.get("status")
    output = test.findtext("system-out") or ""
    if status in ("disabled", "notrun"):
        if test.find("skipped") is None:
            return [0, 1, 0], [f"{name}: did not run"], []
        reason = re.search(r"# SKIP (.*)", output)
        return [0, 0, 1], [], [f"{name}" + (f": {reason[1]}" if reason else "")]
    counts, failed, skipped = cases(output)
    if status == "fail" and counts[1] == 0:
        counts[1] += 1
        failed.append("failed as a whole")
    elif sum(counts) == 0:
        counts[0] = 1
    return counts, [f"{name}: {line}" for line in failed] or [name] * (counts[1] > 0), [f"{name}: {s}" for s in skipped]


def summary(root):
    total, failed, skipped = [0, 0, 0], [], []
    for test in root.iter("testcase"):
        counts, bad, left = read_test(test)
        total = [a + b for a, b in zip(total, counts)]
        failed += bad
        skipped += left
    lines = [f"failed   {line}" for line in failed] + [f"skipped  {line}" for line in skipped]
    return lines + ["{} passed, {} failed, {} skipped".format(*total)], total


SELF_TEST = [  # status, <skipped>, output, counts
    ("run", False, "[  PASSED  ] 3 test(s).\n", [3, 0, 0]),
    ("run", False, "[  PASSED  ] 1 test(s).\n[  SKIPPED ] 2 test(s), listed below:\n[  PASSED  ] 4 test(s).\n", [5, 0, 2]),
    ("fail", False, "[  PASSED  ] 2 test(s).\n[  FAILED  ] 1 test(s), listed below:\n", [2, 1, 0]),
    ("run", False, "ok 1 - a\nok 2 - b # SKIP no root\n1..2\n", [1, 0, 1]),
    ("fail", False, "ok 1 - a\nnot ok 2 - b\n# why\n1..2\n", [1, 1, 0]),
    ("fail", False, "ok 1 - a\nBail out!\n", [1, 1, 0]),
    ("fail", False, "AddressSanitizer: heap-use-after-free\n", [0, 1, 0]),
    ("run", False, "okay, nothing found\n", [1, 0, 0]),
    ("run", False, "", [1, 0, 0]),
    ("notrun", True, "1..0 # SKIP needs root\n", [0, 0, 1]),
    ("notrun", False, "", [0, 1, 0]),
]


def self_test():
    wrong = 0
    for number, (status, skip, output, want) in enumerate(SELF_TEST, 1):
        suite = ElementTree.Element("testsuite")
        test = ElementTree.SubElement(suite, "testcase", name="t", status=status)
        ElementTree.SubElement(test, "system-out").text = output
        if skip:
            ElementTree.SubElement(test, "skipped", message="SKIP_RETURN_CODE=77")
        lines, got = summary(suite)
        good = got == want and any(line.startswith("failed") for line in lines) == (want[1] > 0)
        wrong += not good
        print("ok" if good else "not ok", number, "- case", number, "" if good else f"gives {got}, not {want}")
    return wrong != 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        root = ElementTree.parse(sys.argv[1]).getroot()
    except (OSError, ElementTree.ParseError) as err:
        print(f"summary: {sys.argv[1]}: {err}")
        print("0 passed, 1 failed, 0 skipped")
        return 1
    lines, total = summary(root)
    print("\n".join(lines))
    return total[1] != 0


sys.exit(main())
