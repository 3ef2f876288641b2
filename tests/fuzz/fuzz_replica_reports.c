// SPDX-License-Identifier: Apache-2.0
// Reports of two replicas, one record in each line. The first byte names the replica, a or b. A line with A or B ends
// its connection, and the next line begins a new one.
#include "operator/agents/replica_reports.h"

#include "common/base/mem.h"
#include "tests/unit/clock_fake.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void on_agent(void *ctx, const char *pod_uid, const char *ns, const char *owner, bool of_placementgroup)
{
    (void)ctx, (void)of_placementgroup;
    must(strlen(pod_uid) > 0 && strlen(ns) > 0 && strlen(owner) > 0);
}

static void on_ranks(void *ctx, const char *group_uid)
{
    (void)ctx;
    must(strlen(group_uid) > 0);
}

static void look(const struct replica_reports *s)
{
    int32_t members[8] = {0};
    struct connected_peer w[4];
    replica_reports_members(s, "g", members, ARRAY_LEN(members));
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        must(members[i] >= 0);
    must(replica_reports_connected(s, w, ARRAY_LEN(w)) <= 2);
    (void)replica_reports_agent(s, "u");
}

static void event(struct replica_reports *s, struct reporting_replica **replicas, char what, const char *text,
                  size_t len)
{
    struct reporting_replica **g = &replicas[what == 'b' || what == 'B'];
    struct err err = ERR_INIT;
    if (!*g)
        must(replica_reports_join(s, "r", g, &err) == 0);
    if (what == 'A' || what == 'B')
        replica_reports_leave(s, TAKE_PTR(*g));
    else
        must(replica_reports_take(s, *g, text, len, &err) == err.code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *end = text + size;
    struct clock_fake clock;
    struct reporting_replica *replicas[2] = {NULL};
    clock_fake_init(&clock, 1, 1);
    struct replica_reports *s = replica_reports_new(
        &(struct replica_reports_config){.clock = &clock.clock, .agent = on_agent, .ranks = on_ranks});
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text)), *stop = newline ? newline : end;
        if (text < stop)
            event(s, replicas, *text, text + 1, (size_t)(stop - text) - 1);
        look(s);
        text = stop + 1;
    }
    for (size_t i = 0; i < ARRAY_LEN(replicas); i++)
        if (replicas[i])
            replica_reports_leave(s, replicas[i]);
    replica_reports_free(s);
    return 0;
}
