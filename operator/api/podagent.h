// SPDX-License-Identifier: Apache-2.0
// cadre-agent in a pod. An init container copies it into the pod. It becomes the command of the first container, and
// the container's own command follows as its arguments. It therefore works in any image. Our own image already contains
// it and needs no init container. podtemplate.c uses this, and copies everything else.
#pragma once

#include "common/base/json.h"
#include "common/base/json_writer.h"
#include "operator/api/workergroup.h"

#define PODAGENT_NAME "cadre-agent"      // of the init container and of the volume
#define ANNOTATION_KEYS "cadre.dev/keys" // id of the keys that a pod with an agent was made with

struct pod_agent {
    const char *image, *pull_policy; // of the init container; pull_policy NULL = the default of Kubernetes
    const char *url, *ca_pem;        // address of the operator, and its CA
    const char *keys_id;             // id of the operator's keys; NULL = not known
    bool brings_command;             // spec.worker says what to run, so the command of the container is left out
    const struct worker_env *env;    // the container gets those with a value_from
    size_t n_env;
};

// Returns the seconds between SIGTERM and SIGKILL that processes get if their pod ends with `grace_s`. The agent needs
// some of this time itself.
int64_t podagent_grace_s(int64_t grace_s);

bool podagent_is_in(const struct pod_agent *agent,
                    const struct json *container); // true if the container has the operator's image
void podagent_write_install(struct json_writer *w, const struct pod_agent *agent); // the init container
void podagent_write_volumes(struct json_writer *w, bool installed, const struct json *theirs);
// Returns true if this file writes that member of the container.
bool podagent_owns(const struct json *member);
int podagent_check(const struct json *container, const char *path,
                   struct err *err); // checks the types of these members: ERR_INVALID
void podagent_write_container(struct json_writer *w, const struct pod_agent *agent, const struct json *spec,
                              const struct json *container);
void podagent_write_env(struct json_writer *w, const struct pod_agent *agent); // writes items of the list `env`

struct podagent_facts {
    bool has_command;  // the first container says what to run; args alone do not
    int64_t grace_s;   // terminationGracePeriodSeconds, or the default of Kubernetes
    const char *taken; // path of the first name or mount that an agent in the pod would need; NULL if none
};
struct podagent_facts podagent_inspect(const struct json *spec, struct arena *a);
