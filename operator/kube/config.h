// SPDX-License-Identifier: Apache-2.0
// The address of the API server and our credentials: from a kubeconfig file, or from the pod that we run in.
#pragma once

#include "common/base/arena.h"
#include "common/base/err.h"

#include <stdbool.h>

struct kube_config {
    struct arena arena;               // owns all strings
    const char *source;               // for messages: "in-cluster" or "kubeconfig <file>, context <name>"
    const char *server;               // "https://host:port", no trailing slash
    const char *ns;                   // default namespace, "default" if none is named
    const char *ca_file, *ca_pem;     // at most one; both NULL = the system's
    const char *cert_file, *cert_pem; // client certificate
    const char *key_file, *key_pem;
    const char *token, *token_file; // token_file is read again as it rotates
    const char *tls_server_name;
    const char *proxy_url; // NULL = direct: the proxy variables of the environment are not read
    bool insecure;
};

// From the pod's ServiceAccount files under `root` ("" in production) and KUBERNETES_SERVICE_HOST/PORT.
int kube_config_in_cluster(const char *root, const char *host, const char *port, struct kube_config *ret,
                           struct err *err);
// path: a kubeconfig (may be a colon-separated list as in KUBECONFIG: the first file that exists wins) or NULL =
// in-cluster. context: NULL = current-context. Errors say which file and what is wrong with it, and what to do:
// missing, not YAML, context/cluster/user not there, bad base64, an exec or auth-provider plugin (not supported).
// Certificates are looked at by kube_client_new(). *ret is set only on success.
int kube_config_load(const char *path, const char *context, struct kube_config *ret, struct err *err);
void kube_config_done(struct kube_config *c);
