# SPDX-License-Identifier: Apache-2.0
"""The names of ray._private.runtime_env that programs use."""
