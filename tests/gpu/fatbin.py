#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what a fat binary holds, such as "compute_90 sm_80 sm_90".  fatbin.py FILE

FILE is the section .nv_fatbin of a module. NVIDIA's own tool for this, cuobjdump, is not part of the toolkit's wheels.
"""

import struct
import sys

MAGIC = 0xBA55ED50
KINDS = {1: "compute_", 2: "sm_"}  # PTX, machine code


def entries(data):
    """Kind and architecture of each entry with code; the section also has padding and entries of other kinds."""
    offset = 0
    while offset + 16 <= len(data):
        magic, _, header, size = struct.unpack_from("<IHHQ", data, offset)
        if magic != MAGIC:
            offset += 8
            continue
        entry, offset = offset + header, offset + header + size
        while entry + 32 <= offset:
            kind, _, entry_header, entry_size = struct.unpack_from("<HHIQ", data, entry)
            if kind in KINDS:
                yield KINDS[kind] + str(struct.unpack_from("<I", data, entry + 28)[0])
            entry += entry_header + entry_size


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    with open(sys.argv[1], "rb") as f:
        print(" ".join(sorted(set(entries(f.read())))))
    return 0


sys.exit(main())
