# SPDX-License-Identifier: Apache-2.0
"""ray.state, as versions of Ray before 2.8 had it."""

from . import _missing
from ._nodes import available_resources, available_resources_per_node
from ._placement import cluster_resources, nodes

__getattr__ = _missing.of(__name__)
