# SPDX-License-Identifier: Apache-2.0
"""Shows which parts of the machine a rank sees."""

import os

import cadre


class Visible:
    def gpus(self):
        return os.environ.get("CUDA_VISIBLE_DEVICES")

    def device(self):
        return cadre.device()
