# SPDX-License-Identifier: Apache-2.0
"""ray._private.runtime_env: what programs use of it."""
