// SPDX-License-Identifier: Apache-2.0
#include "common/base/mem.h"
#include "tests/chaos/chaos.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry { // a line of the ledger: one run
    int64_t token;
    int rank;
};

struct call {
    int64_t token, rank;
    int kind, answers, may_have_run; // may_have_run: what its error says
    bool result;
};

struct court {
    struct entry *entries;
    size_t n_entries, max_entries;
    struct call *calls; // the calls of one client, by token
    size_t n_calls, max_calls;
    size_t results, errors, open;
    size_t by_name[16];
    bool wrong;
};

// The errors that may happen when processes are killed and stopped.
static const char *const names[] = {"UNAVAILABLE", "TIMEOUT", "CANCELED", "THROTTLED", "CONFLICT", "GONE", NULL};

static void find(struct court *c, const struct call *call, const char *what)
{
    fprintf(stderr, "call %" PRId64 " (kind %d): %s\n", call->token, call->kind, what);
    c->wrong = true;
}

static int compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return x->token != y->token ? (x->token > y->token) - (x->token < y->token) : x->rank - y->rank;
}

static void read_ledger(struct court *c, const char *file)
{
    FILE *f = fopen(file, "re");
    char line[128], *end;
    while (f && fgets(line, sizeof line, f)) {
        if (c->n_entries == c->max_entries) {
            c->max_entries = MAX((size_t)1024, 2 * c->max_entries);
            c->entries = xrealloc(c->entries, c->max_entries, sizeof *c->entries);
        }
        int64_t token = strtoll(line, &end, 10);
        c->entries[c->n_entries++] = (struct entry){token, (int)strtol(end, NULL, 10)};
    }
    if (f)
        fclose(f);
    if (c->n_entries)
        qsort(c->entries, c->n_entries, sizeof *c->entries, compare);
}

// How often a rank has run the call.
static size_t runs(const struct court *c, int64_t token, int rank)
{
    const struct entry key = {token, rank};
    size_t low = 0, high = c->n_entries, n = 0;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (compare(&c->entries[mid], &key) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    for (; low < c->n_entries && compare(&c->entries[low], &key) == 0; low++)
        n++;
    return n;
}

static void judge(struct court *c, const struct call *call, bool killed)
{
    size_t ranks = 0;
    bool once = true;
    for (int rank = 0; rank < CHAOS_RANKS; rank++) {
        size_t n = runs(c, call->token, rank);
        ranks += n > 0;
        once = once && n <= 1;
    }
    bool several =
        call->kind == CHAOS_ALL || call->kind == CHAOS_EACH || call->kind == CHAOS_QUIET || call->kind == CHAOS_AGAIN;
    if (call->answers > 1)
        find(c, call, "answered more than once");
    if (call->answers == 0 && !killed)
        find(c, call, "never answered");
    if (!once && call->kind != CHAOS_AGAIN)
        find(c, call, "a rank has run it more than once");
    if (call->result && several && ranks != CHAOS_RANKS)
        find(c, call, "answered, but not all ranks have run it");
    if (call->result && !several && ranks != 1)
        find(c, call, "answered, but not by one rank alone");
    if (call->result && call->kind == CHAOS_ONE && !runs(c, call->token, (int)call->rank))
        find(c, call, "another rank has run it");
    if (call->answers && !call->result && !call->may_have_run && ranks)
        find(c, call, "has run, although the error says that it has not");
    c->open += call->answers == 0;
}

static void take_start(struct court *c, int64_t token, const char *rest)
{
    char *end;
    if (c->n_calls == c->max_calls) {
        c->max_calls = MAX((size_t)1024, 2 * c->max_calls);
        c->calls = xrealloc(c->calls, c->max_calls, sizeof *c->calls);
    }
    int kind = (int)strtol(rest, &end, 10);
    c->calls[c->n_calls++] = (struct call){.token = token, .kind = kind, .rank = strtoll(end, NULL, 10)};
}

static void take_error(struct court *c, struct call *call, const char *rest)
{
    size_t len = strcspn(rest, " "), i = 0;
    while (names[i] && (strlen(names[i]) != len || strncmp(names[i], rest, len) != 0))
        i++;
    if (!names[i])
        find(c, call, rest);
    c->by_name[i]++;
    c->errors++;
    call->may_have_run = rest[len] == ' ' && rest[len + 1] == '1';
    if (strlen(rest) < len + 5)
        find(c, call, "an error without a reason");
}

// "X TOKEN REST"
static void take_line(struct court *c, const char *line)
{
    char *rest;
    int64_t token = strtoll(line + 2, &rest, 10);
    rest += *rest == ' ';
    if (line[0] == 'S') {
        take_start(c, token, rest);
        return;
    }
    struct call *call = token % CHAOS_TOKENS < (int64_t)c->n_calls ? &c->calls[token % CHAOS_TOKENS] : NULL;
    if (!call || call->token != token)
        return; // a kill has cut the line
    call->answers++;
    call->result = line[0] == 'R';
    c->results += call->result;
    if (!call->result)
        take_error(c, call, rest);
}

static void hear(struct court *c, const char *file, bool killed)
{
    FILE *f = fopen(file, "re");
    char line[1024];
    c->n_calls = 0;
    while (f && fgets(line, sizeof line, f))
        if (strlen(line) > 3)
            take_line(c, line);
    if (f)
        fclose(f);
    for (size_t i = 0; i < c->n_calls; i++)
        judge(c, &c->calls[i], killed);
}

int verdict(const char *ledger, char *const files[], const unsigned char *killed, unsigned n)
{
    struct court c = {.wrong = false};
    read_ledger(&c, ledger);
    for (unsigned i = 0; i < n; i++)
        hear(&c, files[i], killed[i]);
    printf("%zu results, %zu errors, %zu calls of killed clients, %zu runs;", c.results, c.errors, c.open, c.n_entries);
    for (size_t i = 0; names[i]; i++)
        printf(" %s %zu", names[i], c.by_name[i]);
    printf("\n");
    if (c.results < 100 || c.errors < 10) {
        fprintf(stderr, "too little has happened to tell anything\n");
        c.wrong = true;
    }
    free(c.entries);
    free(c.calls);
    return c.wrong;
}
