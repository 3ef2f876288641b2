#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Classes and functions of a program, which travel by value.

Exit status 77 (skipped) if deploy/python.sh cannot bring cloudpickle.
"""

import base64
import contextlib
import hashlib
import io
import os
import pickle
import re
import subprocess
import sys
import threading
import traceback
import types
import unittest.mock

import cadre
from cadre import _code
from cadre._code import _versions
from cadre.worker import tasks
from python_case import EXAMPLES, PRELOADED, ROOT, SLOW_S, RunCase, main, program
from safetensors_case import with_packages

PRELOADED_TOO = {PRELOADED: os.environ[PRELOADED]} if PRELOADED in os.environ else {}
FACTOR = 3
LOCK = threading.Lock()
TABLE = list(range(200000))


def times(x):
    return x * FACTOR


class Point:
    def __init__(self, x):
        self.x = x


class Counter:
    def __init__(self, start=0):
        self.n = start + cadre.rank()

    @cadre.register(idempotent=True)
    def add(self, x):
        self.n += times(x)
        return self.n

    def move(self, point):
        return Point(point.x + 1)

    async def later(self, x):
        return x


class Locked:
    def add(self, x):
        with LOCK:
            return x


class Logged:
    log = open(os.devnull, "w", encoding="utf-8")

    def add(self, x):
        return x


class Large:
    def sum(self):
        return sum(TABLE)


class OutOfTokens(Exception):
    def __init__(self, used):
        super().__init__(f"{used} tokens are used")
        self.used = used

    def __reduce__(self):
        return OutOfTokens, (self.used,)


class NeedsTwo(Exception):
    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")


class Failing:
    def own(self):
        try:
            raise KeyError("inner")
        except KeyError as e:
            raise OutOfTokens(7 + cadre.rank()) from e

    def of_python(self, kind):
        if kind == "file":
            open("/no/such/file", encoding="utf-8")
        b"\xff".decode()

    def unpicklable(self):
        e = ValueError("holds a lock")
        e.lock = threading.Lock()
        raise e

    def not_again(self):
        raise NeedsTwo(1, 2)

    def long(self):
        raise ValueError("x" * 100000)

    def calls(self, other):
        with cadre.connect() as client:
            return client.find(other).own()

    def without_memory(self):
        return [None] * sys.maxsize

    def without_end(self):
        return self.without_end()

    def on_a_full_disk(self):
        with open("/dev/full", "w", encoding="utf-8") as f:
            f.write("x" * 100000)

    def makes(self):
        yield 1

    def fine(self):
        return cadre.rank()

    def silent(self):
        class Silent(Exception):
            def __str__(self):
                raise RuntimeError("says nothing")
        raise Silent


@cadre.task
def square(x):
    return times(x) * x


def module_nobody_has():
    module = types.ModuleType("nobody_has")
    module.f = types.FunctionType((lambda: 1).__code__, {"__name__": "nobody_has"}, "f")
    module.f.__module__, module.f.__qualname__ = "nobody_has", "f"
    sys.modules["nobody_has"] = module
    return module.f


class ByValue(RunCase):
    def test_a_class_of_the_program_runs_on_the_ranks(self):
        with cadre.local() as client:
            group = client.Group(Counter, replicas=2, init={"start": 1})
            self.assertEqual(group.add(2), [7, 8])
            self.assertEqual(group.later(5), [5, 5])
            self.assertRegex(group.name, "^counter-")
            moved = group.move(Point(1))
            self.assertEqual([type(p) for p in moved], [Point, Point])
            self.assertEqual([p.x for p in moved], [2, 2])

    def test_a_changed_class_with_the_same_name_restarts_its_group_in_place(self):
        with cadre.local() as client:
            group = client.Group(Counter, name="again", replicas=2)
            self.assertEqual(group.add(1), [3, 4])
            attempt = group.info()["attempt"]
            self.assertEqual(client.Group(Counter, name="again", replicas=2).name, "again")  # nothing is new
            self.assertEqual(group.add(0), [3, 4])

            class Changed:
                def add(self, x):
                    return -x

                def other(self):
                    return "new"

            second = client.Group(Changed, name="again", replicas=2, env={"A": "b"})
            self.assertEqual((second.add(1), group.other()), ([-1, -1], ["new", "new"]))
            self.assertGreater(group.info()["attempt"], attempt)
            with self.assertRaisesRegex(cadre.Exists, "again is there already.*: replicas is another one"):
                client.Group(Counter, name="again", replicas=3)
            group.close()
            self.assertEqual(client.Group(Counter, name="again", replicas=3).add(1), [3, 4, 5])

    def test_classes_of_the_program_are_roles(self):
        class Adder:
            @cadre.register(dispatch=lambda group, x: [(x + r,) for r in range(group.world_size)])
            def split_by_client(self, x):
                return x

        with cadre.local() as client:
            group = client.Group({"count": Counter, "add": Adder}, replicas=2, init={"count": {"start": 1}})
            self.assertRegex(group.name, "^count-add-")
            self.assertEqual((group["count"].add(2), group["add"].split_by_client(5)), ([7, 8], [5, 6]))
            with self.assertRaisesRegex(cadre.NotFound, "count"):
                group["other"].add(1)
            for wrong in (lambda: group[1], lambda: group["add"]["add"]):
                self.assertRaises(TypeError, wrong)

    def test_what_is_wrong_about_roles_and_init_is_named(self):
        with cadre.local() as client:
            for pattern, worker, init in ((r"init\['start'\] is a function that JSON does not have", Counter, {"start": times}),
                                          ("init is a dict, the arguments of the constructor by name", Counter, [1]),
                                          (r"init\['c'\]\['start'\] is a float", {"c": Counter}, {"c": {"start": float("nan")}}),
                                          ("the roles are c$", {"c": Counter}, {"start": 1}),
                                          ("classes of different names", {"a": Counter, "b": Counter}, None),
                                          ("classes of different names", {}, None),
                                          ("is not a class", 5, None)):
                with self.subTest(pattern), self.assertRaisesRegex(TypeError, pattern):
                    client.Group(worker, init=init)

    def test_a_class_in_a_function_takes_what_it_closes_over(self):
        step = 5

        class Stepping:
            def add(self, x):
                return x + step

        with cadre.local() as client:
            self.assertEqual(client.Group(Stepping).add(1), [6])

    def test_functions_are_tasks(self):
        with cadre.local():
            self.assertEqual(square(4), 48)
            self.assertEqual(cadre.task(lambda x: times(x))(2), 6)

    def test_code_that_a_call_brings_is_in_the_log_of_a_worker_in_a_cluster(self):
        code = _code.pack(times, "times")
        with unittest.mock.patch.dict(os.environ, CADRE_OPERATOR="wss://operator"), \
                contextlib.redirect_stderr(io.StringIO()) as log:
            self.assertEqual([tasks._find(code)(2), tasks._find(code)(3)], [6, 9])
        self.assertEqual(log.getvalue(), f"cadre-worker: rank 0: a call brought the code of times(): SHA-256 "
                                         f"{hashlib.sha256(code).hexdigest()}, {len(code)} bytes\n")

    def test_the_caller_gets_the_method_s_own_exception(self):
        with cadre.local() as client:
            group = client.Group(Failing, replicas=2)
            with self.assertRaises(OutOfTokens) as caught:
                group.own()
            e = caught.exception
            self.assertIsInstance(e, cadre.Failed)
            self.assertIs(type(e.cause), OutOfTokens)
            self.assertEqual((e.used, e.args, e.name), (7 + e.rank, (f"{7 + e.rank} tokens are used",), "OutOfTokens"))
            self.assertEqual((e.pod, e.node), (group.info()["workers"][e.rank].get("pod"), group.nodes[e.rank]))
            self.assertRegex(str(e), f"^rank {e.rank}: OutOfTokens: . tokens are used\nown\\(\\) failed at")
            self.assertRegex(e.traceback, r"(?s)KeyError: 'inner'.*direct cause.*line \d+, in own\n.*OutOfTokens: . tokens")
            self.assertIn(e.traceback, "".join(traceback.format_exception(type(e), e, e.__traceback__)))
            again = pickle.loads(pickle.dumps(e))
            self.assertEqual((type(again), again.used, again.rank), (type(e), e.used, e.rank))

    def test_attributes_of_python_s_own_exceptions_are_there(self):
        with cadre.local() as client:
            group = client.Group(Failing)
            with self.assertRaises(FileNotFoundError) as caught:
                group.of_python("file")
            self.assertEqual((caught.exception.errno, caught.exception.filename), (2, "/no/such/file"))
            with self.assertRaises(UnicodeDecodeError) as caught:
                group.of_python("text")
            self.assertEqual((caught.exception.object, caught.exception.start), (b"\xff", 0))

    def test_what_fails_in_a_method_says_where_and_harms_no_rank(self):
        with cadre.local() as client:
            group = client.Group(Failing, replicas=2)
            pids = [w.get("pid") for w in group.wait_ready()["workers"]]
            for method, error, text in (("without_memory", MemoryError, "MemoryError"),
                                        ("without_end", RecursionError, "maximum recursion depth"),
                                        ("on_a_full_disk", OSError, "No space left on device"),
                                        ("makes", TypeError, r"result of makes\(\) cannot be sent: it \(a generator\)")):
                with self.subTest(method), self.assertRaisesRegex(error, text) as caught:
                    group.call(method)
                self.assertIn(caught.exception.rank, (0, 1))
                self.assertRegex(str(caught.exception), rf"\n{method}\(\) failed at .*\.py:\d+ in ")
            self.assertEqual(group.fine(), [0, 1])
            self.assertEqual([w.get("pid") for w in group.info()["workers"]], pids)

    def test_the_exception_of_a_call_that_a_method_made_stays_what_it_is(self):
        with cadre.local() as client:
            inner, outer = client.Group(Failing, name="inner"), client.Group(Failing, name="outer")
            self.assertEqual(inner.fine(), [0])
            with self.assertRaises(cadre.Failed) as caught:
                outer.calls("inner")
            self.assertEqual(caught.exception.name, "OutOfTokens")
            self.assertRegex(caught.exception.traceback, r"(?s)in own\n.*in calls\n")

    def test_an_exception_that_does_not_travel_comes_as_text(self):
        with cadre.local() as client:
            group = client.Group(Failing)
            for method, name, text in (("unpicklable", "ValueError", "holds a lock"), ("long", "ValueError", "xxx"),
                                       ("not_again", "NeedsTwo", "1 and 2")):
                with self.subTest(method), self.assertRaisesRegex(cadre.Failed, text) as caught:
                    getattr(group, method)()
                self.assertEqual((caught.exception.name, caught.exception.cause), (name, None))
            with self.assertRaisesRegex(cadre.Failed, "^rank 0: Silent\n"):
                group.silent()
            with self.assertRaises(cadre.Failed) as caught:
                group.not_again()
            self.assertRegex(str(caught.exception.__cause__), "NeedsTwo cannot be opened here: TypeError: .*argument")

    def test_who_does_not_trust_the_worker_opens_no_exception(self):
        with cadre.local() as client:
            name = client.Group(Failing, name="failing").name
            with cadre.connect(client.address, namespace="default") as other:
                with self.assertRaises(cadre.Failed) as caught:
                    other.group(name).own()
        self.assertEqual((type(caught.exception), caught.exception.cause), (cadre.Failed, None))
        self.assertIn("in own", caught.exception.traceback)

    def test_the_notebook_of_the_examples(self):
        done = subprocess.run([sys.executable, os.path.join(ROOT, "tests/unit/support/notebook.py"), "notebook.ipynb"],
                              cwd=EXAMPLES, env={**os.environ, **PRELOADED_TOO}, capture_output=True, text=True, timeout=SLOW_S,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines(), [
            "[11, 12, 13, 14]", "([12, 14, 16, 18], 17)", "[[13, 15, 18, 19], [14, 16, 19, 20], [15, 17, 20, 21]]",
            "('11 are too many', True)", "[0, 1, 4, 9, 16]", "[-1, -1, -1, -1]"])

    def test_what_does_not_pickle_is_named(self):
        with cadre.local() as client:
            for cls, path in ((Locked, r"Locked\.add uses LOCK \(a lock\)"), (Logged, r"Logged\.log \(a TextIOWrapper\)")):
                with self.assertRaisesRegex(TypeError, f"{cls.__name__} cannot be sent to the ranks: {path}.*constructor"):
                    client.Group(cls)
            with self.assertRaisesRegex(TypeError, r"Large is \d+ bytes of code, and 262144 is the most"):
                client.Group(Large)

    def test_a_module_that_the_ranks_do_not_have_is_named(self):
        missing = module_nobody_has()

        class Uses:
            def go(self):
                return missing()

        with cadre.local() as client:
            group = client.Group(Uses, restart="Never")
            with self.assertRaisesRegex(cadre.Error, "rank 0 exited with code 65: .*needs the module nobody_has"):
                group.go.options(timeout=SLOW_S)()
        self.assertRegex(self.of_worker(_code.pack(Uses, "Uses")), "needs the module nobody_has.*put it into the image")

    def of_worker(self, code, sha256=None):
        """Returns the error of a worker that gets this code."""
        environment = dict(os.environ, CADRE_PYTHON="__main__", CADRE_CODE=sha256 or hashlib.sha256(code).hexdigest(),
                           CADRE_CODE_0=base64.b64encode(code).decode())
        run = subprocess.run([environment["CADRE_PYTHON3"], "-m", "cadre.worker"], env=environment, capture_output=True,
                             text=True, timeout=SLOW_S)
        self.assertEqual(run.returncode, 65, run.stderr)
        return run.stderr

    def test_code_that_was_changed_or_is_of_other_versions_is_not_opened(self):
        code = _code.pack(Counter, "Counter")
        self.assertRegex(self.of_worker(code, "0" * 64), "changed on its way")
        for name, here in _versions.ours().items():
            other = code.replace(here.encode(), b"other 0.0", 1)
            self.assertRegex(self.of_worker(other), f"has {name} other 0.0, and this rank {re.escape(here)}")
        with unittest.mock.patch.dict(sys.modules, torch=types.SimpleNamespace(__version__="2.5.1+cpu")):
            self.assertIn(b'"torch": "2.5"', _code.pack(Counter, "Counter").partition(b"\n")[0])
            for theirs in ("2.5", "2.6"):
                with contextlib.nullcontext() if theirs == "2.5" else self.assertRaisesRegex(
                        ValueError, "the program that sent it has torch 2.6, and this rank 2.5"):
                    _versions.compare(_versions.head().replace(b'"torch": "2.5"', b'"torch": "%s"' % theirs.encode()) + b"x")
        self.assertIsNotNone(_versions.compare(code.replace(b"}\n", b', "torch": "1.0"}\n', 1)))  # a rank that has none
        self.assertRegex(self.of_worker(b"\x80\x05" * 10000), "does not begin with the versions")
        self.assertRegex(self.of_worker(code[:-20]), "__main__: it cannot be opened: ")


if __name__ == "__main__":
    with_packages("small")
    main()
