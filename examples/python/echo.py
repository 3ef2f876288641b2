# SPDX-License-Identifier: Apache-2.0
"""Gives back what it was given, whatever that is. Beside examples/echo, which is in C: `python3 echo.py` in this folder."""

import cadre


class Echo:
    def echo(self, value):
        return value


if __name__ == "__main__":
    with cadre.local() as client:
        echo = client.Group("echo:Echo")
        print(echo.echo([1, "two", None]), echo.echo({3, 4}), echo.echo(b"bytes"), echo.echo(float("inf")))
