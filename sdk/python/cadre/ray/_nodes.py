# SPDX-License-Identifier: Apache-2.0
"""Addresses, GPUs and free resources."""

import os
import socket

from . import _session
from ._names import _now
from ._placement import nodes


def address():
    """The address of this machine for others; loopback if there is no network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))  # this sends nothing: it asks for the route
            return s.getsockname()[0]
        except OSError:
            return "127.0.0.1"


def get_gpu_ids():
    """Returns the numbers of the GPUs that this actor or task may use."""
    if _session.current().driver:
        return []
    visible = os.environ.get("CUDA_VISIBLE_DEVICES") or ""
    return [int(d) if d.isdigit() else d for d in (part.strip() for part in visible.split(",")) if d and d != "-1"]


def available_resources():
    """The resources of the run or the cluster, minus those that actors and placement groups of this program hold."""
    session = _session.current()
    left = dict(nodes()[0]["Resources"])
    held = [a["asks"] for a in session.ask("all_actors").values() if any(a["asks"].values()) and _now(session, a) != "DEAD"]
    held += [bundle for g in session.ask("all_groups").values() if g["state"] != "REMOVED" for bundle in g["bundles"]]
    for asks in held:
        for name, amount in asks.items():
            if name in left:
                left[name] = max(left[name] - amount, 0.0)
    return {name: amount for name, amount in left.items() if amount}


def available_resources_per_node():
    """The same, by the node's ID."""
    return {nodes()[0]["NodeID"]: available_resources()}
