# SPDX-License-Identifier: Apache-2.0
"""The C client library: where it is, and its structs and functions as in cadre/client.h."""

import ctypes
import os
from collections import namedtuple
from ctypes import POINTER, Structure, c_char, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from itertools import count, takewhile

FILE, BOTH = "libcadre_client.so.0", "libcadre.so"
OK = 0


class ClientError(Structure):
    _fields_ = [("code", c_int), ("may_have_run", c_int), ("rank", c_int32), ("exit_code", c_int32),
                ("retry_after_ms", c_int64), ("name", c_char * 32), ("pod", c_char * 256), ("node", c_char * 256),
                ("message", c_char * 1024), ("idempotent", c_uint64),
                ("reserved", c_uint64 * 7)]


class Output(Structure):
    _fields_ = [("group", c_char_p), ("ranks", c_char_p), ("text", c_char_p), ("dropped", c_uint64)]


ON_CONNECTION = ctypes.CFUNCTYPE(None, c_void_p, c_int, POINTER(ClientError))
ON_OUTPUT = ctypes.CFUNCTYPE(None, c_void_p, POINTER(Output))


class Options(Structure):
    _fields_ = [("size", c_size_t), ("address", c_char_p), ("path_prefix", c_char_p), ("ns", c_char_p),
                ("group", c_char_p), ("token", c_char_p), ("token_file", c_char_p), ("token_in_hello", c_int),
                ("ca_pem", c_char_p), ("ca_file", c_char_p), ("server_name", c_char_p),
                ("connect_timeout_ms", c_int64), ("unreachable_ms", c_int64), ("max_calls", c_uint32),
                ("max_body", c_size_t), ("max_bytes", c_size_t), ("on_connection", ON_CONNECTION), ("ctx", c_void_p),
                ("on_output", ON_OUTPUT), ("no_spin", c_int), ("threaded", c_int)]


class Json(Structure):
    _fields_ = [("text", c_void_p), ("len", c_size_t)]


class Text(Structure):
    """The same with memory of Python: setting c_char_p is fast, and keeps the bytes alive."""

    _fields_ = [("text", c_char_p), ("len", c_size_t)]


class Request(Structure):
    _fields_ = [("size", c_size_t), ("method", c_char_p), ("group", c_char_p), ("args", Text),
                ("per_rank", POINTER(Json)), ("n_per_rank", c_size_t), ("rank", c_int64), ("dispatch", c_int),
                ("execute", c_int), ("timeout_ms", c_int64), ("attempt", c_int64), ("refuse_when_not_ready", c_int),
                ("done", c_void_p), ("ctx", c_void_p), ("batch", c_void_p), ("batch_len", c_size_t),
                ("split", c_char_p), ("collect", c_char_p), ("pad", c_int), ("max_retries", c_uint32),
                ("retry_on", c_char_p), ("idempotent", c_int), ("no_result", c_int), ("keep", c_int),
                ("role", c_char_p), ("via", c_char_p), ("traceparent", c_char_p), ("by_reference", c_int),
                ("pin", c_int), ("lend", c_int), ("positional", c_int),
                ("lazy", c_int), ("urgent", c_int)]


CANCELED = ctypes.CFUNCTYPE(c_int, c_void_p)


class TransferOptions(Structure):
    _fields_ = [("size", c_size_t), ("source", c_char_p), ("target", c_char_p), ("source_role", c_char_p),
                ("target_role", c_char_p), ("names", POINTER(c_char_p)), ("n_names", c_size_t), ("timeout_ms", c_int64),
                ("via", c_char_p), ("canceled", CANCELED), ("ctx", c_void_p)]


class Transferred(Structure):
    _fields_ = [("bytes", c_uint64), ("version", c_char * 17), ("problems", c_void_p), ("direct", c_uint64),
                ("nccl", c_uint64), ("reserved", c_uint64 * 6)]


# Each struct's name in the header, for the test that compares the layouts.
STRUCTS = {"cadre_client_transfer_options": TransferOptions, "cadre_client_transferred": Transferred,
           "cadre_client_error": ClientError, "cadre_client_output": Output, "cadre_client_options": Options,
           "cadre_client_json": Json, "cadre_client_request": Request}


class Scratch:
    """Memory into which the library writes an id, an answer or an error. The thread that gets it uses it again and
    again.
    """

    __slots__ = ("id", "json", "memory", "error", "id_ref", "json_ref", "memory_ref", "error_ref")
    _unused = []  # a list is safe between threads, and against signal handlers

    def __init__(self):
        self.id, self.json, self.memory, self.error = c_uint64(), Json(), c_void_p(), ClientError()
        self.id_ref, self.json_ref = ctypes.byref(self.id), ctypes.byref(self.json)
        self.memory_ref, self.error_ref = ctypes.byref(self.memory), ctypes.byref(self.error)

    @classmethod
    def get(cls):
        try:
            return cls._unused.pop()
        except IndexError:
            return cls()

    def give_back(self):
        self._unused.append(self)


HANDLE = c_size_t  # the address as a number: None, from a closed client, raises an exception, and does not become NULL

# name -> (result, arguments). Structs are passed with byref().
FUNCTIONS = {
    "open": (c_int, [c_void_p, c_void_p, c_void_p]),
    "close": (None, [HANDLE]),
    "shut": (None, [HANDLE]),
    "start": (c_int, [HANDLE, c_void_p, c_void_p, c_void_p]),
    "cancel": (c_int, [HANDLE, c_uint64]),
    "take": (c_int, [HANDLE, c_uint64, c_int64, c_void_p, c_void_p, c_void_p]),
    "give_back": (None, [HANDLE, c_void_p]),
    "watch": (c_int, [HANDLE, c_uint64]),
    "next": (c_uint64, [HANDLE, c_int64]),
    "wait": (c_size_t, [HANDLE, c_int64]),
    "wait_for": (c_int, [HANDLE, c_void_p, c_size_t, c_size_t, c_int64, c_void_p, c_void_p]),
    "forget": (None, [HANDLE, c_uint64]),
    "done": (c_int, [HANDLE, c_uint64]),
    "connected": (c_int, [HANDLE]),
    "pending": (c_size_t, [HANDLE]),
    "version": (c_char_p, []),
    "dispatch_name": (c_char_p, [c_int]),
    "execute_name": (c_char_p, [c_int]),
    "dispatch_row": (c_char_p, [c_int]),
    "batch_room": (c_int, [HANDLE, c_size_t, c_void_p, c_void_p]),
    "batch_free": (None, [HANDLE, c_void_p]),
    "transfer": (c_int, [HANDLE, c_void_p, c_void_p, c_void_p]),
}


def _load():
    """Loads CADRE_CLIENT_LIBRARY, or else the library beside this package, or else the one that the system's loader
    finds. libcadre.so, which also has the host of workers, comes before the client alone.
    """
    named = os.environ.get("CADRE_CLIENT_LIBRARY")
    here = os.path.dirname(os.path.abspath(__file__))
    beside = [os.path.join(here, name) for name in (BOTH, FILE)]
    for path in [named] if named else [p for p in beside if os.path.exists(p)] or [BOTH, FILE]:
        try:
            return ctypes.CDLL(path), path
        except OSError as e:
            why = e
    where = f"CADRE_CLIENT_LIBRARY is {named}" if named else f"neither {beside[-1]} nor the system's loader has it"
    raise ImportError(f"cadre: cannot load the C client library, {FILE}: {why}; {where}. Build it ('make build' in "
                      "the source tree) or install it ('cmake --install BUILD --component client'), and set "
                      "CADRE_CLIENT_LIBRARY to the file, if it is in no folder of the loader") from None


class _Functions:
    """cadre_client_NAME as .NAME."""

    def __init__(self, library, path):
        for name, (result, arguments) in FUNCTIONS.items():
            try:
                f = getattr(library, "cadre_client_" + name)
            except AttributeError:
                raise ImportError(f"cadre: {path} has no cadre_client_{name}(): it is too old for this package, or no "
                                  "client library of Cadre") from None
            f.restype, f.argtypes = result, arguments
            setattr(self, name, f)
        self.path = path


def _modes(name_of):
    """Returns name -> number. The numbers begin with 1."""
    return {name.decode(): number for number, name in enumerate(takewhile(bool, map(name_of, count(1))), 1)}


library, _path = _load()
functions = _Functions(library, _path)
DISPATCH = _modes(functions.dispatch_name)
EXECUTE = _modes(functions.execute_name)
DispatchMode = namedtuple("DispatchMode", "rule pieces takes results")  # cadre/modes.h explains these
DISPATCH_MODES = {name: DispatchMode(*functions.dispatch_row(number).decode().split()) for name, number in DISPATCH.items()}
