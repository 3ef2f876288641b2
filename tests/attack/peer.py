# SPDX-License-Identifier: Apache-2.0
"""A client that keeps no rules. It writes websocket frames and records of cadre.v1 by hand."""
import base64
import json
import os
import socket
import ssl
import struct

HELLO, WELCOME, CALL, RESULT, ERROR = 1, 2, 4, 7, 8
GROUP = 0xFFFFFFFF
TEXT, BINARY, CLOSE, PING = 1, 2, 8, 9
DP_COMPUTE_PROTO = 4
MORE = 1
PIECE = 1 << 20  # the longest part of a body in one record
PATIENCE_S = 300  # only a hang takes longer
REFUSED_S = 30  # what the operator has not taken by then, it does not take
TRIES = 3  # a slow client may lose its first connections: the operator gives a silent one 5 s


def record(kind, body=b"", call=0, flags=0, dispatch=0):
    """One record of the protocol, see docs/protocol.md."""
    return struct.pack("<IIIBBBB", len(body), call, GROUP, kind, flags, dispatch, 0) + body


def records(kind, body, call):
    """A long body in as many records as it needs."""
    pieces = [body[i:i + PIECE] for i in range(0, len(body), PIECE)]
    return b"".join(record(kind, p, call, MORE) for p in pieces[:-1]) + record(kind, pieces[-1], call)


def call_body(head, args=b""):
    head = json.dumps(head).encode()
    return struct.pack("<I", len(head)) + head + args


def frame(payload, opcode=BINARY):
    """A websocket frame of a client, masked with zeros."""
    n = len(payload)
    first = 0x80 | opcode
    length = (struct.pack("!BB", first, 0x80 | n) if n < 126 else
              struct.pack("!BBH", first, 0xFE, n) if n < 65536 else struct.pack("!BBQ", first, 0xFF, n))
    return length + bytes(4) + payload


class Target:
    """The address of the proxy, and the token and namespace of the client."""

    def __init__(self, host, port, ca, token, namespace):
        self.host, self.port, self.token, self.namespace = host, port, token, namespace
        self.address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4][:2]
        self.context = ssl.create_default_context(cafile=ca)

    def tcp(self, receive_buffer=None):
        raw = socket.socket()
        if receive_buffer:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        raw.settimeout(REFUSED_S)
        raw.connect(self.address)
        raw.settimeout(PATIENCE_S)
        return raw

    def tls(self, receive_buffer=None):
        for left in reversed(range(TRIES)):
            try:
                return self.context.wrap_socket(self.tcp(receive_buffer), server_hostname=self.host)
            except (ConnectionError, TimeoutError, ssl.SSLError):
                if not left:
                    raise

    def request(self, protocol, token, group=None, path=None):
        path = path or f"/v1/namespaces/{self.namespace}" + (f"/workergroups/{group}" if group else "")
        lines = [f"GET {path} HTTP/1.1", f"Host: {self.host}", "Connection: Upgrade", "Upgrade: websocket",
                 "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: " + base64.b64encode(os.urandom(16)).decode(),
                 f"Sec-WebSocket-Protocol: {protocol}"]
        if token:
            lines.append(f"Authorization: Bearer {token}")
        return "\r\n".join(lines + ["", ""]).encode()

    def is_welcome(self, token):
        """Whether a client with this token is served. A token that takes time to check is refused after the upgrade."""
        try:
            client = Websocket(self, "cadre.v1", None, 4096, token)
            client.close()
            return True
        except ConnectionError:
            return False

    def websocket(self, protocol="cadre.v1", group=None, receive_buffer=4096, path=None, hello=None):
        return Websocket(self, protocol, group, receive_buffer, self.token, path, hello)


class Websocket:
    def __init__(self, target, protocol, group, receive_buffer, token, path=None, hello=None):
        self.socket = target.tls(receive_buffer)
        self.socket.sendall(target.request(protocol, token, group, path))
        self.buffer = bytearray()
        while b"\r\n\r\n" not in self.buffer:
            self.fill()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        if head.split(b" ", 2)[1] != b"101":
            raise ConnectionError(f"{bytes(head[:60])!r} {bytes(self.buffer[:200])!r}")
        if protocol == "cadre.v1":
            self.send(record(HELLO, json.dumps(hello or {"role": "controller", "version": 1}).encode()))
            kind, _, body = self.record()
            if kind != WELCOME:
                raise ConnectionError(body[:200])

    def fill(self):
        data = self.socket.recv(1 << 16)
        if not data:
            raise ConnectionError("closed")
        self.buffer += data

    def take(self, n):
        while len(self.buffer) < n:
            self.fill()
        data = bytes(self.buffer[:n])
        del self.buffer[:n]
        return data

    def send(self, payload, opcode=BINARY):
        self.socket.sendall(frame(payload, opcode))

    def frame(self):
        """(opcode, payload) of the next frame."""
        first, n = self.take(2)
        if n == 126:
            n = struct.unpack("!H", self.take(2))[0]
        elif n == 127:
            n = struct.unpack("!Q", self.take(8))[0]
        return first & 15, self.take(n)

    def message(self):
        """The payload of the next message."""
        whole, final = b"", False
        while not final:
            final = bool(self.peek() & 0x80)
            whole += self.frame()[1]
        return whole

    def peek(self):
        while not self.buffer:
            self.fill()
        return self.buffer[0]

    def close_code(self):
        """The code of the close frame that comes; None: the connection ends without one."""
        try:
            while True:
                opcode, payload = self.frame()
                if opcode == CLOSE:
                    return struct.unpack("!H", payload[:2])[0] if payload else 1005
        except OSError:
            return None

    def record(self):
        """(type, call, body) of the next message, which is one record here."""
        opcode, payload = self.frame()
        if opcode != BINARY:
            raise ConnectionError(f"{opcode} {payload[2:]!r}")
        return payload[12], struct.unpack("<I", payload[4:8])[0], payload[16:]

    def close(self):
        self.socket.close()
