# SPDX-License-Identifier: Apache-2.0
"""cloudpickle: the one that came with the package, otherwise the one of the environment."""

import functools
import importlib
import pickle


@functools.lru_cache(maxsize=None)
def cloudpickle():
    """The package, or None."""
    for name in ("cadre._vendor.cloudpickle", "cloudpickle"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            continue
    return None


def load(stream):
    try:
        return pickle.loads(stream)
    except ModuleNotFoundError as e:
        raise ValueError(f"it needs the module {e.name}, which this image does not have: put it into the "
                         "image, or define what is needed in the program itself") from None
