# SPDX-License-Identifier: Apache-2.0
"""A run of groups on this machine: cadre-local, for as long as a client."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import weakref

from . import _printing, _programs
from ._client import Client
from ._code import _archive

_END_S, _INTERRUPTED_S = 30, 2  # how long ranks may take to end, normally and after the program was interrupted
_START_S = 300  # only a program that hangs takes so long
_PRINT_S = 5
_USUAL = r"^cadre-local: taking calls at |\[agent\] signal 15: stopping$"


def local(gpus=0, nodes=1, *, cpus=None, trust=True, on_connection=None, on_output=None, **options):
    """Returns a Client of its own run, without a cluster: `nodes` logical nodes with `gpus` GPUs and `cpus` CPUs each
    (default: as many as this machine has). They are counted, not searched for. The run ends with the client, at the
    latest with this program, and all its groups end, too. It needs the programs cadre-local, cadre-agent and, for
    modules in C, cadre-worker: from the package, from PATH, or from CADRE_LOCAL, CADRE_AGENT and CADRE_WORKER.
    Python ranks run with the Python of this program (or CADRE_PYTHON3), and import the modules beside it.

    namespace   of its groups ("default"); further options: as for connect()
    """
    run = _Run(gpus, nodes, cpus)
    try:
        options.setdefault("namespace", "default")
        return LocalClient(run, on_connection, on_output, trust, options)
    except BaseException:
        run.stop()
        raise


class LocalClient(Client):
    """A Client with its own run, made by cadre.local()."""

    prints = False  # the output of the run comes through pipes, up to the last line

    def __init__(self, run, on_connection, on_output, trust, options):
        self._run = run
        self._finalizer = weakref.finalize(self, run.stop)
        self._tasks_at_once = run.cpus * run.nodes
        super().__init__(run.address, on_connection, on_output, trust, options)

    def __exit__(self, kind, *exc):
        self._run.interrupted = kind is not None
        super().__exit__(kind, *exc)

    def _supply(self, name, archive):
        """The ranks are on this machine: the archive is unpacked where they look for it."""
        if not os.path.isdir(_archive.place(self._run.archives, archive.sha256)):
            _archive.unpack(archive.file, archive.sha256, self._run.archives)

    def close(self):
        """Closes the client, and ends the run."""
        super().close()
        if self._is_mine():
            self._run.stop()


def _program(name, variable):
    found = _programs.find(name, variable)
    if not found:
        raise FileNotFoundError(f"cadre.local() needs the program {name}, and neither {_programs.own(name)} nor PATH has it: "
                                f"install the wheel cadre-sdk; or build it ('make build' in the source tree) and add its "
                                f"folder to PATH, or set {variable}")
    return found


def _modules():
    """PYTHONPATH for the ranks: they find the modules that this program finds in its own folder."""
    beside = [os.path.abspath(sys.path[0])] if sys.path and os.path.isdir(sys.path[0]) else []
    return os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), *beside]))


class _Run:
    """The process, and the folder with its socket."""

    def __init__(self, gpus, nodes, cpus):
        program, agent = _program("cadre-local", "CADRE_LOCAL"), _program("cadre-agent", "CADRE_AGENT")
        worker = _programs.find("cadre-worker", "CADRE_WORKER")
        folders = [os.path.dirname(os.path.abspath(worker))] if worker else []
        self.cpus, self.nodes = cpus or os.cpu_count() or 1, nodes
        self._pid, self.interrupted = os.getpid(), False
        self._folder = tempfile.mkdtemp(prefix="cadre-")
        self.address = f"unix:{self._folder}/socket"
        self.archives = f"{self._folder}/archives"
        path = os.pathsep.join([self._python(), *folders, os.environ.get("PATH", os.defpath)])
        self._process = subprocess.Popen(
            [program, "--serve", "--with-parent", str(self._pid), "--listen", self.address, "--agent", agent, "--nodes", str(nodes),
             "--gpus", str(gpus), *(["--cpus", str(cpus)] if cpus is not None else [])],
            env={**os.environ, "PATH": path, "PYTHONPATH": _modules(), _archive.FOLDER: self.archives}, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self._printer = _printing.Printer(self._process.stdout, self._process.stderr, _USUAL)
        try:
            self._await_socket()
        except BaseException:
            self.stop()
            raise

    def _python(self):
        """A folder with a python3 that is this program's Python, with the packages installed for it."""
        folder = f"{self._folder}/bin"
        os.mkdir(folder)
        with open(f"{folder}/python3", "w", encoding="utf-8") as f:
            f.write(f'#!/bin/sh\nexec {shlex.quote(os.environ.get("CADRE_PYTHON3") or sys.executable)} "$@"\n')
        os.chmod(f"{folder}/python3", 0o755)
        return folder

    def _await_socket(self):
        end = time.monotonic() + _START_S
        while not os.path.exists(f"{self._folder}/socket"):
            if self._process.poll() is not None:
                raise RuntimeError(f"cadre-local has ended with exit code {self._process.returncode}; what it has "
                                   "printed says why")
            if time.monotonic() > end:
                raise RuntimeError(f"cadre-local takes no calls at {self.address} after {_START_S} s")
            time.sleep(0.01)

    def stop(self):
        """Ends all processes of the run. May be called twice. In a child of fork(), it does nothing."""
        if self._pid != os.getpid():
            return
        interrupted = self.interrupted or getattr(sys, "last_type", None) is KeyboardInterrupt  # nobody has caught it
        # The second SIGTERM kills the ranks, so the run then ends soon. SIGKILL would leave them behind.
        for signo, patience_s in ((signal.SIGTERM, _INTERRUPTED_S if interrupted else _END_S), (signal.SIGTERM, _END_S),
                                  (signal.SIGKILL, _END_S)):
            if self._process.poll() is None:
                self._process.send_signal(signo)
            try:
                self._process.wait(patience_s)
                break
            except subprocess.TimeoutExpired:
                pass
        self._printer.join(_PRINT_S)
        shutil.rmtree(self._folder, ignore_errors=True)
