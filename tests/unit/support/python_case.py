# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of the Python package: local runs of groups, and TAP on standard output."""

import faulthandler
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
LINE_OF_RANK = re.compile(r"[a-z0-9.-]+ \[rank [0-9,-]+\] .*\n")
SLOW_S = 1200  # for a call or a program on a busy machine: only one that hangs takes so long
PRELOADED = "LD_PRELOAD"  # a sanitizer of the library, which no other program needs


def environment():
    return {name: value for name, value in os.environ.items() if name != PRELOADED}


def lines_of(output):
    """Returns the lines of a program, then the lines of its ranks. These come at any time, also between a text of
    print() and its end, if Python does not keep the output back (PYTHONUNBUFFERED).
    """
    own, ranks = LINE_OF_RANK.sub("", output), LINE_OF_RANK.findall(output)
    return own.splitlines() + [line.rstrip("\n") for line in ranks]


def worker_environment():
    """Returns the environment of workers in Python: `python3` is this Python, with the library that has the host. A
    sanitizer of the library comes first.
    """
    global _bin
    if _bin is None:
        _bin = tempfile.TemporaryDirectory()
        preload = f"{PRELOADED}={os.environ[PRELOADED]} " if PRELOADED in os.environ else ""
        with open(f"{_bin.name}/python3", "w", encoding="utf-8") as f:
            f.write(f'#!/bin/sh\n{preload}exec {sys.executable} "$@"\n')
        os.chmod(f"{_bin.name}/python3", 0o755)
    path = os.pathsep.join([_bin.name, os.path.dirname(program("CADRE_WORKER")), os.environ["PATH"]])
    return dict(environment(), PATH=path, CADRE_PYTHON3=f"{_bin.name}/python3", CADRE_CLIENT_LIBRARY=program("CADRE_LIBRARY"))


_bin = None


def program(name):
    """A file that CMake told of: CADRE_LOCAL, ACCUMULATOR_SO, ..."""
    return os.environ[name]


OLDEST, NEWEST = 9, 14  # of Python 3: what the package is for


def pythons():
    """Minor version -> an interpreter of this machine: in PATH, or one that pyenv has."""
    env = environment()
    found = {}
    root = subprocess.run(["pyenv", "root"], capture_output=True, text=True, env=env).stdout.strip() if shutil.which("pyenv") else ""
    for path in [*(shutil.which(f"python3.{minor}") for minor in range(OLDEST, NEWEST + 1)), *glob.glob(f"{root}/versions/*/bin/python3")]:
        asked = subprocess.run([path, "-c", "import ensurepip, sys, venv; print(sys.version_info[1])"], capture_output=True,
                               text=True, env=env) if path else None
        if asked and asked.returncode == 0 and OLDEST <= int(asked.stdout) <= NEWEST:
            found.setdefault(int(asked.stdout), path)
    return found


class Local:
    """A run of cadre-local: `ranks` processes, started again when one failed, with a module (class or roles `of`), or
    with what spec.worker says, a dict. more: of its spec.
    """

    def __init__(self, module, ranks=1, of=None, **more):
        self.folder = tempfile.mkdtemp()
        self.address = f"unix:{self.folder}/socket"
        self.log = open(f"{self.folder}/log", "w+b")
        classes = {} if not of else {"class": of} if isinstance(of, str) else {"roles": of}
        worker = module if isinstance(module, dict) else {"module": program(module), **classes}
        template = {"spec": {"containers": [{"name": "worker", "image": "none"}]}}
        group = {"apiVersion": "cadre.dev/v1alpha1", "kind": "WorkerGroup",
                 "metadata": {"name": "g", "namespace": "lab"},
                 "spec": {"replicas": ranks, "worker": worker, "restartBackoff": {"initialSeconds": 0},
                          "template": template, **more}}
        with open(f"{self.folder}/group.json", "w", encoding="utf-8") as f:
            json.dump(group, f)
        self.start()

    def start(self):
        """Again, after kill(), too."""
        self.process = subprocess.Popen(
            [program("CADRE_LOCAL"), "-f", f"{self.folder}/group.json", "--listen", self.address, "--agent",
             program("CADRE_AGENT")], env=worker_environment(), stdout=self.log, stderr=self.log)
        while not os.path.exists(f"{self.folder}/socket"):
            if self.process.poll() is not None:
                raise RuntimeError(self.read_log())
            time.sleep(0.02)

    def kill(self):
        self.process.kill()
        self.process.wait()
        os.unlink(f"{self.folder}/socket")

    def read_log(self):
        with open(f"{self.folder}/log", encoding="utf-8", errors="replace") as f:
            return f.read()

    def connect(self, **options):
        import cadre
        return cadre.connect(self.address, namespace="lab", **options)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder)


EXAMPLES = os.path.join(ROOT, "examples/python")


class RunCase(unittest.TestCase):
    """Tests that make runs of their own, cadre.local(): with the programs, and the modules of the examples and the tests."""

    modules = ()  # further folders

    def setUp(self):
        path = os.pathsep.join([EXAMPLES, *self.modules, os.environ["PYTHONPATH"]])
        tools = {name: program(name) for name in ("CADRE_LOCAL", "CADRE_AGENT", "CADRE_WORKER")}
        patched = unittest.mock.patch.dict(os.environ, {**worker_environment(), **tools, "PYTHONPATH": path}, clear=True)
        patched.start()
        self.addCleanup(patched.stop)

    def printed(self, example, *arguments):
        """The lines that a program of examples/python prints, as people run it."""
        done = subprocess.run(["python3", example, *arguments], cwd=EXAMPLES, env=environment(), capture_output=True, text=True,
                              timeout=SLOW_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return lines_of(done.stdout)


class GroupCase(unittest.TestCase):
    """Each test has a client and a group of a run that all tests of the class share."""

    module, ranks, of, more = "ECHO_SO", 1, None, {}

    @classmethod
    def setUpClass(cls):
        cls.local = Local(cls.module, cls.ranks, cls.of, **cls.more)

    @classmethod
    def tearDownClass(cls):
        cls.local.stop()

    def setUp(self):
        self.client = self.local.connect()
        self.addCleanup(self.client.close)
        self.group = self.client.group("g")

    def fails(self, error, pattern, f, *args, **options):
        """f() raises this class exactly, with such a message."""
        with self.assertRaises(error) as caught:
            f(*args, **options)
        self.assertIs(type(caught.exception), error)
        self.assertRegex(str(caught.exception), pattern)
        return caught.exception


HANGS_S = 3600  # so long no test takes, however busy the machine is


def watch(seconds=HANGS_S):
    """Shows the stacks and ends the process unless the present test ends within so many seconds: ctest would not say where it
    stands.
    """
    faulthandler.dump_traceback_later(seconds, exit=True)


class Tap(unittest.TestResult):
    count = 0

    def startTest(self, test):
        super().startTest(test)
        watch()

    def _line(self, test, ok, more=""):
        self.count += 1
        words = re.sub(r"^test_", "", test._testMethodName if hasattr(test, "_testMethodName") else str(test))
        print(f"{'ok' if ok else 'not ok'} {self.count} - {words.replace('_', ' ')}{more}", flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self._line(test, True)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._line(test, True, f" # SKIP {reason}")

    def _failed(self, test, error):
        self._line(test, False)
        print("# " + self._exc_info_to_string(error, test).replace("\n", "\n# "), flush=True)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self._failed(test, error)

    def addError(self, test, error):
        super().addError(test, error)
        self._failed(test, error)

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error:
            self._failed(test, error)
            print(f"# {subtest}", flush=True)


def main():
    watch()
    result = Tap()
    unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]).run(result)
    print(f"1..{result.count}", flush=True)
    sys.exit(not result.wasSuccessful() or not result.count)
