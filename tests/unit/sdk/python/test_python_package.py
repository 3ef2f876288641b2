#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package beside what it is made for: the header of the C library, the version, pip, the documents.

    test_python_package.py CC
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import cadre
from cadre import _library, _moves
from cadre.worker import _host
from python_case import ROOT, SLOW_S, Local, environment, main

HEADER = "sdk/c/include/cadre/client.h"
MODES = "sdk/c/include/cadre/modes.h"


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def in_c(expressions):
    """The numbers that these are to a compiler that has read the header."""
    with tempfile.TemporaryDirectory() as folder:
        lines = "".join(f'printf("%lld\\n", (long long)({e}));\n' for e in expressions)
        with open(f"{folder}/a.c", "w", encoding="utf-8") as f:
            f.write(f'#include <cadre/client.h>\n#include <cadre/host.h>\n#include <cadre/transfer.h>\n#include <stdio.h>\nint main(void) {{\n{lines}return 0; }}\n')
        compiler = [sys.argv[1], "-I", os.path.join(ROOT, "sdk/c/include"), f"{folder}/a.c", "-o", f"{folder}/a"]
        subprocess.run(compiler, check=True, env=environment())
        return [int(n) for n in subprocess.run([f"{folder}/a"], check=True, capture_output=True, env=environment())
                .stdout.split()]


def imported(library, env=None):
    """Returns the last line that a program prints if it uses this library and is about to connect."""
    env = dict(environment() if env is None else env, CADRE_CLIENT_LIBRARY=library)
    run = subprocess.run([sys.executable, "-c", "import cadre; cadre.connect"], env=env, capture_output=True, text=True)
    return run.stderr.strip().split("\n")[-1]


class Header(unittest.TestCase):
    def test_structs_lie_as_the_header_has_them(self):
        expressions, numbers = [], []
        for name, struct in {**_library.STRUCTS, **_host.STRUCTS, **_moves.STRUCTS}.items():
            expressions.append(f"sizeof({name})")
            numbers.append(_library.ctypes.sizeof(struct))
            for field in struct._fields_:
                expressions += [f"offsetof({name}, {field[0]})", f"sizeof((({name} *)0)->{field[0]})"]
                numbers += [getattr(struct, field[0]).offset, getattr(struct, field[0]).size]
        self.assertEqual(dict(zip(expressions, in_c(expressions))), dict(zip(expressions, numbers)))

    def test_modes_and_codes_are_those_of_the_header(self):
        dispatch, execute = read(MODES).split("#define CADRE_EXECUTE_MODES(X)")
        for text, prefix, modes in (dispatch, "", _library.DISPATCH), (execute, "EXECUTE_", _library.EXECUTE):
            self.assertEqual({n: int(v) for n, v in re.findall(r"^    X\((\w+), (\d+)", text, re.M)}, modes)
            self.assertEqual(in_c(f"CADRE_CLIENT_{prefix}{name}" for name in modes), list(modes.values()))
        enum = re.search(r"typedef enum cadre_client_code \{(.*?)\}", read(HEADER), re.S)[1]
        codes = {n: int(v) for n, v in re.findall(r"CADRE_CLIENT_(\w+) = (\d+)", enum) if v != "0"}
        self.assertEqual({c("").name: c.code for c in cadre.Error._classes.values()}, codes)

    def test_every_option_of_c_has_a_name_here(self):
        from cadre import _options
        own = {"size", "method", "group", "role", "args", "per_rank", "n_per_rank", "batch", "batch_len", "done", "ctx",
               "keep", "via", "lend", "lazy", "urgent", "positional"}  # what calls set themselves; `via` is of workers
        self.assertEqual({m for m, _ in _options.CALL.values()}, {f[0] for f in _library.Request._fields_} - own)
        own = {"size", "address", "on_connection", "on_output", "ctx", "threaded"}
        self.assertEqual({m for m, _ in _options.CONNECT.values()}, {f[0] for f in _library.Options._fields_} - own)


class Package(unittest.TestCase):
    def test_it_has_the_version_of_the_tree_and_of_the_library(self):
        self.assertEqual(cadre.__version__, read("VERSION").strip())
        self.assertEqual(_library.functions.version().decode(), cadre.__version__)

    def test_what_it_shows_is_what_it_names(self):
        self.assertEqual(cadre.__all__, sorted(cadre.__all__))
        self.assertEqual([n for n in cadre.__all__ if not getattr(cadre, n).__doc__], [])

    def test_without_the_library_it_says_what_to_do(self):
        self.assertRegex(imported("/nothing/there.so"), "^ImportError: cadre: cannot load the C client library.*"
                         "CADRE_CLIENT_LIBRARY is /nothing/there.so.*Build it .* or install it")
        self.assertRegex(imported(""), "^ImportError: .*neither .*/cadre/libcadre_client.so.0 nor the system's loader")
        self.assertRegex(imported("libc.so.6"), "^ImportError: cadre: libc.so.6 has no cadre_client_open.*too old")

    def test_pip_installs_it_with_a_library_beside_it(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(os.path.join(ROOT, "sdk/python"), f"{folder}/source")  # setuptools writes into it
            shutil.copy(_library.functions.path, f"{folder}/source/cadre/libcadre_client.so.0")
            command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--retries", "1", "--timeout", "15"]
            command += ["install", "--quiet", "--no-deps", "--target", f"{folder}/lib", f"{folder}/source"]
            pip = subprocess.run(command, capture_output=True, text=True, env=environment())
            if pip.returncode and re.search("No module named pip|No matching distribution found for set", pip.stderr):
                self.skipTest("there is no pip, or it cannot have setuptools")
            self.assertEqual(pip.returncode, 0, pip.stderr)
            self.assertEqual(imported("", dict(os.environ, PYTHONPATH=f"{folder}/lib")), "")
            self.assertTrue(os.path.exists(f"{folder}/lib/cadre_sdk-{cadre.__version__}.dist-info"))


class Documents(unittest.TestCase):
    def test_the_examples_run(self):
        local = Local("ACCUMULATOR_SO", 4)
        self.addCleanup(local.stop)
        connect = f'cadre.connect("{local.address}", namespace="lab")'
        for path, count in (("README.md", 1), ("docs/python.md", 1)):
            blocks = re.findall(r"^```python\n(.*?)^```", read(path), re.S | re.M)
            self.assertGreaterEqual(len(blocks), count, path)
            for block in blocks:
                if "cadre.local()" in block:
                    continue  # needs all of the wheel, whose test runs it
                code = re.sub(r"cadre\.connect\(.*?\) as", f"{connect} as", block, flags=re.S)
                code = code.replace('group("accumulator")', 'group("g")')
                run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=SLOW_S)
                self.assertEqual((run.returncode, run.stderr), (0, ""), f"{path}:\n{code}")


if __name__ == "__main__":
    main()
