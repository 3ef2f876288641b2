#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds functions of a header that no other file uses: dead ones, and those that could be static.

    unused.py NM BUILD_FOLDER

Reads the object files of a whole build. What the ABI and the client's library export is used by programs of others.
"""
import collections
import json
import pathlib
import re
import subprocess
import sys

PRODUCT = ("cli", "common", "operator", "sdk", "worker")
EXPORTED = ("cadre_", "main")


def symbols(nm, folder, objects):
    """(object, kind, name) of all symbols, by one run of nm."""
    text = subprocess.run([nm, "-A", *objects], cwd=folder, capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        path, _, rest = line.partition(".o:")
        yield path, *rest.split()[-2:]


def unused(found):
    """Names of global functions of the product that one object has and no other one wants, with that object."""
    homes, users = {}, collections.defaultdict(set)
    for path, kind, name in found:
        if kind == "U":
            users[name].add(path)
        elif kind == "T" and path.split("/")[0] in PRODUCT and not name.startswith(EXPORTED):
            homes[name] = path
    return sorted((path, name) for name, path in homes.items() if not users[name])


def self_test():
    found = [("common/a.c", "T", "used"), ("tests/t.c", "U", "used"), ("common/a.c", "T", "dead"),
             ("common/a.c", "t", "hidden"), ("sdk/api.c", "T", "cadre_call"), ("tests/t.c", "T", "helper")]
    assert unused(found) == [("common/a.c", "dead")], unused(found)


def main():
    nm, folder = sys.argv[1:]
    self_test()
    build = pathlib.Path(folder)
    commands = json.loads((build / "compile_commands.json").read_text())
    objects = sorted(m[1] for c in commands if (m := re.search(r" -o (\S+\.c\.o) ", c["command"])))
    if missing := [o for o in objects if not (build / o).exists()]:
        sys.exit(f"{folder} lacks {missing[0]} and {len(missing) - 1} more object files: build everything first")
    findings = unused(symbols(nm, build, objects))
    for path, name in findings:
        print(f"{path}: {name}() is used by no other file: make it static, or delete it")
    print(f"{len(objects)} object files, {len(findings)} functions that nothing else uses")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
