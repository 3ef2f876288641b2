# SPDX-License-Identifier: Apache-2.0
"""ray.util."""

from .. import _missing, _nodes
from .._names import list_named_actors
from .placement_group import (get_current_placement_group, get_placement_group, placement_group, placement_group_table,
                              remove_placement_group)

get_node_ip_address = _nodes.address
__getattr__ = _missing.of(__name__)
