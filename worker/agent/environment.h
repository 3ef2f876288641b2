// SPDX-License-Identifier: Apache-2.0
// The environment of one worker process: the pod's own, the operator's additions for the group, and the variables that
// identify the process. Later variables override earlier ones. Pure. docs/api.md lists the names for users.
#pragma once

#include "worker/agent/gpus.h"

struct environment_var {
    const char *name, *value;
};

// These are the same for all processes of a group in this pod.
struct environment_group {
    const char *uid, *name, *ns;
    const char *master_addr;
    int master_port;
    int world_size;
    int nnodes, node_rank; // number of pods of the group, and the index of this one
    int local_world_size;
    // The variables of the user and the operator. If a name comes twice, the later one wins. $(NAME) in a value is
    // replaced as in Kubernetes. NAME may be one of the process's own variables, such as RANK. Nothing is replaced in
    // the variables of the operator, CADRE_*.
    const struct environment_var *vars;
    size_t n_vars;
    const char *brought; // folder with the files that Python workers need (install.h); NULL = they are in the image
    struct gpus gpus;    // without cuda_visible and nvidia_visible: they come from the pod
};

struct environment_process {
    int rank, local_rank, attempt;
    const char *ticket; // NULL = none
    const int *gpus;    // its own GPUs, as numbers in the pod; NULL = a share, by its local rank
    size_t n_gpus;
};

// `pod`: "NAME=value", NULL-terminated. *ret is NULL-terminated. It has the pod's variables, then the agent's, then
// `vars`, each name once. Returns ERR_INVALID like gpus_view().
int environment_build(const char *const *pod, const struct environment_group *g, const struct environment_process *p,
                      struct arena *a, const char *const **ret, struct err *err);
// The environment of the template (template.h) of these processes. It lacks the variables that differ between the
// processes, or between attempts.
const char *const *environment_template(const char *const *pod, const struct environment_group *g, struct arena *a);
// Tells which GPUs that process has. Returns the errors of gpus_view().
int environment_gpus(const char *const *pod, const struct environment_group *g, const struct environment_process *p,
                     struct arena *a, struct gpus_view *ret, struct err *err);
// Replaces $(NAME) by its value in `env`, and $$( by $(. A variable that is not set stays as it is.
const char *environment_expand(const char *const *env, const char *text, struct arena *a);
const char *const *environment_expand_all(const char *const *env, const char *const *texts, struct arena *a);
const char *environment_get(const char *const *env, const char *name); // NULL = not set
// The difference between two environments: "NAME=value" sets a variable, "NAME" removes it.
const char *const *environment_changes(const char *const *from, const char *const *to, struct arena *a);
const char *const *environment_copy(const char *const *list, struct arena *a);
