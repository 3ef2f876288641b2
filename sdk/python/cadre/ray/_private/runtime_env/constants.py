# SPDX-License-Identifier: Apache-2.0
"""ray._private.runtime_env.constants."""

from ... import _missing

RAY_JOB_CONFIG_JSON_ENV_VAR = "RAY_JOB_CONFIG_JSON_ENV_VAR"  # only for jobs that Ray's own server started
__getattr__ = _missing.of(__name__)
