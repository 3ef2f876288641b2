// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/config.h"

#include "common/base/file.h"
#include "common/base/str.h"

#include <string.h>
#include <unistd.h>

enum { CONFIG_MAX_NAMESPACE = 253 };

static void wipe(const char *secret)
{
    if (secret)
        explicit_bzero((char *)secret, strlen(secret)); // the arena's own copy
}

void kube_config_done(struct kube_config *c)
{
    wipe(c->token);
    wipe(c->key_pem);
    arena_done(&c->arena);
    *c = (struct kube_config){0};
}

static const char *read_namespace(const char *path, struct arena *a)
{
    struct buf text = BUF_INIT(CONFIG_MAX_NAMESPACE + 1);
    struct err ignored = ERR_INIT; // the file is optional
    const char *ns = NULL;
    if (file_read(path, &text, &ignored) == 0)
        ns = arena_strndup(a, buf_str(&text), strcspn(buf_str(&text), " \r\n"));
    buf_done(&text);
    return str_empty(ns) ? "default" : ns;
}

int kube_config_in_cluster(const char *root, const char *host, const char *port, struct kube_config *ret,
                           struct err *err)
{
    if (!host || !*host || !port || !*port)
        return err_set(
            err, ERR_NOT_FOUND,
            "this is not a pod of a cluster (KUBERNETES_SERVICE_HOST and _PORT are not set) and no kubeconfig "
            "is given; name one");
    struct kube_config c = {0};
    arena_init(&c.arena, 0);
    const char *dir = arena_printf(&c.arena, "%s/var/run/secrets/kubernetes.io/serviceaccount", root);
    bool v6 = strchr(host, ':') != NULL;
    c.source = "in-cluster";
    c.server = arena_printf(&c.arena, "https://%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "", port);
    c.token_file = arena_printf(&c.arena, "%s/token", dir);
    c.ca_file = arena_printf(&c.arena, "%s/ca.crt", dir);
    c.ns = read_namespace(arena_printf(&c.arena, "%s/namespace", dir), &c.arena);
    const char *missing = access(c.token_file, R_OK) != 0 ? c.token_file
                          : access(c.ca_file, R_OK) != 0  ? c.ca_file
                                                          : NULL;
    if (missing) {
        err_set(err, ERR_NOT_FOUND, "in-cluster: cannot read %s; does the pod set automountServiceAccountToken: false?",
                missing);
        kube_config_done(&c);
        return err->code;
    }
    *ret = c;
    return 0;
}
