// SPDX-License-Identifier: Apache-2.0
#include "bench/groups/requests.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ASK_MS = 30 * 1000 };

struct question {
    bool answered;
    double total;
};

static bool counts(const char *labels)
{
    static const char *const others[] = {
        ",verb=\"WATCH\"",      ",verb=\"LIST\"",      ",verb=\"CONNECT\"",
        ",resource=\"leases\"", ",resource=\"nodes\"", ",resource=\"\"",
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (strstr(labels, others[i]))
            return false;
    return true;
}

static double sum(const char *text)
{
    static const char family[] = "apiserver_request_total{";
    double total = 0;
    for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
        end = strchrnul(line, '\n');
        if (!str_starts(line, family))
            continue;
        _cleanup_(free_p) char *copy = strndup(line, (size_t)(end - line));
        const char *value = copy ? strrchr(copy, ' ') : NULL;
        if (value && counts(copy))
            total += strtod(value, NULL);
    }
    return total;
}

static void on_answer(void *ctx, const struct kube_response *response, const struct err *err)
{
    struct question *q = ctx;
    q->answered = true;
    if (response)
        q->total = sum(response->body);
    else
        fprintf(stderr, "bench-groups: the API server's metrics: %s\n", err->msg);
}

double requests_total(struct world *w)
{
    struct question q = {0};
    kube_get_path(w->client, "/metrics", ASK_MS, on_answer, &q);
    while (!q.answered)
        loop_run_once(w->loop, 100);
    return q.total;
}
