# SPDX-License-Identifier: Apache-2.0
"""runtime_env: folders of the program that its workers import from."""

import os
import tempfile

import ray

root = tempfile.mkdtemp()


def write(path, text):
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


write("work/train.py", "import tools\nNAME = 'train with ' + tools.NAME\n")
write("work/config.txt", "blue")
write("work/big.ckpt", "x")
write("work/cache/x.bin", "x")
write("work/.gitignore", "cache/\n")
write("libs/tools/__init__.py", "NAME = 'tools'\n")


@ray.remote
def look():
    with open("config.txt", encoding="utf-8") as f:
        return f.read(), sorted(name for name in os.listdir(".") if not name.startswith((".", "__")))


@ray.remote
def name():
    import train

    return train.NAME


@ray.remote
class Actor:
    def look(self):
        return ray.get([look.remote(), name.remote()])  # the workers of its tasks have the same

    def write(self, text):
        with open("config.txt", "w", encoding="utf-8") as f:
            f.write(text)


ray.init(num_cpus=4, runtime_env={"working_dir": f"{root}/work", "py_modules": [f"{root}/libs/tools"], "excludes": ["*.ckpt"]})
print(ray.get(look.remote()))
print(ray.get(name.remote()))
actor = Actor.remote()
print(ray.get(actor.look.remote()))
ray.get(actor.write.remote("green"))
with open(f"{root}/work/config.txt", encoding="utf-8") as f:
    print(f.read())  # theirs is a copy
