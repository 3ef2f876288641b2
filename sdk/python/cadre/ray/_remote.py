# SPDX-License-Identifier: Apache-2.0
"""Functions that run on workers. Each process has its own workers for the tasks that it starts: as many as it needs
at a time, and at most as many as there are CPUs or GPUs for them.
"""

import functools
import hashlib
import inspect
import itertools
import secrets
import threading
import time
import weakref
from collections import deque

from .. import _call, _errors
from . import _nursery, _options, _packing, _placement, _refs, _runtime_env, _session, exceptions
from ._actor import ActorClass
from ._arguments import ArgumentFailed, is_ours, opened, packed_arguments, refs_of
from ._refs import Promise

_SERVED_BY = "cadre.ray._worker:Tasks"
_IDLE_S = 2.0  # how long a worker with GPUs, or on a bundle, waits for the next task
_RETRIES = 3
_NUMBERS, _PREFIX = itertools.count(1), secrets.token_hex(4)
_SHAPE = ("num_cpus", "num_gpus", "runtime_env", "scheduling_strategy", "placement_group", "placement_group_bundle_index")


def remote(*args, **options):
    """@ray.remote, or @ray.remote(num_gpus=1): makes a task from a function, or actors from a class."""
    if len(args) == 1 and not options and callable(args[0]):
        return _made(args[0], {})
    if args or not options:
        raise TypeError("The @ray.remote decorator must be applied either with no arguments and no parentheses, for example "
                        "'@ray.remote', or it must be applied using some of the arguments in the list "
                        f"{sorted(_options.ACTOR | _options.TASK)}, for example '@ray.remote(num_returns=2, "
                        "resources={\"CustomResource\": 1})'.")
    return functools.partial(_made, options=options)


def _made(what, options):
    if isinstance(what, (RemoteFunction, ActorClass)):
        raise TypeError("The @ray.remote decorator must be applied to either a function or a class, and it is applied twice")
    if inspect.isclass(what):
        return ActorClass(what, options)
    if inspect.isfunction(what) or callable(what) and hasattr(what, "__name__"):
        return RemoteFunction(what, options)
    raise TypeError("The @ray.remote decorator must be applied to either a function or a class.")


class RemoteFunction:
    """A task: .remote(...) runs it on a worker."""

    def __init__(self, function, options):
        _options.check(options, _options.TASK, "remote functions")
        functools.update_wrapper(self, function)
        self._function, self._options = function, options
        self._code = self._name = None

    def __call__(self, *args, **kwargs):
        name = self._function.__name__
        raise TypeError(f"Remote functions cannot be called directly. Instead of running '{name}()', try '{name}.remote()'.")

    def remote(self, *args, **kwargs):
        return self._start(args, kwargs, self._options)

    def options(self, **options):
        _options.check(options, _options.TASK, "remote functions")
        return _Made(self, {**self._options, **options})

    def _start(self, args, kwargs, options):
        session = _session.current()
        if self._code is None:
            self._code = _packing.dumps(self._function, f"the remote function {self._function.__name__}")
            self._name = hashlib.sha256(self._code).hexdigest()[:32]
        options = {k: v for k, v in options.items() if v is not None}
        task = Task(self, args, kwargs, options)
        late = [a._promise for a in (*args, *kwargs.values()) if is_ours(a) and not a._promise.done()]
        workers = _workers(session, options, self._function.__name__)
        if late:
            left = itertools.count(len(late) - 1, -1)
            for promise in late:
                promise.add_done_callback(lambda: next(left) or workers.submit(task))
        else:
            workers.submit(task)
        return refs_of(task.promise, weakref.ref(task), options.get("num_returns", 1), self._function.__name__, workers.cancel)

    def __reduce__(self):
        return RemoteFunction, (self._function, self._options)


class _Made:
    """function.options(...)."""

    def __init__(self, function, options):
        self._function, self._options = function, options

    def remote(self, *args, **kwargs):
        return self._function._start(args, kwargs, self._options)


class Task:
    """One call of a remote function."""

    def __init__(self, function, args, kwargs, options):
        self.function, self.args, self.kwargs = function, args, kwargs
        self.name = function._function.__name__
        self.number = f"{_PREFIX}-{next(_NUMBERS)}"
        self.promise = Promise()
        retries = options.get("max_retries", _RETRIES)
        self.left = 1000 if retries < 0 else retries
        self.retry_exceptions = options.get("retry_exceptions") or False
        self.worker = None
        self.canceled = False

    def runs_again_after(self, error, died):
        if self.canceled or self.left <= 0:
            return False
        if not died:
            kinds = self.retry_exceptions
            cause = getattr(error, "cause", error)
            if not kinds or kinds is not True and not isinstance(cause, tuple(kinds)):
                return False
        self.left -= 1
        return True


def _workers(session, options, what):
    shape = {name: options[name] for name in _SHAPE if name in options}
    key = repr(sorted((k, vars(v) if hasattr(v, "placement_group") else v) for k, v in shape.items()))
    workers = session.workers.get(key)
    if workers is None:
        workers = session.workers.setdefault(key, Workers(session, key, shape, what))
    return workers


class Worker:
    """A worker that runs tasks."""

    def __init__(self, group):
        self.group, self.knows, self.since = group, set(), None  # since when it is idle


class Workers:
    """The workers of one shape."""

    def __init__(self, session, key, shape, what):
        self.session, self.key, self.shape = session, key, shape
        self.lock = threading.Lock()
        self.queue, self.idle, self.all = deque(), [], 0
        self.stays, self.watches = not shape, False  # watches: _end_idle() will come
        self.most = self._at_once(what)
        _runtime_env.checked(shape.get("runtime_env"))

    def _at_once(self, what):
        local, shape = self.session.said["local"], self.shape
        if local is None:
            return max(1, 8 >> self.session.said["depth"])
        cpus = shape.get("num_cpus", 1)
        limits = [int(local["CPU"] // cpus) if cpus else 64]
        if shape.get("num_gpus"):
            limits.append(int(local["GPU"] // max(shape["num_gpus"], 1)))
        if min(limits) < 1:
            asked = f"{cpus:g} CPU and {shape.get('num_gpus') or 0:g} GPU"
            raise exceptions.TaskUnschedulableError(f"{what} asks for {asked}, and this run has {local['CPU']:g} CPU and "
                                                    f"{local['GPU']:g} GPU: init(num_cpus=, num_gpus=), or ask for less")
        return max(1, min(limits) >> self.session.said["depth"])

    def submit(self, task):
        with self.lock:
            self.queue.append(task)
        self._hand_out()

    def _hand_out(self):
        """Gives waiting tasks to workers, while there are both."""
        while True:
            with self.lock:
                while self.queue and self.queue[0].promise.done():
                    self.queue.popleft()  # the task was canceled
                if not self.queue or not self.idle and self.all >= self.most:
                    return
                task = self.queue.popleft()
                worker = self.idle.pop() if self.idle else None
                self.all += worker is None
            try:
                worker = worker or self._new()
                self._give(task, worker)
            except BaseException as e:
                interrupted = not isinstance(e, Exception)  # Ctrl-C, which may be meant for another task
                lives = worker is not None and task.worker is not worker  # the task was not sent to it
                with self.lock:
                    self.all -= not lives
                    if interrupted and worker is None:
                        self.queue.appendleft(task)
                if lives:
                    self._is_free(worker)
                if not interrupted:
                    task.promise.settle(error=e)
                    continue
                if worker is not None:  # it may run
                    task.promise.settle(error=exceptions.TaskCancelledError(f"{task.name} was interrupted"))
                self.session.later(self._hand_out)
                raise

    def _new(self):
        session = self.session
        if session.closed:
            raise RuntimeError("shutdown() came before this task had run")
        name = _session.group_name("task")
        nursery, own = _nursery.of(session), self.shape.get("runtime_env")
        threads = _runtime_env.threads_of(self.shape)
        variables, preload = _nursery.place(nursery, own, threads)
        environment = session.environment(own, nursery=nursery, group=name, depth=session.said["depth"] + 1,
                                          threads=threads, actor=None, **_placement.said(self.shape))
        place = _placement.of(session, self.shape, "a task")
        place.pop("cpus", None)  # `most` counts them
        try:
            group = session.client.Group(_SERVED_BY, name=name, env={**environment, **variables}, restart="Never",
                                         archive=session.archive(own), preload=preload, **place)
        except _errors.Invalid as e:
            raise exceptions.TaskUnschedulableError(f"a task: {e}") from None
        except BaseException:  # Ctrl-C: the group may be there
            self._end(session.client.group(name))
            raise
        return Worker(group)

    def _give(self, task, worker):
        function = task.function
        code = None if function._name in worker.knows else _packing.as_tensor(function._code)
        try:
            with _refs.taking() as refs:
                packed = packed_arguments(task.args, task.kwargs)
                method = worker.group._methods.get("call", {"rank": 0})
                future = _call.start(self.session.client, method, (task.number, function._name, code, packed))
        except ArgumentFailed as e:
            self._is_free(worker)
            task.promise.settle(error=e.error)
            return
        except (TypeError, ValueError, _errors.Error) as e:
            self._is_free(worker)
            task.promise.settle(error=e)
            return
        worker.knows.add(function._name)
        task.promise.keeps, task.worker = refs, worker
        task.promise.stop = lambda: task.promise.settle(error=exceptions.TaskCancelledError(f"{task.name} was cancelled"))
        future.add_done_callback(functools.partial(self._ended, task, worker))

    def _ended(self, task, worker, future):
        error, value = future.exception(), None
        # After these errors the worker lives: its result cannot be sent, or not be opened here.
        died = isinstance(error, _errors.Error) and not isinstance(error, (_errors.Failed, _errors.Proto))
        if error is None:
            value, error = opened(future.result())
        else:
            error = exceptions.of_task(error, task.name)
        if error is not None and not task.promise.done() and task.runs_again_after(error, died):
            task.worker = None
            with self.lock:
                self.queue.appendleft(task)
        else:
            if isinstance(getattr(error, "cause", None), KeyboardInterrupt) or task.canceled and error is not None:
                error = exceptions.TaskCancelledError(f"{task.name} was cancelled")
            task.promise.settle(value, error)
        if died:
            self._lose(worker)  # a task that runs again waits already, so these workers stay known
        else:
            self._is_free(worker)
        self._hand_out()

    def _is_free(self, worker):
        with self.lock:
            worker.since = time.monotonic()
            self.idle.append(worker)
            begins = not self.stays and not self.watches
            self.watches = self.watches or begins
        if begins:
            self._look_after(_IDLE_S)

    def _look_after(self, seconds):
        timer = threading.Timer(seconds, self._end_idle)
        timer.daemon = True
        timer.start()

    def _end_idle(self):
        """Ends the workers that have been idle for long, and comes again while there are others."""
        with self.lock:
            before = time.monotonic() - _IDLE_S
            ended = [worker for worker in self.idle if worker.since <= before]
            self.idle = [worker for worker in self.idle if worker.since > before]
            self.watches = bool(self.idle)
            left = min((worker.since for worker in self.idle), default=before) - before
        for worker in ended:
            self._lose(worker)
        if left:
            self._look_after(left)

    def _lose(self, worker):
        with self.lock:
            self.all -= 1
            if not self.all and not self.queue and self.session.workers.get(self.key) is self:
                del self.session.workers[self.key]  # a program may make any number of shapes
        self._end(worker.group)

    def _end(self, group):
        if self.session.closed:
            return
        self.session.client._renewal.remove("group", group.name)
        try:
            group.start("group.delete", args={"group": group.name})
        except (RuntimeError, _errors.Error):
            pass  # the session ends

    def cancel(self, known, force):
        """known: refers to the task until it is over. Then nobody needs its arguments any more."""
        task = known()
        if task is None:
            return
        task.canceled = True
        worker = task.worker
        if worker is None:
            task.promise.settle(error=exceptions.TaskCancelledError(f"{task.name} was cancelled"))
        elif force:
            worker.group.start("group.kill", rank=0)
        else:
            worker.group.start("cancel", task.number, rank=0)
