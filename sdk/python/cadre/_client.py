# SPDX-License-Identifier: Apache-2.0
"""A connection to the proxy, and what all its calls share: one lock, one error, the structs that they are sent with."""

import ctypes
import os
import sys
import threading
import warnings
from collections import deque
from ctypes import byref
from typing import NamedTuple

from . import _errors, _options
from . import _library as lib
from ._group import Group
from ._value import decode

_SLICE_MS = 100  # so long Python's own signal handlers (Ctrl-C) have to wait at most
_done, _get, _start, _wait_for = lib.functions.done, lib.functions.get, lib.functions.start, lib.functions.wait_for


class Output(NamedTuple):
    """What ranks of the client's group have printed."""

    group: str  # "namespace/name"
    ranks: str  # "3"; "0-3,7" of ranks that have printed the same at the same time
    text: str  # one line; None: nothing but that some were dropped
    dropped: int  # lines before this one that came too fast


def connect(address, *, on_connection=None, on_output=None, trust=False, **options):
    """A Client of the proxy at "wss://host:port", "ws://host:port" or "unix:/path". It connects with the first call.

    namespace        whose groups are called, required
    group            for client.group() without a name, and the group of on_output
    token            or token_file, which is read anew for each attempt to connect; token_in_hello=True: it travels in
                     the first record, for servers in between that take the header away
    ca_pem           or ca_file: whom to trust (wss); default: the system's certificates
    server_name      in the certificate; default: the host of the address
    path_prefix      in front of the proxy's own paths, such as that of a reverse proxy
    connect_timeout  seconds for one attempt (10)
    unreachable      so many seconds a call without a timeout waits for a connection (60)
    max_calls        not answered, or not taken, at a time (10,000)
    max_body         bytes of the arguments or of the result of a call (64 MiB)
    max_bytes        of arguments that wait and of results that are not taken (512 MiB)
    trust            True: pickled results are opened, which may run code of whoever made the group
    spin             False: whatever waits sleeps at once, instead of looking for answers for up to 100 us before
    on_connection    called with (True, None), and (False, why)
    on_output        called with an Output for every line that ranks of `group` print; both only inside of what waits,
                     and they cannot use the client
    """
    return Client(address, on_connection, on_output, trust, options)


class Client:
    """One connection; cadre.connect() makes it. It belongs to one thread at a time; close() or `with` closes it."""

    def __init__(self, address, on_connection, on_output, trust, options):
        self._handle = None
        self.trust = bool(trust)
        self._lock = threading.RLock()  # so that what a signal handler raises in between cannot lock the thread out
        self._in_callback = False
        # Set by whoever has entered: what a signal handler did to the structs below, to a request that is being made,
        # or to the handle, would go unnoticed.
        self._at_work = False
        self._pid = os.getpid()
        self._dropped = deque()  # ids of futures that nobody has any more
        self._raised = None  # by a callback
        self._error, self._id, self._n = lib.ClientError(), ctypes.c_uint64(), ctypes.c_size_t()
        self._answer, self._ids = lib.Json(), (ctypes.c_uint64 * 1)()
        self._error_ref, self._id_ref, self._n_ref = byref(self._error), byref(self._id), byref(self._n)
        self._answer_ref, self._ids_ref = byref(self._answer), byref(self._ids)
        self.address, self.namespace, self._group = address, options.get("namespace"), options.get("group")
        o = lib.Options(size=ctypes.sizeof(lib.Options))
        _options.put(o, "address", str(address).encode(), "address")
        _options.fill(o, _options.CONNECT, options, "connect()")
        self._callbacks = self._callbacks_of(on_connection, on_output)
        o.on_connection, o.on_output = self._callbacks
        handle = ctypes.c_void_p()
        if lib.functions.open(byref(o), byref(handle), self._error_ref) != lib.OK:
            raise _errors.of_struct(self._error)
        self._handle = handle.value

    def _callbacks_of(self, on_connection, on_output):
        def connection(_, up, why):
            on_connection(bool(up), _errors.of_struct(why.contents) if why else None)

        def output(_, line):
            group, ranks, text = (s and s.decode("utf-8", "replace")
                                  for s in (line.contents.group, line.contents.ranks, line.contents.text))
            on_output(Output(group, ranks, text, line.contents.dropped))

        def guarded(f):
            def call(*args):
                try:
                    self._in_callback = True
                    f(*args)
                except BaseException as e:  # C has nobody to hand it to: who waits gets it
                    self._raised = self._raised or e
                finally:
                    self._in_callback = False

            return call

        return (lib.ON_CONNECTION(guarded(connection)) if on_connection else lib.ON_CONNECTION(),
                lib.ON_OUTPUT(guarded(output)) if on_output else lib.ON_OUTPUT())

    def group(self, name=None, role=None):
        """The group of that name ("name" or "namespace/name"), or one of its roles. Nothing is asked of the proxy."""
        name = name or self._group
        if not name:
            raise TypeError("group() needs a name, because the client was not connected for one")
        for what, text in (("group's", name), ("role's", role)):
            if text is not None and not isinstance(text, str):
                raise TypeError(f"a {what} name is text, not {text!r}")
        return Group(self, name, role)

    @property
    def connected(self):
        """The proxy has welcomed it. A client connects when it waits for the first call."""
        return self._of_handle(lib.functions.connected, False)

    @property
    def pending(self):
        """How many calls are not answered."""
        return self._of_handle(lib.functions.pending, 0)

    @property
    def closed(self):
        return self._handle is None

    def close(self):
        """Calls that are not answered end with Canceled; results that were not taken are gone. Says goodbye to the
        proxy, for which it takes up to a second. In a child of fork() it does nothing.
        """
        if self._handle is None or self._pid != os.getpid():
            return
        self._enter()
        try:
            self._at_work = True
            handle, self._handle = self._handle, None
            lib.functions.close(handle)
        finally:
            self._leave()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None) is not None and not sys.is_finalizing() and self._pid == os.getpid():
            warnings.warn(f"{self!r} was not closed", ResourceWarning, source=self)
            lib.functions.close(self._handle)

    def __reduce_ex__(self, protocol):
        raise TypeError("a Client is one connection, which the copy would close a second time: cadre.connect() makes "
                        "another")

    def __repr__(self):
        state = "closed" if self.closed else "open"
        return f"<cadre.Client {self.address} namespace={self.namespace} {state}>"

    # For groups and futures. The lock is never waited for: it finds out who breaks the rule.

    def _enter(self):
        if self._pid != os.getpid():
            raise RuntimeError("the client was opened before fork(): the child opens one of its own")
        if not self._lock.acquire(False):
            raise RuntimeError("the client is in use by another thread: open one for each")
        if self._handle is None or self._in_callback or self._at_work:
            self._lock.release()
            raise RuntimeError("the client is closed" if self._handle is None else "a callback cannot use its client"
                               if self._in_callback else "a signal handler cannot use a client that waits or sends: let "
                               "it raise an exception, which ends that")
        while self._dropped:
            lib.functions.forget(self._handle, self._dropped.popleft())

    def _leave(self):
        self._at_work = False
        self._lock.release()

    def _of_handle(self, function, closed):
        if self._handle is None:
            return closed
        self._enter()
        try:
            self._at_work = True
            return function(self._handle)
        finally:
            self._leave()

    def _send(self, request_ref):
        """The id of a call that was started."""
        if _start(self._handle, request_ref, self._id_ref, self._error_ref) != lib.OK:
            raise _errors.of_struct(self._error)
        return self._id.value

    def _await(self, n, num_returns, timeout_ms):
        """How many of the first n of self._ids are answered; they go to the front. Negative: without end."""
        while True:
            part = _SLICE_MS if not 0 <= timeout_ms < _SLICE_MS else timeout_ms
            if _wait_for(self._handle, self._ids_ref, n, num_returns, part, self._n_ref, self._error_ref) != lib.OK:
                raise _errors.of_struct(self._error)
            if self._raised:
                raised, self._raised = self._raised, None
                raise raised
            ready = self._n.value
            if ready >= num_returns or 0 <= timeout_ms <= part:
                return ready
            timeout_ms -= part if timeout_ms > 0 else 0

    def _await_one(self, call_id, timeout_ms=-1):
        self._ids[0] = call_id
        return self._await(1, 1, timeout_ms)

    def _is_done(self, call_id):
        return _done(self._handle, call_id)

    def _await_some(self, call_ids, num_returns, timeout_ms):
        """(ready, rest), as lists of ids."""
        n = len(call_ids)
        if n > len(self._ids):
            self._ids = (ctypes.c_uint64 * (2 * n))()
            self._ids_ref = byref(self._ids)
        self._ids[:n] = call_ids
        ready = self._await(n, num_returns, timeout_ms)
        return self._ids[:ready], self._ids[ready:n]

    def _take(self, call_id):
        """The result of a call that is answered."""
        if _get(self._handle, call_id, self._answer_ref, self._error_ref) != lib.OK:
            raise _errors.of_struct(self._error)
        memory = (ctypes.c_char * self._answer.len).from_address(self._answer.text)
        return decode(bytearray(memory), self.trust)

    def _cancel(self, call_id):
        """Whether it was not answered yet."""
        return lib.functions.cancel(self._handle, call_id) == lib.OK

    def _give_up(self, call_id):
        self._cancel(call_id)
        lib.functions.forget(self._handle, call_id)
