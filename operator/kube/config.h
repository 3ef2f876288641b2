// SPDX-License-Identifier: Apache-2.0
// The address of the API server and the credentials, from a kubeconfig file or from the pod that the operator runs in.
#pragma once

#include "common/base/arena.h"
#include "common/base/err.h"

#include <stdbool.h>

struct kube_config {
    struct arena arena;               // owns all strings
    const char *source;               // for messages: "in-cluster" or "kubeconfig <file>, context <name>"
    const char *server;               // "https://host:port", no trailing slash
    const char *ns;                   // default namespace, "default" if the config names none
    const char *ca_file, *ca_pem;     // at most one; both NULL = the authorities of the system
    const char *cert_file, *cert_pem; // client certificate
    const char *key_file, *key_pem;
    const char *token, *token_file; // token_file rotates, so it is read again
    const char *tls_server_name;
    const char *proxy_url; // NULL = direct. The proxy variables of the environment do not count
    bool insecure;
};

// Reads the ServiceAccount files of the pod under `root` ("" in production). `host` and `port` are
// KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT.
int kube_config_in_cluster(const char *root, const char *host, const char *port, struct kube_config *ret,
                           struct err *err);
// path: a kubeconfig, or a colon-separated list as in KUBECONFIG. The first existing file of the list counts. NULL =
// in-cluster. context: NULL = current-context. Errors name the file, its fault, and what to do: the file is missing or
// not YAML, it lacks the context, the cluster or the user, it has bad base64, or it has an exec or auth-provider plugin
// (not supported). kube_client_new() checks certificates. *ret is set only on success.
int kube_config_load(const char *path, const char *context, struct kube_config *ret, struct err *err);
void kube_config_done(struct kube_config *c);
