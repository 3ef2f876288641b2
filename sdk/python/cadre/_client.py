# SPDX-License-Identifier: Apache-2.0
"""A connection to the proxy. The library has its own thread for it, which never needs Python's lock."""

import atexit
import ctypes
import os
import socket
import sys
import threading
import time
import warnings
import weakref
from ctypes import byref
from typing import NamedTuple

from . import _call, _errors, _options, _printing, _renewal, _supply, _task, _ways
from . import _library as lib
from ._future import Future
from ._group import Group
from ._kept import Kept
from ._pool import Pool
from ._reference import Ref
from ._unsent import Watcher, call_back, is_watcher

_open = weakref.WeakSet()
_forks = [0]  # how many forks made this process
os.register_at_fork(after_in_child=lambda: _forks.append(0))


@atexit.register
def _close_all():
    """Closes all clients at the end of the program. The proxies hear a goodbye at once."""
    for client in list(_open):
        client.close()


_BODY_MAX = 2 << 30  # the protocol's limit
_MADE_MAX = 1000  # so many groups can be made again
_CALLBACK_S = 30  # so long the end of a block waits for a callback, if no call is open
_SLICE_MS = 100  # how long Python's own signal handlers (Ctrl-C) have to wait at most


class Output(NamedTuple):
    """A line that ranks of the client's group have printed."""

    group: str  # "namespace/name"
    ranks: str  # "3"; "0-3,7" if these ranks have printed the same line at the same time
    text: str  # one line; None: only `dropped` counts
    dropped: int  # lines before this one that came too fast


def connect(address=None, *, context=None, kubeconfig=None, service_account=None, operator_namespace=None,
            on_connection=None, on_output=None, trust=False, **options):
    """Returns a Client of the proxy at "wss://host:port", "ws://host:port" or "unix:/path". It connects at once.
    Without an address, it looks for one: CADRE_ADDRESS, the run or the pod of a worker, the ServiceAccount of any
    other pod, a kubeconfig with kubectl (docs/python.md). Unavailable lists what was tried.

    namespace        of the groups to call, required with an address
    context          or kubeconfig: for kubectl, which is then the only way; service_account: one of the namespace, whose
                     token is used instead of cadre-cli's; operator_namespace: where Cadre is ("cadre-system")
    group            for client.group() without a name, and the group of on_output
    token            or token_file, which is read again for each attempt to connect; token_in_hello=True: the token is in the
                     first record, for servers in between that remove the header
    ca_pem           or ca_file: certificates to trust (wss); default: the system's
    server_name      in the certificate; default: the host of the address
    path_prefix      before the proxy's own paths, for example of a reverse proxy
    connect_timeout  seconds for one attempt (10)
    unreachable      seconds for which a call without a timeout waits for a connection (60)
    max_calls        calls without an answer (10,000); further calls wait until there is room
    max_body         bytes of the arguments, or of the result, of a call (2 GiB)
    max_bytes        bytes of waiting arguments and of results that are not taken (4 GiB)
    trust            True: the client opens pickled results, which may run code of the people who made the group
    spin             False: functions that wait sleep at once. Otherwise they first look for answers for up to 100 us
    on_connection    called with (True, None), and (False, reason)
    on_output        called with an Output for every line that ranks of `group` print; both are called on a thread of the
                     client
    """
    given = _ways.Given(context, kubeconfig, service_account, operator_namespace,
                        bool(options.get("token") or options.get("token_file")), options.get("namespace"))
    if address is None:
        return FoundClient(_ways.find(given), on_connection, on_output, trust, options)
    for name in ("context", "kubeconfig", "service_account", "operator_namespace"):
        if getattr(given, name):
            raise TypeError(f"connect(): {name}= finds an address, and one is given: {address!r}")
    return Client(address, on_connection, on_output, trust, options)


class Client:
    """One connection, made by cadre.connect(). Threads may share it. close() or `with` closes it."""

    of_worker = False  # whether it leads to the proxy that this process serves
    prints = True  # prints the output of the ranks of its groups, unless something else prints it

    def __init__(self, address, on_connection, on_output, trust, options):
        self._handle = None
        self.trust = bool(trust)
        self.closed = False
        self._forks = len(_forks)
        self._lock = threading.RLock()  # a signal handler may use the client, too
        self._watched = {}  # id -> (the future, the callbacks for its answer)
        self._watcher = None
        self._told = threading.Condition(self._lock)  # the watcher has called all callbacks of a call
        self._telling = False
        self._unsent = set()  # calls that wait for their arguments
        self._held_up = {}  # group -> those that also wait until a rank of the group has told its methods
        self._groups = {}  # what groups have reported about themselves
        self._made = {}  # name -> what the last groups are, for making one again with another class
        self._tasks = _task.Workers()
        self._supplies = _supply.Supplies(self)
        self._renewal = _renewal.Renewal(self)
        self._gone = []  # not empty: the handle is closed, too
        self._raised = None  # an exception that a callback raised
        self.local = str(address).startswith("unix:") and not options.get("path_prefix")  # a local run on this machine
        self.address, self.namespace, self._group = address, options.get("namespace"), options.get("group")
        o = lib.Options(size=ctypes.sizeof(lib.Options), threaded=1, max_body=_BODY_MAX, max_bytes=2 * _BODY_MAX)
        _options.put(o, "address", str(address).encode(), "address")
        _options.fill(o, _options.CONNECT, options, "connect()")
        self._shown = None
        if self.prints and not (on_output or self._group or self.of_worker):
            self._shown = _printing.Shown()
        self._callbacks = self._callbacks_of(on_connection, on_output)
        o.on_connection, o.on_output = self._callbacks
        handle, error = ctypes.c_void_p(), lib.ClientError()
        if lib.functions.open(byref(o), byref(handle), byref(error)) != lib.OK:
            raise _errors.of_struct(error)
        self._handle = handle.value
        self._id = f"{socket.gethostname()}/{os.getpid()}/{os.urandom(4).hex()}"
        _open.add(self)

    def _callbacks_of(self, on_connection, on_output):
        shown, renewal = self._shown, self._renewal
        on_output = shown.line if shown else on_output

        def connection(_, up, why):
            try:
                if up:
                    renewal.connected()
            finally:
                if shown:
                    shown.connected(bool(up))
                if on_connection:
                    on_connection(bool(up), _errors.of_struct(why.contents) if why else None)

        def output(_, line):
            group, ranks, text = (s and s.decode("utf-8", "replace")
                                  for s in (line.contents.group, line.contents.ranks, line.contents.text))
            on_output(Output(group, ranks, text, line.contents.dropped))

        me = weakref.ref(self)  # the library keeps the callbacks, and they must not keep the client

        def guarded(f):
            def call(*args):
                try:
                    f(*args)
                except BaseException as e:  # C cannot pass it on: the waiting thread raises it
                    if client := me():
                        client._raised = client._raised or e

            return call

        return (lib.ON_CONNECTION(guarded(connection)),
                lib.ON_OUTPUT(guarded(output)) if on_output else lib.ON_OUTPUT())

    def group(self, name=None, role=None):
        """Returns the group of that name ("name" or "namespace/name"), or one of its roles. Does not ask the proxy."""
        name = name or self._group
        if not name:
            raise TypeError("group() needs a name, because the client was not connected for one")
        for what, text in (("group's", name), ("role's", role)):
            if text is not None and not isinstance(text, str):
                raise TypeError(f"a {what} name is text, not {text!r}")
        return Group(self, name, role)

    def Group(self, worker=None, **what):  # a class, except that it needs the client
        """Makes a group and returns it. It ends with this client. Its methods may be called at once: the calls wait
        for it.

        worker    the class of each rank, or "package.module:Class"; or a dict of roles, {"actor": Actor}: each rank then
                  has several objects, and group["actor"] calls one; or
        module    a module in C, FILE.so, with class_name if it has several classes
        init      arguments of the constructor, a dict of JSON; with roles, a dict of such dicts
        meshes    the ranks as grids, for the modes that use them: {"train": {"pp": 2, "dp": 4}}
        working_dir, py_modules   a folder, and packages or .py files (paths, or imported modules), from which the ranks
                  import. They begin in working_dir. Files that .gitignore or excludes (a list of patterns) names are left
                  out
        preload   modules that take long to import, ["torch"]: one process in each pod imports them, and forks each rank,
                  so a restart does not wait for the import
        replicas  number of ranks (1, or all of the pool); gpus, cpus: for each; env: a dict of variables
        pool      a Pool on whose bundles the ranks run; other groups may use it, too; gpus: how many of the bundle's GPUs
                  each rank sees
        image     of the pods; a local run needs none, and a pool has its own
        template  of the pods, a dict as in the spec of a WorkerGroup: volumes, nodeSelector, tolerations. Its first container
                  gets image, gpus and cpus
        strategy  "Pack", "Spread", "StrictPack" or "StrictSpread"
        restart   "Group", "Worker" or "Never"; max_restarts
        name      in the namespace; detached=True: the group stays when this client ends. If the name exists, with another
                  class, init or code, the ranks of that group start again with the new one, in their places
        timeout   seconds until the group exists
        """
        return Group.make(self, worker, **what)

    def Pool(self, process_on_nodes, **what):
        """Reserves bundles for groups, Group(pool=...), and returns them: Pool([4, 4]) has eight of them on two
        nodes, four on each. Groups on one pool share its GPUs. The pool ends with this client.

        gpus, cpus  of each bundle (1 GPU)
        strategy    for the bundles of an entry ("StrictPack": one node)
        image       of the pods; a local run needs none; template: of the pods, as in Group()
        name        in the namespace, for a single PlacementGroup; if there are several, each name gets -0, -1, ...
        detached    True: the pool stays when this client ends
        timeout     seconds until it is known; wait_ready() waits until it is reserved
        """
        return Pool.make(self, process_on_nodes, **what)

    def find(self, name, timeout=None):
        """Returns the group of that name, which any program may have made. Raises NotFound if it does not exist."""
        return Group.find(self, name, timeout=timeout)

    def find_pool(self, name, timeout=None):
        """Returns the pool of that PlacementGroup, which any program may have made. If a pool has several of them,
        add them up. Raises NotFound if it does not exist.
        """
        return Pool.find(self, name, timeout=timeout)

    def put(self, value):
        """Keeps a value as it is now, and returns a reference to it. The reference can be an argument of any call.
        Group.put() stores the value on the workers instead.
        """
        return Kept(value)

    def get(self, what, timeout=None):
        """Returns the value of a reference, or the result of a future. For a list, returns a list of values."""
        if isinstance(what, (list, tuple)):
            end = None if timeout is None else time.monotonic() + timeout
            return [self.get(one, None if end is None else max(end - time.monotonic(), 0)) for one in what]
        if isinstance(what, Future):
            return what.result(timeout)
        if isinstance(what, (Ref, Kept)):
            return what.get(timeout)
        raise TypeError(f"get() takes references and futures; {what!r} is neither")

    @property
    def connected(self):
        """Whether the proxy has sent WELCOME."""
        return not self.closed and bool(lib.functions.connected(self._any_handle()))

    @property
    def pending(self):
        """The number of calls without an answer."""
        return 0 if self.closed else len(self._unsent) + self._open()  # in this order: one may be sent meanwhile

    def close(self):
        """Closes the client. Calls without an answer end with Canceled. Results that have arrived can still be taken.
        Says goodbye to the proxy, which takes up to a second. In a child of fork() it does nothing.
        """
        if not self._is_mine() or self.closed:
            return
        self._check()
        self.closed = True
        for unsent in list(self._unsent):
            unsent.cancel("the client was closed")
        lib.functions.shut(self._handle)

    def __enter__(self):
        _task.entered.append(self)
        return self

    def __exit__(self, kind, *exc):
        """Waits for the calls that were started and for their callbacks, unless an exception ends the block."""
        if self in _task.entered:
            _task.entered.remove(self)
        try:
            if kind is None:
                self._finish()
            if kind is None and self._shown and not self.closed:
                self._shown.wait()
        finally:
            self.close()

    def __del__(self, is_finalizing=sys.is_finalizing):  # at the end of Python, the names of this module may be gone
        if is_finalizing() or not self._is_mine():
            return
        if not self.closed:
            warnings.warn(f"{self!r} was not closed", ResourceWarning, source=self)
        handle, self._handle = self._handle, None
        lib.functions.shut(handle)
        self._gone.append(True)
        if self._watcher and self._watcher is not threading.current_thread():
            self._watcher.join()
        lib.functions.close(handle)

    def __reduce_ex__(self, protocol):
        raise TypeError("a Client is one connection, which the copy would close a second time: cadre.connect() makes "
                        "another")

    def __repr__(self):
        state = "closed" if self.closed else "open"
        return f"<cadre.Client {self.address} namespace={self.namespace} {state}>"

    # For groups and futures

    def _create(self, kind, manifest, detached, timeout):
        """Calls group.create. The same request again, after a lost connection, stands for the same object. Another
        client's request stands for another object, even if it asks for the same.
        """
        name, session = manifest["metadata"]["name"], self._renewal.session
        manifest["metadata"]["annotations"] = {"cadre-client": self._id}
        made = self._ask("group.create", name, {kind: manifest, "lifetime": "Detached" if detached else "Session"}, timeout)
        if not detached:
            self._renewal.add(_KEYS[kind], name, made["uid"], session)

    def _show(self, name):
        """Prints in this program what ranks of this group print."""
        if self._shown:
            self._shown.add(name, lambda: Group(self, name, trust=False).start("group.output", args={}))

    def _remember(self, name, spec):
        """Keeps what Group._change() needs to know. A program may make any number of groups, so only the last ones stay."""
        self._made.pop(name, None)
        self._made[name] = spec
        for old in list(self._made)[:-_MADE_MAX]:
            self._made.pop(old, None)

    def _forget(self, name):
        """The group is deleted."""
        self._renewal.remove("group", name)
        self._made.pop(name, None)
        self._forget_methods(name)
        if self._shown:
            self._shown.remove(name)

    def _forget_methods(self, name):
        """The group may have another class now. Other threads may make groups at the same time."""
        for key in [key for key in list(self._groups) if key[0] == name]:
            self._groups.pop(key, None)

    def _supply(self, name, archive):
        """Gives the ranks of the group of that name the archive of their code."""
        self._supplies.add(name, archive)

    def _ask(self, method, name, args, timeout=None):
        """Sends a request about an object with that name that no worker answers."""
        return Group(self, name, trust=False).call(method, args=args, timeout=timeout)

    def _ask_first(self, method, name, args, timeout):
        """The same, before all calls that wait to be sent. No limit of calls holds it back, and `pending` does not count
        it.
        """
        urgent = _call.Method(name, None, method, {"timeout": timeout})
        urgent.request.urgent = 1
        return _call.start(self, urgent, (), {"args": args})._result_or_give_up()

    def _is_mine(self):
        """Whether the library still has the call, and this process is not a child that was forked later."""
        return getattr(self, "_handle", None) is not None and self._forks == len(_forks)

    def _check(self):
        if self._forks != len(_forks):
            raise RuntimeError("the client was opened before fork(): the child opens one of its own")

    def _any_handle(self):
        """The handle of the library, which keeps answers until the client is closed."""
        self._check()
        return self._handle

    def _open_handle(self):
        self._check()
        if self.closed:
            raise RuntimeError("the client is closed")
        return self._handle

    def _open(self):
        """The number of calls in the library without an answer."""
        return lib.functions.pending(self._any_handle())

    def _await_any(self):
        """Waits a moment at most, until any call is answered."""
        lib.functions.wait(self._any_handle(), _SLICE_MS)
        self._raise_of_callbacks()

    def _finish(self):
        """Waits until no call is open, also none that waits for another or that a callback starts."""
        last = time.monotonic()  # when a call was open
        while True:
            calls_back, pending = self._calls_back(), self.pending  # in this order: a callback may start a call
            if pending:
                last = time.monotonic()
            elif not calls_back or time.monotonic() > last + _CALLBACK_S:
                return
            if not self.closed and self._open():
                self._await_any()
            else:
                self._await_watcher()

    def _calls_back(self):
        """Whether another thread has callbacks to call."""
        return bool(self._telling or self._watched) and self._watcher is not threading.current_thread()

    def _await_watcher(self):
        """Waits a moment at most, until callbacks of a call were called. They may send calls that wait for it."""
        if self._watcher is threading.current_thread():
            for unsent in list(self._unsent):
                unsent.wait(0)  # raises: this thread would have to send it
        with self._lock:
            if self._telling or self._watched or self._unsent:
                self._told.wait(_SLICE_MS / 1000)
        self._raise_of_callbacks()

    def _make_room(self, error, again=True):
        """After an error for lack of room, waits for a call to end. Returns whether any was open. If none was, all may have
        ended after the error: the caller tries again, once. Raises any other error.
        """
        lacks_room = error.code == _errors.Limit.code and error.retry_after_ms and not self.closed
        is_open = lacks_room and self._open() > 0
        if not lacks_room or not is_open and not again:
            raise _errors.of_struct(error)
        if is_open:
            self._await_any()
        return is_open

    def _raise_of_callbacks(self):
        """Only on threads of the program: threads of the client have nobody to tell."""
        if self._raised and not self._is_own_thread():
            raised, self._raised = self._raised, None
            raise raised

    def _is_own_thread(self):
        return is_watcher() or threading.current_thread() in (self._supplies.thread, self._renewal.thread)

    def _watch(self, future, f):
        """Calls f(future) when the call is answered, on another thread. Returns False if it is answered and taken
        already.
        """
        with self._lock:
            self._watched.setdefault(future._id, (future, []))[1].append(f)
            if not self._watcher:
                self._watcher = Watcher(target=_tell, daemon=True, args=(weakref.ref(self), self._handle, self._gone))
                self._watcher.start()
        return bool(lib.functions.watch(self._any_handle(), future._id)) or not self._unwatch(future, f)

    def _unwatch(self, future, f):
        """Does not call f(future) any more. Returns False if the other thread calls it, or has called it."""
        with self._lock:
            callbacks = self._watched.get(future._id, (None, ()))[1]
            if f not in callbacks:
                return False
            callbacks.remove(f)
            if not callbacks:
                del self._watched[future._id]
            return True

    def _tells_no_more(self):
        """At the end of the thread that calls back. False: there is a callback again. A later one gets a new thread."""
        with self._lock:
            if self._watched:
                return False
            self._watcher = None
            return True

    def _tell_of(self, call_id):
        with self._lock:
            future, callbacks = self._watched.pop(call_id, (None, ()))
            self._telling = True
        try:
            for f in callbacks:
                call_back(f, future)
        finally:
            with self._lock:
                self._telling = False
                self._told.notify_all()


_KEYS = {"workerGroup": "group", "placementGroup": "placementGroup"}  # in group.create, and in requests by name
_INSTEAD = {"token_file": ("token",), "ca_pem": ("ca_file",), "ca_file": ("ca_pem",)}


def _end_of(pid, way):
    """Ends what was started for the way. A child of fork() comes here, too, when it ends."""
    if os.getpid() == pid:
        way.end()


class FoundClient(Client):
    """A Client that has looked for its way to a proxy. When it ends, everything ends that was started for the way."""

    def __init__(self, way, on_connection, on_output, trust, options):
        self._ends = weakref.finalize(self, _end_of, os.getpid(), way)
        given = {name: value for name, value in options.items() if value is not None}
        self.of_worker = way.of_worker
        found = {name: value for name, value in way.options.items()
                 if not any(instead in given for instead in _INSTEAD.get(name, ()))}
        try:
            super().__init__(way.address, on_connection, on_output, trust, {**found, **given})
        except BaseException:
            self._ends()
            raise

    def close(self):
        super().close()
        if self._is_mine():
            self._ends()


def _tell(ref, handle, gone):
    """The thread that calls back for answers, until the client is closed and all callbacks are called."""
    while not gone:
        call_id = lib.functions.next(handle, -1)
        client = ref()
        if client is None:
            return
        for one in [call_id] if call_id else list(client._watched):
            client._tell_of(one)
        if not call_id and client.closed and client._tells_no_more():
            return
        client = None  # this may be the last reference, which then ends the client
