// SPDX-License-Identifier: Apache-2.0
// The simulation of tests/unit/operator/reconcile/placement_simulation.h for as long as one likes.
#include "tests/unit/operator/reconcile/placement_simulation.h"

#include "common/base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char usage[] = "usage: bench-simulate [EVENTS [SEED [NODES]]]      default: 1000000 1 24\n";

int main(int argc, char **argv)
{
    int64_t numbers[3] = {1000000, 1, 24};
    for (int i = 1; i < argc; i++) {
        if (i > 3 || !str_to_i64(argv[i], &numbers[i - 1]) || numbers[i - 1] <= 0) {
            fputs(usage, stderr);
            return 2;
        }
    }
    struct simulation_options o = {.seed = (uint64_t)numbers[1], .events = numbers[0], .nodes = (int)numbers[2]};
    struct simulation_report r;
    clock_t begun = clock();
    const char *wrong = simulation_run(&o, &r);
    printf("%" PRId64 " events, %" PRId64 " days on %d nodes, in %.1f s\n", r.events, r.days, o.nodes,
           (double)(clock() - begun) / CLOCKS_PER_SEC);
    printf("gangs: %" PRId64 ", finished %" PRId64 "; %" PRId64 " decisions, %" PRId64 " with nodes held; longest wait "
           "of one that was placed: %.1f h, of one that asks for at most a quarter of all GPUs: %.1f h\n",
           r.gangs, r.finished, r.decisions, r.holds, (double)r.longest_wait_ms / 3600e3,
           (double)r.longest_wait_of_small_ms / 3600e3);
    printf("other people's pods: %" PRId64 "; evicted %" PRId64 ", gangs given back %" PRId64 ", nodes lost %" PRId64
           ", operators died %" PRId64 "\n",
           r.others, r.evicted, r.given_back, r.nodes_lost, r.crashes);
    if (wrong) {
        fprintf(stderr, "%s\n", wrong);
        return EXIT_FAILURE;
    }
    puts("nothing leaked, overcommitted, partial or forgotten");
    return EXIT_SUCCESS;
}
