// SPDX-License-Identifier: Apache-2.0
// Converts the meshes of a WorkerGroup for the proxy. The proxy does not know Kubernetes, and the API does not know
// calls.
#pragma once

#include "common/wire/mesh.h"
#include "operator/api/workergroup.h"

struct mesh *meshes_of(const struct worker_spec *s, struct arena *a); // returns s->n_meshes of them; names are borrowed
