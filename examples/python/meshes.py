# SPDX-License-Identifier: Apache-2.0
"""Ranks as grids, and modes that follow them: `python3 meshes.py` in this folder."""

import cadre

MESHES = {"train": {"pp": 2, "dp": 2, "tp": 2}, "infer": {"dp": 2, "tp": 4}}  # the last dimension varies fastest


class Model:
    @cadre.register(dispatch="3D_PROTO")
    def train(self, x):  # rows for each dp, results of the last pp and the first tp
        return {"x": [v + 2 * cadre.rank() for v in x]}

    @cadre.register(dispatch="SPLIT", split={"mesh": "infer", "dims": ["dp"]}, collect={"at": {"tp": 0}, "join": True})
    def generate(self, x):  # the same, said by names
        return {"x": [v + cadre.rank() // 4 for v in x]}

    @cadre.register(dispatch="3D_ALL_MICRO_DP")
    def roll_out(self, x):  # rows for each group of ranks that generates together
        return {"x": x, "rank": [cadre.rank()] * len(x)}

    @cadre.register(dispatch="3D_PP_ONLY")
    def layers(self):  # one result for each pp
        return f"stage {cadre.rank() // 4}"


if __name__ == "__main__":
    with cadre.local() as client:
        model = client.Group("meshes:Model", replicas=8, meshes=MESHES)
        print(model.generate(x=[1, 2]), model.train(x=[3, 4]))
        print(model.layers())
        flat = client.Group("meshes:Model", replicas=8, meshes={"train": {"pp": 2, "dp": 4}, "infer": {"dp": 8}})
        print(flat.roll_out(x=list("ABCDEFGH")))  # AB, CD, EF, GH: ranks of one replica of the training
