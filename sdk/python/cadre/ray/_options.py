# SPDX-License-Identifier: Apache-2.0
"""Options of actors and tasks: their names, and the requests to Cadre that they mean."""

from . import _runtime_env

_BOTH = {"num_cpus", "num_gpus", "memory", "resources", "accelerator_type", "runtime_env", "scheduling_strategy", "placement_group",
         "placement_group_bundle_index", "placement_group_capture_child_tasks", "name", "_metadata", "enable_task_events",
         "label_selector", "object_store_memory", "_labels", "fallback_strategy"}
ACTOR = _BOTH | {"namespace", "lifetime", "get_if_exists", "max_concurrency", "max_restarts", "max_task_retries",
                 "max_pending_calls", "concurrency_groups", "allow_out_of_order_execution", "enable_tensor_transport"}
TASK = _BOTH | {"max_calls", "max_retries", "num_returns", "retry_exceptions", "_generator_backpressure_num_objects"}
METHOD = {"num_returns", "name", "concurrency_group", "max_task_retries", "retry_exceptions", "enable_task_events",
          "tensor_transport", "_generator_backpressure_num_objects"}
_THREADS_MAX = 1000


def check(options, known, what):
    """Checks options of decorators and of .options(). ValueError names the wrong one."""
    for name, value in options.items():
        if name not in known:
            raise ValueError(f"Invalid option keyword {name} for {what}. Valid ones are {sorted(known)}.")
        _CHECKS.get(name, _any)(name, value)
    return options


def _any(_name, _value):
    pass


def _amount(name, value):
    if value is not None and not (isinstance(value, (int, float)) and value >= 0):
        raise ValueError(f"The keyword {name!r} only accepts None, 0 or a positive number, not {value!r}")


def _count(name, value):
    if value is not None and not (isinstance(value, int) and value >= -1):
        raise ValueError(f"The keyword {name!r} only accepts None, -1 (without end), 0 or a positive integer, not {value!r}")


def _limit(name, value):
    if value is not None and not (isinstance(value, int) and value >= -1):
        raise ValueError(f"The keyword {name!r} only accepts None, -1 or 0 (no limit) or a positive integer, not {value!r}")


def _kinds(name, value):
    kinds = value if isinstance(value, (list, tuple)) else ()
    if not (value is None or isinstance(value, (bool, list, tuple))) or not all(
            isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
        raise TypeError(f"The keyword {name!r} must be either a boolean or a list/tuple of exceptions, not {value!r}")


def is_one_of(error, kinds):
    """Whether retry_exceptions has this exception."""
    return kinds is True or bool(kinds) and isinstance(error, tuple(kinds))


def _concurrency(name, value):
    if value is not None and not (isinstance(value, int) and 1 <= value):
        raise ValueError(f"The keyword {name!r} only accepts a positive integer, not {value!r}")


def _lifetime(name, value):
    if value not in (None, "detached", "non_detached"):
        raise ValueError(f"actor `{name}` argument must be one of ('detached', 'non_detached') and None, not {value!r}")


def _text(name, value):
    if value is not None and (not isinstance(value, str) or not value):
        raise (TypeError if not isinstance(value, str) else ValueError)(
            f"{name} must be None or a string that is not empty, not {value!r}")


def _no_resources(name, value):
    if any((value or {}).values()):
        raise ValueError(f"{name}={value!r}: cadre.ray counts CPUs and GPUs only: leave it out, and use num_gpus=, or a "
                         "placement group for what has to be together or apart")


def _returns(name, value):
    if value in ("dynamic", "streaming"):
        raise ValueError(f"{name}={value!r}: cadre.ray has no generators: return a list, or have the method call an actor "
                         "with each piece")
    if value is not None and not (isinstance(value, int) and value >= 0):
        raise ValueError(f"The keyword {name!r} only accepts 0 or a positive integer, not {value!r}")


def _transport(name, value):
    if value not in (None, "", "object_store", "OBJECT_STORE"):
        raise ValueError(f"{name}={value!r}: cadre.ray has no transports of its own: results travel with their tensors "
                         "beside them; ranks that train send theirs by torch.distributed or ray.util.collective")


def _unavailable(name, value):
    if value:
        raise ValueError(f"{name}={value!r} has no meaning in cadre.ray: leave it out")


_CHECKS = {"num_cpus": _amount, "num_gpus": _amount, "max_restarts": _count, "max_task_retries": _count, "max_retries": _count,
           "retry_exceptions": _kinds, "max_concurrency": _concurrency, "max_pending_calls": _limit, "lifetime": _lifetime,
           "name": _text, "namespace": _text, "resources": _no_resources, "num_returns": _returns,
           "runtime_env": lambda _, v: _runtime_env.checked(v), "tensor_transport": _transport,
           "enable_tensor_transport": _transport, "label_selector": _unavailable, "accelerator_type": _unavailable}


def whole_gpus(options, what):
    """The GPUs of an actor or task that is in no placement group."""
    gpus = options.get("num_gpus") or 0
    if gpus != int(gpus):
        raise ValueError(f"{what}: num_gpus={gpus}: a GPU of its own is whole. To share one, put those that share it on one "
                         "bundle of a placement group (PlacementGroupSchedulingStrategy)")
    return int(gpus)


def threads(options):
    n = options.get("max_concurrency") or 1
    if n > _THREADS_MAX:
        raise ValueError(f"max_concurrency={n}: {_THREADS_MAX} threads are the most; `async def` methods need none")
    return n
