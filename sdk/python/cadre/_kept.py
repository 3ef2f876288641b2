# SPDX-License-Identifier: Apache-2.0
"""Values that a client keeps, and references to them."""

from ._value import decode, encode_result


class Kept:
    """A value that the client keeps, as it was when Client.put() got it. As an argument of a call, it stands for the
    value.
    """

    __slots__ = ("_bytes", "_value")

    def __init__(self, value):
        self._bytes = b"".join(bytes(part) for part in encode_result(value, "put").parts)
        self._value = None

    def get(self, timeout=None):
        """The value. Each call returns its own copy."""
        return decode(bytearray(self._readable()), True)

    def free(self, timeout=None):
        """Drops the value."""
        self._bytes = self._value = None

    def _readable(self):
        if self._bytes is None:
            raise ValueError("the value of this reference was freed")
        return self._bytes

    def _argument(self):
        """Returns the value for an argument, which nobody writes to."""
        self._readable()
        if self._value is None:
            self._value = (decode(bytearray(self._bytes), True),)
        return self._value[0]

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.free()

    def __reduce_ex__(self, protocol):
        raise TypeError("a reference to a value that the client keeps can be an argument of a call itself, but not be part "
                        "of one: send its get()")

    def __repr__(self):
        return f"<cadre.Kept {'freed' if self._bytes is None else f'{len(self._bytes)} bytes'}>"
