# SPDX-License-Identifier: Apache-2.0
"""A method of a group, as an attribute of the group: `group.add(10)`."""


_MODES = ("rank", "dispatch", "execute")


class BoundMethod:
    """Call it, or start() it. Groups make it; threads may share it."""

    __slots__ = ("group", "name", "_options", "_said")

    def __init__(self, group, name, options=None, said=None):
        self.group = group
        self.name = name
        self._options = options or {}
        self._said = said  # the modes that its class registered, if the group was made from the class itself

    def __call__(self, *args, **named):
        """Calls the method and waits for the results. Arguments come by position, or all by name. With blocking=False
        it is start().
        """
        said = self._said
        if said and (said.at_caller or not said.blocking):
            future = self.start(*args, **named)
            return future._result_or_give_up() if said.blocking else future
        return self.group.call(self.name, *args, **self._with(args, named))

    def start(self, *args, **named):
        """Sends the call, and returns its Future."""
        if self._said and self._said.at_caller and not any(name in self._options for name in _MODES):
            return self._start_split(*self._said.at_caller, args, named)
        return self.group.start(self.name, *args, **self._with(args, named))

    def _start_split(self, split, collect, args, named):
        """Splits and collects with functions of the class."""
        pieces = split(self.group, *args, **named)
        per_rank = [piece if type(piece) is dict else _per_rank([piece])[0] for piece in pieces]
        future = self.group.start(self.name, per_rank=per_rank, **self._options)
        if collect:
            future._join = lambda results: collect(self.group, results)
        return future

    async def aio(self, *args, **named):
        """The call for asyncio: if it is canceled, it cancels the call."""
        return await self.start(*args, **named)

    def each(self, values):
        """Element i of the list is for rank i: its only argument, or, if it is a tuple, all of its arguments."""
        return self.group.call(self.name, per_rank=_per_rank(values), **self._options)

    def start_each(self, values):
        """Like each(), but returns a Future."""
        return self.group.start(self.name, per_rank=_per_rank(values), **self._options)

    def on(self, rank):
        """The same method, of this rank only."""
        return self.options(rank=rank)

    def options(self, **options):
        """The same method, called with these options of Group.call(), such as timeout=, keep= or dispatch=."""
        return BoundMethod(self.group, self.name, {**self._options, **options}, self._said)

    def _with(self, args, named):
        if not named:
            return self._options
        if args:
            raise TypeError(f"{self.name}() gets its arguments by position or by name, not both; options of the call go "
                            f"into .{self.name}.options(...)")
        return {**self._options, "args": named}

    def __repr__(self):
        return f"<method {self.name} of {self.group!r}>"


def _per_rank(values):
    return [list(v) if type(v) is tuple else [v] for v in values]
