# SPDX-License-Identifier: Apache-2.0
"""A class whose methods are functions in C: they have no frame in a traceback, and some have no signature."""

import os

import cadre


class _Beside:
    """pop(), in a concurrency group."""

    def __get__(self, made, cls=None):
        return self if made is None else made.pop


class Table(dict):
    pop_beside = cadre.register(concurrency="beside")(_Beside())

    def pid(self):
        return os.getpid()
