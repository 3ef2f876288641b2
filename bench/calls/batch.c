// SPDX-License-Identifier: Apache-2.0
#include "bench/calls/batch.h"

#include "bench/calls/caller.h"
#include "bench/lib/proc.h"
#include "bench/lib/samples.h"

#include <cadre/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NEXT = 3 };

static void die(const char *what, const char *why)
{
    fprintf(stderr, "bench: batch: %s: %s\n", what, why);
    exit(1);
}

// The peak of the memory counts from now on.
static void forget_peak(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/clear_refs", (int)pid);
    FILE *f = fopen(path, "w");
    if (!f || fputs("5", f) < 0 || fclose(f) != 0)
        die(path, "cannot be written");
}

static void cpu_add(const struct batch_processes *of, double sign, double cpu[3])
{
    cpu[0] += sign * proc_cpu_s(getpid());
    cpu[1] += sign * proc_cpu_s(of->proxy);
    for (size_t i = 0; i < of->n_ranks; i++)
        cpu[2] += sign * proc_cpu_s(of->ranks[i]);
}

// Returns the seconds that the call took, and adds its seconds of CPU time to `cpu`.
static double call_once(cadre_client *c, const char *group, const void *doc, size_t len,
                        const struct batch_processes *of, double cpu[3])
{
    cadre_client_request r;
    cadre_client_error error;
    cadre_client_json result;
    cadre_client_request_init(&r, "echo");
    r.group = group;
    r.batch = doc;
    r.batch_len = len;
    r.dispatch = CADRE_CLIENT_DP_COMPUTE_PROTO;
    cpu_add(of, -1, cpu);
    int64_t begin = proc_now_us();
    if (cadre_client_call(c, &r, &result, &error) != CADRE_CLIENT_OK)
        caller_die("the call", &error);
    int64_t end = proc_now_us();
    cpu_add(of, 1, cpu);
    if (result.len != len || memcmp(result.text, doc, len) != 0)
        die("the result", "is not what was sent");
    return (double)(end - begin) / 1e6;
}

void batch_call(const char *address, const char *ns, const char *group, size_t bytes, const struct batch_processes *of,
                struct batch_numbers *ret)
{
    size_t len, small_len;
    struct samples next = {.n = 0};
    double ignored[3] = {0};
    void *doc = caller_batch("F32", 4, bytes, &len), *small = caller_batch("F32", 4, (size_t)4 << 20, &small_len);
    cadre_client *c = caller_open(address, ns, NULL, len);
    call_once(c, group, small, small_len, of, ignored); // connected, ready
    double had = proc_memory(of->proxy).rss;
    forget_peak(of->proxy);
    *ret = (struct batch_numbers){.first = call_once(c, group, doc, len, of, ignored)};
    for (int i = 0; i < NEXT; i++)
        samples_add(&next, call_once(c, group, doc, len, of, ret->cpu));
    for (int i = 0; i < 3; i++)
        ret->cpu[i] /= NEXT;
    ret->seconds = samples_median(&next);
    ret->proxy_mb = (proc_memory(of->proxy).peak - had) * 1.048576;
    cadre_client_close(c);
    free(doc);
    free(small);
}
