#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pools: bundles that groups of a run share."""

import os

import cadre
from python_case import SLOW_S, RunCase, main

ADD = "accumulator:Accumulator"
VISIBLE = "visible:Visible"


class Pools(RunCase):
    modules = (os.path.join(os.path.dirname(os.path.abspath(__file__)), "workers"),)

    def test_two_groups_on_one_pool_share_its_gpus_and_have_states_of_their_own(self):
        with cadre.local(gpus=4) as client:
            pool = client.Pool([4])
            one, two = client.Group(ADD, pool=pool), client.Group(ADD, pool=pool)
            self.assertEqual(one.add.each([1, 1, 1, 1]), [1, 2, 3, 4])
            self.assertEqual(two.add.each([2, 2, 2, 2]), [2, 3, 4, 5])
            self.assertEqual(one.get_value(), [1, 2, 3, 4])
            self.assertEqual(one.nodes, pool.nodes)

    def test_each_rank_sees_the_gpu_of_its_bundle(self):
        with cadre.local(gpus=4) as client:
            pool = client.Pool([4])
            for group in (client.Group(VISIBLE, pool=pool), client.Group(VISIBLE, pool=pool)):
                self.assertEqual(group.gpus(), ["0", "1", "2", "3"])
                self.assertEqual(group.device(), ["cuda:0"] * 4)
            half = client.Group(VISIBLE, pool=pool.split(2)[1])
            self.assertEqual(half.gpus(), ["2", "3"])
            none = client.Group(VISIBLE, pool=pool, gpus=0)
            self.assertEqual(none.gpus(), [""] * 4)
            self.assertEqual(none.device(), ["cpu"] * 4)

    def test_ranks_without_a_pool_see_their_own_gpus_too(self):
        with cadre.local(gpus=4) as client:
            self.assertEqual(client.Group(VISIBLE, replicas=2, gpus=2).gpus(), ["0,1", "2,3"])

    def test_pools_are_added_and_a_group_runs_on_both(self):
        with cadre.local(gpus=4, nodes=2) as client:
            a, b = client.Pool([4], name="a"), client.Pool([4], name="b")
            both = a + b
            self.assertEqual(both.world_size, 8)
            self.assertEqual(both.local_ranks, [0, 1, 2, 3, 0, 1, 2, 3])
            self.assertEqual(both.local_world_sizes, [4] * 8)
            self.assertEqual(both.nodes, a.nodes + b.nodes)
            self.assertEqual(len(set(both.nodes)), 2)
            group = client.Group(ADD, pool=both)
            self.assertEqual(group.add.each([3] * 8), list(range(3, 11)))
            self.assertEqual(group.local_ranks, both.local_ranks)
            with self.assertRaisesRegex(ValueError, "both pools have bundle 0 of PlacementGroup a"):
                both + a

    def test_a_pool_is_split_by_a_number_or_by_sizes(self):
        with cadre.local(gpus=3, nodes=2) as client:
            pool = client.Pool([3, 3])
            first, second = pool.split([2, 4])
            self.assertEqual([first.world_size, second.world_size], [2, 4])
            self.assertEqual(first.nodes + second.nodes, pool.nodes)
            self.assertEqual(second.local_ranks, [0, 0, 1, 2])
            self.assertEqual([p.world_size for p in second.split(2)], [2, 2])
            self.assertEqual(client.Group(ADD, pool=second).add(1), [1, 2, 3, 4])
            with self.assertRaisesRegex(ValueError, "6 bundles are not split into 4 equal parts"):
                pool.split(4)
            with self.assertRaisesRegex(ValueError, r"\[2, 2\] have the sum 4, and there are 6 bundles"):
                pool.split([2, 2])

    def test_a_pool_that_does_not_fit_waits_and_so_does_its_group(self):
        with cadre.local(gpus=2) as client:
            first = client.Pool([2])
            second = client.Pool([1], name="second")
            waits = client.Group(ADD, pool=second).add.start(1)
            said = ""
            while "second are not reserved: needs 1 x 1 free nvidia.com/gpu" not in said:  # until that is known
                with self.assertRaises(TimeoutError) as caught:
                    second.wait_ready(0.1)
                said = str(caught.exception)
            first.close()
            self.assertEqual(waits.result(SLOW_S), [1])
            self.assertEqual(second.wait_ready(), ["local-0"])

    def test_what_never_fits_is_refused(self):
        with cadre.local(gpus=2, cpus=4) as client:
            with self.assertRaisesRegex(cadre.Limit, "at most 2 fit on local-0"):
                client.Pool([3])
            with self.assertRaisesRegex(cadre.Limit, "8 cpu"):
                client.Pool([1], gpus=0, cpus=8)
            pool = client.Pool([2], name="pool")
            with self.assertRaisesRegex(cadre.Invalid, "names 2 bundles for 3 replicas"):
                client.Group(ADD, pool=pool, replicas=3)
            with self.assertRaisesRegex(cadre.Invalid, "spec.worker.gpus is 2, but replica 0 has 1 "):
                client.Group(ADD, pool=pool, gpus=2)
            with self.assertRaisesRegex(TypeError, "image= is the pool's"):
                client.Group(ADD, pool=pool, image="x")
            with self.assertRaisesRegex(cadre.Exists, "PlacementGroup default/pool exists in this run already"):
                client.Pool([1], name="pool")
            for wrong in (4, "4", [], [0], [1.5]):
                with self.assertRaises((TypeError, ValueError)):
                    client.Pool(wrong)

    def test_a_detached_pool_is_found_by_another_program(self):
        with cadre.local(gpus=3) as client:
            with cadre.connect(client.address, namespace="default") as other:
                other.Pool([2, 1], name="stays", detached=True)
                other.Pool([1], gpus=0, name="goes")
            both = client.find_pool("stays-0") + client.find_pool("stays-1")
            self.assertEqual(client.Group(ADD, pool=both).add(1), [1, 2, 3])
            with self.assertRaises(cadre.NotFound):
                while client.find_pool("goes"):  # until the goodbye of its client is heard
                    pass
            client.find_pool("stays-0").close()
            with self.assertRaises(cadre.NotFound):
                client.find_pool("stays-0")

    def test_the_ranks_on_a_pool_end_with_it(self):
        with cadre.local(gpus=2) as client:
            pool, other = client.Pool([1], name="mine"), client.Pool([1])
            group, stays = client.Group(ADD, pool=pool), client.Group(ADD, pool=other)
            self.assertEqual(group.add(1), [1])
            self.assertEqual(stays.add(1), [1])
            pool.close()
            with self.assertRaisesRegex(cadre.Unavailable, "its PlacementGroup mine was deleted"):
                group.add(1)
            with self.assertRaisesRegex(cadre.NotFound, "no PlacementGroup default/mine"):
                client.Group(ADD, pool=pool)
            self.assertEqual(client.Pool([1]).nodes, ["local-0"])  # its GPU is free again
            self.assertEqual(stays.add(1), [2])

    def test_closing_gives_back_all_bundles_even_if_another_program_has_deleted_some(self):
        with cadre.local(gpus=2, nodes=2) as client:
            pool = client.Pool([2, 2], name="mine")
            pool.wait_ready()
            client.find_pool("mine-1").close()
            pool.close()
            pool.close()
            with self.assertRaises(cadre.NotFound):
                client.find_pool("mine-0")

    def test_cpus_are_counted(self):
        with cadre.local(cpus=2) as client:
            first = client.Group(ADD, cpus=2)
            self.assertEqual(first.add(1), [1])
            waits = client.Group(ADD, cpus=1).add.start(1)
            first.close()
            self.assertEqual(waits.result(SLOW_S), [1])
            with self.assertRaisesRegex(cadre.Limit, "3 cpu"):
                client.Group(ADD, cpus=3)


if __name__ == "__main__":
    main()
