// SPDX-License-Identifier: Apache-2.0
// The operator that is measured. These functions start and stop it, read its metrics, and sample its memory.
#pragma once

#include "bench/lib/proc.h"
#include "common/base/loop.h"
#include "operator/kube/kube_client.h"

struct operator_setup {
    const char *program;
    const char *kubeconfig; // NULL: another manager, started by a program that needs no options; it has no counters
    const char *ns;
    const char *log; // file that its output is appended to
    int port;        // of its HTTP server, on 127.0.0.1
};

struct operator_counters {          // since its start
    double posts, patches, deletes; // requests to the API server; the lease is renewed by PUT
    double errors;                  // requests that were answered with 4xx or 5xx, or not at all
    double reconciles;              // of WorkerGroups
};

struct operator
{
    struct loop *loop;
    struct operator_setup setup;
    struct kube_config config; // of its HTTP server
    struct kube_client *client;
    struct loop_timer *sampler;
    pid_t pid;
    struct proc_memory peak; // since its start
};

void operator_open(struct operator* o, struct loop *loop, const struct operator_setup *setup);
void operator_close(struct operator* o);
double operator_start(struct operator* o); // returns the seconds until /readyz is 200
void operator_stop(struct operator* o);
struct operator_counters operator_counters(struct operator* o);
