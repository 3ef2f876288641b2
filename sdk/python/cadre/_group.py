# SPDX-License-Identifier: Apache-2.0
"""A group as one object: calls of its methods."""

import hashlib
import html
import json
import time

from . import _call, _errors, _late, _manifest, _method, _progress
from ._bound import BoundMethod
from ._code import _archive
from ._reference import Ref

_READY_S, _LOOK_S = 300, 0.05
_LOOK_HTML_S, _ROWS_MAX = 2, 64


class Group:
    """A WorkerGroup, or one of its roles. Client.group() names an existing one, Client.Group() makes one. Names that
    are not attributes of this class are methods of the workers: `group.add(10)` is `group.call("add", 10)`.
    """

    def __init__(self, client, name, role=None, trust=None, cls=None):
        self.client = client
        self.name = name
        self.role = role
        self._class = cls
        self._methods = _call.Methods(name, role, client.trust if trust is None else trust, cls)

    @classmethod
    def make(cls, client, worker=None, *, name=None, detached=False, timeout=None, working_dir=None, py_modules=(),
             excludes=(), archive=None, **what):
        """Client.Group(). archive: used instead of packing working_dir and py_modules."""
        name = name or _manifest.name_of(worker, what.get("module"))
        pool = what.get("pool")
        if pool is not None and getattr(pool, "client", None) is not client:
            raise TypeError(f"Group {name}: pool={pool!r} is not a pool of this client: client.Pool() makes one")
        if pool is None and not client.local and not (what.get("image") or what.get("template")):
            raise TypeError(f"Group {name} needs image=: the container image of its pods, with python3 and what the ranks need")
        if working_dir is not None or py_modules:
            archive = _archive.pack(working_dir, py_modules, excludes)
        manifest = _manifest.workergroup(name, worker=worker, archive=archive, **what)
        if archive:
            client._supply(name, archive)
        if not cls._change(client, name, manifest, timeout):
            client._create("workerGroup", manifest, detached, timeout)
            client._show(name)
        client._remember(name, _summary(manifest["spec"]))
        client._forget_methods(name)
        return cls(client, name, trust=True, cls=worker if isinstance(worker, (type, dict)) else None)

    @staticmethod
    def _change(client, name, manifest, timeout):
        """Whether this client made the group with that name. The group then runs the class and code of this manifest.
        """
        before, spec = client._made.get(name), _summary(manifest["spec"])
        if before is None:
            return False
        for what in (*before, *spec):
            if what != "worker" and before.get(what) != spec.get(what):
                raise _errors.Exists(f"{name} is there already, and only what its ranks run can be changed: {what} is another "
                                     "one; close() it first, or choose another name")
        try:
            if before["worker"] != spec["worker"]:
                Group(client, name)._restart_with({"workerGroup": {"metadata": {"name": name}, "spec": manifest["spec"]}}, timeout)
        except (_errors.NotFound, _errors.Gone):
            return False
        return True

    def _restart_with(self, manifest, timeout):
        """Returns when calls go only to the new processes."""
        attempt, end = self.info(timeout=timeout)["attempt"], time.monotonic() + (timeout or _READY_S)
        self.client._ask("group.restart", self.name, manifest, timeout)
        while self.info(timeout=timeout)["attempt"] == attempt:
            if time.monotonic() > end:
                raise TimeoutError(f"the operator has not started {self.name} again after {timeout or _READY_S} s")
            time.sleep(_LOOK_S)

    @classmethod
    def find(cls, client, name, *, timeout=None):
        """Returns the group of that name, which any program may have made. Raises NotFound if it does not exist."""
        group = cls(client, name)
        group.info(timeout=timeout)
        return group

    def __getitem__(self, role):
        """Returns one of its roles, which is called like a group: group["actor"].add(10)."""
        if self.role is not None:
            raise TypeError(f"{self!r} is a role itself")
        if not isinstance(role, str):
            raise TypeError(f"a group has roles, group[\"actor\"], and {role!r} is not a name; .on({role!r}) of a method is for a rank")
        trust, classes = self._methods.trust, self._class
        return Group(self.client, self.name, role, trust, classes.get(role) if isinstance(classes, dict) else None)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(f"a group has no attribute {name}; call(\"{name}\") is a method of its workers")
        function = getattr(self._class, name, None) if isinstance(self._class, type) else None
        return BoundMethod(self, name, said=_method.registered(function) if function else None)

    def call(self, method, /, *args, **options):
        """Calls a method of the workers and returns its result: a list with one element per rank, or as the dispatch
        and execute modes say (docs/calls.md). `args` are the arguments by position, or one Batch.

        args      instead: arguments by name, a dict (or a list); or a Ref to all arguments
        per_rank  instead: a list with the arguments of each rank: a list, a dict, a Batch, or one value
        rank      only this rank, with the arguments unchanged
        dispatch  "ONE_TO_ALL", "DP_COMPUTE_PROTO", ...; execute: "ALL", "RANK_ZERO", "ANY"
        split, collect, pad   for a batch, or for a list with {"elements": True}
        timeout   seconds
        keep      results stay on the workers, and this returns a Ref; pin: they stay when the client is closed
        max_retries, retry_on, idempotent   whether the call may be sent again; by default, never
        no_result ranks send no results: the result is None when all ranks have run the call
        attempt, refuse_when_not_ready, traceparent   as in docs/calls.md
        """
        future = self._start(method, args, options, 1)
        return future._result_or_give_up() if "." in method else future._result_or_give_up(_progress.result, self)

    def start(self, method, /, *args, **options):
        """Like call(), but does not wait: it sends the call, and returns a Future, which may be awaited."""
        return self._start(method, args, options, 0)

    def _start(self, method, args, options, lazy):
        given = None
        if "args" in options or "per_rank" in options:
            given = {name: options.pop(name) for name in ("args", "per_rank") if name in options}
        return _call.start(self.client, self._methods.get(method, options), args, given, lazy)

    def put(self, value, **options):
        """Stores JSON, or a Batch, on the workers and returns a Ref to it: on the least busy rank, on `rank`, or
        split by a `dispatch` mode.
        """
        options["args"] = value
        return Ref(self.call("object.put", **options)["$ref"], self.client, self.name)

    def ref(self, text):
        """Returns the Ref for a text that another program got from Ref.text."""
        if not str(text).startswith("cadre:"):  # otherwise the proxy would take it for JSON of the client
            raise ValueError(f"{text!r} is not a reference, which begins with cadre: as Ref.text does")
        return Ref(text, self.client, self.name)

    def info(self, timeout=None):
        """Returns what the proxy knows about the group: its ranks, where they run, its methods (docs/calls.md)."""
        info = self.call("group.info", timeout=timeout)
        while "next" in info:  # a large group comes in pages
            page = self.call("group.info", info.pop("next"), timeout=timeout)
            info["workers"] += page["workers"]
            if "next" in page:
                info["next"] = page["next"]
        return info

    def kill(self, rank, *, attempt=None, timeout=None):
        """Ends the process of a rank as if it had crashed. Returns when the process is gone."""
        self.call("group.kill", rank=rank, attempt=attempt, timeout=timeout)

    def stacks(self, rank=None, *, timeout=5):
        """Returns the stacks of all threads of this rank, as text. Without a rank, returns a list for all ranks.
        Python workers answer whatever they do.
        """
        ranks = range(self.info(timeout=timeout)["worldSize"]) if rank is None else [rank]
        asked = [self.start(_late.METHOD, rank=r, timeout=timeout) for r in ranks]
        found = [f.result()["stack"] for f in asked]
        return found if rank is None else found[0]

    def restart(self, *, timeout=None):
        """Starts the processes again, with new objects, even if the group has failed. Calls wait for them."""
        self.client._ask("group.restart", self.name, {"group": self.name}, timeout)

    def close(self, *, timeout=None):
        """Deletes the group. Its processes end, and later calls fail."""
        self.call("group.delete", args={"group": self.name}, timeout=timeout)
        self.client._forget(self.name)

    @property
    def world_size(self):
        """The number of ranks."""
        return self.info()["worldSize"]

    @property
    def nodes(self):
        """The node of each rank, when all are connected. None: the node is not known."""
        return [w.get("node") for w in self.wait_ready()["workers"]]

    @property
    def local_ranks(self):
        """The number of each rank among the ranks on its node."""
        nodes = self.nodes
        return [nodes[:i].count(node) for i, node in enumerate(nodes)]

    def wait_ready(self, timeout=_READY_S):
        """Waits until all ranks are connected. Returns info()."""
        end = time.monotonic() + timeout
        with _progress.Line(self.name) as line:
            while True:
                info = self.info(timeout=timeout)
                if info["ready"]:
                    return info
                if time.monotonic() > end:
                    raise TimeoutError(f"{info['connected']} of {info['worldSize']} ranks of {self.name} are connected "
                                       f"after {timeout} s: {info.get('message', 'nobody says why')}")
                line.show(info)
                time.sleep(_LOOK_S)

    def _repr_html_(self):
        """Returns a table of the ranks, for notebooks."""
        try:
            info = self.info(timeout=_LOOK_HTML_S)
        except (_errors.Error, TimeoutError, RuntimeError) as e:
            return f"<b>{html.escape(self.name)}</b>: {html.escape(str(e))}"
        said = "ready" if info["ready"] else f"{info['connected']} of {info['worldSize']} ranks are connected"
        why = f": {html.escape(info['message'])}" if info.get("message") else ""
        rows = "".join(f"<tr><td>{w['rank']}</td><td>{'connected' if w['connected'] else 'not connected'}</td>"
                       f"<td>{html.escape(w.get('pod') or '')}</td><td>{html.escape(w.get('node') or '')}</td></tr>"
                       for w in info["workers"][:_ROWS_MAX])
        return (f"<b>{html.escape(self.name)}</b>: {said}{why}<table><tr><th>rank</th><th></th><th>pod</th><th>node</th>"
                f"</tr>{rows}</table>")

    def __repr__(self):
        role = f" role={self.role}" if self.role else ""
        return f"<cadre.Group {self.name}{role} of {self.client!r}>"


def _summary(spec):
    """Returns what is compared if the group is made again. Its worker may be long, because it may contain code."""
    worker = json.dumps(spec["worker"], sort_keys=True)
    return {**spec, "worker": hashlib.sha256(worker.encode()).digest()}
