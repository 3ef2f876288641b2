#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client for suites with one websocket of subprotocol cadre.v1.json, which curl does not have.

Sends every line of standard input as a message of its own, all at once and without waiting, and prints the answers in
the order in which the requests were sent (by their ids, 1, 2, ...). Ends with 0 when all are answered; with 1 and a line
that begins with "closed" or "lost" when the connection ends before that; with 2 when it is not accepted, after
"refused STATUS TEXT".
"""
import argparse
import base64
import json
import os
import socket
import ssl
import struct
import sys

TEXT, CLOSE, PING, PONG = 1, 8, 9, 10


class Websocket:
    def __init__(self, options):
        self.sent = options.sent
        raw = socket.create_connection((options.address or options.host, options.port), timeout=options.timeout)
        context = ssl.create_default_context(cafile=options.ca)
        context.set_alpn_protocols(["http/1.1"])
        self.socket = context.wrap_socket(raw, server_hostname=options.host)
        self.buffer = b""
        lines = [
            f"GET {options.path} HTTP/1.1",
            f"Host: {options.host}:{options.port}",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: " + base64.b64encode(os.urandom(16)).decode(),
            "Sec-WebSocket-Protocol: cadre.v1.json",
        ]
        token = os.environ.get("TOKEN")
        if token:
            lines.append("Authorization: Bearer " + token)
        self.socket.sendall("\r\n".join(lines + ["", ""]).encode())
        while b"\r\n\r\n" not in self.buffer:
            self.fill()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        status = head.split(b" ", 2)[1]
        if status != b"101":
            print("refused", status.decode(), self.buffer.decode(errors="replace").strip())
            sys.exit(2)

    def fill(self):
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError("the connection has ended without a close")
        self.buffer += data

    def take(self, n):
        while len(self.buffer) < n:
            self.fill()
        data, self.buffer = self.buffer[:n], self.buffer[n:]
        return data

    def send(self, opcode, payload):
        n = len(payload)
        if n < 126:
            length = struct.pack("!B", 0x80 | n)
        elif n < 65536:
            length = struct.pack("!BH", 0x80 | 126, n)
        else:
            length = struct.pack("!BQ", 0x80 | 127, n)
        # The masking key is zero, because TLS already keeps proxies out.
        self.socket.sendall(struct.pack("!B", 0x80 | opcode) + length + bytes(4) + payload)

    def message(self):
        """The next text, or None with the reason printed."""
        text = b""
        while True:
            first, second = self.take(2)
            n = second & 0x7F
            if n == 126:
                n = struct.unpack("!H", self.take(2))[0]
            elif n == 127:
                n = struct.unpack("!Q", self.take(8))[0]
            payload = self.take(n)
            opcode = first & 0x0F
            if opcode == PING:
                self.send(PONG, payload)
            elif opcode == PONG and self.sent:
                open(self.sent, "w", encoding="utf-8").close()
            elif opcode == CLOSE:
                code = struct.unpack("!H", payload[:2])[0] if n >= 2 else 1005
                print("closed", code, payload[2:].decode(errors="replace"))
                return None
            elif opcode in (0, TEXT):
                text += payload
                if first & 0x80:
                    return text

    def drain(self):
        """Reads until the other side hangs up, so that it reads the close, and gets no reset of the connection."""
        try:
            while True:
                self.fill()
        except OSError:
            pass


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--host", required=True, help="also the name in the certificate")
    parser.add_argument("--address", help="connect there instead")
    parser.add_argument("--port", type=int, default=9443)
    parser.add_argument("--path", required=True)
    parser.add_argument("--ca", required=True)
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--sent", help="create this file once the other side has read the requests")
    options = parser.parse_args()
    requests = [line.encode() for line in sys.stdin.read().splitlines() if line]
    answers = {}
    try:
        ws = Websocket(options)
        for request in requests:
            ws.send(TEXT, request)
        ws.send(PING, b"")
        while len(answers) < len(requests):
            text = ws.message()
            if text is None:
                return 1
            answers[json.loads(text).get("id")] = text.decode()
    except OSError as e:
        print("lost:", e)
        return 1
    finally:
        for i in sorted(answers):
            print(answers[i])
    ws.send(CLOSE, struct.pack("!H", 1000))
    ws.drain()
    return 0


sys.exit(main())
