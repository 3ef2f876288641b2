# SPDX-License-Identifier: Apache-2.0
"""Runs the cells of a notebook in this process, as a kernel does, and prints what each one shows.

    notebook.py FILE.ipynb
"""

import ast
import json
import sys
import types


def run(path):
    module = sys.modules["__main__"] = types.ModuleType("__main__")  # classes of cells are of the program itself
    with open(path, encoding="utf-8") as f:
        cells = json.load(f)["cells"]
    for number, cell in enumerate(cells):
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]), f"<cell {number}>")
        last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"<cell {number}>", "exec"), vars(module))
        if last:
            value = eval(compile(last, f"<cell {number}>", "eval"), vars(module))
            if value is not None:
                print(repr(value), flush=True)


if __name__ == "__main__":
    run(sys.argv[1])
