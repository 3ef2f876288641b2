// SPDX-License-Identifier: Apache-2.0
// Requests as bytes, sent by threads that each write and wait on one TLS connection of their own, with nothing around
// it that could cost time: the floor of creating pods, and the way to objects that our own client does not know.
#pragma once

#include "operator/kube/config.h"

struct raw_request {
    const char *method, *path, *body; // body NULL = none
};

// Returns how many were refused, 0 = none; `why` gets the answer to one of them. *took_s: from when all are connected.
int raw_send(const struct kube_config *config, const struct raw_request *requests, int n, int threads, double *took_s,
             char *why, size_t size);
// Sends the bodies with POST to `path` and returns the seconds that it took; ends the program if one is refused.
double raw_post(const struct kube_config *config, const char *path, const char *const *bodies, int n, int threads);
