#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our reader and writer of safetensors documents beside the package `safetensors`, each reading what the other wrote.

    test_safetensors_peer.py TOOL    TOOL is safetensors_peer

Exit status 77 (skipped) if deploy/python.sh cannot bring the package.
"""

import ctypes
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

from safetensors_case import BITS, with_packages

# Their names in the package's writer, which takes no others.
WRITTEN = {"BOOL": "bool", "U8": "uint8", "I8": "int8", "F8_E5M2": "float8_e5m2", "F8_E4M3": "float8_e4m3fn",
           "F8_E8M0": "float8_e8m0fnu", "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz",
           "I16": "int16", "U16": "uint16", "F16": "float16", "BF16": "bfloat16", "I32": "int32", "U32": "uint32",
           "F32": "float32", "C64": "complex64", "F64": "float64", "I64": "int64", "U64": "uint64"}
NAMES = ["a", "", "model.layers.0.weight", "quote\"back\\slash", "tab\tline\n", "\u00e4\u6f22\U0001f600", "__metadata"]


def document(tensors, meta):
    """{name: (dtype, shape, values)} as a document, written by the package where it can."""
    from safetensors import TensorSpec, serialize

    if any(dtype not in WRITTEN for dtype, _, _ in tensors.values()):
        head, end = {"__metadata__": meta} if meta else {}, 0
        for name, (dtype, shape, values) in tensors.items():
            head[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + len(values)]}
            end += len(values)
        return by_hand(head, b"".join(values for _, _, values in tensors.values()))
    keep = {name: ctypes.create_string_buffer(values, len(values) + 1) for name, (_, _, values) in tensors.items()}
    specs = {}
    for name, (dtype, shape, values) in tensors.items():
        specs[name] = TensorSpec(dtype=WRITTEN[dtype], shape=shape, data_ptr=ctypes.addressof(keep[name]),
                                 data_len=len(values))
    return bytes(serialize(specs, meta or None))


def by_hand(head, values=b""):
    text = head.encode() if isinstance(head, str) else json.dumps(head).encode()
    return struct.pack("<Q", len(text)) + text + values


def read_by_package(data):
    from safetensors import deserialize

    return {name: (t["dtype"], list(t["shape"]), bytes(t["data"])) for name, t in deserialize(data)}


class Peer:
    def __init__(self, tool, folder):
        self.tool, self.file, self.out = tool, os.path.join(folder, "in"), os.path.join(folder, "out")

    def read(self, data):
        """(tensors, metadata, the document, written again), or (None, why, None)."""
        with open(self.file, "wb") as f:
            f.write(data)
        ran = subprocess.run([self.tool, self.file, self.out], capture_output=True, text=True, check=False)
        if ran.returncode:
            assert ran.stdout.startswith("refused: "), ran
            return None, ran.stdout.strip(), None
        tensors, meta = {}, {}
        for line in ran.stdout.splitlines():
            word = line.split(" ")
            if word[0] == "meta":
                meta[bytes.fromhex(word[1]).decode()] = bytes.fromhex(word[2]).decode()
            else:
                shape = [int(n) for n in word[3].split(",") if n]
                tensors[bytes.fromhex(word[1]).decode()] = (word[2], shape, bytes.fromhex(word[4]))
        with open(self.out, "rb") as f:
            return tensors, meta, f.read()


def random_tensors(rng, n):
    tensors = {}
    for name in rng.sample(NAMES, min(n, len(NAMES))):
        dtype = rng.choice(list(BITS))
        shape = [rng.randrange(0, 4) for _ in range(rng.randrange(0, 4))]
        count = 1
        for size in shape:
            count *= size
        if count * BITS[dtype] % 8:
            shape, count = shape + [4], count * 4
        tensors[name] = (dtype, shape, rng.randbytes(count * BITS[dtype] // 8))
    return tensors


def check(peer, tensors, meta):
    data = document(tensors, meta)
    assert read_by_package(data) == tensors
    ours, our_meta, rewritten = peer.read(data)
    assert ours == tensors, (ours, tensors, our_meta)
    assert our_meta == meta, (our_meta, meta)
    assert read_by_package(rewritten) == tensors
    head = json.loads(rewritten[8:8 + struct.unpack("<Q", rewritten[:8])[0]])
    assert head.get("__metadata__", {}) == meta


def both_refuse(peer):
    def one(dtype, shape, offsets):
        return {"a": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}

    wrong = [
        by_hand(""), by_hand("[]"), by_hand("{"), by_hand("{}", b"x"), by_hand("{}")[:-1], b"", b"\0" * 7,
        by_hand('{"__metadata__":{"a":1}}'), by_hand('{"a":1}'),
        by_hand(one("U8", [1], [1, 2]), b"xx"), by_hand(one("U8", [1], [0, 1]), b"xx"),
        by_hand(one("U8", [2], [0, 1]), b"x"), by_hand(one("U8", [1], [0, 2]), b"xx"),
        by_hand(one("U8", [1], [1, 0]), b""), by_hand(one("U8", [-1], [0, 1]), b"x"),
        by_hand(one("U8", [1.0], [0, 1]), b"x"), by_hand(one("U8", [1], [0]), b"x"),
        by_hand(one("F4", [3], [0, 2]), b"xx"), by_hand(one("X9", [1], [0, 1]), b"x"),
        by_hand(one("U8", [2**62, 4, 0], [0, 0])), by_hand(one("U64", [2**61], [0, 2**64])),
        by_hand({**one("U8", [2], [0, 2]), "b": one("U8", [2], [1, 3])["a"]}, b"xxx"),
        b"\xff" * 8 + b"{}",
    ]
    for data in wrong:
        try:
            read_by_package(data)
            raise AssertionError(f"the package accepts {data!r}")
        except Exception as e:  # its own class, which has no name for us
            assert not isinstance(e, AssertionError), e
        ours, why, _ = peer.read(data)
        assert ours is None, f"we accept {data!r}"
        assert why.startswith("refused: "), why
    # The package accepts a name that is there twice. We refuse it, because either of the two could be meant.
    twice = '{"a":%s,"a":%s}' % (('{"dtype":"U8","shape":[1],"data_offsets":[0,1]}',) * 2)
    read_by_package(by_hand(twice, b"x"))
    assert peer.read(by_hand(twice, b"x"))[0] is None
    return len(wrong)


def main():
    (tool,) = sys.argv[1:]
    with_packages("small")
    with tempfile.TemporaryDirectory() as folder:
        compare(Peer(tool, folder), random.Random(1))


def compare(peer, rng):
    check(peer, {}, {})
    check(peer, {f"t{i}": (dtype, [2, 4], rng.randbytes(bits)) for i, (dtype, bits) in enumerate(BITS.items())}, {})
    check(peer, {f"layer.{i:04d}": ("U8", [1], bytes([i % 256])) for i in range(3000)}, {"format": "pt"})
    for _ in range(25):
        check(peer, random_tensors(rng, rng.randrange(1, 6)), {n: n * 2 for n in rng.sample(NAMES, 2)})
    # Unaligned, which the package does not write but reads.
    odd = by_hand({"b": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
                   "d": {"dtype": "F64", "shape": [1], "data_offsets": [1, 9]}}, b"x12345678")
    assert peer.read(odd)[0] == read_by_package(odd)
    print(f"28 documents read alike, {both_refuse(peer)} refused alike")


if __name__ == "__main__":
    main()
