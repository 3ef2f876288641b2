# SPDX-License-Identifier: Apache-2.0
"""An external module of verl (VERL_USE_EXTERNAL_MODULES), and a plugin of pytest: CPUs are verl's platform, and ray.init()
counts logical GPUs.
"""

import functools
import gc
import os
import types

gc.set_threshold(100_000, 50, 50)  # verl creates many objects that stay, and Python would look at them again and again

import ray
import torch
from verl.plugin.platform.platform_base import PlatformBase
from verl.plugin.platform.platform_manager import PlatformRegistry

LOGICAL_GPUS = int(os.environ.get("LOGICAL_GPUS", 8))


def _nothing(self, *args, **kwargs):
    return None


def _one_backend(init):
    """verl asks for one back end for CPUs and one for the platform's devices, which are the same here: torch refuses that."""

    @functools.wraps(init)
    def init_process_group(backend=None, *args, **kwargs):
        return init("gloo" if backend == "cpu:gloo,cpu:gloo" else backend, *args, **kwargs)

    return init_process_group


torch.distributed.init_process_group = _one_backend(torch.distributed.init_process_group)


class _Devices(types.ModuleType):
    """torch.cpu, with the questions that verl asks about GPUs: how many there are, and how they use their memory."""

    empty_cache = ipc_collect = reset_peak_memory_stats = _nothing

    def device_count(self):
        return LOGICAL_GPUS

    def memory_allocated(self, *args):
        return 0

    memory_reserved = max_memory_allocated = max_memory_reserved = memory_allocated

    def mem_get_info(self, *args):
        return 1 << 34, 1 << 34

    def __getattr__(self, name):
        return getattr(torch.cpu, name)


@PlatformRegistry.register("cpu")
class PlatformCPU(PlatformBase):
    """A GPU of Ray is only a number; tensors stay where they are."""

    device_name, vendor_name = "cpu", "cpu"
    device_module = _Devices("logical devices")
    set_device = synchronize = set_allocator_settings = empty_cache = profiler_start = profiler_stop = cudart = _nothing

    def is_available(self):
        return True

    def current_device(self):
        return "cpu"

    def device_count(self):
        return LOGICAL_GPUS

    def manual_seed(self, seed):
        torch.manual_seed(seed)

    manual_seed_all = manual_seed

    def get_device_capability(self, device_index=0):
        return None, None

    def communication_backend_name(self):
        return "gloo"

    def visible_devices_envvar(self):
        return "CUDA_VISIBLE_DEVICES"

    def nvtx_range(self, msg):
        return types.SimpleNamespace(__enter__=_nothing, __exit__=_nothing)

    def ray_resource_name(self):
        return "GPU"

    def ray_noset_envvars(self):
        return []

    def is_ipc_supported(self):
        return False


def _with_gpus(init):
    """ray.init() of the tests says nothing of GPUs, which their machine has. A cluster has its own of everything."""

    @functools.wraps(init)
    def with_gpus(*args, **kwargs):
        counted = {"num_gpus": LOGICAL_GPUS, "num_cpus": 100}
        if os.environ.get("RAY_ADDRESS") == "auto":
            return init(*args, **{name: value for name, value in kwargs.items() if name not in counted})
        return init(*args, **{**counted, **kwargs})

    return with_gpus


ray.init = _with_gpus(ray.init)
torch.cuda.device_count = lambda: LOGICAL_GPUS  # which tests ask, to know how many workers they may have
