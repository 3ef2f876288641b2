#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs for verl, and starts of groups with torch, on Cadre and on Ray in turn; prints a table of Markdown.

    programs.py SECONDS ROUNDS
"""

import json
import os
import statistics
import subprocess
import sys

from calls import RAY

HERE = os.path.dirname(os.path.abspath(__file__))
RESTARTS = 5  # of each start


def run(*command):
    """The seconds that it prints."""
    done = subprocess.run([sys.executable, *command], cwd=HERE, env={**os.environ, **RAY}, capture_output=True, text=True,
                          check=False)
    if done.returncode:
        sys.exit(f"programs.py: {' '.join(command)} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return json.loads([line for line in done.stdout.splitlines() if line.startswith("seconds: ")][-1].partition(": ")[2])


def median(rounds):
    return [statistics.median(values) for values in zip(*rounds)]


def main():
    seconds, rounds = sys.argv[1], int(sys.argv[2])
    commands = {"ours": ("-m", "cadre.ray", "verl_program.py", seconds), "rays": ("verl_program.py", seconds),
                "cold": ("starts.py", "cadre", "1"), "preload": ("starts.py", "preload", str(RESTARTS)),
                "actors": ("starts.py", "ray", "1")}
    found = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():  # in turn, so that a busy moment of the machine meets all
            found[name].append(run(*command))
    of = {name: median(rounds) for name, rounds in found.items()}
    print("| seconds | Cadre | Ray | ratio | target |\n|---|---:|---:|---:|---:|")
    for i, name in enumerate(("verl's DataProto of 64 MiB over 4 ranks and back", "a PPO step of a tiny model without its compute")):
        print(f"| {name} | {of['ours'][i]:.3f} | {of['rays'][i]:.3f} | {of['rays'][i] / of['ours'][i]:.1f}x | 3x |")
    (cold, again), (plain, _), (actors, renewed) = of["preload"], of["cold"], of["actors"]
    print(f"| a group of 4 with torch, `preload: [torch]` | {cold:.2f} | {actors:.2f} | {actors / cold:.1f}x | 1x |")
    print(f"| ... without `preload` | {plain:.2f} | {actors:.2f} | {actors / plain:.1f}x | |")
    print(f"| ... again, from the template (on Ray: new actors) | {again:.3f} | {renewed:.2f} | {renewed / again:.0f}x | |")
    print(f"\nThe template starts them again in 1/{cold / again:.0f} of the first start (target: 1/20, and 1 s).")


if __name__ == "__main__":
    main()
