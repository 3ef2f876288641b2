# SPDX-License-Identifier: Apache-2.0
"""Functions that run on workers: @cadre.task."""

import functools
import threading

from . import _call, _code

entered = []  # clients whose `with` block is open, the innermost last
_SERVED_BY = "cadre.worker.tasks:Tasks"
_RESTARTS_MAX = 1000  # of workers that tasks have ended
_SHAPE = ("cpus", "gpus", "workers", "image", "env")
_CALL = ("timeout", "max_retries", "retry_on", "idempotent")


def task(function=None, **options):
    """Makes a function a task, which runs on a worker: `square.start(3)` returns a Future, `square(3)` waits.

    cpus, gpus   of each worker that runs it
    workers      how many workers there are, and so how many tasks run at a time. Default in a run of this machine: one for
                 each CPU that it counts, or one if the task sets cpus or gpus; in a cluster: one
    image, env   of the workers, in a cluster; env: a dict of variables
    max_retries  how often it runs again if its worker dies, or if it raises an exception that retry_on names: names of
                 exceptions, or exceptions; Exception stands for all
    timeout      seconds
    """
    if function is None:
        return functools.partial(task, **options)
    return Task(function, options)


class Task:
    """A function that runs on a worker of the client whose `with` block is open. using() chooses another client. The
    workers start with the first call, and end with the client.
    """

    def __init__(self, function, options, client=None):
        unknown = [name for name in options if name not in _SHAPE + _CALL]
        if unknown:
            raise TypeError(f"a task has no option {unknown[0]!r}; there are {', '.join(_SHAPE + _CALL)}")
        if not callable(function):
            raise TypeError(f"@cadre.task is for functions; {function!r} is not a function")
        functools.update_wrapper(self, function)
        self.function = function
        self._options = options
        self._client = client

    def options(self, **options):
        """The same task with other options."""
        return Task(self.function, {**self._options, **options}, self._client)

    def using(self, client):
        """The same task, on workers of this client."""
        return Task(self.function, self._options, client)

    def __call__(self, *args, **named):
        """Runs it on a worker, and waits for its result."""
        return self.start(*args, **named)._result_or_give_up()

    def start(self, *args, **named):
        """Sends it to a worker, and returns its Future."""
        name, client = _name_of(self.function), self._client or _current()
        group = client._tasks.group(client, {k: self._options[k] for k in _SHAPE if self._options.get(k) is not None})
        method = group._methods.get("run", self._call_options())
        return _call.start(client, method, (name, *args), kwargs=named)

    async def aio(self, *args, **named):
        """The call for asyncio: if it is canceled, it cancels the task."""
        return await self.start(*args, **named)

    def _call_options(self):
        options = {k: self._options[k] for k in _CALL if self._options.get(k) is not None}
        if options.get("max_retries"):
            options.setdefault("idempotent", True)
        if "retry_on" in options:
            options["retry_on"] = _error_names(options["retry_on"])
        return options

    def __repr__(self):
        return f"<cadre.Task {self.__module__}.{self.__qualname__}>"


def _name_of(function):
    """Tells the workers which function it is. A function that they cannot import is sent itself."""
    name = function.__qualname__
    return _code.pack(function, name) if _code.goes_by_value(function) else f"{function.__module__}:{name}"


def _error_names(retry_on):
    several = retry_on if isinstance(retry_on, (list, tuple)) else [retry_on]
    names = [e if isinstance(e, str) else "FAILED" if e is Exception else e.__name__ for e in several]
    return ",".join(names)


def _current():
    if not entered:
        raise RuntimeError("no client for the task: call it in the block of `with cadre.local() as client:` or `with "
                           "cadre.connect() as client:`, or use task.using(client)")
    return entered[-1]


class Workers:
    """The groups that run the tasks of one client, one for each kind of worker."""

    def __init__(self):
        self._lock = threading.Lock()
        self._groups = {}

    def group(self, client, shape):
        key = tuple((name, tuple(sorted(v.items())) if isinstance(v, dict) else v) for name, v in sorted(shape.items()))
        with self._lock:
            if key not in self._groups:
                own = "cpus" in shape or "gpus" in shape
                workers = shape.pop("workers", None) or (1 if own else getattr(client, "_tasks_at_once", 1))
                self._groups[key] = client.Group(_SERVED_BY, replicas=workers, restart="Worker",
                                                 max_restarts=_RESTARTS_MAX, **shape)
            return self._groups[key]
