// SPDX-License-Identifier: Apache-2.0
#include "bench/peers/systems.h"

#include "bench/groups/raw.h"
#include "bench/lib/proc.h"
#include "common/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IN_FLIGHT = 32, RETRY_MS = 200 };

const struct system system_pinned = {.name = "pinned", .title = "bare pods, pinned", .pods = POD_BARE};

// Eight pods that start together, restart together, and have names of their own in DNS: what each calls a group.
static const struct system systems[] = {
    {.name = "bare", .title = "bare pods", .pods = POD_FREE},
    {.name = "lws",
     .title = "LeaderWorkerSet",
     .port = 18082,
     .api = "leaderworkerset.x-k8s.io/v1",
     .kind = "LeaderWorkerSet",
     .plural = "leaderworkersets",
     .spec = "{\"replicas\":1,\"leaderWorkerTemplate\":{\"size\":8,\"restartPolicy\":\"RecreateGroupOnPodRestart\","
             "\"workerTemplate\":{\"spec\":{" WORLD_POD_SPEC "}}}}"},
    {.name = "jobset",
     .title = "JobSet",
     .port = 18081,
     .api = "jobset.x-k8s.io/v1alpha2",
     .kind = "JobSet",
     .plural = "jobsets",
     .spec = "{\"failurePolicy\":{\"maxRestarts\":1000},\"replicatedJobs\":[{\"name\":\"w\",\"replicas\":1,"
             "\"template\":{\"spec\":{\"parallelism\":8,\"completions\":8,\"backoffLimit\":0,\"template\":{\"spec\":{"
             "\"restartPolicy\":\"Never\"," WORLD_POD_SPEC "}}}}}]}"},
    {.name = "cadre", .title = "Cadre", .port = 18080},
};

const struct system *system_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(systems); i++)
        if (strcmp(systems[i].name, name) == 0)
            return &systems[i];
    return NULL;
}

// Returns how many were refused.
static int send_all(const struct system *s, struct world *w, const char *method, const char *prefix, int groups,
                    char *why, size_t size)
{
    struct arena a = ARENA_INIT;
    const char *path = arena_printf(&a, "/apis/%s/namespaces/%s/%s", s->api, w->ns, s->plural);
    struct raw_request *requests = arena_array(&a, (size_t)groups, sizeof *requests);
    bool create = strcmp(method, "POST") == 0;
    double took_s;
    for (int i = 0; i < groups; i++) {
        const char *name = arena_printf(&a, "%s%d", prefix, i);
        const char *body =
            arena_printf(&a, "{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"metadata\":{\"name\":\"%s\"},\"spec\":%s}",
                         s->api, s->kind, name, s->spec);
        requests[i] = create ? (struct raw_request){method, path, body}
                             : (struct raw_request){method, arena_printf(&a, "%s/%s", path, name), NULL};
    }
    int refused = raw_send(&w->config, requests, groups, IN_FLIGHT, &took_s, why, size);
    w->trial.began_us = proc_now_us() - (int64_t)(took_s * 1e6);
    arena_done(&a);
    return refused;
}

static _Noreturn void die(const struct system *s, const char *why)
{
    fprintf(stderr, "bench-peers: %s: a request was refused: %s\n", s->title, why);
    exit(1);
}

void system_create(const struct system *s, struct world *w, const char *prefix, int groups, int patience_s)
{
    char why[1024] = "";
    if (!s->port) {
        world_create_pods(w, prefix, groups * GROUP_SIZE, s->pods);
        return;
    }
    if (!s->api) {
        world_create_groups(w, prefix, groups);
        return;
    }
    for (int64_t end = proc_now_us() + (int64_t)patience_s * 1000000;;) {
        world_begin(w, prefix, groups * GROUP_SIZE, 0);
        if (!send_all(s, w, "POST", prefix, groups, why, sizeof why))
            return;
        if (proc_now_us() > end)
            die(s, why);
        world_sleep(w, RETRY_MS);
    }
}

void system_delete(const struct system *s, struct world *w, const char *prefix, int groups)
{
    char why[1024] = "";
    if (!s->api) {
        world_delete(w, prefix, groups * GROUP_SIZE);
        return;
    }
    world_begin(w, prefix, groups * GROUP_SIZE, 0);
    if (send_all(s, w, "DELETE", prefix, groups, why, sizeof why))
        die(s, why);
}
