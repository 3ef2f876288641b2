#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/benchmarks/gpu.md out of what test_gpu.sh found: report.py RESULTS... prints it as Markdown.

RESULTS are files of test_gpu.sh --results, of one run or of several parts. A line each, split by tabs:
  machine NAME VALUE                         NAME: gpu, cpu, compiler, version, date
  case PART VERDICT SECONDS NAME [REASON]    VERDICT: passed, failed, skipped
  said PART NAME TEXT                        a line that a failed case printed
  value PART NAME NUMBER...                  what was measured
"""
import sys

PARTS = ["build", "calls", "tensors", "models", "nccl", "trouble"]


def parse(paths):
    machine, cases, said, values = {}, [], {}, {}
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as f:
            for line in f:
                kind, *fields = line.rstrip("\n").split("\t")
                if kind == "machine":
                    known = machine.setdefault(fields[0], [])
                    known += [fields[1]] if fields[1] not in known else []
                elif kind == "case":
                    cases.append((fields + [""])[:5])
                elif kind == "said":
                    said.setdefault(tuple(fields[:2]), []).append(fields[2])
                elif kind == "value":
                    values[fields[1]] = [float(x) for x in fields[2].split()]
    return machine, sorted(cases, key=lambda c: PARTS.index(c[0])), said, values


def value(values, name, place):
    return values[name][place] if len(values.get(name, ())) > place else None


def views_ratio(values):
    device, host, copy = value(values, "views", 0), value(values, "views", 1), value(values, "copy-us", 0)
    return None if device is None or copy is None or not host + copy else device / (host + copy)


def targets(values):
    """(what, measured, unit, target, is it met) of each; measured None = it was not."""
    best = "at least 95 % of the driver's best"
    copies = [("pinned-up", "pinned memory to the GPU", best, 95), ("pinned-down", "the GPU to pinned memory", best, 95),
              ("ipc", "from memory of another process (CUDA IPC)", "at least 90 % of a copy within a process", 90)]
    added = value(values, "nccl", 2)
    yield "what Cadre adds to a call of NCCL", added, "%.2f us", "under 2 us", added is not None and added < 2
    for name, what, target, least in copies:
        ratio = value(values, name, 2)
        percent = None if ratio is None else ratio * 100
        yield what, percent, "%.2f %%", target, ratio is not None and percent >= least
    times = views_ratio(values)
    yield ("a call that takes 1 MiB on the GPU", times, "%.3f times",
           "at most 1.5 times the host's call and the copy", times is not None and times <= 1.5)


def rows(title, lines):
    columns = title.count("|") - 1
    return ["", title, "|" + "---|" * columns, *lines]


def target_lines(values):
    lines = []
    for what, measured, unit, target, met in targets(values):
        verdict = "not measured" if measured is None else "met" if met else "**missed**"
        lines.append(f"| {what} | {'' if measured is None else unit % measured} | {target} | {verdict} |")
    return rows("| | measured | target | verdict |", lines)


def case_lines(cases, said):
    names = {verdict: [c for c in cases if c[1] == verdict] for verdict in ("passed", "failed", "skipped")}
    lines = ["", f"{len(names['passed'])} passed, {len(names['failed'])} failed, {len(names['skipped'])} skipped."]
    lines += rows("| part | case | result | s |",
                  [f"| {part} | {name} | {'**failed**' if verdict == 'failed' else verdict}{': ' + why if why else ''} | {s} |"
                   for part, verdict, s, name, why in cases])
    for part, _, _, name, _ in names["failed"]:
        lines += ["", f"What was printed by \"{name}\" ({part}):", "", "```text", *said.get((part, name), []), "```"]
    return lines


def call_lines(values):
    lines = []
    for name, kind in (("one at a time", "sync"), ("1,000 in flight", "many")):
        pairs = [values.get(f"{where}-{kind}") for where in ("gpu", "host")]
        lines.append(f"| {name} | " + " | ".join("| " if not p else f"{p[0]:.0f} | {p[1]:.0f} us" for p in pairs) + " |")
    first = value(values, "first", 0)
    return [] if "gpu-sync" not in values else ["", "`add` on both ranks, which starts a kernel and reads its result back; beside it the accumulator in host memory:",
            *rows("| | calls/s on the GPU | median | calls/s in host memory | median |", lines),
            *(["", f"From the start of a group of two to its first answer, with the creation of both CUDA contexts: {first:.0f} ms."]
              if first is not None else [])]


def copy_lines(values):
    names = [n for n in ("pinned-up", "pinned-down", "pageable-up", "pageable-down", "ipc") if n in values]
    if not names:
        return []
    lines = [f"| {n} | {values[n][0]:.2f} GB/s | {values[n][1]:.2f} GB/s | {values[n][2]:.3f} |" for n in names]
    return ["", "Copies of 256 MiB, in turns with the driver's own on the same memory; the median of Cadre, and the driver's best:",
            *rows("| | Cadre | driver | ratio |", lines), "",
            "`pageable` goes through Cadre's pinned buffers. `ipc` copies from memory of another process, against a copy within",
            "one process."]


def time_lines(values):
    lines = []
    if "views" in values:
        device, host, kept = values["views"]
        copy = value(values, "copy-us", 0)
        lines += ["", "A call whose method takes a tensor of 1 MiB and waits for it, one at a time, in turns: on the GPU "
                  f"{device:.1f} us, in host", f"memory {host:.1f} us; the copy alone {'not measured' if copy is None else f'{copy:.1f} us'}. "
                  f"With a reference to a tensor that is on the GPU already: {kept:.1f} us."]
    if "nccl" in values:
        raw, cadre, added = values["nccl"]
        lines += ["", f"An all_reduce of 4 bytes on the device with one rank, in turns, each waited for: NCCL itself {raw:.2f} us, Cadre's",
                  f"back end {cadre:.2f} us; the median of the differences is {added:.2f} us."]
    return lines


def report(machine, cases, said, values):
    known = {name: "; ".join(machine.get(name, ["unknown"])) for name in ("date", "version", "cpu", "compiler")}
    return ["# On a GPU", "",
            f"Written by `make test-gpu` on {known['date']}, version {known['version']}: modules through worker host and",
            "proxy on loopback, without Kubernetes.",
            *rows("| GPU | memory | driver |", [f"| {' | '.join(gpu.split(', '))} |" for gpu in machine.get("gpu", [])]), "",
            f"CPU: {known['cpu']}. Compiler: {known['compiler']}.",
            "", "## Targets", *target_lines(values),
            "", "## Cases", *case_lines(cases, said),
            "", "## Measurements", *call_lines(values), *copy_lines(values), *time_lines(values)]


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: report.py RESULTS...")
    print("\n".join(report(*parse(sys.argv[1:]))))
