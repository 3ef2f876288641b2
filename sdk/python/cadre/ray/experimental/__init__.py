# SPDX-License-Identifier: Apache-2.0
"""ray.experimental: what programs use of it."""
