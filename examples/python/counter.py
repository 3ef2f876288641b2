# SPDX-License-Identifier: Apache-2.0
"""Futures, state, stored values, retries and the end of a worker: `python3 counter.py` in this folder."""

import cadre
from sums import add, fails


class Counter:
    def __init__(self):
        self.value = 0

    def increment(self):
        self.value += 1
        return self.value

    def get_value(self):
        return self.value


if __name__ == "__main__":
    with cadre.local(cpus=2) as client:
        print(client.get([add.start(1, 2)]))
        print(client.get(client.put({"a": 1})))
        print(fails(2), "tries")  # it fails twice
        try:
            fails(9)
        except ConnectionError as e:
            print(e.cause)  # of the first try and three more

        counter = client.Group("counter:Counter", restart="Never")
        first, second = (counter.increment.on(0).start() for _ in range(2))
        ready, rest = cadre.wait([first, second], num_returns=2)
        print([future.result() for future in ready], rest, counter.get_value.on(0)())
        counter.kill(0)
        try:
            counter.get_value()
        except cadre.Unavailable as e:
            print(type(e).__name__)
