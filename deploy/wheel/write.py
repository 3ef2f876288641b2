#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the wheel cadre-sdk: write.py MACHINE BUILD LIBRARIES FOLDER DEST

BUILD was built with LIBRARIES (libraries.sh), so its files need nothing but the C library. FOLDER has the package
already (package.sh) and gets the rest of the wheel. The tag manylinux_2_N is the truth: N is the newest version of the
C library that one of the files asks for.
"""

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIBRARY = "worker/host/libcadre.so"
PROGRAMS = ["worker/agent/cadre-agent", "operator/local/cadre-local", "cli/kubectl-cadre"]
DATE = (1980, 1, 1, 0, 0, 0)  # the same files make the same wheel

METADATA = """\
Metadata-Version: 2.1
Name: cadre-sdk
Version: {version}
Summary: Groups of ranked GPU workers from Python: on this machine, or on Kubernetes
License: Apache-2.0
Requires-Python: >=3.9
Provides-Extra: numpy
Requires-Dist: numpy; extra == "numpy"
Description-Content-Type: text/markdown

{readme}"""
WHEEL = "Wheel-Version: 1.0\nGenerator: cadre\nRoot-Is-Purelib: false\nTag: {tag}\n"
SCRIPTS = ("[console_scripts]\ncadre-local = cadre._programs:cadre_local\nkubectl-cadre = cadre._programs:kubectl_cadre\n"
           "[pytest11]\ncadre = cadre.pytest_plugin\n[verl.plugins]\ncadre = cadre.verl\n")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def add_programs(build, libraries, package):
    """Adds the programs, and the licenses of the libraries in them."""
    os.makedirs(f"{package}/bin")
    for path in [LIBRARY, *PROGRAMS]:
        place = f"{package}/{'' if path == LIBRARY else 'bin/'}{os.path.basename(path)}"
        shutil.copyfile(f"{build}/{path}", place)
        os.chmod(place, 0o755)
    shutil.copytree(f"{libraries}/copyright", f"{package}/copyright")
    shutil.copyfile(f"{ROOT}/LICENSE", f"{package}/LICENSE")


def tag(folder, machine):
    """py3-none-manylinux_2_N_MACHINE."""
    versions = [int(n) for root, _, names in os.walk(folder) for name in names
                for n in re.findall(r"GLIBC_2\.(\d+)", needs(os.path.join(root, name)))]
    return f"py3-none-manylinux_2_{max(versions)}_{machine}"


def needs(path):
    with open(path, "rb") as f:
        return output("readelf", "-V", "-W", path) if f.read(4) == b"\x7fELF" else ""


def write(folder, info, path):
    """The archive, and in it the list of all files with their hashes, which is the last of them."""
    names = sorted(os.path.relpath(os.path.join(root, name), folder) for root, _, files in os.walk(folder) for name in files)
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in [n for n in names if not n.startswith(info)] + [n for n in names if n.startswith(info)]:
            with open(os.path.join(folder, name), "rb") as f:
                data = f.read()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}\n")
            add(archive, name, data, os.stat(os.path.join(folder, name)).st_mode)
        add(archive, f"{info}/RECORD", "".join([*record, f"{info}/RECORD,,\n"]).encode(), 0o100644)


def add(archive, name, data, mode):
    entry = zipfile.ZipInfo(name, DATE)
    entry.external_attr = (0o100755 if mode & 0o100 else 0o100644) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, data)


def main(machine, build, libraries, folder, dest):
    version = read("VERSION").strip()
    info = f"cadre_sdk-{version}.dist-info"
    add_programs(build, libraries, f"{folder}/cadre")
    name = tag(folder, machine)
    os.makedirs(f"{folder}/{info}")
    for file, text in (("METADATA", METADATA.format(version=version, readme=read("sdk/python/README.md"))),
                       ("WHEEL", WHEEL.format(tag=name)), ("entry_points.txt", SCRIPTS)):
        with open(f"{folder}/{info}/{file}", "w", encoding="utf-8") as f:
            f.write(text)
    shutil.copyfile(f"{ROOT}/LICENSE", f"{folder}/{info}/LICENSE")
    os.makedirs(dest, exist_ok=True)
    path = f"{dest}/cadre_sdk-{version}-{name}.whl"
    write(folder, info, path)
    print(path)


if __name__ == "__main__":
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    main(*sys.argv[1:])
