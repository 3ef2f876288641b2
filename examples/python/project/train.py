# SPDX-License-Identifier: Apache-2.0
"""A class in a folder that travels; shipping.py sends it."""

import helper


class Trainer:
    def __init__(self):
        with open("config.txt", encoding="utf-8") as f:  # ranks begin in the folder
            self.config = f.read().strip()

    def work(self):
        return helper.say(self.config)
