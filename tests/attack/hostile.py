# SPDX-License-Identifier: Apache-2.0
"""Workers that break the protocol. This is the Python module of a group. Each rank takes the ticket of its host, and connects
to the proxy itself. The number of the rank decides how it misbehaves. It prints the result, and waits."""
import json
import os
import tempfile
import time
import urllib.parse

from peer import CALL, HELLO, RESULT, TEXT, Target, call_body, record

GOODBYE, CANCEL, MEMORY, RETURN, KILL, REPORT, PLACE = 3, 6, 28, 29, 30, 31, 32
METHOD = {"name": "echo", "dispatch": "ONE_TO_ALL", "execute": "ALL"}


def flood(make):
    """Sends up to 64 MiB in 1,000 messages."""
    return lambda client: [client.send(make(i)) for i in range(1000)]


def sends(*messages):
    return lambda client: [client.send(m) for m in messages]


def ends_in_the_middle(client):
    client.socket.sendall(b"\x82\xff" + (1 << 20).to_bytes(8, "big") + bytes(4) + b"x" * 1000)
    client.close()


# Members of HELLO that differ from a good one, and what the worker does if it is welcome.
CASES = [
    ({}, sends(record(HELLO, b"{}"))),
    ({}, sends(record(RESULT, b"7", call=1))),
    ({}, flood(lambda i: record(RESULT, b"x" * 65000, call=i + 1))),
    ({}, flood(lambda i: record(RESULT, b"x" * 65000, call=1, flags=1))),
    ({}, sends(record(200))),
    ({}, sends(record(RESULT, call=1)[:12] + b"\xff" * 4)),
    ({}, sends(b"\xff\xff\xff\xff" + record(RESULT, call=1)[4:])),
    ({"rank": 7777}, flood(lambda i: record(RESULT, b"1", call=i))),
    ({"group": "somebody-elses"}, sends(record(RESULT, b"1", call=1))),
    ({"attempt": 99}, sends(record(RESULT, b"1", call=1))),
    ({"methods": [dict(METHOD, name=f"m{i}") for i in range(5000)]}, sends()),
    ({"methods": [METHOD, METHOD]}, sends()),
    ({"methods": [dict(METHOD, dispatch="NONE")]}, sends()),
    ({"methods": [dict(METHOD, concurrency={"group": "io", "limit": -1})]}, sends()),
    ({"meshes": [{"name": "m", "dims": [{"name": "d", "size": 0}]}]}, sends()),
    ({"meshes": [{"name": "m", "dims": [{"name": "d", "size": 1 << 31}] * 8}]}, sends()),
    ({"x": "x" * (900 << 10)}, sends()),
    ({"x": json.loads("[" * 500 + "]" * 500)}, sends()),
    ({"objectPort": -1}, sends()),
    ({}, lambda client: client.send(b"hello", TEXT)),
    ({}, flood(lambda i: record(CALL, call_body({"method": "echo", "group": "echo"}), call=i + 1))),
    ({}, flood(lambda i: record(CANCEL, call=i))),
    ({}, sends(record(KILL, b"{}"), record(REPORT, b"{}"), record(GOODBYE, b"{}"))),
    ({}, sends(record(MEMORY, bytes(16)), record(RETURN, bytes(16)))),
    ({}, flood(lambda i: record(PLACE, os.urandom(64)))),
    ({}, ends_in_the_middle),
]


def greet(said):
    url = urllib.parse.urlsplit(os.environ["CADRE_OPERATOR"].split(",")[0])
    with tempfile.NamedTemporaryFile("w", suffix=".pem", delete=False) as ca:
        ca.write(os.environ["CADRE_CA"])
    hello = {"role": "worker", "version": 1, "ticket": os.environ["CADRE_TICKET"], "group": os.environ["CADRE_GROUP_UID"],
             "rank": int(os.environ["RANK"]), "attempt": int(os.environ["CADRE_ATTEMPT"]), "methods": [METHOD], **said}
    target = Target(url.hostname, url.port or 9443, ca.name, None, "")
    return target.websocket("cadre.v1", receive_buffer=None, path="/v1/connect", hello=hello)


def misbehave(said, act):
    try:
        client = greet(said)
    except OSError as e:
        return f"not welcome: {e}"
    client.socket.settimeout(30)  # the operator may stop to read
    try:
        act(client)
        client.socket.settimeout(5)
        while True:
            client.frame()
    except OSError as e:
        return f"welcome, then {e}"


number = int(os.environ["RANK"])
print(f"case {number} of {len(CASES)}: {misbehave(*CASES[number])}"[:200].replace("\n", " "), flush=True)
while True:
    time.sleep(3600)
