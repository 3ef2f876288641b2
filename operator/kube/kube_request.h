// SPDX-License-Identifier: Apache-2.0
// A request to the API server as data, and its form on the wire. Pure.
#pragma once

#include "operator/api/object.h"

enum verb {
    VERB_GET,
    VERB_LIST,
    VERB_WATCH,
    VERB_CREATE,
    VERB_UPDATE,      // PUT of the whole object
    VERB_PATCH_MERGE, // RFC 7386
    VERB_PATCH_JSON,  // RFC 6902
    VERB_APPLY,       // server-side apply as "cadre-operator", which creates what is not there
    VERB_DELETE,
};

struct kube_request {
    enum verb verb;
    enum kind kind;
    const char *ns;          // "" or NULL: cluster-wide (for lists: all namespaces)
    const char *name;        // GET, UPDATE, PATCH, APPLY, DELETE; for CREATE, only in messages
    const char *subresource; // "status", or NULL
    const char *body;        // JSON; CREATE, UPDATE, PATCH, APPLY
    bool lends_body;         // the body does not change until the answer, so nobody needs to copy it
    bool dry_run;
    bool decided; // by the leader: not sent if another replica may lead now (kube_client_options.may_decide)
    // LIST and WATCH
    const char *label_selector, *field_selector;
    int32_t limit;
    const char *continue_token;
    const char *resource_version; // also a precondition of DELETE; NULL = none
    bool bookmarks;
    int32_t timeout_s; // server-side end of a watch
    // DELETE
    const char *uid; // precondition, NULL = none
    int64_t grace_s; // -1 = the period of the object. 0 = at once, so set it for each DELETE
};

// Returns a request that deletes exactly this object, as a decision of the leader.
struct kube_request request_delete(const struct object *o);

struct http_message {
    const char *method;       // "GET"
    const char *path;         // "/api/v1/namespaces/ml/pods?limit=500", percent-encoded
    const char *content_type; // NULL without a body
    const char *body;         // NULL without a body
    size_t body_len;
};

// ERR_INVALID if a name is missing or cannot be part of a path. *ret points into the arena and into r->body.
int request_render(const struct kube_request *r, struct arena *a, struct http_message *ret, struct err *err);
const char *verb_name(enum verb v); // "GET", "POST", ... as in rest_client_requests_total
// Writes the request for messages: "POST pods ml/llama-0", "watch of nodes". A CREATE has a name only if the caller set
// one.
void request_describe(const struct kube_request *r, char *ret, size_t size);
