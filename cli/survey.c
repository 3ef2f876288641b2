// SPDX-License-Identifier: Apache-2.0
#include "cli/survey.h"

#include "cli/child_process.h"
#include "cli/report.h"
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdlib.h>
#include <string.h>

enum {
    ANSWER_MS = 10 * 1000, // the answer comes at once, or not at all
    FIND_MS = 10 * 1000,   // for all missing replicas
    TRIES = 16,            // for each missing replica: with two replicas, one of 65,000 surveys misses one
    TRIES_AGAIN = 2,       // for a replica that earlier surveys did not meet either
};

enum met { MET_NEW, MET_KNOWN, MET_NOBODY };

static bool same(const char *a, const char *b)
{
    return a && b ? str_eq(a, b) : a == b;
}

const struct survey_answer *survey_of(const struct survey *s, const char *replica)
{
    for (size_t i = 0; i < s->n; i++)
        if (same(s->answers[i].replica, replica))
            return &s->answers[i];
    return NULL;
}

// Asking one

// *ret NULL and true: there is no such group.
static bool ask(const struct surveyor *by, struct proxy *c, size_t i, cJSON **ret)
{
    struct err err = ERR_INIT;
    cadre_client_request r;
    cadre_client_request_init(&r, "group.stats");
    r.group = by->names[i];
    r.timeout_ms = MIN(by->o->request.timeout_ms ? by->o->request.timeout_ms : ANSWER_MS, (int64_t)ANSWER_MS);
    *ret = NULL;
    cadre_client_code code = proxy_call(c, &r);
    if (code != CADRE_CLIENT_OK)
        return code == CADRE_CLIENT_NOT_FOUND;
    if ((*ret = document_read(&c->result, &err)))
        return true;
    proxy_fail(c, CADRE_CLIENT_INVALID, "the operator's answer to group.stats: ", err.msg);
    return false;
}

static enum met listen_to(const struct surveyor *by, const struct survey *s, struct proxy *c,
                          struct survey_answer *answer)
{
    bool named = false;
    for (size_t i = 0; i < by->n_names; i++) {
        if (!ask(by, c, i, &answer->groups[i]))
            return MET_NOBODY;
        if (!answer->groups[i] || named)
            continue;
        named = true;
        answer->replica = document_str(answer->groups[i], "replica");
        if (survey_of(s, answer->replica))
            return MET_KNOWN;
    }
    answer->at_ms = clock_mono_ms(&clock_system);
    return named || !s->n ? MET_NEW : MET_KNOWN; // or it knows none of the groups
}

static void forget(struct survey_answer *answer)
{
    for (size_t i = 0; i < answer->n_groups; i++)
        cJSON_Delete(answer->groups[i]);
}

static enum met visit(const struct surveyor *by, struct survey *s, struct proxy *c)
{
    struct survey_answer answer = {.groups = arena_array(&s->arena, by->n_names, sizeof(cJSON *)),
                                   .n_groups = by->n_names};
    enum met met = listen_to(by, s, c, &answer);
    if (met == MET_NEW)
        s->answers[s->n++] = answer;
    else
        forget(&answer);
    return met;
}

// Missing replicas

static const cJSON *replicas_in(const struct survey *s, size_t n_names, size_t i)
{
    const cJSON *list = NULL;
    for (size_t k = 0; k < n_names && !list; k++)
        list = document_get(s->answers[i].groups[k], "replicas");
    return list;
}

static bool is_absent(const struct survey *s, const char *replica)
{
    for (size_t i = 0; i < s->n_absent; i++)
        if (str_eq(s->absent[i].replica, replica))
            return true;
    return false;
}

// Replicas that an answer names, and that have not answered. During a rollout, the answers may differ.
static size_t count_absent(const struct surveyor *by, struct survey *s)
{
    s->n_absent = 0;
    for (size_t i = 0; i < s->n; i++) {
        const cJSON *list = replicas_in(s, by->n_names, i);
        s->named = s->named || list;
        DOCUMENT_FOREACH(v, list)
        {
            const char *name = cJSON_GetStringValue(v);
            if (name && s->n_absent < SURVEY_REPLICAS_MAX && !survey_of(s, name) && !is_absent(s, name))
                s->absent[s->n_absent++].replica = name;
        }
    }
    return s->n_absent;
}

static void drop(struct surveyor *by, size_t i)
{
    proxy_close(by->links[i]);
    free(by->links[i]);
    by->n_links--;
    memmove(&by->links[i], &by->links[i + 1], (by->n_links - i) * sizeof by->links[0]);
}

// Makes one more connection. It is kept if it reaches a replica that has not answered.
static void try_one(struct surveyor *by, struct survey *s, struct err *why)
{
    struct proxy *c = xcalloc(1, sizeof *c);
    struct err err = ERR_INIT;
    if (proxy_beside(c, by->links[0], by->o, by->tried++, &err) < 0) {
        free(c);
        *why = err;
        return;
    }
    by->links[by->n_links++] = c;
    enum met met = visit(by, s, c);
    if (met == MET_NOBODY || c->lost.message[0]) // it may have moved to another replica by itself
        err_set(why, ERR_UNAVAILABLE, "%s", met == MET_NOBODY ? c->error.message : c->lost.message);
    if (met != MET_NEW)
        drop(by, by->n_links - 1);
}

static void find_absent(struct surveyor *by, struct survey *s)
{
    struct err why = ERR_INIT;
    int64_t end = clock_mono_ms(&clock_system) + FIND_MS;
    size_t absent = count_absent(by, s);
    by->tried = absent ? by->tried : 0;
    unsigned last = by->tried + (unsigned)absent * (by->tried ? TRIES_AGAIN : TRIES);
    while (count_absent(by, s) && by->tried < last && by->n_links < SURVEY_REPLICAS_MAX && s->n < SURVEY_REPLICAS_MAX &&
           clock_mono_ms(&clock_system) < end && !process_interrupted())
        try_one(by, s, &why);
    for (size_t i = 0; i < s->n_absent; i++)
        s->absent[i].why = arena_printf(&s->arena, "none of %u connections reached it%s%s", by->tried,
                                        why.code ? ", and some failed: " : "", why.msg);
}

// All

static bool knows_group(const struct survey *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->answers[i].groups[0])
            return true;
    return false;
}

bool survey_take(struct surveyor *by, struct survey *s, int *ret_status)
{
    survey_done(s);
    for (size_t i = 0; i < by->n_links;) {
        // The first connection may have moved to another replica, which one of the others has met.
        if (visit(by, s, by->links[i]) == MET_NEW || i == 0)
            i++;
        else
            drop(by, i);
    }
    find_absent(by, s);
    if (process_interrupted()) {
        *ret_status = 128 + process_interrupted();
        return false;
    }
    if (s->n && (!by->o->group || knows_group(s)))
        return true;
    *ret_status = report_failure(&by->links[0]->error);
    return false;
}

void survey_done(struct survey *s)
{
    for (size_t i = 0; i < s->n; i++)
        forget(&s->answers[i]);
    arena_done(&s->arena);
    *s = (struct survey){.arena = ARENA_INIT};
}

void surveyor_done(struct surveyor *by)
{
    while (by->n_links > 1)
        drop(by, by->n_links - 1);
}
