// SPDX-License-Identifier: Apache-2.0
// Makes a pod from a user's PodTemplateSpec. The pod is a copy, except for the fields that Cadre owns. Outside of this
// file, the template stays JSON text.
#pragma once

#include "operator/api/object.h"

struct env_var {
    const char *name, *value;
};

struct pod_agent; // podagent.h

struct pod_render {
    const char *ns, *name, *hostname, *subdomain;
    struct labels labels;      // added to the labels of the template, and win over them
    struct labels annotations; // likewise
    struct owner owner;
    const struct env_var *env; // come first, in every container and init container
    size_t n_env;
    const char *pin;               // node name; NULL = unpinned (dry run)
    const struct pod_agent *agent; // the first container runs under it; NULL = the containers stay as they are
    // Cadre also sets restartPolicy Never, and terminationMessagePolicy FallbackToLogsOnError if the template has none.
    // It does not change setHostnameAsFQDN. The pin goes into every required nodeSelectorTerm as matchFields, but not
    // into an empty term, which matches no node. From the metadata of the template, only labels and annotations are
    // used.
};

// Returns the pod as JSON to create. Copies all other fields of the template as they are written, to the last digit.
// ERR_INVALID names the part of the template that has the wrong shape ("spec.template.spec.containers: ...").
// ERR_LIMIT: the pod is over 4 MiB.
int pod_render(const char *template_json, const struct pod_render *r, struct arena *a, const char **ret_json,
               struct err *err);

// Facts that decide if a template is acceptable.
struct template_facts {
    const char *reserved_env; // first variable of the user with a reserved name, NULL if none
    const char *reserved_env_container;
    const char *owned;     // path of the first field that only Cadre may set, or that works against Cadre; NULL if none
    const char *owned_why; // what to do instead
    uint64_t hash;         // of the canonical JSON (sorted keys): equal templates have equal hashes
    bool has_command;      // the three of struct podagent_facts
    int64_t grace_s;
    const char *taken;
    int64_t gpus; // whole nvidia.com/gpu that a pod of it requests; 0: none, or another resource
    bool claims;  // it has resourceClaims (dynamic resource allocation), which may stand for devices
};

// `reserved` is a NULL-terminated list of names. A name that ends in '*' is a prefix. A name after a '!' is not
// reserved, even if a later entry fits it.
int template_inspect(const char *template_json, const char *const *reserved, struct arena *a,
                     struct template_facts *ret, struct err *err);

bool template_reserves(const char *const *reserved, const char *name); // true if the list reserves the name
