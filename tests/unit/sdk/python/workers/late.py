# SPDX-License-Identifier: Apache-2.0
"""A module that starts a thread some time after it was imported."""

import signal
import threading


def _start(*_):
    threading.Thread(target=threading.Event().wait, daemon=True, name="latecomer").start()


signal.signal(signal.SIGUSR1, _start)
