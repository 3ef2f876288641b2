// SPDX-License-Identifier: Apache-2.0
// The WorkerGroup of a manifest as processes of this machine. Fields about pods and their life have no effect.
#pragma once

#include "common/base/arena.h"
#include "operator/api/workergroup.h"

struct manifest {
    struct arena arena;
    const struct workergroup *group;
    int processes;
    const char **command;     // of each process, NULL-terminated
    const char **environment; // "NAME=VALUE", NULL-terminated: what the worker and the container set
    const char *working_dir;  // NULL = this one
};

// Reads a manifest as kubectl takes it: YAML or JSON, of one or more documents. `name`: of the group, NULL = the only
// one there. `map`: "PREFIX=DIRECTORY", what lies under that path of the image is in this directory here; NULL = paths
// are the same. The message of an error names the file. After an error there is nothing to be done with *ret.
int manifest_read(const char *file, const char *name, const char *map, struct manifest *ret, struct err *err);
// Likewise, of text that has one WorkerGroup.
int manifest_parse(const char *text, const char *map, struct manifest *ret, struct err *err);
// Calls and the socket of a run use these names. ERR_INVALID.
int manifest_check_name(const char *ns, const char *name, struct err *err);
void manifest_done(struct manifest *m); // all zero is fine
