// SPDX-License-Identifier: Apache-2.0
// The kubectl of a test: a folder that is first in PATH, with fake_kubectl.py as kubectl and the files that it answers
// with. kubectl-cadre makes its temporary files in the same folder.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct fake_kubectl {
    char folder[64];
    char path[4096]; // PATH without the folder
};

void fake_kubectl_start(struct fake_kubectl *k);
void fake_kubectl_stop(struct fake_kubectl *k);
void fake_kubectl_put(const struct fake_kubectl *k, const char *file, const char *text);
// `kubectl proxy` passes its connections to these ports, to each in turn.
void fake_kubectl_lead_to(const struct fake_kubectl *k, const int *ports, size_t n);
bool fake_kubectl_was_asked(const struct fake_kubectl *k, const char *words);
bool fake_kubectl_has_proxy(const struct fake_kubectl *k);    // a `kubectl proxy` listens
size_t fake_kubectl_left_overs(const struct fake_kubectl *k); // how many temporary folders of kubectl-cadre exist
