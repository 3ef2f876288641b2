# SPDX-License-Identifier: Apache-2.0
"""How cadre.connect() without an address finds a proxy: the environment, the pod's own account, or a kubeconfig."""

import base64
import json
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from typing import NamedTuple

from ._errors import Unavailable

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"  # of a pod: token, ca.crt, namespace
TOKEN_FILE = "/var/run/secrets/cadre.dev/token"  # a projected token with audience cadre, which pods of groups have
_AUDIENCE, _TOKEN_S, _CLI_ACCOUNT = "cadre", 3600, "cadre-cli"
_ASK_S, _OPEN_S, _LOOK_S = 60, 60, 0.05


class Way(NamedTuple):
    """The address of a proxy, further options of connect(), and resources that end with the client."""

    address: str
    options: dict
    ends: tuple = ()
    of_worker: bool = False

    def end(self):
        for end in self.ends:
            end()


class Given(NamedTuple):
    """The arguments of connect() that concern the way."""

    context: str = None
    kubeconfig: str = None
    service_account: str = None
    operator_namespace: str = None
    token: bool = False  # or token_file
    namespace: str = None

    def operator(self):
        return self.operator_namespace or os.environ.get("CADRE_OPERATOR_NAMESPACE") or "cadre-system"


class _No(Exception):
    """This way leads nowhere; the message says why."""


def find(given):
    """Returns the first Way that works. Unavailable lists all that it tried."""
    cluster = any((given.context, given.kubeconfig, given.service_account))
    tried = []
    for look in (_kubeconfig,) if cluster else (_environment, _pod, _kubeconfig):
        try:
            return look(given)
        except _No as e:
            tried.append(str(e))
    raise Unavailable("cadre.connect() found no proxy: " + "; ".join(tried) + ". Give it an address, such as "
                      "\"wss://cadre-operator.cadre-system.svc:9443\"; or use cadre.local(), which needs no cluster")


def _environment(_):
    env = os.environ
    if env.get("CADRE_ADDRESS"):
        return Way(env["CADRE_ADDRESS"], {"namespace": env.get("CADRE_NAMESPACE", "default"),
                                          "token_file": env.get("CADRE_TOKEN_FILE"), "ca_file": env.get("CADRE_CA_FILE")})
    if env.get("CADRE_CONNECT"):  # a worker of a local run
        return Way(env["CADRE_CONNECT"], {"namespace": env.get("CADRE_NAMESPACE", "default")}, of_worker=True)
    if env.get("CADRE_OPERATOR") and env.get("CADRE_NAMESPACE"):  # a worker in a pod
        return Way(env["CADRE_OPERATOR"], {"namespace": env["CADRE_NAMESPACE"], "token_file": TOKEN_FILE,
                                           "ca_pem": env.get("CADRE_CA")}, of_worker=True)
    raise _No("CADRE_ADDRESS is not set")


# A pod

def _read(name):
    try:
        with open(name, encoding="utf-8") as f:
            return f.read().strip()
    except OSError as e:
        raise _No(f"this is not a pod with a ServiceAccount: {name}: {e.strerror}") from None


class _ApiServer:
    """The API server, with the pod's own account."""

    def __init__(self):
        host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        _read(f"{ACCOUNT}/token")
        if not host:
            raise _No(f"{ACCOUNT} is there, but KUBERNETES_SERVICE_HOST is not set, so where is the API server?")
        self.url = f"https://{f'[{host}]' if ':' in host else host}:{port}"
        self._trust = ssl.create_default_context(cafile=f"{ACCOUNT}/ca.crt")

    def ask(self, path, body=None):
        headers = {"Authorization": f"Bearer {_read(f'{ACCOUNT}/token')}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, headers=headers,
                                         data=json.dumps(body).encode() if body else None)
        try:
            with urllib.request.urlopen(request, timeout=_ASK_S, context=self._trust) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as e:
            raise _No(f"{path}: {e.code} {_reason(e.read())}") from None
        except OSError as e:
            raise _No(f"the API server at {self.url} cannot be asked: {e}") from None


def _reason(answer):
    try:
        return json.loads(answer)["message"]
    except (ValueError, KeyError, TypeError):
        return answer[:200].decode("utf-8", "replace")


def _account_of(token):
    """Returns the name from a ServiceAccount's token. Its subject is system:serviceaccount:NAMESPACE:NAME."""
    try:
        payload = token.split(".")[1]
        return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["sub"].split(":")[3]
    except (IndexError, ValueError, KeyError):
        raise _No(f"{ACCOUNT}/token is not a token of a ServiceAccount") from None


def _pod(given):
    api, namespace = _ApiServer(), _read(f"{ACCOUNT}/namespace")
    operator = given.operator()
    options = {"namespace": namespace, "ca_pem": os.environ.get("CADRE_CA")}
    if not options["ca_pem"]:
        options["ca_pem"] = _in_pod(f"get services/proxy of https:cadre-operator:9443 in namespace {operator}", lambda: (
            api.ask(f"/api/v1/namespaces/{operator}/services/https:cadre-operator:9443/proxy/v1/ca")))
    ends = ()
    if not given.token and os.path.exists(TOKEN_FILE):
        options["token_file"] = TOKEN_FILE
    elif not given.token:
        account = _account_of(_read(f"{ACCOUNT}/token"))
        what = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                "spec": {"audiences": [_AUDIENCE], "expirationSeconds": _TOKEN_S}}
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        token = _in_pod(f"create serviceaccounts/token of {account} in namespace {namespace}, or a projected token with "
                        f"audience cadre at {TOKEN_FILE}", lambda: (
                            _TokenFile(lambda: json.loads(api.ask(path, what))["status"]["token"])))
        options["token_file"], ends = token.path, (token.end,)
    return Way(f"wss://cadre-operator.{operator}.svc:9443", options, ends)


def _in_pod(right, f):
    try:
        return f()
    except _No as e:
        raise _No(f"as this pod's ServiceAccount: {e}; it needs the right to {right}") from None


class _TokenFile:
    """A file with a token that make() gives, and a thread that writes a new one long before it expires."""

    def __init__(self, make):
        token = make()
        self._folder = tempfile.mkdtemp(prefix="cadre-")
        self.path = f"{self._folder}/token"
        self._over = threading.Event()
        self._write(token)
        threading.Thread(target=self._renew, args=(make,), daemon=True, name="cadre token").start()

    def _write(self, token):
        with open(os.open(f"{self.path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as f:
            f.write(token)
        os.replace(f"{self.path}.new", self.path)

    def _renew(self, make):
        pause = _TOKEN_S / 2
        while not self._over.wait(pause):
            try:
                token = make()
                if not self._over.is_set():
                    self._write(token)
            except Exception:
                pause = _TOKEN_S / 60  # the old token is valid for a while; a later connection reports the error
            else:
                pause = _TOKEN_S / 2

    def end(self):
        self._over.set()
        shutil.rmtree(self._folder, ignore_errors=True)


# A kubeconfig, by kubectl, which knows all ways to log in

class _Kubectl:
    def __init__(self, given):
        program = shutil.which("kubectl")
        if not program:
            raise _No("there is no kubectl in PATH, which knows kubeconfigs")
        options = {"--context": given.context, "--kubeconfig": given.kubeconfig}
        self.command = [program, *(f"{name}={value}" for name, value in options.items() if value)]

    def ask(self, *words):
        try:
            done = subprocess.run([*self.command, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=_ASK_S,
                                  text=True, check=False)
        except subprocess.TimeoutExpired:
            raise _No(f"kubectl {words[0]} {words[1]} does not answer after {_ASK_S} s") from None
        if done.returncode:
            raise _No(f"kubectl {words[0]} {words[1]}: {done.stderr.strip() or f'exit code {done.returncode}'}")
        return done.stdout.strip()


def _kubeconfig(given):
    kubectl, operator = _Kubectl(given), given.operator()
    namespace = kubectl.ask("config", "view", "--minify", "--output", "jsonpath={..namespace}") or "default"
    options, ends = {"namespace": namespace}, []
    try:
        if not given.token:
            name, of = (given.service_account, given.namespace or namespace) if given.service_account else (
                _CLI_ACCOUNT, operator)
            token = _TokenFile(lambda: kubectl.ask("create", "token", name, "--namespace", of, "--audience", _AUDIENCE))
            ends.append(token.end)
            options["token_file"] = token.path
        prefix = f"/api/v1/namespaces/{operator}/services/https:cadre-operator:9443/proxy"
        tunnel = _Tunnel(kubectl, prefix)
        ends.append(tunnel.end)
    except BaseException:
        Way("", {}, tuple(ends)).end()
        raise
    return Way(tunnel.address, {**options, "path_prefix": prefix, "token_in_hello": True}, tuple(ends))


# The second process ends kubectl when the pipe closes. It closes with this program, however the program ends.
_WITH_PARENT = '"$@" </dev/null & child=$!; (cat <&3 >/dev/null; kill $child) 2>/dev/null & exec 3<&-; wait $child'


class _Tunnel:
    """`kubectl proxy` on a socket in a folder of its own."""

    def __init__(self, kubectl, prefix):
        self._folder = tempfile.mkdtemp(prefix="cadre-")
        path = f"{self._folder}/socket"
        self.address = f"unix:{path}"
        self._said = open(f"{self._folder}/said", "w+", encoding="utf-8")
        self._process = subprocess.Popen(
            ["sh", "-c", f"exec 3<&0; {_WITH_PARENT}", "sh", *kubectl.command, "proxy", f"--unix-socket={path}",
             f"--accept-paths=^{prefix}/"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self._said,
            start_new_session=True)
        try:
            self._await(path)
        except BaseException:
            self.end()
            raise

    def _await(self, path):
        end = time.monotonic() + _OPEN_S
        while not _accepts(path):
            if self._process.poll() is not None:
                self._said.seek(0)
                raise _No(f"kubectl proxy ended: {self._said.read().strip() or 'it says nothing'}")
            if time.monotonic() > end:
                raise _No(f"kubectl proxy does not answer after {_OPEN_S} s")
            time.sleep(_LOOK_S)

    def end(self):
        self._process.stdin.close()
        try:
            self._process.wait(_OPEN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._said.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _accepts(path):
    with socket.socket(socket.AF_UNIX) as s:
        return s.connect_ex(path) == 0
