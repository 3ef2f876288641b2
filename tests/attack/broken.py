# SPDX-License-Identifier: Apache-2.0
"""Malformed batches, and frames that RFC 6455 does not allow."""
import json
import struct

PROTOCOL_ERROR, INVALID_TEXT, TOO_BIG = 1002, 1007, 1009
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10


# Batches (docs/protocol.md): a safetensors document whose tensors have the same first dimension.

_DATA = bytes(32)


def _tensor(dtype="F32", shape=(2, 2), offsets=(0, 16)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def _document(tensors, data=_DATA, length=None):
    head = tensors if isinstance(tensors, bytes) else json.dumps(tensors).encode()
    head += b" " * (-len(head) % 8)
    return struct.pack("<Q", len(head) if length is None else length) + head + data


def bad_documents():
    """Documents that look like batches. No method may get them."""
    y = _tensor("I64", (2,), (16, 32))
    lengths = [0, 1, 7, 1 << 20, 1 << 32, (1 << 48) - 1]
    one = [
        _tensor(offsets=(0, 15)), _tensor(offsets=(0, 17)), _tensor(offsets=(16, 0)), _tensor(offsets=(1, 17)),
        _tensor(offsets=(-16, 0)), _tensor(offsets=(0, 1 << 40)), _tensor(offsets=(1 << 63, (1 << 63) + 16)),
        _tensor(offsets=(0,)), _tensor(offsets=(0, 8, 16)), _tensor(offsets=(0.5, 16)), _tensor(offsets=("0", "16")),
        _tensor(shape=(3, 2)), _tensor(shape=(2, -2)), _tensor(shape=(1 << 32, 1 << 32)), _tensor(shape=(2, 1 << 62)),
        _tensor(shape=(2.0, 2)), _tensor(shape=()), _tensor(shape=(2,) * 100), _tensor(dtype="F99"), _tensor(dtype=7),
        {"dtype": "F32", "shape": [2, 2]}, {"dtype": "F32", "data_offsets": [0, 16]}, {"shape": [2, 2]}, [], "F32", 7, None]
    whole = [{"x": _tensor(), "y": _tensor("I64", (3,), (16, 40))}, {"x": _tensor(), "y": _tensor("F32", (2, 2), (8, 24))},
             {"x": _tensor(), "y": _tensor("I64", (2,), (24, 40))}, {"__metadata__": {"a": 1}, "x": _tensor(), "y": y},
             {"__metadata__": 7, "x": _tensor(), "y": y}]
    raw = [b'{"x":', b"[1,2]", b'{"x":' + json.dumps(_tensor()).encode() + b"} 7", b"{" * 1000, b'{"\xff":1}', b'{"x\\u0000":1}']
    yield from (_document({"x": _tensor(), "y": y}, length=n) for n in lengths)
    yield from (_document({"x": x, "y": y}) for x in one)
    yield from (_document(tensors) for tensors in whole)
    yield from (_document(text) for text in raw)
    yield _document({"x": _tensor(), "y": y}, data=_DATA[:31])
    yield _document({"x": _tensor(), "y": y}, data=_DATA + b"x")


# Frames

def _frame(opcode, payload=b"", final=True, rsv=0, masked=True, form=None, length=None):
    """form: the number of bytes for the length, 0, 2 or 8; None: as few as possible."""
    n = len(payload) if length is None else length
    form = form if form is not None else 0 if n < 126 else 2 if n < 1 << 16 else 8
    mask = 0x80 if masked else 0
    head = bytes([0x80 * final | rsv << 4 | opcode, mask | (n if form == 0 else 126 if form == 2 else 127)])
    return head + (n.to_bytes(form, "big") if form else b"") + (bytes(4) if masked else b"") + payload


def _closes(code, reason=b""):
    return _frame(CLOSE, struct.pack("!H", code) + reason)


_NOT_UTF8 = (b"\x80", b"\xbf", b"\xc0\x80", b"\xc1\xbf", b"\xc3", b"\xc3\x28", b"\xe0\x80\x80", b"\xe2\x82", b"\xe2\x28\xa1",
             b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xf0\x80\x80\x80", b"\xf0\x9f\x98", b"\xf0\x28\x8c\xbc", b"\xf4\x90\x80\x80",
             b"\xf5\x80\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xfe", b"\xff")


def bad_frames():
    """(name, subprotocol, bytes, the close codes that are allowed)."""
    wrong = {PROTOCOL_ERROR}
    for rsv in range(1, 8):
        for opcode in (CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG):
            yield f"bits {rsv} of opcode {opcode}", "cadre.v1", _frame(opcode, rsv=rsv), wrong
    for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15):
        for final in (False, True):
            yield f"opcode {opcode}, final {final}", "cadre.v1", _frame(opcode, b"x" * final, final), wrong
    for opcode in (CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG):
        for payload in (b"", b"hello"):
            yield f"opcode {opcode} unmasked", "cadre.v1", _frame(opcode, payload, masked=False), wrong
    for opcode in (CLOSE, PING, PONG):
        for payload in (b"", b"hi"):
            yield f"a piece of opcode {opcode}", "cadre.v1", _frame(opcode, payload, final=False), wrong
        for n in (126, 1000, 65536):
            yield f"opcode {opcode} of {n} bytes", "cadre.v1", _frame(opcode, length=n), wrong
    for opcode in (TEXT, BINARY):
        for form, lengths in ((2, (0, 1, 125)), (8, (0, 125, 126, 65535))):
            for n in lengths:
                yield f"opcode {opcode} with {n} in {form} bytes", "cadre.v1", _frame(opcode, form=form, length=n), wrong
        yield f"opcode {opcode} of 2^63 bytes", "cadre.v1", _frame(opcode, form=8, length=1 << 63), {PROTOCOL_ERROR, TOO_BIG}
    for final in (False, True):
        for payload in (b"", b"x"):
            yield "a piece of nothing", "cadre.v1", _frame(CONTINUATION, payload, final), wrong
    for first in (TEXT, BINARY):
        for second in (TEXT, BINARY):
            for final in (False, True):
                yield (f"opcode {second} inside of opcode {first}", "cadre.v1.json" if first == TEXT else "cadre.v1",
                       _frame(first, b"{", final=False) + _frame(second, b"}", final), wrong)
    yield "a close of one byte", "cadre.v1", _frame(CLOSE, b"\x03"), wrong
    for code in (0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535):
        yield f"code {code}", "cadre.v1", _closes(code), wrong
    for text in _NOT_UTF8:
        yield f"a close because of {text!r}", "cadre.v1", _closes(1000, text), {PROTOCOL_ERROR, INVALID_TEXT}
        yield f"the text {text!r}", "cadre.v1.json", _frame(TEXT, text), {INVALID_TEXT}
        yield f"{text!r} at the end of a text", "cadre.v1.json", _frame(TEXT, b'{"x":"' + 40 * b"\xc3\xa9" + text), {INVALID_TEXT}
        yield (f"the text {text!r} in pieces", "cadre.v1.json",
               b"".join(_frame(CONTINUATION if i else TEXT, text[i:i + 1], i == len(text) - 1) for i in range(len(text))),
               {INVALID_TEXT})
