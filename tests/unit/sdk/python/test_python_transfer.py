#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Weights that move from one group to another, whose mesh splits them otherwise.

    test_python_transfer.py --with FOLDER numpy   with numpy, which pip may have to bring into FOLDER; 77 where it cannot
"""

import concurrent.futures
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
import types
import unittest.mock

import cadre
from cadre import _weights
from python_case import SLOW_S, RunCase, environment, main, program
from safetensors_case import with_packages

HOLDER = "weighty:Holder"
ROWS = {"w": {"tp": 0}, "odd": {"tp": 0}, "bias": {"tp": 0}}
COLUMNS = {"w": {"tp": 1}, "odd": {"tp": 1}}
GRID = {"w": {"dp": 0, "tp": 1}, "odd": {"tp": 0}}


class Transfers(RunCase):
    modules = (os.path.join(os.path.dirname(os.path.abspath(__file__)), "workers"),)

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def both(self, client, ranks, mesh, split, to_ranks, to_mesh, to_split, source=None, target=None, **options):
        source = dict(mesh=mesh, split=split, **(source or {}))
        target = dict(mesh=to_mesh, split=to_split, empty=True, **(target or {}))
        return (client.Group(HOLDER, name="actor", replicas=ranks, init=source, **options),
                client.Group(HOLDER, name="rollout", replicas=to_ranks, init=target, **options))

    def check_moves(self, *sides, direct=True, **more):
        with cadre.local() as client:
            source, target = self.both(client, *sides, **more)
            done = cadre.transfer(source, target)
            whole = {"w": True, "odd": True, "bias": True, "scale": True}
            self.assertEqual(target.is_whole(), [whole] * target.world_size)
            self.assertEqual(target.times(), [1] * target.world_size)
            self.assertGreater(done["bytes"], 0)
            self.assertEqual(done["direct"], done["bytes"] if direct else 0)
            self.assertEqual(done["nccl"], 0)
            self.assertEqual(source.is_whole(), [whole] * source.world_size)

    def test_from_four_ranks_to_two(self):
        self.check_moves(4, {"tp": 4}, ROWS, 2, {"tp": 2}, COLUMNS)

    def test_from_two_ranks_to_a_mesh_of_four(self):
        self.check_moves(2, {"tp": 2}, COLUMNS, 4, {"dp": 2, "tp": 2}, GRID)

    def test_what_all_have_alike(self):
        self.check_moves(2, None, None, 3, {"tp": 3}, ROWS)

    def test_blocks_that_do_not_lie_in_a_row(self):
        self.check_moves(2, {"tp": 2}, ROWS, 2, {"tp": 2}, COLUMNS, source={"strange": True}, target={"strange": True})

    def test_over_connections_where_memory_cannot_be_read(self):
        os.environ["CADRE_TRANSFER_DIRECT"] = "0"
        self.check_moves(2, {"tp": 2}, ROWS, 3, {"tp": 3}, COLUMNS, direct=False)

    def test_some_of_them_as_often_as_wanted(self):
        with cadre.local() as client:
            source, target = self.both(client, 1, None, None, 2, {"tp": 2}, ROWS)
            self.assertEqual(cadre.transfer(source, target, ["bias"])["bytes"], 8)
            self.assertEqual(target.is_whole()[1], {"w": False, "odd": False, "bias": True, "scale": False})
            cadre.transfer(source, target, ["w", "odd"])
            self.assertEqual(target.is_whole()[0], {"w": True, "odd": True, "bias": True, "scale": False})
            with self.assertRaisesRegex(cadre.Invalid, "(actor|rollout) has no weights 'nothing'"):
                cadre.transfer(source, target, ["w", "nothing"])
            with self.assertRaisesRegex(ValueError, "names is empty"):
                cadre.transfer(source, target, [])

    def test_there_and_back_again(self):
        with cadre.local() as client:
            a, b = self.both(client, 2, {"tp": 2}, ROWS, 2, {"tp": 2}, COLUMNS)
            for n in range(1, 4):
                cadre.transfer(a, b)
                cadre.transfer(b, a)
                self.assertEqual(a.times() + b.times(), [n] * 4)
                self.assertTrue(all(f for found in a.is_whole() + b.is_whole() for f in found.values()))

    def test_a_child_of_fork_does_not_keep_what_is_kept_for_the_next_one(self):
        with cadre.local() as client:
            source, target = self.both(client, 2, {"tp": 2}, ROWS, 2, {"tp": 2}, COLUMNS)
            cadre.transfer(source, target)
            self.assertEqual(source.sockets_of_child() + target.sockets_of_child(), [0] * 4)
            cadre.transfer(source, target)
            self.assertEqual(target.times(), [2, 2])

    def test_again_and_again_also_after_restarts_and_from_another_group(self):
        with cadre.local() as client:
            source, target = self.both(client, 2, {"tp": 2}, ROWS, 3, {"tp": 3}, COLUMNS)
            other = client.Group(HOLDER, name="other", replicas=2, init=dict(mesh={"tp": 2}, split=ROWS))
            for restarts, of, times in ((None, source, 1), (None, source, 2), (None, other, 3), (None, source, 4),
                                        (target, source, 1), (source, source, 2), (None, source, 3)):
                if restarts:
                    restarts.restart()
                cadre.transfer(of, target)
                self.assertEqual(target.is_whole(), [{"w": True, "odd": True, "bias": True, "scale": True}] * 3)
                self.assertEqual(target.times(), [times] * 3)

    def test_all_that_does_not_fit_is_said_and_nothing_moves(self):
        with cadre.local() as client:
            source = client.Group(HOLDER, name="actor", replicas=2, init=dict(mesh={"tp": 2}, split=ROWS))
            target = client.Group("weighty:Other", name="rollout")
            with self.assertRaises(cadre.Invalid) as e:
                cadre.transfer(source, target)
            for name in ("w", "odd", "bias", "scale", "more"):
                self.assertRegex(str(e.exception), rf"'{name}' ")
            many = client.Group("weighty:Many", name="many")
            with self.assertRaises(cadre.Invalid) as e:  # more than fits into an error of a call
                cadre.transfer(many, target)
            self.assertEqual(str(e.exception).count("is in many and not in rollout"), 200)
            differing = client.Group("weighty:Differing", name="differing", replicas=2)
            with self.assertRaisesRegex(cadre.Invalid, "rank 1 of differing says other weights than rank 0"):
                cadre.transfer(differing, target)
            self.assertEqual(target.times(), [0])

    def test_blocks_that_the_mesh_does_not_have_are_refused(self):
        with cadre.local() as client:
            target = client.Group(HOLDER, name="rollout", replicas=2)
            wrong = client.Group(HOLDER, name="wrong", replicas=2, init=dict(mesh={"tp": 3}, split=ROWS))
            with self.assertRaisesRegex(cadre.Failed, "has 3 ranks, and the group has 2"):
                cadre.transfer(wrong, target)
            short = client.Group("weighty:Short", name="short", replicas=2)
            with self.assertRaisesRegex(cadre.Invalid, "'w': rank . of short has a block of 72 bytes, and by its mesh the block has 96"):
                cadre.transfer(short, target)

    def test_a_split_of_a_dimension_that_is_not_there_is_refused(self):
        block = types.SimpleNamespace(shape=(2, 3))
        for dim in (2, -3, 4096):
            with self.assertRaisesRegex(ValueError, re.escape(f"split={{'tp': {dim}}}: the tensor has 2 dimensions")):
                cadre.Sharded(block, {"tp": 2}, {"tp": dim}, shape=(4, 3))
        with cadre.local() as client:
            target = client.Group(HOLDER, name="rollout", replicas=2)
            for i, split in enumerate((-2, 4096)):
                wild = client.Group("weighty:Wild", name=f"wild{i}", replicas=2, init=dict(split=split))
                with self.assertRaisesRegex(cadre.Invalid, f"'w' of wild{i} has 2 dimensions, and dimension 0 of the mesh "
                                                           f"splits number {split} of them"):
                    cadre.transfer(wild, target)
            for tp in (0, 3):
                wild = client.Group("weighty:Wild", name=f"mesh{tp}", replicas=2, init=dict(tp=tp))
                with self.assertRaisesRegex(cadre.Invalid, f"mesh 'mesh{tp}' is for {tp} ranks, the group has 2"):
                    cadre.transfer(wild, target)

    def test_a_negative_dimension_counts_from_the_end(self):
        last = cadre.Sharded(types.SimpleNamespace(shape=(2, 3)), {"dp": 2, "tp": 4}, {"tp": -1})
        self.assertEqual((last.shape, last.row()), ((2, 12), [-1, 1]))
        self.check_moves(2, {"tp": 2}, {"w": {"tp": -2}}, 2, {"tp": 2}, {"w": {"tp": -1}})

    def test_a_dtensor_moves_only_if_its_blocks_lie_as_the_mesh_says(self):
        class Placement:
            def __init__(self, kind, dim=None):
                self.kind, self.dim = kind, dim

            def __repr__(self):
                return f"{type(self).__name__}(dim={self.dim})"

            def is_shard(self):
                return self.kind == "shard"

            def is_partial(self):
                return self.kind == "partial"

            def is_replicate(self):
                return self.kind == "replicate"

        class Shard(Placement):
            pass

        class _StridedShard(Shard):  # as in older torch
            pass

        def row(*placements):
            mesh = types.SimpleNamespace(flatten=lambda: types.SimpleNamespace(tolist=lambda: [0, 1, 2, 3]))
            mesh = types.SimpleNamespace(mesh=mesh, ndim=2, shape=(2, 2), mesh_dim_names=("dp", "tp"))
            return _weights._of_dtensor(types.SimpleNamespace(device_mesh=mesh, placements=placements, shape=(8, 4),
                                                              to_local=lambda: None)).row()

        with unittest.mock.patch.dict(os.environ, WORLD_SIZE="4"):
            self.assertEqual(row(Shard("shard", 1), Shard("shard", 0)), [1, 0])
            self.assertEqual(row(Placement("replicate"), Shard("shard", 0)), [-1, 0])
            with self.assertRaisesRegex(TypeError, r"not reduced yet \(Partial\)"):
                row(Placement("partial"), Shard("shard", 0))
            for kind in "shard", "ragged":  # newer torch does not call it a Shard
                with self.assertRaisesRegex(TypeError, r"placement _StridedShard\(dim=0\) does not move.*redistribute"):
                    row(_StridedShard(kind, 0), Shard("shard", 0))

    def test_a_group_without_weights_says_so(self):
        with cadre.local() as client:
            source = client.Group(HOLDER, name="actor")
            target = client.Group("accumulator:Accumulator", name="counter")
            with self.assertRaisesRegex(cadre.Error, "move_weights"):
                cadre.transfer(source, target)
            with self.assertRaisesRegex(cadre.Invalid, "actor cannot send weights to itself"):
                cadre.transfer(source, source)

    def check_death(self, of, rank, phase, takers):
        """A rank of one side dies: these ranks of the target have taken the new weights. The group restarts, and the next
        transfer works. takers: one of these lists.
        """
        fault = os.path.join(self.folder, "fault")
        with cadre.local() as client:
            source, target = self.both(client, 2, {"tp": 2}, ROWS, 3, {"tp": 3}, COLUMNS,
                                       **{of: {"fault": [rank, fault]}})
            target.is_whole()
            target.tell_arrival(self.folder)
            with open(fault, "w", encoding="utf-8") as f:
                f.write(f"{phase} 9")
            with self.assertRaises(cadre.Unavailable) as e:
                cadre.transfer(source, target, timeout=SLOW_S)
            self.assertEqual((e.exception.rank, e.exception.exit_code), (rank, 137))
            told = {name: open(f"{self.folder}/{name}", encoding="utf-8").read() for name in os.listdir(self.folder)}
            self.assertIn(told, [{f"arrived-{taker}": "True" for taker in some} for some in takers])
            if told:
                self.assertIn(f"{len(told)} of 3 ranks of rollout say that they have the new weights", str(e.exception))
            cadre.transfer(source, target, timeout=SLOW_S)
            self.assertTrue(all(f for found in target.is_whole() for f in found.values()))

    def test_a_sender_that_dies_leaves_all_the_old_weights_or_all_the_new_ones(self):
        self.check_death("source", 1, "begun", [[], [0, 1, 2]])  # all, if they have read its memory before that goes

    def test_a_receiver_that_dies_before_it_is_ready_leaves_the_old_weights_to_the_others(self):
        self.check_death("target", 1, "moved", [[]])

    def test_a_receiver_that_dies_after_the_decision_leaves_the_new_weights_to_the_others(self):
        self.check_death("target", 2, "decided", [[0, 1]])

    def test_modules_in_c_and_classes_in_python_move_weights_to_each_other(self):
        with cadre.local() as client:
            trainer = client.Group(module=program("WEIGHTS_SO"), class_name="Trainer", name="trainer", replicas=3)
            server = client.Group(module=program("WEIGHTS_SO"), class_name="Server", name="server", replicas=2)
            mirror = client.Group("weighty:Mirror", name="mirror", replicas=2)
            trainer.step(2)
            cadre.transfer(trainer, server)
            self.assertEqual(server.total(), [(256 * 512 + 10) * 2.0] * 2)
            version = cadre.transfer(trainer, mirror)["version"]
            self.assertEqual(mirror.total(), [(256 * 512 + 10) * 2.0] * 2)
            self.assertEqual(mirror.version(), [version] * 2)
            mirror.add(1)
            version = cadre.transfer(mirror, server)["version"]
            self.assertEqual(server.total(), [(256 * 512 + 10) * 3.0] * 2)
            self.assertEqual(server.version(), [version] * 2)
            with self.assertRaisesRegex(cadre.Invalid, "only cadre_client_transfer"):
                server.move_weights()

    def test_a_client_in_c_moves_them_too(self):
        with cadre.local() as client:
            for cls, replicas in ("Trainer", 3), ("Server", 2):
                client.Group(module=program("WEIGHTS_SO"), class_name=cls, name=cls.lower(), replicas=replicas)
            run = [program("TRANSFER"), client.address, "default"]
            done = subprocess.run([*run, "trainer", "server"], capture_output=True, text=True, check=False, env=environment())
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(re.findall(r"total of server: (.*)", done.stdout), [f"[{n * 131082},{n * 131082}]" for n in (1, 2, 3)])
            self.assertEqual(done.stdout.count(f"{256 * 1024 * 4 + 2 * 40} bytes have moved"), 3)
            done = subprocess.run([*run, "server", "trainer"], capture_output=True, text=True, check=False, env=environment())
            self.assertIn("server has no method", done.stderr)

    def test_two_transfers_at_once_do_not_wait_for_each_other(self):
        with cadre.local() as client:
            a, b = self.both(client, 2, {"tp": 2}, ROWS, 2, {"tp": 2}, COLUMNS)
            cadre.transfer(a, b)
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                for _ in range(5):
                    done = [pool.submit(cadre.transfer, *pair, timeout=SLOW_S)
                            for pair in ((a, b), (b, a), (a, b), (b, a))]
                    for e in filter(None, (d.exception() for d in done)):
                        self.assertRegex(str(e), "another transfer has begun")
            cadre.transfer(a, b)
            self.assertTrue(all(f for found in b.is_whole() for f in found.values()))

    def test_what_has_come_shows_in_the_group_s_stats(self):
        fault = os.path.join(self.folder, "fault")
        with cadre.local() as client:
            source, target = self.both(client, 2, {"tp": 2}, ROWS, 2, {"tp": 2}, COLUMNS, target={"fault": [1, fault]})
            pid = target.call("pid")[1]
            with open(fault, "w", encoding="utf-8") as f:
                f.write(f"moved {int(signal.SIGSTOP)}")
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                done = pool.submit(cadre.transfer, source, target)
                shown = {}
                while not shown.get("complete"):  # rank 0 has all, and waits for the other one
                    shown = target.call("group.stats").get("transfer", {})
                    time.sleep(0.05)
                os.kill(pid, signal.SIGCONT)
                whole = done.result()["bytes"]
            self.assertLessEqual(shown["done"], shown["bytes"])
            self.assertLessEqual(shown["bytes"], whole)
            self.assertIn(shown["slowest"], range(shown["ranks"]))
            while "transfer" in target.call("group.stats"):
                time.sleep(0.05)

    def test_what_a_signal_handler_raises_ends_it(self):
        """It is waiting for a receiver that stands still; the others could go on without a sender."""
        fault = os.path.join(self.folder, "fault")
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        with cadre.local() as client:
            source, target = self.both(client, 1, None, None, 2, {"tp": 2}, ROWS, target={"fault": [0, fault]})
            target.is_whole()
            with open(fault, "w", encoding="utf-8") as f:
                f.write(f"begun {int(signal.SIGSTOP)}")
            pid = target.call("pid")[0]
            threading.Thread(target=self.interrupt_when_stopped, args=(pid, fault), daemon=True).start()
            with self.assertRaises(KeyboardInterrupt):
                cadre.transfer(source, target)
            os.kill(pid, signal.SIGCONT)
            cadre.transfer(source, target)
            self.assertTrue(all(f for found in target.is_whole() for f in found.values()))

    @staticmethod
    def interrupt_when_stopped(pid, fault):
        while os.path.exists(fault) or open(f"/proc/{pid}/stat", encoding="utf-8").read().rsplit(")")[-1].split()[0] != "T":
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    with_packages("small")
    main()
