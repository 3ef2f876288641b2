# SPDX-License-Identifier: Apache-2.0
"""ray.util.collective, over the process groups of torch.distributed: gloo for tensors on CPUs, nccl for those on GPUs."""

import datetime
import sys
import threading
import time

from .. import _missing, _nodes, _session

collective = sys.modules[__name__]  # Ray's module of that name is in a package of that name
_WAIT_S = 300
_groups, _lock = {}, threading.Lock()


class _Group:
    """A group that this process is in."""

    def __init__(self, group, store, rank, size, backend):
        self.group, self.store, self.rank, self.size, self.backend = group, store, rank, size, backend


def _key(group_name):
    return f"collective {_session.current().said['job']} {group_name}"


def init_collective_group(world_size, rank, backend="nccl", group_name="default", gloo_timeout=30000):
    """All ranks call it. It returns when they have met."""
    if not group_name:
        raise ValueError("group_name is empty")
    if not (isinstance(world_size, int) and isinstance(rank, int) and 0 <= rank < world_size):
        raise ValueError(f"rank {rank!r} of world_size {world_size!r}: ranks are 0 to world_size - 1")
    backend = str(getattr(backend, "value", backend)).lower().replace("torch_", "")
    if backend not in ("gloo", "nccl"):
        raise ValueError(f"backend {backend!r}: cadre.ray has gloo and nccl")
    with _lock:
        if group_name in _groups:
            raise RuntimeError("Trying to initialize a group twice.")
    import torch.distributed as dist

    limit = datetime.timedelta(seconds=_WAIT_S)
    store = _meet(dist, _key(group_name), rank, world_size, limit)
    prefixed = dist.PrefixStore(group_name, store)
    if backend == "nccl":
        group = dist.ProcessGroupNCCL(prefixed, rank, world_size, dist.ProcessGroupNCCL.Options())
    else:
        group = dist.ProcessGroupGloo(prefixed, rank, world_size, limit)
    with _lock:
        _groups[group_name] = _Group(group, store, rank, world_size, backend)


def _meet(dist, key, rank, world_size, limit):
    session = _session.current()
    if rank == 0:
        store = dist.TCPStore("0.0.0.0", 0, world_size, True, limit, wait_for_workers=False)
        session.ask("say", key, [_nodes.address(), store.port])
        return store
    end = time.monotonic() + _WAIT_S
    where = None
    while where is None:
        if time.monotonic() > end:
            raise TimeoutError(f"rank 0 of the collective group has not come within {_WAIT_S} s")
        where = session.ask("hear", key)
    return dist.TCPStore(where[0], where[1], world_size, False, limit)


def create_collective_group(actors, world_size, ranks, backend="nccl", group_name="default", gloo_timeout=30000):
    """Does the same for the program that has the handles."""
    from .. import get

    get([actor.__ray_call__.remote(_join, world_size, rank, backend, group_name) for actor, rank in zip(actors, ranks)])


def _join(_, *args):
    init_collective_group(*args)


def is_group_initialized(group_name="default"):
    """Whether this process is in the group."""
    return group_name in _groups


def destroy_collective_group(group_name="default"):
    """This process leaves the group."""
    with _lock:
        left = _groups.pop(group_name, None)
    if left is not None and left.rank == 0:
        _session.current().ask("unsay", _key(group_name))


def _of(group_name):
    try:
        return _groups[group_name]
    except KeyError:
        raise RuntimeError(f"The collective group {group_name!r} is not initialized in the process: "
                           "init_collective_group() first") from None


def get_rank(group_name="default"):
    """Returns -1 if this process is not in the group."""
    return _groups[group_name].rank if group_name in _groups else -1


def get_collective_group_size(group_name="default"):
    """Returns -1 if this process is not in the group."""
    return _groups[group_name].size if group_name in _groups else -1


def _of_torch(tensor):
    import torch

    return tensor if isinstance(tensor, torch.Tensor) else torch.from_numpy(tensor)


def _op(op):
    import torch.distributed as dist

    names = {"0": "SUM", "1": "PRODUCT", "2": "MAX", "3": "MIN", "SUM": "SUM", "PRODUCT": "PRODUCT", "MIN": "MIN", "MAX": "MAX"}
    name = getattr(op, "name", None) or names.get(str(op))
    return getattr(dist.ReduceOp, name)


def allreduce(tensor, group_name="default", op="SUM"):
    """In place."""
    import torch.distributed as dist

    options = dist.AllreduceOptions()
    options.reduceOp = _op(op)
    _of(group_name).group.allreduce([_of_torch(tensor)], options).wait()


def reduce(tensor, dst_rank=0, group_name="default", op="SUM"):
    """In place, on one rank."""
    import torch.distributed as dist

    options = dist.ReduceOptions()
    options.reduceOp, options.rootRank = _op(op), dst_rank
    _of(group_name).group.reduce([_of_torch(tensor)], options).wait()


def broadcast(tensor, src_rank=0, group_name="default"):
    """In place."""
    _of(group_name).group.broadcast(_of_torch(tensor), src_rank).wait()


def barrier(group_name="default"):
    """Returns when all ranks have called it."""
    _of(group_name).group.barrier().wait()


def send(tensor, dst_rank, group_name="default"):
    """Sends to one rank, which calls recv()."""
    _of(group_name).group.send([_of_torch(tensor)], dst_rank, 0).wait()


def recv(tensor, src_rank, group_name="default"):
    """Receives from one rank, into the tensor."""
    _of(group_name).group.recv([_of_torch(tensor)], src_rank, 0).wait()


def allgather(tensor_list, tensor, group_name="default"):
    """Puts the tensor of rank i into tensor_list[i]."""
    _of(group_name).group.allgather([[_of_torch(t) for t in tensor_list]], [_of_torch(tensor)]).wait()


__getattr__ = _missing.of(__name__)
