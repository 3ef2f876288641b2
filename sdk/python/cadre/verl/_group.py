# SPDX-License-Identifier: Apache-2.0
"""verl's RayWorkerGroup, with ranks that are one group of Cadre. verl still decides the place of each rank, its name,
its environment, and how its modes work. Here, one request makes all ranks, and one call reaches them.
"""

import copy
import functools

from verl.single_controller.base import decorator
from verl.single_controller.ray import base

from ..ray import get as ray_get
from . import _gang, _rank, _rows

_MODES = {  # verl's function that splits -> (the name of the mode here, whether results are one batch)
    decorator.dispatch_one_to_all: "ONE_TO_ALL", decorator.dispatch_all_to_all: "ALL_TO_ALL",
    decorator.dispatch_dp_compute: "DP_COMPUTE", decorator.dispatch_dp_compute_data_proto: "DP_COMPUTE_PROTO"}


def _mode_of(method):
    """Returns (dispatch, execute) of a registered method, for Cadre's tools that show the group."""
    said = getattr(method, decorator.MAGIC_ATTR)
    mode = said["dispatch_mode"]
    known = decorator.DISPATCH_MODE_FN_REGISTRY.get(mode, {}) if isinstance(mode, decorator.Dispatch) else mode
    return (_MODES.get(known.get("dispatch_fn"), "ALL_TO_ALL"),
            "RANK_ZERO" if said["execute_mode"] == decorator.Execute.RANK_ZERO else "ALL")


def _registered(cls, prefix=""):
    """Returns (name, dispatch, execute) of the methods of a group of this class."""
    found = []
    for name in dir(cls):
        method = getattr(cls, name, None)
        if hasattr(method, decorator.MAGIC_ATTR) and not name.startswith("_") and prefix + name not in _rank.TAKEN:
            found.append((prefix + name, *_mode_of(method)))
    return found


def _methods_of(cls):
    found = _registered(cls)
    if getattr(cls, "is_fused_worker", False):
        for key, raw in cls.raw_cls_dict.items():
            found += _registered(raw, f"{key}_fwmn_")
    return found


class WorkerGroup(base.RayWorkerGroup):
    _gang = None

    # Making

    def _init_with_resource_pool(self, *args, **kwargs):
        super()._init_with_resource_pool(*args, **kwargs)
        self._make()

    def _init_with_subresource_pool(self, *args, **kwargs):
        super()._init_with_subresource_pool(*args, **kwargs)
        self._make()

    def _init_with_detached_workers(self, *args, **kwargs):
        super()._init_with_detached_workers(*args, **kwargs)
        self._gang = _gang.Gang.of(self._workers)

    def _get_master_addr_port(self, *args, **kwargs):
        """Cadre sets both for a group. verl sets them if the program sets a range of ports, or the address itself."""
        if self._master_addr is not None or self._master_port is not None or self._ray_master_port_range is not None:
            super()._get_master_addr_port(*args, **kwargs)

    def _create_worker(self, *args, ray_cls_with_init, **kwargs):
        """Records verl's request instead of making an actor."""
        asked = copy.copy(ray_cls_with_init)
        asked._options = dict(asked._options)
        made_of = asked.cls
        asked.cls = copy.copy(made_of)
        asked.cls.options = functools.partial(_gang.Wanted, made_of)
        super()._create_worker(*args, ray_cls_with_init=asked, **kwargs)

    def _make(self):
        self._gang = _gang.make(self._workers, _methods_of(self._workers[0].made_of.__ray_actor_class__))
        self._workers = self._gang.handles

    @property
    def master_address(self):
        self._know_master()
        return self._master_addr

    @property
    def master_port(self):
        self._know_master()
        return self._master_port

    def _know_master(self):
        if self._master_addr is None and self._gang is not None:
            self._master_addr, self._master_port = self._gang.environment(["MASTER_ADDR", "MASTER_PORT"])

    # Calling

    def _bind_worker_method(self, user_defined_cls, func_generator):
        return super()._bind_worker_method(user_defined_cls, functools.partial(_bound, func_generator))

    def execute_all_sync(self, method_name, *args, **kwargs):
        return ray_get(self._execute_at_once(method_name, *args, **kwargs))

    def _name_here(self, method_name):
        if self.fused_worker_used and method_name not in self.method_names:
            return f"{self.sub_cls_name}_fwmn_{method_name}"
        return method_name

    def _execute_at_once(self, method_name, *args, **kwargs):
        """Like execute_all_async(), with one call, so all results arrive together."""
        n = self._world_size
        values = (*args, *kwargs.values())
        each = bool(values) and all(isinstance(v, list) and len(v) == n for v in values)
        own = [(tuple(a[i] for a in args), {k: v[i] for k, v in kwargs.items()}) for i in range(n)] if each else None
        flat = [v for one, named in own for v in (*one, *named.values())] if own else values
        refs = None
        if self._gang is not None and not self._gang.is_behind(flat):
            refs = self._gang.each(self._name_here(method_name), *_pieces(own, n) if own else ([(args, kwargs)], [0] * n))
        return self.execute_all_async(method_name, *args, **kwargs) if refs is None else refs

    def _rows_of_mode(self, dispatch_fn, collect_fn):
        """Returns (the number of each rank's piece, the ranks whose results verl takes, whether they are one batch).
        None: verl splits.
        """
        n = self._world_size
        if dispatch_fn is decorator.dispatch_dp_compute_data_proto:
            joins = collect_fn is decorator.collect_dp_compute_data_proto
            return (list(range(n)), list(range(n)), joins) if joins or collect_fn is decorator.collect_dp_compute else None
        if (getattr(dispatch_fn, "func", None), getattr(collect_fn, "func", None)) != (
                decorator.dispatch_lazy_compute_data_proto, decorator.collect_lazy_compute_data_proto):
            return None
        (mesh,), (other,) = dispatch_fn.args, collect_fn.args
        if mesh not in self._dispatch_info:
            self._dispatch_info[mesh] = self._query_dispatch_info(mesh)
        if other not in self._collect_info:
            self._collect_info[other] = self._query_collect_info(other)
        wanted = [rank for rank, is_wanted in enumerate(self._collect_info[other]) if is_wanted]
        return (list(self._dispatch_info[mesh]), wanted, True) if wanted else None

    def _by_rows(self, method_name, dispatch_fn, collect_fn, blocking, args, kwargs):
        """Returns (True, the result) of a call whose only argument is a batch that the proxy splits like verl;
        (False, None) for others.
        """
        name = self._name_here(method_name)
        batch = _rows.batch_of(args[0]) if len(args) == 1 and not kwargs else None
        if batch is None or self._gang is None or not self._gang.has(name) or self._gang.is_behind():
            return False, None
        mode = self._rows_of_mode(dispatch_fn, collect_fn)
        if mode is None:
            return False, None
        index, wanted, joins = mode
        if batch.rows == 0 or batch.rows % (max(index) + 1):
            return False, None
        if blocking and joins:
            is_joined, values = self._gang.rows(name, batch, index, wanted, True)
            if is_joined:
                return True, values
        else:
            values = self._gang.rows(name, batch, index, wanted, False)
            values = ray_get(values) if blocking else values
        outputs = [None] * self._world_size
        for rank, value in zip(wanted, values):
            outputs[rank] = value
        return True, collect_fn(self, outputs)


def _pieces(own, n):
    """Returns ([(args, kwargs)], the number of each rank's piece). Arguments that are the same objects for several
    ranks travel once.
    """
    pieces, numbers, index = [], {}, []
    for args, kwargs in own:
        key = (*map(id, args), *map(id, kwargs.values()))
        if key not in numbers:
            numbers[key] = len(pieces)
            pieces.append((args, kwargs))
        index.append(numbers[key])
    return pieces, index


def _bound(generate, group, method_name, dispatch_fn, collect_fn, execute_fn, blocking):
    """Returns a method of the group."""
    at_once = blocking and execute_fn == group.execute_all
    by_verl = generate(group, method_name, dispatch_fn=dispatch_fn, collect_fn=collect_fn,
                       execute_fn=group._execute_at_once if at_once else execute_fn, blocking=blocking)
    if execute_fn != group.execute_all:
        return by_verl

    def call(*args, **kwargs):
        done, result = group._by_rows(method_name, dispatch_fn, collect_fn, blocking, args, kwargs)
        return result if done else by_verl(*args, **kwargs)

    call.__name__ = call.__qualname__ = method_name
    return call
