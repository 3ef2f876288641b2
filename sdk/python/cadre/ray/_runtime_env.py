# SPDX-License-Identifier: Apache-2.0
"""runtime_env: the parts of it that workers of Cadre support."""

import json
import os
import sys

from .._code import _archive
from .exceptions import RuntimeEnvSetupError

_IMAGE = "put it into the image of the workers, which runtime_env={\"image_uri\": ...} names"
_INSTEAD = {"pip": _IMAGE, "uv": _IMAGE, "conda": _IMAGE, "container": _IMAGE, "java_jars": "there are no workers in Java",
            "nsight": "start the profiler in the method", "rocprof_sys": "start the profiler in the method",
            "mpi": "make a group of ranks, client.Group(replicas=n)"}
_OF_RANKS = frozenset((  # variables that Cadre sets for each rank; programs for Ray set their own
    "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK",
    "NNODES", "GROUP_NAME", "PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_NNODES", "PET_NODE_RANK", "PET_NPROC_PER_NODE"))
TRUST = "CADRE_TRUST_CALLERS"  # workers of a cluster open pickles
THREADS = "OMP_NUM_THREADS"
_ENV = "RAY_ON_CADRE_ENV"  # the part of it for a worker, as JSON
_FOLDERS = ("working_dir", "py_modules", "excludes")
_KNOWN = ("env_vars", "working_dir", "py_modules", "worker_process_setup_hook", "image_uri", "config", "excludes")


def checked(env):
    """Returns a copy. ValueError names a field that is not supported."""
    if env is None:
        return {}
    if not isinstance(env, dict):
        raise TypeError(f"runtime_env must be a dict, not a {type(env).__name__}")
    for name, value in env.items():
        if name in _INSTEAD and value:
            raise ValueError(f"runtime_env field {name!r}: cadre.ray has no such thing: {_INSTEAD[name]}")
        if name not in _KNOWN and name not in _INSTEAD and not name.startswith("_"):
            raise ValueError(f"runtime_env has no field {name!r}; there are {', '.join(_KNOWN)}")
    variables_of(env)
    folder = env.get("working_dir")
    if folder and not os.path.isdir(folder):
        raise ValueError(f"runtime_env working_dir {folder!r} is not a folder of this machine")
    for module in env.get("py_modules") or ():
        if isinstance(module, (str, os.PathLike)) and not os.path.exists(module):
            raise ValueError(f"runtime_env py_modules: there is no {os.fspath(module)!r} on this machine")
    known = {name: env[name] for name in _KNOWN if env.get(name)}
    if folder:
        known["working_dir"] = os.path.abspath(folder)
    if "py_modules" in known:
        known["py_modules"] = [os.path.abspath(str(getattr(m, "__path__", [m])[0])) for m in known["py_modules"]]
    return known


def variables_of(env):
    given = (env or {}).get("env_vars") or {}
    if not isinstance(given, dict) or not all(isinstance(k, str) and isinstance(v, str) for k, v in given.items()):
        raise TypeError(f"runtime_env['env_vars'] must be of type Dict[str, str], got {given!r}")
    return given


def variables(of_program, of_worker):
    """Returns the environment variables of a worker. Its own override the variables of its program."""
    merged = {**of_program, **(of_worker or {})}
    hook = merged.get("worker_process_setup_hook")
    if callable(hook):
        raise ValueError("runtime_env worker_process_setup_hook: name it, \"package.module.function\"")
    files = {"worker_process_setup_hook": hook} if hook else {}
    given = {**variables_of(of_program), **variables_of(of_worker)}
    return {**{name: v for name, v in given.items()
               if name not in _OF_RANKS and (not name.startswith("CADRE_") or name == TRUST)},
            _ENV: json.dumps({**files, "env_vars": given})}


def archive(of_program, of_worker, driver):
    """Returns the archive of a worker: the program's, with the worker's own working_dir and py_modules instead; or
    None.
    """
    own = {name: of_worker[name] for name in _FOLDERS if (of_worker or {}).get(name)}
    if not driver and not own:
        return _archive.of_worker()
    wanted = None if driver else _archive.of_environment()
    working_dir, py_modules = _archive.folders(wanted.place) if wanted else (None, [])
    merged = {"working_dir": working_dir, "py_modules": py_modules, **(of_program if driver else {}), **own}
    if not merged["working_dir"] and not merged["py_modules"]:
        return None
    return _archive.pack(merged["working_dir"], merged["py_modules"] or (), merged.get("excludes") or ())


def threads_of(options):
    """Returns the number of OpenMP threads of a worker with these options, as in Ray, if its variables do not set it.
    """
    return max(int(options.get("num_cpus") or 1), 1)


def take_threads(n):
    """For a worker, before anything of the program is imported. If several processes each use as many threads as
    there are CPUs, they mostly wait for each other.
    """
    if THREADS in os.environ:
        return
    os.environ[THREADS] = str(n)
    torch = sys.modules.get("torch")  # the worker has it from its template
    if torch and torch.get_num_threads() != n:
        torch.set_num_threads(n)


def enter(keeps=()):
    """For a worker, before anything of the program is imported. keeps: variables of ranks that the program should
    see.
    """
    files = json.loads(os.environ.pop(_ENV, None) or "{}")
    kept = {name: os.environ[name] for name in keeps if name in os.environ}
    for name in _OF_RANKS:
        os.environ.pop(name, None)
    os.environ.update({**files.get("env_vars", {}), **kept})
    hook = files.get("worker_process_setup_hook")
    if hook:
        import importlib

        module, _, name = hook.rpartition(".")
        try:
            getattr(importlib.import_module(module), name)()
        except Exception as e:
            raise RuntimeEnvSetupError(f"worker_process_setup_hook {hook}: {type(e).__name__}: {e}") from e
