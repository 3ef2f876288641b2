# SPDX-License-Identifier: Apache-2.0
"""What a program says of a group, as the WorkerGroup that says the same."""

import re
import secrets

_NAME_MAX = 50  # pods add to it


def name_of(worker, module):
    """A name of a group that was not given one: what it runs, and a few letters of its own."""
    what = worker if isinstance(worker, str) else getattr(worker, "__name__", None) or module or "group"
    what = re.split(r"[:/.]", re.sub(r"\.so$", "", str(what)))[-1]
    words = re.sub(r"[^a-z0-9]+", "-", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", what).lower()).strip("-")
    return f"{words[:_NAME_MAX] or 'group'}-{secrets.token_hex(3)}".lstrip("-")


def _worker(worker, module, class_name, init):
    if (worker is None) == (module is None):
        raise TypeError("Group() needs what its ranks run: a class, \"package.module:Class\", or module=\"FILE.so\"")
    if module is not None:
        spec = {"module": str(module)}
    elif isinstance(worker, str):
        path, _, class_name = worker.partition(":")
        if not path or not class_name:
            raise ValueError(f"{worker!r} names no class: \"package.module:Class\" does")
        spec = {"python": path}
    elif isinstance(worker, type):
        if worker.__module__ == "__main__" or "<locals>" in worker.__qualname__:
            raise TypeError(f"the ranks cannot import {worker.__qualname__}, which {worker.__module__} has: put it into "
                            "a module of its own, at its top level")
        spec, class_name = {"python": worker.__module__}, worker.__qualname__
    else:
        raise TypeError(f"{worker!r} is no class, nor \"package.module:Class\"")
    if class_name:
        spec["class"] = class_name
    if init is not None:
        spec["init"] = init
    return spec


def workergroup(name, *, worker=None, module=None, class_name=None, init=None, replicas=1, gpus=0, cpus=None, image=None,
                env=None, strategy=None, restart=None, max_restarts=None):
    """The manifest of a WorkerGroup. Raises what says which argument is wrong."""
    container = {"name": "worker", "image": image or "none"}
    limits = {}
    if gpus:
        limits["nvidia.com/gpu"] = str(gpus)
    if cpus:
        limits["cpu"] = str(cpus)
    if limits:
        container["resources"] = {"limits": limits}
    if env:
        container["env"] = [{"name": str(key), "value": str(value)} for key, value in env.items()]
    spec = {"replicas": replicas, "worker": _worker(worker, module, class_name, init),
            "template": {"spec": {"containers": [container]}}}
    if strategy is not None:
        spec["placement"] = {"strategy": strategy}
    if restart is not None:
        spec["restartPolicy"] = restart
    if max_restarts is not None:
        spec["maxRestarts"] = max_restarts
    return {"metadata": {"name": name}, "spec": spec}
