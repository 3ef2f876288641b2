# SPDX-License-Identifier: Apache-2.0
"""What a rank sees of the machine."""

import os

import cadre


class Visible:
    def gpus(self):
        return os.environ.get("CUDA_VISIBLE_DEVICES")

    def device(self):
        return cadre.device()
