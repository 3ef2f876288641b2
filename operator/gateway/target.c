// SPDX-License-Identifier: Apache-2.0
#include "operator/gateway/target.h"

#include "common/base/str.h"

#include <string.h>

#define NAMESPACES "/v1/namespaces/"
#define GROUPS "/workergroups/"

// Takes a name of Kubernetes (RFC 1123) up to a slash or the end. Returns the rest of the text, or NULL if there is no
// valid name.
static const char *take_name(const char *text, char out[64])
{
    size_t len = strcspn(text, "/");
    if (!len || len > 63 || strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") != len || text[0] == '-' ||
        text[len - 1] == '-')
        return NULL;
    memcpy(out, text, len);
    out[len] = '\0';
    return text + len;
}

int target_parse(const char *path, struct target *ret, struct err *err)
{
    *ret = (struct target){.kind = TARGET_CONNECT};
    if (str_eq(path, "/v1/connect"))
        return 0;
    if (str_eq(path, "/v1/ca")) {
        ret->kind = TARGET_CA;
        return 0;
    }
    const char *rest = str_starts(path, NAMESPACES) ? take_name(path + strlen(NAMESPACES), ret->ns) : NULL;
    if (rest && str_starts(rest, GROUPS))
        rest = take_name(rest + strlen(GROUPS), ret->group);
    if (!rest || *rest)
        return err_set(err, ERR_NOT_FOUND,
                       "this path does not exist; the paths are " NAMESPACES "NAMESPACE[" GROUPS
                       "NAME] and /v1/connect");
    ret->kind = TARGET_CALLS;
    return 0;
}
