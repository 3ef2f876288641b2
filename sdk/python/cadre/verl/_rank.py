# SPDX-License-Identifier: Apache-2.0
"""One rank of a worker group of verl: an actor of cadre.ray that can be called alone, or by one call together with
the others. It also has verl's own methods under their names.
"""

import functools
import os

from .. import _method, _value
from ..ray import _packing, _refs, _worker
from . import _rows

_ALL_BYTES, _ONE_BYTES = 32 << 20, 1 << 20  # of results that the proxy holds at the same time, and of one result
LEFT, LIKE = "left", "like"  # keys of the stand-in for a result that is too long to travel at once


class Rank(_worker.Actor):
    def __init__(self):
        super().__init__()
        self.left = {}  # number of a call -> its result, until the client takes it
        self.room = min(_ONE_BYTES, _ALL_BYTES // _method.world_size())
        self.session.said["name"] = self.session.ask("actor", self.id)["name"]

    @_method.register(concurrency=("control", 2))
    def take(self, number):
        """Takes the result that is too long to come together with the others."""
        return self.left.pop(number, None)

    @_method.register(concurrency=("control", 2))
    def environment(self, names):
        return [os.environ.get(name) for name in names]

    def _find(self, name):
        if "_fwmn_" in name:
            return functools.partial(self.object._fuw_execute, name)
        return super()._find(name)

    def _called(self, args):
        """Returns (number, packed arguments, function that makes the answer) of a call to all ranks: a batch, or the
        first two.
        """
        if len(args) > 1:
            number, packed = args
            return number, packed, functools.partial(self._give, number)
        value, number, wanted = _rows.receive(args[0])
        give = functools.partial(self._give, number) if wanted is None or _method.rank() in wanted else _nothing
        return number, _packing.Packed((([value], {}),)), give

    def _give(self, number, value):
        with _refs.taking(hand_over=True):
            body = _value.encode_result(_packing.pack([value]))
        if body.len <= self.room:
            return body
        body, like = _rows.body_of(value) or (body, None)
        self.left[number] = body
        return {LEFT: body.len, LIKE: like}


def _nothing(value):
    """The answer of a rank whose result the client does not want."""


def _of_all(name):
    """A method with which all ranks are called together; name=None: the name comes with the call."""
    if _worker.IS_ASYNC:
        async def run(self, *args):
            called, args = (name, args) if name else (args[0], args[1:])
            number, packed, give = self._called(args)
            return await self._run_async(number, called, packed, give)
    else:
        def run(self, *args):
            called, args = (name, args) if name else (args[0], args[1:])
            number, packed, give = self._called(args)
            return self._run(number, called, packed, give)
    return run


def _add_methods():
    register = functools.partial(_method.register, concurrency=_worker.lane())
    Rank.all = register()(_of_all(None))
    for name, dispatch, execute in _worker._SAID["gang"]["methods"]:
        setattr(Rank, name, register(dispatch=dispatch, execute=execute)(_of_all(name)))


TAKEN = frozenset((*dir(Rank), "all", "left", "room", "session", "running", "begun", "lock", "id", "group", "how", "object", "is_made"))
if _worker._SAID.get("gang"):
    _add_methods()
