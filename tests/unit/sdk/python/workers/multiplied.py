# SPDX-License-Identifier: Apache-2.0
"""The workers of test_python_torch.py, in ranks that are forked from a template."""

import numpy
import torch


class Multiplied:
    def multiply(self, n):
        """A random number, whether a product of matrices is right, and how many threads worked on it."""
        torch.set_num_threads(2)
        product = torch.ones(n, n) @ torch.ones(n, n)
        return numpy.random.rand(), bool((product == n).all()), torch.get_num_threads()
