# SPDX-License-Identifier: Apache-2.0
"""The exception of a method on its way to the client: `cause` in the body of an ERROR (docs/protocol.md)."""

import base64
import json
import pickle
import traceback

from . import _errors
from ._code import cloudpickle

_PICKLE_MAX = 24 << 10  # bytes; longer exceptions travel only as text
_TRACEBACK_MAX = 8 << 10


class _Remote(Exception):
    """The cause of an exception: it shows the traceback of the rank."""

    def __init__(self, text):
        super().__init__(text)
        self.text = text

    def __str__(self):
        return f"\n{self.text}"

    def __reduce__(self):
        return _Remote, (self.text,)


def _traceback(e):
    """Returns the traceback as text, without the line of the worker itself."""
    own = e.__traceback__.tb_next if e.__traceback__ else None
    text = "".join(traceback.format_exception(type(e), e, own)).encode("utf-8", "replace")
    return text if len(text) <= _TRACEBACK_MAX else b"...\n" + text[-_TRACEBACK_MAX:]


def pack(e):
    """Returns the JSON for an exception."""
    packed = {"type": f"{type(e).__module__}.{type(e).__qualname__}"[:500],
              "traceback": _traceback(e).decode("utf-8", "replace")}
    if isinstance(e, Exception):
        stream = _dumps(e)
        if stream and len(stream) <= _PICKLE_MAX:
            packed["pickle"] = base64.b64encode(stream).decode()
    return json.dumps(packed, ensure_ascii=False).encode("utf-8", "replace").replace(b"\0", b"?")


def _dumps(e):
    try:
        return (cloudpickle() or pickle).dumps(e, protocol=5)
    except Exception:
        return None


def _open(packed):
    """Returns (exception, why it could not be opened)."""
    try:
        found = pickle.loads(base64.b64decode(packed["pickle"]))
    except Exception as e:
        return None, f"{packed.get('type')} cannot be opened here: {type(e).__name__}: {e}"
    return (found, None) if isinstance(found, Exception) else (None, None)


def error(struct, said, trust):
    """Returns the exception for a call, from its cadre_client_error and the body of its ERROR."""
    packed = said.get("cause")
    if not isinstance(packed, dict):
        return _errors.of_struct(struct)
    cause, why_not = _open(packed) if trust and "pickle" in packed else (None, None)
    e = _errors.of_struct(struct, cause)
    if not isinstance(e, _errors.Failed):
        return e
    if cause is not None:
        e._adopt(cause)
    e.traceback = packed.get("traceback")
    if e.traceback:
        e.__cause__ = _Remote(e.traceback + (f"({why_not})\n" if why_not else ""))
    return e
