#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long the lives of a group's processes take to begin, on a cluster that runs Cadre: from apply to Ready, beside
bare pods in the same run; the same on bundles that a PlacementGroup holds; and from the death of a worker to Ready again
in the same pods.

    lives.py [--rounds N] [--kubectl COMMAND]

Prints a table of medians. Every time is taken by this program's own watch, which sees what any client would see.
"""

import argparse
import http.client
import json
import shlex
import statistics
import subprocess
import sys
import threading
import time

RANKS = 4
IMAGE = "localhost/cadre-example:dev"
BUNDLES = "lives-bundles"
GROUPS = "/apis/cadre.dev/v1alpha1/namespaces/default/workergroups"
PLACEMENTS = "/apis/cadre.dev/v1alpha1/namespaces/default/placementgroups"
PODS = "/api/v1/namespaces/default/pods"
PATIENCE_S = 60


class Api:
    """The API server by way of `kubectl proxy`, and the newest state of what is watched."""

    def __init__(self, kubectl):
        self.kubectl = kubectl
        self.proxy = subprocess.Popen(kubectl + ["proxy", "--port=0"], stdout=subprocess.PIPE, text=True)
        self.port = int(self.proxy.stdout.readline().rsplit(":", 1)[1])
        self.changed = threading.Condition()
        self.objects = {}
        self.closed = False
        for path in (GROUPS, PLACEMENTS, PODS):
            threading.Thread(target=self._watch_until_closed, args=(path,), daemon=True).start()

    def close(self):
        self.closed = True
        self.proxy.terminate()
        self.proxy.wait()

    def request(self, method, path, body=None):
        c = http.client.HTTPConnection("127.0.0.1", self.port)
        c.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
        r = c.getresponse()
        text = r.read()
        if r.status >= 300 and not (method == "DELETE" and r.status == 404):
            sys.exit(f"lives.py: {method} {path}: {r.status}: {text.decode(errors='replace')[:300]}")

    def _watch_until_closed(self, path):
        try:
            self._watch(path)
        except (OSError, http.client.HTTPException, ValueError):  # a line may have been cut
            if not self.closed:
                raise

    def _watch(self, path):
        while True:
            c = http.client.HTTPConnection("127.0.0.1", self.port)
            c.request("GET", path + "?watch=1&timeoutSeconds=600")
            for line in c.getresponse():
                event = json.loads(line)
                with self.changed:
                    key = (path, event["object"]["metadata"]["name"])
                    if event["type"] == "DELETED":
                        self.objects.pop(key, None)
                    else:
                        self.objects[key] = event["object"]
                    self.changed.notify_all()

    def wait(self, what, holds):
        """The time at which it was first seen to hold."""
        end = time.monotonic() + PATIENCE_S
        with self.changed:
            while not holds():
                if not self.changed.wait(end - time.monotonic()):
                    sys.exit(f"lives.py: {what}: not within {PATIENCE_S} s")
            return time.time()

    def get(self, path, name):
        return self.objects.get((path, name))

    def pods_of(self, prefix):
        return [o for (path, name), o in self.objects.items() if path == PODS and name.startswith(prefix)]


def condition(o, kind):
    return next((c["status"] for c in o.get("status", {}).get("conditions", []) if c["type"] == kind), "Unknown")


def container(name="worker", command=None):
    c = {
        "name": name,
        "image": IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}},
    }
    return c | ({"command": command} if command else {})


def template(first):
    return {"spec": {"terminationGracePeriodSeconds": 1, "containers": [first]}}


OWN_PODS = {"placement": {"strategy": "StrictPack"}, "template": template(container())}
RESERVED = {"placement": {"groups": [{"name": BUNDLES}]}}


def group(name, place):
    spec = place | {
        "replicas": RANKS,
        "maxRestarts": 1000,
        "restartBackoff": {"initialSeconds": 0, "maxSeconds": 0},
        "worker": {"module": "/modules/accumulator.so", "class": "Accumulator"},
    }
    return {"apiVersion": "cadre.dev/v1alpha1", "kind": "WorkerGroup", "metadata": {"name": name}, "spec": spec}


def placementgroup():
    holder = container()
    bundle = {"count": RANKS, "resources": holder.pop("resources")["requests"]}
    spec = {"strategy": "StrictPack", "bundles": [bundle], "template": template(holder)}
    return {"apiVersion": "cadre.dev/v1alpha1", "kind": "PlacementGroup", "metadata": {"name": BUNDLES}, "spec": spec}


def bare_pod(name, init):
    spec = {
        "terminationGracePeriodSeconds": 1,
        "restartPolicy": "Never",
        "containers": [container(command=["sleep", "600"])],
        "initContainers": [container("init", ["true"])] if init else [],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def is_up(api, pod):
    o = api.get(PODS, pod)
    return o and condition(o, "Ready") == "True"


def bare_start(api, prefix, init):
    names = [f"{prefix}-{k}" for k in range(RANKS)]
    began = time.time()
    for name in names:
        api.request("POST", PODS, bare_pod(name, init))
    up = api.wait("bare pods are Ready", lambda: all(is_up(api, name) for name in names))
    for name in names:
        api.request("DELETE", f"{PODS}/{name}")
    api.wait("bare pods are gone", lambda: not api.pods_of(prefix + "-"))
    return up - began


def is_ready(api, name, attempt):
    o = api.get(GROUPS, name)
    return o and condition(o, "Ready") == "True" and o["status"].get("attempt") == attempt


def placementgroup_start(api):
    began = time.time()
    api.request("POST", PLACEMENTS, placementgroup())

    def is_reserved():
        o = api.get(PLACEMENTS, BUNDLES)
        return o and condition(o, "Ready") == "True"

    return api.wait("the PlacementGroup is Ready", is_reserved) - began


def placementgroup_end(api):
    api.request("DELETE", f"{PLACEMENTS}/{BUNDLES}")
    api.wait("the PlacementGroup is gone", lambda: not api.get(PLACEMENTS, BUNDLES) and not api.pods_of(BUNDLES + "-"))


def group_start(api, name, place):
    began = time.time()
    api.request("POST", GROUPS, group(name, place))
    return api.wait("the group is Ready", lambda: is_ready(api, name, 1)) - began


def group_end(api, name):
    api.request("DELETE", f"{GROUPS}/{name}")
    api.wait("the group is gone", lambda: not api.get(GROUPS, name) and not api.pods_of(name + "-"))


def restart(api, name, attempt):
    """From the death of a worker until the group is Ready again."""
    script = "w=$(pidof cadre-worker) && date +%s.%N && kill -KILL $w"
    pod = api.pods_of(name + "-2-")[0]["metadata"]["name"]
    out = subprocess.run(
        api.kubectl + ["exec", pod, "-c", "worker", "--", "sh", "-c", script], stdout=subprocess.PIPE, text=True, check=True
    )
    return api.wait("the group is Ready again", lambda: is_ready(api, name, attempt)) - float(out.stdout)


def table(rows):
    print("| | median | fastest | slowest | against bare pods |\n|---|---:|---:|---:|---:|")
    floor = statistics.median(rows[0][1])
    for what, times, comparable in rows:
        ms = [1000 * t for t in times]
        ratio = f"{statistics.median(times) / floor:.2f}x" if comparable else ""
        print(f"| {what} | {statistics.median(ms):.0f} ms | {min(ms):.0f} ms | {max(ms):.0f} ms | {ratio} |")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    p.add_argument("--rounds", type=int, default=10)
    p.add_argument("--kubectl", default="kubectl", help="a command line")
    args = p.parse_args()
    api = Api(shlex.split(args.kubectl))
    bare, bare_init, starts, restarts, bundles, reserved = [], [], [], [], [], []
    try:
        for i in range(args.rounds):
            bare.append(bare_start(api, f"bare-{i}", False))
            bare_init.append(bare_start(api, f"bare-init-{i}", True))
            starts.append(group_start(api, f"lives-{i}", OWN_PODS))
            restarts.append(restart(api, f"lives-{i}", 2))
            group_end(api, f"lives-{i}")
            bundles.append(placementgroup_start(api))
            for name in (f"reserved-{i}", f"again-{i}"):
                reserved.append(group_start(api, name, RESERVED))
                group_end(api, name)
            placementgroup_end(api)
    finally:
        api.close()
    table(
        [
            (f"{RANKS} bare pods, created to Ready", bare, True),
            (f"{RANKS} bare pods with an init container, created to Ready", bare_init, True),
            (f"group of {RANKS}, created to Ready (its workers take calls)", starts, True),
            (f"PlacementGroup of {RANKS} bundles, created to Ready", bundles, True),
            (f"group of {RANKS} on its bundles, created to Ready", reserved, True),
            (f"group of {RANKS}, a worker's death to Ready again in place, no backoff", restarts, False),
        ]
    )


if __name__ == "__main__":
    main()
