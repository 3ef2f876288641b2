// SPDX-License-Identifier: Apache-2.0
// Takes group.stats twice, some time apart, and prints a table.
#include "cli/kubectl.h"
#include "cli/plain.h"
#include "cli/rates.h"
#include "cli/report.h"
#include "cli/survey.h"
#include "cli/verbs.h"

#include "common/base/mem.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INTERVAL_MS = 2000, NAMES_MAX = 1 << 20 };

struct top {
    const struct cli_options *o;
    struct proxy proxy;
    char *text; // of the names
    const char **names;
    size_t n;
    struct surveyor by;
    struct survey looks[2];
};

// Which groups

static int add_names(struct top *t, const char *list)
{
    t->text = xstrdup(list);
    for (char *p = t->text; *p;) {
        size_t len = strcspn(p, " \n");
        char *next = p + len + (p[len] != '\0');
        p[len] = '\0';
        if (len) {
            t->names = xrealloc(t->names, t->n + 1, sizeof *t->names);
            t->names[t->n++] = p;
        }
        p = next;
    }
    return 0;
}

static int find_groups(struct top *t, struct err *err)
{
    const struct cli_options *o = t->o;
    if (o->group)
        return add_names(t, o->group);
    if (t->proxy.server)
        return err_set(err, ERR_INVALID, "the name of the group is missing; it can be left out only with kubectl");
    _cleanup_(buf_done) struct buf out = BUF_INIT(NAMES_MAX);
    const struct kubectl_args args = kubectl_args(o, "get", "workergroups.cadre.dev", "--namespace", t->proxy.ns,
                                                  "--output", "jsonpath={.items[*].metadata.name}", NULL);
    if (kubectl_run(&args, &out, err) == 0)
        add_names(t, buf_str(&out));
    if (!err->code && !t->n)
        err_set(err, ERR_NOT_FOUND, "there are no WorkerGroups in namespace %s", t->proxy.ns);
    return err->code;
}

static bool pass_time(struct top *t)
{
    proxy_linger(t->by.links, t->by.n_links, t->o->interval_ms ? t->o->interval_ms : INTERVAL_MS);
    return !process_interrupted();
}

// Printing

static void put_duration(char out[16], int64_t us)
{
    if (us < 0)
        snprintf(out, 16, "-");
    else if (us < 1000)
        snprintf(out, 16, "%" PRId64 "us", us);
    else if (us < 1000 * 1000)
        snprintf(out, 16, "%.1fms", (double)us / 1e3);
    else
        snprintf(out, 16, "%.1fs", (double)us / 1e6);
}

static void put_amount(char out[16], double v)
{
    static const char units[] = " kMGT";
    size_t i = 0;
    while (v >= 1000 && units[i + 1]) {
        v /= 1000;
        i++;
    }
    snprintf(out, 16, v >= 100 || v == 0 ? "%.0f%.*s" : "%.1f%.*s", v, i > 0, units + i);
}

static void print_rate(const char *group, const struct rate *r)
{
    char calls[16], bytes[16], p50[16], p99[16], behind[16], slowest[64] = "-";
    put_amount(calls, r->calls);
    put_amount(bytes, r->bytes);
    put_duration(p50, r->p50_us);
    put_duration(p99, r->p99_us);
    put_duration(behind, r->behind_us);
    if (r->slowest >= 0 && r->compared > 0)
        snprintf(slowest, sizeof slowest, "rank %" PRId64 " +%s, last in %" PRId64 "%%", r->slowest, behind,
                 100 * r->last / r->compared);
    printf("%-20s %-24s %8s %8s %8s %9" PRId64 " %8s %7" PRId64 "  %s\n", group, r->name, calls, p50, p99, r->in_flight,
           bytes, r->errors, slowest);
}

static void add_rate(cJSON *page, const char *group, const struct rate *r)
{
    cJSON *o = cJSON_CreateObject();
    char number[64];
    cJSON_AddItemToArray(page, o);
    cJSON_AddStringToObject(o, "group", group);
    cJSON_AddStringToObject(o, "method", r->name);
    snprintf(number, sizeof number, "%.3f", r->calls);
    cJSON_AddRawToObject(o, "callsPerSecond", number);
    snprintf(number, sizeof number, "%.0f", r->bytes);
    cJSON_AddRawToObject(o, "bytesPerSecond", number);
    cJSON_AddNumberToObject(o, "ended", (double)r->ended);
    cJSON_AddNumberToObject(o, "errors", (double)r->errors);
    cJSON_AddNumberToObject(o, "totalErrors", (double)r->total_errors);
    cJSON_AddNumberToObject(o, "inFlight", (double)r->in_flight);
    if (r->p50_us >= 0) {
        cJSON_AddNumberToObject(o, "p50Micros", (double)r->p50_us);
        cJSON_AddNumberToObject(o, "p99Micros", (double)r->p99_us);
    }
    if (r->slowest >= 0) {
        cJSON *slowest = cJSON_AddObjectToObject(o, "slowest");
        cJSON_AddNumberToObject(slowest, "rank", (double)r->slowest);
        cJSON_AddNumberToObject(slowest, "behindMicros", (double)r->behind_us);
        cJSON_AddNumberToObject(slowest, "last", (double)r->last);
        cJSON_AddNumberToObject(slowest, "of", (double)r->compared);
    }
}

// Ranks report the same to all replicas. A replica that has just started may not have heard from all ranks.
static const cJSON *find_transfer(const struct survey *now, size_t i)
{
    const cJSON *found = NULL;
    for (size_t k = 0; k < now->n; k++) {
        const cJSON *t = document_get(now->answers[k].groups[i], "transfer");
        int64_t more = document_i64(t, "ranks") - document_i64(found, "ranks");
        if (t && (!found || more > 0 || (more == 0 && document_i64(t, "done") > document_i64(found, "done"))))
            found = t;
    }
    return found;
}

static void print_transfer(const char *group, const cJSON *t)
{
    char done[16], bytes[16];
    double all = (double)document_i64(t, "bytes"), some = (double)document_i64(t, "done");
    put_amount(done, some);
    put_amount(bytes, all);
    printf("%s gets weights: %s of %s bytes (%.0f%%), %" PRId64 " of %" PRId64
           " ranks have all of theirs; slowest: rank "
           "%" PRId64 "\n",
           group, done, bytes, all > 0 ? 100 * some / all : 0, document_i64(t, "complete"), document_i64(t, "ranks"),
           document_i64(t, "slowest"));
}

static void add_transfer(cJSON *page, const char *group, const cJSON *t)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddItemToArray(page, o);
    cJSON_AddStringToObject(o, "group", group);
    cJSON_AddItemToObject(o, "transfer", cJSON_Duplicate(t, true));
}

static void put_transfers(const struct top *t, const struct survey *now, cJSON *page)
{
    for (size_t i = 0; i < t->n; i++) {
        const cJSON *transfer = find_transfer(now, i);
        if (transfer && page)
            add_transfer(page, t->names[i], transfer);
        else if (transfer)
            print_transfer(t->names[i], transfer);
    }
}

static void print_json(const cJSON *page)
{
    char *text = cJSON_PrintUnformatted(page);
    printf("%s\n", text);
    cJSON_free(text);
}

// If a replica was not there before, only its calls in flight are known, and nothing about the time between.
static size_t spans_of(const struct survey *before, const struct survey *now, size_t i,
                       struct rates_span out[SURVEY_REPLICAS_MAX])
{
    size_t n = 0;
    for (size_t k = 0; k < now->n; k++) {
        const struct survey_answer *a = &now->answers[k], *old = survey_of(before, a->replica);
        if (a->groups[i])
            out[n++] = (struct rates_span){old ? old->groups[i] : a->groups[i], a->groups[i],
                                           old ? (a->at_ms - old->at_ms) * 1000 : 1};
    }
    return n;
}

// `page` NULL: prints lines of the table.
static int print_group(const struct top *t, size_t i, const struct survey *before, struct survey *now, cJSON *page,
                       struct err *err)
{
    struct rates_span spans[SURVEY_REPLICAS_MAX];
    struct rate *rates;
    size_t n = 0;
    int r = rates_of(spans, spans_of(before, now, i, spans), &now->arena, &rates, &n, err);
    for (size_t k = 0; r == 0 && k < n; k++) {
        if (page)
            add_rate(page, t->names[i], &rates[k]);
        else
            print_rate(t->names[i], &rates[k]);
    }
    return r;
}

// The replicas whose calls are shown: each replica knows the calls of its own clients.
static void print_replicas(FILE *f, const struct survey *now)
{
    const char *lead = now->n == 1 ? "Calls through replica " : "Calls through replicas ";
    const char *end = now->n == 1 ? " (the only one).\n" : " (all replicas).\n";
    size_t n = 0;
    for (size_t i = 0; i < now->n; i++)
        if (now->answers[i].replica)
            fprintf(f, "%s%s", n++ ? ", " : lead, now->answers[i].replica);
    if (!now->named)
        end = "; there may be other replicas.\n";
    else if (now->n_absent)
        end = ".\n";
    if (n)
        fputs(end, f);
    for (size_t i = 0; i < now->n_absent; i++) {
        fprintf(f, "Without calls through replica %s, which did not answer: ", now->absent[i].replica);
        plain_print(f, now->absent[i].why, strlen(now->absent[i].why));
        fputc('\n', f);
    }
}

static int print_page(const struct top *t, const struct survey *before, struct survey *now)
{
    cJSON *page = t->o->output == OUTPUT_JSON ? cJSON_CreateArray() : NULL;
    struct err err = ERR_INIT;
    if (!page) {
        if (t->o->watch && isatty(STDOUT_FILENO))
            fputs("\033[H\033[2J", stdout);
        printf("%-20s %-24s %8s %8s %8s %9s %8s %7s  %s\n", "GROUP", "METHOD", "CALLS/S", "P50", "P99", "IN FLIGHT",
               "BYTES/S", "ERRORS", "SLOWEST RANK");
    }
    for (size_t i = 0; i < t->n && !err.code; i++)
        print_group(t, i, before, now, page, &err);
    put_transfers(t, now, page);
    if (page)
        print_json(page);
    else
        print_replicas(stdout, now);
    fflush(stdout);
    if (page && now->n_absent)
        print_replicas(stderr, now);
    cJSON_Delete(page);
    return err.code ? report_err(&err) : 0;
}

static int run(struct top *t)
{
    int status = 0;
    unsigned now = 0;
    if (!survey_take(&t->by, &t->looks[now], &status))
        return status;
    do {
        now = !now;
        if (!pass_time(t))
            return 128 + process_interrupted();
        if (!survey_take(&t->by, &t->looks[now], &status))
            return status;
        status = print_page(t, &t->looks[!now], &t->looks[now]);
    } while (t->o->watch && status == 0 && !ferror(stdout));
    return status;
}

int verb_top(const struct cli_options *o)
{
    struct top t = {.o = o};
    struct err err = ERR_INIT;
    if (proxy_open(&t.proxy, o, &err) < 0)
        return report_err(&err);
    int status = find_groups(&t, &err) < 0 ? report_err(&err) : 0;
    t.by = (struct surveyor){.o = o, .names = t.names, .n_names = t.n, .links = {&t.proxy}, .n_links = 1};
    if (!err.code)
        status = run(&t);
    for (size_t i = 0; i < ARRAY_LEN(t.looks); i++)
        survey_done(&t.looks[i]);
    surveyor_done(&t.by);
    free(t.names);
    free(t.text);
    proxy_close(&t.proxy);
    return status;
}
