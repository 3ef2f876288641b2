# SPDX-License-Identifier: Apache-2.0
"""The steps of test_roles.sh that call workers in Python from a program outside the cluster. Each step prints one line."""

import io
import os
import subprocess
import sys
import tempfile
import time
import traceback

import cadre

IMAGE = "localhost/cadre-python:dev"


def values(group):
    print(group.call("add", 10), group.call("add", per_rank=[1, 2]), group.call("get_value_rank_zero"))


def in_flight(group):
    futures = [group.start("add", 1) for _ in range(500)]
    print(futures[-1].result(600))


def fails(group):
    try:
        group.call("add", "ten", rank=1)
    except TypeError as e:
        print(type(e).__name__, e.rank, e.pod, e.node, "accumulator.py" in "".join(traceback.format_exception(e)))


def pickled(group):
    try:
        group.call("add", {1, 2})
    except cadre.Error as e:
        print(type(e).__name__, e)


def killed(group):
    group.kill(rank=1)
    print(group.call("add", 1, timeout=600))


def again(group, pods):
    """The answer of the group once it has none of these pods any more."""
    while True:
        try:
            said = group.call("work", timeout=600)
            if not set(pods_of(group)) & {None, *pods}:
                return said
        except (cadre.Unavailable, cadre.Timeout):
            pass
        time.sleep(0.2)


TRAIN = """
import os, socket, time
import data
class Trainer:
    def __init__(self):
        # As torch.distributed.init_process_group(): all ranks meet before any of them takes calls.
        at = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        if os.environ["RANK"] == "0":
            with socket.create_server(("", at[1])) as here:
                here.accept()
        else:
            while True:
                try:
                    socket.create_connection(at, 1).close()
                    break
                except OSError:
                    time.sleep(0.1)
    def work(self):
        return data.NAME
"""


def folder():
    """The folder of a program: a class, a module that it imports, and a large file."""
    made = tempfile.TemporaryDirectory()
    for name, content in (("train.py", TRAIN), ("data.py", "NAME = 'shipped'\n"), ("large.txt", os.urandom(10 << 20).hex())):
        with open(f"{made.name}/{name}", "w", encoding="utf-8") as f:
            f.write(content)
    return made


def made(client, code, **more):
    return client.Group("train:Trainer", replicas=2, image=IMAGE, working_dir=code.name, **more)


def delete(pods):
    subprocess.run(["kubectl", "-n", "ship", "delete", "pod", "--wait=false", *pods], check=True, stdout=subprocess.DEVNULL)


def pods_of(group):
    """The pods of the ranks; None for a rank that is not connected."""
    return [w.get("pod") for w in group.info()["workers"]]


def shipped(client):
    code = folder()
    group = made(client, code)
    first, pods = group.call("work", timeout=600), pods_of(group)
    delete(pods)
    print(first, again(group, set(pods)), len(set(pods)) == 2)
    code.cleanup()


def inherited(client):
    with client:
        code = folder()
        first = made(client, code, name="inherited", detached=True).call("work", timeout=600)
        code.cleanup()
    with connect() as other:  # this client has no archive
        group = other.find("inherited")
        pods = pods_of(group)
        delete(pods[1:])
        print(first, again(group, {pods[1]}))
        group.close()


def lost(client):
    with client:
        code = folder()
        # On a slow machine, the archive comes after that limit, so the ranks may start again until it has come.
        group = made(client, code, name="lost", detached=True, max_restarts=1000, env={"CADRE_ARCHIVE_WAIT": "10"})
        group.call("work", timeout=600)
        subprocess.run(["kubectl", "-n", "ship", "patch", "wg", "lost", "--type=merge", "-p",
                        '{"spec":{"maxRestarts":0}}'], check=True, stdout=subprocess.DEVNULL)
        code.cleanup()
    with connect() as other:
        group = other.find("lost")
        delete(pods_of(group))
        while True:
            try:
                group.call("work", timeout=600)
            except cadre.Error as e:
                if "CodeMissing" in str(e):
                    print(e)
                    break
            time.sleep(0.2)
        group.close()


class OutOfTokens(Exception):
    pass


class Counter:
    def __init__(self, start):
        self.n = start + cadre.rank()

    def add(self, x):
        if x > 100:
            raise OutOfTokens(x)
        self.n += x
        return self.n


@cadre.task(image=IMAGE)
def square(x):
    return x * x


def by_value(client):
    """Does what a notebook does."""
    try:
        counter = client.Group(Counter, replicas=2, image=IMAGE, init={"start": 10})
        print(counter.add.options(timeout=600)(1), end=" ")
        try:
            counter.add(1000)
        except OutOfTokens as e:
            print(type(e.cause).__name__, square.using(client)(7))
    except cadre.Forbidden as e:
        print("Forbidden", e)


class Talking:
    def say(self, text):
        print(text)


def prints(client):
    """Shows the output of print() on the ranks."""
    group = client.Group(Talking, replicas=2, image=IMAGE, name="talking")
    sys.stdout = out = io.StringIO()  # to the end of the program, because lines of the last calls still come
    while "[rank 0-1]" not in out.getvalue():  # a slow rank gets its own line
        group.say.options(timeout=600)("hello")
        time.sleep(0.1)
    print(next(line for line in out.getvalue().splitlines() if "[rank 0-1]" in line), file=sys.__stdout__)


def changed(client):
    """A cell that is run again with another class."""
    class Cell:
        def work(self):
            return 1

    group = client.Group(Cell, replicas=2, image=IMAGE, name="cell")
    first, pods = group.work.options(timeout=600)(), pods_of(group)

    class Cell:
        def work(self):
            return 2

    client.Group(Cell, replicas=2, image=IMAGE, name="cell")
    print(first, group.work.options(timeout=600)(), pods_of(group) == pods)


def stops(group):
    print(group.call("stops", rank=0, timeout=600))


def connect():
    """Connects. Only the step `prints` shows what ranks print."""
    shows = None if sys.argv[1] == "prints" else lambda line: None
    return cadre.connect(unreachable=600, namespace="ship", on_output=shows)


if sys.argv[1] in ("shipped", "inherited", "lost", "by_value", "prints", "changed"):
    with connect() as its_client:
        globals()[sys.argv[1]](its_client)
else:
    with cadre.connect(unreachable=600) as its_client:
        globals()[sys.argv[1]](its_client.find("python"))
