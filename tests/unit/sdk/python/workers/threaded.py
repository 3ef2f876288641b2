# SPDX-License-Identifier: Apache-2.0
"""A module that cannot be preloaded: its import leaves a thread behind."""

import threading

threading.Thread(target=threading.Event().wait, daemon=True, name="poller").start()
