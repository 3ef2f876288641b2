#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Weights from four ranks to four others that split them otherwise, on Cadre and through Ray's object store, beside three
floors: plain copies by one process, and by four at once, and what the kernel copies from four processes to four others.
Prints a table of Markdown.

    resharding.py MIB ROUNDS
"""

import ctypes
import multiprocessing
import os
import statistics
import sys
import time

import numpy

import cadre

RANKS, TENSORS = 4, 16
MOVES = 5  # the median counts
RAY = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}  # before Ray is imported


def shape_of(mib):
    """Returns the shape of each tensor of float32."""
    return 1024, (mib << 20) // TENSORS // 4096


class Ready:
    def ready(self):
        pass


class Rows(Ready, cadre.Weights):
    def __init__(self, mib):
        rows, columns = shape_of(mib)
        self.blocks = {f"w{i}": numpy.full((rows // RANKS, columns), i, "f4") for i in range(TENSORS)}

    def weights(self):
        return {name: cadre.Sharded(b, {"tp": RANKS}, {"tp": 0}) for name, b in self.blocks.items()}

    def columns(self):
        """For Ray: what each receiver gets, of all tensors."""
        n = next(iter(self.blocks.values())).shape[1] // RANKS
        return [[b[:, i * n:(i + 1) * n].copy() for b in self.blocks.values()] for i in range(RANKS)]


class Columns(Ready, cadre.Weights):
    def __init__(self, mib):
        rows, columns = shape_of(mib)
        self.blocks = {f"w{i}": numpy.full((rows, columns // RANKS), -1, "f4") for i in range(TENSORS)}

    def weights(self):
        return {name: cadre.Sharded(b, {"tp": RANKS}, {"tp": 1}) for name, b in self.blocks.items()}

    def take(self, *pieces):
        """For Ray: from each sender."""
        for sender, tensors in enumerate(pieces):
            for mine, piece in zip(self.blocks.values(), tensors):
                mine[sender * len(piece):(sender + 1) * len(piece)] = piece


class Cadre:
    def __init__(self, mib):
        self.client = cadre.local(cpus=16)
        self.source = self.client.Group("resharding:Rows", name="rows", replicas=RANKS, init={"mib": mib})
        self.target = self.client.Group("resharding:Columns", name="columns", replicas=RANKS, init={"mib": mib})
        for group in (self.source, self.target):
            group.ready()

    def move(self):
        cadre.transfer(self.source, self.target)

    def end(self):
        self.client.close()


class Ray:
    def __init__(self, mib):
        os.environ.update(RAY)
        import ray

        self.ray = ray
        ray.init(address="local", num_cpus=16, include_dashboard=False, log_to_driver=False,
                 object_store_memory=(2 * mib << 20) + (512 << 20))
        self.source = [ray.remote(num_cpus=0)(Rows).remote(mib) for _ in range(RANKS)]
        self.target = [ray.remote(num_cpus=0)(Columns).remote(mib) for _ in range(RANKS)]
        ray.get([a.ready.remote() for a in self.source + self.target])

    def move(self):
        given = [a.columns.options(num_returns=RANKS).remote() for a in self.source]
        self.ray.get([a.take.remote(*(g[i] for g in given)) for i, a in enumerate(self.target)])

    def end(self):
        self.ray.shutdown()


class Copy:
    """A floor: one process copies as many bytes. All of the memory has been written to before."""

    def __init__(self, mib):
        self.source, self.target = numpy.ones(mib << 20, "u1"), numpy.ones(mib << 20, "u1")

    def shown(self):
        pass

    def move(self):
        numpy.copyto(self.target, self.source)

    def end(self):
        pass


def serve(pipe, make, *args):
    peer = make(*args)
    pipe.send(peer.shown())
    while pipe.recv():
        peer.move()
        pipe.send(None)


class Several:
    """Processes that move at the same time."""

    def __init__(self, make, args):
        spawn = multiprocessing.get_context("spawn")
        self.pipes, ends = zip(*(spawn.Pipe() for _ in args))
        self.processes = [spawn.Process(target=serve, args=(end, make, *some)) for end, some in zip(ends, args)]
        for process in self.processes:
            process.start()
        self.shown = self.wait()

    def wait(self):
        return [pipe.recv() for pipe in self.pipes]

    def move(self):
        for pipe in self.pipes:
            pipe.send(True)
        self.wait()

    def end(self):
        for pipe, process in zip(self.pipes, self.processes):
            pipe.send(False)
            process.join()


class Copies(Several):
    """The fastest copy on this machine: as many processes as there are receivers copy a part each."""

    def __init__(self, mib):
        super().__init__(Copy, [(mib // RANKS,)] * RANKS)


class Piece(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("len", ctypes.c_size_t)]


class Memory:
    """Memory that another process may read."""

    def __init__(self, mib):
        pr_set_ptracer, anybody = 0x59616D61, ctypes.c_ulong(-1)
        ctypes.CDLL(None).prctl(pr_set_ptracer, anybody, 0, 0, 0)  # where Linux wants to be told
        self.block = numpy.ones(mib << 20, "u1")

    def shown(self):
        return os.getpid(), self.block.ctypes.data


class Reader(Memory):
    """Reads an equal part of its memory from each of the others, in one piece."""

    def __init__(self, mib, rank, others):
        super().__init__(mib)
        self.rank, self.others, self.libc = rank, others, ctypes.CDLL(None, use_errno=True)

    def move(self):
        part = len(self.block) // len(self.others)
        for i, (pid, at) in enumerate(self.others):
            here, there = Piece(self.block.ctypes.data + i * part, part), Piece(at + self.rank * part, part)
            if self.libc.process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0) != part:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Reads:
    """A floor for private memory: what the kernel copies from as many processes as there are senders to the receivers."""

    def __init__(self, mib):
        self.source = Several(Memory, [(mib // RANKS,)] * RANKS)
        self.target = Several(Reader, [(mib // RANKS, rank, self.source.shown) for rank in range(RANKS)])
        self.move = self.target.move

    def end(self):
        self.target.end()
        self.source.end()


def stolen():
    """Seconds of CPU time that the hypervisor gave to others, since the boot."""
    with open("/proc/stat", encoding="ascii") as f:
        return int(f.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


def timed(move):
    begin = time.perf_counter()
    move()
    return time.perf_counter() - begin


def measure(kind, mib):
    """Seconds of the first move, which gets memory and connections, and of a later one."""
    peer = kind(mib)
    try:
        return timed(peer.move), statistics.median(timed(peer.move) for _ in range(MOVES))
    finally:
        peer.end()


def main():
    mib, rounds = int(sys.argv[1]), int(sys.argv[2])
    found = {kind: [] for kind in (Cadre, Ray, Copy, Copies, Reads)}
    busy = stolen()
    for _ in range(rounds):
        for kind, times in found.items():  # in turn, so that a busy moment of the machine meets all
            times.append(measure(kind, mib))
    busy = stolen() - busy
    first, took = ({kind: statistics.median(t[i] for t in times) for kind, times in found.items()} for i in range(2))
    print("| what moves %d MiB | seconds | times one copy | times four copies | times four reads | the first time |" % mib)
    print("|---|---:|---:|---:|---:|---:|")
    for kind, name in ((Cadre, "`cadre.transfer`, four ranks to four"), (Ray, "Ray's object store, the same"),
                       (Copy, "a plain copy by one process"), (Copies, "plain copies by four processes at once"),
                       (Reads, "reads of four processes' memory by four others")):
        floors = " | ".join(f"{took[kind] / took[floor]:.2f}" for floor in (Copy, Copies, Reads))
        print(f"| {name} | {took[kind]:.3f} | {floors} | {first[kind]:.3f} |")
    print(f"\nCadre is {took[Ray] / took[Cadre]:.1f}x as fast as Ray. Load average {os.getloadavg()[0]:.1f}; the "
          f"hypervisor took {busy:.1f} s of CPU time.")


if __name__ == "__main__":
    main()
