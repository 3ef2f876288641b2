#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests bad input and bad luck: broken and too long pickles, no memory, forks, connections that are cut while
everything sleeps, and names that two programs want. Each time there is a clear error, and the rank goes on.
"""

import mmap
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

import cadre
from cadre import _call
from cadre._code import cloudpickle
from cadre._value import Body, _document, _pickle
from cadre._value._tensor import Tensor
from python_case import ROOT, SLOW_S, GroupCase, RunCase, main, pythons

WORKERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "workers")
GIB = 1 << 30
PRELOADED = os.environ.get("LD_PRELOAD")
PATIENT = {"name": "ASAN_OPTIONS", "value": "detect_leaks=0:allocator_may_return_null=1"}  # Python knows no memory, too


class Mine:
    """Goes by value."""

    def work(self):
        return 1


def hurt(**more):
    return {"python": "hurt", "workingDir": WORKERS, **more}


def pickled(stream, tensors=()):
    """The body of a call, with this stream."""
    parts = {str(i): t for i, t in enumerate(tensors)}
    parts[_pickle.OBJECT] = Tensor("U8", (len(stream),), memoryview(stream))
    return Body("pickle", _document.write(parts, {_pickle.OBJECT: _pickle.CALL}))


class Relay:
    """A way to the run that can be cut, such as the network of a laptop."""

    def __init__(self, path):
        self.path, self.ends, self.passed = path, [], bytearray()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"ws://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                here = self.listener.accept()[0]
            except OSError:
                return
            there = socket.socket(socket.AF_UNIX)
            there.connect(self.path)
            self.ends += [here, there]
            for a, b in ((here, there), (there, here)):
                threading.Thread(target=self._pass_on, args=(a, b), daemon=True).start()

    def _pass_on(self, a, b):
        try:
            while data := a.recv(1 << 16):
                self.passed += data
                b.sendall(data)
        except OSError:
            pass
        self._end(b)

    def _end(self, s):
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def cut(self):
        for s in self.ends:
            self._end(s)
        self.ends.clear()

    def close(self):
        self.listener.close()
        self.cut()


GIBIBYTE = """
import mmap, sys, cadre
with cadre.connect(sys.argv[1], namespace="lab") as client:
    memory = mmap.mmap(-1, 1 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        client.group("g").call("size", (cadre.Tensor("U8", (1 << 30,), memory), {1}), rank=0)
    except cadre.Limit as e:
        print(e.may_have_run, e)
"""


class Pickles(GroupCase):
    module, ranks = hurt(env=[{"name": "CADRE_CALL_BYTES", "value": str(8 << 20)}]), 2

    def send(self, body):
        with unittest.mock.patch.object(_call, "encode_call", lambda *_: body):
            self.group.call("size", 1, rank=1, timeout=SLOW_S)

    def test_mangled_pickles_are_refused_before_the_method_runs(self):
        whole = pickle.dumps((([1, {2}, b"x" * 100],), {}), protocol=5)
        nested = b"\x80\x05" + b"(" * 100000 + b"."
        for name, stream in (("cut", whole[:-20]), ("empty", b""), ("noise", bytes(range(256)) * 40), ("nested", nested),
                             ("longer than it is", b"\x80\x05\x8e" + (GIB).to_bytes(8, "little") + b"abc."),
                             ("of a module that is not there", b"cnowhere.at_all\nThing\n."),
                             ("of a buffer that is not there", b"\x80\x05\x97.")):
            with self.subTest(name):
                e = self.fails(cadre.Proto, rf"rank 1: a pickled object of {len(stream)} bytes cannot be read: ", self.send,
                               pickled(stream))
                self.assertFalse(e.may_have_run)
        self.assertEqual(self.group.call("add", 0, timeout=SLOW_S), [0, 0])

    def test_an_object_that_is_no_call_is_refused(self):
        for value in (5, (1, 2, 3), None, ("ab", 3)):
            with self.subTest(value), self.assertRaises(cadre.Error):
                self.send(pickled(pickle.dumps(value, protocol=5)))
        self.assertEqual(self.group.call("size", {1, 2}, timeout=SLOW_S), [2, 2])

    def test_more_than_a_worker_takes_is_refused(self):
        e = self.fails(cadre.Limit, r"CADRE_CALL_BYTES", self.group.call, "size", (bytes(16 << 20), {1}), rank=0,
                       timeout=SLOW_S)
        self.assertFalse(e.may_have_run)
        self.assertEqual(self.group.call("size", {1, 2}, timeout=SLOW_S), [2, 2])

    def test_a_pickle_of_a_gibibyte_is_refused_and_its_rank_goes_on(self):
        before = self.group.call("add", 1, timeout=SLOW_S)
        said = subprocess.check_output([sys.executable, "-c", GIBIBYTE, f"unix:{self.local.folder}/socket"], text=True)
        self.assertRegex(said, r"^False rank 0: .* of 8388608 \(CADRE_CALL_BYTES\); no room for 10737\d{5} more")
        self.assertEqual(self.group.call("add", -1, timeout=SLOW_S), [n - 1 for n in before])  # not started again

    def test_more_than_travels_is_refused_before_it_is_copied(self):
        with mmap.mmap(-1, 3 * GIB) as memory, memoryview(memory) as view:
            tensor = Tensor("U8", (3 * GIB,), view)
            self.fails(cadre.Limit, "at most .* are sent", self.group.call, "size", (tensor, {1}), timeout=SLOW_S)
            with open("/proc/self/statm", encoding="utf-8") as f:
                self.assertLess(int(f.read().split()[1]) * mmap.PAGESIZE, GIB)
            del tensor
        self.assertEqual(self.group.call("add", 0, timeout=SLOW_S), [0, 0])


class Memory(GroupCase):
    module, ranks = hurt(env=[PATIENT]), 2

    def test_no_memory_in_a_method_is_an_exception_of_it(self):
        with self.local.connect(trust=True) as client:
            with self.assertRaises(MemoryError) as caught:
                client.group("g").call("take", GIB, timeout=SLOW_S)
        self.assertIsInstance(caught.exception, cadre.Failed)
        self.assertRegex(str(caught.exception), r"^rank \d: MemoryError\b[^$]*hurt\.py:\d+ in take")
        self.assertEqual(self.group.call("add", 1, timeout=SLOW_S), [1, 1])

    def test_who_is_killed_for_its_memory_is_named_and_starts_again(self):
        e = self.fails(cadre.Unavailable, "rank 1 of lab/g", self.group.call, "killed", rank=1, timeout=SLOW_S)
        self.assertEqual((e.exit_code, e.may_have_run), (137, True))
        self.assertEqual(self.group.call("add", 0, timeout=SLOW_S), [0, 0])


class Forks(GroupCase):
    module, ranks = hurt(), 1

    def test_a_child_that_comes_out_of_the_method_answers_no_call_and_ends(self):
        for how, code in (("returns", 1), ("raises", 1), ("exits", 3)):
            for method in ("forks", "forks_later"):
                with self.subTest(how=how, method=method):
                    self.assertEqual(self.group.call(method, how, timeout=SLOW_S), [code])
        self.assertEqual(self.group.call("add", 1, timeout=SLOW_S), [1])
        log = self.local.read_log()
        self.assertIn("a child of fork() returned from forks(), whose call only its parent may answer", log)
        self.assertIn("ValueError: of the child", log)


class Forever(GroupCase):
    """Methods that never come back."""

    module, ranks = hurt(), 2

    def test_a_lock_of_python_that_is_never_released_costs_that_rank_and_nothing_else(self):
        # Either rank 1 or the proxy sees the deadline first. On a busy machine, rank 1 may not have begun.
        with unittest.mock.patch("cadre._late._ASK_S", SLOW_S):
            for timeout in 3, 30, 300:
                e = self.fails(cadre.Timeout, ".", self.group.call, "holds_for_ever", rank=1, timeout=timeout)
                if "in holds_for_ever" in str(e):
                    break
        self.assertRegex(str(e), r"(?s)(no answer from rank 1; it may have run|deadline of \d+ ms passed while it ran)"
                         r".*\nrank 1 is at .*hurt\.py:\d+ in holds_for_ever")
        self.assertTrue(e.may_have_run)
        self.assertEqual(self.group.call("add", 0, rank=0, timeout=SLOW_S), 0)  # others are not in its way
        self.assertRegex(self.group.stacks(1, timeout=SLOW_S), "in holds_for_ever")
        waits = self.group.start("add", 0, rank=1, timeout=SLOW_S)  # of its own, for ever, without an end from outside
        self.group.kill(1)
        self.assertEqual(self.fails(cadre.Unavailable, "rank 1 .* exited with code 137", waits.result).exit_code, 137)
        self.assertEqual(self.group.call("add", 0, timeout=SLOW_S), [0, 0])

    def test_a_wait_for_its_own_rank_is_refused(self):
        with self.local.connect(trust=True) as client:
            with self.assertRaisesRegex(cadre.Failed, r"(?s)a deadlock: add\(\) would wait for the thread of rank 1.*concurrency group"):
                client.group("g").call("calls", "add", 1, rank=1, timeout=SLOW_S)
            self.assertEqual(client.group("g").call("calls", "beside", 0, rank=1, timeout=SLOW_S), 1)


class OtherPython(RunCase):
    def test_ranks_of_another_python_say_so_before_they_open_the_code(self):
        here = sys.version_info[1]
        others = {minor: path for minor, path in pythons().items() if minor != here}
        if not others or cloudpickle() is None:
            self.skipTest("there is no other Python here, or no cloudpickle")
        minor, path = min(others.items(), key=lambda other: abs(other[0] - here))
        preload = f"LD_PRELOAD={PRELOADED} " if PRELOADED else ""
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/python", "w", encoding="utf-8") as f:
                f.write(f'#!/bin/sh\n{preload}exec {path} "$@"\n')
            os.chmod(f"{folder}/python", 0o755)
            with unittest.mock.patch.dict(os.environ, CADRE_PYTHON3=f"{folder}/python"), cadre.local() as client:
                group = client.Group(Mine, restart="Never")
                with self.assertRaisesRegex(cadre.Unavailable, rf"rank 0 exited with code 65: .*spec\.worker\.code: the program that "
                                            rf"sent it has python cpython 3\.{here}, and this rank cpython 3\.{minor}"):
                    group.call("work", timeout=SLOW_S)


PROGRAM = """
import sys, cadre
with cadre.connect(sys.argv[1], namespace="lab") as client:
    group = client.group("g")
    print(group.call("add", 1), flush=True)
    future = group.start("waits")
    print("sleeps", flush=True)
    sys.stdin.readline()
    try:
        future.result()
    except cadre.Unavailable as e:
        print(e.may_have_run, "may have run" in str(e), flush=True)
    print(group.call("add", 1, timeout=1200), flush=True)
"""


class Lost(RunCase):
    def relayed(self):
        run = cadre.local(cpus=2)
        self.addCleanup(run.close)
        relay = Relay(run.address.removeprefix("unix:"))
        self.addCleanup(relay.close)
        client = cadre.connect(relay.address, namespace=run.namespace or "default")
        self.addCleanup(client.close)
        return relay, client

    def eventually(self, holds):
        end = time.monotonic() + SLOW_S
        while not holds():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def renewed(self, relay):
        """The names and UIDs in the requests that renew objects, as they passed the relay."""
        return sorted(re.findall(rb'{"(?:group|placementGroup)": ?"([^"]+)", ?"uid": ?"([^"]+)"}', bytes(relay.passed)))

    def test_what_a_client_has_made_outlives_its_connection(self):
        relay, client = self.relayed()
        pool = client.Pool([1], gpus=0, cpus=1, name="cut-pool")
        client.Pool([1], gpus=0, cpus=1, name="kept-pool", detached=True)
        client.Pool([1], gpus=0, cpus=1, name="closed-pool").close()
        self.assertEqual(self.renewed(relay), [])
        for times in (1, 2):
            relay.cut()
            self.eventually(lambda: len(self.renewed(relay)) >= times and not client._renewal._late())  # it was answered
            self.assertEqual({name for name, _ in self.renewed(relay)}, {b"cut-pool"})
        self.assertEqual(pool.world_size, 1)
        client.find_pool("kept-pool").close()


class Sleep(GroupCase):
    module, ranks = hurt(), 1

    def test_a_laptop_whose_connection_was_cut_while_it_slept(self):
        relay = Relay(f"{self.local.folder}/socket")
        self.addCleanup(relay.close)
        with subprocess.Popen([sys.executable, "-c", PROGRAM, relay.address], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as program:
            self.addCleanup(program.kill)
            self.assertEqual([program.stdout.readline() for _ in range(2)], ["[1]\n", "sleeps\n"])
            while not self.group.stacks(0, timeout=SLOW_S).count("in waits"):  # it has left the laptop
                pass
            program.send_signal(signal.SIGSTOP)
            relay.cut()
            self.group.call("open", timeout=SLOW_S)
            self.assertEqual(self.group.call("add", 1, timeout=SLOW_S), [2])  # others go on
            program.send_signal(signal.SIGCONT)
            out, _ = program.communicate("go on\n", timeout=SLOW_S)
            self.assertEqual(out, "True True\n[3]\n")

    def test_a_run_that_slept_with_its_program_goes_on(self):
        """All processes stop, and their peers are silent for longer than they bear."""
        pids = [self.local.process.pid, *self.below(self.local.process.pid)]
        with self.local.connect(unreachable=0.5) as client:
            group = client.group("g")
            before = group.call("add", 0, timeout=SLOW_S)
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            slept = group.start("add", 1, timeout=SLOW_S)
            with self.assertRaises(TimeoutError):
                slept.result(timeout=2)
            for pid in reversed(pids):
                os.kill(pid, signal.SIGCONT)
            self.assertEqual(slept.result(), [before[0] + 1])
            self.assertEqual(group.call("add", 1, timeout=SLOW_S), [before[0] + 2])

    def below(self, pid):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as f:
            children = [int(p) for p in f.read().split()]
        return children + [p for child in children for p in self.below(child)]


class Table(unittest.TestCase):
    def test_the_tests_that_the_documents_name_are_there(self):
        row = re.compile(r"\| .* \| `(test_python_\w+\.py)` \| `(test_\w+)` \|")
        with open(os.path.join(ROOT, "docs/testing.md"), encoding="utf-8") as f:
            named = [m.groups() for m in map(row.fullmatch, f.read().splitlines()) if m]
        self.assertGreater(len(named), 20)
        for file, test in named:
            with self.subTest(test), open(os.path.join(os.path.dirname(WORKERS), file), encoding="utf-8") as f:
                self.assertIn(f"def {test}(self):", f.read())


class Names(GroupCase):
    module = hurt()

    def test_two_notebooks_with_one_name(self):
        with cadre.local() as first, cadre.connect(first.address, namespace="default") as second:
            group = first.Group(module=os.environ["ACCUMULATOR_SO"], class_name="Accumulator", name="shared")
            self.assertEqual(group.add(1), [1])
            self.fails(cadre.Exists, "default/shared exists in this run already, and this request did not create it; delete "
                       "it or choose another name", second.Group, module=os.environ["ACCUMULATOR_SO"],
                       class_name="Accumulator", name="shared", image="none", replicas=2)
            self.assertEqual(group.add(1), [2])  # nothing has happened to it
            self.assertEqual(second.group("shared").call("add", 1), [3])


if __name__ == "__main__":
    main()
