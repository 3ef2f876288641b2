# SPDX-License-Identifier: Apache-2.0
"""A run of groups on this machine: cadre-local, for as long as a client."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import weakref

from ._client import Client

_END_S = 30  # that ranks have to end
_START_S = 30


def local(gpus=0, nodes=1, *, cpus=None, trust=True, on_connection=None, on_output=None, **options):
    """A Client of a run of its own, without a cluster: `nodes` logical nodes with `gpus` GPUs and `cpus` CPUs each (those
    of this machine), which are counted and not looked for. The run ends with the client, at the latest with this program, and all groups in it do. Needs the
    programs cadre-local, cadre-agent and, for modules in C, cadre-worker: of the package, of PATH, or where
    CADRE_LOCAL, CADRE_AGENT and CADRE_WORKER say.

    namespace   of its groups ("default"); further options are those of connect()
    """
    run = _Run(gpus, nodes, cpus)
    try:
        options.setdefault("namespace", "default")
        return LocalClient(run, on_connection, on_output, trust, options)
    except BaseException:
        run.stop()
        raise


class LocalClient(Client):
    """A Client that has its run; cadre.local() makes it."""

    def __init__(self, run, on_connection, on_output, trust, options):
        self._run = run
        self._finalizer = weakref.finalize(self, run.stop)
        self._tasks_at_once = run.cpus * run.nodes
        super().__init__(run.address, on_connection, on_output, trust, options)

    def close(self):
        """Ends the run, too."""
        super().close()
        if self._is_mine():
            self._run.stop()


def _program(name, variable, needed=True):
    """CADRE_..., or else the package's own, or else that in PATH."""
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", name)
    found = os.environ.get(variable) or (beside if os.path.exists(beside) else shutil.which(name))
    if not found and needed:
        raise FileNotFoundError(f"cadre.local() needs the program {name}, and neither {beside} nor PATH has it: build it "
                                f"('make build' in the source tree) and add its folder to PATH, or set {variable}")
    return found


class _Run:
    """The process, and the folder with its socket."""

    def __init__(self, gpus, nodes, cpus):
        program, agent = _program("cadre-local", "CADRE_LOCAL"), _program("cadre-agent", "CADRE_AGENT")
        worker = _program("cadre-worker", "CADRE_WORKER", needed=False)
        folders = [os.path.dirname(os.path.abspath(worker))] if worker else []
        path = os.pathsep.join([*folders, os.environ.get("PATH", os.defpath)])
        self.cpus, self.nodes = cpus or os.cpu_count() or 1, nodes
        self._pid = os.getpid()
        self._folder = tempfile.mkdtemp(prefix="cadre-")
        self.address = f"unix:{self._folder}/socket"
        self._process = subprocess.Popen(
            [program, "--serve", "--with-parent", "--listen", self.address, "--agent", agent, "--nodes", str(nodes),
             "--gpus", str(gpus), *(["--cpus", str(cpus)] if cpus is not None else [])], env={**os.environ, "PATH": path}, start_new_session=True, stdin=subprocess.DEVNULL)
        try:
            self._await_socket()
        except BaseException:
            self.stop()
            raise

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
        """All processes of it end. Twice is fine; a child of fork() has none."""
        if self._pid != os.getpid():
            return
        for signo in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
            if self._process.poll() is None:
                self._process.send_signal(signo)
            try:
                self._process.wait(_END_S)
                break
            except subprocess.TimeoutExpired:
                pass
        shutil.rmtree(self._folder, ignore_errors=True)
