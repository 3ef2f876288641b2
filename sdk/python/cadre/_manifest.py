# SPDX-License-Identifier: Apache-2.0
"""Turns the arguments for a group into a WorkerGroup."""

import copy
import os
import re

from . import _code
from ._value._json import is_exact

_NAME_MAX = 50  # pods append to it


def name_of(worker, module):
    """A name for a group without a given name: the name of its worker, and a few random letters."""
    if isinstance(worker, dict):
        worker = "-".join(map(str, worker))
    what = worker if isinstance(worker, str) else getattr(worker, "__name__", None) or module or "group"
    what = re.split(r"[:/.]", re.sub(r"\.so$", "", str(what)))[-1]
    words = re.sub(r"[^a-z0-9]+", "-", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", what).lower()).strip("-")
    return f"{words[:_NAME_MAX] or 'group'}-{os.urandom(3).hex()}".lstrip("-")


def _worker(worker, module, class_name, init, archive, preload, meshes):
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
        spec, class_name = _python([worker]), worker.__name__ if _code.goes_by_value(worker) else worker.__qualname__
    elif isinstance(worker, dict):
        spec, class_name = {**_python(list(worker.values())), "roles": _roles(worker, init)}, None
    else:
        raise TypeError(f"{worker!r} is not a class, \"package.module:Class\", or a dict of roles, {{\"actor\": Actor}}")
    if archive:
        if "python" not in spec:
            raise TypeError("working_dir= and py_modules= are for workers in Python, and module= is one in C")
        spec["archive"] = {"sha256": archive.sha256, "size": archive.size}
    if preload:
        if "python" not in spec:
            raise TypeError("preload= is for workers in Python, and module= is one in C")
        names = [preload] if isinstance(preload, str) else preload
        spec["preload"] = [name if isinstance(name, str) else name.__name__ for name in names]
    if class_name:
        spec["class"] = class_name
    if init is not None and "roles" not in spec:
        spec["init"] = _init(init, "init")
    if meshes:
        spec["meshes"] = [{"name": name, "dims": [{"name": dim, "size": size} for dim, size in dims.items()]}
                          for name, dims in meshes.items()]
    return spec


def _python(classes):
    """Returns the module of the classes. If the ranks cannot import them from a module, returns their code, too."""
    if not classes or len({cls.__name__ for cls in classes if isinstance(cls, type)}) < len(classes):
        raise TypeError("Group(): roles are classes of different names, {\"actor\": Actor, \"critic\": Critic}")
    if len({cls.__module__ for cls in classes}) == 1 and not any(map(_code.goes_by_value, classes)):
        return {"python": classes[0].__module__}
    code = _code.pack(classes[0] if len(classes) == 1 else {cls.__name__: cls for cls in classes},
                      " and ".join(cls.__name__ for cls in classes))
    return {"python": classes[0].__module__, "code": _code.spec_of(code, classes[0].__name__)}


def _roles(classes, init):
    inits = {} if init is None else init
    if not isinstance(inits, dict) or not set(inits) <= set(classes):
        raise TypeError(f"init: with roles it is a dict of dicts, {{ROLE: {{...}}}}, and the roles are {', '.join(classes)}")
    return [{"name": name, "class": cls.__name__ if _code.goes_by_value(cls) else cls.__qualname__,
             **({"init": _init(inits[name], f"init[{name!r}]")} if name in inits else {})} for name, cls in classes.items()]


def _init(init, what):
    if not isinstance(init, dict):
        raise TypeError(f"{what} is a dict, the arguments of the constructor by name, and not a {type(init).__name__}")
    for name, value in init.items():
        if not isinstance(name, str) or not is_exact(value):
            raise TypeError(f"{what}[{name!r}] is a {type(value).__name__} that JSON does not have, and init= becomes a part "
                            "of the group's object: pass numbers, text, lists and dicts, and all else to a method")
    return init


def _resources(gpus, cpus):
    amounts = {"nvidia.com/gpu": gpus, "cpu": cpus}
    return {resource: str(amount) for resource, amount in amounts.items() if amount}


def template_of(image=None, template=None, resources=None):
    """Returns the template of pods: the given one, with the image and the resources in its first container. If it has
    its own CPU limit, the CPUs are only requested.
    """
    made = copy.deepcopy(template) if template else {}
    try:
        container = made.setdefault("spec", {}).setdefault("containers", [{"name": "worker"}])[0]
        if image:
            container["image"] = image
        if resources:
            limits = container.setdefault("resources", {}).setdefault("limits", {})
            if "cpu" in limits and "cpu" in resources:
                container["resources"].setdefault("requests", {})["cpu"] = resources["cpu"]
                resources = {**resources, "cpu": limits["cpu"]}
            limits.update(resources)
    except (AttributeError, IndexError, KeyError, TypeError):
        raise TypeError("template= is a pod template, {\"spec\": {\"containers\": [{\"name\": \"worker\", ...}], ...}}, and "
                        f"not {template!r}") from None
    return made


def placementgroup(name, bundles, *, gpus, cpus, strategy, image, template):
    """Returns the manifest of a PlacementGroup with that many equal bundles."""
    spec = {"strategy": strategy, "bundles": [{"count": bundles, "resources": _resources(gpus, cpus)}]}
    if image or template:
        spec["template"] = template_of(image, template)
    return {"metadata": {"name": name}, "spec": spec}


def workergroup(name, *, worker=None, module=None, class_name=None, init=None, replicas=None, gpus=None, cpus=None,
                image=None, template=None, env=None, strategy=None, restart=None, max_restarts=None, pool=None, archive=None,
                preload=None, meshes=None):
    """Returns the manifest of a WorkerGroup. The exception says which argument is wrong."""
    what = _worker(worker, module, class_name, init, archive, preload, meshes)
    spec = {"worker": what}
    if "python" in what and (gpus or pool):
        what["gpuVisibility"] = "Own"  # Python programs expect this: device 0 belongs to them
    if env:
        what["env"] = [{"name": str(key), "value": str(value)} for key, value in env.items()]
    if pool is None:
        spec["replicas"] = 1 if replicas is None else replicas
        spec["template"] = template_of(image or (None if template else "none"), template, _resources(gpus, cpus))
        if strategy is not None:
            spec["placement"] = {"strategy": strategy}
    else:
        for argument, given in (("image", image), ("template", template), ("cpus", cpus), ("strategy", strategy)):
            if given is not None:
                raise TypeError(f"Group {name}: {argument}= is the pool's: give it to Pool()")
        spec["replicas"] = pool.world_size if replicas is None else replicas
        spec["placement"] = {"groups": pool._refs()}
        if gpus is not None:
            what["gpus"] = gpus
    if restart is not None:
        spec["restartPolicy"] = restart
    if max_restarts is not None:
        spec["maxRestarts"] = max_restarts
    return {"metadata": {"name": name}, "spec": spec}
