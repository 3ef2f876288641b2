# SPDX-License-Identifier: Apache-2.0
"""ray.util.placement_group. The attribute of ray.util of this name is the function, as in Ray."""

from .. import _missing
from .._placement import (PlacementGroup, get_current_placement_group, get_placement_group, placement_group,
                          placement_group_table, remove_placement_group)

__getattr__ = _missing.of(__name__)
