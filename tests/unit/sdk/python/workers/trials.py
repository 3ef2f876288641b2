# SPDX-License-Identifier: Apache-2.0
"""The workers of test_python_worker.py."""

import asyncio
import ctypes
import os
import threading
import time

import cadre

print("this module prints while it is imported")


class Base:
    def inherited(self):
        return "from Base"


@cadre.worker
class Trials(Base):
    constant = 7

    def __init__(self, start=0, *, name="none"):
        self.start, self.name = start, name
        self.kept = []
        self.gate, self.released, self.seen = threading.Event(), threading.Event(), threading.Event()

    def add(self, x, y=1):
        return self.start + x + y

    def place(self):
        return [cadre.rank(), cadre.world_size(), cadre.local_rank(), cadre.device()]

    @staticmethod
    def static(x):
        return x

    @property
    def hidden(self):
        raise RuntimeError("nobody asks for this")

    def echo(self, *args, **kwargs):
        return kwargs or args

    def keep(self, value):
        self.kept.append(value)
        return len(self.kept)

    def kept_as(self, number):
        return self.kept[number]

    def thread(self):
        return threading.current_thread() is threading.main_thread()

    @cadre.register(concurrency=("beside", 2))
    def beside(self):
        return threading.current_thread().name

    @cadre.register(concurrency=("beside", 2))
    def open_gate(self):
        self.gate.set()

    @cadre.register(concurrency="waits")
    def wait_beside(self):
        return self.released.wait(1200)

    def hold_until_released(self):
        hold = ctypes.PyDLL(None).usleep
        while not self.released.is_set():
            hold(20000)
        return True

    def stop_here(self, x):
        breakpoint()
        return x

    @cadre.register(concurrency=("beside", 2))
    def release(self):
        self.released.set()

    def wait_for_gate(self):
        return self.gate.wait(1200)

    async def nap(self, seconds):
        await asyncio.sleep(seconds)
        return threading.current_thread().name

    async def fail_later(self):
        await asyncio.sleep(0)
        raise KeyError("later")

    def fail(self, kind="ValueError", text="no such luck"):
        raise __builtins__[kind](text)

    def fail_own(self):
        class OutOfTokens(RuntimeError):
            pass
        raise OutOfTokens("of tokens")

    def leave(self):
        raise SystemExit(3)

    def leave_without_words(self):
        class Wordless:
            def __repr__(self):
                raise ValueError("no words")
        raise SystemExit(Wordless())

    def leave_at_once(self):
        os._exit(7)

    def crash(self):
        ctypes.string_at(0)

    def until_canceled(self):
        while not cadre.canceled():
            time.sleep(0.01)
        self.kept.append("was canceled")
        self.seen.wait(1200)  # so that the stacks show this method, however late they are taken

    @cadre.register(concurrency=("beside", 2))
    def has_seen(self):
        self.seen.set()

    def hold_the_lock(self, seconds):
        ctypes.PyDLL(None).usleep(int(seconds * 1e6))  # a function that is called with Python's lock held
        return True

    def documented(self):
        """is documented

        in more than one line
        """

    def not_json(self):
        return {1, 2, 3}

    def lock(self):
        return threading.Lock()
