# SPDX-License-Identifier: Apache-2.0
"""The names of ray.experimental.state that programs use."""
