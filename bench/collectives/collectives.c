// SPDX-License-Identifier: Apache-2.0
// bench-collectives [--rounds N] [--members N]: how long the members of a communicator over gloo wait in a collective
// after one of them was killed.
//
// In each round, processes on this machine make a communicator. All but one call a collective, which cannot end without
// that one, and that one is killed: of a broadcast the root, of a send the receiver, of a recv the sender. Measured is
// the time from the kill until the last of the others has its error. Prints a line for each kind of collective: the
// kind, the median, the 99th percentile and the longest, in milliseconds.
#include "bench/lib/samples.h"
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "tests/unit/support/team.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 100, MEMBERS = 4, VICTIM = 1, COUNT = 1 << 20, SETTLE_US = 50 * 1000, LIMIT_MS = 60 * 1000 };

static int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int wait_in_vain(const struct team_member *m, void *ctx)
{
    const enum team_kind *kind = ctx;
    struct err err = ERR_INIT;
    char line[32];
    cadre_comm *c = team_join(m, &err);
    size_t all = (size_t)m->n * COUNT;
    float *in = xcalloc(all, sizeof *in), *out = xcalloc(all, sizeof *out);
    if (!c || cadre_all_reduce(c, "F32", in, out, COUNT, CADRE_SUM) != CADRE_OK) {
        fprintf(stderr, "bench-collectives: %s\n", c ? cadre_comm_error(c) : err.msg);
        return 1;
    }
    team_say(m, "ready");
    if (m->index == VICTIM)
        pause();
    if (team_call(c, *kind, in, out, COUNT, VICTIM) == CADRE_OK || !strstr(cadre_comm_error(c), "was lost")) {
        fprintf(stderr, "bench-collectives: member %d: %s: %s\n", m->index, team_kind_name(*kind), cadre_comm_error(c));
        return 1;
    }
    snprintf(line, sizeof line, "%" PRId64, now_us());
    team_say(m, line);
    cadre_comm_free(c);
    free(in);
    free(out);
    return 0;
}

static int64_t hear_number(struct team *t, int index)
{
    char line[64];
    int64_t n;
    team_hear(t, index, line, sizeof line);
    if (str_to_i64(line, &n))
        return n;
    fprintf(stderr, "bench-collectives: error: member %d does not fail as it should: %s\n", index, line);
    exit(1);
}

static double round_ms(int members, enum team_kind kind)
{
    struct team t;
    char line[64];
    int64_t last = 0;
    team_start(&t, members, LIMIT_MS, wait_in_vain, &kind);
    for (int i = 0; i < members; i++)
        team_hear(&t, i, line, sizeof line);
    usleep(SETTLE_US); // until all that call are in the middle of it
    int64_t begin = now_us();
    kill(t.pids[VICTIM], SIGKILL);
    for (int i = 0; i < members; i++) {
        int64_t at = i == VICTIM ? 0 : hear_number(&t, i);
        last = MAX(last, at);
    }
    for (int i = 0; i < members; i++)
        (void)team_wait(&t, i);
    return (double)(last - begin) / 1000;
}

int main(int argc, char **argv)
{
    int64_t rounds = ROUNDS, members = MEMBERS;
    for (int i = 1; i < argc; i += 2) {
        int64_t *to = str_eq(argv[i], "--rounds") ? &rounds : str_eq(argv[i], "--members") ? &members : NULL;
        if (!to || i + 1 == argc || !str_to_i64(argv[i + 1], to)) {
            fprintf(stderr, "bench-collectives: error: usage: bench-collectives [--rounds N] [--members N]\n");
            return 2;
        }
    }
    if (rounds < 1 || rounds > SAMPLES_MAX || members < 2 || members > TEAM_MAX) {
        fprintf(stderr, "bench-collectives: error: rounds from 1 to %d, members from 2 to %d\n", SAMPLES_MAX, TEAM_MAX);
        return 2;
    }
    for (enum team_kind kind = 0; kind < TEAM_KINDS; kind++) {
        struct samples s = {.n = 0};
        for (int64_t i = 0; i < rounds; i++)
            samples_add(&s, round_ms((int)members, kind));
        printf("%s %.2f %.2f %.2f\n", team_kind_name(kind), samples_median(&s), samples_quantile(&s, 0.99),
               samples_quantile(&s, 1));
        fflush(stdout);
    }
    return 0;
}
