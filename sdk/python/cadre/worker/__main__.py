# SPDX-License-Identifier: Apache-2.0
"""One rank of a group: imports spec.worker.python, creates the object, and serves calls until SIGTERM."""

import sys

from . import _serve, _template

if __name__ == "__main__":
    code = _serve.main()
    _template.leave(code)
    sys.exit(code)
