// SPDX-License-Identifier: Apache-2.0
// The environment of one worker process: the pod's own, the operator's additions for the group, and the variables that
// identify the process. Later ones override earlier ones. Pure. docs/api.md lists the names for users.
#pragma once

#include "worker/agent/gpus.h"

struct environment_var {
    const char *name, *value;
};

// The same for all processes of a group in this pod.
struct environment_group {
    const char *uid, *name, *ns;
    const char *master_addr;
    int master_port;
    int world_size;
    int nnodes, node_rank; // pods of the group, and which of them this is
    int local_world_size;
    // Of the user and the operator; a later one of a name wins. $(NAME) in a value is replaced as Kubernetes does, also
    // where NAME is the process's own, such as RANK; not in those of the operator, CADRE_*.
    const struct environment_var *vars;
    size_t n_vars;
    const char *brought; // folder with what workers in Python need of us (install.h); NULL = it is in the image
    struct gpus gpus;    // without cuda_visible and nvidia_visible, which come from the pod
};

struct environment_process {
    int rank, local_rank, attempt;
    const char *ticket; // NULL = none
    const int *gpus;    // as in struct gpus_worker
    size_t n_gpus;
};

// `pod`: "NAME=value", NULL-terminated. *ret is NULL-terminated: the pod's, ours, then `vars`, each name once.
// ERR_INVALID as gpus_view().
int environment_build(const char *const *pod, const struct environment_group *g, const struct environment_process *p,
                      struct arena *a, const char *const **ret, struct err *err);
// Of the template (template.h) of these processes: without what differs between them, or from one attempt to the next.
const char *const *environment_template(const char *const *pod, const struct environment_group *g, struct arena *a);
// Which GPUs that process has. Errors as above.
int environment_gpus(const char *const *pod, const struct environment_group *g, const struct environment_process *p,
                     struct arena *a, struct gpus_view *ret, struct err *err);
// Replaces $(NAME) by its value in `env`, and $$( by $(. A name that is not set stays as it is.
const char *environment_expand(const char *const *env, const char *text, struct arena *a);
const char *const *environment_expand_all(const char *const *env, const char *const *texts, struct arena *a);
const char *environment_get(const char *const *env, const char *name); // NULL = not set
// The difference between two environments: "NAME=value" to set a variable, "NAME" to remove it.
const char *const *environment_changes(const char *const *from, const char *const *to, struct arena *a);
const char *const *environment_copy(const char *const *list, struct arena *a);
