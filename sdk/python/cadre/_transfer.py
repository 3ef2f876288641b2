# SPDX-License-Identifier: Apache-2.0
"""Weights from one group to another, from rank to rank: this program only says who sends what to whom."""

import time
import uuid
from collections import deque

from . import _errors
from ._future import wait

_AT_A_TIME = 2  # messages that each sender has ready: one is taken while the next one is made


def transfer(source, target, names=None, *, timeout=600):
    """Moves the weights of one group to another, whose mesh may split them otherwise. The classes of both are
    cadre.Weights. Each rank of the target takes exactly what it has from the ranks that have it. Its old weights stay
    until all ranks have all of the new ones; where anything fails before, they stay.

    names    only these tensors, by default all of the source
    timeout  seconds, for all of it

    Returns {"bytes", "seconds", "version"}. Raises Invalid with all that does not fit, and nothing was moved; Timeout.
    """
    if source.client is not target.client:
        raise TypeError(f"transfer({source.name}, {target.name}): both groups must be of one client")
    return _Transfer(source, target, names, time.monotonic() + timeout).run()


class _Transfer:
    def __init__(self, source, target, names, end):
        self.source, self.target, self.names, self.end = source, target, names, end
        self.version = uuid.uuid4().hex[:16]

    def left(self):
        left = self.end - time.monotonic()
        if left <= 0:
            raise _errors.Timeout(f"the weights of {self.source.name} are not whole in {self.target.name}; it keeps those "
                                  "that it had", may_have_run=True)
        return left

    def describe(self, group):
        said = group.call("transfer_describe", timeout=self.left())
        for rank, its in enumerate(said):
            if its != said[0]:
                raise _errors.Invalid(f"rank {rank} of {group.name} says other weights than rank 0: weights() must have "
                                      "the same names, dtypes, shapes and meshes on all ranks")
        return said[0]

    def only(self, said):
        return said if self.names is None else {**said, "tensors": [t for t in said["tensors"] if t[0] in self.names]}

    def run(self):
        began = time.monotonic()
        source = self.describe(self.source)
        has = [t[0] for t in source["tensors"]]
        lacks = sorted(set(self.names or ()) - set(has))
        if lacks:
            raise _errors.Invalid(f"{self.source.name} has no weights {', '.join(lacks)}; it has {', '.join(has)}")
        source, target = self.only(source), self.only(self.describe(self.target))
        try:
            its = self.begin(self.source, True, source, target)
            if isinstance(its[0], str):
                raise _errors.Invalid(its[0])
            self.begin(self.target, False, source, target)
            self.move([to for to, _ in its])
            self.target.call("transfer_check", self.version, timeout=self.left())
            self.target.call("transfer_commit", self.version, timeout=self.left())
        finally:
            for group in (self.source, self.target):
                group.start("transfer_end", timeout=10, refuse_when_not_ready=True, no_result=True)
        return {"bytes": sum(n for _, n in its), "seconds": time.monotonic() - began, "version": self.version}

    def begin(self, group, sends, source, target):
        sides = self.source.name, self.target.name
        return group.call("transfer_begin", self.version, sends, source, target, sides, timeout=self.left())

    def move(self, messages):
        """messages: of each sender, {receiver: how many}. The plan has each sender begin with another receiver, so that few
        of them are sent to by many at once.
        """
        waits = {sender: deque((int(to), i) for to, n in its.items() for i in range(n)) for sender, its in enumerate(messages)}
        under_way = {}  # future -> (sender, receiver, its reference while it is taken)
        try:
            for sender, its in waits.items():
                for _ in range(min(_AT_A_TIME, len(its))):
                    self.send(sender, its, under_way)
            while under_way:
                ready, _ = wait(list(under_way), timeout=self.left())
                if not ready:
                    self.left()
                for f in ready:
                    sender, to, ref = under_way.pop(f)
                    if ref is None:
                        ref = f.result()
                        taken = self.target.start("transfer_take", ref, rank=to, timeout=self.left())
                        under_way[taken] = sender, to, ref
                        continue
                    f.result()
                    ref.free()
                    if waits[sender]:
                        self.send(sender, waits[sender], under_way)
        finally:
            for f, (_, _, ref) in under_way.items():
                f.cancel()
                if ref is not None:
                    self.give_up(ref)

    def send(self, sender, its, under_way):
        to, number = its.popleft()
        made = self.source.start("transfer_send", self.version, to, number, rank=sender, keep=True, timeout=self.left())
        under_way[made] = sender, to, None

    @staticmethod
    def give_up(ref):
        try:
            ref.free(timeout=1)
        except _errors.Error:
            pass  # it ends with the client
