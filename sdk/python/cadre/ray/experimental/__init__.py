# SPDX-License-Identifier: Apache-2.0
"""The names of ray.experimental that programs use."""
