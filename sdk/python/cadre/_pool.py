# SPDX-License-Identifier: Apache-2.0
"""Bundles that are reserved for groups: PlacementGroups, one for each node entry, or parts of them."""

import os
import time
from typing import NamedTuple

from . import _errors, _manifest

_READY_S, _LOOK_S = 300, 0.05
_ANSWER_S = 10  # for the last answer, which says why the bundles are not reserved


class _Part(NamedTuple):
    """Bundles of one PlacementGroup that follow each other."""

    name: str
    first: int
    count: int


class Pool:
    """Places for ranks; Client.Pool() reserves them. Rank i of a group on it has bundle i. `a + b` has the bundles of
    both, and split() divides them. Such a pool is a view: close the pools from which it was made.
    """

    def __init__(self, client, parts, made=()):
        self.client = client
        self._parts = tuple(parts)
        self._made = tuple(made)  # the names of its own PlacementGroups

    @classmethod
    def make(cls, client, process_on_nodes, *, gpus=1, cpus=0, strategy="StrictPack", name=None, image=None,
             template=None, detached=False, timeout=None):
        """Client.Pool()."""
        counts = _counts(process_on_nodes)
        name = name or f"pool-{os.urandom(3).hex()}"
        names = [name] if len(counts) == 1 else [f"{name}-{i}" for i in range(len(counts))]
        pool = cls(client, [_Part(n, 0, count) for n, count in zip(names, counts)], names)
        made = []
        try:
            for part in pool._parts:
                client._create("placementGroup", _manifest.placementgroup(
                    part.name, part.count, gpus=gpus, cpus=cpus, strategy=strategy, image=image, template=template),
                               detached, timeout)
                made.append(part.name)
        except BaseException:
            cls(client, (), made).close(timeout=timeout)
            raise
        return pool

    @classmethod
    def find(cls, client, name, *, timeout=None):
        """Client.find_pool()."""
        info = client._ask("group.bundles", name, {"placementGroup": name}, timeout)
        return cls(client, [_Part(name, 0, len(info["nodes"]))], [name])

    @property
    def world_size(self):
        """The number of bundles."""
        return sum(part.count for part in self._parts)

    @property
    def local_ranks(self):
        """The number of each bundle among the bundles of its node entry."""
        return [i for part in self._parts for i in range(part.count)]

    @property
    def local_world_sizes(self):
        """For each bundle, how many bundles of its node entry are in this pool."""
        return [part.count for part in self._parts for _ in range(part.count)]

    @property
    def nodes(self):
        """The node of each bundle, when all are reserved. None: the node is not known."""
        return self.wait_ready()

    def wait_ready(self, timeout=_READY_S):
        """Waits until all bundles are reserved, and returns the node of each."""
        end, nodes = time.monotonic() + timeout, []
        for part in self._parts:
            info = self._look(part, end)
            nodes += info["nodes"][part.first:part.first + part.count]
        return nodes

    def _look(self, part, end):
        while True:
            info = self.client._ask("group.bundles", part.name, {"placementGroup": part.name},
                                    max(end - time.monotonic(), _ANSWER_S))
            if info["ready"]:
                return info
            if time.monotonic() > end:
                raise TimeoutError(f"the bundles of PlacementGroup {part.name} are not reserved: "
                                   f"{info.get('message', 'nobody says why')}")
            time.sleep(_LOOK_S)

    def __add__(self, other):
        if not isinstance(other, Pool):
            return NotImplemented
        if other.client is not self.client:
            raise ValueError("the two pools are of different clients")
        return Pool(self.client, _checked(self._parts + other._parts))

    def split(self, sizes):
        """Returns pools with its bundles, in their order. `sizes`: the number of pools, which must divide the number
        of bundles, or a list with the size of each, whose sum is the number of bundles.
        """
        n = self.world_size
        if isinstance(sizes, int):
            if sizes < 1 or n % sizes:
                raise ValueError(f"{n} bundles are not split into {sizes} equal parts")
            sizes = [n // sizes] * sizes
        sizes = _counts(sizes)
        if sum(sizes) != n:
            raise ValueError(f"the sizes {sizes} have the sum {sum(sizes)}, and there are {n} bundles")
        ends = [sum(sizes[:i + 1]) for i in range(len(sizes))]
        return [self._part(end - size, end) for size, end in zip(sizes, ends)]

    def _part(self, start, end):
        parts, at = [], 0
        for part in self._parts:
            first, last = max(start, at), min(end, at + part.count)
            if first < last:
                parts.append(_Part(part.name, part.first + first - at, last - first))
            at += part.count
        return Pool(self.client, parts)

    def close(self, *, timeout=None):
        """Gives the bundles back. The ranks on them end. Views have no bundles of their own."""
        while self._made:
            *rest, last = self._made
            try:
                self.client._ask("group.delete", last, {"placementGroup": last}, timeout)
            except (_errors.NotFound, _errors.Gone):
                pass  # another program was faster
            self.client._renewal.remove("placementGroup", last)
            self._made = tuple(rest)

    def _refs(self):
        """spec.placement.groups for a group on this pool."""
        return [{"name": p.name, "bundles": f"{p.first}-{p.first + p.count - 1}" if p.count > 1 else str(p.first)}
                for p in self._parts]

    def __len__(self):
        return self.world_size

    def __repr__(self):
        names = "+".join(f"{ref['name']}[{ref['bundles']}]" for ref in self._refs())
        return f"<cadre.Pool {names} of {self.client!r}>"


def _counts(values):
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise TypeError(f"a pool is made of a list of numbers of processes, such as [4, 4], not of {values!r}")
    counts = list(values)
    if not counts or any(type(c) is not int or c < 1 for c in counts):
        raise ValueError(f"{counts} is not a list of numbers of processes, 1 or more each")
    return counts


def _checked(parts):
    """Checks a sum: no bundle may occur twice, because two ranks of a group would then have the same place."""
    seen = set()
    for part in parts:
        for i in range(part.first, part.first + part.count):
            if (part.name, i) in seen:
                raise ValueError(f"both pools have bundle {i} of PlacementGroup {part.name}")
            seen.add((part.name, i))
    return parts
