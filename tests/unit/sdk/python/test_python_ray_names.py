#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of docs/coming-from-ray.md: each name that cadre.ray has, how well, and which program uses it. UPDATE_GOLDEN=1
writes it again.
"""

import ast
import glob
import importlib
import os
import re
import unittest

from python_case import ROOT, main

PAGE = os.path.join(ROOT, "docs/coming-from-ray.md")
BEGIN, END = "<!-- names: test_python_ray_names.py writes this table -->\n", "<!-- end of names -->\n"
PROGRAMS = glob.glob(f"{os.path.dirname(os.path.abspath(__file__))}/ray*/*.py")
SAME = "as in Ray"
VERL, SKY, RLHF, SLIME, QUEUE = "verl", "SkyRL", "OpenRLHF", "slime", "TransferQueue"
ALL = (VERL, SKY, RLHF, SLIME, QUEUE)

# name -> (how well, libraries that use it)
NAMES = {
    "init": ("CPUs and GPUs are counted, nothing else; no dashboard", (VERL, SKY, RLHF)),
    "shutdown": (SAME, (VERL, SKY)),
    "is_initialized": (SAME, (VERL, SKY, RLHF, QUEUE)),
    "remote": ("functions and classes; no generators", ALL),
    "method": (SAME, (VERL,)),
    "get": (SAME, ALL),
    "put": ("the client keeps the value, until the reference goes to another process", (VERL, SKY, RLHF, SLIME, QUEUE)),
    "wait": ("`fetch_local` has no effect", (VERL, RLHF, SLIME)),
    "kill": (SAME, (VERL, SKY, SLIME, QUEUE)),
    "cancel": ("a method that runs in a thread is not interrupted", (VERL, SKY, RLHF)),
    "get_actor": (SAME, (VERL, SKY, QUEUE)),
    "ObjectRef": (SAME, (VERL, SKY, SLIME, QUEUE)),
    "nodes": ("one entry, which stands for the run or the cluster", (VERL, SKY, SLIME, QUEUE)),
    "cluster_resources": ("CPUs and GPUs; in a cluster, of all nodes that take pods", (SLIME,)),
    "available_resources": ("not counting actors and placement groups of this program", (SLIME,)),
    "get_gpu_ids": (SAME, (VERL, SKY, RLHF, SLIME)),
    "get_runtime_context": (SAME, (VERL, SKY, QUEUE)),
    "actor.ActorHandle": (SAME, (VERL, SKY, SLIME)),
    "actor.exit_actor": (SAME, ()),
    "cloudpickle.dumps": (SAME, (VERL,)),
    "cloudpickle.loads": (SAME, (VERL,)),
    "cloudpickle.pickle": (SAME, (VERL,)),
    "exceptions.RayError": (SAME, ()),
    "exceptions.RayTaskError": ("also of the exception's own type", ()),
    "exceptions.RayActorError": (SAME, ()),
    "exceptions.ActorDiedError": (SAME, ()),
    "exceptions.ActorUnavailableError": (SAME, ()),
    "exceptions.ActorUnschedulableError": ("`.remote()` raises it at once, where Ray waits", ()),
    "exceptions.GetTimeoutError": (SAME, (QUEUE,)),
    "exceptions.TaskCancelledError": (SAME, ()),
    "exceptions.WorkerCrashedError": (SAME, ()),
    "exceptions.PendingCallsLimitExceeded": (SAME, ()),
    "exceptions.ObjectStoreFullError": ("only for references that went to other processes", ()),
    "util.get_node_ip_address": (SAME, (VERL, SKY, SLIME, QUEUE)),
    "util.list_named_actors": (SAME, (VERL,)),
    "util.placement_group": ("CPU and GPU; whole GPUs", ALL),
    "util.placement_group_table": (SAME, (VERL, SKY, RLHF)),
    "util.remove_placement_group": (SAME, (VERL, SKY, QUEUE)),
    "util.get_placement_group": (SAME, ()),
    "util.get_current_placement_group": (SAME, ()),
    "util.scheduling_strategies.PlacementGroupSchedulingStrategy": ("bundles are not counted down: actors on one share it",
                                                                    (VERL, SKY, RLHF, SLIME)),
    "util.scheduling_strategies.NodeAffinitySchedulingStrategy": ("only for the node that `nodes()` returns",
                                                                  (VERL, SKY, SLIME, QUEUE)),
    "util.collective.init_collective_group": ("gloo and nccl, by torch", (VERL, RLHF)),
    "util.collective.create_collective_group": ("gloo and nccl, by torch", ()),
    "util.collective.destroy_collective_group": (SAME, (VERL,)),
    "util.collective.is_group_initialized": (SAME, (VERL,)),
    "util.collective.get_rank": (SAME, ()),
    "util.collective.get_collective_group_size": (SAME, ()),
    "util.collective.broadcast": (SAME, (VERL, RLHF)),
    "util.collective.allreduce": (SAME, ()),
    "util.collective.allgather": (SAME, ()),
    "util.collective.barrier": (SAME, (VERL,)),
    "util.collective.send": (SAME, (VERL,)),
    "util.collective.recv": (SAME, (VERL,)),
    "util.collective.collective": ("the same module", (VERL,)),
    "util.state.get_actor": ("state, name, node, cause of death", ()),
    "util.state.list_actors": ("of this program; filters `=` and `!=`", ()),
    "experimental.state.api.get_actor": ("state, name, node, cause of death", (VERL,)),
    "state.available_resources_per_node": ("as `available_resources`", (VERL,)),
    "_private.state.available_resources_per_node": ("as `available_resources`", (VERL,)),
    "_private.state.state": ("`placement_group_table()`", (VERL,)),
    "_private.services.get_node_ip_address": (SAME, (SKY, RLHF, SLIME)),
    "_private.runtime_env.constants.RAY_JOB_CONFIG_JSON_ENV_VAR": ("the name; no server starts jobs", (VERL,)),
}
MISSING = {
    "timeline": (VERL, SKY), "util.queue": (RLHF,), "util.metrics": (SKY,), "data": (), "train": (), "tune": (), "serve": (),
    "workflow": (), "dag": (), "job_submission": (), "autoscaler": (),
}


def used_in(path):
    """Names of ray in a program: of attributes, and of imports."""
    with open(path, encoding="utf-8") as f:
        tree = ast.parse(f.read())
    aliases, found = {"ray": ""}, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "ray":
            found.update(f"{node.module}.{alias.name}"[len("ray."):] for alias in node.names)
        elif isinstance(node, ast.Import):
            aliases.update({a.asname: a.name[len("ray."):] + "." for a in node.names if a.asname and a.name.startswith("ray.")})
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            base, _, rest = ast.unparse(node).partition(".")
            if base in aliases and re.fullmatch(r"[\w.]+", rest):
                found.add(aliases[base] + rest)
    return found


def find(name):
    """The thing of that name in cadre.ray."""
    import cadre.ray as ray

    module, found = ray, ray
    parts = name.split(".")
    for i, part in enumerate(parts):
        try:
            found = getattr(module, part)
        except AttributeError:
            found = importlib.import_module("cadre.ray." + ".".join(parts[:i + 1]))
        if i < len(parts) - 1 and not hasattr(found, parts[i + 1]):
            found = importlib.import_module("cadre.ray." + ".".join(parts[:i + 1]))  # a module whose name is a function's, too
        module = found
    return found


def table():
    uses = {os.path.relpath(path, os.path.dirname(os.path.abspath(__file__))): used_in(path) for path in sorted(PROGRAMS)}
    lines = ["| name | how well | libraries that use it | programs of the tests |", "|---|---|---|---|"]
    for name, (how, libraries) in NAMES.items():
        programs = [f"`{path[:-3]}`" for path, names in uses.items() if any(
            n == name or n.startswith(name + ".") and name.count(".") for n in names)]
        lines.append(f"| `{name}` | {how} | {', '.join(libraries)} | {', '.join(programs)} |")
    return "\n".join(lines) + "\n"


class Names(unittest.TestCase):
    def test_all_of_the_table_are_there(self):
        for name in NAMES:
            self.assertTrue(find(name) is not None, name)

    def test_what_is_missing_says_what_to_use_instead(self):
        import cadre.ray as ray

        for name in MISSING:
            at = ray
            *path, last = name.split(".")
            for part in path:
                at = getattr(at, part)
            with self.assertRaisesRegex(AttributeError, f"cadre.ray has no '{name}': "):
                getattr(at, last)

    def test_programs_use_nothing_else(self):
        known = {*NAMES, *(name.rpartition(".")[0] for name in NAMES if "." in name),
                 *(".".join(name.split(".")[:i]) for name in NAMES for i in range(1, name.count(".") + 1)),
                 "util.placement_group.PlacementGroup", "util.placement_group.placement_group",
                 "util.placement_group.placement_group_table", "util.placement_group.remove_placement_group"}
        for path in PROGRAMS:
            self.assertEqual({n for n in used_in(path) if n not in known}, set(), path)

    def test_the_page_has_the_table(self):
        with open(PAGE, encoding="utf-8") as f:
            text = f.read()
        before, _, rest = text.partition(BEGIN)
        there, _, after = rest.partition(END)
        if os.environ.get("UPDATE_GOLDEN"):
            with open(PAGE, "w", encoding="utf-8") as f:
                f.write(before + BEGIN + table() + END + after)
            return
        self.assertEqual(there, table(), "UPDATE_GOLDEN=1 writes it again")


if __name__ == "__main__":
    main()
