# SPDX-License-Identifier: Apache-2.0
"""A module that cannot be preloaded, because of another one that it imports."""

import threaded  # noqa: F401
