#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From the end of a dead leader's lease to the first decision of the next leader, with a load beside it.

    decisions.py --operator PROGRAM [--rounds N] [--pairs N] [--busy N]

Each pair of operators is for a namespace of its own. In each round the leader of each pair is killed, its group is edited,
and a watch sees when the status has the edit's generation: the first decision of the other one. The lease ends a lease
duration after the time of the last renewal that is in it. Then the killed one is started again, and stands by.
"""

import argparse
import datetime
import http.client
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time

GROUPS = "/apis/cadre.dev/v1alpha1/workergroups"
LEASES = "/apis/coordination.k8s.io/v1/leases"
MERGE = "application/merge-patch+json"
PATIENCE_S = 120


class Api:
    """The API server by way of `kubectl proxy`, and the newest state of groups and leases."""

    def __init__(self):
        self.proxy = subprocess.Popen(["kubectl", "proxy", "--port=0"], stdout=subprocess.PIPE, text=True)
        self.port = int(self.proxy.stdout.readline().rsplit(":", 1)[1])
        self.changed = threading.Condition()
        self.objects = {}
        for path in (GROUPS, LEASES):
            threading.Thread(target=self._watch, args=(path,), daemon=True).start()

    def close(self):
        self.proxy.terminate()
        self.proxy.wait()

    def request(self, method, path, body, content="application/json"):
        c = http.client.HTTPConnection("127.0.0.1", self.port)
        c.request(method, path, json.dumps(body), {"Content-Type": content})
        r = c.getresponse()
        text = r.read()
        if r.status >= 300:
            sys.exit(f"decisions.py: {method} {path}: {r.status}: {text.decode(errors='replace')[:300]}")

    def _watch(self, path):
        while True:
            c = http.client.HTTPConnection("127.0.0.1", self.port)
            c.request("GET", path + "?watch=1&timeoutSeconds=3600")
            r = c.getresponse()
            if r.status == 200:
                self._follow(path, r)
            time.sleep(0.2)  # a definition is established before its objects can be had

    def _follow(self, path, lines):
        for line in lines:
            o = json.loads(line)["object"]
            with self.changed:
                self.objects[path, o["metadata"].get("namespace")] = (o, time.time())
                self.changed.notify_all()

    def wait(self, what, found):
        """Waits until found() returns something other than None, and returns it."""
        end = time.monotonic() + PATIENCE_S
        with self.changed:
            while (result := found()) is None:
                if not self.changed.wait(max(0, end - time.monotonic())) and time.monotonic() > end:
                    sys.exit(f"decisions.py: {what}: not within {PATIENCE_S} s")
            return result


class Pair:
    def __init__(self, api, program, n, logs):
        self.api, self.program, self.n, self.logs = api, program, n, logs
        self.ns = f"pair-{n}"
        self.edits = 0
        self.operators = {}
        api.request("POST", "/api/v1/namespaces", {"metadata": {"name": self.ns}})
        api.request("POST", f"/api/v1/namespaces/{self.ns}/secrets", {"metadata": {"name": "cadre-keys"}})
        api.request("POST", f"/apis/cadre.dev/v1alpha1/namespaces/{self.ns}/workergroups", {
            "apiVersion": "cadre.dev/v1alpha1", "kind": "WorkerGroup", "metadata": {"name": "group"},
            "spec": {"replicas": 2, "runtime": "Plain", "template": {"spec": {"containers": [
                {"name": "worker", "image": "none", "resources": {"requests": {"cpu": "10m"}}}]}}}})
        for name in ("a", "b"):
            self.start(name)

    def start(self, name):
        port = 20000 + 4 * self.n + 2 * (name == "b")
        log = open(os.path.join(self.logs, f"{self.ns}-{name}"), "a")
        self.operators[name] = subprocess.Popen(
            [self.program, "--namespace", self.ns, "--leader-elect-namespace", self.ns, "--listen", f"127.0.0.1:{port}",
             "--http-address", f"127.0.0.1:{port + 1}"], env=os.environ | {"POD_NAME": name, "POD_NAMESPACE": self.ns},
            stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def lease(self):
        o, _ = self.api.objects.get((LEASES, self.ns), (None, 0))
        spec = o["spec"] if o else {}
        holder = (spec.get("holderIdentity") or "").split("_")[0]
        if holder not in self.operators:
            return None
        renewed = datetime.datetime.fromisoformat(spec["renewTime"].replace("Z", "+00:00")).timestamp()
        return holder, renewed + spec["leaseDurationSeconds"]

    def decided(self):
        """When it was seen, or None."""
        o, seen = self.api.objects.get((GROUPS, self.ns), (None, 0))
        if o and o.get("status", {}).get("observedGeneration") == o["metadata"]["generation"] and \
                o["spec"].get("maxRestarts", 0) >= self.edits:
            return seen
        return None

    def edit(self):
        self.edits += 1000
        self.api.request("PATCH", f"/apis/cadre.dev/v1alpha1/namespaces/{self.ns}/workergroups/group",
                         {"spec": {"maxRestarts": self.edits}}, MERGE)

    def kill_leader(self):
        """The leader's name."""
        name, _ = self.api.wait(f"{self.ns} has a leader", self.lease)
        self.operators[name].kill()
        self.operators[name].wait()
        return name

    def failover(self, dead):
        """Seconds from the end of the lease that the dead one had to the first decision of the other."""
        _, end = self.lease_of(dead)
        return self.api.wait(f"{self.ns}: a decision after the death of {dead}", self.decided) - end

    def lease_of(self, name):
        holder, end = self.lease()
        if holder != name:
            sys.exit(f"decisions.py: {self.ns}: {holder} leads before the lease of {name} was read")
        return holder, end

    def close(self):
        for o in self.operators.values():
            o.kill()
            o.wait()


def quantile(samples, q):
    return sorted(samples)[max(0, math.ceil(q * len(samples)) - 1)]


def measure(pairs, rounds):
    samples = []
    for _ in range(rounds):
        dead = [pair.kill_leader() for pair in pairs]
        time.sleep(1)  # what the dead have renewed last has come by the watch
        for pair in pairs:
            pair.edit()
        samples += in_parallel([lambda p=pair, d=name: p.failover(d) for pair, name in zip(pairs, dead)])
        for pair, name in zip(pairs, dead):
            pair.start(name)
        time.sleep(3)  # so that it stands by
    return samples


def in_parallel(functions):
    results = [None] * len(functions)

    def run(i):
        results[i] = functions[i]()

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(functions))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if None in results:
        sys.exit("decisions.py: a pair did not come to an end")
    return results


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    p.add_argument("--operator", required=True)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--pairs", type=int, default=10)
    p.add_argument("--busy", type=int, default=2)
    args = p.parse_args()
    api, pairs, busy = Api(), [], []
    with tempfile.TemporaryDirectory() as logs:
        try:
            pairs = [Pair(api, args.operator, n, logs) for n in range(args.pairs)]
            for pair in pairs:
                api.wait(f"{pair.ns}: the first decision", pair.decided)
            busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(args.busy)]
            samples = measure(pairs, args.rounds)
        finally:
            for process in busy:
                process.kill()
            for pair in pairs:
                pair.close()
            api.close()
    print("| from the end of the lease to the first decision | rounds | p50 | p99 | slowest | target |")
    print("|---|---:|---:|---:|---:|---:|")
    print(f"| {args.pairs} pairs of operators, {args.busy} processes that compute | {len(samples)} "
          f"| {quantile(samples, 0.5):.2f} s | {quantile(samples, 0.99):.2f} s | {max(samples):.2f} s | 5 s |")


if __name__ == "__main__":
    main()
