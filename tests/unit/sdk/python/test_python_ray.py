#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs for Ray (ray/*.py, ray_torch/*.py), run by cadre.ray, and what of them is refused.

    test_python_ray.py          by cadre.ray
    test_python_ray.py --torch  those with torch; 77 if deploy/python.sh cannot bring it
    test_python_ray.py --real   by Ray itself; 77 if deploy/python.sh cannot bring it

Both print what NAME.txt has; UPDATE_GOLDEN=1 with --real writes it.
"""

import gc
import glob
import importlib
import io
import json
import os
import queue
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import unittest.mock
import weakref

from python_case import ROOT, RunCase, environment, main, watch
from safetensors_case import with_packages

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "ray")
RAY_ITSELF = os.path.join(ROOT, "tests/lib/ray_itself.py")


def programs(folder):
    return sorted(os.path.basename(path)[:-3] for path in glob.glob(f"{HERE}/{folder}/*.py"))


LIMIT_S = 1200  # only for a program that hangs: Ray takes minutes on a busy machine
OF_WORKERS = re.compile(r"(\x1b\[\d+m)?\(\w+ pid=\d+|[\w.-]+ \[(rank \d+|agent)\] |cadre-local: ")


def expected(name, folder=FOLDER):
    with open(f"{folder}/{name}.txt", encoding="utf-8") as f:
        return f.read()


def printed(output):
    """What the program itself has printed."""
    return "".join(line for line in output.splitlines(True) if not OF_WORKERS.match(line))


def run(command, folder, **options):
    watch(LIMIT_S + 60)
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False, cwd=folder, **options)


class Runs(RunCase):
    """`python -m cadre.ray` runs them as they are."""

    def prints(self, name, command, folder=FOLDER):
        done = run([os.environ["CADRE_PYTHON3"], *command], folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(printed(done.stdout), expected(name, folder), done.stderr)


class ByCadre(Runs):
    """ray/*.py; those of the seeds also with nothing changed but the import lines."""

    def test_a_program_as_a_module(self):
        self.prints("folders", ["-m", "cadre.ray", "-m", "folders"])


class ElsewhereRun(RunCase):
    """On a run that another program has begun, as on a cluster."""

    def test_what_there_is(self):
        import cadre
        import cadre.ray as ray

        class Holder:
            pass

        with cadre.local(cpus=3, gpus=2) as client, unittest.mock.patch.dict(os.environ, {"CADRE_RAY_IMAGE": "any"}):
            with ray.init(client.address):
                self.assertEqual(ray.cluster_resources(), {"CPU": 3, "GPU": 2, "node:127.0.0.1": 1})
                self.assertEqual(ray.available_resources()["GPU"], 2)
                holder = ray.remote(num_gpus=1)(Holder).remote()
                self.assertEqual(ray.available_resources()["GPU"], 1)
                del holder

    def test_a_cpu_of_the_program_may_be_less_of_a_pod(self):
        import cadre
        import cadre.ray as ray

        with cadre.local(cpus=2) as client, unittest.mock.patch.dict(os.environ, {"CADRE_RAY_IMAGE": "any", "CADRE_RAY_CPU": "100m"}):
            with ray.init(client.address):
                self.assertEqual(ray.cluster_resources()["CPU"], 20)
                self.assertTrue(ray.util.placement_group([{"CPU": 10}] * 2).wait(LIMIT_S))
            for wrong in ("0", "half", "1Gi", "-1"):
                os.environ["CADRE_RAY_CPU"] = wrong
                with self.assertRaisesRegex(ValueError, f"CADRE_RAY_CPU='{wrong}': it is how many CPUs"):
                    ray.init(client.address)


class WithTorch(Runs):
    """ray_torch/*.py."""


def of_program(name, folder):
    return lambda self: self.prints(name, ["-m", "cadre.ray", f"{name}.py"], folder)


def with_our_import(name, folder):
    with open(f"{folder}/{name}.py", encoding="utf-8") as f:
        text = re.sub(r"^import ray$", "import cadre.ray as ray", f.read(), flags=re.M)
    return re.sub(r"^(from|import) ray\b", r"\1 cadre.ray", text, flags=re.M)


def of_program_with_our_import(name, folder):
    return lambda self: self.prints(name, ["-c", with_our_import(name, folder)], folder)


def add_programs(case, folder, name, make, names=None):
    for program in names or programs(folder):
        setattr(case, name.format(program), make(program, f"{HERE}/{folder}"))


add_programs(ByCadre, "ray", "test_{}_as_it_is", of_program)
add_programs(WithTorch, "ray_torch", "test_{}_as_it_is", of_program)
add_programs(ByCadre, "ray", "test_{}_with_another_import_line", of_program_with_our_import, ["basics", "placement"])
add_programs(WithTorch, "ray_torch", "test_{}_with_another_import_line", of_program_with_our_import, ["two_groups"])


class Refused(RunCase):
    """What has no meaning is named, and nothing hangs."""

    def setUp(self):
        super().setUp()
        import cadre.ray

        self.ray = cadre.ray
        self.addCleanup(self.ray.shutdown)

    def test_names_that_are_not_there(self):
        with self.assertRaisesRegex(AttributeError, "cadre.ray has no 'data': "):
            self.ray.data
        with self.assertRaisesRegex(AttributeError, "cadre.ray has no 'nonsense': docs/coming-from-ray.md lists"):
            self.ray.nonsense

    def test_arguments_of_init(self):
        for pattern, arguments in (("Unknown keyword argument.*nonsense", {"nonsense": 1}),
                                   ("CPUs and GPUs only", {"resources": {"special": 1}}),
                                   ("address of a server of Ray's", {"address": "ray://host:10001"}),
                                   ("address of a server of Ray's", {"address": "10.0.0.1:6379"})):
            with self.assertRaisesRegex(Exception, pattern):
                self.ray.init(**arguments)
            self.assertFalse(self.ray.is_initialized())

    def test_a_runtime_env_that_has_no_meaning(self):
        for pattern, runtime_env in (("runtime_env field 'pip'.*image", {"pip": ["torch"]}),
                                     ("runtime_env has no field 'nonsense'; there are env_vars, ", {"nonsense": 1}),
                                     (r"Dict\[str, str\]", {"env_vars": {"A": 1}}),
                                     ("is not a folder", {"working_dir": "/nowhere"}),
                                     ("there is no '/nowhere'", {"py_modules": ["/nowhere"]})):
            for refuse in (lambda: self.ray.init(runtime_env=runtime_env),
                           lambda: self.ray.remote(runtime_env=runtime_env)(Refused),
                           lambda: self.ray.remote(expected).options(runtime_env=runtime_env)):
                with self.assertRaisesRegex(Exception, pattern):
                    refuse()
            self.assertFalse(self.ray.is_initialized())

    def test_a_named_actor_twice(self):
        class Named:
            pass

        self.ray.init(num_cpus=1)
        actor = self.ray.remote(num_cpus=0)(Named)
        first = actor.options(name="one").remote()
        with self.assertRaisesRegex(ValueError, r"(?s)The name one .*is already taken.*ray.get_actor\('one'"):
            actor.options(name="one").remote()
        self.assertEqual(self.ray.get_actor("one"), first)
        self.assertEqual(actor.options(name="one", get_if_exists=True).remote(), first)

    def test_an_actor_that_has_crashed_holds_neither_its_name_nor_its_cpus(self):
        class Named:
            def crash(self):
                os._exit(1)

        ray = self.ray
        ray.init(num_cpus=1)
        actor = ray.remote(num_cpus=1)(Named).options(name="one", get_if_exists=True)
        first = actor.remote()
        with self.assertRaises(ray.exceptions.RayActorError):
            ray.get(first.crash.remote())
        with self.assertRaisesRegex(ValueError, "Failed to look up actor with name 'one'"):
            ray.get_actor("one")
        self.assertEqual(ray.available_resources()["CPU"], 1)
        second = actor.remote()
        self.assertNotEqual(second, first)
        self.assertEqual(ray.get_actor("one"), second)
        with self.assertRaises(ray.exceptions.ActorDiedError):
            ray.get(first.crash.remote())

    def test_an_address_of_the_environment_is_that_of_init(self):
        with unittest.mock.patch.dict(os.environ, {"RAY_ADDRESS": "ray://host:10001"}):
            with self.assertRaisesRegex(ConnectionError, r"init\('ray://host:10001'\)"):
                self.ray.init()

    def test_a_cluster_that_is_not_found(self):
        for given, environment in (("auto", {}), (None, {"RAY_ADDRESS": "auto"})):
            with unittest.mock.patch.dict(os.environ, {"PATH": "/nowhere", **environment}):
                with self.assertRaisesRegex(ConnectionError, r"init\('auto'\).*no kubectl.*[.] Without an address, init\(\)"):
                    self.ray.init(given)
        self.assertFalse(self.ray.is_initialized())

    def test_pods_of_a_cluster(self):
        from cadre.ray import _session

        with tempfile.NamedTemporaryFile("w+", suffix=".yaml") as f, unittest.mock.patch.dict(os.environ, {}):
            with self.assertRaisesRegex(ValueError, "workers run in an image: .*CADRE_RAY_IMAGE"):
                _session._pods({})
            os.environ["CADRE_RAY_TEMPLATE"] = f.name
            template = {"spec": {"nodeSelector": {"zone": "a"}}}
            json.dump(template, f)
            f.flush()
            self.assertEqual(_session._pods({"image_uri": "train:1"}), {"image": "train:1", "template": template})
            f.truncate(0)
            f.seek(0)
            f.write("spec: [nodeSelector]")
            f.flush()
            with unittest.mock.patch.dict(sys.modules, yaml=None):
                with self.assertRaisesRegex(ValueError, "yaml is not JSON, and YAML needs the package PyYAML"):
                    _session._pods({})
            yaml = types.SimpleNamespace(safe_load=lambda text: {"spec": ["nodeSelector"]}, YAMLError=ValueError)
            with unittest.mock.patch.dict(sys.modules, yaml=yaml), self.assertRaisesRegex(TypeError, "is a pod template.*and not"):
                _session._pods({})

    def test_a_program_that_counts_what_a_cluster_has(self):
        with self.assertRaisesRegex(ValueError, "existing cluster, num_cpus and num_gpus must not be provided"):
            self.ray.init("auto", num_gpus=4)

    def test_init_twice(self):
        self.ray.init(num_cpus=1)
        with self.assertRaisesRegex(RuntimeError, "ray.init twice"):
            self.ray.init()
        self.ray.init(ignore_reinit_error=True)

    def test_an_actor_or_a_task_that_asks_for_more_than_there_is(self):
        ray = self.ray
        ray.init(num_cpus=2, num_gpus=1)
        with self.assertRaisesRegex(ray.exceptions.ActorUnschedulableError, "asks for 2 GPU, and this run has 1"):
            ray.remote(num_gpus=2)(Refused).remote()
        with self.assertRaisesRegex(ray.exceptions.TaskUnschedulableError, "asks for 3 CPU"):
            ray.remote(num_cpus=3)(expected).remote("x")
        with self.assertRaisesRegex(ValueError, "num_gpus=0.5: a GPU of its own is whole.*placement group"):
            ray.remote(num_gpus=0.5)(Refused).remote()

    def test_workers_of_many_shapes_end_once_they_are_idle(self):
        ray = self.ray
        ray.init(num_cpus=2)
        task = ray.remote(os.getenv)
        for i in range(3):
            self.assertEqual(ray.get(task.options(runtime_env={"env_vars": {"SHAPE": str(i)}}).remote("SHAPE")), str(i))
        from cadre.ray import _session

        while _session.existing().workers:
            time.sleep(0.05)

    def test_a_task_that_runs_at_shutdown_begins_nothing_new(self):
        ray = self.ray
        ray.init(num_cpus=1)
        running = ray.remote(time.sleep).remote(600)
        ray.shutdown()
        with self.assertRaisesRegex(RuntimeError, r"shutdown\(\) came before this task had run"):
            ray.get(running)
        self.assertFalse(ray.is_initialized())

    def test_an_actor_without_handles_ends_after_its_calls(self):
        class Slow:
            def __init__(self):
                time.sleep(0.5)

            def run(self, _=None):
                time.sleep(0.01)
                return 1

        ray = self.ray
        ray.init(num_cpus=4)
        slow = ray.remote(Slow)
        self.assertEqual(ray.get(slow.options(max_concurrency=4).remote().run.remote()), 1)
        actor = slow.options(concurrency_groups={"io": 1}).remote()
        refs = [actor.run.options(concurrency_group="io").remote() for _ in range(100)]
        refs.append(actor.run.remote(ray.remote(time.sleep).remote(1)))
        del actor
        self.assertEqual(ray.get(refs), [1] * 101)
        from cadre.ray import _session

        while any(a["state"] != "DEAD" for a in _session.existing().ask("all_actors").values()):
            time.sleep(0.05)

    def test_polling_leaves_nothing_behind(self):
        class Sleeper:
            def sleep(self):
                time.sleep(600)

        ray = self.ray
        ray.init(num_cpus=2)
        sleeper = ray.remote(Sleeper).remote()
        ray.get(sleeper.__ray_ready__.remote())
        refs = [sleeper.sleep.remote(), ray.remote(time.sleep).remote(600)]
        for _ in range(3):
            self.assertEqual(ray.wait(refs, timeout=0.001), ([], refs))
            for ref in refs:
                with self.assertRaises(ray.exceptions.GetTimeoutError):
                    ray.get(ref, timeout=0.001)
        self.assertEqual([ref._promise._callbacks for ref in refs], [[], []])
        from cadre.ray import _session

        self.assertEqual({len(callbacks) for _, callbacks in _session.existing().client._watched.values()}, {1})

    def test_options_and_decorators(self):
        ray = self.ray
        with self.assertRaisesRegex(ValueError, "Invalid option keyword nonsense for actors"):
            ray.remote(Refused).options(nonsense=1)
        with self.assertRaisesRegex(ValueError, "Invalid option keyword lifetime for remote functions"):
            ray.remote(lifetime="detached")(expected)
        with self.assertRaisesRegex(ValueError, "num_returns='streaming': cadre.ray has no generators"):
            ray.remote(num_returns="streaming")(expected)
        with self.assertRaisesRegex(TypeError, "either a function or a class"):
            ray.remote(num_cpus=1)(5)
        with self.assertRaisesRegex(TypeError, "cannot be called directly"):
            ray.remote(expected)("x")

    def test_calls_of_an_actor_run_again_if_its_process_dies_or_they_raise(self):
        class Dies:
            def __init__(self):
                self.n = 0

            def dies(self, file, times, begins=None):
                while begins and not os.path.exists(begins):
                    time.sleep(0.01)
                with open(file, "a+", encoding="utf-8") as f:
                    f.write(".")
                    if f.tell() <= times:
                        f.flush()
                        os._exit(1)
                self.n += 1
                return self.n

            def add(self):
                self.n += 1
                return self.n

            def raises(self, kind):
                self.n += 1
                raise kind(self.n)

        ray, retried = self.ray, {"max_task_retries": 2, "retry_exceptions": [KeyError]}
        ray.init(num_cpus=1)
        dies = ray.remote(max_restarts=-1, max_task_retries=1)(Dies).remote()
        with tempfile.TemporaryDirectory() as folder:
            file = f"{folder}/file"
            refs = [dies.dies.remote(file, 1, f"{folder}/begins"), *(dies.add.remote() for _ in range(5))]
            dies._calls().group.call("pid", rank=0)  # now the process has all calls
            with open(f"{folder}/begins", "x", encoding="utf-8"):
                pass
            self.assertEqual(ray.get(refs), [1, 2, 3, 4, 5, 6])
            self.assertEqual(ray.get(dies.dies.options(max_task_retries=-1).remote(file, 3)), 1)
            with self.assertRaises(ray.exceptions.ActorUnavailableError):
                ray.get(dies.dies.options(max_task_retries=0).remote(file, 5))
            ref = ray.remote(max_restarts=1, max_task_retries=1)(Dies).remote().dies.remote(file, 6)  # nobody has the handle
            self.assertEqual(ray.get(ref), 1)
        ray.get(dies.add.options(max_task_retries=-1).remote())
        for kind, tries in (KeyError, 3), (ValueError, 1):
            before = ray.get(dies.add.remote())
            with self.assertRaises(kind):
                ray.get(dies.raises.options(**retried).remote(kind))
            self.assertEqual(ray.get(dies.add.remote()), before + tries + 1)
        ray.kill(dies)
        with self.assertRaises(ray.exceptions.ActorDiedError):
            ray.get(dies.add.options(max_task_retries=-1).remote())

    def test_no_more_calls_than_max_pending_calls_wait_for_their_answers(self):
        class Waits:
            def wait(self):
                time.sleep(600)

        ray = self.ray
        ray.init(num_cpus=1)
        waits = ray.remote(max_concurrency=2, max_pending_calls=2)(Waits).remote()
        ray.get([waits.__ray_ready__.remote() for _ in range(2)])
        waiting = [waits.wait.remote() for _ in range(2)]
        with self.assertRaisesRegex(ray.exceptions.PendingCallsLimitExceeded, "wait could not be submitted to Waits .* than 2 tasks"):
            waits.wait.remote()
        self.assertEqual(ray.wait(waiting, timeout=0.1), ([], waiting))
        for wrong in -2, "many":
            with self.assertRaisesRegex(ValueError, "max_pending_calls"):
                ray.remote(max_pending_calls=wrong)(Waits)
        with self.assertRaisesRegex(TypeError, "retry_exceptions"):
            waits.wait.options(retry_exceptions=KeyError)

    def test_an_actor_that_asks_for_more_than_its_bundle_has(self):
        from cadre.ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        ray = self.ray
        ray.init(num_cpus=4, num_gpus=2)
        group = ray.util.placement_group([{"CPU": 1, "GPU": 1}] * 2)
        for bundle in (0, -1):
            on_bundle = PlacementGroupSchedulingStrategy(group, bundle)
            with self.assertRaisesRegex(ValueError, "Cannot schedule Refused .*'GPU': 2.*Ask for less, or give"):
                ray.remote(num_gpus=2, scheduling_strategy=on_bundle)(Refused).remote()
        with self.assertRaisesRegex(ray.exceptions.PlacementGroupSchedulingError, r"none fits.*init\(num_cpus="):
            ray.util.placement_group([{"GPU": 4}])

    def test_nothing_is_kept_of_a_placement_group_that_was_removed(self):
        from cadre.ray import _placement, _session
        from cadre.ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        ray = self.ray
        ray.init(num_cpus=2)
        group = ray.util.placement_group([{"CPU": 1}] * 2)
        for _ in range(3):
            _placement.of(_session.existing(), {"scheduling_strategy": PlacementGroupSchedulingStrategy(group)}, "it")
        self.assertEqual(sorted(n for (name, _), n in _placement._taken.items() if name == group._name), [1, 2])
        ray.util.remove_placement_group(group)
        self.assertNotIn(group._name, [name for name, _ in _placement._taken])
        with unittest.mock.patch.object(_session.Session, "ask", return_value={}):  # the directory has forgotten it
            self.assertEqual(ray.util.placement_group_table(group)["state"], "REMOVED")

    def test_a_program_that_ends_before_a_value_that_it_has_shared_is_there(self):
        done = self.run_program("import time", "import cadre.ray as ray", "ray.init(num_cpus=4)", "@ray.remote", "class A:",
                                "    def wait(self):", "        time.sleep(600)", "    def take(self, refs):", "        pass",
                                "a, b = A.remote(), A.remote()", "ray.get(b.take.remote([a.wait.remote()]))", "ray.shutdown()")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def run_program(self, *lines):
        return subprocess.run([os.environ["CADRE_PYTHON3"], "-c", "\n".join(lines)], capture_output=True, text=True, check=False)

    def test_a_program_that_has_imported_ray_itself(self):
        done = self.run_program("import sys, types; sys.modules['ray'] = types.ModuleType('ray')", "import cadre.ray as ray",
                                "ray.init()")
        self.assertEqual(done.returncode, 1)
        self.assertIn("has imported ray itself", done.stderr)
        self.assertIn("python -m cadre.ray program.py", done.stderr)

    def test_a_program_that_imports_ray_itself_later(self):
        done = self.run_program("import cadre.ray, importlib.util", "with cadre.ray.init(num_cpus=1):",
                                "    print(importlib.util.find_spec('ray').name)", "    import ray")
        self.assertEqual((done.returncode, done.stdout), (1, "ray\n"))
        self.assertIn("ImportError: this program imports ray itself as well as cadre.ray", done.stderr)
        self.assertIn("python -m cadre.ray program.py", done.stderr)

    def test_a_verl_of_another_version(self):
        lines = ["import sys, types", "import cadre.ray", "sys.modules['ray'] = cadre.ray", "verl = types.ModuleType('verl')",
                 "verl.__version__ = '0.5.0'", "sys.modules['verl'] = verl", "try:", "    import cadre.verl",
                 "except Exception:", "    pass  # as verl does, which then says nothing", "print('goes on')"]
        done = self.run_program(*lines)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("this is verl 0.5.0, and cadre.verl knows 0.9.0 only", done.stderr)
        self.assertIn("VERL_USE_EXTERNAL_PLUGINS=none", done.stderr)
        lines[2] = "sys.modules['ray'] = types.ModuleType('ray')"  # on Ray itself it is none of our business
        done = self.run_program(*lines)
        self.assertEqual((done.returncode, done.stdout), (0, "goes on\n"), done.stderr)

    def test_a_value_that_does_not_pickle(self):
        ray = self.ray
        ray.init(num_cpus=1)
        with self.assertRaisesRegex(TypeError, r"the value of put\(\) cannot be sent: it\['guard'\] \(a lock\)"):
            ray.put({"guard": threading.Lock()})


class Messages(RunCase):
    """What the processes of a program tell the directory."""

    def setUp(self):
        super().setUp()
        import cadre.ray
        from cadre.ray import _packing, _refs, _session

        self.cadre, self.ray, self.body, self.refs, self.existing = cadre, cadre.ray, _packing.as_tensor, _refs, _session.existing
        self.addCleanup(self.ray.shutdown)

    def test_a_message_that_finds_the_directory_full_is_sent_again(self):
        self.ray.init(num_cpus=1)
        session = self.existing()
        session.ask("hold", ["never", "told"])
        with self.cadre.connect(session.client.address, namespace="default", trust=True) as other:
            directory = other.group(session.said["directory"])
            waiting = [directory.start("fetch", "never", 1, rank=0) for _ in range(1000)]
            waiting += [session.start("fetch", "never", 1) for _ in range(100)]  # it takes 1,024
            session.tell("put", "told", "value", self.body(b"told"))
            self.assertEqual(session.ask("fetch", "told")[0], "value")

    def test_a_value_that_is_too_long_is_an_error_for_those_who_wait_for_it(self):
        told, promise = [], self.refs.Promise()

        def tell(*message, **_):
            if message[2] == "value":
                raise self.cadre.Limit("2 GiB at most")
            told.append(message)

        self.refs._push(types.SimpleNamespace(tell=tell), "name", promise)
        promise.settle(1)
        self.assertEqual([message[:3] for message in told], [("put", "name", "error")])

    def test_a_value_that_does_not_open_here_is_an_error_for_those_who_wait_for_it(self):
        found = types.SimpleNamespace(exception=lambda: None, result=lambda: ("value", types.SimpleNamespace(data=b"rubbish")))
        found.add_done_callback = lambda f: f(found)
        promise, told = self.refs._Elsewhere(types.SimpleNamespace(start=lambda *_: found), "name"), []
        promise.add_done_callback(lambda: told.append(promise.outcome()[1]))
        self.assertIsInstance(told[0], Exception)

    def test_a_call_that_cannot_be_sent_leaves_its_worker_to_the_next_task(self):
        ray = self.ray
        ray.init(num_cpus=1)
        here = ray.remote(os.getpid)
        worker = ray.get(here.remote())
        with unittest.mock.patch("cadre.ray._remote.packed_arguments", side_effect=self.cadre.Limit("2 GiB at most")):
            with self.assertRaisesRegex(self.cadre.Limit, "2 GiB at most"):
                ray.get(here.remote())
        self.assertEqual(ray.get(here.remote()), worker)

    def test_an_actor_whose_connection_was_lost_may_live(self):
        from cadre.ray import exceptions

        for error, kind in ((self.cadre.Unavailable("lost", may_have_run=True), exceptions.ActorUnavailableError),
                            (self.cadre.Unavailable("rank 0", may_have_run=True, rank=0), exceptions.ActorDiedError),
                            (self.cadre.Unavailable("nobody is there"), exceptions.ActorDiedError)):
            self.assertIs(type(exceptions.of_actor(error, "Actor")), kind)

    def test_a_message_that_does_not_arrive_is_reported(self):
        self.ray.init(num_cpus=1)
        with unittest.mock.patch("sys.stderr", io.StringIO()) as printed:
            self.existing().tell("hold")
            while "do not learn of hold(): " not in printed.getvalue():
                time.sleep(0.01)


class Alone(unittest.TestCase):
    """The program's side, without processes around it."""

    def setUp(self):
        import cadre
        from cadre import ray
        from cadre.ray import _remote, _session

        self.cadre, self.ray = cadre, ray
        said = {"local": {"CPU": 1.0, "GPU": 0.0}, "depth": 0}
        self.session = types.SimpleNamespace(said=said, workers={}, closed=False, close=lambda: None, later=None, process="p")
        self.enterContext(unittest.mock.patch.object(_session, "_current", self.session))
        self.given, self.worker = [], _remote.Worker(unittest.mock.Mock())
        self.enterContext(unittest.mock.patch.object(_remote.Workers, "_new", lambda workers: self.worker))
        self.enterContext(unittest.mock.patch.object(_remote.Workers, "_give", lambda *given: self.given.append(given)))
        self.task = ray.remote(expected)

    def answer(self, result=None, error=None):
        """Ends the task that a worker was given last."""
        workers, task, worker = self.given.pop()
        workers._ended(task, worker, types.SimpleNamespace(exception=lambda: error, result=lambda: result))

    def test_a_task_does_not_run_again_if_its_worker_lives(self):
        for error in self.cadre.Failed("it does not pickle"), self.cadre.Proto("it does not open here"):
            ref = self.task.remote("x")
            self.answer(error=error)
            self.assertEqual(self.given, [])
            with self.assertRaises(type(error)):
                self.ray.get(ref)
        ref = self.task.remote("x")
        self.answer(error=self.cadre.Unavailable("it died", rank=0))
        self.answer([5])
        self.assertEqual(self.ray.get(ref), 5)

    def test_workers_whose_worker_crashes_stay_known_while_its_task_runs_again(self):
        ref = self.task.remote("x")
        known = dict(self.session.workers)
        self.answer(error=self.cadre.Unavailable("it died", rank=0))
        self.assertEqual(self.session.workers, known)
        self.answer([5])
        self.assertEqual((self.ray.get(ref), [workers.all for workers in known.values()]), (5, [1]))

    def test_a_task_that_is_over_keeps_neither_its_arguments_nor_parts_that_nobody_has(self):
        class Thing:
            pass

        def dropped(kept):
            gc.collect()
            return kept() is None

        thing = Thing()
        ref, kept = self.task.remote(thing), weakref.ref(thing)
        del thing
        self.assertFalse(dropped(kept))
        self.answer([5])
        self.assertTrue(dropped(kept))
        self.ray.cancel(ref)
        self.assertEqual(self.ray.get(ref), 5)
        ref, other = self.task.options(num_returns=2).remote("x")
        things = [Thing(), Thing()]
        kept = weakref.ref(things[1])
        self.answer([things])
        del things, other
        self.assertTrue(dropped(kept))
        self.ray.cancel(ref)
        self.assertIsInstance(self.ray.get(ref), Thing)

    def test_ctrl_c_while_a_worker_is_made_loses_no_task(self):
        from cadre.ray import _remote

        later = []
        self.session.later = later.append
        with unittest.mock.patch.object(_remote.Workers, "_new", side_effect=KeyboardInterrupt):
            with self.assertRaises(KeyboardInterrupt):
                self.task.remote("x")
        self.assertEqual(self.given, [])
        hand_out, = later
        hand_out()
        workers, task, _ = self.given[-1]
        self.answer([5])
        self.assertEqual((task.promise.outcome(), workers.all), ((5, None), 1))

    def test_a_worker_whose_task_ctrl_c_stops_on_its_way_takes_the_next_one(self):
        from cadre.ray import _remote

        self.session.later = unittest.mock.Mock()
        for before in [], [self.worker]:
            workers = next(iter(self.session.workers.values()), None)
            self.assertEqual(workers.idle if workers else [], before)
            with unittest.mock.patch.object(_remote.Workers, "_give", side_effect=KeyboardInterrupt):
                with self.assertRaises(KeyboardInterrupt):
                    self.task.remote("x")
        self.assertEqual((workers.idle, workers.all), ([self.worker], 1))

    def test_one_timer_ends_all_idle_workers(self):
        from cadre.ray import _remote

        with unittest.mock.patch.object(threading, "Timer") as timer, unittest.mock.patch.object(time, "monotonic") as now:
            now.return_value = 0
            for _ in range(3):
                self.task.options(num_gpus=0).remote("x")
                self.answer([5])
                now.return_value += 1
            self.assertEqual(timer.call_args_list, [unittest.mock.call(_remote._IDLE_S, unittest.mock.ANY)])
            now.return_value = _remote._IDLE_S
            end_idle = timer.call_args.args[1]
            end_idle()  # too early for the worker that had its last task later
            self.worker.group.start.assert_not_called()
            now.return_value += timer.call_args.args[0]
            end_idle()
            self.worker.group.start.assert_called_once()
            self.assertEqual((timer.call_count, self.session.workers), (2, {}))

    def test_nobody_looks_for_a_placement_group_whose_reference_was_dropped(self):
        from cadre.ray._placement import PlacementGroup

        def looks():
            return [t for t in threading.enumerate() if t.name == "cadre.ray placement group"]

        group, is_ready = PlacementGroup("pg", [{"CPU": 1}]), threading.Event()
        with unittest.mock.patch.object(PlacementGroup, "wait", lambda *_: is_ready.wait(0.01)):
            dropped, awaited = group.ready(), group.ready().future()
            self.assertEqual(len(looks()), 2)
            del dropped
            while len(looks()) > 1:
                time.sleep(0.01)
            self.assertFalse(awaited.done())
            is_ready.set()
            self.assertEqual(awaited.result(), group)

    def test_an_object_may_end_while_another_one_ends(self):
        from cadre.ray import _session

        client, ended = types.SimpleNamespace(group=str, close=lambda: None), queue.SimpleQueue()
        session = _session.Session(client, {"namespace": "n", "directory": "d"}, driver=True)

        def collect(*_):  # as the garbage collector does at any line
            session.later(ended.put, "inner")
            return collect

        def end():
            sys.settrace(collect)
            session.later(ended.put, "outer")
            sys.settrace(None)

        thread = threading.Thread(target=end, daemon=True)
        thread.start()
        thread.join(5)
        self.assertFalse(thread.is_alive())
        while ended.get(timeout=5) != "outer":
            pass
        session.close()

    def calls(self, **info):
        """How this process calls an actor. sent: the methods that were called; futures: of these calls."""
        from cadre.ray import _actor

        self.session.client = unittest.mock.Mock()
        calls = _actor.Calls(self.session, "actor", {"group": "g", "class": "C", "ordered": True, "lanes": {}, "restarts": 0, **info})
        self.sent, self.futures = [], []
        self.enterContext(unittest.mock.patch("cadre._call.start", self.start))
        return calls

    def start(self, _client, _method, args):
        future = unittest.mock.Mock()
        future.done.return_value = False
        self.sent.append(args[1])
        self.futures.append(future)
        return future

    def end(self, future, result=None, error=None):
        """Ends a call of an actor."""
        future.done.return_value, future.exception.return_value, future.result.return_value = True, error, [result]
        for call in future.add_done_callback.call_args_list:
            call.args[0](future)

    def test_a_canceled_call_that_waits_for_an_argument_does_not_stop_later_ones(self):
        from cadre.ray import _refs

        for is_ordered in True, False:
            late = [_refs.ObjectRef(_refs.Promise()) for _ in range(3)]
            calls = self.calls(ordered=is_ordered)
            calls.submit("f", (late[0],), {}, {})
            canceled, _ = calls.submit("g", (late[1], late[2]), {}, {})
            calls.submit("h", (), {}, {})
            canceled.cancel()
            self.assertTrue(canceled.done())
            for ref in late:
                ref._promise.settle(1)
            self.assertEqual(self.sent, ["f", "h"] if is_ordered else ["h", "f"])
            self.assertFalse(calls.waits())

        never = _refs.ObjectRef(_refs.Promise())
        calls = self.calls()
        canceled, _ = calls.submit("f", (never,), {}, {})
        calls.submit("g", (), {}, {})
        canceled.cancel()
        self.assertEqual((self.sent, calls.waits()), (["g"], False))

    def test_a_call_that_ctrl_c_interrupts_does_not_wait_for_ever(self):
        for interrupted in KeyboardInterrupt, SystemError:
            calls = self.calls()
            with unittest.mock.patch("cadre._call.start", side_effect=interrupted), self.assertRaises(interrupted):
                calls.submit("f", (), {}, {}, most=1)
            again, _ = calls.submit("f", (), {}, {"max_task_retries": 1}, most=1)
            with unittest.mock.patch("cadre._call.start", side_effect=interrupted):
                with unittest.mock.patch.object(calls, "_explained", return_value=self.ray.exceptions.ActorUnavailableError("it died")):
                    self.end(self.futures[-1], error=self.cadre.Unavailable("it died", rank=0))
            self.assertIsInstance(again.outcome()[1], interrupted)

    def test_a_callback_may_wait_for_a_call_that_may_be_sent_again(self):
        from cadre.ray import _packing, _refs

        calls = self.calls()
        promise, _ = calls.submit("f", (), {}, {"max_task_retries": 1, "retry_exceptions": True})
        raised, value = _packing.Raised(KeyError("once"), "f"), [7]
        self.futures[0].exception.return_value, self.futures[0].result.return_value = None, raised
        start = self.start

        def start_answered(*call):
            future = start(*call)
            future.exception.return_value, future.result.return_value = None, value
            return future

        with unittest.mock.patch.object(_refs, "is_watcher", return_value=True), unittest.mock.patch("cadre._call.start", start_answered):
            self.assertTrue(promise.wait(5))
        self.assertEqual((promise.outcome(), self.sent), ((7, None), ["f", "f"]))
        for future in self.futures:  # the thread that calls back comes later
            self.end(future, 8)
        self.assertEqual((promise.outcome(), self.sent), ((7, None), ["f", "f"]))

    def test_an_actor_without_handles_is_asked_until_all_of_its_calls_are_over(self):
        from cadre.ray import _actor, _refs

        later, told = [], []
        self.session.later, self.session.tell = lambda *call: later.append(call), lambda *message: told.append(message)
        calls, late = self.calls(ordered=False), _refs.ObjectRef(_refs.Promise())
        calls.submit("f", (late,), {}, {})
        calls.submit("g", (), {}, {})

        def look(begun=None, running=None):
            """The actor says this when it is asked. Returns what was asked."""
            f, *args = later.pop()
            calls.group.start.reset_mock()
            f(*args)
            if begun is not None:
                asked = calls.group.start.return_value
                asked.exception.return_value, asked.result.return_value = None, [begun, running]
                asked.add_done_callback.call_args.args[0](asked)
            return calls.group.start.call_args

        with unittest.mock.patch.object(threading, "Timer") as timer, unittest.mock.patch.object(time, "monotonic") as now:
            timer.side_effect = lambda _, f, args: later.append(args) or unittest.mock.Mock()
            now.return_value = 0
            later.append((calls._fence,))
            self.assertIsNone(look())  # an argument is late
            late._promise.settle(1)
            self.assertEqual(later, [])  # the actor is not asked before the answer
            self.end(self.futures[1])
            for said in (1, 1), (2, 1), (2, 0):
                self.assertEqual(look(*said).args[0], "calls_of")
                self.assertEqual(told, [])
            look(2, 0)
            self.assertEqual(told, [("drop", ["actor"])])
            later.append((calls._fence,))  # once more, with a call that was canceled before it began
            for now.return_value in 0, _actor._LOST_S - 1:
                look(1, 0)
            self.assertEqual(len(told), 1)
            now.return_value = _actor._LOST_S
            look(1, 0)
            self.assertEqual(len(told), 2)

    def test_an_actor_without_handles_does_not_end_before_its_answers_are_here(self):
        self.session.later, self.session.tell = lambda f, *args: f(*args), unittest.mock.Mock()
        for is_ordered in True, False:
            calls = self.calls(ordered=is_ordered)
            start, waiting = calls.group.start, [calls.submit("f", (), {}, {})[0] for _ in range(2)]
            calls.submit("f", (), {}, {})  # nobody waits for this one
            calls._fence()
            for future in self.futures[1::-1]:
                start.assert_not_called()
                self.end(future)
            start.assert_called_once()
            del waiting

    def test_an_actor_that_cannot_be_asked_now_is_asked_again(self):
        self.session.tell, asked = unittest.mock.Mock(), unittest.mock.Mock()
        errors = self.cadre.Throttled("too many calls"), self.cadre.Unavailable("lost", may_have_run=True)
        for is_ordered in True, False:
            calls = self.calls(ordered=is_ordered)
            with unittest.mock.patch.object(threading, "Timer") as timer:
                for asked.exception.return_value in errors:
                    calls._told(None, 0, 1, asked)
                self.session.tell.assert_not_called()
                self.assertEqual(timer.call_count, 2)
            asked.exception.return_value = self.cadre.Unavailable("it died", rank=0, may_have_run=True)
            calls._told(None, 0, 1, asked)
            self.session.tell.assert_called_once_with("drop", ["actor"])
            self.session.tell.reset_mock()

    def test_the_group_of_a_detached_actor_that_has_crashed_is_deleted(self):
        from cadre.ray import _names

        group = unittest.mock.Mock()
        group.info.return_value, group.call.side_effect = {"ready": False}, self.cadre.Unavailable("it has failed")
        self.session.client = types.SimpleNamespace(group=lambda _: group)
        for is_last, is_detached in (True, False), (False, True), (True, True):
            group.close.assert_not_called()
            self.session.ask = lambda *_: is_last
            record = {"state": "ALIVE", "group": "g", "detached": is_detached, "restarts": 0}
            self.assertTrue(_names.has_crashed(self.session, "actor", record))
        group.close.assert_called_once()

    def test_a_result_without_the_parts_of_num_returns_is_an_error(self):
        for result, kind in (None, TypeError), ({1, 2}, TypeError), ({"a": 1, "b": 2}, TypeError), ([1], ValueError):
            refs = self.task.options(num_returns=2).remote("x")
            self.answer([result])
            for ref in refs:
                with self.assertRaisesRegex(kind, "Task expected returned .* but num_returns=2"):
                    self.ray.get(ref, timeout=5)


SLOW = """
import os
with open(os.environ["IMPORTS"], "a") as f:
    f.write(f"{os.getpid()}\\n")
"""


class Nursery(RunCase):
    """Workers of a program that has imported what takes long."""

    def setUp(self):
        super().setUp()
        from cadre import ray
        from cadre.ray import _nursery

        self.ray, self.nursery = ray, _nursery
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.imports, self.module = f"{folder}/imports", f"slow_{os.path.basename(folder).replace('-', '_')}"
        path = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
        self.enterContext(unittest.mock.patch.dict(os.environ, {"IMPORTS": self.imports, "PYTHONPATH": path}))
        self.enterContext(unittest.mock.patch.object(sys, "path", [*sys.path, folder]))
        self.enterContext(unittest.mock.patch.object(_nursery, "_SLOW", (self.module,)))
        self.folder = folder
        self.addCleanup(self.ray.shutdown)
        self.addCleanup(sys.modules.pop, self.module, None)

    def program_imports(self, text=SLOW):
        with open(f"{self.folder}/{self.module}.py", "w", encoding="utf-8") as f:
            f.write(text)
        importlib.invalidate_caches()
        importlib.import_module(self.module)

    def importers(self):
        with open(self.imports, encoding="utf-8") as f:
            return [int(line) for line in f]

    def actor(self, **options):
        module = self.module

        class Actor:
            def born(self):
                import importlib

                importlib.import_module(module)
                with open(f"/proc/{os.getppid()}/comm", encoding="utf-8") as f:
                    return os.getpid(), os.getppid(), f.read().strip(), os.environ.get("WHO")

        return self.ray.remote(max_concurrency=1)(Actor).options(**options).remote()

    def await_death(self, actor):
        with self.assertRaises(self.ray.exceptions.RayActorError):
            while True:  # a call may still come in time
                self.ray.get(actor.born.remote())

    def test_workers_of_all_runs_are_forked_from_what_was_imported_once(self):
        self.program_imports()
        for _ in range(2):
            with self.ray.init(num_cpus=4):
                born = self.ray.get([self.actor().born.remote() for _ in range(2)])
                self.assertEqual([comm for _, _, comm, _ in born], ["cadre-agent"] * 2)
                self.assertEqual(len({agent for _, agent, _, _ in born}), 2)
                self.assertTrue(self.ray.get(self.ray.remote(lambda: "IMPORTS" in os.environ).remote()))
        nursery = self.nursery._here
        self.assertEqual(self.importers(), [os.getpid(), nursery._process.pid])
        self.nursery._here = None
        nursery.leave()
        self.assertEqual(nursery._process.wait(LIMIT_S), 0)

    def test_a_program_that_is_killed_leaves_no_process_and_no_folder_even_if_a_child_of_it_lives(self):
        self.program_imports()
        text = f"""
import importlib, os, signal, sys
from cadre import ray
from cadre.ray import _nursery
_nursery._SLOW = ("{self.module}",)
importlib.import_module("{self.module}")
ray.init(num_cpus=4)
ray.get(ray.remote(lambda: 0).remote())
child = os.fork()
if child == 0:
    os.close(1)
    signal.pause()
print(child, _nursery._here._process.pid, _nursery._here._folder, flush=True)
sys.stdin.readline()
os.kill(os.getpid(), signal.SIGKILL)
"""
        with subprocess.Popen([os.environ["CADRE_PYTHON3"], "-c", text], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as program:
            child, pid, folder = program.stdout.readline().split()
            nursery = os.pidfd_open(int(pid))
            program.stdin.close()
            select.select([nursery], [], [])
            os.close(nursery)
            os.kill(int(child), signal.SIGKILL)
        self.assertFalse(os.path.exists(folder))

    def test_a_worker_with_variables_of_its_own_imports_itself(self):
        self.program_imports()
        self.ray.init(num_cpus=4)
        pid, _, comm, who = self.ray.get(self.actor(runtime_env={"env_vars": {"WHO": "me"}}).born.remote())
        self.assertEqual((comm, who), ("cadre-agent", "me"))
        self.assertIn(pid, self.importers())

    def test_a_worker_with_more_cpus_imports_itself_to_have_more_threads(self):
        self.program_imports()
        self.ray.init(num_cpus=4)
        pid, _, comm, _ = self.ray.get(self.actor(num_cpus=2).born.remote())
        self.assertEqual(comm, "cadre-agent")
        self.assertIn(pid, self.importers())
        self.ray.shutdown()
        with unittest.mock.patch.dict(os.environ, {"OMP_NUM_THREADS": "3"}):  # the program itself says it
            self.ray.init(num_cpus=4)
            pid, _, _, _ = self.ray.get(self.actor(num_cpus=2).born.remote())
        self.assertNotIn(pid, self.importers())

    def test_variables_that_the_program_has_changed_before_init_are_there_when_workers_import(self):
        text = SLOW.replace("{os.getpid()}", "{os.getpid()} {os.environ.get('COLOR')}")
        self.program_imports(text)
        seen = []
        for color in ("blue", "red", "red"):
            with unittest.mock.patch.dict(os.environ, {"COLOR": color}):
                with self.ray.init(num_cpus=4):
                    os.environ["COLOR"] = "green"  # too late
                    self.ray.get(self.actor().born.remote())
            with open(self.imports, encoding="utf-8") as f:
                seen.append([line.split()[1] for line in f])
        self.assertEqual(seen, [["None", "blue"], ["None", "blue", "red"], ["None", "blue", "red"]])

    def test_a_process_in_line_that_is_stopped_keeps_nobody_waiting(self):
        self.program_imports()
        self.ray.init(num_cpus=4)
        self.ray.get(self.actor().born.remote())
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stopped:
            stopped.connect(self.nursery._here.said["path"])  # and says nothing
            pid, _, _, _ = self.ray.get(self.actor().born.remote())
            self.assertNotIn(pid, self.importers())
            self.nursery._here.leave()
            self.assertEqual(stopped.recv(16), b"")  # it is on its own
        self.nursery._here = None

    def test_an_agent_that_is_killed_is_the_end_of_its_worker(self):
        self.program_imports()
        self.ray.init(num_cpus=4)
        actor = self.actor()
        pid, agent, _, _ = self.ray.get(actor.born.remote())
        os.kill(agent, signal.SIGKILL)
        self.await_death(actor)
        self.assertNotIn(pid, self.importers())

    def test_a_nursery_that_is_killed_is_followed_by_another(self):
        self.program_imports()
        self.ray.init(num_cpus=4)
        actor = self.actor()
        self.ray.get(actor.born.remote())
        first = self.nursery._here
        first._process.kill()
        first._process.wait()
        self.await_death(actor)
        pid, _, comm, _ = self.ray.get(self.actor().born.remote())
        self.assertEqual(comm, "cadre-agent")
        self.assertIsNot(self.nursery._here, first)
        self.assertNotIn(pid, self.importers())

    def test_where_imports_leave_threads_workers_import_themselves(self):
        self.program_imports("import threading, time\n" + SLOW + "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n")
        self.ray.init(num_cpus=4)
        for _ in range(2):
            pid, _, comm, _ = self.ray.get(self.actor().born.remote())
            self.assertEqual(comm, "cadre-agent")
            self.assertIn(pid, self.importers())
        self.assertEqual(self.nursery._here._process.wait(LIMIT_S), 1)


class ByRay(unittest.TestCase):
    """The same programs by Ray itself."""


def by_ray(name, folder):
    def test(self):
        # A thread of Ray prints what workers say on the same standard output, in the middle of the program's lines.
        env = {**environment(), "RAY_LOG_TO_DRIVER": "0"}
        del env["PYTHONPATH"]
        words = [folder, "--no-dashboard", f"{name}.py"]
        done = run([sys.executable, RAY_ITSELF, "--kept", *words], folder, env=env)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        if os.environ.get("UPDATE_GOLDEN"):
            with open(f"{folder}/{name}.txt", "w", encoding="utf-8") as f:
                f.write(printed(done.stdout))
        if printed(done.stdout) != expected(name, folder):
            run([sys.executable, RAY_ITSELF, "--forget", *words], folder, env=env)
        self.assertEqual(printed(done.stdout), expected(name, folder))

    return test


for _folder in ("ray", "ray_torch"):
    add_programs(ByRay, _folder, "test_{}_by_ray_itself", by_ray)


if __name__ == "__main__":
    kind = "".join(sys.argv[1:2])
    with_packages("large" if kind else "small")
    if kind != "--real":
        del ByRay
    if kind != "--torch":
        del WithTorch
    if kind:
        del Alone, ByCadre, ElsewhereRun, Nursery, Refused
    main()
