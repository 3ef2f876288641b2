# SPDX-License-Identifier: Apache-2.0
class Actor:
    def __init__(self, a):
        self.a = a

    def get(self):
        return self.a


class Critic:
    def __init__(self, b=2):
        self.b = b

    def get(self):
        return self.b


class Fragile:
    def __init__(self):
        raise ValueError("no weights at /nowhere")

    def get(self):
        return None
