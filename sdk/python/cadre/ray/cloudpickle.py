# SPDX-License-Identifier: Apache-2.0
"""ray.cloudpickle."""

import pickle

from .._code import cloudpickle as _of_package
from . import _missing


def dumps(thing, protocol=None):
    """Also pickles classes and functions that only this program can import."""
    return _of_package().dumps(thing, protocol)


loads = pickle.loads
__getattr__ = _missing.of(__name__)
