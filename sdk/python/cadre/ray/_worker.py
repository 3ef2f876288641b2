# SPDX-License-Identifier: Apache-2.0
"""One actor, or a worker for tasks, in the rank of its group. Its class and options come from the environment and
from the directory. Its calls contain the number of the call, the name of the method, and the arguments.
"""

import asyncio
import contextvars
import inspect
import os
import signal
import sys
import threading

from .. import _method, _value
from .._code import _archive
from .._errors import Error
from . import _packing, _refs, _runtime_env, _session

_SAID = _session.said_here()
_LANES_MAX = 5000
_END_S = 5
_CANCEL = signal.SIGRTMAX - 3  # interrupts a task; SIGINT may come from elsewhere
running = contextvars.ContextVar("call of cadre.ray", default=None)  # (number, name) of the call for which this method runs


class Exit(SystemExit):
    """exit_actor()."""


def _enter():
    """Makes this process one of the program's processes."""
    _runtime_env.take_threads(_SAID.get("threads", 1))
    if _SAID.get("as_ray"):
        from . import _as_ray

        _as_ray.install()
    known = set(sys.path)
    wanted = _archive.of_environment()
    ours = [path for path in sys.path if wanted and path.startswith(wanted.place)]  # these are searched first
    sys.path[len(ours):len(ours)] = [path for path in _SAID.get("path", ()) if path not in known]
    return _session.join()


def _unpacked(packed):
    return packed[0] if type(packed) is _packing.Packed else (packed, {})


def _waits(packed):
    """Whether _open() has to ask for the values of references."""
    args, kwargs = _unpacked(packed)
    return any(isinstance(a, _refs.ObjectRef) for a in (*args, *kwargs.values()))


def _open(packed):
    """Returns the arguments of a call. References that are arguments themselves are replaced by their values."""
    args, kwargs = _unpacked(packed)
    if _waits(packed):
        args = [_refs.get(a) if isinstance(a, _refs.ObjectRef) else a for a in args]
        kwargs = {k: _refs.get(a) if isinstance(a, _refs.ObjectRef) else a for k, a in kwargs.items()}
    return args, kwargs


def _result(value):
    if inspect.isgenerator(value):
        value = list(value)
    with _refs.taking(hand_over=True):  # it is pickled here: the client counts its references, and gets what is raised
        return _value.encode_result(_packing.pack([value]))


class _Base:
    """The common part of all workers here. From the first call on, they have the environment that the program gives
    them: the host has read its own before.
    """

    def __init__(self):
        self.session = _enter()
        self.running = {}  # number -> function that cancels the call
        self.lock = threading.RLock()

    @_method.register(concurrency=("control", 2))
    def cancel(self, number):
        """Interrupts the call of that number, if it runs."""
        with self.lock:
            stop = self.running.get(number)
        if stop:
            stop()
        return bool(stop)

    @_method.register(concurrency=("control", 2))
    def pid(self):
        return os.getpid()

    def _begin(self, number, name, stop):
        with self.lock:
            self.running[number] = stop
        return running.set((number, name))

    def _over(self, number, token):
        with self.lock:
            self.running.pop(number, None)
        running.reset(token)


class Actor(_Base):
    """The first call makes the object; for an async actor, on its loop."""

    def __init__(self):
        super().__init__()
        self.id, self.group = _SAID["actor"], _SAID["group"]
        how = None
        while how is None:
            how = self.session.ask("how", self.id)
        if how is False:
            sys.exit(f"actor {self.id} is not wanted any more")
        self.how = how
        self.object = None
        self.is_made = False
        self.begun = {}  # what the numbers of the calls of a process begin with -> how many have begun

    @_method.register(concurrency=("control", 2))
    def calls_of(self, prefix):
        """Returns how many calls whose numbers begin with this have begun, and how many calls of the same process run, also
        calls of all ranks of a group together, whose numbers are others.
        """
        process = prefix.partition(".")[0] + "."
        with self.lock:
            return [self.begun.get(prefix, 0), sum(number.startswith(process) for number in self.running)]

    def _begin(self, number, name, stop):
        prefix = number.partition("-")[0]
        with self.lock:
            self.begun[prefix] = self.begun.get(prefix, 0) + 1
            return super()._begin(number, name, stop)

    def _make(self):
        with self.lock:
            if not self.is_made:
                self._make_once()

    def _make_once(self):
        self.is_made = True
        name = _SAID["class"]
        try:
            _runtime_env.enter((_SAID.get("gang") or {}).get("keeps", ()))
            code, args, kwargs = _packing.of_bytes(self.how.data)
            self.how = None
            if isinstance(code, BaseException):
                raise code
            cls = _packing.loads(code)
            name = cls.__name__
            args, kwargs = _open(_packing.Packed(((args, kwargs),)))
            self.object = cls(*args, **kwargs)
        except BaseException as e:
            raised = _packing.Raised(e, f"{name}.__init__")
            self._end("The actor died because of an error raised in its creation task, " + raised.text)
            print(raised.text, file=sys.stderr, flush=True)
            os._exit(1)  # the directory tells clients why it died
        self.session.ask("lives", self.id, self.session.said["node"])

    def _end(self, why):
        """The actor is dead for good. Calls that wait, and later calls, get the reason from the directory."""
        if not self.session.ask("ended", self.id, why):
            return  # other actors of its gang live
        try:
            self.session.client.group(self.group).close(timeout=_END_S)
        except (Error, TimeoutError):
            pass

    def _find(self, name):
        if name == "__ray_ready__":
            return lambda: True
        if name == "__ray_call__":
            return lambda f, *args, **kwargs: f(self.object, *args, **kwargs)
        if name == "__ray_terminate__":
            return leave
        return getattr(self.object, name)

    def _leave(self, e):
        """Does the work of exit_actor() and sys.exit()."""
        own = isinstance(e, Exit) or e.code in (None, 0)
        if own:
            self._end("it has ended itself: exit_actor()")
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0 if own else e.code if isinstance(e.code, int) else 1)

    def _run(self, number, name, packed, give=_result):
        """give: makes the answer from the result of the method."""
        if not self.is_made:
            self._make()
        token = self._begin(number, name, lambda: None)
        try:
            args, kwargs = _open(packed)
            return give(self._find(name)(*args, **kwargs))
        except SystemExit as e:
            self._leave(e)
        except BaseException as e:
            return _packing.Raised(e, f"{type(self.object).__name__}.{name}")
        finally:
            self._over(number, token)

    async def _run_async(self, number, name, packed, give=_result):
        if not self.is_made:
            self._make()
        task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        token = self._begin(number, name, lambda: loop.call_soon_threadsafe(task.cancel))
        try:
            if _waits(packed):
                args, kwargs = await loop.run_in_executor(None, _open, packed)
            else:
                args, kwargs = _open(packed)
            value = self._find(name)(*args, **kwargs)
            value = await value if inspect.isawaitable(value) else value
            with _refs.holding_later() as refs:
                answer = give(value)
            await _refs.hold(refs)
            return answer
        except SystemExit as e:
            self._leave(e)
        except BaseException as e:
            return _packing.Raised(e, f"{type(self.object).__name__}.{name}")
        finally:
            self._over(number, token)

    def fence(self):
        """Called after the calls of an actor that runs them one after the other."""


def leave():
    """Ends this actor when the running method has ended."""
    raise Exit(0)


def _add_lanes():
    """Makes the methods that take calls: one for each concurrency group of the actor, each with its own limit."""
    for name in _GROUPS:
        call = _lane_method(IS_ASYNC)
        setattr(Actor, f"call_{name}" if name else "call", _method.register(concurrency=lane(name))(call))


_GROUPS = {"": _SAID.get("concurrency", 1), **_SAID.get("groups", {})}
IS_ASYNC = _SAID.get("is_async")


def lane(group=""):
    """The lane in which the calls of a concurrency group of the actor run."""
    if _GROUPS == {"": 1} and not IS_ASYNC:
        return None
    return f"calls-{group}" if group else "calls", min(_GROUPS[group], _LANES_MAX)


def _lane_method(is_async):
    if is_async:
        async def call(self, number, name, packed):
            return await self._run_async(number, name, packed)
    else:
        def call(self, number, name, packed):
            return self._run(number, name, packed)
    return call


class Tasks(_Base):
    """Runs functions, one after the other, on the main thread."""

    def __init__(self):
        super().__init__()
        self.functions = {}
        self.is_first = True
        self.canceled = None  # number of the last task that was canceled while it ran
        self.open_to = None  # number of the task that may be interrupted now
        signal.signal(_CANCEL, self._on_cancel)

    def call(self, number, name, code, packed):
        """code: of the function, the first time; None later."""
        token = self._begin(number, name, lambda: self._interrupt(number))
        try:
            return self._run(number, name, code, packed)
        except SystemExit as e:
            sys.stdout.flush()
            os._exit(e.code if isinstance(e.code, int) else 0 if e.code is None else 1)
        except BaseException as e:
            return _packing.Raised(e, getattr(self.functions.get(name), "__name__", name))
        finally:
            self._over(number, token)

    def _run(self, number, name, code, packed):
        try:
            self.open_to = number
            self._on_cancel()  # if it came before
            if self.is_first:
                self.is_first = False
                _runtime_env.enter()
            if code is not None:
                self.functions[name] = _packing.loads(bytes(code.data))
            args, kwargs = _open(packed)
            return _result(self.functions[name](*args, **kwargs))
        finally:
            self.open_to = None

    def _interrupt(self, number):
        with self.lock:
            if number in self.running:
                self.canceled = number
                signal.pthread_kill(threading.main_thread().ident, _CANCEL)

    def _on_cancel(self, *_):
        """On the main thread, maybe after the task has ended: the next one must not be interrupted."""
        if self.open_to is not None and self.open_to == self.canceled:
            self.open_to = None
            raise KeyboardInterrupt


_add_lanes()
