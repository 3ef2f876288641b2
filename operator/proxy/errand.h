// SPDX-License-Identifier: Apache-2.0
// What a controller asks for that no worker does: a WorkerGroup to be created or deleted. The router notes it, whoever
// owns the router does it and answers, also after the session has ended.
#ifndef CADRE_PROXY_ERRAND_H
#define CADRE_PROXY_ERRAND_H

#include "common/wire/record.h"
#include "operator/proxy/head.h"
#include "operator/proxy/session.h"

enum errand_kind { ERRAND_NONE, ERRAND_CREATE, ERRAND_DELETE };
enum { ERRANDS_MAX = 64, ERRAND_ARGS_MAX = 1024 * 1024 }; // of a session at a time; bytes

struct errand {
    enum errand_kind kind;
    struct session *session; // NULL once it has ended
    uint32_t caller_id;
    char *args; // NUL-terminated, as it came: nothing was checked
    // private
    bool begun;             // by the router's owner
    struct list link;       // in the router's list of those, or of the others
    struct list of_session; // in the session's until it is answered
};

enum errand_kind errand_kind_of(const struct head *head); // ERRAND_NONE: a call of workers
// ERR_THROTTLED, ERR_LIMIT
int errand_begin(struct session *s, enum errand_kind kind, uint32_t id, const char *args, size_t len, struct err *err);
bool errand_pending(const struct session *s, uint32_t id);
void errands_abandon(struct session *s); // it ends: what was taken is still done

// For the owner of the router: the next to be done, NULL = none. It answers in its time.
struct errand *router_errand(struct router *r);
void router_drop_errands(struct router *r); // at the router's end: nobody may answer them any more
void errand_answer(struct errand *e, const char *json, size_t len); // frees it
void errand_fail(struct errand *e, const struct err *err);          // the same

#endif
