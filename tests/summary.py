#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the test cases of a ctest run from its JUnit file.

    summary.py FILE [AGAIN]  names what failed and what was skipped, and closes with "N passed, N failed, N skipped"
    summary.py --self-test

A ctest test is one CMocka binary or one TAP suite with many cases, which are what is counted. A test whose output has
neither is one case. A test that failed without a failed case (a crash, a time-out, a sanitizer) adds one failed case.

AGAIN is of a second run of what failed. A test that passes there counts as passed, is named as unsteady, and its cases
that failed at first are counted at the end: "N of the passed at the second try". What a sanitizer has found stays a
failure. Only leaks are not a finding where an assertion of CMocka failed, because the test then frees nothing.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree

CMOCKA = re.compile(r"^\[\s+(PASSED|FAILED|SKIPPED)\s+\] (\d+) test\(s\)", re.M)
CMOCKA_SKIP = re.compile(r"^\[\s+SKIPPED \] (\w+)$", re.M)
TAP = re.compile(r"^(not ok|ok) \d+(?: -)? ?(.*)$", re.M)
CMOCKA_FAILURE = re.compile(r"^\[\s+FAILED\s+\] ", re.M)
FINDING = re.compile(r"ERROR: libFuzzer|ERROR: AddressSanitizer|AddressSanitizer CHECK failed|ThreadSanitizer: |:\d+:\d+: runtime error: ")
LEAK = "ERROR: LeakSanitizer"
TAP_SKIP = re.compile(r"(.*?)\s*# SKIP\b\s*(.*)", re.I)


def cases(output):
    """The counts [passed, failed, skipped] that the output tells of, and the lines about failed and skipped ones."""
    counts = {"PASSED": 0, "FAILED": 0, "SKIPPED": 0}
    failed, skipped = [], list(dict.fromkeys(CMOCKA_SKIP.findall(output)))  # each is said twice
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


def may_pass_later(test):
    """Whether a second try can make up for this failure."""
    output = test.findtext("system-out") or ""
    leaks = LEAK in output and not CMOCKA_FAILURE.search(output)
    return test.get("status") == "fail" and not leaks and not FINDING.search(output)


def summary(root, again=None):
    total, failed, skipped, unsteady, second_try = [0, 0, 0], [], [], [], 0
    passed_again = {t.get("name"): t for t in again.iter("testcase") if t.get("status") == "run"} if again is not None else {}
    for test in root.iter("testcase"):
        counts, bad, left = read_test(test)
        if test.get("name") in passed_again and may_pass_later(test):
            unsteady.append(test.get("name"))
            second_try += counts[1]
            counts, bad, left = read_test(passed_again[test.get("name")])
        total = [a + b for a, b in zip(total, counts)]
        failed += bad
        skipped += left
    lines = [f"failed   {line}" for line in failed] + [f"skipped  {line}" for line in skipped]
    lines += [f"unsteady {name}: failed at first, passed when run again" for name in unsteady]
    closing = "{} passed, {} failed, {} skipped".format(*total)
    return lines + [closing + (f", {second_try} of the passed at the second try" if unsteady else "")], total


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

ASSERTION = "[  PASSED  ] 2 test(s).\n[  FAILED  ] 1 test(s), listed below:\n[  FAILED  ] a\n"
SELF_TEST_AGAIN = [  # the first output of a test that failed, what the second run made of it, the closing line
    (ASSERTION, ("run", "[  PASSED  ] 3 test(s).\n"), "3 passed, 0 failed, 0 skipped, 1 of the passed at the second try"),
    ("not ok 1 - a\nnot ok 2 - b\n", ("run", "ok 1 - a\nok 2 - b\n"),
     "2 passed, 0 failed, 0 skipped, 2 of the passed at the second try"),
    ("", ("run", ""), "1 passed, 0 failed, 0 skipped, 1 of the passed at the second try"),
    (ASSERTION, ("fail", "[  PASSED  ] 1 test(s).\n[  FAILED  ] 2 test(s)\n"), "2 passed, 1 failed, 0 skipped"),
    (ASSERTION, ("notrun", ""), "2 passed, 1 failed, 0 skipped"),
    (ASSERTION, None, "2 passed, 1 failed, 0 skipped"),
    (ASSERTION + "==1==ERROR: LeakSanitizer: detected memory leaks\nSUMMARY: AddressSanitizer: 9 byte(s) leaked\n",
     ("run", "[  PASSED  ] 3 test(s).\n"), "3 passed, 0 failed, 0 skipped, 1 of the passed at the second try"),
    ("[  PASSED  ] 3 test(s).\n==1==ERROR: LeakSanitizer: detected memory leaks\n",
     ("run", "[  PASSED  ] 3 test(s).\n"), "3 passed, 1 failed, 0 skipped"),
    (ASSERTION + "==1==ERROR: AddressSanitizer: heap-use-after-free\n", ("run", "[  PASSED  ] 3 test(s).\n"),
     "2 passed, 1 failed, 0 skipped"),
    ("not ok 1 - a\n# ../a.c:3:4: runtime error: signed integer overflow\n", ("run", "ok 1 - a\n"),
     "0 passed, 1 failed, 0 skipped"),
    ("==1== ERROR: libFuzzer: deadly signal\n", ("run", ""), "0 passed, 1 failed, 0 skipped"),
    (ASSERTION + "WARNING: ThreadSanitizer: data race\n", ("run", "[  PASSED  ] 3 test(s).\n"),
     "2 passed, 1 failed, 0 skipped"),
    ("not ok 1 - a\n# panic: runtime error: index out of range\n", ("run", "ok 1 - a\n"),  # of a Go program
     "1 passed, 0 failed, 0 skipped, 1 of the passed at the second try"),
]


def suite_of(status, output, skip=False):
    suite = ElementTree.Element("testsuite")
    test = ElementTree.SubElement(suite, "testcase", name="t", status=status)
    ElementTree.SubElement(test, "system-out").text = output
    if skip:
        ElementTree.SubElement(test, "skipped", message="SKIP_RETURN_CODE=77")
    return suite


def self_test():
    wrong = number = 0

    def case(good, text):
        nonlocal wrong, number
        number += 1
        wrong += not good
        print("ok" if good else "not ok", number, "- case", number, "" if good else text)

    listed = "[  SKIPPED ] a\n[  PASSED  ] 1 test(s).\n[  SKIPPED ] 1 test(s), listed below:\n[  SKIPPED ] a\n"
    lines, _ = summary(suite_of("run", listed))
    case(lines == ["skipped  t: a", "1 passed, 0 failed, 1 skipped"], lines)
    for status, skip, output, want in SELF_TEST:
        lines, got = summary(suite_of(status, output, skip))
        good = got == want and any(line.startswith("failed") for line in lines) == (want[1] > 0)
        case(good, f"gives {got}, not {want}")
    for output, second, want in SELF_TEST_AGAIN:
        lines, got = summary(suite_of("fail", output), suite_of(*second) if second else None)
        unsteady = "unsteady t: failed at first, passed when run again" in lines
        good = lines[-1] == want and any(line.startswith("failed") for line in lines) == (got[1] > 0)
        case(good and unsteady == (got[1] == 0), f"gives {lines}, not {want}")
    return wrong != 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        roots = [ElementTree.parse(name).getroot() for name in sys.argv[1:]]
    except (OSError, ElementTree.ParseError) as err:
        print(f"summary: {' '.join(sys.argv[1:])}: {err}")
        print("0 passed, 1 failed, 0 skipped")
        return 1
    lines, total = summary(*roots)
    print("\n".join(lines))
    return total[1] != 0


sys.exit(main())
