// SPDX-License-Identifier: Apache-2.0
#include "bench/groups/requests.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ASK_MS = 30 * 1000, LABEL_MAX = 32 };

struct question {
    bool answered;
    struct requests *ret;
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

static const char *label(const char *labels, const char *name, char *ret, size_t size)
{
    char start[LABEL_MAX];
    snprintf(start, sizeof start, "%s=\"", name);
    const char *at = strstr(labels, start);
    int len = at ? (int)strcspn(at + strlen(start), "\"") : 0;
    snprintf(ret, size, "%.*s", len, at ? at + strlen(start) : "");
    return ret;
}

static void name_kind(const char *labels, char *ret, size_t size)
{
    char verb[LABEL_MAX], resource[LABEL_MAX], sub[LABEL_MAX], code[LABEL_MAX], dry[LABEL_MAX];
    label(labels, ",subresource", sub, sizeof sub);
    label(labels, "{code", code, sizeof code);
    label(labels, ",dry_run", dry, sizeof dry);
    snprintf(ret, size, "%s %s%s%s%s%s%s", label(labels, ",verb", verb, sizeof verb),
             label(labels, ",resource", resource, sizeof resource), sub[0] ? "/" : "", sub, code[0] == '2' ? "" : " ",
             code[0] == '2' ? "" : code, dry[0] ? " (dry run)" : "");
}

static void add(struct requests *r, const char *what, double n)
{
    size_t i = 0;
    while (i < r->n && i < REQUEST_KINDS_MAX - 1 && !str_eq(r->kinds[i].what, what))
        i++;
    if (i == r->n)
        snprintf(r->kinds[r->n++].what, sizeof r->kinds[i].what, "%s",
                 i < REQUEST_KINDS_MAX - 1 ? what : "of other kinds");
    r->kinds[i].n += n;
}

static void read_page(const char *text, struct requests *ret)
{
    static const char family[] = "apiserver_request_total{";
    char what[sizeof ret->kinds[0].what];
    for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
        end = strchrnul(line, '\n');
        if (!str_starts(line, family))
            continue;
        _cleanup_(free_p) char *copy = strndup(line, (size_t)(end - line));
        const char *value = copy ? strrchr(copy, ' ') : NULL;
        if (!value || !counts(copy))
            continue;
        name_kind(copy, what, sizeof what);
        add(ret, what, strtod(value, NULL));
    }
}

static void on_answer(void *ctx, const struct kube_response *response, const struct err *err)
{
    struct question *q = ctx;
    q->answered = true;
    if (response)
        read_page(response->body, q->ret);
    else
        fprintf(stderr, "bench-groups: the API server's metrics: %s\n", err->msg);
}

void requests_take(struct world *w, struct requests *ret)
{
    struct question q = {.ret = ret};
    *ret = (struct requests){0};
    kube_get_path(w->client, "/metrics", ASK_MS, on_answer, &q);
    while (!q.answered)
        loop_run_once(w->loop, 100);
}

double requests_total(const struct requests *r)
{
    double total = 0;
    for (size_t i = 0; i < r->n; i++)
        total += r->kinds[i].n;
    return total;
}

double requests_of(const struct requests *r, const char *what)
{
    for (size_t i = 0; i < r->n; i++)
        if (str_eq(r->kinds[i].what, what))
            return r->kinds[i].n;
    return 0;
}

void requests_add_between(const struct requests *before, const struct requests *after, struct requests *ret)
{
    for (size_t i = 0; i < after->n; i++) {
        double n = after->kinds[i].n - requests_of(before, after->kinds[i].what);
        if (n > 0)
            add(ret, after->kinds[i].what, n);
    }
}
