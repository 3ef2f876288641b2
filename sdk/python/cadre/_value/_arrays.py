# SPDX-License-Identifier: Apache-2.0
"""Values that are arrays of numpy and nothing else, such as the arguments and results of most long calls. Arrays with the
same dtypes and shapes have the same pickle, because their values lie beside it. So it is made, and opened, only once.
"""

from collections import namedtuple

from . import _document
from ._tensor import DTYPES, flat, is_plain_numpy

_KNOWN_MAX = 256  # of each kind


class Looks(namedtuple("Looks", ("of_call", "n", "names", "arrays"))):
    """Everything about a value except the contents of its arrays: (type, dtype, shape) of each array. For arguments:
    `n` are by position, the others have names. For a result there is one.
    """

    __slots__ = ()


_written = {}  # Looks -> (head, order, stream) of the document
_came = {}  # (text of the head, stream) -> Looks; True: it came once; None: it is something else


def _remember(known, key, value):
    if len(known) >= _KNOWN_MAX:
        known.clear()
    known[key] = value


def is_short(text, stream):
    """The text of the head and the stream are short enough to be remembered."""
    return len(text) <= _document.SHORT and stream.nbytes <= _document.SHORT


def look(value, of_call):
    """(arrays, Looks); ([], None): it is something else. of_call: it is (args, kwargs)."""
    arrays = [*value[0], *value[1].values()] if of_call else [value]
    if not arrays or not all(map(is_plain_numpy, arrays)) or len(set(map(id, arrays))) < len(arrays):
        return [], None
    n, names = (len(value[0]), tuple(value[1])) if of_call else (None, ())
    return arrays, Looks(of_call, n, names, tuple((type(a), a.dtype, a.shape) for a in arrays))


def write_again(value, of_call=False):
    """Returns the parts of the document if a document with such arrays was written before, else None."""
    arrays, looks = look(value, of_call)
    found = _written.get(looks) if looks else None
    if not found:
        return None
    head, order, stream = found
    data = [flat(memoryview(arrays[i])) for i in order]
    return [head, *(d for d in data if d.nbytes), stream]


def wrote(value, of_call, parts, laid):
    """Those parts. laid: the tensors that lie beside the stream, by number."""
    arrays, looks = look(value, of_call)
    if not looks or len(laid) != len(arrays) or not is_short(parts[0][_document.PREFIX:], parts[-1]):
        return
    order = sorted(range(len(laid)), key=lambda i: -DTYPES[laid[str(i)].dtype][0])  # as in the document
    _remember(_written, looks, (parts[0], order, bytes(parts[-1])))


class Reading:
    """Reads a document and its stream, which is short."""

    __slots__ = ("document", "key", "found")

    def __init__(self, document, stream):
        self.document = document
        self.key = document.text, bytes(stream)
        self.found = _came.get(self.key, False)

    def value(self):
        """Returns the value, or None if it must be opened."""
        if type(self.found) is not Looks:
            return None
        of_call, n, names, looks = self.found
        arrays = [_array(self.document.part(str(i)), *look) for i, look in enumerate(looks)]
        return (tuple(arrays[:n]), dict(zip(names, arrays[n:]))) if of_call else arrays[0]

    def opened(self, value, of_call, write):
        """A value was opened. If its document came twice, write() of the value shows whether the value is all that the
        document holds.
        """
        if self.found is None:
            return
        if not self.found:
            _remember(_came, self.key, True)
            return
        arrays, looks = look(value, of_call)
        if len(self.document.tensors) != len(arrays) + 1:  # an array is inside the stream, as pickle writes it
            looks = None
        if looks:
            head, *_, stream = write(value)
            looks = looks if (head[_document.PREFIX:], bytes(stream)) == self.key else None
        _remember(_came, self.key, looks)


def _array(data, array, dtype, shape):
    if not data.nbytes:
        return array(shape, dtype)
    return array(shape, dtype, data)
