// SPDX-License-Identifier: Apache-2.0
// Reading kubeconfig files (YAML) into a struct kube_config.
#pragma once

#include "operator/kube/config.h"

// path: a kubeconfig (may be a colon-separated list as in KUBECONFIG: the first file that exists wins) or NULL =
// in-cluster. context: NULL = current-context. Errors say which file and what is wrong with it, and what to do:
// missing, not YAML, context/cluster/user not there, bad base64, an exec or auth-provider plugin (not supported).
// Certificates are looked at by kube_client_new(). *ret is set only on success.
int kube_config_load(const char *path, const char *context, struct kube_config *ret, struct err *err);
