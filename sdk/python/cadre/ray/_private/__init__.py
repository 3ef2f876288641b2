# SPDX-License-Identifier: Apache-2.0
"""The names of ray._private that programs use."""

from . import services, state
