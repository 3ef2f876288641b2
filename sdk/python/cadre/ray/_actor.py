# SPDX-License-Identifier: Apache-2.0
"""Actors: classes, handles, methods. An actor is a group of one rank."""

import functools
import itertools
import secrets
import sys
import threading
import time
import weakref
from collections import deque

from .. import _call, _errors
from . import _names, _options, _packing, _placement, _refs, _session, exceptions
from ._arguments import ArgumentFailed, is_ours, opened, packed_arguments, refs_of
from ._making import MARK, Making
from ._refs import Held, ObjectRef, Promise

_SERVED_BY = "cadre.ray._worker:Actor"
_UNSENT = 5  # tries of a call that has certainly not run, because the process for which it waited has died
_LOOK_S, _LOOK_MOST_S = 0.2, 5  # how often an actor without handles is asked whether its calls are over: rarely while nothing changes
_LOST_S = 60  # a call that nobody waits for, and that has not begun after this time while no other one runs, will never begin


def method(*args, **options):
    """@ray.method(num_returns=2): options of a method."""
    if args or not options:
        raise ValueError("The @ray.method decorator must be applied using at least one of the arguments in the list "
                         f"{sorted(_options.METHOD)}, for example '@ray.method(num_returns=1)'.")
    _options.check(options, _options.METHOD, "methods")

    def mark(f):
        setattr(f, MARK, options)
        return f

    return mark


class ID(str):
    """The ID of an actor, a node or a job: text with the methods of Ray's IDs that programs use."""

    def hex(self):
        return str(self)

    def binary(self):
        return bytes.fromhex(self)

    def is_nil(self):
        return not self


class Calls:
    """How this process calls one actor: in the order of the calls, even if an argument is late."""

    def __init__(self, session, actor, info):
        self.session, self.actor, self.info = session, actor, info
        self.rank = info.get("rank", 0)
        self.group = session.client.group(info["group"])
        self.ordered = info["ordered"]
        self._at = {"rank": self.rank, **({"max_retries": _UNSENT} if info["restarts"] else {})}
        self._lock = threading.RLock()
        self._late = deque()  # of an ordered actor: calls that wait for arguments, or for an earlier call
        self._waiting = set()  # of other actors: calls that wait for arguments
        self._pending = set()  # promises of calls that count for max_pending_calls
        self._open = set()  # weak references to the promises of all calls: without them, nobody waits for an answer
        self._prefix, self._numbers = f"{session.process}.{secrets.token_hex(4)}", itertools.count(1)
        self.sent = 0
        self.keeps = None
        self.handles, self.gone = 0, False

    def submit(self, name, args, kwargs, options, most=-1):
        """most: how many calls may be without an answer, with this one; -1 or 0: any number."""
        promise, number = Promise(), f"{self._prefix}-{next(self._numbers)}"
        left = options.get("max_task_retries")
        left = self.info.get("retries", 0) if left is None else left
        if most > 0:
            self._count(promise, name, most)
        self._open.add(weakref.ref(promise, self._open.discard))
        late = [a._promise for a in (*args, *kwargs.values()) if is_ours(a) and not a._promise.done()]
        send = functools.partial(self._send, promise, number, name, args, kwargs, options, left)
        try:
            with self._lock:
                if not late and not (self.ordered and self._late):
                    send()
                else:
                    self._wait(promise, late, send)
        except BaseException:  # Ctrl-C: nobody gets the promise
            promise.cancel()
            promise.settle(error=self._canceled())
            raise
        return promise, number

    def _count(self, promise, name, most):
        with self._lock:
            if most <= len(self._pending) and sum(not other.done() for other in list(self._pending)) >= most:
                raise exceptions.PendingCallsLimitExceeded(
                    f"The task {name} could not be submitted to {self.info['class']} because more than {most} tasks are queued "
                    "on the actor. This limit can be adjusted with the `max_pending_calls` actor option.")
            self._pending.add(promise)
        promise.add_done_callback(functools.partial(self._pending.discard, promise))

    def _wait(self, promise, late, send):
        entry = [len(late), send]

        def stop():  # later calls do not wait for it any more
            promise.settle(error=self._canceled())
            come(entry[0])

        def come(n=1):
            with self._lock:
                entry[0] -= n
                if self.ordered:
                    while self._late and self._late[0][0] <= 0:
                        self._late.popleft()[1]()
                elif entry[0] <= 0 and id(entry) in self._waiting:
                    self._waiting.remove(id(entry))
                    send()

        promise.stop = stop
        if self.ordered:
            self._late.append(entry)
        else:
            self._waiting.add(id(entry))
        for other in late:
            other.add_done_callback(come)

    def _send(self, promise, number, name, args, kwargs, options, left):
        """left: how many times it may be sent again; -1: any number."""
        if promise.done():
            return  # the call was canceled
        try:
            with _refs.taking() as refs:
                packed = packed_arguments(args, kwargs)
                lane = options.get("concurrency_group") or self.info["lanes"].get(name)
                method = self.group._methods.get(f"call_{lane}" if lane else "call", self._at)
                future = _call.start(self.session.client, method, (number, name, packed))
        except ArgumentFailed as e:
            promise.settle(error=e.error)
        except (TypeError, ValueError, RuntimeError, _errors.Error) as e:
            promise.settle(error=self._explained(e))
        else:
            self.sent += 1
            promise.keeps = refs
            if left:
                again = functools.partial(self._send, promise, number, name, args, kwargs, options, max(left - 1, -1))
                promise.stop = lambda: future.cancel() or promise.settle(error=self._canceled())
                promise.try_with(future, functools.partial(self._answered, promise, options.get("retry_exceptions"), again))
            else:
                promise.follow(future, self._translate)

    def _answered(self, promise, kinds, again, future):
        """Settles the promise, or sends its call again: after the death of a process that is started again, or after an
        exception of these kinds. Calls that a process took along are answered, and so sent again, in their order.
        """
        try:
            value, error = self._translate(future)
            retry = isinstance(error, exceptions.ActorUnavailableError) or isinstance(
                error, exceptions.RayTaskError) and _options.is_one_of(error.cause, kinds)
        except Exception as e:
            value, error, retry = None, e, False
        if retry:
            try:
                with self._lock:
                    again()
            except BaseException as e:  # nobody else can tell those that wait for the promise
                promise.settle(error=e)
        else:
            promise.settle(value, error)

    def _canceled(self):
        return exceptions.TaskCancelledError(f"the call of {self.info['class']} was cancelled")

    def _translate(self, future):
        error = future.exception()
        if error is not None:
            return None, self._explained(error)
        return opened(future.result())

    def _explained(self, e):
        made = exceptions.of_actor(e, self.info["class"])
        if not isinstance(made, (exceptions.ActorDiedError, exceptions.ActorUnavailableError)) or self.session.closed:
            return made
        try:
            why = self.session.ask("cause_of_death", self.actor)
        except _errors.Error:
            return made
        if why:
            return exceptions.ActorDiedError(f"{self.info['class']}: {why}")
        if self.info["restarts"] and getattr(e, "rank", None) is not None:
            return exceptions.ActorUnavailableError(f"{self.info['class']} is started again: {e}")
        return made

    def cancel(self, number, force):
        if force:
            raise ValueError("force=True is not supported for actor tasks.")
        self.group.start("cancel", number, rank=self.rank)

    def waits(self):
        """Whether a call has not been sent yet, because an argument is late."""
        return bool(self._late)

    # Handles of this process

    def grab(self):
        """Returns how many handles there are now. 0: the last one has just gone, and other Calls replace these."""
        with self._lock:
            self.handles += not self.gone
            return self.handles

    def let_go(self):
        """A handle is gone. After the last one, calls that were sent before still run."""
        with self._lock:
            self.handles -= 1
            if self.handles or self.session.closed:
                return
            self.gone = True
            self.session.calls.pop(self.actor, None)
        self._fence()

    def forget(self, handle):
        """The directory could not count this process for this handle, which was the first one: there is nothing to drop."""
        vars(handle)["_number"] = 0
        with self._lock:
            self.handles -= 1
            self.gone = not self.handles
            if self.gone:
                self.session.calls.pop(self.actor, None)
        if not self.gone:
            self.session.tell("hold", [self.actor])  # for others that came meanwhile

    def _fence(self, seen=None, since=0.0, pause=_LOOK_S):
        """Drops the actor when all calls of this process are over, even those that wait. seen: what the actor has
        said, unchanged since that time; pause: before the next question.
        """
        promises = [ref() for ref in list(self._open)]
        waits = next((promise for promise in promises if promise is not None and not promise.done()), None)
        if waits is not None:  # its answer may still be on the way when the actor says that it is over
            waits.add_done_callback(functools.partial(self.session.later, self._fence))
        elif self.ordered:  # this call comes after all others
            self.group.start("fence", rank=self.rank).add_done_callback(functools.partial(self._told, seen, since, pause))
        else:
            asked = self.group.start("calls_of", self._prefix, rank=self.rank, idempotent=True, max_retries=_session._AGAIN)
            asked.add_done_callback(functools.partial(self._told, seen, since, pause))

    def _fence_later(self, seen, since, pause):
        timer = threading.Timer(pause, self.session.later, (self._fence, seen, since, min(2 * pause, _LOOK_MOST_S)))
        timer.daemon = True
        timer.start()

    def _told(self, seen, since, pause, future):
        error = future.exception()
        if _may_live(error):
            self._fence_later(seen, since, pause)
            return
        if error is not None or self.ordered:
            self._drop()
            return
        now, said = time.monotonic(), future.result()
        begun, running = said
        stands = not running and said == seen  # seen twice: the last result is on its way
        if stands and (begun >= self.sent or now >= since + _LOST_S):
            self._drop()
        else:
            self._fence_later(said, since if stands else now, pause if said == seen else _LOOK_S)

    def _drop(self):
        self.session.tell("drop", [self.actor])

    def kill(self, no_restart):
        """Ends the actor at once. Everything that waits fails."""
        last = no_restart and self.session.ask("ended", self.actor, "it was killed by ray.kill()")
        try:
            self.group.kill(self.rank)
        except _errors.Error as e:
            if not isinstance(e, (_errors.NotFound, _errors.Gone, _errors.Unavailable, _errors.Conflict)):
                raise
        if last:
            try:
                self.group.close()
            except (_errors.NotFound, _errors.Gone):
                pass


def _may_live(error):
    """Whether an actor may run calls although a question to it had this error: it has too much to do, or the connection was
    lost.
    """
    return isinstance(error, _errors.Throttled) or isinstance(error, _errors.Unavailable) and error.rank is None and error.may_have_run


class ActorMethod:
    """handle.method: .remote() calls the method."""

    def __init__(self, handle, name, options):
        self._handle, self._name, self._options = handle, name, options

    def remote(self, *args, **kwargs):
        calls = self._handle._calls()
        promise, number = calls.submit(self._name, args, kwargs, self._options, calls.info.get("pending", -1))
        n = self._options.get("num_returns")
        return refs_of(promise, number, 1 if n is None else n, self._name, calls.cancel)

    def options(self, **options):
        _options.check(options, _options.METHOD, "methods")
        return ActorMethod(self._handle, self._name, {**self._options, **options})

    def __call__(self, *args, **kwargs):
        raise TypeError(f"Actor methods cannot be called directly. Instead of running 'object.{self._name}()', try "
                        f"'object.{self._name}.remote()'.")

    def __repr__(self):
        return f"<method {self._name} of {self._handle!r}>"


_OWN = ("__ray_ready__", "__ray_call__", "__ray_terminate__")


class ActorHandle(Held):
    """An actor as its clients see it: handle.method.remote(). It can be an argument of calls."""

    def __init__(self, session, actor, info, counted):
        vars(self).update(_session=session, _id=actor, _info=info, _counted=counted, _actor_id=ID(actor),
                          _number=0)
        while counted and not self._number:
            vars(self)["_number"] = self._calls().grab()

    def _calls(self):
        session = self._session
        calls = session.calls.get(self._id)
        if calls is None:
            calls = session.calls.setdefault(self._id, Calls(session, self._id, self._info))
        return calls

    @property
    def _ray_actor_id(self):
        return self._actor_id

    def __getattr__(self, name):
        methods = vars(self).get("_info", {}).get("methods", {})
        if name in methods:
            return ActorMethod(self, name, methods[name])
        if name in _OWN:
            return ActorMethod(self, name, {})
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"'ActorHandle' object has no attribute '{name}': {self._info.get('class')} has the methods "
                             f"{', '.join(m for m in methods if not m.startswith('_'))}")

    def __dir__(self):
        return [*super().__dir__(), *self._info["methods"]]

    def __reduce__(self):
        return _handle_from, (self._id, self._info, self._counted, self._share() if self._counted else False)

    def __del__(self):
        if vars(self).get("_number") and not self._session.closed and not sys.is_finalizing():
            calls = self._session.calls.get(self._id)
            if calls is not None:
                self._session.later(calls.let_go)

    def __class_getitem__(cls, item):
        return cls

    def __eq__(self, other):
        return isinstance(other, ActorHandle) and other._id == self._id

    def __hash__(self):
        return hash(self._id)

    def __repr__(self):
        return f"Actor({self._info['class']}, {self._id})"


def _handle_from(actor, info, counted, is_holder):
    handle = ActorHandle(_session.current(), actor, info, counted)
    if counted:
        _count(handle, is_holder)
    return handle


def _count(handle, is_holder):
    """Counts a process once, however many handles it has."""
    if handle._number > 1:
        if is_holder:
            handle._session.tell("drop", [handle._id])
    elif not is_holder:
        try:
            handle._session.ask("hold", [handle._id])
        except BaseException:
            handle._calls().forget(handle)
            raise


class ActorClass:
    """A class of actors. Class.remote(...) makes an actor."""

    def __init__(self, cls, options):
        _options.check(options, _options.ACTOR, "actors")
        self.__ray_actor_class__ = cls
        self.__class__ = type(f"ActorClass({cls.__name__})", (ActorClass,), {})  # programs look at this name
        self._options = options
        self._code = None
        for name in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(self, name, getattr(cls, name, None))

    def __call__(self, *args, **kwargs):
        raise TypeError(f"Actors cannot be instantiated directly. Instead of '{self.__name__}()', use "
                        f"'{self.__name__}.remote()'.")

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.__ray_actor_class__, name)

    def __dir__(self):
        return sorted({*super().__dir__(), *dir(self.__ray_actor_class__)})

    def remote(self, *args, **kwargs):
        return self._make(args, kwargs, self._options)

    def options(self, **options):
        _options.check(options, _options.ACTOR, "actors")
        return _Made(self, {**self._options, **options})

    def _make(self, args, kwargs, options):
        return _create(self, args, kwargs, {k: v for k, v in options.items() if v is not None})

    def _blob(self):
        if self._code is None:
            self._code = _packing.dumps(self.__ray_actor_class__, f"the actor class {self.__name__}")
        return self._code

    def __reduce__(self):
        return ActorClass, (self.__ray_actor_class__, self._options)

    def __repr__(self):
        return f"ActorClass({self.__name__})"


class _Made:
    """Class.options(...)."""

    def __init__(self, cls, options):
        self._cls, self._options = cls, options

    def remote(self, *args, **kwargs):
        return self._cls._make(args, kwargs, self._options)


def _create(made_of, args, kwargs, options):
    making = Making(made_of, options)
    making.info.update(retries=options.get("max_task_retries", 0), pending=options.get("max_pending_calls", -1))
    session, actor = making.session, secrets.token_hex(16)
    other = _enter(making, actor)
    if other is not None:
        return other
    handle = ActorHandle(session, actor, making.info, counted=not making.record["detached"])
    try:
        making.start(_SERVED_BY, {"actor": actor, "name": making.record["name"], **_placement.said(options)},
                     **_placement.of(session, options, making.what))
    except BaseException:
        session.tell("ended", actor, "it was not made")
        raise
    calls = handle._calls()
    making.tell_how([calls], args, kwargs)
    calls.submit("__ray_ready__", (), {}, {"max_task_retries": 0})
    return handle


def _enter(making, actor):
    """Returns the handle of another actor that has its name, if the options ask for this."""
    session, record = making.session, making.record
    if not record["name"]:
        session.tell("enter", actor, record)
        return None
    other = session.ask("enter", actor, record)
    if other is not None and _names.has_crashed(session, other["actor"], other):
        other = session.ask("enter", actor, record)
    if other is None:
        return None
    if making.options.get("get_if_exists"):
        return _handle_of(session, other)
    raise taken(record["name"], record["namespace"])


def taken(name, namespace):
    """The exception for a name that another actor has."""
    return ValueError(f"The name {name} (namespace={namespace}) is already taken. Please use a different name or get the "
                      f"existing actor using ray.get_actor('{name}', namespace='{namespace}')")


def _handle_of(session, record):
    info = {**record["info"][0], "rank": record.get("rank", 0)}
    counted = not record["detached"]
    handle = ActorHandle(session, record["actor"], info, counted)
    if counted:
        _count(handle, False)
    return handle


def handle_of_id(session, actor):
    """Returns a handle of an existing actor."""
    return _handle_of(session, {"actor": str(actor), **session.ask("actor", str(actor))})


def get_actor(name, namespace=None):
    """The handle of a named actor."""
    if not name:
        raise ValueError("Please supply a non-empty value to get_actor")
    session = _session.current()
    record = session.ask("find", name, namespace or session.namespace)
    if record is None or _names.has_crashed(session, record["actor"], record):
        raise ValueError(f"Failed to look up actor with name '{name}'. This could because 1. You are trying to look up a named "
                         "actor you didn't create. 2. The named actor died. 3. You did not use a namespace matching the "
                         f"namespace of the actor ({namespace or session.namespace}).")
    return _handle_of(session, record)


def kill(actor, *, no_restart=True):
    """Ends an actor at once."""
    if not isinstance(actor, ActorHandle):
        raise ValueError(f"ray.kill() only supported for actors. For tasks, try ray.cancel(). Got: {type(actor)}.")
    actor._calls().kill(no_restart)


def cancel(ref, *, force=False, recursive=True):
    """Cancels a call. A waiting call does not run. A running call is interrupted if that is possible."""
    if not isinstance(ref, ObjectRef):
        raise TypeError(f"ray.cancel() only supported for object refs. For actors, try ray.kill(). Got: {type(ref)}.")
    stop = getattr(ref, "_cancel", None)
    if stop is not None and not ref._promise.done():
        stop(force)
        ref._promise.cancel()


def exit_actor():
    """Call this in a method: ends this actor when the method has ended."""
    from ._worker import Exit

    raise Exit(0)
