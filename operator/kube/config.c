// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/config.h"

#include "common/base/file.h"
#include "common/base/json.h"
#include "common/base/str.h"
#include "operator/api/yaml.h"

#include <openssl/evp.h>
#include <stdlib.h>
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

// A kubeconfig

enum { KUBECONFIG_MAX_FILE = 1024 * 1024 };

struct kubeconfig {
    const char *file;
    const struct json *root;
    struct kube_config *c;
};

// Returns the text of a member; NULL if it is missing, empty or no scalar. A token may look like a number.
static const char *map_text(const struct kubeconfig *k, const struct json *map, const char *key)
{
    const struct json *v = json_get(map, key);
    const char *s = !v || v->type == JSON_OBJECT || v->type == JSON_LIST ? NULL
                    : v->type == JSON_STRING                             ? json_str(v, &k->c->arena)
                                                                         : arena_strndup(&k->c->arena, v->text, v->len);
    return str_empty(s) ? NULL : s;
}

static void put_names(const struct kubeconfig *k, const struct json *list, struct buf *out)
{
    JSON_FOREACH(entry, list) {
        const char *name = map_text(k, entry, "name");
        if (name)
            (void)buf_printf(out, "%s\"%s\"", out->len ? ", " : "", name);
    }
}

// Finds the member `inner` of the entry with that `name` in the list `plural`. Contexts, clusters and users all have
// this form.
static int find_entry(const struct kubeconfig *k, const char *plural, const char *inner, const char *name,
                      const struct json **ret, struct err *err)
{
    const struct json *list = json_get(k->root, plural);
    JSON_FOREACH(entry, list) {
        if (!str_eq(map_text(k, entry, "name"), name))
            continue;
        *ret = json_get(entry, inner);
        if (*ret && (*ret)->type == JSON_OBJECT)
            return 0;
        return err_set(err, ERR_INVALID, "kubeconfig %s: %s \"%s\" is empty", k->file, inner, name);
    }
    struct buf names = BUF_INIT(256);
    put_names(k, list, &names);
    err_set(err, ERR_INVALID, "kubeconfig %s: there is no %s \"%s\"; it has %s", k->file, inner, name,
            names.len ? names.data : "none");
    buf_done(&names);
    return err->code;
}

static const char *decode_base64(struct arena *a, const char *text)
{
    size_t n = strlen(text);
    char *out = arena_alloc(a, n / 4 * 3 + 4);
    EVP_ENCODE_CTX *ctx = EVP_ENCODE_CTX_new();
    int len = 0, tail = 0;
    EVP_DecodeInit(ctx);
    bool ok = n <= KUBECONFIG_MAX_FILE &&
              EVP_DecodeUpdate(ctx, (unsigned char *)out, &len, (const unsigned char *)text, (int)n) >= 0 &&
              EVP_DecodeFinal(ctx, (unsigned char *)out + len, &tail) == 1;
    EVP_ENCODE_CTX_free(ctx);
    out[ok ? len + tail : 0] = '\0';
    return ok && len + tail > 0 ? out : NULL;
}

static const char *beside_file(struct kubeconfig *k, const char *path)
{
    const char *slash = strrchr(k->file, '/');
    if (!path || path[0] == '/' || !slash)
        return path;
    return arena_printf(&k->c->arena, "%.*s/%s", (int)(slash - k->file), k->file, path);
}

// Reads a credential that is a file (`key`) or is inside the kubeconfig (`key`-data). As in kubectl, the latter wins.
static int load_pem(struct kubeconfig *k, const struct json *map, const char *key, const char **ret_file,
                    const char **ret_pem, struct err *err)
{
    char data_key[64];
    snprintf(data_key, sizeof data_key, "%s-data", key);
    const char *data = map_text(k, map, data_key);
    if (!data) {
        *ret_file = beside_file(k, map_text(k, map, key));
        return 0;
    }
    *ret_pem = decode_base64(&k->c->arena, data);
    return *ret_pem ? 0 : err_set(err, ERR_INVALID, "kubeconfig %s: %s is not base64", k->file, data_key);
}

static int load_bool(struct kubeconfig *k, const struct json *map, const char *key, bool *ret, struct err *err)
{
    const char *s = map_text(k, map, key);
    *ret = str_eq(s, "true");
    if (!s || *ret || str_eq(s, "false"))
        return 0;
    return err_set(err, ERR_INVALID, "kubeconfig %s: %s has to be true or false, not \"%s\"", k->file, key, s);
}

static int load_cluster(struct kubeconfig *k, const char *name, struct err *err)
{
    const struct json *cluster = NULL;
    int r = find_entry(k, "clusters", "cluster", name, &cluster, err);
    if (r < 0)
        return r;
    const char *server = map_text(k, cluster, "server");
    if (!str_starts(server, "https://") && !str_starts(server, "http://"))
        return err_set(err, ERR_INVALID, "kubeconfig %s: cluster \"%s\" needs a server such as https://host:6443%s%s",
                       k->file, name, server ? ", not " : "", server ? server : "");
    size_t n = strlen(server);
    while (n && server[n - 1] == '/')
        n--;
    k->c->server = arena_strndup(&k->c->arena, server, n);
    k->c->tls_server_name = map_text(k, cluster, "tls-server-name");
    k->c->proxy_url = map_text(k, cluster, "proxy-url");
    r = load_bool(k, cluster, "insecure-skip-tls-verify", &k->c->insecure, err);
    return r < 0 ? r : load_pem(k, cluster, "certificate-authority", &k->c->ca_file, &k->c->ca_pem, err);
}

// Ways to log in that are not supported. Ignoring them would be wrong.
static int refuse_unsupported(struct kubeconfig *k, const struct json *user, const char *name, struct err *err)
{
    static const char advice[] = "use a token or a client certificate (`kubectl create token` makes a token)";
    const struct json *exec = json_get(user, "exec"), *provider = json_get(user, "auth-provider");
    if (exec && exec->type == JSON_OBJECT) {
        const char *command = map_text(k, exec, "command");
        return err_set(err, ERR_INVALID,
                       "kubeconfig %s: user \"%s\" logs in by running %s (exec), which is not supported; %s", k->file,
                       name, command ? command : "a program", advice);
    }
    if (provider && provider->type == JSON_OBJECT) {
        const char *kind = map_text(k, provider, "name");
        return err_set(err, ERR_INVALID,
                       "kubeconfig %s: user \"%s\" logs in by auth-provider %s, which is not supported; %s", k->file,
                       name, kind ? kind : "", advice);
    }
    if (map_text(k, user, "username"))
        return err_set(err, ERR_INVALID,
                       "kubeconfig %s: user \"%s\" logs in by username and password, which is not supported; %s",
                       k->file, name, advice);
    if (map_text(k, user, "as") || map_text(k, user, "as-uid") || json_get(user, "as-groups"))
        return err_set(err, ERR_INVALID, "kubeconfig %s: user \"%s\" impersonates another (as), which is not supported",
                       k->file, name);
    return 0;
}

static int load_user(struct kubeconfig *k, const char *name, struct err *err)
{
    if (!name)
        return 0; // anonymous
    const struct json *user = NULL;
    int r = find_entry(k, "users", "user", name, &user, err);
    if (r == 0)
        r = refuse_unsupported(k, user, name, err);
    if (r == 0)
        r = load_pem(k, user, "client-certificate", &k->c->cert_file, &k->c->cert_pem, err);
    if (r == 0)
        r = load_pem(k, user, "client-key", &k->c->key_file, &k->c->key_pem, err);
    if (r < 0)
        return r;
    k->c->token = map_text(k, user, "token");
    if (!k->c->token)
        k->c->token_file = beside_file(k, map_text(k, user, "tokenFile"));
    return 0;
}

static int load_context(struct kubeconfig *k, const char *name, struct err *err)
{
    if (!name)
        name = map_text(k, k->root, "current-context");
    if (!name)
        return err_set(err, ERR_INVALID, "kubeconfig %s: no current-context is set; name a context", k->file);
    k->c->source = arena_printf(&k->c->arena, "kubeconfig %s, context %s", k->file, name);
    const struct json *context = NULL;
    int r = find_entry(k, "contexts", "context", name, &context, err);
    if (r < 0)
        return r;
    const char *cluster = map_text(k, context, "cluster"), *ns = map_text(k, context, "namespace");
    if (!cluster)
        return err_set(err, ERR_INVALID, "kubeconfig %s: context \"%s\" names no cluster", k->file, name);
    k->c->ns = ns ? ns : "default";
    r = load_cluster(k, cluster, err);
    return r < 0 ? r : load_user(k, map_text(k, context, "user"), err);
}

static int parse(struct kubeconfig *k, const struct buf *text, struct err *err)
{
    struct json *root = NULL;
    const char *const *documents;
    size_t n;
    if (yaml_to_json(buf_str(text), text->len, &k->c->arena, &documents, &n, err) < 0)
        return err_wrap(err, "kubeconfig %s is not YAML", k->file);
    if (n && json_parse(documents[0], strlen(documents[0]), NULL, &k->c->arena, &root, err) < 0)
        return err_wrap(err, "kubeconfig %s", k->file);
    k->root = root;
    return root && root->type == JSON_OBJECT
               ? 0
               : err_set(err, ERR_INVALID, "kubeconfig %s is %s", k->file, text->len ? "not a kubeconfig" : "empty");
}

static int load(const char *file, const char *context, struct kube_config *c, struct err *err)
{
    struct buf text = BUF_INIT(KUBECONFIG_MAX_FILE);
    struct kubeconfig k = {.file = file, .c = c};
    int r = file_read(file, &text, err);
    if (r < 0)
        err_wrap(err, "kubeconfig");
    else
        r = parse(&k, &text, err);
    if (r == 0)
        r = load_context(&k, context, err);
    if (text.data)
        explicit_bzero(text.data, text.size);
    buf_done(&text);
    return r;
}

// Returns the first existing file of the colon-separated list; NULL if none exists.
static const char *first_file(const char *list, struct arena *a)
{
    while (*list) {
        size_t n = strcspn(list, ":");
        const char *file = arena_strndup(a, list, n);
        if (n && access(file, F_OK) == 0)
            return file;
        list += n + (list[n] == ':');
    }
    return NULL;
}

int kube_config_load(const char *path, const char *context, struct kube_config *ret, struct err *err)
{
    if (!path)
        return kube_config_in_cluster("", getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT"), ret,
                                      err);
    struct kube_config c = {0};
    const char *file = first_file(path, &c.arena);
    int r = file ? load(file, context, &c, err) : err_set(err, ERR_NOT_FOUND, "kubeconfig %s does not exist", path);
    if (r < 0) {
        kube_config_done(&c);
        return r;
    }
    *ret = c;
    return 0;
}
