// SPDX-License-Identifier: Apache-2.0
// Reads the WorkerGroup of a manifest, to run it as processes of this machine. Fields about pods and their life have no
// effect.
#pragma once

#include "common/base/arena.h"
#include "operator/api/workergroup.h"

enum { MANIFEST_PROCESSES_MAX = 1024 };

struct manifest {
    struct arena arena;
    const struct workergroup *group;
    int processes;
    const char **command;     // of each process, with NULL at the end
    const char **environment; // "NAME=VALUE" for each variable of the worker and the container, with NULL at the end
    const char *working_dir;  // NULL = the present one
};

// Reads a manifest as kubectl does: YAML or JSON, with one or more documents. `name` is the name of the group, NULL =
// the only one in the file. `map` is "PREFIX=DIRECTORY": paths of the image below PREFIX are in DIRECTORY on this
// machine; NULL = paths are the same. The message of an error names the file. After an error, *ret needs no
// manifest_done().
int manifest_read(const char *file, const char *name, const char *map, struct manifest *ret, struct err *err);
// Does the same for text with one WorkerGroup.
int manifest_parse(const char *text, const char *map, struct manifest *ret, struct err *err);
// Checks the names, because calls and the socket of a run use them. Errors: ERR_INVALID.
int manifest_check_name(const char *ns, const char *name, struct err *err);
void manifest_done(struct manifest *m); // accepts one that is all zero
