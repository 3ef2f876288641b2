# SPDX-License-Identifier: Apache-2.0
"""The exceptions of ray.get(), under the names that programs catch."""

from .. import _errors


class RayError(Exception):
    """The base of all of these."""


class RayTaskError(RayError):
    """A method or a task raised an exception. get() raises a class that also has the type of that exception: `except
    ValueError`.
    """

    def __init__(self, function_name, traceback_str, cause):
        super().__init__(function_name, traceback_str, cause)
        self.function_name, self.traceback_str, self.cause = function_name, traceback_str, cause

    def as_instanceof_cause(self):
        """The exception to raise."""
        kind = type(self.cause)
        if self.cause is None or isinstance(self.cause, RayError) or not isinstance(self.cause, Exception):
            return self
        made = _dual(kind)
        if made is None:
            return self
        error = made.__new__(made)
        error.args = (self.cause,)
        error.__dict__.update(vars(self.cause))
        error.function_name, error.traceback_str, error.cause = self.function_name, self.traceback_str, self.cause
        return error

    def __str__(self):
        return self.traceback_str

    def __reduce__(self):
        return _again, (self.function_name, self.traceback_str, self.cause, type(self) is not RayTaskError)


def _again(function_name, traceback_str, cause, dual):
    error = RayTaskError(function_name, traceback_str, cause)
    return error.as_instanceof_cause() if dual else error


_duals = {}


def _dual(kind):
    """Returns the class that is a RayTaskError and of this type. None: Python does not allow it."""
    if kind not in _duals:
        try:
            _duals[kind] = type(f"RayTaskError({kind.__name__})", (RayTaskError, kind),
                                {"__module__": __name__, "__str__": RayTaskError.__str__})
            _duals[kind].__new__(_duals[kind])
        except TypeError:
            _duals[kind] = None
    return _duals[kind]


class TaskCancelledError(RayError):
    """cancel() ended the call."""


class GetTimeoutError(RayError, TimeoutError):
    """The time of get(timeout=) is over; the call continues."""


class WorkerCrashedError(RayError):
    """The process of a task died."""


class RayActorError(RayError):
    """The actor cannot answer."""


class ActorDiedError(RayActorError):
    """The actor is dead, and does not come back: it was killed, it crashed, or its constructor raised an exception."""


class ActorUnavailableError(RayActorError):
    """The actor died while it ran the call, and is started again; or the connection was lost meanwhile."""


class ActorUnschedulableError(RayError):
    """No node has the resources that the actor asks for."""


class TaskUnschedulableError(RayError):
    """No node has the resources that the task asks for."""


class RuntimeEnvSetupError(RayError):
    """runtime_env has a field that is not supported here."""


class CrossLanguageError(RayError):
    """Only for programs that catch it: all workers here are in Python."""


class ObjectStoreFullError(RayError):
    """The values of references that went to other processes need more bytes than there is room for."""


class ObjectLostError(RayError):
    """The value of a reference is gone."""


class OwnerDiedError(ObjectLostError):
    """The process that made the reference has ended."""


class ReferenceCountingAssertionError(ObjectLostError, AssertionError):
    """The last holder of the reference has dropped it."""


class PlacementGroupSchedulingError(RayError):
    """No nodes have the resources that its bundles ask for."""


class PendingCallsLimitExceeded(RayError):
    """max_pending_calls calls are not answered yet."""


class AsyncioActorExit(RayError):
    """exit_actor() was called in an async method."""


def of_actor(e, name):
    """The exception for a call of an actor that Cadre could not finish."""
    if isinstance(e, _errors.Canceled):
        return TaskCancelledError(f"the call of {name} was cancelled")
    if isinstance(e, _errors.Invalid) and not e.may_have_run:
        return ActorUnschedulableError(f"{name}: {e}")
    if isinstance(e, _errors.Unavailable) and e.rank is None and e.may_have_run:
        return ActorUnavailableError(f"the connection was lost while {name} ran the call: {e}")
    if isinstance(e, (_errors.Unavailable, _errors.NotFound, _errors.Gone)):
        return ActorDiedError(f"{name} is dead: {e}")
    if isinstance(e, _errors.Conflict):
        return ActorUnavailableError(f"{name} was started again while it ran the call: {e}")
    return e


def of_task(e, name):
    """The same for a task."""
    if isinstance(e, _errors.Canceled):
        return TaskCancelledError(f"{name} was cancelled")
    if isinstance(e, _errors.Invalid) and not e.may_have_run:
        return TaskUnschedulableError(f"{name}: {e}")
    if isinstance(e, (_errors.Unavailable, _errors.NotFound, _errors.Gone, _errors.Conflict)):
        return WorkerCrashedError(f"the worker of {name} died: {e}")
    return e
