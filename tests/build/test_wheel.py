#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The wheels: built for two machines. The one for this machine is installed into an empty environment, and used there without
a network; in the other one there are the same files, for that machine: test_wheel.py BUILD

BUILD is a folder to build them in.
"""

import glob
import os
import platform
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{ROOT}/tests/unit/support")

from python_case import main, pythons  # noqa: E402

PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
# A network of its own, in which nobody answers; only root may have one.
OFFLINE = ["unshare", "--net"] if os.geteuid() == 0 else []


def run(*command, **options):
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, **options)
    assert done.returncode == 0, f"{' '.join(command)}: exit code {done.returncode}: {done.stderr}"
    return done.stdout


def build(folder):
    """Machine -> wheel."""
    made = subprocess.run([f"{ROOT}/deploy/wheel.sh", sys.argv[1], folder], capture_output=True, text=True)
    if made.returncode == 69:
        print(f"ok 1 - the wheels # SKIP {made.stderr.strip().splitlines()[-1]}\n1..1")
        sys.exit(77)
    assert made.returncode == 0, made.stderr
    return {re.search(r"manylinux_2_\d+_(\w+)\.whl$", path)[1]: path for path in made.stdout.split()}


class Wheels(unittest.TestCase):
    """Looks into the wheels of both machines without running them."""

    MACHINES = {"x86_64": "Advanced Micro Devices X86-64", "aarch64": "AArch64"}
    GLIBC = 28
    OF_EVERY_SYSTEM = re.compile(r"(ld-linux-(x86-64|aarch64)|lib(c|m|dl|rt|pthread))\.so\.\d$")

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        for machine, path in wheels.items():
            with zipfile.ZipFile(path) as archive:
                archive.extractall(f"{cls.folder.name}/{machine}")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def files(self, machine):
        root = f"{self.folder.name}/{machine}"
        return {os.path.relpath(path, root): path for path in glob.glob(f"{root}/**", recursive=True) if os.path.isfile(path)}

    def programs(self, machine):
        """Those that the machine itself reads."""
        return {name: path for name, path in self.files(machine).items()
                if name == "cadre/libcadre.so" or name.startswith("cadre/bin/")}

    def test_there_is_one_for_each_machine_with_the_same_files(self):
        self.assertEqual(set(wheels), set(self.MACHINES))
        self.assertEqual(set(self.files("x86_64")), set(self.files("aarch64")))
        self.assertEqual(set(self.programs("aarch64")), {"cadre/libcadre.so", "cadre/bin/cadre-agent", "cadre/bin/cadre-local",
                                                         "cadre/bin/kubectl-cadre"})

    def test_its_programs_are_of_its_machine(self):
        for machine, text in self.MACHINES.items():
            for name, path in self.programs(machine).items():
                self.assertEqual(re.search(r"Machine:\s+(.*)", run("readelf", "-h", path))[1], text, name)

    def test_they_take_no_library_of_the_system_but_the_c_library(self):
        for machine in self.MACHINES:
            for name, path in self.programs(machine).items():
                needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", path))
                self.assertIn("libc.so.6", needed, name)
                self.assertEqual([n for n in needed if not self.OF_EVERY_SYSTEM.match(n)], [], f"{name} of {machine}")

    def test_its_tag_names_the_newest_c_library_that_it_asks_for(self):
        for machine, wheel in wheels.items():
            said = int(re.search(r"-py3-none-manylinux_2_(\d+)_\w+\.whl$", wheel)[1])
            asked = [int(n) for path in self.programs(machine).values()
                     for n in re.findall(r"GLIBC_2\.(\d+)", run("readelf", "-VW", path))]
            self.assertEqual(said, max(asked))
            self.assertLessEqual(said, self.GLIBC)

    def test_the_library_shows_the_same_interface_on_both(self):
        shown = {machine: {line.split()[-1] for line in
                           run("nm", "-D", "--defined-only", self.files(machine)["cadre/libcadre.so"]).splitlines()}
                 for machine in self.MACHINES}
        self.assertEqual(shown["x86_64"], shown["aarch64"])
        self.assertIn("cadre_client_open", shown["aarch64"])
        self.assertEqual([name for name in shown["aarch64"] if not name.startswith("cadre_")], [])

    def test_it_is_typed_and_has_the_terms_of_what_it_brings(self):
        for wanted in ("cadre/py.typed", "cadre/LICENSE", "cadre/_vendor/cloudpickle/LICENSE", "cadre/copyright/openssl.copyright",
                       "cadre/copyright/libwebsockets.copyright"):
            self.assertIn(wanted, self.files("aarch64"))


DEBIAN_12 = 11  # its Python; Debian 13 has a test of its own


class OtherPythons(unittest.TestCase):
    """A class of the program runs on ranks of a local run, and its exceptions come back, with each Python that is here."""

    PROGRAM = """
import asyncio, cadre

class OutOfTokens(Exception):
    pass

class Counter:
    def __init__(self, start=0):
        self.n = start + cadre.rank()

    def add(self, x):
        if x > 100:
            raise OutOfTokens(x)
        self.n += x
        return self.n

    async def later(self, x):
        await asyncio.sleep(0)
        return {x}

@cadre.task
def square(x):
    return x * x

with cadre.local() as client:
    counter = client.Group(Counter, replicas=2, init={"start": 10})
    print(counter.add(1), counter.later(5), client.get(square.start(3)))
    try:
        counter.add(1000)
    except OutOfTokens as e:
        print(type(e.cause).__name__)
"""

    def test_every_python_that_is_here_runs_it(self):
        here = pythons()
        self.assertIn(int(run(PYTHON, "-c", "import sys; print(sys.version_info[1])")), here)
        for minor, path in sorted(here.items()):
            with self.subTest(f"3.{minor}"), tempfile.TemporaryDirectory() as folder:
                run(path, "-m", "venv", f"{folder}/venv")
                run(f"{folder}/venv/bin/pip", "install", "--no-index", "--quiet", wheels[platform.machine()])
                with open(f"{folder}/program.py", "w", encoding="utf-8") as f:
                    f.write(self.PROGRAM)
                printed = run(*OFFLINE, f"{folder}/venv/bin/python", f"{folder}/program.py", env=ENVIRONMENT, cwd="/")
                self.assertEqual(printed, "[11, 12] [{5}, {5}] 9\nOutOfTokens\n")
        if DEBIAN_12 not in here:
            self.skipTest(f"there is no python3.{DEBIAN_12} here")


class Debian13(unittest.TestCase):
    """The same on its C library and with its Python: in a root folder that is made the first time."""

    INSIDE = """
set -e
mount --rbind /dev "$1/dev"
mount -t proc proc "$1/proc"
mount -t tmpfs none "$1/tmp"
cp "$2" "$3" "$1/tmp"
exec chroot "$1" sh -ec 'cd /tmp
python3 -m venv venv
venv/bin/pip install --no-index --quiet ./*.whl
venv/bin/python --version
exec venv/bin/python program.py'
"""

    def test_the_wheel_runs_there(self):
        if debian13.returncode == 77:
            self.skipTest(debian13.stderr.strip().splitlines()[-1])
        self.assertEqual(debian13.returncode, 0, debian13.stderr)
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/program.py", "w", encoding="utf-8") as f:
                f.write(OtherPythons.PROGRAM)
            printed = run("unshare", "--net", "--mount", "--pid", "--fork", "sh", "-c", self.INSIDE, "sh", debian13.stdout.strip(),
                          wheels[platform.machine()], f.name, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/nonexistent"})
        self.assertRegex(printed, r"^Python 3\.13\.\d+\n\[11, 12\] \[\{5\}, \{5\}\] 9\nOutOfTokens\n$")


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.wheel = wheels[platform.machine()]
        cls.bin = f"{cls.folder.name}/venv/bin"
        run(PYTHON, "-m", "venv", f"{cls.folder.name}/venv")
        run(f"{cls.bin}/pip", "install", "--no-index", "--quiet", cls.wheel)
        cls.package = run(f"{cls.bin}/python", "-c", "import cadre; print(cadre.__path__[0])", env=ENVIRONMENT).strip()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def python(self, code):
        """Returns the output of a program that has this wheel and nothing else of ours."""
        path = f"{self.folder.name}/program.py"
        with open(path, "w", encoding="utf-8") as f:
            f.write(code)
        return run(*OFFLINE, f"{self.bin}/python", path, env=ENVIRONMENT, cwd="/")

    def test_a_group_runs_with_the_wheel_alone(self):
        with open(f"{self.folder.name}/counting.py", "w", encoding="utf-8") as f:
            f.write("import cadre\n\nclass Counter:\n    def __init__(self, start):\n        self.n = start + cadre.rank()\n"
                    "    def add(self, x):\n        self.n += x\n        return self.n\n")
        printed = self.python(
            "import cadre\nfrom counting import Counter\nwith cadre.local() as client:\n"
            "    print(client.Group(Counter, replicas=2, init={'start': 1}).add(10))\n")
        self.assertEqual(printed, "[11, 12]\n")

    def test_the_first_program_of_the_readme_runs(self):
        with open(f"{ROOT}/README.md", encoding="utf-8") as f:
            program = next(b for b in re.findall(r"^```python\n(.*?)^```", f.read(), re.S | re.M) if "cadre.local()" in b)
        self.assertEqual(self.python(program), "[11, 12, 13, 14]\n")

    def test_its_commands_run_a_group_and_call_it(self):
        for command in ("cadre-local --version", "kubectl-cadre version"):
            name, argument = command.split()
            self.assertIn(name, run(f"{self.bin}/{name}", argument, env=ENVIRONMENT))
        code = ("import subprocess, sys\nprint(subprocess.run(['kubectl-cadre', 'run', '--', 'true'], "
                "capture_output=True, text=True).returncode)")
        self.assertEqual(run(*OFFLINE, f"{self.bin}/python", "-c", code,
                             env={**ENVIRONMENT, "PATH": f"{self.bin}:/usr/bin:/bin", "HOME": self.folder.name}), "0\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        # Both take long the first time, so they come before the tests, whose time is limited.
        wheels = build(made)
        debian13 = subprocess.run([f"{ROOT}/tests/lib/debian.sh", "trixie"], capture_output=True, text=True)
        main()
