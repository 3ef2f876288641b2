#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attacks on an operator by a client that may call the groups of one namespace, or of none.

    attack.py --host NAME --ca FILE --token FILE --namespace NAMESPACE [--seconds N] [--scale X] ATTACK

Runs one attack for some seconds, and prints its result as a line of JSON. The callers, tests/attack/test_attack.sh and
bench/attack/run.sh, measure what it costs others. Exit status 0: the attack was carried out."""
import argparse
import json
import resource
import sys
import time

from broken import bad_documents, bad_frames
from peer import (CALL, CLOSE, DP_COMPUTE_PROTO, ERROR, HELLO, MORE, PATIENCE_S, PING, REFUSED_S, TEXT, Target,
                  call_body, frame, record, records)

DAYS_MS = 3 * 24 * 3600 * 1000


def until_refused(steps):
    """Runs the steps until one fails. Returns how many succeeded, and why the next one failed."""
    n, why = 0, ""
    try:
        for step in steps:
            step()
            n += 1
    except OSError as e:
        why = str(e)[:120]
    return n, why


def rounds(end):
    """One round, and more until then: on a slow machine, the connections alone may take all the time."""
    yield
    while time.monotonic() < end:
        yield


def hold(sockets, end):
    """Keeps the connections open and silent until then."""
    time.sleep(max(0, end - time.monotonic()))
    for s in sockets:
        s.close()


def offer(clients, message):
    """Sends the message on each connection until one is refused. The first one has more time than a refusal takes."""
    for c in clients[1:]:
        c.socket.settimeout(REFUSED_S)
    return until_refused(lambda c=c: c.send(message) for c in clients)


def info(target, options, end):
    """group.info of a group with 640,000 ranks: 16 connections with 350 calls each, that read nothing."""
    message = b"".join(record(CALL, call_body({"method": "group.info"}), call=i + 1) for i in range(350))
    clients = [target.websocket(group="huge") for _ in range(16)]
    sent, why = offer(clients, message)
    hold(clients, end)
    return {"connections": len(clients), "messages": sent, "refused": why}


def posts(target, options, end):
    """The same by HTTP, one after the other."""
    body = b'{"jsonrpc":"2.0","id":1,"method":"group.info"}'
    head = (f"POST /v1/namespaces/{target.namespace}/workergroups/huge HTTP/1.1\r\nHost: {target.host}\r\n"
            f"Authorization: Bearer {target.token}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n").encode()
    n = 0
    for _ in rounds(end):
        s = target.tls()
        s.sendall(head + body)
        while s.recv(1 << 16):
            pass
        s.close()
        n += 1
    return {"requests": n}


def hoard(target, options, end):
    """50 connections ask for large answers over JSON, and read nothing."""
    text = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "group.call",
                       "params": {"method": "echo", "args": ["x" * (4 << 20)]}}).encode()
    clients = [target.websocket("cadre.v1.json", "echo") for _ in range(int(50 * options.scale) or 1)]
    asked = []

    def ask(client):
        client.socket.settimeout(5 if asked else PATIENCE_S)  # the first one is taken, however long that takes
        client.send(text, TEXT)
        asked.append(client)

    sent, why = until_refused(lambda c=c: ask(c) for _ in range(4) for c in clients)
    hold(clients, end)
    return {"connections": len(clients), "sent": sent, "refused": why}


def calls(target, options, end, head=None):
    """64 connections with 4,096 calls each, which may wait for days for a group that is never ready. Then all hang up."""
    head = head or {"method": "m", "timeoutMs": DAYS_MS}
    message = b"".join(record(CALL, call_body(head, b"[]"), call=i + 1) for i in range(4096))
    clients = [target.websocket(group=options.waits) for _ in range(int(64 * options.scale) or 1)]
    sent, why = offer(clients, message)
    hold(clients, end - options.seconds / 2)
    hold([], end)
    return {"connections": len(clients), "messages": sent, "refused": why}


def call_all(caller, calls, n):
    """Sends the calls, waits for all answers, and returns how many of them are errors."""
    errors = 0
    caller.send(calls)
    while n > 0:
        opcode, payload = caller.frame()
        if opcode == CLOSE:
            raise ConnectionError(f"closed with {int.from_bytes(payload[:2], 'big')}: {payload[2:].decode()}")
        at = 0
        while at < len(payload):
            errors += payload[at + 12] == ERROR
            at += 16 + int.from_bytes(payload[at:at + 4], "little")
            n -= 1
    return errors


def ahead(target, options, end):
    """Calls for a later attempt wait in front of a group that answers, while other clients come and go."""
    head = {"method": "echo", "attempt": 99, "timeoutMs": DAYS_MS}
    message = b"".join(record(CALL, call_body(head, b"[]"), call=i + 1) for i in range(4096))
    clients = [target.websocket(group="echo") for _ in range(int(32 * options.scale) or 1)]
    sent, _ = offer(clients, message)
    burst = b"".join(record(CALL, call_body({"method": "echo"}, b"[1]"), call=i + 1) for i in range(256))
    caller, n, why = None, 0, ""
    for _ in rounds(end):
        try:
            caller = caller or target.websocket(group="echo")
            n += 1
            call_all(caller, burst, 256)
        except ConnectionError as e:  # the waiting calls have used up the quota of the namespace
            caller, why = None, str(e)
            time.sleep(0.1)
    for c in clients:
        c.close()
    return {"connections": len(clients), "messages": sent, "bursts": n, "refused": why}


def flood(target, options, end):
    """9 connections that send long arguments to a group that is never ready, and ignore HOLD."""
    body = call_body({"method": "m", "timeoutMs": DAYS_MS}, b'["' + b"x" * (8 << 20) + b'"]')
    clients = [target.websocket(group=options.waits) for _ in range(9)]
    sent, dead = 0, set()
    for _ in rounds(end):
        if len(dead) == len(clients):
            break
        for c in clients:
            try:
                if c not in dead:
                    c.socket.settimeout(1 if sent else PATIENCE_S)
                    c.send(records(CALL, body, sent + 1))
                    sent += 1
            except OSError:
                dead.add(c)
    hold(clients, end)
    return {"connections": len(clients), "messages": sent, "stuck": len(dead)}


def hellos(target, options, end):
    """Strangers that send most of the longest HELLO."""
    body = b'{"role":"worker","x":"' + b"x" * (250 << 10)
    part = record(HELLO, body)[:200 << 10]
    clients = []

    def greet():
        s = target.tls()
        s.sendall(target.request("cadre.v1", None).replace(f"/v1/namespaces/{target.namespace}".encode(), b"/v1/connect"))
        if b" 101 " not in s.recv(4096):
            raise ConnectionError("refused")
        s.settimeout(2 if clients else PATIENCE_S)
        clients.append(s)
        s.sendall(b"\x82\xff" + len(part).to_bytes(8, "big") + bytes(4) + part)

    n, why = 0, ""
    for _, _ in zip(range(int(800 * options.scale)), rounds(end)):
        done, refused = until_refused([greet])
        n, why = n + done, refused or why
    hold(clients, end)
    return {"connections": len(clients), "whole": n, "refused": why}


def silent(target, options, end):
    """TCP connections without a byte, until they are timed out."""
    sockets = []
    n, why = until_refused(lambda: sockets.append(target.tcp()) for _ in range(int(6000 * options.scale)))
    hold(sockets, max(end, time.monotonic() + 6))
    return {"connections": n, "refused": why}


def sessions(target, options, end):
    """2,000 clients that do nothing, each over TLS. They attack nobody, but use memory."""
    clients = []
    n, why = until_refused(lambda: clients.append(target.websocket()) for _ in range(int(2000 * options.scale)))
    hold(clients, end)
    return {"connections": n, "refused": why}


def slow(target, options, end):
    """Requests that arrive byte by byte."""
    sockets, n = [], 0
    until_refused(lambda: sockets.append(target.tls()) for _ in range(200))
    text = target.request("cadre.v1", target.token)
    for _ in rounds(end):
        for s in sockets:
            n += until_refused([lambda s=s: s.send(text[n % len(text):][:1])])[0]
        time.sleep(0.2)
    hold(sockets, end)
    return {"connections": len(sockets), "bytes": n}


def handshakes(target, options, end):
    """TLS handshakes without a request, one after the other."""
    n = 0
    for _ in rounds(end):
        target.tls().close()
        n += 1
    return {"connections": n}


def bodies(target, options, end):
    """POSTs of 100 KiB each on many connections, all sent at the same time, over and over."""
    body = b'{"jsonrpc":"2.0","id":1,"method":"group.info"' + b" " * (100 << 10) + b"}"
    head = (f"POST /v1/namespaces/{target.namespace}/workergroups/echo HTTP/1.1\r\nHost: {target.host}\r\n"
            f"Authorization: Bearer {target.token}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode()
    answers = {}

    def listen(client):
        status = client.recv(12)[-3:].decode()
        answers[status] = answers.get(status, 0) + 1

    for _ in rounds(end):
        clients = [target.tls() for _ in range(int(400 * options.scale) or 1)]
        for part in head + body[:-1], body[-1:]:
            for c in clients:
                until_refused([lambda c=c, part=part: c.sendall(part)])
        for c in clients:
            until_refused([lambda c=c: listen(c)])
            c.close()
    return {"bytes": len(body), "answered": answers.get("200", 0), "answers": answers}


def kills(target, options, end):
    """Calls of a group while test_attack.sh stops and kills its worker. Each call is answered, or fails in time."""
    call = call_body({"method": "echo", "timeoutMs": 1000}, b"[1]")
    burst = b"".join(record(CALL, call, call=i + 1) for i in range(256))
    caller = target.websocket(group="mortal")
    n, errors = 0, 0
    for _ in rounds(end):
        errors += call_all(caller, burst, 256)
        n += 256
    # On a slow machine, no worker may have been killed yet, or all calls were too late.
    call = call_body({"method": "echo", "timeoutMs": 30000}, b"[1]")
    patient = b"".join(record(CALL, call, call=i + 1) for i in range(256))
    while not n > errors > 0:
        errors += call_all(caller, patient, 256)
        n += 256
    caller.close()
    return {"answered": n - errors, "failed": errors}


def tokens(target, options, end):
    """Made-up tokens."""
    head, claims, signature = target.token.split(".")
    forged = [f"{head}.{claims}.{signature[::-1]}", f"{head}.{claims}.", "x" * 4000, f"{head}.{claims[::-1]}.{signature}"]
    n = 0
    for _ in rounds(end):
        token = forged[n % len(forged)]
        if target.is_welcome(token):
            raise SystemExit(f"welcome with the forged token {token}")
        n += 1
    # The operator asks the API server, which may answer too late on a slow machine.
    if not any(target.is_welcome(target.token) for _ in range(10)):
        raise SystemExit("not welcome with its own token")
    return {"refused": n}


def texts(target, options, end):
    """JSON-RPC requests of 8 MiB, one after the other on 4 connections. The proxy has to check every byte."""
    numbers = json.dumps(list(range(100000)))
    text = ('{"jsonrpc":"2.0","id":1,"method":"group.call","params":{"args":['
            + ", ".join([numbers] * int(12 * options.scale)) + '],"method":"echo","rank":0}}').encode()
    clients, answered, refused = [], 0, 0
    for _ in rounds(end):
        clients += [target.websocket("cadre.v1.json", "echo", None) for _ in range(4 - len(clients))]
        for c in clients:
            c.socket.settimeout(2 * REFUSED_S)
        for step in (lambda c: c.send(text, TEXT), lambda c: c.message()):
            if answered and time.monotonic() >= end:
                break
            served = [c for c in clients if until_refused([lambda c=c: step(c)])[0]]
            refused += len(clients) - len(served)
            clients = served
        else:
            answered += len(clients)
    for c in clients:
        c.close()
    if not answered:
        raise SystemExit(f"none of {refused} requests was answered")
    return {"bytes": len(text), "answered": answered, "refused": refused}


def crumbs(target, options, end):
    """Pings, texts that are not JSON, and arguments in pieces of one byte that never end. Few bytes cause much work."""
    texts = 500
    begun = b"".join(record(CALL, call_body({"method": "group.create"}, b"["), call=i + 1, flags=MORE) for i in range(1000))
    pings = [target.websocket(group="echo") for _ in range(int(8 * options.scale) or 1)]
    asking = [target.websocket("cadre.v1.json", "echo", None) for _ in pings]
    pieces = [target.websocket(group="echo") for _ in pings]
    for c in pieces:
        c.send(begun)
    kinds = ((pings, frame(b"", PING) * 2500),
             (asking, frame(b"{", TEXT) * texts),
             (pieces, frame(record(CALL, b" ", call=1, flags=MORE) * 7) * 100))
    sent = 0
    for _ in rounds(end):
        for clients, data in kinds:
            for c in clients:
                c.socket.sendall(data)
                sent += len(data)
        for c in asking:
            for _ in range(texts):
                c.message()
    for clients, _ in kinds:
        for c in clients:
            c.close()
    return {"connections": 3 * len(pings), "bytes": sent}


def documents(target, options, end):
    """Malformed batches for a method that takes rows. Each gets an error, and the session goes on."""
    client = target.websocket(group="echo")
    answers = {}
    for i, body in enumerate(bad_documents()):
        client.send(record(CALL, call_body({"method": "echo"}, body), call=i + 1, dispatch=DP_COMPUTE_PROTO))
        kind, call, answer = client.record()
        if call != i + 1 or kind != ERROR:
            raise SystemExit(f"document {i} was answered by {kind} for call {call}: {answer[:200]!r}")
        code = json.loads(answer)["code"]
        answers[code] = answers.get(code, 0) + 1
    client.close()
    hold([], end)
    return {"answers": answers}


def frames(target, options, end):
    """Frames that break RFC 6455. The connection ends with the code of the rule, or without a code."""
    n = 0
    for name, protocol, sent, codes in bad_frames():
        client = target.websocket(protocol, "echo", None)
        client.socket.sendall(sent)
        got = client.close_code()
        if got not in codes:
            raise SystemExit(f"{name}: the operator says {got}, not one of {codes}")
        client.close()
        n += 1
    hold([], end)
    return {"frames": n}


ATTACKS = {f.__name__: f for f in (info, posts, hoard, calls, ahead, flood, hellos, silent, sessions, slow, handshakes,
                                   bodies, kills, tokens, texts, crumbs, documents,
                                   frames)}

# If one of these is 0 in the result, the attack did nothing.
DONE = ("connections", "messages", "sent", "requests", "bursts", "whole", "bytes", "answered", "failed", "answers", "frames")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, default=9443)
    parser.add_argument("--ca", required=True)
    parser.add_argument("--token", required=True, help="file with the attacker's token")
    parser.add_argument("--namespace", required=True, help="where the attacker may call")
    parser.add_argument("--waits", default="waits", help="a group there that never becomes ready")
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of connections; of the bytes of `texts`")
    parser.add_argument("attack", choices=ATTACKS)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with open(options.token, encoding="utf-8") as f:
        target = Target(options.host, options.port, options.ca, f.read().strip(), options.namespace)
    did = ATTACKS[options.attack](target, options, time.monotonic() + options.seconds)
    print(json.dumps(did))
    if idle := [name for name in DONE if not did.get(name, 1)]:
        raise SystemExit(f"that was not an attack: {', '.join(idle)}: none")
    return 0


sys.exit(main())
