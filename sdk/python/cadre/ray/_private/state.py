# SPDX-License-Identifier: Apache-2.0
"""ray._private.state."""

from .. import _missing
from .._nodes import available_resources, available_resources_per_node
from .._placement import cluster_resources, nodes, placement_group_table


class _State:
    """ray._private.state.state."""

    @staticmethod
    def placement_group_table(group_id=None):
        """Returns the data of one placement group, by its ID, or of all."""
        table = placement_group_table()
        return table if group_id is None else table[group_id]

    @staticmethod
    def _available_resources_per_node():
        return available_resources_per_node()


state = _State()
__getattr__ = _missing.of(__name__)
