// SPDX-License-Identifier: Apache-2.0
// Serves GET and HEAD of /healthz, /readyz and /metrics over plain HTTP/1.1 on one port. /healthz: the loop runs.
// /readyz: the mirrors are complete and the API server was reached (200, otherwise 503 with the reason in the body).
// Everything is bounded: 64 connections (a new one replaces the oldest one that has sent nothing), 4 KiB per request,
// 10 s, one request per connection.
#pragma once

#include "common/base/loop.h"
#include "operator/runtime/metrics.h"

struct health;

struct health_options {
    // "0.0.0.0:8080", ":8080" (both families), "[::1]:8080", "127.0.0.1:0" (any port). No host names.
    const char *address;
    struct metrics *metrics;                       // NULL: /metrics is 404
    bool (*ready)(void *ctx, struct buf *why_not); // NULL: always ready
    void *ctx;
};

// ERR_INVALID: it is not an address. ERR_UNAVAILABLE: the process cannot listen there. The message names the address.
int health_start(struct loop *loop, const struct health_options *options, struct health **ret, struct err *err);
void health_stop(struct health *h); // closes all connections; accepts NULL
