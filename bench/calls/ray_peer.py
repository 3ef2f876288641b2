#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same calls by Ray, for bench-calls, which asks on standard input: each line is "RANKS BYTES IN_FLIGHT SECONDS", the
answer is calls a second. The first line that it prints is its version, or "no ..." with the reason. Ray runs on this
machine alone: with this program as its driver (address="local"), or, with the argument "client", behind Ray Client, as
drivers outside of a cluster have it: a head of its own in a temporary folder, on loopback, that goes with this program.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings

# Ray asks a proxy for loopback, too, and wants a token between its processes.
for name in list(os.environ):
    if name.lower().endswith("_proxy"):
        del os.environ[name]
os.environ.update(RAY_AUTH_MODE="disabled", RAY_USAGE_STATS_ENABLED="0")

import numpy  # noqa: E402
import ray  # noqa: E402

START_S, STOP_S, TRIES = 120, 30, 3
warnings.filterwarnings("ignore", message="More than 10MB of messages")  # which is what is measured


def descendants(pid):
    """Returns the descendants of this process, and when each began, because a later one may have the same number."""
    parents = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8") as f:
                fields = f.read().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append((int(entry), fields[19]))
    found, todo = [], [pid]
    while todo:
        children = parents.get(todo.pop(), [])
        found += children
        todo += [child for child, _ in children]
    return found


def began(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rpartition(")")[2].split()[19]
    except OSError:
        return None


class Head:
    """Ray as `ray start` brings it up, with a server for Ray Client."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="rc")  # short: there are names of sockets below it
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.log = open(os.path.join(self.folder, "start.log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [os.path.join(os.path.dirname(sys.executable), "ray"), "start", "--head", "--block", "--port=0",
             "--node-ip-address=127.0.0.1", f"--ray-client-server-port={self.port}", "--include-dashboard=false",
             "--disable-usage-stats", f"--temp-dir={self.folder}"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def wait(self):
        end = time.monotonic() + START_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    self.log.seek(0)
                    said = self.log.read().strip().splitlines()
                    raise RuntimeError(said[-1] if said else "it does not listen") from None
            time.sleep(0.2)

    def stop(self):
        below = descendants(self.process.pid)
        self.process.terminate()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for pid, since in below:
            if began(pid) == since:
                os.kill(pid, signal.SIGKILL)
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)  # with the file that leads other programs to the head


@ray.remote(num_cpus=0)
class Echo:
    def echo(self, data):
        return data


def rate(actors, data, in_flight, seconds):
    """Calls a second; a call to several actors is one, done when all have answered."""
    ray.get([a.echo.remote(data) for a in actors])
    done, begin = 0, time.perf_counter()
    end = begin + seconds
    while time.perf_counter() < end:
        ray.get([a.echo.remote(data) for _ in range(in_flight) for a in actors])
        done += in_flight
    return done / (time.perf_counter() - begin)


def serve(name):
    actors = [Echo.remote() for _ in range(4)]
    ray.get([a.echo.remote(b"") for a in actors])
    print(name, ray.__version__, flush=True)
    for line in sys.stdin:
        ranks, size, in_flight, seconds = line.split()
        # An array, which Ray passes through shared memory without a copy for each reader; bytes it would copy.
        data = numpy.full(int(size), ord("x"), numpy.uint8) if int(size) > 1000 else b"x" * int(size)
        print(rate(actors[: int(ranks)], data, int(in_flight), float(seconds)), flush=True)


def connect(address):
    """The head starts a server for each client, and gives it little time, which a cold start may take longer than."""
    for left in reversed(range(TRIES)):
        try:
            ray.init(address, logging_level="error", log_to_driver=False)
            return
        except Exception:
            if not left:
                raise


def serve_client():
    started = False
    head = Head()
    try:
        head.wait()
        connect(f"ray://127.0.0.1:{head.port}")
        started = True
        serve("Ray Client")
    except Exception as e:  # whatever it is: the column stays empty, and says why
        if started:
            raise
        print("no Ray Client:", " ".join(str(e).split()), flush=True)
    finally:
        if started:
            ray.shutdown()
        head.stop()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the head goes, too
    if sys.argv[1:] == ["client"]:
        serve_client()
    else:
        ray.init(address="local", include_dashboard=False, logging_level="error", log_to_driver=False)
        serve("Ray")


main()
