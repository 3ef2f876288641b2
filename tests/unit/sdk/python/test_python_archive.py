#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Archives of code: what travels, and what is refused when they are unpacked."""

import hashlib
import io
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import types
import unittest
import unittest.mock

import cadre
from cadre import _method, _supply
from cadre._code import _archive
from cadre._code._ignored import Ignored
from cadre.worker import _bootstrap
from python_case import SLOW_S, RunCase, main, program

SEED = int(os.environ.get("SEED", "7"))
NAMES = ("a", "b", "ab", "x.log", "b.py", "data", "#a", "!b", "a b", "c*", "[x]")
PATTERNS = ("*.log", "a", "/a", "b/", "a/b", "/a/*", "**/b", "a/**", "a/**/b", "!a/b", "!x.log", "#a", r"\#a", r"\!b", "[ab]", "[!a]",
            "?b", "*", "!*/", "!*.py", "a b", "a ", "/", "", r"c\*", r"\[x]", "[z-a]", "[", "data/**/x.log", "!data", "*/a")


def git(folder, *words):
    return subprocess.run(["git", "-C", folder, "-c", "core.excludesFile=/dev/null", *words], check=True, capture_output=True,
                          env={**os.environ, "GIT_CONFIG_NOSYSTEM": "1"}).stdout


class Folder(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)

    def write(self, path, text="x"):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def names(self, archive):
        archive.file.seek(0)
        with tarfile.open(fileobj=archive.file) as tar:
            return [info.name for info in tar if info.isreg()]


class Ignoring(Folder):
    def fill(self, rng, at="", depth=0):
        for name in rng.sample(NAMES, rng.randint(2, 5)):
            if depth < 3 and rng.random() < 0.4:
                self.fill(rng, f"{at}{name}/", depth + 1)
            else:
                self.write(at + name)
        if rng.random() < (0.9 if not at else 0.3):
            self.write(f"{at}.gitignore", "\n".join(rng.choices(PATTERNS, k=rng.randint(1, 5))) + "\n")

    def test_the_same_files_travel_as_git_would_add(self):
        rng = random.Random(SEED)
        for _ in range(60):
            self.fill(rng)
            git(self.root, "init", "-q")
            said = git(self.root, "ls-files", "-co", "--exclude-standard", "-z").decode().split("\0")[:-1]
            self.assertEqual(sorted(path for path, _ in Ignored(self.root).files()), sorted(said),
                             subprocess.getoutput(f"cd {self.root} && find . -name .gitignore | xargs head -50"))
            below = next((e.path for e in os.scandir(self.root) if e.is_dir() and e.name != ".git"), None)
            if below:  # the rules above it hold there, too
                said = git(below, "ls-files", "-co", "--exclude-standard", "-z").decode().split("\0")[:-1]
                if not subprocess.run(["git", "-C", self.root, "check-ignore", "-q", below], check=False).returncode == 0:
                    self.assertEqual(sorted(path for path, _ in Ignored(below).files()), sorted(said))
            shutil.rmtree(self.root)
            os.mkdir(self.root)

    def test_git_caches_and_virtual_environments_stay(self):
        for path in ("train.py", ".git/config", "__pycache__/train.pyc", "venv/pyvenv.cfg", "venv/lib/site.py", ".env", "a/.hg/x"):
            self.write(path)
        self.assertEqual([path for path, _ in Ignored(self.root).files()], [".env", "train.py"])

    def test_patterns_of_a_program_beat_the_files(self):
        self.write(".gitignore", "*.log\n")
        for path in ("a.log", "b.bin", "c.py"):
            self.write(path)
        self.assertEqual([path for path, _ in Ignored(self.root, ["!a.log", "*.bin", ".gitignore"]).files()], ["a.log", "c.py"])


class Packing(Folder):
    def test_the_same_code_has_the_same_hash(self):
        self.write("b.py", "2")
        path = self.write("a.py", "1")
        first = _archive.pack(self.root)
        os.utime(path, (1, 1))
        self.assertEqual(_archive.pack(self.root).sha256, first.sha256)
        first.file.seek(0)
        self.assertEqual(hashlib.sha256(first.file.read()).hexdigest(), first.sha256)
        self.write("a.py", "3")
        self.assertNotEqual(_archive.pack(self.root).sha256, first.sha256)

    def test_it_is_what_tarfile_writes(self):
        for length in (1, 87, 88, 89, 200):  # in front of them stands working_dir/: the header has room for 100 bytes
            self.write("n" * length, "x" * length)
        os.chmod(self.write("sub/\u00e9" * 20), 0o700)
        for size in (0, 511, 512, 513, _archive._BLOCK + 1):
            self.write(f"{size} bytes", "x" * size)
        with open(os.fsencode(self.root) + b"/\xff", "wb"):
            pass
        expected = io.BytesIO()
        with tarfile.open(fileobj=expected, mode="w", format=tarfile.GNU_FORMAT, encoding="utf-8") as tar:
            folder = tarfile.TarInfo("working_dir")
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(folder)
            for name, entry in Ignored(self.root, ()).files():
                info = tarfile.TarInfo(f"working_dir/{name}")
                info.size, info.mode = os.path.getsize(entry.path), 0o755 if name.startswith("sub/") else 0o644
                with open(entry.path, "rb") as f:
                    tar.addfile(info, f)
        archive = _archive.pack(self.root)
        self.assertEqual(archive.size, len(expected.getvalue()))
        self.assertTrue(archive.read(0, archive.size) == expected.getvalue())

    def test_files_that_rest_are_read_once(self):
        path = self.write("a.py", "1")
        with unittest.mock.patch.object(_archive, "_RESTED_NS", -(1 << 60)):  # all do
            first = _archive.pack(self.root)
            self.assertIs(_archive.pack(self.root), first)
            self.assertIsNot(_archive.pack(None, [path]), first)
            before = os.stat(path).st_ctime_ns
            while os.stat(path).st_ctime_ns == before:  # as fine as the clock of the file system
                self.write("a.py", "2")
            self.assertNotEqual(_archive.pack(self.root).sha256, first.sha256)
        with unittest.mock.patch.object(_archive, "_RESTED_NS", 1 << 60):  # none does
            self.write("a.py", "3")
            self.assertIsNot(_archive.pack(self.root), _archive.pack(self.root))

    def test_modules_lie_beside_the_working_directory(self):
        self.write("work/train.py")
        self.write("libs/mine/__init__.py")
        one = self.write("one.py")
        module = types.ModuleType("mine")
        module.__path__ = [os.path.join(self.root, "libs/mine")]
        archive = _archive.pack(os.path.join(self.root, "work"), [module, one])
        self.assertEqual(self.names(archive), ["py_modules/mine/__init__.py", "py_modules/one.py", "working_dir/train.py"])

    def test_a_link_to_a_file_travels_as_the_file(self):
        os.symlink(self.write("a.py", "text"), os.path.join(self.root, "b.py"))
        archive = _archive.pack(self.root)
        archive.file.seek(0)
        with tarfile.open(fileobj=archive.file) as tar:
            self.assertEqual(tar.extractfile("working_dir/b.py").read(), b"text")

    def refuses(self, pattern, *args, error=ValueError):
        with self.assertRaisesRegex(error, pattern):
            _archive.pack(*args)

    def test_what_cannot_travel_is_named(self):
        self.refuses("'/no/such' is not a folder", "/no/such")
        self.refuses("'/no/such' is neither a folder nor a .py file", None, ["/no/such"])
        self.refuses("the module sys has no file", None, [sys])
        self.refuses("are lists", None, "mine", error=TypeError)
        self.write("x/mine/a.py")
        self.write("y/mine/a.py")
        self.refuses("x/mine and .*y/mine have the same name", None, [self.root + "/x/mine", self.root + "/y/mine"])
        os.symlink("x", self.root + "/z")
        self.refuses("z is a link to a folder", self.root)
        os.unlink(self.root + "/z")
        os.symlink("gone", self.root + "/z")
        self.refuses("z is a link to nothing", self.root)
        os.unlink(self.root + "/z")
        with open(self.write("large.bin"), "r+b") as f:
            f.truncate(_archive.MAX + 1)
        self.refuses(r"512 MiB is the most: the largest files are .*large.bin \(512 MiB\).*\.gitignore", self.root)

    def test_a_file_that_shrinks_while_it_is_read_is_named(self):
        path = self.write("a.py", "x" * 10)
        before = os.stat(path)
        self.write("a.py", "x")
        with unittest.mock.patch.object(_archive, "_regular", return_value=before):
            self.refuses("a.py was changed while it was read: it has become shorter", self.root)

    def test_sockets_stay(self):
        self.write("a.py")
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(self.root + "/s")
            self.assertEqual(self.names(_archive.pack(self.root)), ["working_dir/a.py"])


def tar_of(*members):
    """(file, sha256) of members: (name, type, bytes or where a link leads)."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, kind, content in members:
            info = tarfile.TarInfo(name)
            info.type = kind
            if kind == tarfile.REGTYPE:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
            else:
                info.linkname = content
                tar.addfile(info)
    return file, hashlib.sha256(file.getvalue()).hexdigest()


class Unpacking(Folder):
    def unpack(self, file, sha256):
        _archive.unpack(file, sha256, self.root)
        return _archive.place(self.root, sha256)

    def refuses(self, pattern, file, sha256, error=ValueError):
        with self.assertRaisesRegex(error, pattern):
            self.unpack(file, sha256)
        self.assertEqual(os.listdir(self.root), [])

    def test_what_was_packed_is_there_again(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, mode in (("run.sh", 0o755), ("a b.py", 0o640), ("\u00fc/\u00e4.py", 0o644)):
                path = os.path.join(folder, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as f:
                    f.write(name)
                os.chmod(path, mode)
            archive = _archive.pack(folder)
        for _ in range(2):  # the second time it is there
            place = self.unpack(archive.file, archive.sha256)
        with open(place + "/working_dir/\u00fc/\u00e4.py", encoding="utf-8") as f:
            self.assertEqual(f.read(), "\u00fc/\u00e4.py")
        self.assertEqual([os.stat(f"{place}/working_dir/{name}").st_mode & 0o777 for name in ("run.sh", "a b.py")], [0o755, 0o644])
        self.assertEqual(sorted(os.listdir(self.root)), [archive.sha256, archive.sha256 + ".tar"])

    def test_an_empty_folder_is_a_working_directory(self):
        with tempfile.TemporaryDirectory() as folder:
            archive = _archive.pack(folder)
        self.assertEqual(os.listdir(self.unpack(archive.file, archive.sha256)), ["working_dir"])

    def test_no_archive_leads_out_of_itself(self):
        for name in ("../a", "/a", "working_dir/../../a", "other/a", "working_dir/.."):
            self.refuses("leads out of it", *tar_of((name, tarfile.REGTYPE, b"x")))
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
            self.refuses("neither a file nor a folder", *tar_of(("working_dir/a", kind, "/etc/passwd")))
        self.refuses("leads out of it|neither a file", *tar_of(("working_dir/l", tarfile.SYMTYPE, "/tmp"),
                                                               ("working_dir/l/a", tarfile.REGTYPE, b"x")))

    def test_mangled_archives_are_refused(self):
        self.refuses("its SHA-256 is", io.BytesIO(b"other"), "0" * 64)
        twice = tar_of(("working_dir/a", tarfile.REGTYPE, b"1"), ("working_dir/a", tarfile.REGTYPE, b"2"))
        self.refuses("not an archive of Cadre", *twice)
        self.refuses("not an archive of Cadre", *tar_of(("working_dir/a", tarfile.REGTYPE, b"1"),
                                                      ("working_dir/a/b", tarfile.REGTYPE, b"2")))
        whole = tar_of(("working_dir/a", tarfile.REGTYPE, b"x" * 5000))[0].getvalue()
        for size in (100, 700, 3000):
            self.refuses("not an archive of Cadre", io.BytesIO(whole[:size]), hashlib.sha256(whole[:size]).hexdigest())
        rng = random.Random(SEED)
        for _ in range(300):  # whatever the bytes are: refused, or unpacked below the folder
            data = bytearray(whole)
            for _ in range(rng.randint(1, 8)):
                data[rng.randrange(600)] = rng.randrange(256)
            sha256 = hashlib.sha256(data).hexdigest()
            try:
                shutil.rmtree(self.unpack(io.BytesIO(data), sha256))
                os.unlink(_archive.kept(self.root, sha256))
            except (ValueError, OSError):
                pass
            self.assertEqual(os.listdir(self.root), [])

    def test_a_full_disk_leaves_nothing(self):
        file, sha256 = tar_of(("working_dir/a", tarfile.REGTYPE, b"x" * 200000))
        before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        self.addCleanup(signal.signal, signal.SIGXFSZ, before)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, hard))
        try:
            self.refuses(f"cannot be unpacked below {self.root}: File too large", file, sha256, error=OSError)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    def test_a_process_that_is_killed_leaves_nothing_that_looks_whole(self):
        file, sha256 = tar_of(*((f"working_dir/{i}", tarfile.REGTYPE, b"x" * 10000) for i in range(500)))
        for milliseconds in (0, 1, 2, 5, 10, 20, 50, None):
            pid = os.fork()
            if not pid:
                self.unpack(file, sha256)
                os._exit(0)
            if milliseconds is not None:
                time.sleep(milliseconds / 1000)
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            place = _archive.place(self.root, sha256)
            if os.path.isdir(place):
                self.assertEqual(len(os.listdir(place + "/working_dir")), 500)
                shutil.rmtree(place)
            else:
                self.assertIsNotNone(milliseconds)


class Shipped(RunCase, Folder):
    """Groups of a local run, whose ranks import what the program has in folders of its own."""

    TRAIN = """import os
import helper
class Trainer:
    def __init__(self, config="config.txt"):
        with open(config) as f:
            self.config = f.read()
    def work(self):
        return [helper.NAME, self.config, os.path.basename(os.getcwd())]
"""

    def setUp(self):
        super().setUp()
        Folder.setUp(self)
        self.write("work/train.py", self.TRAIN)
        self.write("work/config.txt", "blue")
        self.write("libs/helper/__init__.py", "NAME = 'helped'")
        self.given = {"working_dir": self.root + "/work", "py_modules": [self.root + "/libs/helper"]}

    def test_ranks_begin_in_the_working_directory_and_import_from_it(self):
        with cadre.local() as client:
            group = client.Group("train:Trainer", replicas=2, **self.given)
            self.assertEqual(group.work(), [["helped", "blue", "working_dir"]] * 2)

    def test_the_second_group_ships_nothing_and_changed_code_is_other_code(self):
        with cadre.local() as client:
            client.Group("train:Trainer", **self.given).work()
            with unittest.mock.patch.object(_archive, "unpack", side_effect=AssertionError("shipped again")):
                client.Group("train:Trainer", **self.given).work()
            self.write("work/config.txt", "red")
            self.assertEqual(client.Group("train:Trainer", **self.given).work()[0][1], "red")

    def test_a_module_that_did_not_travel_is_named(self):
        self.write("work/.gitignore", "train.py\n")
        with cadre.local() as client:
            group = client.Group("train:Trainer", restart="Never", **self.given)
            with self.assertRaisesRegex(cadre.Error, "exited with code 65"):
                group.work()

    def run_apart(self):
        """The address of a run that is not the client's own: its ranks have nothing of this program's."""
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        self.archives = folder + "/archives"
        run = subprocess.Popen([program("CADRE_LOCAL"), "--serve", "--listen", f"unix:{folder}/socket", "--agent",
                                program("CADRE_AGENT")], env={**os.environ, "CADRE_ARCHIVES": self.archives,
                                                              "CADRE_ARCHIVE_WAIT": str(self.wait_s)})
        self.addCleanup(run.wait)
        self.addCleanup(run.terminate)
        while not os.path.exists(f"{folder}/socket"):
            self.assertIsNone(run.poll())
            time.sleep(0.02)
        return f"unix:{folder}/socket"

    wait_s = 300

    def test_the_archive_is_sent_to_ranks_that_wait_for_it(self):
        self.write("work/large.bin", "x" * (20 << 20))  # several pieces
        with cadre.connect(self.run_apart(), namespace="default") as client:
            group = client.Group("train:Trainer", replicas=3, **self.given)
            self.assertEqual(group.work(), [["helped", "blue", "working_dir"]] * 3)
            group.kill(1)
            self.assertEqual(group.work.options(timeout=SLOW_S)(), [["helped", "blue", "working_dir"]] * 3)

    def test_ranks_say_what_they_wait_for(self):
        with cadre.connect(self.run_apart(), namespace="default") as client:
            with unittest.mock.patch.object(_supply.Supplies, "add"):
                group = client.Group("train:Trainer", name="mine", restart="Never", **self.given)
            sha256 = _archive.pack(self.given["working_dir"], self.given["py_modules"]).sha256
            while "awaits" not in group.info()["workers"][0]:
                time.sleep(0.05)
            info = group.info()
            self.assertEqual((info["ready"], info["workers"][0]["awaits"]), (False, sha256))
            self.assertIn("1 of 1 ranks wait for their code", info["message"])
            with self.assertRaisesRegex(cadre.Error, "1 of them wait for their code"):
                group.call("work", refuse_when_not_ready=True)
            bootstrap = client.group("mine.code")
            for pattern, args in (("waits for the archive", ["0" * 64, 0, b""]), ("do not follow", [sha256, 5, b"x"]),
                                  ("do not follow", [sha256, 0, b"x" * (1 << 20)])):
                with self.assertRaisesRegex(ValueError, pattern):
                    bootstrap.call("receive", *args, rank=0)

    def test_ranks_that_wait_in_vain_for_their_code_end(self):
        self.wait_s = 1
        with cadre.connect(self.run_apart(), namespace="default") as client:
            with unittest.mock.patch.object(_supply.Supplies, "add"):
                group = client.Group("train:Trainer", restart="Never", **self.given)
            with self.assertRaisesRegex(cadre.Error, "exited with code 65"):
                group.work()

    def begun(self, client, **more):
        """A group whose ranks wait, because nobody brings the archive; and the Archive."""
        with unittest.mock.patch.object(_supply.Supplies, "add"):
            group = client.Group("train:Trainer", name="mine", **self.given, **more)
        archive = _archive.pack(self.given["working_dir"], self.given["py_modules"])
        self.await_waiting(group)
        return group, archive

    def await_waiting(self, group, rank=0):
        while "awaits" not in group.info()["workers"][rank]:
            time.sleep(0.05)

    def test_a_rank_may_die_in_every_state_of_shipping(self):
        self.write("work/large.bin", os.urandom(1 << 20).hex())
        self.write("work/slow.py", "import time, train\ntime.sleep(1)\nTrainer = train.Trainer\n")
        with cadre.connect(self.run_apart(), namespace="default") as client:
            group, archive = self.begun(client, max_restarts=20)
            bootstrap, sha256, half = client.group("mine.code"), archive.sha256, archive.size // 2

            def receive(offset, size):
                return bootstrap.call("receive", sha256, offset, archive.read(offset, size), rank=0, timeout=SLOW_S)

            def dies():
                group.kill(0)
                self.await_waiting(group)

            dies()  # while it waits
            self.assertEqual(receive(0, 0), 0)
            dies()  # before the first byte
            self.assertEqual(receive(0, half), half)
            dies()  # in the middle
            with self.assertRaisesRegex(ValueError, "begin again with the first"):
                receive(half, half)
            self.assertEqual(receive(0, half), half)
            self.assertEqual(receive(0, half), half)  # another program begins again
            self.assertEqual(receive(half, archive.size), archive.size)
            try:
                group.kill(0)  # while it unpacks, begins again, imports or serves, as it happens
            except cadre.Unavailable:
                pass  # it begins again in this moment
            self.assertEqual(group.work.options(timeout=SLOW_S)(), [["helped", "blue", "working_dir"]])
            self.assertEqual([name for name in os.listdir(self.archives) if not name.endswith((".lock", ".tar"))], [sha256])
            slow = client.Group("slow:Trainer", name="slow", **self.given)
            while slow.info()["connected"] or "awaits" in slow.info()["workers"][0]:
                time.sleep(0.01)
            slow.kill(0)  # while it imports
            self.assertEqual(slow.work.options(timeout=SLOW_S)(), [["helped", "blue", "working_dir"]])

    def test_one_rank_of_a_pod_takes_the_archive(self):
        with cadre.connect(self.run_apart(), namespace="default") as client:
            group, archive = self.begun(client, replicas=2)
            self.await_waiting(group, 1)
            bootstrap = client.group("mine.code")

            def receive(rank, data):
                return bootstrap.call("receive", archive.sha256, 0, data, rank=rank, timeout=SLOW_S)

            self.assertEqual((receive(0, b""), receive(1, b"")), (0, None))
            group.kill(0)
            self.await_waiting(group)
            self.await_waiting(group, 1)
            self.assertEqual(receive(1, archive.read(0, archive.size)), archive.size)
            self.assertEqual(group.work.options(timeout=SLOW_S)(), [["helped", "blue", "working_dir"]] * 2)

    def test_ranks_take_no_archive_of_a_caller_that_may_not_send_code(self):
        with cadre.connect(self.run_apart(), namespace="default") as client:
            group = client.Group("train:Trainer", env={"CADRE_TRUST_CALLERS": "0"}, **self.given)
            with self.assertRaisesRegex(cadre.Forbidden, "workergroups/code"):
                group.work()

    def test_modules_in_c_have_no_archive(self):
        with cadre.local() as client, self.assertRaisesRegex(TypeError, "are for workers in Python"):
            client.Group(module=program("ACCUMULATOR_SO"), **self.given)


class ArchiveAgent:
    """The host of a worker as far as other pods matter: the pieces of an archive, or whatever the test sets."""

    def __init__(self, data, *instead):
        self.data, self.instead, self.asked = data, list(instead), []

    def fetch(self, offset, out, size, _):
        self.asked.append(offset)
        said = self.instead.pop(0) if self.instead else None
        if said is not None:
            if not isinstance(said, bytes):
                return said
            data = said
        else:
            data = self.data[offset:offset + min(size, 3000)]
        out[:len(data)] = data
        return len(data)


class FromOtherPods(Folder):
    def setUp(self):
        super().setUp()
        file, self.sha256 = tar_of(("working_dir/a", tarfile.REGTYPE, b"x" * 20000))
        self.data = file.getvalue()
        self.wanted = _archive.Wanted(self.sha256, len(self.data), self.root + "/archives")
        self.bootstrap = _bootstrap.Bootstrap(self.wanted)

    def fetch(self, agent):
        self.bootstrap._fetch(agent, threading.Event())
        return agent.asked

    def test_it_comes_piece_by_piece(self):
        self.assertEqual(self.fetch(ArchiveAgent(self.data)), list(range(0, len(self.data), 3000)))
        self.assertTrue(os.path.isfile(self.wanted.place + "/working_dir/a"))

    def test_no_pod_has_it_or_nobody_answers(self):
        for said in (0, -1):
            self.assertEqual(self.fetch(ArchiveAgent(self.data, said)), [0])
        self.assertFalse(os.path.exists(self.wanted.folder))

    def test_a_piece_that_does_not_come_is_asked_for_again(self):
        self.assertEqual(self.fetch(ArchiveAgent(self.data, None, -1, -1))[:5], [0, 3000, 3000, 3000, 6000])
        self.assertTrue(os.path.isdir(self.wanted.place))

    def test_the_pod_that_had_it_goes_and_it_begins_again(self):
        self.assertEqual(self.fetch(ArchiveAgent(self.data, None, 0)), [0, 3000])
        self.assertFalse(os.path.exists(self.wanted.place))
        self.fetch(ArchiveAgent(self.data))
        self.assertTrue(os.path.isdir(self.wanted.place))

    def test_other_bytes_are_refused_and_it_begins_again(self):
        self.fetch(ArchiveAgent(self.data, b"other"))
        self.assertIn("its SHA-256 is", self.bootstrap.failed)
        self.fetch(ArchiveAgent(self.data))
        self.assertTrue(os.path.isdir(self.wanted.place))

    def test_a_full_disk_is_said(self):
        before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        self.addCleanup(signal.signal, signal.SIGXFSZ, before)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10000, hard))
        try:
            self.fetch(ArchiveAgent(self.data))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        self.assertIn("File too large", self.bootstrap.failed)
        self.assertFalse(os.path.exists(self.wanted.place))

    def test_a_folder_that_cannot_be_written_is_said(self):
        self.write("archives")  # a file where the folder should be
        self.assertEqual(self.fetch(ArchiveAgent(self.data)), [0])
        self.assertRegex(self.bootstrap.failed, f"below {self.wanted.folder}: File exists: .* CADRE_ARCHIVES$")
        os.unlink(self.wanted.folder)
        self.fetch(ArchiveAgent(self.data))
        self.assertTrue(os.path.isdir(self.wanted.place))

    def test_one_sender_at_a_time(self):
        call = unittest.mock.Mock(code=True)
        token = _method.call.set(call)
        self.addCleanup(_method.call.reset, token)
        self.assertEqual(self.bootstrap.receive(self.sha256, 0, self.data[:10]), 10)
        self.assertEqual(self.fetch(ArchiveAgent(self.data)), [0])  # a program sends it
        self.bootstrap._incoming.heard -= 100  # and has gone
        self.fetch(ArchiveAgent(self.data))
        self.assertTrue(os.path.isdir(self.wanted.place))
        shutil.rmtree(self.wanted.place)
        other = _bootstrap._begin(self.wanted)  # another rank of the pod
        self.assertIsNone(self.bootstrap.receive(self.sha256, 0, b""))
        other.close()
        self.assertEqual(self.bootstrap.receive(self.sha256, 0, b""), 0)


if __name__ == "__main__":
    main()
