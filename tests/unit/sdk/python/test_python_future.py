#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Futures at unusual moments: at Ctrl-C, while a callback of the client raises, after the client was closed."""

import asyncio
import queue
import threading
import time
import unittest.mock

import cadre
import cadre._future
from cadre._unsent import HoldsUp
from python_case import SLOW_S, GroupCase, main


def in_time(f):
    """Returns the result of f(), or what it raises. None: it still waits after 20 s."""
    told = queue.SimpleQueue()

    def run():
        try:
            told.put(f())
        except BaseException as e:
            told.put(e)

    threading.Thread(target=run, daemon=True).start()
    try:
        return told.get(timeout=20)
    except queue.Empty:
        return None


class Moments(GroupCase):
    module, ranks = "WATCHED_SO", 2

    def test_callbacks_are_called_however_long_ago_the_client_was_closed(self):
        client, told = self.local.connect(), queue.SimpleQueue()
        futures = [client.group("g").start("trace") for _ in range(3)]
        cadre.wait(futures, 3)
        client.close()
        for f in futures:
            f.add_done_callback(told.put)
            self.assertIs(told.get(timeout=20), f)
            thread = client._watcher
            if thread:
                thread.join(20)
        self.assertEqual([f.result() for f in futures], ["none"] * 3)

    def test_a_result_outlives_ctrl_c_while_it_is_copied(self):
        copy = cadre._future.copy
        copied = unittest.mock.Mock(side_effect=[KeyboardInterrupt, unittest.mock.DEFAULT], wraps=copy)
        f = self.group.start("trace")
        with unittest.mock.patch("cadre._future.copy", copied), unittest.mock.patch("cadre._future._SHORT", 0):
            self.assertRaises(KeyboardInterrupt, f.result)
            self.assertEqual((f.result(), f.done()), ("none", True))

    def test_a_signal_handler_asks_for_the_result_that_its_own_thread_takes(self):
        for at in "_take", "copy", "decode":
            f, told, goes_on = self.group.start("trace"), [], getattr(cadre._future, at)
            cadre.wait([f])

            def interrupted(*args):
                done = goes_on(*args)
                if not told:
                    told.append("is asked")
                    told.append(f.result())
                return done

            with unittest.mock.patch(f"cadre._future.{at}", interrupted), unittest.mock.patch("cadre._future._SHORT", 0):
                self.assertEqual((in_time(f.result), told), ("none", ["is asked", "none"]), at)

    def test_ctrl_c_while_a_call_begins_to_wait_for_its_arguments_leaves_nothing_behind(self):
        held = self.group.start("hold")
        with unittest.mock.patch("cadre._future.Future.add_done_callback", side_effect=KeyboardInterrupt):
            self.assertRaises(KeyboardInterrupt, self.group.start, "say", held)
        self.assertEqual(self.client.pending, 1)
        self.assertTrue(held.cancel())

    def test_a_call_that_is_canceled_while_the_thread_for_callbacks_tries_to_send_it_is_not_sent_again(self):
        tried, held = [], self.group.start("hold")

        def canceled(future):
            tried.append(future.cancel())
            raise HoldsUp(lambda info: None)

        f = cadre._future.Future.behind(self.client, self.group._methods.get("say", {}), [held], canceled)
        held.cancel()
        self.assertRaises(cadre.Canceled, f.result, 20)
        self.assertEqual(tried, [True])

    def test_what_a_callback_raises_comes_out_of_all_that_waits(self):
        def refuse(up, why):
            if up:
                raise KeyError("of the callback")

        for wait in (lambda held, said: said.result(), lambda held, said: cadre.wait([held, said]),
                     lambda held, said: list(cadre.as_completed([held]))):
            with self.local.connect(on_connection=refuse) as client:
                while not client._raised:
                    time.sleep(0.01)
                held = client.group("g").start("hold")
                said = client.group("g").start("say", held)
                self.assertEqual(repr(in_time(lambda: wait(held, said))), "KeyError('of the callback')")
                held.cancel()

    def test_a_callback_that_would_end_its_thread_does_not_keep_others_from_being_called(self):
        told = queue.SimpleQueue()
        for raised in SystemExit("of the callback"), asyncio.CancelledError(), KeyError("of the callback"):
            held, other = self.group.start("hold"), self.group.start("hold")
            held.add_done_callback(unittest.mock.Mock(side_effect=raised))
            with unittest.mock.patch("sys.excepthook", lambda kind, e, traceback: told.put(e)):
                held.cancel()
                self.assertIs(told.get(timeout=SLOW_S), raised)
            other.add_done_callback(told.put)
            other.cancel()
            self.assertIs(told.get(timeout=SLOW_S), other)

    def test_the_end_of_a_block_in_a_callback_does_not_wait_for_its_own_thread(self):
        client, ended, told = self.local.connect(), [], queue.SimpleQueue()
        self.addCleanup(client.close)

        def block(_):
            try:
                with client:
                    ended.append(client.group("g").start("say", client.group("g").start("hold", timeout=0.3)))
            except RuntimeError as e:
                told.put(str(e))

        client.group("g").start("trace").add_done_callback(block)
        self.assertRegex(told.get(timeout=20), r"a callback cannot wait for say\(\)")
        self.fails(cadre.Canceled, "not sent: the client was closed", ended[0].result)


if __name__ == "__main__":
    main()
