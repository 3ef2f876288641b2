// SPDX-License-Identifier: Apache-2.0
// Reading one kubeconfig file (YAML) into a struct kube_config.
#pragma once

#include "operator/kube/config.h"

// context NULL = current-context. Fills a config whose arena is initialised; on error the caller drops it.
int kubeconfig_load(const char *file, const char *context, struct kube_config *c, struct err *err);
