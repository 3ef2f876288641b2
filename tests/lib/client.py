#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that call all the time while a suite takes something away. They write down the outcome of every call.

    client.py call --address URL --ca FILE --token FILE --log FILE [--deadline SECONDS] [--makes NAME] GROUP/RANK...
    client.py report LOG [--since LINE] [--begun SECONDS]

call: one client for each rank named, which must run Accumulator and which nobody else calls. It calls add(1) again and
again until SIGTERM, and appends a line of JSON to the log for each call: "answered"; "failed", with the error's name and
whether it may have run; "lost", where neither came in time; "wrong", where the value shows that a call ran twice or not at
all, or that the rank was started again. NAME: the first client makes a PlacementGroup that ends with its session and that
no node is large enough for. Exit status 0: all clients came to an end.

report: counts the lines after the first LINE ones, of calls that began at SECONDS (of the epoch) or later, and says how
long half and 99 % of those that were answered took at most.
"""
import argparse
import collections
import ctypes
import faulthandler
import json
import signal
import sys
import threading
import time

CALL_S = 15  # seconds that the proxy has for a call, unless --deadline sets another limit
GRACE_S = 120  # then its error must have come, also on a machine that stands still at times
PAUSE_S = 0.02
PR_SET_PDEATHSIG = 1


class Client(threading.Thread):
    """Calls one rank, and knows which values it may return."""

    def __init__(self, options, target, log, stop):
        super().__init__(name=target, daemon=True)
        self.options, self.log, self.stop = options, log, stop
        self.group_name, rank = target.rsplit("/", 1)
        self.rank = int(rank)
        self.low = self.high = float(rank)  # an Accumulator starts with its rank
        self.begun = time.monotonic()  # its latest call

    def run(self):
        import cadre  # `report` does not need it

        self.cadre = cadre
        with cadre.connect(self.options.address, namespace=self.options.namespace, token_file=self.options.token,
                           ca_file=self.options.ca) as client:
            self.group = client.group(self.group_name)
            if self.options.makes and self.name == self.options.target[0]:
                client.Pool([1], gpus=1000, image="none", name=self.options.makes)
            while not self.stop.is_set():
                begun, self.begun = time.time(), time.monotonic()
                outcome = self.one_call()
                self.log.add({"at": round(begun, 3), "ms": round(1000 * (time.time() - begun), 2), "client": self.name}
                             | outcome)
                self.stop.wait(PAUSE_S)

    def one_call(self):
        try:
            future = self.group.start("add", 1, rank=self.rank, timeout=self.options.deadline)
            value = future.result(timeout=self.options.deadline + GRACE_S)
        except self.cadre.Error as e:
            self.high += e.may_have_run
            return {"outcome": "failed", "name": e.name, "ran": e.may_have_run, "message": e.message}
        except TimeoutError:
            self.high += 1
            return {"outcome": "lost"}
        self.low, self.high = self.low + 1, self.high + 1
        if self.low <= value <= self.high:
            return {"outcome": "answered"}
        wrong = {"outcome": "wrong", "value": value, "low": self.low, "high": self.high}
        self.low = self.high = value
        return wrong


class Log:
    def __init__(self, path):
        self.file = open(path, "a", encoding="utf-8")
        self.lock = threading.Lock()

    def add(self, line):
        with self.lock:
            self.file.write(json.dumps(line) + "\n")
            self.file.flush()


def call(options):
    stop, told = threading.Event(), []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: told.append(1))  # set() would wait for a wait() that it interrupts
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)  # a suite that is killed leaves no clients behind
    log = Log(options.log)
    clients = [Client(options, target, log, stop) for target in options.target]
    for client in clients:
        client.start()
    limit, silent = options.deadline + GRACE_S + 60, set()
    while not told:
        time.sleep(0.2)
        if not any(client.is_alive() for client in clients):
            return 1
        for client in clients:
            if client not in silent and time.monotonic() - client.begun > limit:
                silent.add(client)
                print(f"{client.name} has been silent for {limit:g} s", file=sys.stderr, flush=True)
                faulthandler.dump_traceback()
    stop.set()
    end = time.monotonic() + limit
    for client in clients:
        client.join(max(0, end - time.monotonic()))
    return int(any(client.is_alive() for client in clients))


def report(options):
    counts, names, answering = collections.Counter(), collections.Counter(), set()
    last, gap, took, why = {}, 0.0, [], None
    with open(options.log, encoding="utf-8") as f:
        for n, text in enumerate(f):
            if n < options.since or not text.endswith("\n"):
                continue
            line = json.loads(text)
            if line["at"] < options.begun:
                continue
            counts[line["outcome"]] += 1
            if line["outcome"] == "failed":
                names[line["name"] or "?"] += 1
                why = why or line["message"]
                counts["may have run"] += line["ran"]
            elif line["outcome"] == "answered":
                took.append(line["ms"])
                answering.add(line["client"])
                end = line["at"] + line["ms"] / 1000
                gap = max(gap, end - last.get(line["client"], end))
                last[line["client"]] = end
    took.sort()
    quantiles = {f"p{p}Ms": took[min(len(took) - 1, len(took) * p // 100)] if took else None for p in (50, 99)}
    print(json.dumps({"answered": counts["answered"], "failed": counts["failed"], "names": dict(names),
                      "mayHaveRun": counts["may have run"], "lost": counts["lost"], "wrong": counts["wrong"],
                      "answering": len(answering), "gapSeconds": round(gap, 1), "firstFailure": why} | quantiles))
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    p = commands.add_parser("call")
    for option in ("address", "ca", "token", "log"):
        p.add_argument("--" + option, required=True)
    p.add_argument("--namespace", default="default")
    p.add_argument("--deadline", type=float, default=CALL_S, help="seconds that the proxy has for a call")
    p.add_argument("--makes", metavar="NAME")
    p.add_argument("target", nargs="+", help="GROUP/RANK")
    p = commands.add_parser("report")
    p.add_argument("log")
    p.add_argument("--since", type=int, default=0)
    p.add_argument("--begun", type=float, default=0)
    options = parser.parse_args()
    return call(options) if options.command == "call" else report(options)


sys.exit(main())
