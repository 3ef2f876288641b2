// SPDX-License-Identifier: Apache-2.0
#include "operator/identity/keys.h"

#include "common/base/json.h"
#include "common/base/json_writer.h"
#include "common/base/str.h"
#include "operator/identity/base64.h"

#include <openssl/rand.h>
#include <string.h>

#define START_OVER "remove all entries of the Secret, and the operator makes new ones"

// *ret_bytes NULL: missing or empty.
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

static int text_entry(const struct json *data, const char *name, struct arena *a, const char **ret, struct err *err)
{
    const uint8_t *bytes;
    size_t len;
    int r = entry(data, name, a, &bytes, &len, err);
    *ret = (const char *)bytes;
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
        return err_set(err, ERR_INVALID, "install.key has %zu bytes and not %d; remove it, and the operator makes one",
                       len, INSTALL_KEY_SIZE);
    memcpy(ret->install, bytes, INSTALL_KEY_SIZE);
    ret->has_install = true;
    return 0;
}

int keys_decode(const char *secret, size_t len, struct arena *a, struct keys *ret, struct err *err)
{
    struct json *root = NULL;
    if (json_parse(secret, len, NULL, a, &root, err) < 0)
        return err->code;
    const struct json *data = json_get(root, "data");
    *ret = (struct keys){.resource_version = json_str(json_get(json_get(root, "metadata"), "resourceVersion"), a)};
    int r = str_empty(ret->resource_version) ? err_set(err, ERR_INVALID, "no resourceVersion") : 0;
    if (r == 0)
        r = install_entry(data, a, ret, err);
    if (r == 0)
        r = text_entry(data, "ca.crt", a, &ret->ca_cert, err);
    if (r == 0)
        r = text_entry(data, "ca.key", a, &ret->ca_key, err);
    if (r == 0)
        r = text_entry(data, "tls.crt", a, &ret->cert, err);
    if (r == 0)
        r = text_entry(data, "tls.key", a, &ret->key, err);
    return r;
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
    if (r < 0 || leaf_good(k, names, now_ms, a))
        return r;
    r = certificate_make_leaf(&ca, names, now_ms, a, &leaf, err);
    if (r == 0) // an authority at its end signs nothing that could be used
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
        return err_set(
            err, ERR_INVALID,
            "%s is missing: whoever supplies certificates must supply tls.crt, tls.key and ca.crt; or " START_OVER,
            !k->cert  ? "tls.crt"
            : !k->key ? "tls.key"
                      : "ca.crt");
    if (certificate_check(&(struct certificate_pair){k->cert, k->key}, k->ca_cert, now_ms, err) < 0)
        return err_set(err, ERR_INVALID, "the supplied tls.crt, tls.key and ca.crt cannot be used: %.300s", err->msg);
    return 0;
}

static void write_entry(struct json_writer *w, const char *name, const char *before, const char *after, struct arena *a)
{
    if (!str_eq(before, after))
        writer_str(w, name, base64_encode(BASE64_STANDARD, after, strlen(after), a));
}

// NULL if both are the same.
static const char *patch_of(const struct keys *before, const struct keys *after, struct arena *a)
{
    if (before->has_install && str_eq(before->ca_key, after->ca_key) && str_eq(before->key, after->key))
        return NULL;
    struct json_writer w;
    writer_init(&w, 0);
    writer_object(&w, NULL);
    writer_object(&w, "metadata");
    writer_str(&w, "resourceVersion", before->resource_version);
    writer_object_end(&w);
    writer_object(&w, "data");
    if (!before->has_install)
        writer_str(&w, "install.key", base64_encode(BASE64_STANDARD, after->install, INSTALL_KEY_SIZE, a));
    write_entry(&w, "ca.crt", before->ca_cert, after->ca_cert, a);
    write_entry(&w, "ca.key", before->ca_key, after->ca_key, a);
    write_entry(&w, "tls.crt", before->cert, after->cert, a);
    write_entry(&w, "tls.key", before->key, after->key, a);
    writer_object_end(&w);
    writer_object_end(&w);
    return writer_finish(&w, a);
}

int keys_complete(const struct keys *k, struct certificate_names names, int64_t now_ms, struct arena *a,
                  struct keys *ret, const char **ret_patch, struct err *err)
{
    *ret = *k;
    bool theirs = !k->ca_key && (k->ca_cert || k->cert || k->key);
    int r = theirs ? check_theirs(k, now_ms, err) : complete_ours(ret, names, now_ms, a, err);
    if (r == 0 && !k->has_install) {
        if (RAND_bytes(ret->install, INSTALL_KEY_SIZE) != 1)
            return err_set(err, ERR_INTERNAL, "the kernel gives no random numbers");
        ret->has_install = true;
    }
    if (r == 0)
        *ret_patch = patch_of(k, ret, a);
    return r;
}
