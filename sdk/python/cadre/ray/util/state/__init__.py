# SPDX-License-Identifier: Apache-2.0
"""ray.util.state: actors and nodes, as the directory knows them."""

from ... import _missing
from ..._names import get_actor_state as get_actor
from ..._names import list_actors

__getattr__ = _missing.of(__name__)
