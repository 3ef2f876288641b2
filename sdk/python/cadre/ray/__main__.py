# SPDX-License-Identifier: Apache-2.0
"""python -m cadre.ray PROGRAM.py ARGS, or -m MODULE ARGS: runs a program in which `import ray` means cadre.ray."""

import os
import runpy
import sys

from . import _as_ray

_USAGE = "Usage: python -m cadre.ray PROGRAM.py [ARGUMENT...]\n       python -m cadre.ray -m MODULE [ARGUMENT...]\n"


def main():
    arguments = sys.argv[1:]
    if arguments[:1] in (["-h"], ["--help"]):
        print(_USAGE + __doc__.partition(": ")[2], end="\n")
        return 0
    is_module = arguments[:1] == ["-m"]
    if len(arguments) < 1 + is_module or not is_module and arguments[0].startswith("-"):
        print(_USAGE, end="", file=sys.stderr)
        return 2
    _as_ray.install()
    sys.argv = arguments[is_module:]
    if is_module:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        return 0
    if not os.path.isfile(sys.argv[0]):
        print(f"python -m cadre.ray: there is no file {sys.argv[0]}; -m MODULE runs a module", file=sys.stderr)
        return 2
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
