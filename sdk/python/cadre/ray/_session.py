# SPDX-License-Identifier: Apache-2.0
"""init() and shutdown(): the client of this process, and its data about the program."""

import atexit
import functools
import json
import os
import secrets
import sys
import threading
import weakref
from queue import SimpleQueue

from .. import _client, _errors, _local, _manifest, _method
from . import _runtime_env

ENV = "RAY_ON_CADRE"  # data of the program for a worker: JSON
_DIRECTORY = "cadre.ray._directory:Directory"
_IGNORED = frozenset((
    "include_dashboard", "dashboard_host", "dashboard_port", "logging_level", "logging_format", "logging_config",
    "log_to_driver", "configure_logging", "object_store_memory", "local_mode", "job_config", "_temp_dir",
    "_system_config", "_memory", "_metrics_export_port", "_node_name", "_tracing_startup_hook", "_redis_username",
    "_redis_password", "_node_ip_address", "_plasma_directory", "object_spilling_directory",
    "enable_resource_isolation", "system_reserved_cpu", "system_reserved_memory", "_cgroup_path"))
_AGAIN = 10  # tries, up to 20 s: the directory may have too many calls, or a proxy dies
# Methods of the directory that may run twice. Those that only read, then those after which the second one changes nothing.
_SAME = frozenset(("fetch", "look", "how", "find", "actor", "hear", "named", "all_actors", "all_groups", "cause_of_death",
                   "put", "make", "lives", "ended", "say", "tell_group"))
_current = None
_lock = threading.RLock()


class Session:
    """A program, as one of its processes sees it."""

    def __init__(self, client, said, driver):
        client.of_worker = False  # as in Ray, calls that wait for each other are the program's responsibility
        self.client = client
        self.said = said
        self.driver = driver
        self.namespace = said["namespace"]
        self.directory = client.group(said["directory"])
        self.closed = False
        self.begun_with = dict(os.environ)  # environment of the workers of a local run: later changes do not reach them
        self.process = secrets.token_hex(4)  # the numbers of its calls of actors begin with it
        self.calls = {}  # id of an actor -> the Calls of this process
        self._archives, self._packing = {}, threading.Lock()
        self.workers = {}  # shape -> the workers that run tasks of this process
        self._gone = SimpleQueue()  # objects may end at any point of a program, even inside put()
        self._cleaner = threading.Thread(target=_clean, args=(weakref.ref(self), self._gone), daemon=True, name="cadre.ray")
        self._cleaner.start()

    # The directory

    def ask(self, method, *args):
        return self.directory.call(method, *args, **_options_of(method))

    def start(self, method, *args):
        """Like ask(), but returns a Future. None: the session has ended."""
        try:
            return self.directory.start(method, *args, **_options_of(method))
        except (RuntimeError, _errors.Error):
            if not self.closed:
                raise
            return None

    def tell(self, method, *args, keeps=()):
        """Like ask(), but does not wait. If the directory does not get it, says so on standard error. keeps: references that
        must not be dropped before the answer: messages that are sent again come later than others.
        """
        future = self.start(method, *args)
        if future is not None:
            future.add_done_callback(functools.partial(self._told, method, keeps))

    def _told(self, method, _keeps, future):
        error = future.exception()
        if error is None and method == "drop":
            for group in future.result():  # which this process may have made, and which the directory has deleted
                self.client._renewal.remove("group", group)
        if error is not None and not self.closed and not isinstance(error, (_errors.NotFound, _errors.Gone)):
            print(f"cadre.ray: the other processes of this program do not learn of {method}(): {error}",
                  file=sys.stderr, flush=True)  # not of NotFound and Gone: the program has ended

    def later(self, f, *args):
        """Runs it on a thread of the session, for work at the end of objects."""
        self._gone.put((f, args))

    def environment(self, runtime_env=None, **more):
        """The environment of a worker that this process makes."""
        said = {**self.said, "path": sys.path, "gang": None, **more}
        return {ENV: json.dumps(said), **_runtime_env.variables(self.said["env"], runtime_env)}

    def archive(self, runtime_env=None):
        """The archive of a worker that this process makes. The folders are read once."""
        key = repr(runtime_env)
        with self._packing:
            if key not in self._archives:
                self._archives[key] = _runtime_env.archive(self.said["env"], runtime_env, self.driver)
            return self._archives[key]

    def close(self):
        self.closed = True
        self._gone.put(None)
        self.client.close()


def _options_of(method):
    return {"rank": 0, "max_retries": _AGAIN, "idempotent": method in _SAME}


def _clean(ref, gone):
    for f, args in iter(gone.get, None):
        try:
            f(*args)
        except Exception:
            session = ref()
            if session is not None and not session.closed:
                sys.excepthook(*sys.exc_info())
            session = None


class Context(dict):
    """The result of init()."""

    address_info = property(lambda self: dict(self))
    dashboard_url = ""

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        shutdown()

    def disconnect(self):
        shutdown()


def _refuse_the_other_ray():
    from . import _as_ray

    other = sys.modules.get("ray")
    if other is not None and not getattr(other, "__cadre__", False):
        raise RuntimeError(_as_ray.MIXED.format(f"has imported ray itself ({getattr(other, '__file__', '?')})"))
    _as_ray.guard()


def _gpus_here():
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return len([d for d in visible.split(",") if d.strip() and d.strip() != "-1"])
    try:
        return len([name for name in os.listdir("/proc/driver/nvidia/gpus") if name])
    except OSError:
        return 0


def init(address=None, *, num_cpus=None, num_gpus=None, resources=None, labels=None, namespace=None, runtime_env=None,
         ignore_reinit_error=False, **others):
    """Begins. Without an address: the one of the environment, RAY_ADDRESS or CADRE_ADDRESS, or else a run of this machine
    (cadre.local()); "local": a run in any case; "auto" or an address of Cadre's: cadre.connect().

    num_cpus, num_gpus   that a run of this machine counts; default: those that it has
    namespace            of names of actors
    runtime_env          env_vars, working_dir, py_modules; in a cluster image_uri, the image of the workers

    In a cluster, CADRE_RAY_TEMPLATE names a file with the template of the workers' pods, in JSON or YAML, and CADRE_RAY_CPU is
    how many CPUs of a pod one of the program's is.
    """
    global _current
    unknown = [name for name in others if name not in _IGNORED]
    if unknown:
        raise RuntimeError(f"Unknown keyword argument(s): {', '.join(unknown)}. cadre.ray's init() takes address, num_cpus, "
                           "num_gpus, namespace, runtime_env and ignore_reinit_error; and what only Ray has an effect of: "
                           f"{', '.join(sorted(_IGNORED))}")
    if resources:
        raise ValueError(f"init(resources={resources!r}): cadre.ray counts CPUs and GPUs only; leave resources= out, and give "
                         "actors a placement group where they have to be together or apart")
    with _lock:
        if _current is not None:
            if ignore_reinit_error:
                return _context()
            raise RuntimeError("Maybe you called ray.init twice by accident? This error can be suppressed by passing in "
                               "'ignore_reinit_error=True' or by calling 'ray.shutdown()' prior to 'ray.init()'.")
        _refuse_the_other_ray()
        env = _runtime_env.checked(runtime_env)
        client, local = _open(address, num_cpus, num_gpus)
        try:
            _current = _begin(client, local, namespace, env, address)
        except BaseException:
            client.close()
            raise
        return _context()


def _open(address, num_cpus, num_gpus):
    """Returns (client, the resources of a run of this machine; None in a cluster)."""
    address = address or os.environ.get("RAY_ADDRESS") or None
    if address and address not in ("auto", "local") and not address.startswith(("unix:", "ws://", "wss://")):
        raise ConnectionError(f"init({address!r}): that is the address of a server of Ray's. Without an address, cadre.ray "
                              "begins a run of this machine; \"auto\" finds the operator as cadre.connect() does. "
                              "RAY_ADDRESS of the environment is taken like address=")
    if address == "auto" or address is None and os.environ.get("CADRE_ADDRESS") or address not in (None, "auto", "local"):
        if num_cpus is not None or num_gpus is not None:
            raise ValueError("When connecting to an existing cluster, num_cpus and num_gpus must not be provided.")
        namespace = os.environ.get("CADRE_NAMESPACE") or (None if address in (None, "auto") else "default")
        options = {"namespace": namespace} if namespace else {}
        try:
            return _client.connect(None if address == "auto" else address, trust=True, **options), None
        except _errors.Unavailable as e:
            raise ConnectionError(f"init({address!r}): {e}. Without an address, init() begins a run of this machine") from None
    cpus = num_cpus if num_cpus is not None else os.cpu_count() or 1
    gpus = num_gpus if num_gpus is not None else _gpus_here()
    return _local.local(gpus=int(gpus), cpus=max(int(cpus), 1)), {"CPU": float(cpus), "GPU": float(gpus)}


def _begin(client, local, namespace, env, address):
    name = f"ray-{secrets.token_hex(4)}"
    said = {"directory": f"{name}-directory", "job": secrets.token_hex(4), "namespace": namespace or secrets.token_hex(16),
            "env": env, "local": local, "pods": {} if local else _pods(env), "cpu": 1.0 if local else _cpu(), "depth": 0, "node": secrets.token_hex(28),
            "as_ray": getattr(sys.modules.get("ray"), "__cadre__", False)}
    trust = _runtime_env.variables_of(env).get(_runtime_env.TRUST)
    client.Group(_DIRECTORY, name=said["directory"], env={_runtime_env.TRUST: trust} if trust else None, **said["pods"])
    return Session(client, said, driver=True)


def _pods(env):
    """The pod options of groups in a cluster, also for groups that workers make."""
    image = env.get("image_uri") or os.environ.get("CADRE_RAY_IMAGE")
    path = os.environ.get("CADRE_RAY_TEMPLATE")
    if not image and not path:
        raise ValueError("in a cluster, workers run in an image: init(runtime_env={\"image_uri\": \"...\"}), or the "
                         "environment variable CADRE_RAY_IMAGE")
    template = _read_template(path) if path else None
    _manifest.template_of(image, template)  # raises if it is not valid
    return {"image": image, "template": template}


def _cpu():
    """How many CPUs of a pod one CPU of the program is. In Ray, users may give a node any number of CPUs."""
    given = os.environ.get("CADRE_RAY_CPU") or "1"
    try:
        cpu = float(given[:-1]) / 1000 if given.endswith("m") else float(given)
    except ValueError:
        cpu = 0
    if not 0.001 <= cpu <= 1000:
        raise ValueError(f"CADRE_RAY_CPU={given!r}: it is how many CPUs of a pod one CPU of the program is, such as 0.5 or 500m")
    return cpu


def _read_template(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    try:
        return json.loads(text)
    except ValueError:
        try:
            import yaml
        except ImportError:
            raise ValueError(f"CADRE_RAY_TEMPLATE: {path} is not JSON, and YAML needs the package PyYAML") from None
        try:
            return yaml.safe_load(text)
        except yaml.YAMLError as e:
            raise ValueError(f"CADRE_RAY_TEMPLATE: {path} is neither JSON nor YAML: {e}") from None


def _context():
    return Context(node_ip_address="127.0.0.1", session_name=_current.said["directory"], node_id=_current.said["node"],
                   address=_current.client.address, namespace=_current.namespace)


def said_here():
    """The data that this worker got about its program and itself. Empty if this process is not a worker."""
    said = json.loads(os.environ.get(ENV) or "{}")
    gang = said.get("gang")
    if gang:
        rank = _method.rank()
        said["actor"] = gang["actors"][rank]
        said.update(next(place for first, place in reversed(gang["places"]) if first <= rank))
    return said


def join():
    """For a worker: joins the session that its program has told it about."""
    global _current
    with _lock:
        if _current is None:
            _refuse_the_other_ray()
            _current = Session(_client.connect(trust=True), said_here(), driver=False)
        return _current


def current():
    """Returns the session. It begins with the first use."""
    if _current is not None:
        return _current
    with _lock:
        if _current is None:
            if ENV in os.environ:
                return join()
            init()
        return _current


def existing():
    return _current


def is_initialized():
    return _current is not None or ENV in os.environ


@atexit.register
def shutdown(_exiting_interpreter=False):
    """Ends all actors and tasks of the program, except for detached ones in a cluster. init() may follow."""
    global _current
    with _lock:
        session, _current = _current, None
    if session is not None:
        session.close()


def group_name(what):
    return _manifest.name_of(what, None)
