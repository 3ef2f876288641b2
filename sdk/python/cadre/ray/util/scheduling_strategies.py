# SPDX-License-Identifier: Apache-2.0
"""ray.util.scheduling_strategies."""

from .. import _missing
from .._placement import NodeAffinitySchedulingStrategy, PlacementGroupSchedulingStrategy

__getattr__ = _missing.of(__name__)
