# SPDX-License-Identifier: Apache-2.0
"""The C host in this process: the structs and functions of cadre/host.h."""

import ctypes
from ctypes import POINTER, Structure, c_char_p, c_int, c_int64, c_size_t, c_uint, c_uint32, c_void_p

from .. import _library, _value

CALL, NONE, STOP = 0, 1, 2
CODE_NONE, CODE_RIGHT, CODE_ALL = 0, 1, 2
LIMIT_MAX = 64  # of a lane, as the host knows it; the threads here decide how many calls they hold


class Method(Structure):
    _fields_ = [("name", c_char_p), ("dispatch", c_int), ("execute", c_int), ("run", c_void_p), ("doc", c_char_p)]


class Lane(Structure):
    _fields_ = [("name", c_char_p), ("limit", c_uint), ("methods", POINTER(c_char_p)), ("n_methods", c_size_t)]


class Rule(Structure):
    _fields_ = [("method", c_char_p), ("split", c_char_p), ("collect", c_char_p), ("idempotent", c_int)]


class Class(Structure):
    _fields_ = [("name", c_char_p), ("methods", POINTER(Method)), ("n_methods", c_size_t), ("lanes", POINTER(Lane)),
                ("n_lanes", c_size_t), ("rules", POINTER(Rule)), ("n_rules", c_size_t)]


class Options(Structure):
    _fields_ = [("size", c_size_t), ("module", c_char_p), ("classes", POINTER(Class)), ("n_classes", c_size_t),
                ("class_name", c_char_p), ("roles", c_char_p), ("ticket", c_char_p), ("connect", c_char_p),
                ("stack_signal", c_int), ("dump_signal", c_int), ("dump_fd", c_int),
                ("debug_fd", c_int), ("wake_fd", c_int), ("awaits", c_char_p), ("code", c_int)]


class Call(Structure):
    _fields_ = [("call", c_size_t), ("role", c_uint32), ("method", c_uint32), ("args", c_size_t), ("args_len", c_size_t),
                ("code", c_int), ("values_len", c_size_t), ("own", c_size_t)]


class Part(Structure):
    _fields_ = [("data", c_size_t), ("len", c_size_t), ("on_device", c_int)]


# Each struct's name in the header, for the test that compares the layouts.
STRUCTS = {"cadre_method": Method, "cadre_host_lane": Lane, "cadre_host_rule": Rule, "cadre_host_class": Class,
           "cadre_host_options": Options, "cadre_host_call": Call,
           "cadre_host_part": Part}

FUNCTIONS = {
    "start": (c_int, [c_void_p]),
    "next": (c_int, [c_uint, c_int, c_void_p]),
    "lane_fd": (c_int, [c_uint]),
    "room": (c_void_p, [c_size_t, c_size_t]),
    "return": (c_int, [c_size_t, c_char_p, c_size_t]),
    "return_parts": (c_char_p, [c_size_t, c_void_p, c_size_t, c_size_t]),
    "fail": (None, [c_size_t, c_char_p, c_char_p, c_char_p, c_int]),
    "finish": (None, [c_size_t]),
    "canceled": (c_int, [c_size_t]),
    "hold": (c_char_p, [c_size_t, c_void_p, c_void_p]),
    "let_go": (None, [c_size_t]),
    "let_go_args": (None, [c_size_t]),
    "calls": (c_int64, [c_size_t, c_char_p, c_size_t]),
    "fetch": (c_int64, [c_int64, c_void_p, c_size_t, c_int]),
    "meet": (c_char_p, [POINTER(c_int), c_int, c_int64]),
    "watch": (c_char_p, []),
    "end": (c_int, []),
}


class Host:
    """cadre_host_NAME is .NAME; `return` is .give."""

    def __init__(self, library, path):
        for name, (result, arguments) in FUNCTIONS.items():
            try:
                f = getattr(library, "cadre_host_" + name)
            except AttributeError:
                raise ImportError(f"{path} has no cadre_host_{name}(): workers need libcadre.so of this version, beside "
                                  "the package cadre, or where CADRE_CLIENT_LIBRARY says") from None
            f.restype, f.argtypes = result, arguments
            setattr(self, "give" if name == "return" else name, f)


def load():
    return Host(_library.library, _library.functions.path)


def array(kind, items):
    """Makes a table of C; NULL if it would be empty."""
    items = list(items)
    return (kind * len(items))(*items) if items else None


def text(value):
    return None if value is None else value.encode()


class _Held:
    """Memory of the GPU that the host holds for arguments."""

    __slots__ = ("host", "handle")

    def __init__(self, host, handle):
        self.host, self.handle = host, handle

    def __del__(self):
        self.host.let_go(self.handle)


def values(host, call):
    """Returns the values of the arguments that are on the GPU, or None. They stay there as long as something refers
    to them.
    """
    if not call.values_len:
        return None
    address, held = c_size_t(), c_size_t()
    why = host.hold(call.call, ctypes.byref(address), ctypes.byref(held))
    if why:
        raise RuntimeError(why.decode())
    return _value.OnGpu(address.value, call.values_len, _Held(host, held.value))


def give_parts(host, handle, parts, stream):
    """Gives the result as parts on the host and on the GPU."""
    kept = [_addressable(p) for p in parts]
    made = array(Part, [Part(_address(p), _value.size(p), type(p) is _value.OnGpu) for p in kept])
    why = host.return_parts(handle, ctypes.cast(made, c_void_p), len(kept), stream)
    if why:
        raise RuntimeError(why.decode())


def _addressable(part):
    if type(part) in (bytes, _value.OnGpu):
        return part
    view = memoryview(part)
    return bytes(view) if view.readonly else view


def _address(part):
    if type(part) is _value.OnGpu:
        return part.address
    if type(part) is bytes:
        return ctypes.cast(c_char_p(part), c_void_p).value
    return ctypes.addressof((ctypes.c_char * part.nbytes).from_buffer(part))


class _Lent:
    """Arguments that the host has left in their place. Their memory has this as its owner, and is the last to refer
    to it.
    """

    __slots__ = ("host", "handle")

    def __init__(self, host, handle):
        self.host, self.handle = host, handle

    def __del__(self):
        self.host.let_go_args(self.handle)


def body(host, call):
    """Returns the arguments of a call in their own memory: parts that a method keeps outlive the call."""
    n = call.args_len
    if call.own:
        memory = (ctypes.c_char * n).from_address(call.args)
        memory.owner = _Lent(host, call.own)
        return memory
    if n <= 64 << 10:
        short = ctypes.string_at(call.args, n)
        if 0 not in short[:8]:
            return short
    whole = _value.room(n)
    ctypes.memmove((ctypes.c_char * n).from_buffer(whole), call.args, n)
    return whole
