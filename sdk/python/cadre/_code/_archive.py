# SPDX-License-Identifier: Apache-2.0
"""Folders of code as one archive with a hash: packed at the program, unpacked once in each pod.

An archive is a tar file of regular files, in the order of their names, without times and owners: the same code has the
same SHA-256. Its files are below WORKING_DIR, where the ranks begin, or below PY_MODULES, which they import from.
"""

import hashlib
import os
import re
import shutil
import stat
import sys
import tarfile
import tempfile
import time
import types
from typing import NamedTuple

from ._ignored import Ignored

MAX = 512 << 20  # bytes of an archive
WORKING_DIR, PY_MODULES = "working_dir", "py_modules"
FOLDER = "CADRE_ARCHIVES"  # the variable that says where workers unpack
_BLOCK = 1 << 20
_LARGEST = 3  # files that a message names
_RESTED_NS = 2_000_000_000  # a file that changed later may change again without another time


class Archive(NamedTuple):
    """file: its bytes, an open file."""

    sha256: str
    size: int
    file: object

    def read(self, offset, size):
        return os.pread(self.file.fileno(), size, offset)


class _Hashing:
    """A file that computes the hash of the bytes written to it."""

    def __init__(self, file):
        self.file, self.hash, self.size = file, hashlib.sha256(), 0

    def write(self, data):
        self.hash.update(data)
        self.size += len(data)
        self.file.write(data)

    def fill(self, size):
        """Writes zeros up to a multiple of `size`."""
        self.write(bytes(-self.size % size))


def _module(given):
    """Returns the folder or file of an entry of py_modules."""
    if isinstance(given, types.ModuleType):
        path = list(getattr(given, "__path__", ())) or [getattr(given, "__file__", None)]
        if not path[0]:
            raise ValueError(f"py_modules: the module {given.__name__} has no file")
        given = path[0]
    path = os.path.abspath(os.fspath(given))
    if not os.path.isdir(path) and not (os.path.isfile(path) and path.endswith(".py")):
        raise ValueError(f"py_modules: {os.fspath(given)!r} is neither a folder nor a .py file of this machine")
    return path


def _found(working_dir, py_modules, excludes):
    """Yields (name in the archive, os.DirEntry or path), in the order of the archive."""
    if isinstance(excludes, (str, bytes)) or isinstance(py_modules, (str, bytes)):
        raise TypeError("py_modules= and excludes= are lists")
    found, names = [], {}
    for path in map(_module, py_modules):
        name = os.path.basename(path)
        if names.setdefault(name, path) != path:
            raise ValueError(f"py_modules: {names[name]} and {path} have the same name")
    for name, path in sorted(names.items()):
        if os.path.isdir(path):
            found += [(f"{PY_MODULES}/{name}/{inner}", entry.path) for inner, entry in Ignored(path, excludes).files()]
        else:
            found.append((f"{PY_MODULES}/{name}", path))
    if working_dir is not None:
        if not os.path.isdir(working_dir):
            raise ValueError(f"working_dir: {os.fspath(working_dir)!r} is not a folder of this machine")
        found += [(f"{WORKING_DIR}/{inner}", entry.path) for inner, entry in Ignored(working_dir, excludes).files()]
    return found


def _regular(path):
    """Returns the status of the file. None: it is a file that archives cannot have, such as a socket."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        raise ValueError(f"{path} is a link to nothing: remove it, or name it in .gitignore") from None
    if stat.S_ISDIR(status.st_mode):
        raise ValueError(f"{path} is a link to a folder, which does not travel: name it in .gitignore, or give that folder "
                         "in py_modules=")
    return status if stat.S_ISREG(status.st_mode) else None


def _check_size(files):
    total = sum(status.st_size for _, _, status in files)
    if total > MAX:
        largest = sorted(files, key=lambda f: -f[2].st_size)[:_LARGEST]
        named = ", ".join(f"{path} ({status.st_size >> 20} MiB)" for _, path, status in largest)
        raise ValueError(f"working_dir and py_modules have {total >> 20} MiB, and {MAX >> 20} MiB is the most: the largest "
                         f"files are {named}; name what the ranks do not need in .gitignore")


def _header(name, mode, size=0, kind=tarfile.REGTYPE):
    """The bytes that tarfile writes before a file. Gain: tarfile takes 45 us for them, half of the time of a small
    file.
    """
    encoded = name.encode("utf-8", "surrogateescape")
    if len(encoded) > tarfile.LENGTH_NAME:
        info = tarfile.TarInfo(name)
        info.mode, info.size, info.type = mode, size, kind
        return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
    head = bytearray(_BLANK)
    head[:len(encoded)] = encoded
    head[100:108], head[124:136], head[156:157] = b"%07o\0" % mode, b"%011o\0" % size, kind
    head[148:156] = b" " * 8  # so its sum is made
    head[148:155] = b"%06o\0" % sum(head)
    return head


_BLANK = tarfile.TarInfo().tobuf(tarfile.GNU_FORMAT)


def _pieces(path, size):
    try:
        with open(path, "rb", buffering=0) as f:
            while size:
                data = f.read(min(size, _BLOCK))
                if not data:
                    raise ValueError(f"{path} was changed while it was read: it has become shorter")
                yield data
                size -= len(data)
    except OSError as e:
        raise ValueError(f"{path} cannot be read: {e.strerror}") from e


def _add(out, name, path, status):
    out.write(_header(name, 0o755 if status.st_mode & stat.S_IXUSR else 0o644, status.st_size))
    for data in _pieces(path, status.st_size):
        out.write(data)
    out.fill(tarfile.BLOCKSIZE)


def folders(place_of):
    """Returns (working_dir, py_modules) of an unpacked archive, as pack() takes them."""
    work, modules = (os.path.join(place_of, name) for name in (WORKING_DIR, PY_MODULES))
    return (work if os.path.isdir(work) else None,
            sorted(entry.path for entry in os.scandir(modules)) if os.path.isdir(modules) else [])


def pack(working_dir=None, py_modules=(), excludes=()):
    """Returns the Archive of a folder, and of modules or packages (paths, or the modules themselves). It leaves out
    .git, virtual environments, and everything that .gitignore or excludes= name, both in the syntax of
    gitignore(5). The ValueError says what is wrong.
    """
    begun = time.time_ns()
    files = [(name, path, _regular(path)) for name, path in _found(working_dir, py_modules, excludes)]
    files = [f for f in files if f[2]]
    _check_size(files)
    looks = (working_dir is not None, [(name, path, s.st_dev, s.st_ino, s.st_mode, s.st_size, s.st_ctime_ns)
                                       for name, path, s in files])
    for known, archive in _last:
        if known == looks:
            return archive
    archive = _written(working_dir is not None, files)
    if all(s.st_ctime_ns < begun - _RESTED_NS for _, _, s in files):
        _last[:] = [(looks, archive)]
    return archive


_last = []  # (how the files looked, their archive): a notebook cell that runs again does not read them again


def _written(has_folder, files):
    file = tempfile.TemporaryFile(prefix="cadre-archive-", buffering=_BLOCK)
    out = _Hashing(file)
    if has_folder:
        out.write(_header(WORKING_DIR + "/", 0o755, kind=tarfile.DIRTYPE))  # even if it is empty
    for name, path, status in files:
        _add(out, name, path, status)
    out.write(bytes(2 * tarfile.BLOCKSIZE))
    out.fill(tarfile.RECORDSIZE)
    file.flush()
    return Archive(out.hash.hexdigest(), out.size, file)


def _hash(file):
    found = hashlib.sha256()
    file.seek(0)
    for block in iter(lambda: file.read(_BLOCK), b""):
        found.update(block)
    return found.hexdigest()


def _check_member(info):
    parts = info.name.split("/")
    if not (info.isreg() or info.isdir()):
        raise ValueError(f"the archive is refused: {info.name!r} is neither a file nor a folder, but a link or a device")
    if info.name.startswith("/") or ".." in parts or "\0" in info.name or parts[0] not in (WORKING_DIR, PY_MODULES):
        raise ValueError(f"the archive is refused: {info.name!r} leads out of it")


def _unpack(file, folder):
    file.seek(0)
    try:
        with tarfile.open(fileobj=file, mode="r:", encoding="utf-8", errors="surrogateescape") as tar:
            for info in tar:
                _check_member(info)
                path = os.path.join(folder, info.name)
                os.makedirs(path if info.isdir() else os.path.dirname(path), exist_ok=True)
                if info.isreg():
                    with open(path, "xb") as out, tar.extractfile(info) as data:
                        shutil.copyfileobj(data, out, _BLOCK)
                    os.chmod(path, info.mode & 0o755)
    except (tarfile.TarError, EOFError, FileExistsError, IsADirectoryError, NotADirectoryError) as e:
        raise ValueError(f"the archive is refused: it is not an archive of Cadre: {e}") from None


def place(folder, sha256):
    """The folder of the unpacked archive with that hash. If it exists, it is complete."""
    return os.path.join(folder, sha256)


def kept(folder, sha256):
    """The file of the archive itself, for others that want it."""
    return os.path.join(folder, f"{sha256}.tar")


def _keep(file, path):
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(path), prefix=".", delete=False) as out:
        try:
            file.seek(0)
            shutil.copyfileobj(file, out, _BLOCK)
            out.flush()
            os.rename(out.name, path)
        except BaseException:
            os.unlink(out.name)
            raise


def unpack(file, sha256, folder):
    """Unpacks the archive below the folder, completely or not at all, and keeps the archive there. place() appears
    when everything is there. ValueError: it is not the archive with that hash, or has entries that no archive may
    have. OSError: the disk is full.
    """
    found = _hash(file)
    if found != sha256:
        raise ValueError(f"the archive was changed on its way: its SHA-256 is {found}, and spec.worker.archive says {sha256}")
    os.makedirs(folder, exist_ok=True)
    beside = tempfile.mkdtemp(prefix=f".{sha256[:12]}-", dir=folder)
    try:
        _unpack(file, beside)
        os.chmod(beside, 0o755)
        _keep(file, kept(folder, sha256))
        os.rename(beside, place(folder, sha256))
    except FileExistsError:
        pass
    except OSError as e:
        if not os.path.isdir(place(folder, sha256)):  # another rank was first
            raise OSError(e.errno, f"the archive cannot be unpacked below {folder}: {e.strerror}") from e
    finally:
        shutil.rmtree(beside, ignore_errors=True)


class Wanted(NamedTuple):
    """The archive of spec.worker.archive, as the environment says it, and the folder below which it is unpacked."""

    sha256: str
    size: int
    folder: str

    @property
    def place(self):
        return place(self.folder, self.sha256)


def of_environment():
    """Returns the archive that this worker wants, or None. ValueError: the environment is wrong."""
    said = os.environ.get("CADRE_ARCHIVE")
    if not said:
        return None
    found = re.fullmatch("([0-9a-f]{64}):([0-9]{1,12})", said)
    if not found or not 0 < int(found[2]) <= 2 * MAX:
        raise ValueError(f"CADRE_ARCHIVE is {said[:100]!r}: it looks like SHA256:BYTES")
    return Wanted(found[1], int(found[2]), os.environ.get(FOLDER) or _own_folder())


def _own_folder():
    """A folder that no other user can write to."""
    folder = os.path.join(tempfile.gettempdir(), f"cadre-archives-{os.geteuid()}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    status = os.stat(folder, follow_symlinks=False)
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise ValueError(f"{folder} is open to other users: remove it, or set {FOLDER} to a folder of your own")
    return folder


def of_worker():
    """The Archive that this worker was given, or None."""
    wanted = of_environment()
    return Archive(wanted.sha256, wanted.size, open(kept(wanted.folder, wanted.sha256), "rb")) if wanted else None


def enter(folder):
    """Lets the ranks import from an unpacked archive, and makes its working_dir their own."""
    for inner in (PY_MODULES, WORKING_DIR):  # the last one is searched first
        path = os.path.join(folder, inner)
        if os.path.isdir(path):
            sys.path.insert(0, path)
    if os.path.isdir(os.path.join(folder, WORKING_DIR)):
        os.chdir(os.path.join(folder, WORKING_DIR))
