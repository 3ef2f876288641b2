# SPDX-License-Identifier: Apache-2.0
"""Takes the calls of this rank from the lanes of the C host, runs them, and answers them.

Methods run on the main thread, one after the other. Methods of a concurrency group run on threads of the group, and
`async def` methods on one asyncio loop. The host talks to the network on a thread that never needs Python's lock.
"""

import ctypes
import faulthandler
import functools
import inspect
import os
import signal
import sys
import threading
import traceback

from .. import _errors, _method, _raised, _value
from . import _breakpoint, _host, _load, _peers, _template

STACKS = signal.SIGRTMAX - 1  # makes a worker write the stacks of its threads, even if a thread holds Python's lock
DUMP = signal.SIGRTMAX - 2  # the same into a file, for requests from outside
_MESSAGE_MAX = 1000  # bytes that fit into the error of a client
_NAME_MAX = 31
_VIA_MAX = 4096


class Running:
    """A call that runs."""

    __slots__ = ("host", "handle", "over", "code", "thread")

    def __init__(self, host, handle, code):
        self.host, self.handle, self.over = host, handle, False
        self.code = code  # the client may send code
        self.thread = threading.get_ident()

    def here(self):
        """The handle on the thread of the method, which cannot end while this thread waits; None on other threads."""
        return None if self.over or self.thread != threading.get_ident() else self.handle

    def canceled(self):
        return self.over or bool(self.host.canceled(self.handle))

    def calls(self):
        """For a call that the method makes. Returns which methods wait for it, and how long it may take in ms."""
        text = ctypes.create_string_buffer(_VIA_MAX)
        left = self.host.calls(self.handle, text, _VIA_MAX)
        if left < 0:
            raise RuntimeError("too many methods wait for each other: calls may nest at most 16 deep")
        if not left:
            raise _errors.Timeout("not sent: the deadline of the call that this method runs for has passed")
        return text.value, left


class _BadArguments(Exception):
    def __init__(self, message, name):
        super().__init__(message)
        self.name = name


def _is_call_itself(e, function):
    """Whether the function was not entered, because its arguments do not fit. A function in C has no frame in the
    traceback, so nobody knows how far it came.
    """
    return (isinstance(e, TypeError) and e.__traceback__ is not None and e.__traceback__.tb_next is None
            and inspect.isfunction(getattr(function, "__func__", function)))


def _shorten(text, limit):
    data = text.encode("utf-8", "replace").replace(b"\0", b"?")
    return data if len(data) <= limit else data[:limit - 3].decode("utf-8", "ignore").encode() + b"..."


def explain(e, method, lost=""):
    """Returns (name, message) of the error for the client. The message begins with the most important part. lost: why
    it was raised.
    """
    name = e.name if isinstance(e, _errors.Failed) else type(e).__name__  # the name from a call that the method made stays
    if isinstance(e, SystemExit):
        first = f"{method.name}() called sys.exit({e.code!r}): a method cannot end its worker; group.kill() does"
    elif type(e).__name__ == "CancelledError" and type(e).__module__.startswith("asyncio"):
        name, first = "CANCELED", f"{method.name}() was canceled"
    else:
        words = _load.words_of(e)
        first = f"{name}: {words}" if words else name
    if lost:
        first = f"{lost}; {first}"
    frames = traceback.extract_tb(e.__traceback__)[1:]
    text = "".join(traceback.format_list(frames[-6:]))
    where = f"\n{method.name}() failed at {_load._line(e)}" if frames else ""
    message = _shorten(first, _MESSAGE_MAX // 2)
    rest = _shorten(f"{where}\n{text}".rstrip() if text else where, _MESSAGE_MAX - len(message))
    return _shorten(name, _NAME_MAX), message + rest


def _code():
    """Returns which clients may send code, as pickles and debuggers do. In a cluster, these are the clients with the
    right to send it. On this machine, everybody who reaches the worker may run code anyway.
    """
    said = os.environ.get("CADRE_TRUST_CALLERS")
    if said in ("0", "1"):
        return _host.CODE_ALL if said == "1" else _host.CODE_NONE
    return _host.CODE_RIGHT if os.environ.get("CADRE_OPERATOR") else _host.CODE_ALL


class Server:
    def __init__(self, host, roles):
        self.host = host
        self.roles = roles
        self.peers = _peers.Peers(host)

    def start(self, text, awaits=None):
        """Starts the host on this thread, then the threads of the concurrency groups. awaits: the archive that is
        missing.
        """
        classes, seen = [], set()
        for role in self.roles:
            if role.cls.__name__ not in seen:
                classes.append(_load.describe(role))
                seen.add(role.cls.__name__)
        woken, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)  # written by signals, whose handlers run between calls
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        os.register_at_fork(after_in_child=_forget_wakeup)
        options = _host.Options(size=ctypes.sizeof(_host.Options), module=os.environ["CADRE_PYTHON"].encode(),
                                classes=_host.array(_host.Class, classes), n_classes=len(classes),
                                class_name=self.roles[0].cls.__name__.encode() if not text else None,
                                roles=_host.text(text), ticket=_host.text(os.environ.pop("CADRE_TICKET", None)),
                                connect=None, stack_signal=STACKS, dump_signal=DUMP, dump_fd=os.memfd_create("stacks"),
                                debug_fd=_breakpoint.install() if _code() else -1, wake_fd=woken, code=_code(),
                                awaits=_host.text(awaits))
        self.options = options  # the host keeps its tables
        code = self.host.start(ctypes.byref(options))
        if code == 0:
            faulthandler.register(DUMP, file=options.dump_fd, all_threads=True, chain=True)  # also for the host
            faulthandler.enable(all_threads=True)  # after the host's handler, whose line must be the last
            self._start_lanes()
        return code

    def _start_lanes(self):
        number, waiting = 0, []
        self.threads = []
        for role in self.roles:
            for limit, members in role.lanes().values():
                number += 1
                if members[0].is_async:
                    waiting.append((number, limit))
                else:
                    self.threads += [threading.Thread(target=self.serve, args=(number,), daemon=True,
                                                      name=f"{members[0].lane}-{i}") for i in range(limit)]
        if waiting:
            import asyncio  # imported here, because it takes memory and time of every rank

            self.threads.append(threading.Thread(target=lambda: asyncio.run(self._serve_async(waiting)), daemon=True,
                                                 name="asyncio"))
        for thread in self.threads:
            thread.start()

    def serve(self, lane):
        """Runs the calls of a lane until the end."""
        c = _host.Call()
        ref = ctypes.byref(c)
        while True:
            try:
                got = self.host.next(lane, 1, ref)
                if got == _host.CALL:
                    self._run(c)
                elif got == _host.STOP:
                    return
            except KeyboardInterrupt:  # a signal that came between two calls
                os.kill(os.getpid(), signal.SIGTERM)

    def _method(self, c):
        return self.roles[c.role].methods[c.method]

    def _arguments(self, c):
        buffer, values = _host.body(self.host, c), _host.values(self.host, c)
        try:
            return _value.decode_call(buffer, bool(c.code), values)
        except _errors.Error as e:
            raise _BadArguments(str(e), e.name) from None

    def _run(self, c):
        method, current = self._method(c), Running(self.host, c.call, bool(c.code))
        token = _method.call.set(current)
        self.peers.begin(current, method)
        try:
            self._run_method(c, current, method)
        finally:
            _method.call.reset(token)
            self._finish(current)

    def _finish(self, current):
        try:
            self.peers.end(current)
        finally:
            current.over = True
            self.host.finish(current.handle)

    def _run_method(self, c, current, method):
        """After this, nothing here refers to the arguments, so arguments that the method has not kept can be freed."""
        try:
            args, kwargs = self._arguments(c)
            self._answer(c.call, method, method.function(*args, **kwargs))
        except BaseException as e:
            self._fail(current, method, e)

    async def _await_method(self, current, method, args, kwargs):
        try:
            self._answer(current.handle, method, await method.function(*args, **kwargs))
        except BaseException as e:
            self._fail(current, method, e)

    async def _run_async(self, handle, code, method, args, kwargs):
        current = Running(self.host, handle, code)
        _method.call.set(current)
        self.peers.begin(current, method)
        answered = self._await_method(current, method, args, kwargs)
        del args, kwargs  # like _run_method()
        try:
            await answered
        finally:
            self._finish(current)

    async def _serve_async(self, lanes):
        import asyncio

        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        left = [len(lanes)]

        def serve(lane, limit):
            c, running = _host.Call(), set()
            ref = ctypes.byref(c)
            fd = self.host.lane_fd(lane)

            def pull():
                while len(running) < limit:
                    got = self.host.next(lane, 0, ref)
                    if got == _host.CALL:
                        begin()
                        continue
                    if got == _host.STOP:
                        loop.remove_reader(fd)
                        left[0] -= 1
                        if not left[0]:
                            ended.set()
                    return

            def begin():
                method = self._method(c)
                try:
                    args, kwargs = self._arguments(c)
                except Exception as e:
                    current = Running(self.host, c.call, bool(c.code))
                    self._fail(current, method, e)
                    self._finish(current)
                    return
                task = loop.create_task(self._run_async(c.call, bool(c.code), method, args, kwargs))
                running.add(task)
                task.add_done_callback(over)

            def over(task):
                full = len(running) == limit
                running.discard(task)
                if full:
                    pull()

            def readable():
                os.read(fd, 8)
                pull()

            loop.add_reader(fd, readable)
            pull()

        for lane, limit in lanes:
            serve(lane, limit)
        await ended.wait()

    def _answer(self, handle, method, value):
        if _forked:
            _leave(method, None)
        if value is _method.ANSWERED:
            return
        if hasattr(type(value), "__await__") and not method.is_async:
            raise TypeError(f"{method.name}() returned {value!r}, which nobody awaits: make the method itself async")
        kind, parts = _value.encode_result(value, method.name)
        if kind == "json":
            self.host.give(handle, parts[0], len(parts[0]))
            return
        if any(type(p) is _value.OnGpu for p in parts):
            _host.give_parts(self.host, handle, parts, _value.stream())
            return
        size = sum(memoryview(p).nbytes for p in parts)
        room = self.host.room(handle, size)
        if not room:
            raise ValueError(f"{method.name}() returns {size} bytes, which is too long")
        _value.Body(kind, parts).write(memoryview((ctypes.c_char * size).from_address(room)).cast("B"))

    def _fail(self, current, method, e):
        if _forked:
            _leave(method, e)
        try:
            said = self._description(current, method, e)
        except BaseException as why:  # otherwise the call would be answered with null
            name = type(e).__name__
            words = f"{name}: it cannot be described: {type(why).__name__}: {_load.words_of(why)}"
            said = _shorten(name, _NAME_MAX), _shorten(words, _MESSAGE_MAX), None, 1
        self.host.fail(current.handle, *said)

    def _description(self, current, method, e):
        """Returns the (name, message, cause, ran) of an error, as the host takes them."""
        if isinstance(e, _BadArguments):
            return e.name.encode(), _shorten(str(e), _MESSAGE_MAX), None, 0
        if _is_call_itself(e, method.function):
            words = f"{e}; {method.name}() takes {inspect.signature(method.function)}"
            return b"INVALID", _shorten(words, _MESSAGE_MAX), None, 0
        lost = self.peers.explain(current, e, may_wait=not method.is_async)  # no other call of the loop waits, too
        return *explain(e, method, lost), _raised.pack(e), 1


_forked = False


def _leave(method, e):
    """For a child of fork() that returns from the method: the call belongs to the parent, and all later calls, too."""
    code = 1
    if isinstance(e, SystemExit):
        code = e.code if isinstance(e.code, int) else int(e.code is not None)
    elif e is not None:
        traceback.print_exception(type(e), e, e.__traceback__)
    else:
        print(f"cadre-worker: rank {_method.rank()}: a child of fork() returned from {method.name}(), whose call only its "
              "parent may answer; the child ends: end such children by os._exit()", file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _forget_wakeup():
    """In a child of fork(): its signals are not for the parent."""
    global _forked
    _forked = True
    if threading.current_thread() is threading.main_thread():
        signal.set_wakeup_fd(-1)


def _exit_loudly():
    """os._exit() in a method prints where it was called. Children of fork() use it, too, and print nothing."""
    leave, pid = os._exit, os.getpid()

    def _exit(status):
        if os.getpid() == pid:
            frame = sys._getframe(1)
            sys.stdout.flush()
            print(f"cadre-worker: rank {_method.rank()}: os._exit({status}) was called at {frame.f_code.co_filename}:"
                  f"{frame.f_lineno} in {frame.f_code.co_name}", file=sys.stderr, flush=True)
        leave(status)

    os._exit = _exit


def _waiting(host, roles, awaits):
    server = Server(host, roles)
    code = server.start(None, awaits)
    if code:
        raise _load.Stop("it cannot wait for its code", code)
    return server


def main():
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="backslashreplace")  # people want to see lines at once
    faulthandler.register(STACKS, all_threads=True)
    if os.environ.get("CADRE_NURSERY"):
        from . import _nursery

        _nursery.serve()  # returns only in a rank
    elif os.environ.get("CADRE_TEMPLATE"):
        _template.serve()
    if len(sys.argv) > 2 or sys.argv[1:2] in (["--help"], ["-h"]):
        print("Usage: python3 -m cadre.worker [MODULE]\n" + __doc__ + "\nThe environment is the same as cadre-worker's "
              "(cadre-worker --help); CADRE_PYTHON names the module.")
        return 0 if len(sys.argv) == 2 else _load.EXIT_USAGE
    if len(sys.argv) == 2:
        os.environ["CADRE_PYTHON"] = sys.argv[1]
    started_with = dict(os.environ)
    try:
        host = _host.load()
        wanted = _load.archive()
        if wanted and not os.path.isdir(wanted.place):
            from . import _bootstrap

            code = _bootstrap.wait(wanted, functools.partial(_waiting, host))
            if code is None:  # a process can have only one host: the next worker is a new process
                os.execve(sys.executable, [sys.executable, "-m", "cadre.worker"], started_with)
            return code
        roles, text = _load.roles()
        server = Server(host, roles)
        code = server.start(text)
    except (_load.Stop, ImportError) as e:
        print(f"cadre-worker: rank {_method.rank()}: {e}", file=sys.stderr, flush=True)
        return getattr(e, "code", _load.EXIT_MODULE)
    if code:
        return code
    _exit_loudly()
    server.peers.look()
    server.serve(0)
    for thread in server.threads:  # all calls are finished: the threads stop before their objects are destroyed
        thread.join()
    return host.end()
