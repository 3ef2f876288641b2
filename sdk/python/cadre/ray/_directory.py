# SPDX-License-Identifier: Apache-2.0
"""The data that the processes of a program share: names of actors, how each is made, and values whose references went
from one process to another. One rank of its own group runs it, on one asyncio loop.
"""

import asyncio
import os

from .. import _client, _errors, _method

_POLL_S = 20  # how long a question waits here; then the asker asks again
_SHARE = 0.3  # of the memory of this machine, for values
_REMOVED_MAX = 1000  # so many placement groups that were removed are still listed
_AT_ONCE = 5000  # questions that wait at the same time; further ones queue up until then
ALIVE, DEAD = "ALIVE", "DEAD"


def _room():
    given = os.environ.get("CADRE_RAY_STORE_BYTES")
    return int(given) if given else int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * _SHARE)


class _Value:
    def __init__(self):
        self.holders = 0
        self.body = None  # ("value", tensor) or ("error", pickle)
        self.size = 0
        self.inner = ()  # references in the body, which holds them
        self.there = asyncio.Event()


def _asks(f):
    """A method that may wait. It has its own lane, so the call that ends the wait can run."""
    return _method.register(concurrency=("ask", _AT_ONCE))(f)


def _tells(f):
    return _method.register(concurrency=("tell", _AT_ONCE))(f)


class Directory:
    def __init__(self):
        self.values, self.bytes, self.room = {}, 0, _room()
        self.actors, self.names, self.groups = {}, {}, {}
        self.living = {}  # a group of ranks -> its actors that are not dead
        self.client = None  # its own client, when it has a group to delete
        self.told = {}  # id of an actor -> an Event: something about it has changed

    # Values

    @_tells
    async def hold(self, ids):
        """Another process has these references."""
        for name in ids:
            self.values.setdefault(name, _Value()).holders += 1

    @_tells
    async def drop(self, ids):
        """A process no longer has these references. Returns the groups of actors that ended for it."""
        ids, ended = list(ids), []
        while ids:
            name = ids.pop()
            value = self.values.get(name)
            if value is None:
                continue
            value.holders -= 1
            if value.holders <= 0:
                del self.values[name]
                self.bytes -= value.size
                ids += value.inner
                if name in self.actors and await self.close(name):
                    ended.append(self.actors[name]["group"])
        return ended

    @_tells
    async def put(self, name, kind, body, inner=()):
        """Stores the value of a reference. inner: the references in it, which nobody else may have when somebody opens
        it. Returns False if nobody has the reference any more.
        """
        value = self.values.get(name)
        if value is None or value.body is not None:
            return False
        size = body.data.nbytes
        if self.bytes + size > self.room:
            kind = "full"
            body = (f"a value of {size} bytes has no room beside the {self.bytes} that references of this program stand for "
                    f"({self.room} at most): drop references, or set CADRE_RAY_STORE_BYTES")
            size, inner = 0, ()
        await self.hold(inner)
        value.body, value.size, value.inner = (kind, body), size, inner
        self.bytes += size
        value.there.set()
        return True

    @_asks
    async def fetch(self, name, wait=_POLL_S):
        """Returns (kind, body), or None if it is not there yet."""
        value = self.values.get(name)
        if value is None:
            return ("lost", f"the object {name} is gone: its last reference was dropped")
        try:
            if value.body is None:  # wait_for() with 0 does not look
                await asyncio.wait_for(value.there.wait(), min(wait, _POLL_S))
        except asyncio.TimeoutError:
            return None
        return value.body

    @_asks
    async def look(self, names, wait=_POLL_S):
        """Returns which of the values are there. Waits for the first one."""
        end = asyncio.get_running_loop().time() + min(wait, _POLL_S)
        while True:
            there = [n for n in names if n not in self.values or self.values[n].body is not None]
            left = end - asyncio.get_running_loop().time()
            if there or left <= 0:
                return there
            waits = [asyncio.ensure_future(self.values[n].there.wait()) for n in names]
            try:
                await asyncio.wait(waits, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for w in waits:
                    w.cancel()

    # Actors

    @_tells
    async def enter(self, actor, record, get_if_exists=False):
        """Registers an actor before it is made. If another one has its name already, returns the record of that one."""
        key = record.get("namespace"), record.get("name")
        if key[1]:
            other = self.names.get(key)
            if other is not None:
                return {"actor": other, **self.actors[other]}
        self.know(actor, record)
        return None

    @_tells
    async def enter_gang(self, actors, names, record):
        """Does the same for the ranks of one group: for all, or for none. Returns a name that is taken already."""
        for name in names:
            if (record["namespace"], name) in self.names:
                return name
        for rank, (actor, name) in enumerate(zip(actors, names)):
            self.know(actor, {**record, "name": name, "rank": rank})
        return None

    def know(self, actor, record):
        if record["name"]:
            self.names[record["namespace"], record["name"]] = actor
        self.actors[actor] = {**record, "state": "PENDING_CREATION", "why": None}
        self.living.setdefault(record["group"], set()).add(actor)
        if not record["detached"]:
            self.values.setdefault(actor, _Value()).holders += 1

    @_tells
    async def make(self, actors, how):
        """Stores the data for the constructors. It may come before or after their processes ask."""
        for actor in actors:
            if actor in self.actors:
                self.actors[actor]["how"] = how
                self.news(actor)

    @_asks
    async def how(self, actor):
        """Returns the data of make(). None: it has not come yet, because its process may be faster than enter().
        False: the actor is dead.
        """
        record = self.actors.get(actor, {})
        if record.get("state") == DEAD:
            return False
        if "how" not in record:
            event = self.told.setdefault(actor, asyncio.Event())
            try:
                await asyncio.wait_for(event.wait(), _POLL_S)
            except asyncio.TimeoutError:
                return None
        return self.actors.get(actor, {}).get("how")

    def news(self, actor):
        event = self.told.pop(actor, None)
        if event:
            event.set()

    @_tells
    async def lives(self, actor, node):
        """The constructor of the actor has returned."""
        record = self.actors.get(actor)
        if record and record["state"] != DEAD:
            record.update(state=ALIVE, node=node)

    @_tells
    async def ended(self, actor, why):
        """The actor is dead, and its name is free. Returns whether no actor of its group lives any more."""
        record = self.actors.get(actor)
        if record is None:
            return True
        living = self.living.get(record["group"], set())
        if record["state"] != DEAD:
            record.update(state=DEAD, why=why)
            record.pop("how", None)
            key = record.get("namespace"), record.get("name")
            if self.names.get(key) == actor:
                del self.names[key]
            living.discard(actor)
            if not living:
                self.living.pop(record["group"], None)
            self.news(actor)
        return not living

    async def close(self, actor):
        """Nobody has a handle of the actor any more. Returns whether no actor of its group lives any more."""
        record = self.actors[actor]
        last = await self.ended(actor, "its last handle was dropped")
        if last:  # also if it has crashed: its group is still there
            await asyncio.get_running_loop().run_in_executor(None, self.end_group, record["group"])
        return last

    def end_group(self, group):
        if self.client is None:
            self.client = _client.connect(trust=True)
            self.client.of_worker = False
        try:
            self.client.group(group).close()
        except _errors.Error as e:
            if not isinstance(e, (_errors.NotFound, _errors.Gone)):
                print(f"the group {group} of an actor that nobody has any more was not deleted: {e}", flush=True)

    @_tells
    async def find(self, name, namespace):
        actor = self.names.get((namespace, name))
        return None if actor is None else {"actor": actor, **self.public(actor)}

    @_tells
    async def actor(self, actor):
        return self.public(actor) if actor in self.actors else None

    @_tells
    async def cause_of_death(self, actor):
        """Says why the actor, or an earlier rank of its group, died. None: it is not known."""
        record = self.actors.get(actor)
        if record is None or record["why"] or "rank" not in record:
            return record and record["why"]
        for other in self.actors.values():
            if other["group"] == record["group"] and other["why"]:
                return f"rank {other['rank']} of its group died: {other['why']}"
        return None

    def public(self, actor):
        return {k: v for k, v in self.actors[actor].items() if k != "how"}

    @_tells
    async def named(self, namespace):
        """Returns the names of actors, with their namespaces; namespace=None: of all namespaces."""
        return [[ns, name] for ns, name in self.names if namespace is None or ns == namespace]

    @_tells
    async def all_actors(self):
        return {actor: self.public(actor) for actor in self.actors}

    # Messages between the processes of a program

    @_tells
    async def say(self, key, value):
        self.values.setdefault(key, _Value()).body = ("said", value)
        self.values[key].there.set()

    @_tells
    async def unsay(self, key):
        self.values.pop(key, None)

    @_asks
    async def hear(self, key):
        """Returns the messages. None: there are none yet."""
        value = self.values.setdefault(key, _Value())
        try:
            await asyncio.wait_for(value.there.wait(), _POLL_S)
        except asyncio.TimeoutError:
            return None
        return value.body[1]

    # Placement groups

    @_tells
    async def enter_group(self, group, record):
        for other in self.groups.values():
            if record.get("name") and other["name"] == record["name"] and other["state"] != "REMOVED":
                return False
        self.groups[group] = {**record, "state": "PENDING"}
        return True

    @_tells
    async def tell_group(self, group, state):
        if group in self.groups:
            self.groups[group]["state"] = state
        for removed in [name for name, record in self.groups.items() if record["state"] == "REMOVED"][:-_REMOVED_MAX]:
            del self.groups[removed]

    @_tells
    async def all_groups(self):
        return self.groups
