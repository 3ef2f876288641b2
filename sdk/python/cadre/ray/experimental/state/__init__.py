# SPDX-License-Identifier: Apache-2.0
"""ray.experimental.state: what programs use of it."""
