// SPDX-License-Identifier: Apache-2.0
#include "operator/identity/keys.h"

#include "common/base/json.h"
#include "common/base/json_writer.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/identity/base64.h"

#include <openssl/rand.h>
#include <string.h>

#define START_OVER \
    "remove all entries of the Secret; a running operator puts its keys back, and one that starts makes new keys"
#define MANAGED_BY "app.kubernetes.io/managed-by"

// *ret_bytes is NULL if the entry is missing or empty.
static int entry(const struct json *data, const char *name, struct arena *a, const uint8_t **ret_bytes, size_t *ret_len,
                 struct err *err)
{
    const char *text = json_str(json_get(data, name), a);
    *ret_bytes = NULL;
    *ret_len = 0;
    if (str_empty(text))
        return 0;
    *ret_bytes = base64_decode(BASE64_STANDARD, text, strlen(text), a, ret_len);
    return *ret_bytes ? 0 : err_set(err, ERR_INVALID, "%s is not base64", name);
}

static const struct {
    const char *name;
    size_t offset;
} texts[] = {{"ca.crt", offsetof(struct keys, ca_cert)},
             {"ca.key", offsetof(struct keys, ca_key)},
             {"tls.crt", offsetof(struct keys, cert)},
             {"tls.key", offsetof(struct keys, key)}};

static const char *text_of(const struct keys *k, size_t i)
{
    return *(const char *const *)((const char *)k + texts[i].offset);
}

static int text_entry(const struct json *data, size_t i, struct arena *a, struct keys *ret, struct err *err)
{
    const uint8_t *bytes;
    size_t len;
    int r = entry(data, texts[i].name, a, &bytes, &len, err);
    *(const char **)((char *)ret + texts[i].offset) = (const char *)bytes;
    return r;
}

static int install_entry(const struct json *data, struct arena *a, struct keys *ret, struct err *err)
{
    const uint8_t *bytes;
    size_t len;
    int r = entry(data, "install.key", a, &bytes, &len, err);
    if (r < 0 || !bytes)
        return r;
    if (len != INSTALL_KEY_SIZE)
        return err_set(err, ERR_INVALID,
                       "install.key has %zu bytes, but needs %d; remove it, and the operator writes a new one", len,
                       INSTALL_KEY_SIZE);
    memcpy(ret->install, bytes, INSTALL_KEY_SIZE);
    ret->has_install = true;
    return 0;
}

// Keeps all annotations, and the label that names the manager of the Secret. Without them, Helm refuses the Secret.
// Other labels change with versions of the chart. If the operator owned them, each change by Helm would be a conflict.
static const char *metadata_of(const struct json *metadata, struct arena *a)
{
    const struct json *annotations = json_get(metadata, "annotations");
    const char *manager = json_str(json_get(json_get(metadata, "labels"), MANAGED_BY), a);
    struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    writer_str(&w, "name", json_str(json_get(metadata, "name"), a));
    if (manager) {
        writer_object(&w, "labels");
        writer_str(&w, MANAGED_BY, manager);
        writer_object_end(&w);
    }
    if (annotations)
        writer_raw(&w, "annotations", annotations->text, annotations->len);
    writer_object_end(&w);
    return writer_finish(&w, a);
}

int keys_decode(const char *secret, size_t len, struct arena *a, struct keys *ret, struct err *err)
{
    struct json *root = NULL;
    if (json_parse(secret, len, NULL, a, &root, err) < 0)
        return err->code;
    const struct json *data = json_get(root, "data"), *metadata = json_get(root, "metadata");
    *ret = (struct keys){.resource_version = json_str(json_get(metadata, "resourceVersion"), a),
                         .metadata = metadata_of(metadata, a)};
    int r = str_empty(ret->resource_version) ? err_set(err, ERR_INVALID, "no resourceVersion") : 0;
    if (r == 0)
        r = install_entry(data, a, ret, err);
    for (size_t i = 0; i < ARRAY_LEN(texts) && r == 0; i++)
        r = text_entry(data, i, a, ret, err);
    return r;
}

// --- what is missing, from memory

static bool same_or_missing(const char *now, const char *before)
{
    return !now || str_eq(now, before);
}

static bool leaf_same_or_missing(const struct keys *k, const struct keys *memory)
{
    return same_or_missing(k->cert, memory->cert) && same_or_missing(k->key, memory->key);
}

// Returns true if the existing certificates belong to the authority in memory. If there is no authority, the leaf
// decides.
static bool of_same_authority(const struct keys *k, const struct keys *memory, int64_t now_ms)
{
    struct err err = ERR_INIT;
    if (k->ca_cert || k->ca_key)
        return same_or_missing(k->ca_cert, memory->ca_cert) && same_or_missing(k->ca_key, memory->ca_key);
    return leaf_same_or_missing(k, memory) ||
           (k->cert && k->key &&
            certificate_check(&(struct certificate_pair){k->cert, k->key}, memory->ca_cert, now_ms, &err) == 0);
}

static void put_back(struct keys *k, const struct keys *memory, int64_t now_ms, struct arena *a)
{
    if (!k->has_install)
        memcpy(k->install, memory->install, INSTALL_KEY_SIZE);
    k->has_install = true;
    if (!of_same_authority(k, memory, now_ms))
        return;
    k->ca_cert = arena_strdup(a, memory->ca_cert);
    k->ca_key = arena_strdup(a, memory->ca_key);
    if (!leaf_same_or_missing(k, memory))
        return;
    k->cert = arena_strdup(a, memory->cert);
    k->key = arena_strdup(a, memory->key);
}

// --- completing

static bool names_contain(struct certificate_names names, const char *name)
{
    for (size_t i = 0; i < names.n; i++)
        if (str_eq(names.items[i], name))
            return true;
    return false;
}

static bool leaf_good(const struct keys *k, struct certificate_names names, int64_t now_ms, struct arena *a)
{
    struct certificate_facts f;
    struct err err = ERR_INIT;
    if (!k->cert || !k->key || certificate_read(k->cert, a, &f, &err) < 0 ||
        certificate_check(&(struct certificate_pair){k->cert, k->key}, k->ca_cert, now_ms, &err) < 0)
        return false;
    for (size_t i = 0; i < names.n; i++)
        if (!names_contain(f.names, names.items[i]))
            return false;
    return now_ms < f.from_ms + (f.until_ms - f.from_ms) / 3 * 2;
}

static int complete_ours(struct keys *k, struct certificate_names names, int64_t now_ms, struct arena *a,
                         struct err *err)
{
    struct certificate_pair ca = {k->ca_cert, k->ca_key}, leaf = {0};
    int r = ca.key ? 0 : certificate_make_authority(now_ms, a, &ca, err);
    if (r == 0 && !ca.cert)
        r = err_set(err, ERR_INVALID, "ca.crt is missing beside ca.key; " START_OVER);
    k->ca_cert = ca.cert;
    k->ca_key = ca.key;
    if (r == 0 && certificate_check_authority(&ca, err) < 0)
        r = err_set(err, ERR_INVALID, "ca.crt and ca.key cannot be used together (%.300s); " START_OVER, err->msg);
    if (r < 0 || leaf_good(k, names, now_ms, a))
        return r;
    r = certificate_make_leaf(&ca, names, now_ms, a, &leaf, err);
    if (r == 0) // a certificate of an expired authority would be useless
        r = certificate_check(&leaf, ca.cert, now_ms, err);
    if (r < 0)
        return err_set(err, r, "no certificate can be made with ca.crt and ca.key (%.300s); " START_OVER, err->msg);
    k->cert = leaf.cert;
    k->key = leaf.key;
    return 0;
}

static int check_theirs(const struct keys *k, int64_t now_ms, struct err *err)
{
    if (!k->cert || !k->key || !k->ca_cert)
        return err_set(err, ERR_INVALID, "%s is missing: supply tls.crt, tls.key and ca.crt together; or " START_OVER,
                       !k->cert  ? "tls.crt"
                       : !k->key ? "tls.key"
                                 : "ca.crt");
    if (certificate_check(&(struct certificate_pair){k->cert, k->key}, k->ca_cert, now_ms, err) < 0)
        return err_set(err, ERR_INVALID, "the supplied tls.crt, tls.key and ca.crt cannot be used: %.300s", err->msg);
    return 0;
}

bool keys_equal(const struct keys *a, const struct keys *b)
{
    bool equal = a->has_install == b->has_install && memcmp(a->install, b->install, INSTALL_KEY_SIZE) == 0;
    for (size_t i = 0; i < ARRAY_LEN(texts) && equal; i++)
        equal = str_eq(text_of(a, i), text_of(b, i));
    return equal;
}

// Returns NULL if both are the same.
static const char *patch_of(const struct keys *before, const struct keys *after, struct arena *a)
{
    if (keys_equal(before, after))
        return NULL;
    struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    writer_print(&w, "metadata", "{'resourceVersion':%s}", before->resource_version);
    writer_object(&w, "data");
    if (!before->has_install)
        writer_str(&w, "install.key", base64_encode(BASE64_STANDARD, after->install, INSTALL_KEY_SIZE, a));
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        const char *text = text_of(after, i);
        if (!str_eq(text_of(before, i), text))
            writer_str(&w, texts[i].name, base64_encode(BASE64_STANDARD, text, strlen(text), a));
    }
    writer_object_end(&w);
    writer_object_end(&w);
    return writer_finish(&w, a);
}

int keys_complete(const struct keys *k, const struct keys *memory, struct certificate_names names, int64_t now_ms,
                  struct arena *a, struct keys *ret, const char **ret_patch, struct err *err)
{
    *ret = *k;
    if (memory)
        put_back(ret, memory, now_ms, a);
    bool theirs = !ret->ca_key && (ret->ca_cert || ret->cert || ret->key);
    int r = theirs ? check_theirs(ret, now_ms, err) : complete_ours(ret, names, now_ms, a, err);
    if (r == 0 && !ret->has_install) {
        if (RAND_bytes(ret->install, INSTALL_KEY_SIZE) != 1)
            return err_set(err, ERR_INTERNAL, "the kernel gives no random numbers");
        ret->has_install = true;
    }
    if (r == 0)
        *ret_patch = patch_of(k, ret, a);
    return r;
}

// --- the result

bool keys_trusted(const struct keys *k)
{
    return k->has_install && k->ca_cert;
}

const char *keys_put_back(const struct keys *before, const struct keys *memory, const struct keys *after,
                          struct arena *a)
{
    const char *names = before->has_install ? NULL : "install.key";
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        const char *now = text_of(after, i);
        if (!text_of(before, i) && now && str_eq(now, text_of(memory, i)))
            names = names ? arena_printf(a, "%s, %s", names, texts[i].name) : texts[i].name;
    }
    return names;
}

const char *keys_id(const struct keys *k, struct arena *a)
{
    const char *authority = certificate_id(k->ca_cert, a);
    return arena_printf(a, "%s-%s", authority ? authority : "none", install_key_id(k->install, a));
}

const char *keys_secret(const char *name, const char *metadata, struct arena *a)
{
    return json_print(a, "{'apiVersion':'v1','kind':'Secret','metadata':%-s,'type':'Opaque'}",
                      metadata ? metadata : json_print(a, "{'name':%s}", name));
}
