# SPDX-License-Identifier: Apache-2.0
"""ray._private: what programs use of it."""

from . import services, state
