# SPDX-License-Identifier: Apache-2.0
"""Placement groups, and the place of an actor or a worker."""

import math
import secrets
import threading
import weakref

from .. import _errors, _manifest
from .._pool import Pool, _Part
from . import _options, _session
from ._refs import ObjectRef, Promise
from .exceptions import ActorUnschedulableError, PlacementGroupSchedulingError

_STRATEGIES = {"PACK": "Pack", "SPREAD": "Spread", "STRICT_PACK": "StrictPack", "STRICT_SPREAD": "StrictSpread"}
_RESOURCES = {"CPU": "cpu", "GPU": "nvidia.com/gpu"}
_ASK_S = 10


class PlacementGroup:
    """Bundles that are reserved together."""

    def __init__(self, name, bundles, strategy="PACK", given_name=""):
        self._name, self._bundles, self._strategy, self._given = name, bundles, strategy, given_name
        self._removed = False

    @property
    def id(self):
        from ._actor import ID

        return ID(self._name.encode().hex())

    @property
    def bundle_specs(self):
        return [dict(b) for b in self._bundles]

    @property
    def bundle_count(self):
        return len(self._bundles)

    @property
    def is_empty(self):
        return not self._bundles

    def _pool(self, session, index=None):
        first, count = (0, len(self._bundles)) if index is None else (index, 1)
        return Pool(session.client, [_Part(self._name, first, count)])

    def wait(self, timeout_seconds=30):
        """Waits `timeout_seconds` at most. Returns whether everything is reserved."""
        session = _session.current()
        try:
            self._pool(session).wait_ready(timeout_seconds)
        except TimeoutError:
            return False
        except _errors.Error as e:
            raise PlacementGroupSchedulingError(f"placement group {self._given or self._name}: {e}") from None
        return True

    def ready(self):
        """Returns a reference that is ready when everything is reserved."""
        promise, session = Promise(), _session.current()
        ref = ObjectRef(promise)
        kept = weakref.ref(ref)

        def look():
            while not session.closed and not promise.done() and (kept() is not None or promise.awaited()):
                try:
                    if self.wait(1):
                        promise.settle(self)
                        return
                except (PlacementGroupSchedulingError, RuntimeError) as e:
                    promise.settle(error=e)
                    return

        threading.Thread(target=look, daemon=True, name="cadre.ray placement group").start()
        return ref

    def __reduce__(self):
        return PlacementGroup, (self._name, self._bundles, self._strategy, self._given)

    def __eq__(self, other):
        return isinstance(other, PlacementGroup) and other._name == self._name

    def __hash__(self):
        return hash(self._name)

    def __repr__(self):
        return f"<PlacementGroup {self._given or self._name} {self._strategy} {self._bundles}>"


def placement_group(bundles, strategy="PACK", name="", lifetime=None, _soft_target_node_id=None, bundle_label_selector=None,
                    topology_strategy=None):
    """Reserves bundles: [{"CPU": 1, "GPU": 1}] * 4. It does not wait: ready() and wait() do."""
    if not isinstance(bundles, list) or not bundles:
        raise ValueError(f"The placement group `bundles` argument must be a list that is not empty, not {bundles!r}")
    if strategy not in _STRATEGIES:
        raise ValueError(f"Invalid strategy type {strategy}. Supported strategies are {list(_STRATEGIES)}.")
    if lifetime not in (None, "detached"):
        raise ValueError("placement group `lifetime` argument must be either `None` or 'detached'")
    if bundle_label_selector or topology_strategy or _soft_target_node_id:
        raise ValueError("cadre.ray's placement groups have no label selectors: strategy= says where bundles are; in a cluster, "
                         "a PlacementGroup's template has nodeSelector")
    specs = [_bundle(b, i) for i, b in enumerate(bundles)]
    session, made = _session.current(), f"pg-{secrets.token_hex(4)}"
    if not session.ask("enter_group", made, {"name": name, "bundles": specs, "strategy": strategy}):
        raise ValueError(f"a placement group of the name {name!r} is there already: get_placement_group({name!r}) returns it, "
                         "or use another name")
    spec = {"strategy": _STRATEGIES[strategy], "bundles": _runs(session, specs)}
    if session.said["pods"]:
        spec["template"] = _manifest.template_of(**session.said["pods"])
    try:
        session.client._create("placementGroup", {"metadata": {"name": made}, "spec": spec}, lifetime == "detached", None)
    except (_errors.Invalid, _errors.Limit) as e:
        session.tell("tell_group", made, "REMOVED")
        raise PlacementGroupSchedulingError(f"placement group {name or made}: {e}. A run of this machine counts what "
                                            "init(num_cpus=, num_gpus=) says") from None
    return PlacementGroup(made, specs, strategy, name)


def _bundle(bundle, i):
    if not isinstance(bundle, dict) or not any(bundle.values()):
        raise ValueError(f"Bundles must be a non-empty list of resource dictionaries. For example: [{{'CPU': 1.0}}]. Bundle {i} "
                         f"is {bundle!r}.")
    for resource in bundle:
        if resource not in (*_RESOURCES, "memory", "object_store_memory") and not resource.startswith("accelerator_type:"):
            raise ValueError(f"bundle {i} asks for {resource!r}: cadre.ray counts CPU and GPU only")
    gpus = bundle.get("GPU", 0)
    if gpus != int(gpus):
        raise ValueError(f"bundle {i} asks for {gpus} GPUs: bundles have whole ones, which several actors may share")
    return {r: float(v) for r, v in bundle.items() if r in _RESOURCES and v}


def _amount(session, resource, value):
    """The amount of a resource, as Kubernetes writes it."""
    return f"{value * 1000 * session.said['cpu']:.0f}m" if resource == "CPU" else f"{value:g}"


def _runs(session, specs):
    """Joins equal bundles that follow each other into one entry."""
    entries = []
    for spec in specs:
        resources = {_RESOURCES[r]: _amount(session, r, v) for r, v in spec.items()}
        if entries and entries[-1]["resources"] == resources:
            entries[-1]["count"] += 1
        else:
            entries.append({"count": 1, "resources": resources})
    return entries


def remove_placement_group(group):
    """Gives the bundles back. Actors and tasks on them end."""
    session = _session.current()
    session.tell("tell_group", group._name, "REMOVED")
    session.client._renewal.remove("placementGroup", group._name)
    with _lock:
        for key in [key for key in _taken if key[0] == group._name]:
            del _taken[key]
    try:
        session.client._ask("group.delete", group._name, {"placementGroup": group._name})
    except (_errors.NotFound, _errors.Gone):
        pass


def get_placement_group(name):
    """Returns the placement group with that name."""
    if not name:
        raise ValueError("Please supply a non-empty value to get_placement_group")
    for made, record in _session.current().ask("all_groups").items():
        if record["name"] == name and record["state"] != "REMOVED":
            return PlacementGroup(made, record["bundles"], record["strategy"], name)
    raise ValueError(f"Failed to look up placement group with name: {name}")


def placement_group_table(group=None):
    """Returns the data of one placement group, or of all."""
    session = _session.current()
    if group is not None:
        gone = {"name": group._given, "bundles": group._bundles, "strategy": group._strategy, "state": "REMOVED"}
        return _row(session, group._name, session.ask("all_groups").get(group._name, gone))
    return {PlacementGroup(made, r["bundles"]).id: _row(session, made, r) for made, r in session.ask("all_groups").items()}


def _row(session, made, record):
    state, nodes, pg = record["state"], [], PlacementGroup(made, record["bundles"])
    if state != "REMOVED":
        try:
            info = session.client._ask("group.bundles", made, {"placementGroup": made}, _ASK_S)
            state, nodes = "CREATED" if info["ready"] else "PENDING", info["nodes"]
        except (_errors.NotFound, _errors.Gone):
            state = "REMOVED"
    return {"placement_group_id": pg.id, "name": record["name"], "bundles": dict(enumerate(record["bundles"])),
            "bundles_to_node_id": {i: session.said["node"] if n else "" for i, n in enumerate(nodes)}, "strategy": record["strategy"],
            "state": state, "stats": {"end_to_end_creation_latency_ms": 0.0, "scheduling_latency_ms": 0.0,
                                      "scheduling_attempt": 1, "highest_retry_delay_ms": 0.0,
                                      "scheduling_state": "FINISHED" if state == "CREATED" else "QUEUED"}}


def get_current_placement_group():
    """Returns the placement group of the calling actor or task. None: it is in none."""
    said = _session.current().said.get("placement_group")
    return PlacementGroup(*said["group"]) if said else None


# Placing an actor

class PlacementGroupSchedulingStrategy:
    """options(scheduling_strategy=...): on this bundle of a placement group; -1: on any bundle with enough room."""

    def __init__(self, placement_group, placement_group_bundle_index=-1, placement_group_capture_child_tasks=None):
        self.placement_group = placement_group
        self.placement_group_bundle_index = placement_group_bundle_index
        self.placement_group_capture_child_tasks = placement_group_capture_child_tasks


class NodeAffinitySchedulingStrategy:
    """On this node; soft: another node is possible."""

    def __init__(self, node_id, soft, _spill_on_unavailable=False, _fail_on_unavailable=False):
        self.node_id, self.soft = node_id, soft


_taken, _lock = {}, threading.Lock()  # how many of this process's went to a bundle, for those that may go to any


def _strategy(options):
    strategy = options.get("scheduling_strategy")
    if options.get("placement_group") not in (None, "default"):
        return PlacementGroupSchedulingStrategy(options["placement_group"], options.get("placement_group_bundle_index", -1))
    if strategy in (None, "DEFAULT", "SPREAD") or isinstance(strategy, (PlacementGroupSchedulingStrategy,
                                                                        NodeAffinitySchedulingStrategy)):
        return strategy
    raise ValueError(f"scheduling_strategy={strategy!r}: cadre.ray knows \"DEFAULT\", \"SPREAD\", "
                     "PlacementGroupSchedulingStrategy and NodeAffinitySchedulingStrategy")


def _captured():
    """The placement group of this actor or task, if its children must be in it, too."""
    said = (_session.existing() or _session.current()).said.get("placement_group")
    return PlacementGroup(*said["group"]) if said and said["capture"] else None


def _group_of(options):
    strategy = _strategy(options)
    if isinstance(strategy, PlacementGroupSchedulingStrategy):
        return strategy.placement_group, strategy.placement_group_bundle_index
    if strategy is None:
        return _captured(), -1
    return None, -1


def is_in_group(options):
    """Whether the options use a placement group."""
    return _group_of(options)[0] is not None


def said(options):
    """The data about the placement group for the process."""
    group, _ = _group_of(options)
    if group is None:
        return {"placement_group": None}
    capture = getattr(options.get("scheduling_strategy"), "placement_group_capture_child_tasks", None)
    return {"placement_group": {"group": [group._name, group._bundles, group._strategy, group._given],
                                "capture": bool(capture or capture is None and _captured() is not None)}}


def of(session, options, what):
    """Returns arguments for Client.Group()."""
    group, index = _group_of(options)
    if group is not None:
        return _on_bundle(session, group, index, options, what)
    _check_node(session, _strategy(options), what)
    gpus, cpus = _options.whole_gpus(options, what), options.get("num_cpus") or 0
    _check_fits(session, gpus, cpus, what)
    made = {"gpus": gpus or None, "cpus": _amount(session, "CPU", cpus) if cpus else None, **session.said["pods"]}
    return made


def _check_fits(session, gpus, cpus, what):
    local = session.said["local"]
    for name, asked in (("GPU", gpus), ("CPU", cpus)):
        if local is not None and asked > local[name]:
            raise ActorUnschedulableError(f"{what} asks for {asked:g} {name}, and this run has {local[name]:g}: "
                                          f"init(num_{name.lower()}s={asked:g}), or ask for less")


def _on_bundle(session, group, index, options, what):
    n = len(group._bundles)
    if not -1 <= index < n:
        raise ValueError(f"placement group bundle index {index} is invalid. Valid placement group indexes: 0-{n - 1}")
    asked = {"GPU": options.get("num_gpus") or 0, "CPU": options.get("num_cpus") or 0}
    fits = [i for i, b in enumerate(group._bundles) if all(b.get(r, 0) >= v for r, v in asked.items())]
    if not fits or index >= 0 and index not in fits:
        raise ValueError(f"Cannot schedule {what} with the placement group because the resource request "
                         f"{ {r: v for r, v in asked.items() if v} } cannot fit into any bundles for the placement group, "
                         f"{group._bundles}. Ask for less, or give the placement group larger bundles")
    with _lock:
        if index < 0:
            index = min(fits, key=lambda i: _taken.get((group._name, i), 0))
        _taken[group._name, index] = _taken.get((group._name, index), 0) + 1
    return {"pool": group._pool(session, index), "replicas": 1, "gpus": math.ceil(asked["GPU"])}


def _check_node(session, strategy, what):
    if isinstance(strategy, NodeAffinitySchedulingStrategy) and not strategy.soft:
        if strategy.node_id not in (session.said["node"], *(n["NodeID"] for n in nodes())):
            raise ActorUnschedulableError(f"{what}: there is no node {strategy.node_id}: ray.nodes() lists those that there are")


# Nodes

def nodes():
    """Returns the nodes of this run. For a cluster, returns one entry that stands for all nodes, because Kubernetes
    decides.
    """
    session = _session.current()
    has = session.said["local"]
    if has is None:
        said = session.client._ask("group.capacity", session.directory.name, {}, _ASK_S)["resources"]
        has = {"CPU": round(said.get("cpu", 0) / session.said["cpu"], 3), "GPU": float(said.get(_RESOURCES["GPU"], 0))}
    resources = {name: v for name, v in has.items() if v}
    return [{"NodeID": session.said["node"], "Alive": True, "NodeManagerAddress": "127.0.0.1", "NodeManagerHostname": "localhost",
             "NodeManagerPort": 0, "ObjectManagerPort": 0, "NodeName": "127.0.0.1", "alive": True,
             "Resources": {**resources, "node:127.0.0.1": 1.0}, "Labels": {"ray.io/node-id": session.said["node"]}}]


def cluster_resources():
    """The resources of a run of this machine; for a cluster, the sum over its nodes."""
    return dict(nodes()[0]["Resources"])
