// SPDX-License-Identifier: Apache-2.0
#include "sdk/c/client/retry.h"

#include "common/base/mem.h"

#include <stdio.h>

enum { ON_MAX = 1024, RETRY_ASKED_MAX_MS = 3600 * 1000 };

// Names of errors and exceptions, separated by commas.
static bool is_list_of_names(const char *on)
{
    static const char upper[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t len = strnlen(on, ON_MAX);
    bool good = len < ON_MAX && strspn(on, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_,") == len;
    for (size_t i = 0; good && i <= len; i++)
        good = i == 0 || on[i - 1] == ',' ? on[i] && strchr(upper, on[i]) : true;
    return good;
}

int retry_new(const cadre_client_request *request, struct retry **ret, struct err *err)
{
    const char *on = request->retry_on ? request->retry_on : "";
    *ret = NULL;
    if (!request->max_retries) {
        if (request->retry_on || request->idempotent)
            return err_set(err, ERR_INVALID, "%s(): retry_on or idempotent needs max_retries", request->method);
        return 0;
    }
    if (request->retry_on && !is_list_of_names(on))
        return err_set(err, ERR_INVALID, "%s(): retry_on must be names of errors, such as \"FAILED,NO_DEVICE\"",
                       request->method);
    size_t size = strlen(on) + 3;
    struct retry *r = xcalloc(1, sizeof *r + size);
    r->left = request->max_retries;
    r->idempotent = request->idempotent;
    snprintf(r->on, size, ",%s,", on);
    *ret = r;
    return 0;
}

static bool is_named(const struct retry *r, const cadre_client_error *error)
{
    char name[sizeof error->name + 2];
    snprintf(name, sizeof name, ",%s,", error->name);
    return (error->name[0] && strstr(r->on, name)) ||
           (error->code == CADRE_CLIENT_FAILED && strstr(r->on, ",FAILED,")); // under any name that the method gives it
}

static bool is_wanted(const struct retry *r, const cadre_client_error *error)
{
    if (error->code == CADRE_CLIENT_CANCELED) // the client canceled it, and does not want it any more
        return false;
    bool passing = error->code == CADRE_CLIENT_UNAVAILABLE || error->code == CADRE_CLIENT_THROTTLED;
    return (passing && (!error->may_have_run || r->idempotent || error->idempotent)) || is_named(r, error);
}

int64_t retry_after(struct retry *r, const cadre_client_error *error, struct rand *rand)
{
    r->may_have_run = r->may_have_run || error->may_have_run;
    if (!r->left || !is_wanted(r, error))
        return -1;
    int64_t pause = MIN((int64_t)RETRY_MIN_MS << MIN(r->done, 10U), (int64_t)RETRY_MAX_MS);
    r->left--;
    r->done++;
    return MAX(rand_range(rand, pause / 2, pause), MIN(error->retry_after_ms, (int64_t)RETRY_ASKED_MAX_MS));
}
