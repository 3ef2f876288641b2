#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Groups and pods that a program describes become the objects that it would write by hand."""

import unittest

from python_case import main

from cadre import _manifest

SHARED = {"name": "shm", "emptyDir": {"medium": "Memory"}}
TEMPLATE = {"metadata": {"labels": {"team": "rl"}},
            "spec": {"volumes": [SHARED], "containers": [{"name": "worker", "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}]},
                                                         {"name": "logs", "image": "logs:1"}]}}


class OfPods(unittest.TestCase):
    def test_the_first_container_gets_image_and_resources_and_all_else_stays(self):
        spec = _manifest.workergroup("g", worker="m:C", image="train:1", template=TEMPLATE, gpus=2)["spec"]
        worker, logs = spec["template"]["spec"]["containers"]
        self.assertEqual(worker, {**TEMPLATE["spec"]["containers"][0], "image": "train:1",
                                  "resources": {"limits": {"nvidia.com/gpu": "2"}}})
        self.assertEqual(logs, {"name": "logs", "image": "logs:1"})
        self.assertEqual(spec["template"]["spec"]["volumes"], [SHARED])
        self.assertNotIn("image", TEMPLATE["spec"]["containers"][0])

    def test_a_template_with_a_cpu_limit_lets_the_pod_use_more_than_it_reserves(self):
        template = {"spec": {"containers": [{"name": "worker", "resources": {"limits": {"cpu": 8}}}]}}
        worker = _manifest.template_of("train:1", template, {"cpu": "500m", "nvidia.com/gpu": "1"})["spec"]["containers"][0]
        self.assertEqual(worker["resources"], {"requests": {"cpu": "500m"}, "limits": {"cpu": 8, "nvidia.com/gpu": "1"}})

    def test_a_template_has_its_own_image_and_may_leave_the_container_out(self):
        own = {"spec": {"containers": [{"name": "worker", "image": "own:1"}]}}
        self.assertEqual(_manifest.template_of(template=own), own)
        self.assertEqual(_manifest.template_of("train:1", {"spec": {"nodeSelector": {"zone": "a"}}}),
                         {"spec": {"nodeSelector": {"zone": "a"}, "containers": [{"name": "worker", "image": "train:1"}]}})

    def test_the_pods_of_a_pool_have_one_too(self):
        made = _manifest.placementgroup("p", 4, gpus=1, cpus=0, strategy="StrictPack", image="train:1", template=TEMPLATE)
        self.assertEqual(made["spec"]["template"], _manifest.template_of("train:1", TEMPLATE))

    def test_what_is_no_template_is_refused(self):
        for wrong in ("pod.yaml", ["spec"], {"spec": []}, {"spec": {"containers": []}}, {"spec": {"containers": {}}}):
            with self.assertRaisesRegex(TypeError, r"template= is a pod template, \{.*and not "):
                _manifest.template_of("train:1", wrong)


if __name__ == "__main__":
    main()
