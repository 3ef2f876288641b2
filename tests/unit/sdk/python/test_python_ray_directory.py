#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The directory of cadre.ray, without processes around it."""

import asyncio
import unittest
import unittest.mock

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
