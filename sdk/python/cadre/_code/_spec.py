# SPDX-License-Identifier: Apache-2.0
"""spec.worker.code, and the environment in which workers get it."""

import base64
import os
from itertools import count

MAX = 256 * 1024  # bytes of code in the object


def spec_of(code, what):
    """Returns the code as the object has it."""
    if len(code) > MAX:
        raise TypeError(f"{what} is {len(code)} bytes of code, and {MAX} is the most: it takes large values of the program "
                        "with it, such as arrays that its methods name; give those as arguments")
    import hashlib  # this also imports OpenSSL

    return {"sha256": hashlib.sha256(code).hexdigest(), "size": len(code), "inline": base64.b64encode(code).decode()}


def check(code, sha256):
    """Raises ValueError if these are other bytes."""
    import hashlib

    found = hashlib.sha256(code).hexdigest()
    if found != sha256:
        raise ValueError(f"the code was changed on its way: its SHA-256 is {found}, and spec.worker.code says {sha256}")


def of_environment():
    """Returns the code that this worker was given, or None. Removes it from the environment: children of the worker
    do not need it.
    """
    sha256 = os.environ.pop("CADRE_CODE", None)
    if not sha256:
        return None
    parts = []
    for i in count():
        part = os.environ.pop(f"CADRE_CODE_{i}", None)
        if part is None:
            break
        parts.append(part)
    try:
        code = base64.b64decode("".join(parts), validate=True)
    except ValueError as e:
        raise ValueError(f"spec.worker.code.inline is not base64: {e}") from None
    check(code, sha256)
    return code
