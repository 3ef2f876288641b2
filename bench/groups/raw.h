// SPDX-License-Identifier: Apache-2.0
// The floor of creating pods: the same bytes, sent by threads that each write and wait on one TLS connection of their
// own, with nothing around it that could cost time.
#ifndef CADRE_BENCH_GROUPS_RAW_H
#define CADRE_BENCH_GROUPS_RAW_H

#include "operator/kube/config.h"

// Sends the bodies with POST to `path` and returns the seconds that it took; ends the program if one is refused.
double raw_post(const struct kube_config *config, const char *path, const char *const *bodies, int n, int threads);

#endif
