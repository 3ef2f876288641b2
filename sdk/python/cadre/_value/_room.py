# SPDX-License-Identifier: Apache-2.0
"""Memory for long values.

A bytearray is filled with zeros before anything is copied into it, a page of 4 KiB at a time: for an array of 64 MiB that
takes ten times as long as the copy. Long values get mappings in huge pages instead, as numpy's arrays do. Those are kept
for the next value, up to 128 MiB: their pages are there already.
"""

import ctypes
import mmap

_LONG = 4 << 20  # bytes
_STEP = 2 << 20  # of mappings: a huge page
_KEPT_MAX = 128 << 20

_kept = []  # mappings that nothing refers to; the one that was used last is at the end


class _Lease:
    """A lease of a mapping. The memory has it as its owner, and is the last to refer to it."""

    __slots__ = ("mapping",)

    def __init__(self, mapping):
        self.mapping = mapping

    def __del__(self, kept=_kept, most=_KEPT_MAX):  # at the end of the program this module may be empty
        kept.append(self.mapping)
        while sum(map(len, kept)) > most:
            try:
                kept.pop(0)
            except IndexError:  # another thread was faster
                break


def _mapping_of(size):
    for i, mapping in enumerate(_kept):
        if len(mapping) == size:
            try:
                found = _kept.pop(i)
            except IndexError:  # another thread was faster
                break
            if len(found) == size:
                return found
            _kept.append(found)
            break
    mapping = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        try:
            mapping.madvise(mmap.MADV_HUGEPAGE)
        except OSError:
            pass  # the kernel has no huge pages: it is only slower
    return mapping


def room(size):
    """Memory of that many bytes to write to. Its contents are undefined."""
    if size < _LONG:
        return bytearray(size)
    mapping = _mapping_of(-(-size // _STEP) * _STEP)
    memory = (ctypes.c_char * size).from_buffer(mapping)
    memory.owner = _Lease(mapping)
    return memory


def copy(data):
    """A copy that may be written to, as a memoryview of bytes."""
    view = memoryview(data).cast("B")
    own = memoryview(room(view.nbytes)).cast("B")
    own[:] = view
    return own
