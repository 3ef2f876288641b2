// SPDX-License-Identifier: Apache-2.0
// Another workload, which lists all nodes again and again while something is measured. The chart's FlowSchemas exist
// because of such workloads.
#pragma once

#include "common/base/loop.h"

struct noise;

struct noise_options {
    const char *kubeconfig; // of an account that may list nodes, and to which priority and fairness applies
    int per_second;         // lists begun; 0: as many as `at_once` allows
    int at_once;            // under way at most
};

struct noise *noise_new(struct loop *loop, const struct noise_options *options);
void noise_free(struct noise *n);
void noise_begin(struct noise *n);           // NULL: silence
void noise_end(struct noise *n);             // cancels the lists that are under way
double noise_lists(const struct noise *n);   // answered so far
double noise_refused(const struct noise *n); // so far, each tried again by the client as the API server asked
