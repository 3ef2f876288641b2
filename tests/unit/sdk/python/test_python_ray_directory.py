#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The directory of cadre.ray, without processes around it."""

import asyncio
import unittest

from cadre.ray._directory import Directory
from python_case import main


class Fetching(unittest.TestCase):
    def test_a_value_that_is_there_is_found_without_waiting(self):
        async def found():
            directory = Directory()
            await directory.hold(["x"])
            before = await directory.fetch("x", 0)
            await directory.say("x", "told")
            return [before, *[await directory.fetch("x", wait) for wait in (0, 5)]]

        self.assertEqual(asyncio.run(found()), [None, ("said", "told"), ("said", "told")])


if __name__ == "__main__":
    main()
