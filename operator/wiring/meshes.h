// SPDX-License-Identifier: Apache-2.0
// The meshes of a WorkerGroup in the form of the proxy: the proxy does not know Kubernetes, and the API does not know
// calls.
#pragma once

#include "common/wire/grid.h"
#include "operator/api/workergroup.h"

struct grid *meshes_of(const struct worker_spec *s, struct arena *a); // s->n_meshes of them; names are borrowed
