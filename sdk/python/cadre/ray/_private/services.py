# SPDX-License-Identifier: Apache-2.0
"""ray._private.services."""

from .. import _missing
from .._nodes import address as get_node_ip_address

__getattr__ = _missing.of(__name__)
