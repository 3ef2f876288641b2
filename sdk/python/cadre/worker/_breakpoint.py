# SPDX-License-Identifier: Apache-2.0
"""breakpoint() in a method waits for `python -m cadre debug GROUP`, whose terminal becomes the debugger's."""

import os
import socket
import sys

from .. import _method

_LOOK_S, _PIECE = 0.2, 16 << 10  # characters of a message


class _Terminal:
    """A file for the debugger over the socket of the host."""

    encoding = "utf-8"

    def __init__(self, sock):
        self._sock = sock

    def write(self, text):
        for at in range(0, len(text), _PIECE):
            self._sock.send(text[at:at + _PIECE].encode("utf-8", "replace"))

    def flush(self):
        """Sends what was written."""

    def drain(self):
        """Drops lines that were typed for an earlier breakpoint."""
        self._sock.setblocking(False)
        try:
            while self._sock.recv(1 << 16):
                pass
        except BlockingIOError:
            pass
        self._sock.settimeout(_LOOK_S)

    def readline(self):
        """Returns the next line that somebody types; "continue" when nobody waits for the call any more."""
        while not _method.canceled():
            try:
                return self._sock.recv(1 << 16).decode("utf-8", "replace")
            except socket.timeout:
                continue
        self.write("\n--- nobody waits for this call any more: the method goes on\n")
        return "continue\n"


def install():
    """Returns the descriptor for the host."""
    ours, hosts = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(_LOOK_S)
    terminal = _Terminal(ours)

    def hook(*args, **named):
        if _method.call.get(None) is None:  # nobody could reach the breakpoint: the host does not serve calls yet
            return sys.__breakpointhook__(*args, **named)
        frame = sys._getframe(1)
        terminal.drain()
        print(f"cadre-worker: rank {_method.rank()}: a breakpoint waits at {frame.f_code.co_filename}:{frame.f_lineno}: "
              f"python -m cadre debug {os.environ.get('GROUP_NAME', 'GROUP')} --rank {_method.rank()}", file=sys.stderr,
              flush=True)
        import pdb

        return pdb.Pdb(stdin=terminal, stdout=terminal, nosigint=True).set_trace(frame)

    def forget():  # in a child of fork(), which has its own terminal, or none
        sys.breakpointhook = sys.__breakpointhook__
        ours.close()
        os.close(fd)

    sys.breakpointhook, fd = hook, hosts.detach()
    os.register_at_fork(after_in_child=forget)
    return fd
