# SPDX-License-Identifier: Apache-2.0
"""The ranks of a worker group as one group of Cadre: made by one request, and called by one call."""

import functools
import itertools
import secrets
import threading

from .. import _call, _errors
from .._pool import Pool, _Part
from .._value import encode_call
from ..ray import _actor, _making, _options, _packing, _placement, _refs, _session
from ..ray._arguments import ArgumentFailed, is_ours, opened, packed_arguments
from ..ray._refs import ObjectRef, Promise
from . import _rank, _rows

_NUMBERS, _PREFIX = itertools.count(1), secrets.token_hex(4)
_SERVED_BY = "cadre.verl._rank:Rank"
_KEEPS = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # variables of a rank that its program sees
_PRELOAD = ("tensordict", "transformers")  # they take most of the time of `import verl`, and begin no threads
_LIST_BYTES = 48 << 20  # bytes that the proxy takes as a list, with some to spare


class Wanted:
    """An actor that verl would have made: one rank. It stands for Class.options(...) until remote() returns it."""

    def __init__(self, made_of, **options):
        self.made_of, self.options, self.name = made_of, options, options["name"]
        env = options["runtime_env"]
        self.env = {k: v for k, v in env["env_vars"].items() if k not in _KEEPS or k.startswith("MASTER") and v}
        self.others = {k: v for k, v in env.items() if k != "env_vars"}
        strategy = options["scheduling_strategy"]
        self.placement, self.bundle = strategy.placement_group, strategy.placement_group_bundle_index

    def remote(self, *args, **kwargs):
        self.args, self.kwargs = args, kwargs
        return self


def make(wanted, methods):
    """Makes the gang of ranks that start together. methods: (name, dispatch, execute) of the methods that all ranks
    run together.
    """
    first = wanted[0]
    options = {**first.options, "name": None, "runtime_env": {**first.others, "env_vars": first.env}}
    making = _making.Making(first.made_of, _options.check(options, _options.ACTOR, "actors"))
    session, info = making.session, making.info
    info["world"], info["named"] = len(wanted), [name for name, _, _ in methods]
    actors = [secrets.token_hex(16) for _ in wanted]
    record, names = making.record, [w.name for w in wanted]
    other = session.ask("enter_gang", actors, names, record)
    if other is not None:
        raise _actor.taken(other, record["namespace"])
    handles = [_actor.ActorHandle(session, actor, {**info, "rank": rank}, counted=not record["detached"])
               for rank, actor in enumerate(actors)]
    try:
        place = _place(session, wanted, making.what)
        keeps = [name for name in _KEEPS if name not in first.env]
        making.start(_SERVED_BY, {"gang": {"actors": actors, "places": _places(wanted), "keeps": keeps, "methods": methods}},
                     preload=_PRELOAD, **place)
    except BaseException:
        for actor in actors:
            session.tell("ended", actor, "it was not made")
        raise
    making.tell_how([handle._calls() for handle in handles], first.args, first.kwargs)
    gang = Gang(handles)
    gang.each("__ray_ready__", [((), {})], [0] * len(handles))  # constructors run before the first call
    return gang


def _place(session, wanted, what):
    """Returns arguments for Client.Group(): one bundle for each rank, in their order."""
    for w in wanted:
        place = _placement.of(session, w.options, what)  # this also reports a request that does not fit
    parts = []
    for w in wanted:
        last = parts[-1] if parts else None
        if last and last.name == w.placement._name and last.first + last.count == w.bundle:
            parts[-1] = last._replace(count=last.count + 1)
        else:
            parts.append(_Part(w.placement._name, w.bundle, 1))
    return {**place, "pool": Pool(session.client, parts), "replicas": len(wanted)}


def _places(wanted):
    """Returns [(the first rank there, the data about its placement group)]."""
    places = []
    for rank, w in enumerate(wanted):
        if not rank or w.placement != wanted[rank - 1].placement:
            places.append((rank, _placement.said(w.options)))
    return places


class Gang:
    """All ranks of a group, called together."""

    def __init__(self, handles):
        self.handles = list(handles)
        first = self.handles[0]
        self._session, self._info = first._session, first._info
        self._methods = self._session.client.group(self._info["group"])._methods

    @classmethod
    def of(cls, handles):
        """Returns the gang of these actors, in their order. None: they are not a gang."""
        infos = [getattr(handle, "_info", {}) for handle in handles]
        if not infos or [i.get("rank") for i in infos] != list(range(infos[0].get("world", 0))) or len(
                {i["group"] for i in infos}) != 1:
            return None
        return cls(handles)

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return Gang, (self.handles,)

    def has(self, name):
        """Whether all ranks can be called together with this name, with a batch."""
        return name in self._info["named"]

    def is_behind(self, args=()):
        """Whether a call has to wait for arguments. Then each rank gets its own, in the order of its calls."""
        return any(is_ours(a) and not a._promise.done() for a in args) or any(h._calls().waits() for h in self.handles)

    def environment(self, names):
        """The values of variables of rank 0."""
        return self._start("environment", {"rank": 0}, (names,)).result()

    # Calls

    def _number(self):
        return f"{self._session.process}.{_PREFIX}-{next(_NUMBERS)}"

    def each(self, name, pieces, index):
        """Returns references to the results of all ranks. pieces: [(args, kwargs)]; index: the number of each rank's
        piece. Returns None if they are too long for one call.
        """
        number = self._number()
        whole = _Whole(len(self.handles))
        try:
            with _refs.taking() as refs:
                future = self._start_each(name, number, [packed_arguments(*piece) for piece in pieces], index)
            if future is None:
                return None
            whole.keeps = refs
            self._follow(whole, future, number, range(len(self.handles)))
        except ArgumentFailed as e:
            whole.settle(error=e.error)
        except (TypeError, ValueError, RuntimeError, _errors.Error) as e:
            whole.settle(error=self._explained(e))
        return self._refs(whole)

    def _start_each(self, name, number, packed, index):
        method, head = (name, (number,)) if name in self._info["named"] else ("all", (name, number))
        if len(packed) == 1:
            return self._start(method, {"dispatch": "ONE_TO_ALL", "execute": "ALL"}, (*head, *packed))
        bodies = [encode_call((*head, one), {}, name) for one in packed]
        if sum(body.len for body in bodies) > _LIST_BYTES:
            return None
        options = {"dispatch": "SPLIT", "execute": "ALL", "split": {"index": index, "elements": True}}
        return _call.start_list(self._session.client, self._methods.get(method, options), bodies)

    def rows(self, name, batch, index, wanted, one):
        """Calls with a batch that the proxy splits: a piece for each number in `index`, and the results of the
        `wanted` ranks. one: returns (True, the result that the proxy has joined), or (False, the list of results).
        Otherwise returns references to each of them.
        """
        number, whole = self._number(), _Whole(len(wanted))
        options = {"dispatch": "SPLIT", "execute": "ALL", "split": {"index": index}, "collect": {"ranks": wanted, "join": False}}
        try:
            future = self._start(name, options, (_rows.send(batch, number, wanted),))
        except (TypeError, ValueError, RuntimeError, _errors.Error) as e:
            raise self._explained(e) from None
        if not one:
            self._follow(whole, future, number, wanted)
            return self._refs(whole)
        error = future.exception()
        if error is not None:
            raise self._explained(error)
        return self._joined(number, wanted, future.result())

    def _start(self, method, options, args):
        return _call.start(self._session.client, self._methods.get(method, options), args)

    def _follow(self, whole, future, number, ranks):
        whole.follow(future, _Once(functools.partial(self._taken, number, ranks)))

    def _refs(self, whole):
        return [ObjectRef(_OfRank(whole, i)) for i in range(whole.size)]

    # Results

    def _taken(self, number, ranks, future):
        """Returns ([(value, error)] of these ranks, error)."""
        error = future.exception()
        if error is not None:
            return None, self._explained(error)
        try:
            return [opened(r) for r in self._fetched(number, ranks, future.result())], None
        except _errors.Error as e:
            return None, self._explained(e)

    def _fetched(self, number, ranks, results):
        """Returns the results, and fetches those that ranks have kept because they are long."""
        asked = {i: self._start("take", {"rank": rank}, (number,)) for i, (rank, r) in enumerate(zip(ranks, results))
                 if type(r) is dict}
        return [_as_packed(asked[i].result()) if i in asked else r for i, r in enumerate(results)]

    def _joined(self, number, ranks, results):
        likes = {r[_rank.LIKE] if type(r) is dict else None for r in results}
        try:
            if len(ranks) > 1 and len(likes) == 1 and None not in likes:
                options = {"dispatch": "SPLIT", "execute": "ALL", "collect": {"ranks": ranks, "join": True}}
                return True, self._start("take", options, (number,)).result()
            pairs = [opened(r) for r in self._fetched(number, ranks, results)]
        except _errors.Error as e:
            raise self._explained(e) from None
        for _, error in pairs:
            if error is not None:
                raise error
        return False, [value for value, _ in pairs]

    def _explained(self, e):
        rank = getattr(e, "rank", None)
        return self.handles[rank or 0]._calls()._explained(e)


def _as_packed(value):
    """Returns the result that a rank has kept: a batch, or a list or packed result."""
    return value if type(value) in (list, _packing.Packed, _packing.Raised) else _packing.Packed(([value],))


class _Once:
    """The outcome of a call. Several threads may ask for it, but it is taken from the ranks once."""

    def __init__(self, take):
        self._take, self._lock, self._outcome = take, threading.Lock(), None

    def __call__(self, future):
        with self._lock:
            if self._outcome is None:
                self._outcome = self._take(future)
            return self._outcome


class _Whole(Promise):
    """The results of all wanted ranks: [(value, error)]."""

    __slots__ = ("size",)

    def __init__(self, size):
        super().__init__()
        self.size = size


class _OfRank(Promise):
    """The result of one rank."""

    __slots__ = ("_whole", "_i")

    def __init__(self, whole, i):
        super().__init__()
        self._whole, self._i = whole, i

    def _take(self):
        if not self._settled:
            pairs, error = self._whole.outcome()
            self._store(*((None, error) if error is not None else pairs[self._i]))

    def done(self):
        return self._settled or self._whole.done()

    def wait(self, timeout=None):
        if not self._settled and not self._whole.wait(timeout):
            return False
        self._take()
        return True

    def _source(self):
        return self._whole

    def cancel(self):
        """The other ranks should continue."""
