#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether main_ppo has got as far on Cadre as on Ray:  equally_far.py LOG_OF_CADRE LOG_OF_RAY

What verl and its workers print on Ray, they must print on Cadre, too, but for times, rates, and names of processes; all
steps must be there, and the end must be the same. What Ray says about itself does not count. Ray may lose the last lines
of a worker, so Cadre may have more.
"""

import re
import sys
from collections import Counter

WHO = re.compile(r"^(?:[\w-]+ \[rank [\d,-]+\]|\((?:\w+ )?pid=\d+(?:, ip=[\d.]+)?\)) ")  # printed it, to Cadre or to Ray
OF_RAY = re.compile(r"^TIME\t[A-Z]+ \w+\.py:\d+ -- |^\((raylet|gcs_server|autoscaler)\b")
UNHANDLED = "Unhandled error (suppress with 'RAY_IGNORE_UNHANDLED_ERRORS=1')"  # of Ray, with a traceback
IN_TRACEBACK = re.compile(r"^(\s|\w+(\.\w+)*: |The above exception|During handling|ray::|$)")
DIFFERS = [(re.compile(r" \[repeated \d+x across cluster\].*$"), ""), (re.compile(r"^.*\r"), ""),
           (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}"), "TIME"), (re.compile(r"\bPID: \d+"), "PID"),
           (re.compile(r"\d\d:\d\d(?=[<,])"), "TIME"), (re.compile(r"(\?|\d+(\.\d+)?) ?(it|examples)/s"), "RATE"),
           (re.compile(r"/tmp/main-ppo-\w+"), "FOLDER"), (re.compile(r"0x[0-9a-f]+"), "ADDRESS")]
DIGITS = re.compile(r"\d+")
END = "main_ppo stops at: "
# The lines that it prints about the steps that it has done.
STEPS = ["All configuration checks passed successfully", "dataset len: 16", "Size of train dataloader: 4", "Total training steps: 2",
         "colocated worker base class", "Platform override from VERL_PLATFORM: cpu", "Loading weights: 100%",
         "Qwen2ForCausalLM contains", "Before FSDP", "After FSDP", "Total steps: 2, num_warmup_steps: 0", END]


def lines_of(path):
    """The lines of verl, in their order."""
    lines, unhandled = [], False
    with open(path, encoding="utf-8", errors="replace", newline="\n") as f:
        for line in f:
            line = WHO.sub("", re.sub(r"\x1b\[[0-9;]*m", "", line.rstrip("\n")))
            for what, instead in DIFFERS:
                line = what.sub(instead, line)
            unhandled = line.startswith(UNHANDLED) or unhandled and bool(IN_TRACEBACK.match(line))
            if line.strip() and not unhandled and not OF_RAY.match(line):
                lines.append(line.rstrip())
    return lines


def squeezed(line):
    return "".join(line.split())


def consists_of(text, pieces):
    """Whether pieces, one after the other, make up the text. The pieces are without digits: Ray takes pieces that differ only
    in numbers for the same.
    """
    text = DIGITS.sub("", text)
    ends = {0}
    for at in range(len(text)):
        if at in ends:
            ends.update(at + len(piece) for piece in pieces if text.startswith(piece, at))
    return len(text) in ends


def is_piece(text, line, pieces):
    """Whether Ray has cut the line into the text and other pieces."""
    starts = (at for at in range(len(line)) if line.startswith(text, at))
    return any(consists_of(line[:at], pieces) and consists_of(line[at + len(text):], pieces) for at in starts)


def only_on_ray(cadre, ray):
    """Ray prints a line in pieces if it reads the log of a worker while that writes, and may leave out a piece that it has
    printed before. So a piece is good if Ray has printed its line as a whole less often than Cadre, and all other pieces of
    the line somewhere. A line may come several times, and Ray may print only one of them in pieces.
    """
    whole, on_ray = Counter(map(squeezed, cadre)), Counter(map(squeezed, ray))
    in_pieces = [text for text, n in whole.items() if on_ray[text] < n]
    pieces = {DIGITS.sub("", text) for text in on_ray} - {""}
    for line in dict.fromkeys(ray):
        text = squeezed(line)
        halfway = "RATE" in line and "100%" not in line
        if not halfway and text not in whole and not any(is_piece(text, one, pieces) for one in in_pieces):
            yield line


def main():
    cadre, ray = map(lines_of, sys.argv[1:3])
    wrong = [f"on {name}, a step is missing: {step}" for name, lines in (("Cadre", cadre), ("Ray", ray)) for step in STEPS
             if not any(step in line for line in lines)]
    wrong += [f"only on Ray: {line}" for line in only_on_ray(cadre, ray)]
    ends = [[line for line in lines if line.startswith(END)] for lines in (cadre, ray)]
    if ends[0] != ends[1]:
        wrong.append(f"the ends differ: {ends[0]} and {ends[1]}")
    print("\n".join(wrong) or f"equally far: {len(set(ray))} lines of Ray's run are in Cadre's, too\n{ends[0][0]}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
