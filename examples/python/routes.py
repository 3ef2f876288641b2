# SPDX-License-Identifier: Apache-2.0
"""An argument with a structure. Beside examples/routes, which is in C: `python3 routes.py` in this folder."""

import cadre


class Routes:
    def __init__(self):
        self.routes = []

    def set(self, routes):
        for i, route in enumerate(routes):
            if not 1 <= route["weight"] <= 1000:
                raise ValueError(f"route {i}: weight is {route['weight']}: 1 to 1000")
        self.routes = [route["to"] for route in routes for _ in range(route["weight"])]
        return len(routes)

    def pick(self, number):
        return self.routes[number % len(self.routes)]


if __name__ == "__main__":
    with cadre.local() as client:
        routes = client.Group("routes:Routes")
        print(routes.set([{"to": "small", "weight": 3}, {"to": "large", "weight": 1}]), routes.pick(2), routes.pick(3))
        try:
            routes.set([{"to": "small", "weight": 0}])
        except ValueError as e:
            print(e.cause)
