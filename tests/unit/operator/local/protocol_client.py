#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client of cadre.v1 that follows docs/protocol.md: it uses sockets, struct and json, and no code of Cadre. It proves that
the page is enough to write a client.

    protocol_client.py SOCKET NAMESPACE GROUP   (the module tests/unit/modules/watched.c, 4 ranks)"""

import base64
import hashlib
import json
import os
import select
import socket
import struct
import sys

HELLO, WELCOME, CALL, CANCEL, RESULT, ERROR, HOLD, GO, OUTPUT = 1, 2, 4, 6, 7, 8, 9, 10, 21
MORE, GROUP, PIECE = 1, 0xFFFFFFFF, 1 << 20


class Client:
    def __init__(self, path, namespace, group):
        self.socket, self.buffer, self.last_id = socket.socket(socket.AF_UNIX), b"", 0
        self.parts, self.answers, self.held, self.printed = {}, {}, set(), []
        self.socket.connect(path)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET /v1/namespaces/{namespace}/workergroups/{group} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
            "Sec-WebSocket-Protocol: cadre.v1\r\n\r\n".encode())
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += self.receive()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        accept = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest())
        assert head.startswith(b"HTTP/1.1 101 ") and accept in head, head
        self.send(HELLO, 0, json.dumps({"role": "controller", "version": 1, "token": "any", "output": True}).encode())
        self.welcome = json.loads(self.wait(0)[2])

    def receive(self):
        data = self.socket.recv(1 << 20)
        assert data, "the connection has ended"
        return data

    def frame(self, opcode, payload):  # the mask is zero, because the frame stays on this machine
        n = len(payload)
        size = bytes([0x80 | n]) if n < 126 else struct.pack(">BH", 0xFE, n) if n < 65536 else struct.pack(">BQ", 0xFF, n)
        self.socket.sendall(bytes([0x80 | opcode]) + size + bytes(4) + payload)

    def send(self, kind, call, body=b"", rank=GROUP, dispatch=0, execute=0):
        while True:
            piece, body = body[:PIECE], body[PIECE:]
            self.frame(2, struct.pack("<IIIBBBB", len(piece), call, rank, kind, MORE if body else 0, dispatch, execute) + piece)
            if not body:
                return
            while call in self.held or select.select([self.socket], [], [], 0)[0]:
                self.read_frame()

    def take(self, n):
        while len(self.buffer) < n:
            self.buffer += self.receive()
        taken, self.buffer = self.buffer[:n], self.buffer[n:]
        return taken

    def read_frame(self):  # a message may come in several frames; self.message joins them
        first, size = self.take(2)
        n = struct.unpack(">H", self.take(2))[0] if size == 126 else struct.unpack(">Q", self.take(8))[0] if size == 127 else size
        payload, opcode = self.take(n), first & 15
        if opcode == 9:
            self.frame(10, payload)
        assert opcode != 8, payload
        if opcode > 2:
            return
        self.message = payload if opcode == 2 else self.message + payload
        if first & 0x80:
            self.read_records(self.message)

    def read_records(self, message):
        while message:
            n, call, rank, kind, flags, _, _ = struct.unpack_from("<IIIBBBB", message)
            body, message = message[16:16 + n], message[16 + n:]
            if kind in (HOLD, GO):
                (self.held.add if kind == HOLD else self.held.discard)(call)
                continue
            whole = self.parts.pop((call, rank, kind), b"") + body
            if flags & MORE:
                self.parts[call, rank, kind] = whole
            elif kind == OUTPUT:
                self.printed += json.loads(whole)["lines"]
            else:
                self.answers[call] = (kind, rank, whole)

    def wait(self, call):
        while call not in self.answers:
            self.read_frame()
        return self.answers.pop(call)

    def start(self, method, args=b"[]", rank=GROUP, dispatch=0, **head):
        self.last_id += 1
        text = json.dumps({"method": method, **head}).encode()
        text += b" " * (-(4 + len(text)) % 8)  # the values of a batch are aligned
        self.send(CALL, self.last_id, struct.pack("<I", len(text)) + text + args, rank, dispatch)
        return self.last_id

    def call(self, *args, **kwargs):
        return self.wait(self.start(*args, **kwargs))


def batch(values):
    head = json.dumps({"x": {"dtype": "I64", "shape": [len(values)], "data_offsets": [0, 8 * len(values)]}}).encode()
    head += b" " * (-len(head) % 8)
    return struct.pack("<Q", len(head)) + head + struct.pack(f"<{len(values)}q", *values)


def values_of(document):
    n = struct.unpack_from("<Q", document)[0]
    tensor = json.loads(document[8:8 + n])["x"]
    begin, end = tensor["data_offsets"]
    return list(struct.unpack(f"<{tensor['shape'][0]}q", document[8 + n + begin:8 + n + end]))


def test(client):
    assert client.welcome["version"] == 1 and client.welcome["group"]["worldSize"] == 4, client.welcome
    assert client.call("step") == (RESULT, GROUP, b"[0,1,2,3]")
    assert client.call("step", rank=2) == (RESULT, 2, b"2")
    kind, _, body = client.call("nothing")
    assert kind == ERROR and json.loads(body)["code"] == "NOT_FOUND", body
    kind, _, body = client.call("plus_rank", batch([10, 20, 30, 40]))
    assert kind == RESULT and values_of(body) == [10, 21, 32, 43], body
    many = list(range(400_000))  # 3.2 MB: several records in both directions
    kind, _, body = client.call("plus_rank", batch(many))
    assert kind == RESULT and values_of(body) == [v + v // 100_000 for v in many]
    kind, _, body = client.call("plus_rank", batch([10, 20, 30]))
    assert kind == ERROR and json.loads(body)["code"] == "INVALID", body
    kind, _, body = client.call("plus_rank", batch([10, 20, 30]), pad=True)
    assert kind == RESULT and values_of(body) == [10, 21, 32], body
    waiting = client.start("hold", rank=0)  # rank 0 is busy until the cancel; rank 1 answers meanwhile
    assert client.call("step", rank=1) == (RESULT, 1, b"1")
    assert waiting not in client.answers
    client.send(CANCEL, waiting)
    kind, _, body = client.wait(waiting)
    assert kind == ERROR and json.loads(body)["code"] == "CANCELED", body
    kind, _, body = client.call("hold", rank=0, timeoutMs=50)
    assert kind == ERROR and json.loads(body)["code"] == "TIMEOUT", body
    while {"ranks": "0-3", "text": "hello"} not in client.printed:  # equal lines are one if they arrive together
        client.printed.clear()
        assert client.call("say", b'["hello"]') == (RESULT, GROUP, b"[null,null,null,null]")
        while not client.printed:
            client.read_frame()
        assert all(line["text"] == "hello" for line in client.printed), client.printed


test(Client(*sys.argv[1:4]))
print("ok")
