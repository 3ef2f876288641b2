# SPDX-License-Identifier: Apache-2.0
"""Which actors exist, and their states."""

from .. import _errors
from . import _session

_ASK_S = 30
_CRASHES_S = 5  # how long a group may need to know that a process has ended for good


def list_named_actors(all_namespaces=False):
    """Returns names; with all_namespaces, [{"name": ..., "namespace": ...}]."""
    session = _session.current()
    found = session.ask("named", None if all_namespaces else session.namespace)
    return [{"name": name, "namespace": ns} for ns, name in found] if all_namespaces else [name for _, name in found]


class ActorState(dict):
    """The state of an actor: a dict whose keys are attributes, too."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def get_actor_state(id, address=None, timeout=_ASK_S, *, _explain=False):
    """Returns None if there is no actor with that ID."""
    session = _session.current()
    record = session.ask("actor", str(id))
    return None if record is None else _state(session, str(id), record)


def list_actors(address=None, filters=None, limit=100, timeout=_ASK_S, detail=False, raise_on_missing_output=True,
                _explain=False):
    """Returns all actors that the program has made; filters: [("state", "=", "ALIVE")]."""
    session = _session.current()
    found = [_state(session, actor, record) for actor, record in session.ask("all_actors").items()]
    for key, sign, value in filters or ():
        if sign not in ("=", "!="):
            raise ValueError(f"list_actors(): the filter {(key, sign, value)!r} has another predicate than \"=\" and \"!=\"")
        found = [a for a in found if (str(a.get(key)) == str(value)) == (sign == "=")]
    return found[:limit]


def _state(session, actor, record):
    return ActorState(actor_id=actor, class_name=record["class"], state=_now(session, record), name=record["name"],
                      ray_namespace=record["namespace"], node_id=record.get("node") or "", job_id=record["job"],
                      death_cause=record["why"], is_detached=record["detached"])


def _now(session, record):
    """The state now. Only the group knows about a crash."""
    if record["state"] != "ALIVE":
        return record["state"]
    try:
        info = session.client.group(record["group"]).info(timeout=_ASK_S)
    except (_errors.NotFound, _errors.Gone):
        return "DEAD"
    if info["ready"]:
        return "ALIVE"
    return "RESTARTING" if record["restarts"] else "DEAD"


def has_crashed(session, actor, record):
    """Whether the actor has crashed, and does not start again. If it has, the directory gets to know: its name is free. The
    group of a detached actor has no handles that are counted, so nobody else would delete it.
    """
    if record["state"] != "ALIVE" or _now(session, record) == "ALIVE":
        return False
    group = session.client.group(record["group"])
    try:
        group.call("pid", rank=record.get("rank", 0), timeout=_CRASHES_S)
    except (_errors.NotFound, _errors.Gone, _errors.Unavailable) as e:
        if e.may_have_run:  # the process has ended just now, or the connection was lost
            return False
        is_last = session.ask("ended", actor, str(e))
        if is_last and record["detached"]:
            _delete(group)
        return True
    except _errors.Timeout:  # it starts again
        pass
    return False


def _delete(group):
    try:
        group.close()
    except (_errors.NotFound, _errors.Gone):
        pass
