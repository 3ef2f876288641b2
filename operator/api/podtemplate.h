// SPDX-License-Identifier: Apache-2.0
// A pod made from a user's PodTemplateSpec. It is a copy except for the fields that Cadre owns. Outside of this file,
// the template stays JSON text.
#pragma once

#include "operator/api/object.h"

struct env_var {
    const char *name, *value;
};

struct pod_agent; // podagent.h

struct pod_render {
    const char *ns, *name, *hostname, *subdomain;
    struct labels labels;      // added to the template's, ours win
    struct labels annotations; // likewise
    struct owner owner;
    const struct env_var *env; // put first, in every container and init container
    size_t n_env;
    const char *pin;               // node name; NULL = unpinned (dry run)
    const struct pod_agent *agent; // the first container runs under it; NULL = the containers stay as they are
    // What Cadre sets besides: restartPolicy Never; terminationMessagePolicy FallbackToLogsOnError where the template
    // leaves it open; setHostnameAsFQDN untouched; the pin goes into every required nodeSelectorTerm as matchFields
    // (not into an empty one, which matches no node). Of the template's metadata only labels and annotations are used.
};

// The pod as JSON to create. Whatever else the template holds is copied as it is written, to the last digit.
// ERR_INVALID names what in the template is of the wrong shape ("spec.template.spec.containers: ..."), ERR_LIMIT: over
// 4 MiB.
int pod_render(const char *template_json, const struct pod_render *r, struct arena *a, const char **ret_json,
               struct err *err);

// Facts that decide whether a template is acceptable.
struct template_facts {
    const char *reserved_env; // first entry of the user's whose name is in the given list, NULL if none
    const char *reserved_env_container;
    const char *owned;     // path of the first field that is Cadre's to set, or works against it; NULL if none
    const char *owned_why; // and what to do instead
    uint64_t hash;         // of the canonical JSON (sorted keys): equal templates have equal hashes
    bool has_command;      // the three of struct podagent_facts
    int64_t grace_s;
    const char *taken;
    int64_t gpus; // whole nvidia.com/gpu that a pod of it asks for; 0: none, or by something else
    bool claims;  // it has resourceClaims (dynamic resource allocation), which may be devices
};

// `reserved`: NULL-terminated list of names; a name ending in '*' is a prefix, one behind a '!' is not reserved,
// whatever follows.
int template_inspect(const char *template_json, const char *const *reserved, struct arena *a,
                     struct template_facts *ret, struct err *err);

bool template_reserves(const char *const *reserved, const char *name); // the name is in that list
