# SPDX-License-Identifier: Apache-2.0
"""A plugin of verl for programs that run with `python -m cadre.ray`: the workers of a RayWorkerGroup are the ranks of
one group of Cadre, and its calls go through the proxy. verl loads it by itself (its entry point verl.plugins).
Without it (VERL_USE_EXTERNAL_PLUGINS=none), each worker is an actor of cadre.ray. docs/coming-from-ray.md
"""

import sys

VERSIONS = ("0.9.0",)


class WrongVersion(SystemExit):
    """verl continues after other exceptions of its plugins, and reports nothing."""


def _install():
    import verl

    if verl.__version__ not in VERSIONS:
        raise WrongVersion(f"cadre.verl: this is verl {verl.__version__}, and cadre.verl knows {', '.join(VERSIONS)} only. "
                           "Install that version, or set VERL_USE_EXTERNAL_PLUGINS=none: then the workers of verl are actors "
                           "of cadre.ray")
    from verl.single_controller import ray as package
    from verl.single_controller.ray import base

    from . import _group

    base.RayWorkerGroup = package.RayWorkerGroup = _group.WorkerGroup


if getattr(sys.modules.get("ray"), "__cadre__", False):  # otherwise verl runs on Ray itself, and this plugin does nothing
    _install()
