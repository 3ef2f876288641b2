#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Workers of cadre.ray that start from a copy of a process."""

import importlib
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

from python_case import RunCase, main
from safetensors_case import with_packages


LIMIT_S = 1200  # only for a program that hangs
SLOW = """
import os
with open(os.environ["IMPORTS"], "a") as f:
    f.write(f"{os.getpid()}\\n")
"""


class Nursery(RunCase):
    """Workers of a program that has imported what takes long."""

    def setUp(self):
        super().setUp()
        from cadre import ray
        from cadre.ray import _nursery

        self.ray, self.nursery = ray, _nursery
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.imports, self.module = f"{folder}/imports", f"slow_{os.path.basename(folder).replace('-', '_')}"
        path = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
        self.enterContext(unittest.mock.patch.dict(os.environ, {"IMPORTS": self.imports, "PYTHONPATH": path}))
        self.enterContext(unittest.mock.patch.object(sys, "path", [*sys.path, folder]))
        self.enterContext(unittest.mock.patch.object(_nursery, "_SLOW", (self.module,)))
        self.folder = folder
        self.addCleanup(self.ray.shutdown)
        self.addCleanup(sys.modules.pop, self.module, None)

    def program_imports(self, text=SLOW):
        with open(f"{self.folder}/{self.module}.py", "w", encoding="utf-8") as f:
            f.write(text)
        importlib.invalidate_caches()
        importlib.import_module(self.module)

    def importers(self):
        with open(self.imports, encoding="utf-8") as f:
            return [int(line) for line in f]

    def actor(self, **options):
        module = self.module

        class Actor:
            def born(self):
                import importlib

                importlib.import_module(module)
                with open(f"/proc/{os.getppid()}/comm", encoding="utf-8") as f:
                    return os.getpid(), os.getppid(), f.read().strip(), os.environ.get("WHO")

        return self.ray.remote(max_concurrency=1)(Actor).options(**options).remote()

    def await_death(self, actor):
        with self.assertRaises(self.ray.exceptions.RayActorError):
            while True:  # a call may still come in time
                self.ray.get(actor.born.remote())

    def test_workers_of_all_runs_are_forked_from_what_was_imported_once(self):
        self.program_imports()
        for _ in range(2):
            with self.ray.init(num_cpus=4):
                born = self.ray.get([self.actor().born.remote() for _ in range(2)])
                self.assertEqual([comm for _, _, comm, _ in born], ["cadre-agent"] * 2)
                self.assertEqual(len({agent for _, agent, _, _ in born}), 2)
                self.assertTrue(self.ray.get(self.ray.remote(lambda: "IMPORTS" in os.environ).remote()))
        nursery = self.nursery._here
        self.assertEqual(self.importers(), [os.getpid(), nursery._process.pid])
        self.nursery._here = None
        nursery.leave()
        self.assertEqual(nursery._process.wait(LIMIT_S), 0)

    def test_a_program_that_is_killed_leaves_no_process_and_no_folder_even_if_a_child_of_it_lives(self):
        self.program_imports()
        text = f"""
import importlib, os, signal, sys
from cadre import ray
from cadre.ray import _nursery
_nursery._SLOW = ("{self.module}",)
importlib.import_module("{self.module}")
ray.init(num_cpus=4)
ray.get(ray.remote(lambda: 0).remote())
child = os.fork()
if child == 0:
    os.close(1)
    signal.pause()
print(child, _nursery._here._process.pid, _nursery._here._folder, flush=True)
sys.stdin.readline()
os.kill(os.getpid(), signal.SIGKILL)
"""
        with subprocess.Popen([os.environ["CADRE_PYTHON3"], "-c", text], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as program:
            child, pid, folder = program.stdout.readline().split()
            nursery = os.pidfd_open(int(pid))
            program.stdin.close()
            select.select([nursery], [], [])
            os.close(nursery)
            os.kill(int(child), signal.SIGKILL)
        self.assertFalse(os.path.exists(folder))

    def test_a_worker_with_variables_of_its_own_imports_itself(self):
        self.program_imports()
        self.ray.init(num_cpus=4)
        pid, _, comm, who = self.ray.get(self.actor(runtime_env={"env_vars": {"WHO": "me"}}).born.remote())
        self.assertEqual((comm, who), ("cadre-agent", "me"))
        self.assertIn(pid, self.importers())

    def test_a_worker_with_more_cpus_imports_itself_to_have_more_threads(self):
        self.program_imports()
        self.ray.init(num_cpus=4)
        pid, _, comm, _ = self.ray.get(self.actor(num_cpus=2).born.remote())
        self.assertEqual(comm, "cadre-agent")
        self.assertIn(pid, self.importers())
        self.ray.shutdown()
        with unittest.mock.patch.dict(os.environ, {"OMP_NUM_THREADS": "3"}):  # the program itself says it
            self.ray.init(num_cpus=4)
            pid, _, _, _ = self.ray.get(self.actor(num_cpus=2).born.remote())
        self.assertNotIn(pid, self.importers())

    def test_variables_that_the_program_has_changed_before_init_are_there_when_workers_import(self):
        text = SLOW.replace("{os.getpid()}", "{os.getpid()} {os.environ.get('COLOR')}")
        self.program_imports(text)
        seen = []
        for color in ("blue", "red", "red"):
            with unittest.mock.patch.dict(os.environ, {"COLOR": color}):
                with self.ray.init(num_cpus=4):
                    os.environ["COLOR"] = "green"  # too late
                    self.ray.get(self.actor().born.remote())
            with open(self.imports, encoding="utf-8") as f:
                seen.append([line.split()[1] for line in f])
        self.assertEqual(seen, [["None", "blue"], ["None", "blue", "red"], ["None", "blue", "red"]])

    def test_a_process_in_line_that_is_stopped_keeps_nobody_waiting(self):
        self.program_imports()
        self.ray.init(num_cpus=4)
        self.ray.get(self.actor().born.remote())
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stopped:
            stopped.connect(self.nursery._here.said["path"])  # and says nothing
            pid, _, _, _ = self.ray.get(self.actor().born.remote())
            self.assertNotIn(pid, self.importers())
            self.nursery._here.leave()
            self.assertEqual(stopped.recv(16), b"")  # it is on its own
        self.nursery._here = None

    def test_an_agent_that_is_killed_is_the_end_of_its_worker(self):
        self.program_imports()
        self.ray.init(num_cpus=4)
        actor = self.actor()
        pid, agent, _, _ = self.ray.get(actor.born.remote())
        os.kill(agent, signal.SIGKILL)
        self.await_death(actor)
        self.assertNotIn(pid, self.importers())

    def test_a_nursery_that_is_killed_is_followed_by_another(self):
        self.program_imports()
        self.ray.init(num_cpus=4)
        actor = self.actor()
        self.ray.get(actor.born.remote())
        first = self.nursery._here
        first._process.kill()
        first._process.wait()
        self.await_death(actor)
        pid, _, comm, _ = self.ray.get(self.actor().born.remote())
        self.assertEqual(comm, "cadre-agent")
        self.assertIsNot(self.nursery._here, first)
        self.assertNotIn(pid, self.importers())

    def test_where_imports_leave_threads_workers_import_themselves(self):
        self.program_imports("import threading, time\n" + SLOW + "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n")
        self.ray.init(num_cpus=4)
        for _ in range(2):
            pid, _, comm, _ = self.ray.get(self.actor().born.remote())
            self.assertEqual(comm, "cadre-agent")
            self.assertIn(pid, self.importers())
        self.assertEqual(self.nursery._here._process.wait(LIMIT_S), 1)


if __name__ == "__main__":
    with_packages("small")
    main()
