#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The directory of cadre.ray, without processes around it."""

import asyncio
import concurrent.futures
import gc
import types
import unittest
import unittest.mock

from cadre import _value
from cadre.ray import _actor, _packing, _refs, _session, _worker
from cadre.ray._directory import Directory
from python_case import main


def sent(body):
    """A body as its receiver opens it."""
    return _value.decode(bytearray(b"".join(map(bytes, body.parts))), True)


class Counting(unittest.TestCase):
    """Which values the directory keeps. All processes are this one, and messages arrive at once."""

    def setUp(self):
        self.directory, self.asked = Directory(), []
        session = types.SimpleNamespace(ask=self.ask, tell=self.tell, later=lambda f, *args: f(*args), start=self.start, said={},
                                        process="p", closed=False, close=lambda: None)
        self.enterContext(unittest.mock.patch.object(_session, "_current", session))
        gc.disable()  # the end of a reference is a message, which must not come while another one is handled
        self.addCleanup(gc.enable)
        self.addCleanup(gc.collect)  # references that are still there find the session

    def ask(self, method, *args):
        return asyncio.run(getattr(self.directory, method)(*args))

    def tell(self, method, *args, keeps=()):
        return self.ask(method, *args)

    def start(self, method, *args):
        """A question that answer() answers."""
        future = concurrent.futures.Future()
        self.asked.append((future, method, *args))
        return future

    def answer(self):
        future, *question = self.asked.pop()
        future.set_result(self.ask(*question))

    def values(self):
        gc.collect()
        return self.directory.values

    def reference(self, value):
        promise = _refs.Promise()
        promise.settle(value)
        return _refs.ObjectRef(promise)

    def test_a_reference_in_a_result_is_held_until_its_receiver_drops_it(self):
        body = _worker._result([self.reference("inner")])
        self.assertEqual(len(self.values()), 1)  # on its way, nobody else has it
        [[got]], body = _packing.unpack(sent(body)), None
        self.assertEqual(_refs.get(got), "inner")
        del got
        self.assertEqual(self.values(), {})

    def test_a_future_of_a_reference_holds_it_until_the_value_is_there(self):
        promise = _refs.Promise()
        [[got]] = _packing.unpack(sent(_worker._result([_refs.ObjectRef(promise)])))
        future, got = got.future(), None
        self.assertEqual(len(self.values()), 1)
        promise.settle("late")
        self.answer()
        self.assertEqual(future.result(), "late")
        self.assertEqual(self.values(), {})

    def test_a_handle_that_comes_while_the_last_one_goes_is_counted(self):
        session, ended = _session.current(), []
        info = {"group": "g", "class": "C", "ordered": True, "methods": {}, "restarts": 0}
        session.calls, session.client, session.later = {}, unittest.mock.Mock(), lambda *call: ended.append(call)
        start = session.client.group.return_value.start
        start.return_value.exception.return_value = None
        start.return_value.add_done_callback = lambda f: f(start.return_value)

        def let_go():
            while ended:
                f, *args = ended.pop()
                f(*args)

        def tell(*message):
            let_go()  # the other thread may come at each message
            self.ask(*message)

        session.tell = tell
        self.ask("hold", ["actor"])
        handle = _actor.ActorHandle(session, "actor", info, True)
        body = _worker._result(handle)
        del handle
        [got] = _packing.unpack(sent(body))
        let_go()
        self.assertEqual(self.values()["actor"].holders, 1)
        del got
        let_go()
        self.assertEqual(self.values(), {})

    def test_a_handle_that_could_not_be_counted_is_not_dropped(self):
        session, info = _session.current(), {"group": "g", "class": "C", "ordered": True, "methods": {}, "restarts": 0}
        session.calls, session.client = {}, unittest.mock.Mock()
        self.ask("hold", ["actor"])  # by somebody else
        with unittest.mock.patch.object(session, "ask", side_effect=TimeoutError), self.assertRaises(TimeoutError):
            _actor._handle_from("actor", info, True, False)
        gc.collect()
        self.assertEqual((session.calls, self.values()["actor"].holders), ({}, 1))
        session.client.group.return_value.start.assert_not_called()

    def test_references_in_a_value_are_held_as_long_as_the_value(self):
        for make in _refs.put, self.reference:
            outer = make([self.reference("inner"), make([self.reference("innermost")])])
            with _refs.taking() as keeps:
                body = _value.encode_result(_packing.Packed(([[outer]],)))
            [[got]] = sent(body)[0]
            del outer, keeps  # only the receiver has a reference now, and has not opened it yet
            self.assertEqual(len(self.values()), 4)
            first, second = _refs.get(got)
            self.assertEqual((_refs.get(first), _refs.get(_refs.get(second)[0])), ("inner", "innermost"))
            del got, first, second
            self.assertEqual(self.values(), {})

    def test_references_in_a_value_are_kept_until_the_directory_has_it(self):
        session, put = _session.current(), []
        session.tell = lambda *message, keeps=(): put.append(keeps) if message[0] == "put" else self.tell(*message)
        for make in _refs.put, self.reference:
            inner = self.reference("inner")
            _packing.to_bytes(make([inner]))
            self.assertIn([inner], put)

    def test_a_reference_in_a_result_that_does_not_pickle_is_not_held(self):
        reference = self.reference("inner")
        with self.assertRaises(TypeError):
            _worker._result([reference, (x for x in ())])
        del reference
        self.assertEqual(self.values(), {})


class Ending(unittest.TestCase):
    def test_the_group_of_an_actor_that_has_crashed_is_deleted_after_the_last_handle(self):
        async def deleted():
            directory = Directory()
            directory.end_group = unittest.mock.Mock()
            await directory.enter("actor", {"name": "one", "namespace": "n", "group": "g", "detached": False})
            await directory.lives("actor", "node")
            await directory.ended("actor", "it has crashed")
            self.assertIsNone(await directory.find("one", "n"))
            directory.end_group.assert_not_called()
            return await directory.drop(["actor"]), directory.end_group.call_args_list

        self.assertEqual(asyncio.run(deleted()), (["g"], [unittest.mock.call("g")]))

    def test_a_group_ends_with_the_last_of_its_actors(self):
        async def dropped():
            directory = Directory()
            directory.end_group = unittest.mock.Mock()
            await directory.enter_gang(["a", "b"], ["", ""], {"namespace": "n", "group": "g", "detached": False})
            return await directory.drop(["a", "unknown"]), await directory.drop(["b"])

        self.assertEqual(asyncio.run(dropped()), ([], ["g"]))


class Fetching(unittest.TestCase):
    def test_a_value_that_is_there_is_found_without_waiting(self):
        async def found():
            directory = Directory()
            await directory.hold(["x"])
            before = await directory.fetch("x", 0)
            await directory.say("x", "told")
            return [before, *[await directory.fetch("x", wait) for wait in (0, 5)]]

        self.assertEqual(asyncio.run(found()), [None, ("said", "told"), ("said", "told")])


class PlacementGroups(unittest.TestCase):
    def test_the_last_ones_that_were_removed_are_known(self):
        async def known():
            directory = Directory()
            for name in "abcd":
                await directory.enter_group(name, {"name": "", "bundles": [{"CPU": 1}], "strategy": "PACK"})
            for name in "bcd":
                await directory.tell_group(name, "REMOVED")
            return {name: record["state"] for name, record in (await directory.all_groups()).items()}

        with unittest.mock.patch("cadre.ray._directory._REMOVED_MAX", 2):
            self.assertEqual(asyncio.run(known()), {"a": "PENDING", "c": "REMOVED", "d": "REMOVED"})


if __name__ == "__main__":
    main()
