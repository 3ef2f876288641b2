#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the documents still say what the programs do?  check_docs.py CADRE-OPERATOR OTHER-PROGRAM...

Options of programs: --help and the manual page; of the operator also the chart. STATUS words:
operator/reconcile/reason.h, docs/troubleshooting.md and docs/api.md. Dispatch modes: the table in cadre/modes.h, the
pages on calls and the protocol. The walks and the states of a call in docs/architecture.md. make targets and paths in
documents. Links between documents, and headings and sources that comments name. The tests of the tables of failures
and of threats. The answers of the benchmarks' scripts before they build or start anything. Prints TAP.
"""

import fnmatch
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")
# Reasons of other conditions that never become the reason of Ready.
NOT_A_STATUS = {"Valid", "Bound", "InProgress", "NoFailure", "NotSuspended", "MaxRestartsExceeded", "WorkerFailed",
                "FailurePolicy", "DeadlineExceeded", "FellOffTheBus", "GPUsPresent"}
failures = 0
count = 0


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def check(name, problems):
    """`problems` is a list of lines; the case passes when it is empty."""
    global count, failures
    count += 1
    failures += bool(problems)
    print(f"{'not ok' if problems else 'ok'} {count} - {name}")
    for line in problems:
        print(f"# {line}")


def difference(left, right, left_name, right_name):
    return [f"{x} is in {left_name}, not in {right_name}" for x in sorted(left - right)] + [
        f"{x} is in {right_name}, not in {left_name}" for x in sorted(right - left)
    ]


def options_of_help(program):
    """Returns the options of the program and of all its commands. --help lists commands in the place of options."""
    def ask(*words):
        return subprocess.run([program, *words], capture_output=True, text=True, check=True).stdout
    text = ask("--help")
    for command in re.findall(r"^  ([a-z]+)\b", text, re.M):
        text += ask(command, "--help") if command not in ("run", "version") else ""
    return {option for line in re.findall(r"^ +((?:-\w, )?--.*)", text, re.M) for option in OPTION.findall(line)}


def options_of_man(name):
    section = next(n for n in os.listdir(os.path.join(ROOT, "docs/man")) if n.rpartition(".")[0] == name)
    found = set()
    for tag in re.findall(r"^\.TP\n(\..*)$", read(f"docs/man/{section}"), re.M):
        found |= set(OPTION.findall(tag.replace("\\-", "-")))
    return found


def check_options(operator, others):
    for program in [operator, *others]:
        name = os.path.basename(program)
        by_help = options_of_help(program)
        check(f"{name}: --help lists options", [] if len(by_help) > 5 else [f"found only {by_help}"])
        check(f"{name}: --help and the manual page have the same options",
              difference(by_help, options_of_man(name), "--help", "the manual page"))
    by_help = options_of_help(operator)
    chart = os.path.join(ROOT, "charts/cadre/templates")
    by_chart = set()
    for folder, _, files in os.walk(chart):
        for name in set(files) - {"call.yaml"}:  # it belongs to kubectl-cadre
            text = read(os.path.join(folder, name))
            by_chart |= set(re.findall(r"^\s*- --([a-z][a-z-]*)", text, re.M))
    check("the chart passes options", [] if by_chart else ["found none"])
    check("the operator knows all options of the chart", [f"--{x}" for x in sorted(by_chart - by_help)])


def check_reasons():
    header = read("operator/reconcile/reason.h")
    reasons = set(re.findall(r'^#define REASON_\w+ "(\w+)"', header, re.M))
    table = re.search(r"\n\| STATUS \|.*?\n\n", read("docs/troubleshooting.md"), re.S)
    rows = re.findall(r"^\| (`.*?) \|", table[0], re.M) if table else []
    by_table = {word for row in rows for word in re.findall(r"`(\w+)`", row)}
    check("reason.h has reasons", [] if len(reasons) > 10 else [f"found only {reasons}"])
    check(
        "the table of docs/troubleshooting.md explains every STATUS and no other",
        difference(reasons - NOT_A_STATUS | {"Failed"}, by_table, "reason.h", "the table"),
    )
    api = read("docs/api.md")
    check("docs/api.md names every reason", [r for r in sorted(reasons) if f"`{r}`" not in api])


def section(text, heading):
    return text.split(f"\n{heading}\n")[1].split("\n#")[0]


def check_modes():
    """The modes of the table, in the tables, lists and pictures of the documents: all of them, and no others."""
    table, _, execute = read("sdk/c/include/cadre/modes.h").partition("#define CADRE_EXECUTE_MODES(X)")
    rows = re.findall(r"^    X\((\w+), (\d+), (\w+), \w+, \w+, (\w+)\)", table, re.M)
    modes = [row[:2] for row in rows]
    executes = re.findall(r"^    X\((\w+), (\d+)\)", execute, re.M)
    check("modes.h has modes", [] if len(modes) > 5 and len(executes) > 2 else [f"found only {modes} {executes}"])

    def has(where, text, pattern):
        found = (pattern(name, name.lower().replace("_", "-"), number) for name, number in modes)
        check(f"{where} every dispatch mode", [f"no {p}" for p in found if not re.search(p, text, re.M)])

    calls, protocol, manual = read("docs/calls.md"), read("docs/protocol.md"), read("docs/man/kubectl-cadre.1")
    tables = section(protocol, "### Calls").split("| execute | |")

    def same(where, found, want):
        check(f"{where} the modes of modes.h", difference({" ".join(m) for m in want}, set(found), "modes.h", "there"))

    numbered = r"^\| ([1-9]\d*) \| (\w+) \|"
    same("docs/protocol.md numbers", (f"{name} {n}" for n, name in re.findall(numbered, tables[0], re.M)), modes)
    same("docs/protocol.md numbers as execute modes", (f"{name} {n}" for n, name in re.findall(numbered, tables[1], re.M)), executes)
    same("docs/protocol.md says as in modes.h what comes of", (
        f"{name} {'LIST' if result.startswith('a list') else 'JOINED'}"
        for _, name, result in re.findall(numbered + r"[^|]*\| ([^|]*) \|", tables[0], re.M) if name != "SPLIT"),
        [(name, result) for name, _, rule, result in rows if rule != "custom"])
    cells = re.findall(r"^\| ([\w, ]+) \|", section(protocol, "### Pieces").partition("| dispatch |")[2], re.M)
    same("docs/protocol.md splits for", re.findall(r"\w+", ", ".join(cells)), [(name,) for name, _ in modes])
    for option, names in (("dispatch", [name for name, _ in modes]), ("execute", [name for name, _ in executes])):
        text = manual.partition(f'.BI \\-\\-{option} " MODE"\n')[2].partition(".TP")[0]
        same(f"the manual page lists for --{option}", re.findall(r"^\.BR? ([\w-]+)(?: [,.])?$", text, re.M),
             [(name.lower().replace("_", "-"),) for name in names])
    has("docs/calls.md lists", calls, lambda name, small, n: rf"^\| `ALL` \|[^|]*`{name}`")
    has("docs/calls.md draws", section(calls, "### Pictures"), lambda name, small, n: rf"\b{name}\b")


def documents():
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()
    return [n for n in names if os.path.exists(os.path.join(ROOT, n))]


def anchors(text):
    """The anchors that GitHub makes of headings."""
    for heading in re.findall(r"^#+ (.+)$", text, re.M):
        yield re.sub(r"[^\w -]", "", heading.replace("`", "").lower()).replace(" ", "-")


def broken_links(name, text):
    text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
        full = os.path.join(ROOT, file)
        if not os.path.exists(full):
            yield f"{name}: {target}: there is no {file}"
        elif anchor and anchor not in anchors(read(file)):
            yield f"{name}: {target}: {file} has no such heading"


def tree():
    """All files of the tree, and the folders that they are in."""
    names = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"],
                           cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    paths = {n for n in names if n and os.path.exists(os.path.join(ROOT, n))}
    for path in list(paths):
        while "/" in path:
            path = path.rpartition("/")[0]
            paths.add(path)
    return paths


def missing_paths(name, text, paths):
    """Yields paths in backticks that are not in the tree, if their first folder is in it or in operator/. A word in
    capitals stands for any, and a module may be named without its suffix."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    for word in (w for quoted in re.findall(r"`([^`\n]+)`", text) for w in quoted.split()):
        if not re.fullmatch(r"\.?[\w-]+(/[\w.*-]+)+/?", word):
            continue
        top = word.split("/")[0]
        base = next((b for b in ("", "operator/") if b + top in paths), None)
        if base is None:
            continue
        pattern = base + re.sub(r"\b[A-Z]{2,}\b(?!\.md)|(?<=_)[A-Z]{2,}", "*", word.rstrip("/"))
        if not any(fnmatch.filter(paths, pattern + suffix) for suffix in ("", ".c", ".h")):
            yield f"{name}: {word} is not in the tree"


def missing_sources(name, text, paths):
    """Yields paths to sources that comments name and that are not in the tree."""
    comments = r"//.*" if name.endswith((".c", ".h")) else r'(?<!\S)#.*|"""(?:[^"]|"(?!""))*"""'
    for comment in re.findall(comments, text):
        for word in re.findall(r"(?<![\w./$<-])[\w-]+(?:/[\w-]+)+\.(?:c|h|py|sh|md)\b", comment):
            if word.split("/")[0] in paths and word not in paths:
                yield f"{name}: {word} is not in the tree"


def unknown_targets(name, text, targets):
    for target in re.findall(r"(?:`|^ *|\$ )make ([a-z][a-z-]*)\b", text, re.M):
        if target not in targets:
            yield f"{name}: make {target}: the Makefile has no such target"


def missing_headings(name, text):
    """Comments name a section as docs/PAGE.md, "Heading"."""
    text = re.sub(r"\n\s*(?://|#) ?", " ", text)
    for page, heading in re.findall(r'(docs/[\w/-]+\.md), "([^"]+)"', text):
        if not re.search(rf"^#+ {re.escape(heading)}$", read(page), re.M):
            yield f"{name}: {page} has no heading {heading!r}"


def check_documents():
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), re.M))
    names = documents()
    check("there are documents", [] if "README.md" in names else [str(names)])
    check("links lead somewhere", [p for n in names for p in broken_links(n, read(n))])
    paths = tree()
    gone = "`operator/none.c`, `docs/NONE/none.md`, `runtime/none`; `operator/main.c`, `kube/watch`, `tests/unit/operator/kube/test_NAME.c`"
    check("a path that is not in the tree is found", [] if len(list(missing_paths("", gone, paths))) == 3 else [gone])
    check("paths in backticks are in the tree", [p for n in names for p in missing_paths(n, read(n), paths)])
    sources = [n for n in sorted(paths) if re.search(r"\.(?:[ch]|py|sh)$", n) and not n.startswith(("tests/docs/", "tests/lint/"))]
    gone = '# See operator/none.c, operator/main.c and none/none.c.\nx = "operator/none.h"\n"""Of tests/none.py."""'
    check("a source that is not in the tree is found", [] if len(list(missing_sources("", gone, paths))) == 2 else [gone])
    check("sources that comments name are in the tree", [p for n in sources for p in missing_sources(n, read(n), paths)])
    check("headings that comments name exist", [p for n in sources for p in missing_headings(n, read(n))])
    check("make targets exist", [p for n in names for p in unknown_targets(n, read(n), targets)])
    check(
        "every decision is listed in docs/adr/README.md",
        [n for n in names if re.match(r"docs/adr/\d", n) and f"({os.path.basename(n)})" not in read("docs/adr/README.md")],
    )


def check_architecture():
    """The two walks name at most twelve files each, which exist. The picture has the states and the arrows of a call
    that the code has, and no others; a new call is its beginning, and each state may lead to its end."""
    text, paths = read("docs/architecture.md"), tree()
    for walk in ("## A pod in twelve files", "## A call in twelve files"):
        files = re.findall(r"^\| `([\w/]+\.c)` \|", section(text, walk), re.M)
        check(f"docs/architecture.md: {walk[3:]}", ([] if 6 < len(files) <= 12 else [f"{len(files)} files"]) +
              [f"no {f}" for f in files if f not in paths])
    picture = re.sub(r":.*", "", text.partition("stateDiagram-v2\n")[2].partition("```")[0])
    drawn = set(re.findall(r"\w+", picture))
    states = {state.capitalize() for state in re.findall(r"^    CALL_(\w+),", re.search(
        r"enum call_state \{.*?\};", read("operator/proxy/call.h"), re.S)[0], re.M)} - {"New"}
    check("docs/architecture.md draws every state of a call", difference(states, drawn, "call.h", "the picture"))
    rows = re.findall(r"\[CALL_(\w+)\] = (.*?),", read("operator/proxy/call.c"))
    arrows = {f"{now.capitalize()} to {next.capitalize()}" for now, to in rows for next in re.findall(r"TO\((\w+)\)", to)}
    drawn = {f"{now.replace('[*]', 'New')} to {next}" for now, next in re.findall(r"(\S+) --> (\w+)", picture)}
    drawn = {arrow for arrow in drawn if not arrow.endswith("Answered")}
    check("docs/architecture.md draws every arrow between them", difference(arrows, drawn, "call.c", "the picture"))


def answers_at_once(script):
    """Its manual, and a refusal: with no compiler and no cluster to be found."""
    for argument, code in (("--help", 0), ("--no-such-option", 2)):
        command = [os.path.join(ROOT, script), argument]
        r = subprocess.run(command, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "HOME": "/"}, timeout=30)
        if r.returncode != code or (script if code == 0 else "no option") not in r.stdout + r.stderr:
            yield f"{script} {argument}: exit code {r.returncode}: {(r.stdout + r.stderr)[-300:]}"


def check_outages():
    """The last column of the table of failures: tests that there are. Names alone are outages of the suite of that name."""
    section = read("docs/lifecycle.md").partition("## What fails and what goes on")[2].partition("\n## ")[0]
    suite = set(re.findall(r"^taken (\w+)", read("tests/e2e/test_outages.sh"), re.M))
    cells = [line.rstrip("|").rpartition("|")[2] for line in section.splitlines() if line.startswith("| ")][1:]
    named = set()
    problems = [f"no test: {cell}" for cell in cells if "`" not in cell]
    for cell in cells:
        words = re.findall(r"`([^`]+)`", cell)
        files = "".join(read(w) for w in words if "/" in w)
        names = [w for w in words if "/" not in w]
        problems += [f"no {w}" for w in names if w not in (files or suite)]
        named |= set(names)
    check("each failure that docs/lifecycle.md lists has a test", problems)
    check("each outage of the suite is in docs/lifecycle.md", sorted(suite - named))


def check_threats():
    """The last column of the table of threats."""
    there = {name.partition(".")[0] for _, _, names in os.walk(os.path.join(ROOT, "tests")) for name in names}
    check("each test that SECURITY.md names exists", sorted(set(re.findall(r"`(test_\w+)`", read("SECURITY.md"))) - there))


def check_benchmarks():
    bench = os.path.join(ROOT, "bench")
    scripts = [f"bench/{n}/run.sh" for n in sorted(os.listdir(bench)) if os.path.exists(f"{bench}/{n}/run.sh")]
    check("there are benchmarks", [] if len(scripts) > 5 else [str(scripts)])
    check("benchmarks tell of their options at once", [p for s in scripts for p in answers_at_once(s)])


def main():
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    check_options(sys.argv[1], sys.argv[2:])
    check_reasons()
    check_modes()
    check_documents()
    check_architecture()
    check_outages()
    check_threats()
    check_benchmarks()
    print(f"1..{count}")
    return failures != 0


sys.exit(main())
