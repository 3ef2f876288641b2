# SPDX-License-Identifier: Apache-2.0
"""Names of Ray that this package does not have, and what to use instead."""

import importlib.util

_INSTEAD = {
    "data": "read data in the ranks, with datasets or torch.utils.data",
    "train": "torch.distributed works in a group of ranks as it is (docs/python.md)",
    "tune": "start a task or a group for each trial",
    "rllib": "use a library that calls actors by itself, such as verl",
    "serve": "make a group and call it from your server (examples/python)",
    "workflow": "keep what has to survive in files, and call tasks again",
    "dag": "give references of calls to other calls: they run as soon as their arguments are there",
    "air": "it belongs to Ray's own libraries",
    "job_submission": "a Job of Kubernetes starts a program",
    "autoscaler": "the cluster's own autoscaler makes nodes for pods that wait",
    "internal": "it is Ray's own",
    "client": "cadre.connect() reaches the operator from outside of the cluster",
    "java_function": "workers in C and in Python only", "java_actor_class": "workers in C and in Python only",
    "cpp_function": "workers in C are modules: client.Group(module=\"FILE.so\")",
    "timeline": "kubectl cadre and metrics show what runs (docs/observe.md)",
    "get_dashboard_url": "kubectl cadre top shows what runs (docs/observe.md)",
    "show_in_dashboard": "kubectl cadre top shows what runs (docs/observe.md)",
}


def explain(name):
    """The message for "data", or "util.queue"."""
    first = name.split(".")[0]
    hint = _INSTEAD.get(name) or _INSTEAD.get(first) or "docs/coming-from-ray.md lists the names that there are"
    return f"cadre.ray has no {name!r}: {hint}"


def of(module):
    """Returns __getattr__ for a module. As in Ray, modules that nobody has imported yet are found."""
    prefix = module[len("cadre.ray"):].lstrip(".")

    def missing(name):
        if name.startswith("_"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        if importlib.util.find_spec(f"{module}.{name}"):
            return importlib.import_module(f"{module}.{name}")
        raise AttributeError(explain(f"{prefix}.{name}" if prefix else name))

    return missing
