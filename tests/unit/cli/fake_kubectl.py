#!/usr/bin/env -S python3 -IS
# SPDX-License-Identifier: Apache-2.0
"""Enough of kubectl for kubectl-cadre: its answers are in $FAKE_KUBECTL, and it writes the questions there.

  config view          "ml"
  create token NAME    "alice" for cadre-cli, else (NotFound)
  get KIND ...         the file KIND.json, else (NotFound); with --selector S the file "KIND S.json" (_ for /) if there is
                       one
  get --raw PATH       the path
  logs POD ...         the file POD.log; with --follow all .log files, and then it waits
  proxy                passes everything to the TCP port in the file `port`, of several to each in turn, without the API
                       server's part of the path; with the file `broken` it fails
"""

import itertools
import os
import socket
import sys
import threading
import time

HOME = os.environ["FAKE_KUBECTL"]
PREFIX = b"/api/v1/namespaces/cadre-system/services/https:cadre-operator:9443/proxy"


def read(name):
    with open(os.path.join(HOME, name), encoding="utf-8") as f:
        return f.read()


def not_found(what):
    sys.exit(f"Error from server (NotFound): {what} not found")


def pump(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data.replace(PREFIX, b"", 1))
    except OSError:
        pass
    for s in (a, b):
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def proxy(path):
    if os.path.exists(os.path.join(HOME, "broken")):
        sys.exit("error: no route to the cluster")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    for port in itertools.cycle(read("port").split()):
        near = listener.accept()[0]
        try:
            far = socket.create_connection(("127.0.0.1", int(port)))
        except OSError:
            near.close()
            continue
        for pair in ((near, far), (far, near)):
            threading.Thread(target=pump, args=pair, daemon=True).start()


def get(args):
    if args[0] == "--raw":
        print(args[1])
        return
    kind = args[0].split(".")[0]
    name = kind + ".json"
    if "--selector" in args:
        selected = f"{kind} {args[args.index('--selector') + 1].replace('/', '_')}.json"
        name = selected if os.path.exists(os.path.join(HOME, selected)) else name
    if not os.path.exists(os.path.join(HOME, name)):
        not_found(f'{args[0]} "{args[1]}"')
    print(read(name))


def logs(args):
    if "--follow" not in args:
        print(read(args[0] + ".log"), end="")
        return
    for name in sorted(os.listdir(HOME)):
        if name.endswith(".log"):
            print(read(name), end="", flush=True)
    time.sleep(60)


def main():
    args = sys.argv[1:]
    with open(os.path.join(HOME, "asked"), "a", encoding="utf-8") as f:
        f.write(" ".join(args) + "\n")
    while args[0].startswith("--"):
        args = args[1:]
    if args[:2] == ["config", "view"]:
        print("ml", end="")
    elif args[:2] == ["create", "token"]:
        print("alice" if args[2] == "cadre-cli" else not_found(f'serviceaccounts "{args[2]}"'))
    elif args[0] == "get":
        get(args[1:])
    elif args[0] == "logs":
        logs(args[1:])
    elif args[0] == "proxy":
        proxy(args[1].split("=", 1)[1])


main()
