#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How cadre.connect() finds a proxy: the environment, a pod's account, a kubeconfig."""

import base64
import http.client
import http.server
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest.mock

import cadre
from cadre import _client, _ways
from python_case import ROOT, SLOW_S, RunCase, main, program

ADD = "accumulator:Accumulator"
CALLER = "worker_client:Caller"
CLUSTER = ("CADRE_ADDRESS", "CADRE_CONNECT", "CADRE_OPERATOR", "KUBERNETES_SERVICE_HOST")


class ConnectCase(RunCase):
    modules = (os.path.join(os.path.dirname(os.path.abspath(__file__)), "workers"),)

    def setUp(self):
        super().setUp()
        for name in CLUSTER:
            os.environ.pop(name, None)
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        patched = unittest.mock.patch.object(_ways, "ACCOUNT", f"{self.folder}/account")
        patched.start()
        self.addCleanup(patched.stop)

    def write(self, name, text, mode=0o644):
        path = f"{self.folder}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, mode)
        return path


class Environment(ConnectCase):
    def test_the_environment_names_a_proxy(self):
        with cadre.local() as client:
            client.Group(ADD, name="mine")
            os.environ["CADRE_ADDRESS"] = client.address
            with cadre.connect() as other:
                self.assertEqual(other.find("mine").add(1), [1])
                self.assertEqual(other.namespace, "default")

    def test_a_worker_finds_its_own_run_and_its_groups_go_with_it(self):
        with cadre.local(namespace="lab") as client:
            parent = client.Group(CALLER, name="parent")
            self.assertIsNone(parent.call("make", rank=0))
            self.assertEqual(parent.call("ask", 2, rank=0), [2])
            self.assertEqual(client.find("child").add(1), [3])
            with self.assertRaisesRegex(cadre.Error, "Conflict: .*would wait for .*lab/parent/0/wait_for_itself"):
                parent.call("wait_for_itself", rank=0)
            self.assertEqual(parent.call("ask", 2, rank=0), [5])

    def test_a_method_whose_deadline_has_passed_makes_no_more_calls(self):
        with cadre.local() as client:
            parent = client.Group(CALLER, name="parent")
            parent.call("make", rank=0)
            self.assertRaises(cadre.Timeout, parent.call, "call_until_that_is_refused", rank=0, timeout=0.5)
            self.assertRegex(parent.call("what_was_refused", rank=0), "^not sent: the deadline of .* has passed")

    def test_what_was_tried_is_listed(self):
        os.environ["PATH"] = self.folder
        with self.assertRaises(cadre.Unavailable) as caught:
            cadre.connect()
        self.assertRegex(str(caught.exception), "found no proxy: CADRE_ADDRESS is not set; this is not a pod with a "
                         "ServiceAccount: .*; there is no kubectl in PATH.*cadre.local()")

    def test_a_way_beside_an_address_is_refused(self):
        with self.assertRaisesRegex(TypeError, "context= finds an address, and one is given"):
            cadre.connect("unix:/nowhere", namespace="ml", context="lab")


    def test_a_child_of_fork_leaves_the_way_of_its_parent_alone(self):
        ended = []
        client = _client.FoundClient(_ways.Way("unix:/nowhere", {"namespace": "lab"}, (lambda: ended.append(True),)), None, None,
                                     False, {})
        with unittest.mock.patch("os.getpid", return_value=os.getpid() + 1):  # as in the child
            _client._end_of(*client._ends.peek()[2])
        self.assertEqual(ended, [])
        client.close()
        self.assertEqual(ended, [True])


class Renewal(ConnectCase):
    """A token is renewed again and again, although one renewal fails."""

    def test_a_token_is_renewed_after_errors_of_any_kind(self):
        made = iter(["first", http.client.IncompleteRead(b""), OSError(28, "No space left on device"), "second"])

        def make():
            token = next(made, "third")
            if isinstance(token, Exception):
                raise token
            return token

        with unittest.mock.patch.object(_ways, "_TOKEN_S", 0.01):
            token = _ways._TokenFile(make)
            self.addCleanup(token.end)
            while self.read(token.path) != "third":
                time.sleep(0.01)

    def test_a_token_is_renewed_after_one_that_was_not_written(self):
        write, left = _ways._TokenFile._write, [OSError(28, "No space left on device")]

        def full_once(token_file, token):
            if token == "second" and left:
                raise left.pop()
            write(token_file, token)

        tokens = iter(["first", "second"])
        with unittest.mock.patch.object(_ways, "_TOKEN_S", 0.01), unittest.mock.patch.object(_ways._TokenFile, "_write", full_once):
            token = _ways._TokenFile(lambda: next(tokens, "third"))
            self.addCleanup(token.end)
            while self.read(token.path) != "third":
                time.sleep(0.01)

    def read(self, path):
        with open(path, encoding="utf-8") as f:
            return f.read()


class Kubeconfig(ConnectCase):
    """With enough of kubectl, in front of a local run at a port."""

    def setUp(self):
        super().setUp()
        kubectl = os.path.join(ROOT, "tests/unit/cli/fake_kubectl.py")
        self.write("bin/kubectl", f'#!/bin/sh\nexec {sys.executable} {kubectl} "$@"\n', 0o755)
        os.environ.update(FAKE_KUBECTL=self.folder, PATH=f"{self.folder}/bin:{os.environ['PATH']}",
                          XDG_RUNTIME_DIR=self.folder)
        self.run_process = subprocess.Popen(
            [program("CADRE_LOCAL"), "--serve", "--namespace", "ml", "--listen", "127.0.0.1:0", "--agent",
             program("CADRE_AGENT")], stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.run_process.stderr.close)
        self.addCleanup(self.run_process.wait)
        self.addCleanup(self.run_process.terminate)
        said = re.search(r"ws://127\.0\.0\.1:(\d+),.* token in (\S+)", self.run_process.stderr.readline())
        self.write("port", said[1])
        self.token_file = said[2]

    def test_kubectl_leads_to_the_proxy(self):
        with cadre.connect(context="lab", token_file=self.token_file) as client:
            self.assertEqual(client.namespace, "ml")
            self.assertEqual(client.Group(ADD, image="any").add(1), [1])
            tunnel = client.address.partition(":")[2]
            self.assertTrue(os.path.exists(tunnel))
        self.assertFalse(os.path.exists(tunnel))
        with open(f"{self.folder}/asked", encoding="utf-8") as f:
            asked = f.read()
        self.assertIn("--context=lab config view", asked)
        self.assertNotIn("create token", asked)

    def test_without_a_token_it_makes_one(self):
        client = cadre.connect()
        with open(f"{self.folder}/asked", encoding="utf-8") as f:
            self.assertIn("create token cadre-cli --namespace cadre-system --audience cadre", f.read())
        with self.assertRaises(cadre.Unauthorized):  # the run has a token of its own
            client.group("any").info(timeout=SLOW_S)
        client.close()

    def test_what_kubectl_says_is_passed_on(self):
        with self.assertRaisesRegex(cadre.Unavailable, 'create token: .*serviceaccounts "driver" not found'):
            cadre.connect(service_account="driver")
        self.write("broken", "")
        with self.assertRaisesRegex(cadre.Unavailable, "kubectl proxy ended: error: no route to the cluster"):
            cadre.connect(token="any")


class Pod(ConnectCase):
    """An API server of our own that a pod's account talks to."""

    def setUp(self):
        super().setUp()
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                        "2", "-subj", "/CN=api", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
                        f"{self.folder}/key.pem", "-out", f"{self.folder}/ca.pem"], check=True, capture_output=True)
        with open(f"{self.folder}/ca.pem", encoding="utf-8") as f:
            self.write("account/ca.crt", f.read())
        claims = base64.urlsafe_b64encode(json.dumps({"sub": "system:serviceaccount:ml:driver"}).encode()).decode()
        self.write("account/token", f"x.{claims.rstrip('=')}.y")
        self.write("account/namespace", "ml")
        self.asked, self.refuses = [], ()
        case = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                case.asked.append((self.command, self.path, self.headers["Authorization"]))
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                refused = any(word in self.path for word in case.refuses)
                if refused:
                    text = json.dumps({"message": f"driver cannot do {self.path}"})
                elif self.command == "POST":
                    text = json.dumps({"status": {"token": f"made of {json.loads(body)['spec']['audiences'][0]}"}})
                else:
                    text = "the certificate"
                self.send_response(403 if refused else 200)
                self.end_headers()
                self.wfile.write(text.encode())

            do_POST = do_GET

            def log_message(self, *_):
                pass

        server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{self.folder}/ca.pem", f"{self.folder}/key.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        os.environ.update(KUBERNETES_SERVICE_HOST="127.0.0.1", KUBERNETES_SERVICE_PORT=str(server.server_port))

    def test_a_pods_account_gets_a_token_and_the_certificate(self):
        way = _ways.find(_ways.Given())
        self.assertEqual(way.address, "wss://cadre-operator.cadre-system.svc:9443")
        self.assertEqual(way.options["namespace"], "ml")
        self.assertEqual(way.options["ca_pem"], "the certificate")
        with open(way.options["token_file"], encoding="utf-8") as f:
            self.assertEqual(f.read(), "made of cadre")
        self.assertEqual(os.stat(way.options["token_file"]).st_mode & 0o777, 0o600)
        self.assertEqual(self.asked[-1][:2], ("POST", "/api/v1/namespaces/ml/serviceaccounts/driver/token"))
        self.assertTrue(self.asked[0][2].startswith("Bearer x."))
        way.end()
        self.assertFalse(os.path.exists(way.options["token_file"]))

    def test_a_projected_token_is_used(self):
        with unittest.mock.patch.object(_ways, "TOKEN_FILE", self.write("projected", "t")):
            way = _ways.find(_ways.Given(operator_namespace="ops"))
        self.assertEqual(way.address, "wss://cadre-operator.ops.svc:9443")
        self.assertEqual(way.options["token_file"], f"{self.folder}/projected")
        self.assertNotIn("POST", [asked[0] for asked in self.asked])

    def test_the_right_that_is_missing_is_named(self):
        os.environ["PATH"] = self.folder
        self.refuses = ("serviceaccounts",)
        with self.assertRaisesRegex(cadre.Unavailable, "driver cannot do .*it needs the right to create "
                                    "serviceaccounts/token of driver in namespace ml, or a projected token"):
            cadre.connect()
        self.refuses = ("v1/ca",)
        with self.assertRaisesRegex(cadre.Unavailable, "403 .*the right to get services/proxy .* in namespace cadre-system"):
            cadre.connect()


if __name__ == "__main__":
    main()
