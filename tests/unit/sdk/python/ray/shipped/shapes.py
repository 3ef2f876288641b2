# SPDX-License-Identifier: Apache-2.0
"""A module of the program shipped.py, which workers only have from its working_dir."""


class TooSmall(Exception):
    def __init__(self, side):
        super().__init__(f"a side of {side} is too small")
        self.side = side


class Square:
    def __init__(self, side):
        if side <= 0:
            raise TooSmall(side)
        self.side = side

    def area(self):
        return self.side**2
