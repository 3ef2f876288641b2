#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs for Ray (ray/*.py), run by cadre.ray, and what of them is refused.

    test_python_ray.py --with FOLDER cloudpickle   by cadre.ray; pip may have to bring cloudpickle into FOLDER
    test_python_ray.py --real PYTHON               by Ray itself, which that Python has; 77 where there is none

Both print what ray/NAME.txt has; UPDATE_GOLDEN=1 with --real writes it.
"""

import os
import re
import subprocess
import sys
import threading
import unittest

from python_case import RunCase, environment, main
from safetensors_case import with_package

VERSION = "==3.1.2"
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ray")
PROGRAMS = sorted(name[:-3] for name in os.listdir(FOLDER) if name.endswith(".py"))
LIMIT_S = 200
OF_WORKERS = re.compile(r"(\x1b\[\d+m)?\((raylet|\w+ pid=\d+)|[\w.-]+ \[(rank \d+|agent)\] |cadre-local: ")


def expected(name):
    with open(f"{FOLDER}/{name}.txt", encoding="utf-8") as f:
        return f.read()


def printed(output):
    """What the program itself has printed."""
    return "".join(line for line in output.splitlines(True) if not OF_WORKERS.match(line))


class ByCadre(RunCase):
    """ray/*.py, unchanged but for the import lines, or as they are by `python -m cadre.ray`."""

    def run_program(self, command):
        return subprocess.run([os.environ["CADRE_PYTHON3"], *command], capture_output=True, text=True, timeout=LIMIT_S,
                              check=False, cwd=FOLDER)

    def prints(self, name, command):
        done = self.run_program(command)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(printed(done.stdout), expected(name), done.stderr)

    def with_our_import(self, name):
        with open(f"{FOLDER}/{name}.py", encoding="utf-8") as f:
            text = f.read()
        return re.sub(r"^from ray\b", "from cadre.ray", re.sub(r"^import ray$", "import cadre.ray as ray", text, flags=re.M),
                      flags=re.M)

    def test_a_program_with_another_import_line(self):
        self.prints("basics", ["-c", self.with_our_import("basics")])

    def test_a_program_as_a_module(self):
        self.prints("basics", ["-m", "cadre.ray", "-m", "basics"])


def of_program(name):
    return lambda self: self.prints(name, ["-m", "cadre.ray", f"{name}.py"])


for _name in PROGRAMS:
    setattr(ByCadre, f"test_{_name}_as_it_is", of_program(_name))


class Refused(RunCase):
    """What has no meaning is named, and nothing hangs."""

    def setUp(self):
        super().setUp()
        import cadre.ray

        self.ray = cadre.ray
        self.addCleanup(self.ray.shutdown)

    def test_names_that_are_not_there(self):
        with self.assertRaisesRegex(AttributeError, "cadre.ray has no 'data': "):
            self.ray.data
        with self.assertRaisesRegex(AttributeError, "cadre.ray has no 'nonsense': docs/coming-from-ray.md lists"):
            self.ray.nonsense

    def test_arguments_of_init(self):
        for pattern, arguments in (("Unknown keyword argument.*nonsense", {"nonsense": 1}),
                                   ("CPUs and GPUs only", {"resources": {"special": 1}}),
                                   ("address of a server of Ray's", {"address": "ray://host:10001"}),
                                   ("runtime_env field 'pip'.*image", {"runtime_env": {"pip": ["torch"]}}),
                                   ("runtime_env has no field 'nonsense'", {"runtime_env": {"nonsense": 1}}),
                                   (r"Dict\[str, str\]", {"runtime_env": {"env_vars": {"A": 1}}}),
                                   ("is no folder", {"runtime_env": {"working_dir": "/nowhere"}})):
            with self.assertRaisesRegex(Exception, pattern):
                self.ray.init(**arguments)
            self.assertFalse(self.ray.is_initialized())

    def test_init_twice(self):
        self.ray.init(num_cpus=1)
        with self.assertRaisesRegex(RuntimeError, "ray.init twice"):
            self.ray.init()
        self.ray.init(ignore_reinit_error=True)

    def test_an_actor_or_a_task_that_asks_for_more_than_there_is(self):
        ray = self.ray
        ray.init(num_cpus=2, num_gpus=1)
        with self.assertRaisesRegex(ray.exceptions.ActorUnschedulableError, "asks for 2 GPU, and this run has 1"):
            ray.remote(num_gpus=2)(Refused).remote()
        with self.assertRaisesRegex(ray.exceptions.TaskUnschedulableError, "asks for 3 CPU"):
            ray.remote(num_cpus=3)(expected).remote("x")
        with self.assertRaisesRegex(ValueError, "num_gpus=0.5: a GPU of its own is whole.*placement group"):
            ray.remote(num_gpus=0.5)(Refused).remote()

    def test_options_and_decorators(self):
        ray = self.ray
        with self.assertRaisesRegex(ValueError, "Invalid option keyword nonsense for actors"):
            ray.remote(Refused).options(nonsense=1)
        with self.assertRaisesRegex(ValueError, "Invalid option keyword lifetime for remote functions"):
            ray.remote(lifetime="detached")(expected)
        with self.assertRaisesRegex(ValueError, "num_returns='streaming': cadre.ray has no generators"):
            ray.remote(num_returns="streaming")(expected)
        with self.assertRaisesRegex(TypeError, "either a function or a class"):
            ray.remote(num_cpus=1)(5)
        with self.assertRaisesRegex(TypeError, "cannot be called directly"):
            ray.remote(expected)("x")

    def test_a_program_that_has_imported_ray_itself(self):
        done = subprocess.run([os.environ["CADRE_PYTHON3"], "-c", "import sys, types; sys.modules['ray'] = types.ModuleType("
                               "'ray')\nimport cadre.ray as ray\nray.init()"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("has imported ray itself", done.stderr)
        self.assertIn("python -m cadre.ray program.py", done.stderr)

    def test_a_value_that_does_not_pickle(self):
        ray = self.ray
        ray.init(num_cpus=1)
        with self.assertRaisesRegex(TypeError, r"the value of put\(\) cannot be sent: it\['guard'\] \(a lock\)"):
            ray.put({"guard": threading.Lock()})


class ByRay(unittest.TestCase):
    """The same programs by Ray itself."""

    python = None


def by_ray(name):
    def test(self):
        env = {k: v for k, v in environment().items() if not k.lower().endswith("_proxy")}
        env.update(RAY_AUTH_MODE="disabled", RAY_USAGE_STATS_ENABLED="0")
        done = subprocess.run([self.python, f"{FOLDER}/{name}.py"], capture_output=True, text=True, timeout=LIMIT_S,
                              check=False, env=env)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        if os.environ.get("UPDATE_GOLDEN"):
            with open(f"{FOLDER}/{name}.txt", "w", encoding="utf-8") as f:
                f.write(printed(done.stdout))
        self.assertEqual(printed(done.stdout), expected(name))

    return test


for _name in PROGRAMS:
    setattr(ByRay, f"test_{_name}_by_ray_itself", by_ray(_name))


if __name__ == "__main__":
    if sys.argv[1] == "--real":
        ByRay.python = sys.argv[2]
        found = subprocess.run([ByRay.python, "-c", "import ray"], capture_output=True, text=True, check=False) if (
            os.path.exists(ByRay.python)) else None
        if found is None or found.returncode:
            print(f"1..0 # SKIP {ByRay.python} has no ray: bench/calls/run.sh brings it")
            sys.exit(77)
        del ByCadre, Refused
    else:
        with_package("cloudpickle", sys.argv[2], VERSION)
        del ByRay
    main()
