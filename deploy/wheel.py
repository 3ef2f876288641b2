#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the wheel cadre-sdk: wheel.py BUILD FOLDER DEST

BUILD is a build of the preset release. FOLDER has the package already (package.sh) and gets the rest of the wheel. The
programs come with the shared libraries that they are linked with, except those of the C library's package. The tag
manylinux_2_N is the truth: N is the newest version of the C library that one of the files asks for.
"""

import base64
import glob
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIBRARY = "worker/host/libcadre.so"
PROGRAMS = ["worker/agent/cadre-agent", "operator/local/cadre-local", "cli/kubectl-cadre"]
PLUGIN = "libwebsockets-evlib_uv.so"  # loaded at run time, so that no file names it
OF_EVERY_SYSTEM = re.compile(r"^(ld-linux.*|linux-vdso|lib(c|m|dl|rt|pthread|resolv))\.so")
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
           "[pytest11]\ncadre = cadre.pytest_plugin\n")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def libraries(path):
    """Name -> file of each shared library that this one needs, and those in turn."""
    found = dict(re.findall(r"^\s*(\S+) => (\S+)", output("ldd", path), re.M)) if "NEEDED" in output("readelf", "-d", path) else {}
    missing = [name for name, file in found.items() if file == "not"]
    if missing:
        sys.exit(f"wheel: error: {path} needs {', '.join(missing)}, which is not installed")
    return {name: file for name, file in found.items() if not OF_EVERY_SYSTEM.match(name)}


def plugin():
    found = glob.glob(f"/usr/lib/*/{PLUGIN}") + glob.glob(f"/usr/lib/{PLUGIN}")
    if not found:
        sys.exit(f"wheel: error: {PLUGIN} is missing: run deploy/deps.sh")
    return found[0]


def add_programs(build, package):
    """What runs, and beside it what that is linked with."""
    wanted = {}
    os.makedirs(f"{package}/bin")
    os.makedirs(f"{package}/lib")
    for path in [LIBRARY, *PROGRAMS]:
        place = f"{package}/{'' if path == LIBRARY else 'bin/'}{os.path.basename(path)}"
        if not os.path.exists(f"{build}/{path}"):
            sys.exit(f"wheel: error: there is no {build}/{path}: build the preset release")
        subprocess.run(["strip", "-o", place, f"{build}/{path}"], check=True)
        os.chmod(place, 0o755)
        wanted.update(libraries(f"{build}/{path}"))
    for name, path in {**wanted, PLUGIN: plugin()}.items():
        shutil.copyfile(path, f"{package}/lib/{name}")
        add_copyright(path, f"{package}/lib")
    shutil.copyfile(f"{ROOT}/LICENSE", f"{package}/LICENSE")


def add_copyright(library, folder):
    """The terms of a library are those of its Debian package; other systems keep them elsewhere."""
    if not shutil.which("dpkg-query"):
        return
    package = output("dpkg-query", "-S", f"*/{os.path.basename(os.path.realpath(library))}").split("\n")[0].split(":")[0]
    shutil.copyfile(f"/usr/share/doc/{package}/copyright", f"{folder}/{package}.copyright")


def tag(folder):
    """py3-none-manylinux_2_N_MACHINE."""
    versions = [int(n) for root, _, names in os.walk(folder) for name in names
                for n in re.findall(r"GLIBC_2\.(\d+)", needs(os.path.join(root, name)))]
    return f"py3-none-manylinux_2_{max(versions)}_{platform.machine()}"


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


def main(build, folder, dest):
    version = read("VERSION").strip()
    info = f"cadre_sdk-{version}.dist-info"
    add_programs(build, f"{folder}/cadre")
    name = tag(folder)
    os.makedirs(f"{folder}/{info}")
    for file, text in (("METADATA", METADATA.format(version=version, readme=read("sdk/python/README.md"))),
                       ("WHEEL", WHEEL.format(tag=name)), ("entry_points.txt", SCRIPTS)):
        with open(f"{folder}/{info}/{file}", "w", encoding="utf-8") as f:
            f.write(text)
    shutil.copyfile(f"{ROOT}/LICENSE", f"{folder}/{info}/LICENSE")
    os.makedirs(dest, exist_ok=True)
    for old in glob.glob(f"{dest}/cadre_sdk-*.whl"):
        os.unlink(old)
    path = f"{dest}/cadre_sdk-{version}-{name}.whl"
    write(folder, info, path)
    print(path)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
