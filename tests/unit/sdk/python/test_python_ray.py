#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs for Ray (ray/*.py, ray_torch/*.py), run by cadre.ray, and what of them is refused.

    test_python_ray.py          by cadre.ray
    test_python_ray.py --torch  those with torch; 77 if deploy/python.sh cannot bring it
    test_python_ray.py --real   by Ray itself; 77 if deploy/python.sh cannot bring it

Both print what NAME.txt has; UPDATE_GOLDEN=1 with --real writes it.
"""

import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import unittest.mock

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
    """Returns the lines of the program itself."""
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
    """ray/*.py; the seeds also with nothing changed but the import lines."""

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
    """The error names what has no meaning here, and nothing hangs."""

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
        del ByCadre, ElsewhereRun, Refused
    main()
