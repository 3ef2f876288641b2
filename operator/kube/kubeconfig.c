// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/kubeconfig.h"

#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <openssl/evp.h>
#include <string.h>
#include <yaml.h>

enum { KUBECONFIG_MAX_FILE = 1024 * 1024 };

struct kubeconfig {
    const char *file;
    yaml_document_t doc;
    yaml_node_t *root;
    struct kube_config *c;
};

static yaml_node_t *map_get(struct kubeconfig *k, const yaml_node_t *map, const char *key)
{
    if (!map || map->type != YAML_MAPPING_NODE)
        return NULL;
    for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top; p++) {
        yaml_node_t *name = yaml_document_get_node(&k->doc, p->key);
        if (name && name->type == YAML_SCALAR_NODE && strcmp((const char *)name->data.scalar.value, key) == 0)
            return yaml_document_get_node(&k->doc, p->value);
    }
    return NULL;
}

// NULL for what is missing, empty or no scalar.
static const char *map_text(struct kubeconfig *k, const yaml_node_t *map, const char *key)
{
    const yaml_node_t *n = map_get(k, map, key);
    const char *s = n && n->type == YAML_SCALAR_NODE ? (const char *)n->data.scalar.value : NULL;
    return !s || !*s || strcmp(s, "null") == 0 || strcmp(s, "~") == 0 ? NULL : s;
}

static const char *map_dup(struct kubeconfig *k, const yaml_node_t *map, const char *key)
{
    return arena_strdup(&k->c->arena, map_text(k, map, key));
}

static yaml_node_t *list_at(struct kubeconfig *k, const yaml_node_t *list, size_t i)
{
    if (!list || list->type != YAML_SEQUENCE_NODE ||
        i >= (size_t)(list->data.sequence.items.top - list->data.sequence.items.start))
        return NULL;
    return yaml_document_get_node(&k->doc, list->data.sequence.items.start[i]);
}

static void put_names(struct kubeconfig *k, const yaml_node_t *list, struct buf *out)
{
    const yaml_node_t *entry;
    for (size_t i = 0; (entry = list_at(k, list, i)); i++) {
        const char *name = map_text(k, entry, "name");
        if (name)
            (void)buf_printf(out, "%s\"%s\"", out->len ? ", " : "", name);
    }
}

// The member `inner` of the entry called `name` in the list `plural`: contexts, clusters and users are all kept so.
static int find_entry(struct kubeconfig *k, const char *plural, const char *inner, const char *name, yaml_node_t **ret,
                      struct err *err)
{
    const yaml_node_t *list = map_get(k, k->root, plural), *entry;
    for (size_t i = 0; (entry = list_at(k, list, i)); i++) {
        if (!str_eq(map_text(k, entry, "name"), name))
            continue;
        *ret = map_get(k, entry, inner);
        if (*ret && (*ret)->type == YAML_MAPPING_NODE)
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
        return arena_strdup(&k->c->arena, path);
    return arena_printf(&k->c->arena, "%.*s/%s", (int)(slash - k->file), k->file, path);
}

// A credential that is either a file (`key`) or inside the kubeconfig (`key`-data, which wins, as in kubectl).
static int load_pem(struct kubeconfig *k, const yaml_node_t *map, const char *key, const char **ret_file,
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

static int load_bool(struct kubeconfig *k, const yaml_node_t *map, const char *key, bool *ret, struct err *err)
{
    const char *s = map_text(k, map, key);
    *ret = str_eq(s, "true");
    if (!s || *ret || str_eq(s, "false"))
        return 0;
    return err_set(err, ERR_INVALID, "kubeconfig %s: %s has to be true or false, not \"%s\"", k->file, key, s);
}

static int load_cluster(struct kubeconfig *k, const char *name, struct err *err)
{
    yaml_node_t *cluster = NULL;
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
    k->c->tls_server_name = map_dup(k, cluster, "tls-server-name");
    k->c->proxy_url = map_dup(k, cluster, "proxy-url");
    r = load_bool(k, cluster, "insecure-skip-tls-verify", &k->c->insecure, err);
    return r < 0 ? r : load_pem(k, cluster, "certificate-authority", &k->c->ca_file, &k->c->ca_pem, err);
}

// Ways to log in that would be wrong to ignore.
static int refuse_unsupported(struct kubeconfig *k, const yaml_node_t *user, const char *name, struct err *err)
{
    static const char advice[] = "use a token or a client certificate (`kubectl create token` makes a token)";
    const yaml_node_t *exec = map_get(k, user, "exec"), *provider = map_get(k, user, "auth-provider");
    if (exec && exec->type == YAML_MAPPING_NODE) {
        const char *command = map_text(k, exec, "command");
        return err_set(err, ERR_INVALID,
                       "kubeconfig %s: user \"%s\" logs in by running %s (exec), which is not supported; %s", k->file,
                       name, command ? command : "a program", advice);
    }
    if (provider && provider->type == YAML_MAPPING_NODE) {
        const char *kind = map_text(k, provider, "name");
        return err_set(err, ERR_INVALID,
                       "kubeconfig %s: user \"%s\" logs in by auth-provider %s, which is not supported; %s", k->file,
                       name, kind ? kind : "", advice);
    }
    if (map_text(k, user, "username"))
        return err_set(err, ERR_INVALID,
                       "kubeconfig %s: user \"%s\" logs in by username and password, which is not supported; %s",
                       k->file, name, advice);
    if (map_text(k, user, "as") || map_text(k, user, "as-uid") || map_get(k, user, "as-groups"))
        return err_set(err, ERR_INVALID, "kubeconfig %s: user \"%s\" impersonates another (as), which is not supported",
                       k->file, name);
    return 0;
}

static int load_user(struct kubeconfig *k, const char *name, struct err *err)
{
    if (!name)
        return 0; // anonymous
    yaml_node_t *user = NULL;
    int r = find_entry(k, "users", "user", name, &user, err);
    if (r == 0)
        r = refuse_unsupported(k, user, name, err);
    if (r == 0)
        r = load_pem(k, user, "client-certificate", &k->c->cert_file, &k->c->cert_pem, err);
    if (r == 0)
        r = load_pem(k, user, "client-key", &k->c->key_file, &k->c->key_pem, err);
    if (r < 0)
        return r;
    k->c->token = map_dup(k, user, "token");
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
    yaml_node_t *context = NULL;
    int r = find_entry(k, "contexts", "context", name, &context, err);
    if (r < 0)
        return r;
    const char *cluster = map_text(k, context, "cluster"), *ns = map_text(k, context, "namespace");
    if (!cluster)
        return err_set(err, ERR_INVALID, "kubeconfig %s: context \"%s\" names no cluster", k->file, name);
    k->c->ns = arena_strdup(&k->c->arena, ns ? ns : "default");
    r = load_cluster(k, cluster, err);
    return r < 0 ? r : load_user(k, map_text(k, context, "user"), err);
}

static int parse(struct kubeconfig *k, const struct buf *text, struct err *err)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return err_set(err, ERR_NOMEM, "kubeconfig %s: out of memory", k->file);
    yaml_parser_set_input_string(&parser, (const unsigned char *)buf_str(text), text->len);
    int ok = yaml_parser_load(&parser, &k->doc);
    if (!ok)
        err_set(err, ERR_INVALID, "kubeconfig %s is not YAML: line %zu: %s", k->file, parser.problem_mark.line + 1,
                parser.problem ? parser.problem : "cannot be read");
    yaml_parser_delete(&parser);
    return ok ? 0 : err->code;
}

int kubeconfig_load(const char *file, const char *context, struct kube_config *c, struct err *err)
{
    struct buf text = BUF_INIT(KUBECONFIG_MAX_FILE);
    struct kubeconfig k = {.file = file, .c = c};
    int r = file_read(file, &text, err);
    if (r < 0)
        err_wrap(err, "kubeconfig");
    else
        r = parse(&k, &text, err);
    if (r == 0) {
        k.root = yaml_document_get_root_node(&k.doc);
        if (k.root && k.root->type == YAML_MAPPING_NODE)
            r = load_context(&k, context, err);
        else
            r = err_set(err, ERR_INVALID, "kubeconfig %s is %s", file, k.root ? "not a kubeconfig" : "empty");
        yaml_document_delete(&k.doc);
    }
    if (text.data)
        explicit_bzero(text.data, text.size);
    buf_done(&text);
    return r;
}
