# SPDX-License-Identifier: Apache-2.0
"""Programs for Ray, on Cadre: `import cadre.ray as ray`; or `python -m cadre.ray program.py`, which makes `import ray` mean
this package. docs/coming-from-ray.md lists the names that it has.
"""

from . import _missing, actor, cloudpickle, exceptions
from ._actor import cancel, get_actor, kill, method
from ._nodes import available_resources, get_gpu_ids
from ._placement import cluster_resources, nodes
from ._refs import ObjectRef, get, put, wait
from ._remote import remote
from ._session import init, is_initialized, shutdown
from .exceptions import RayError
from .runtime_context import get_runtime_context
from . import _private, experimental, runtime_context, util

__cadre__ = True  # tells it from Ray
__version__ = "2.60.0"  # of the Ray whose behaviour it has
__getattr__ = _missing.of(__name__)
