# SPDX-License-Identifier: Apache-2.0
"""ray.actor: classes that programs use as types, and exit_actor()."""

from . import _missing
from ._actor import ActorClass, ActorHandle, ActorMethod, exit_actor

__getattr__ = _missing.of(__name__)
