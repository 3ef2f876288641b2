# SPDX-License-Identifier: Apache-2.0
"""Runs a program with Ray itself, as `python -m cadre.ray` runs it with Cadre:

    python ray_itself.py [--kept FOLDER | --forget FOLDER] [--no-dashboard] FILE | -m MODULE [ARG...]

  --kept FOLDER    If this program has succeeded before, prints the output from then. It runs again if its arguments, a file
                   in FOLDER, this file, or the version of Ray or Python has changed. Nothing of Cadre takes part in a run, so
                   it would print the same. The output is in ~/.cache/cadre/ray-output; it is deleted 30 days after its last use.
  --forget FOLDER  Runs nothing, and deletes that output, because it is not as expected. Otherwise, no run could be better.
  --no-dashboard   Ray starts without its dashboard, which takes seconds of CPU time. The API of states needs the dashboard.

Ray has a cluster of its own, talks to nobody else, and its limits are longer: they are too short on a busy machine. One stays:
the raylet aborts if its agents take longer than 25 s to start. Then ray.init() starts another node.
"""

import contextlib
import ctypes
import functools
import glob
import hashlib
import json
import os
import runpy
import signal
import subprocess
import sys
import time

WAIT_S, START_S = 1200, 180  # START_S: for requests to a GCS that starts
TRIES, NOT_STARTED = 8, "The current node timed out during startup"
NODE_FIXED_S, NODE_S = 30, 60  # how long ray.init() waits for the raylet: a constant in the code of Node.__init__(), and instead
LIMITS_S = ("RAY_gcs_rpc_server_connect_timeout_s", "RAY_gcs_rpc_server_reconnect_timeout_s", "RAY_gcs_server_port_wait_time_s",
            "RAY_py_gcs_connect_timeout_s", "RAY_worker_register_timeout_seconds", "RAY_DASHBOARD_STARTUP_TIMEOUT_S")
LIMITS_MS = ("RAY_agent_register_timeout_ms", "RAY_health_check_timeout_ms", "RAY_raylet_client_connect_timeout_milliseconds")


def surround():
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        del os.environ[name]  # Ray asks it for loopback, too
    os.environ.update({name: str(WAIT_S) for name in LIMITS_S}, **{name: str(WAIT_S * 1000) for name in LIMITS_MS})
    # No worker starts before it is needed, because each takes a second of CPU time. local: not the Ray of another program.
    os.environ.update(RAY_AUTH_MODE="disabled", RAY_USAGE_STATS_ENABLED="0", RAY_prestart_worker_first_driver="0",
                      RAY_ADDRESS="local", RAY_gcs_server_request_timeout_seconds=str(START_S))


def patient(init):
    import ray
    from ray._private.node import Node

    code = Node.__init__.__code__
    Node.__init__.__code__ = code.replace(co_consts=tuple(NODE_S if c == NODE_FIXED_S else c for c in code.co_consts))

    @functools.wraps(init)
    def patient_init(*args, **kwargs):
        for left in reversed(range(TRIES)):
            try:
                return init(*args, **kwargs)
            except Exception as e:
                if not left or NOT_STARTED not in str(e):
                    raise
                ray.shutdown()

    return patient_init


def raylet_aside():
    """A thread prints the messages of the raylet. On standard output, they can come in the middle of a line of the program."""
    from ray._private import worker

    say = worker.print_worker_logs
    worker.print_worker_logs = lambda data, sink, *rest: say(data, sys.stderr if data.get("pid") == "raylet" else sink, *rest)


CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "cadre/ray-output")
KEPT_S = 30 * 24 * 3600
BYTES = {"encoding": "utf-8", "errors": "surrogateescape"}  # any bytes, as text
PR_SET_PDEATHSIG = 1


def file_of_output(folder, words):
    """Its name is a digest of all that decides what the program prints. The name of sys.prefix is a digest of the versions of
    all packages (deploy/python.sh)."""
    settings = sorted((name, value) for name, value in os.environ.items() if name.startswith(("RAY_", "VERL_", "LOGICAL_GPUS")))
    digest = hashlib.sha256(repr((words, sys.version, os.path.basename(sys.prefix), settings)).encode())
    for path in sorted([__file__, *glob.glob(f"{glob.escape(folder)}/**", recursive=True)]):
        if os.path.isfile(path) and "__pycache__" not in path:
            with open(path, "rb") as f:
                digest.update(repr((os.path.relpath(path, folder), f.read())).encode())
    return os.path.join(CACHE, digest.hexdigest())


def sweep():
    """Deletes output that was not used for long. Another process may do the same, or give a new file its name."""
    for old in glob.glob(f"{glob.escape(CACHE)}/*"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - os.path.getmtime(old) > KEPT_S:
                os.remove(old)


def end_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def kept(folder, words):
    """Prints what the program has printed before, or runs it. Returns its exit status."""
    os.makedirs(CACHE, exist_ok=True)
    sweep()
    path = file_of_output(folder, words)
    status = 0
    try:
        with open(path, encoding="utf-8") as f:
            os.utime(f.fileno())
            out, err = json.load(f)
    except FileNotFoundError:
        one = os.path.sameopenfile(1, 2)  # then the lines keep their order
        done = subprocess.run([sys.executable, __file__, *words], stdout=subprocess.PIPE, check=False,
                              stderr=subprocess.STDOUT if one else subprocess.PIPE, preexec_fn=end_with_parent)
        status, out, err = done.returncode, *((text or b"").decode(**BYTES) for text in (done.stdout, done.stderr))
        if status == 0 and file_of_output(folder, words) == path:  # else, a file changed during the run
            with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as f:
                json.dump([out, err], f)
            os.rename(f.name, path)
    sys.stdout.buffer.write(out.encode(**BYTES))
    sys.stderr.buffer.write(err.encode(**BYTES))
    return status


def main():
    words = sys.argv[1:]
    if words[:1] == ["--kept"]:
        sys.exit(kept(words[1], words[2:]))
    if words[:1] == ["--forget"]:
        with contextlib.suppress(FileNotFoundError):
            os.remove(file_of_output(words[1], words[2:]))
        return
    surround()
    import ray

    if words[:1] == ["--no-dashboard"]:
        ray.init = functools.wraps(ray.init)(functools.partial(ray.init, include_dashboard=False))
        del words[0]
    ray.init = patient(ray.init)
    raylet_aside()
    if words[0] == "-m":
        sys.argv = words[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path[0] = os.path.dirname(os.path.abspath(words[0]))
        runpy.run_path(words[0], run_name="__main__")


main()
