# SPDX-License-Identifier: Apache-2.0
"""get_runtime_context(): questions that a process may ask about itself."""

import json
import os
import secrets

from . import _actor, _missing, _nodes, _placement, _session
from ._actor import ID

_worker_id = ID(secrets.token_hex(28))


class RuntimeContext:
    """About this process, and about the call that asks."""

    def __init__(self, session):
        self._session, self._said = session, session.said

    def get_node_id(self):
        return ID(self._said["node"])

    def get_job_id(self):
        return ID(self._said["job"])

    def get_worker_id(self):
        return _worker_id

    def get_actor_id(self):
        """Returns None if no actor asks."""
        return ID(self._said["actor"]) if self._said.get("actor") else None

    def get_actor_name(self):
        """Returns "" for an actor without a name; None if no actor asks."""
        return self._said.get("name") if self._said.get("actor") else None

    def get_task_id(self):
        """Returns None outside of calls."""
        if self._session.driver:
            return None
        from ._worker import running

        number = running.get()
        return ID(number[0].encode().hex()) if number else None

    def get_placement_group_id(self):
        group = _placement.get_current_placement_group()
        return group.id if group else None

    def get_accelerator_ids(self):
        """Returns the accelerators of each kind that this process sees."""
        return {"GPU": [str(i) for i in _nodes.get_gpu_ids()]}

    def get_assigned_resources(self):
        gpus = len(_nodes.get_gpu_ids())
        return {"GPU": float(gpus)} if gpus else {}

    def get_runtime_env_string(self):
        return json.dumps(self._said["env"])

    @property
    def current_actor(self):
        """Returns the handle of the actor that asks."""
        actor = self.get_actor_id()
        if actor is None:
            raise RuntimeError("This method is only available in an actor.")
        return _actor.handle_of_id(self._session, actor)

    @property
    def was_current_actor_reconstructed(self):
        return int(os.environ.get("CADRE_ATTEMPT") or 1) > 1

    namespace = property(lambda self: self._session.namespace)
    gcs_address = property(lambda self: self._session.client.address)
    runtime_env = property(lambda self: self._said["env"])
    node_id, job_id, actor_id, task_id, worker_id = (property(f) for f in (
        get_node_id, get_job_id, get_actor_id, get_task_id, get_worker_id))

    def get(self):
        """Returns everything as a dict."""
        return {"job_id": self.get_job_id(), "node_id": self.get_node_id(), "namespace": self.namespace}


def get_runtime_context():
    """Returns the RuntimeContext of this process."""
    return RuntimeContext(_session.current())


__getattr__ = _missing.of(__name__)
