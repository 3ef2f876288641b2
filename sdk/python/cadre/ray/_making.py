# SPDX-License-Identifier: Apache-2.0
"""Makes actors from their options, the directory's record, and the data for their process."""

import inspect
import itertools

from .. import _errors
from . import _nursery, _options, _packing, _placement, _refs, _runtime_env, _session, exceptions
from ._arguments import ArgumentFailed, is_ours, value_of

_ENDLESS = 1000  # restarts, of max_restarts=-1
MARK = "__ray_method__"  # the attribute of a function that @method was given


class Making:
    """An actor that must be made, or the ranks of a gang, which are all made alike."""

    def __init__(self, made_of, options):
        cls = made_of.__ray_actor_class__
        self.session, self.made_of, self.options, self.what = _session.current(), made_of, options, cls.__name__
        is_async, groups = _is_async(cls), options.get("concurrency_groups") or {}
        concurrency = options.get("max_concurrency") or (1000 if is_async else 1)
        if not is_async:
            _options.threads(options)
        methods = _methods_of(cls)
        self.info = {
            "group": _session.group_name(self.what), "class": self.what, "methods": methods,
            "ordered": not is_async and concurrency == 1 and not groups, "restarts": options.get("max_restarts") or 0,
            "lanes": {m: o["concurrency_group"] for m, o in methods.items() if o.get("concurrency_group")}}
        asks = {} if _placement.is_in_group(options) else {"GPU": options.get("num_gpus") or 0, "CPU": options.get("num_cpus") or 0}
        namespace = options.get("namespace") or self.session.namespace
        self.record = {
            "name": options.get("name") or "", "namespace": namespace, "class": self.what, "group": self.info["group"],
            "detached": options.get("lifetime") == "detached", "job": self.session.said["job"], "asks": asks,
            "restarts": self.info["restarts"], "info": _packing.Packed((self.info,))}
        self.said = {"class": self.what, "group": self.info["group"], "is_async": is_async, "concurrency": concurrency,
                     "groups": groups, "namespace": namespace, "depth": 0}

    def start(self, served_by, said, preload=(), **place):
        """Makes the group. said: further data for its processes; preload: used if there is no nursery; place: arguments
        of Client.Group().
        """
        session, env, restarts = self.session, self.options.get("runtime_env"), self.info["restarts"]
        nursery = _nursery.of(session)
        threads = _runtime_env.threads_of(self.options)
        variables, preload = _nursery.place(nursery, env, threads, preload)
        try:
            session.client.Group(
                served_by, name=self.info["group"], preload=preload,
                env={**session.environment(env, nursery=nursery, threads=threads, **self.said, **said), **variables},
                archive=session.archive(env), detached=self.record["detached"], restart="Worker" if restarts else "Never",
                max_restarts=_ENDLESS if restarts < 0 else restarts or None, **place)
        except _errors.Invalid as e:
            raise exceptions.ActorUnschedulableError(f"{self.what}: {e}") from None

    def tell_how(self, calls, args, kwargs):
        """Tells the constructors of these actors what they need, when all of it is there."""
        code = self.made_of._blob()
        late = [a._promise for a in (*args, *kwargs.values()) if is_ours(a)]
        left = itertools.count(len(late), -1)
        next(left)

        def tell():
            with _refs.taking() as refs:
                try:
                    how = (code, [value_of(a) for a in args], {k: value_of(a) for k, a in kwargs.items()})
                except ArgumentFailed as e:
                    how = (e.error, [], {})
                body = _packing.as_tensor(_packing.to_bytes(how))
            for one in calls:
                one.keeps = refs
            self.session.tell("make", [one.actor for one in calls], body)

        if not late:
            tell()
        for promise in late:
            promise.add_done_callback(lambda: next(left) or tell())


def _methods_of(cls):
    """name -> the options of @method."""
    found = {}
    for name in dir(cls):
        plain = inspect.getattr_static(cls, name, None)
        plain = plain.__func__ if isinstance(plain, (staticmethod, classmethod)) else plain
        if inspect.isfunction(plain) or inspect.ismethoddescriptor(plain) and not name.startswith("__"):
            found[name] = getattr(plain, MARK, {})
    return found


def _is_async(cls):
    return any(inspect.iscoroutinefunction(f) or inspect.isasyncgenfunction(f)
               for _, f in inspect.getmembers(cls, inspect.isfunction))
