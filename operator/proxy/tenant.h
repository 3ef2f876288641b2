// SPDX-License-Identifier: Apache-2.0
// A namespace, as all others have to share the operator with it: the bytes and calls that it makes the operator hold.
// It may hold as much as is left to the others together: alone half of
// everything, beside one that does the same a third, and so on. So there is always room for one that has nothing yet.
#ifndef CADRE_PROXY_TENANT_H
#define CADRE_PROXY_TENANT_H

#include "operator/proxy/router.h"

struct tenant {
    struct router *router;
    char *ns;
    unsigned refs; // of its sessions and calls
    struct quota *quota;
    uint32_t n_calls; // answered ones that a worker still has included
};

struct tenant *tenant_get(struct router *r, const char *ns); // a reference
struct tenant *tenant_ref(struct tenant *t);
void tenant_unref(struct tenant *t);

// ERR_THROTTLED: the namespace, or the operator, has as many calls as it may have.
int tenant_check_calls(const struct tenant *t, struct err *err);
// Why there is no room for more of one of its sessions: its own share, or that of the namespace.
void tenant_explain(const struct tenant *t, const struct quota *session, struct err *err);

#endif
