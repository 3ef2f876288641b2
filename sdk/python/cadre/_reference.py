# SPDX-License-Identifier: Apache-2.0
"""References: results that stay on the workers."""

from ._errors import Error


class Ref:
    """Names results that stayed on the workers (`keep=True`, `Group.put()`). Give it as an argument of a call, also
    of another group: the ranks fetch the values directly. It is freed with its client unless it is pinned. `with`
    frees it at the end of the block.
    """

    __slots__ = ("text", "_client", "_group")

    def __init__(self, text, client=None, group=None):
        self.text = text
        self._client = client
        self._group = group

    def get(self, timeout=None):
        """Returns what the call would have returned without `keep`."""
        return self._call("object.get", timeout)

    def pin(self, timeout=None):
        """Makes the object live as long as the process that has it. It is no longer freed with its client."""
        self._call("object.pin", timeout)

    def free(self, timeout=None):
        """Frees the object on the workers."""
        self._call("object.free", timeout)

    def _call(self, method, timeout):
        if self._client is None:
            raise RuntimeError("this reference came as an argument: the method that is to have its value gets it as an "
                               "argument of its own")
        return self._client.group(self._group).call(method, args=self, timeout=timeout)

    def stands_for_all(self):
        """Whether, as the only argument, it stands for all arguments, and not for the first one: it is a batch, or
        has a part for each rank.
        """
        fields = self.text.split(":")
        parts = fields[4].split(",") if len(fields) > 4 else []
        return len(parts) != 1 or not parts[0].endswith(".j")

    def __enter__(self):
        return self

    def __exit__(self, kind, *exc):
        try:
            self.free()
        except Error:
            if kind is None:
                raise  # otherwise the exception that ended the block says more, for example that a rank has died

    def __eq__(self, other):
        return isinstance(other, Ref) and other.text == self.text

    def __hash__(self):
        return hash(self.text)

    def __repr__(self):
        return f"<cadre.Ref {self.text}>"
