#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The wheel: built, installed into an empty environment, and used there without a network: test_wheel.py BUILD

BUILD is a build of the preset release.
"""

import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{ROOT}/tests/unit/support")

from python_case import main  # noqa: E402

PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
# A network of its own, in which nobody answers; only root may have one.
OFFLINE = ["unshare", "--net"] if os.geteuid() == 0 else []


def run(*command, **options):
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, **options)
    assert done.returncode == 0, f"{' '.join(command)}: exit code {done.returncode}: {done.stderr}"
    return done.stdout


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.wheel = run(f"{ROOT}/deploy/wheel.sh", sys.argv[1], f"{cls.folder.name}/dist").strip()
        cls.bin = f"{cls.folder.name}/venv/bin"
        run(PYTHON, "-m", "venv", f"{cls.folder.name}/venv")
        run(f"{cls.bin}/pip", "install", "--no-index", "--quiet", cls.wheel)
        cls.package = run(f"{cls.bin}/python", "-c", "import cadre; print(cadre.__path__[0])", env=ENVIRONMENT).strip()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def python(self, code):
        """What a program prints that has this wheel, and nothing else of ours."""
        path = f"{self.folder.name}/program.py"
        with open(path, "w", encoding="utf-8") as f:
            f.write(code)
        return run(*OFFLINE, f"{self.bin}/python", path, env=ENVIRONMENT, cwd="/")

    def test_its_tag_names_the_newest_c_library_that_it_asks_for(self):
        said = int(re.search(r"-py3-none-manylinux_2_(\d+)_\w+\.whl$", self.wheel)[1])
        files = [f"{self.package}/libcadre.so", *glob.glob(f"{self.package}/bin/*"), *glob.glob(f"{self.package}/lib/*.so*")]
        asked = [int(n) for f in files for n in re.findall(r"GLIBC_2\.(\d+)", run("readelf", "-V", f))]
        self.assertEqual(said, max(asked))

    def test_it_is_typed_and_has_the_terms_of_what_it_brings(self):
        with zipfile.ZipFile(self.wheel) as archive:
            names = archive.namelist()
        for wanted in ("cadre/py.typed", "cadre/LICENSE", "cadre/_vendor/cloudpickle/LICENSE"):
            self.assertIn(wanted, names)
        if os.path.exists("/usr/bin/dpkg-query"):
            self.assertIn("cadre/lib/libwebsockets17.copyright", names)

    def test_programs_take_no_library_of_the_system_but_the_c_library(self):
        for program in glob.glob(f"{self.package}/bin/*"):
            if "statically linked" in (linked := subprocess.run(["ldd", program], capture_output=True, text=True).stdout):
                continue
            for path in re.findall(r"=> (/\S+)", linked):
                self.assertTrue(os.path.realpath(path).startswith(self.package) or
                                re.search(r"/lib(c|m|dl|rt|pthread|resolv)\.so", path), f"{program} takes {path}")

    def test_a_group_runs_with_the_wheel_alone(self):
        with open(f"{self.folder.name}/counting.py", "w", encoding="utf-8") as f:
            f.write("import cadre\n\nclass Counter:\n    def __init__(self, start):\n        self.n = start + cadre.rank()\n"
                    "    def add(self, x):\n        self.n += x\n        return self.n\n")
        printed = self.python(
            "import cadre\nfrom counting import Counter\nwith cadre.local() as client:\n"
            "    maps = open(f'/proc/{client._run._process.pid}/maps').read()\n"
            "    print([line.split()[-1] for line in maps.splitlines() if 'evlib_uv' in line][0])\n"
            "    print(client.Group(Counter, replicas=2, init={'start': 1}).add(10))\n")
        self.assertEqual(printed, f"{self.package}/lib/libwebsockets-evlib_uv.so\n[11, 12]\n")

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
    main()
