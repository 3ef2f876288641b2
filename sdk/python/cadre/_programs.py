# SPDX-License-Identifier: Apache-2.0
"""The programs that come with the package."""

import os
import shutil
import sys


def find(name, variable):
    """Returns the program that CADRE_... names, otherwise the one of the package, otherwise the one in PATH. None:
    there is none.
    """
    path = own(name)
    return os.environ.get(variable) or (path if os.path.exists(path) else shutil.which(name))


def own(name):
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", name)


def cadre_local():
    """The command cadre-local of the wheel."""
    _become("cadre-local")


def kubectl_cadre():
    """The command kubectl-cadre of the wheel, which kubectl finds as `kubectl cadre`."""
    _become("kubectl-cadre")


def _become(name):
    path = own(name)
    os.environ["PATH"] = os.pathsep.join([os.path.dirname(path), os.environ.get("PATH", os.defpath)])
    os.execv(path, [name, *sys.argv[1:]])
