// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/credentials.h"

#include "common/base/file.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <string.h>

enum { CREDENTIALS_MAX_FILE = 1024 * 1024 };

// One of the three parts: its text, and its name in messages.
struct part {
    const char *what; // "client certificate"
    const char *file; // NULL: inside the kubeconfig
    struct buf pem;
    BIO *bio;
};

static void part_done(struct part *p)
{
    BIO_free(p->bio);
    if (p->pem.data)
        explicit_bzero(p->pem.data, p->pem.size); // may be a private key
    buf_done(&p->pem);
}

static int part_load(struct part *p, const char *what, const char *file, const char *pem, struct err *err)
{
    *p = (struct part){.what = what, .file = pem ? NULL : file, .pem = BUF_INIT(CREDENTIALS_MAX_FILE)};
    if (!pem && file_read(file, &p->pem, err) < 0)
        return err_set(err, ERR_INVALID, "%s: %s", what, err->msg);
    const char *text = pem ? pem : buf_str(&p->pem);
    p->bio = BIO_new_mem_buf(text, (int)strlen(text));
    return p->bio ? 0 : err_set(err, ERR_NOMEM, "%s: out of memory", what);
}

static int part_bad(const struct part *p, struct err *err, const char *why)
{
    ERR_clear_error();
    return err_set(err, ERR_INVALID, "%s%s%s %s", p->what, p->file ? " " : "", p->file ? p->file : "", why);
}

static int check_dates(const struct part *p, X509 *cert, int64_t now_ms, struct err *err)
{
    time_t now = (time_t)(now_ms / 1000);
    bool expired = X509_cmp_time(X509_get0_notAfter(cert), &now) < 0;
    bool early = X509_cmp_time(X509_get0_notBefore(cert), &now) > 0;
    struct tm tm;
    const ASN1_TIME *when = expired ? X509_get0_notAfter(cert) : X509_get0_notBefore(cert);
    if ((!expired && !early) || !ASN1_TIME_to_tm(when, &tm))
        return 0;
    char date[48], why[160];
    strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S UTC", &tm);
    snprintf(why, sizeof why, expired ? "expired on %s; get a new one" : "is not valid before %s; is the clock right?",
             date);
    return part_bad(p, err, why);
}

// One certificate of the bundle that is still valid is enough.
static int check_ca(const struct kube_config *c, int64_t now_ms, struct err *err)
{
    struct part p;
    int r = part_load(&p, "certificate authority", c->ca_file, c->ca_pem, err);
    int found = 0, good = 0;
    for (X509 *cert; r == 0 && !good && (cert = PEM_read_bio_X509(p.bio, NULL, NULL, NULL)); X509_free(cert)) {
        found++;
        good = check_dates(&p, cert, now_ms, err) == 0;
    }
    if (r == 0 && !found)
        r = part_bad(&p, err, "holds no certificate in PEM form");
    else if (r == 0 && !good)
        r = err->code;
    ERR_clear_error();
    part_done(&p);
    return r;
}

// Nobody can enter the passphrase of a key here.
static int no_passphrase(char *buf, int size, int rwflag, void *ctx) // NOLINT(readability-non-const-parameter)
{
    (void)buf, (void)size, (void)rwflag;
    *(bool *)ctx = true;
    return -1;
}

static int check_key(struct part *p, X509 *cert, struct err *err)
{
    bool encrypted = false;
    EVP_PKEY *key = PEM_read_bio_PrivateKey(p->bio, NULL, no_passphrase, &encrypted);
    int r = 0;
    if (!key)
        r = part_bad(p, err,
                     encrypted ? "is encrypted, which is not supported; store it without a passphrase"
                               : "holds no private key in PEM form");
    else if (X509_check_private_key(cert, key) != 1)
        r = part_bad(p, err, "does not belong to the client certificate");
    EVP_PKEY_free(key);
    return r;
}

static int check_client(const struct kube_config *c, int64_t now_ms, struct err *err)
{
    bool has_cert = c->cert_file || c->cert_pem, has_key = c->key_file || c->key_pem;
    if (!has_cert && !has_key)
        return 0;
    if (!has_cert || !has_key)
        return err_set(err, ERR_INVALID, "a client %s is given without its %s", has_cert ? "certificate" : "key",
                       has_cert ? "key" : "certificate");
    struct part cert_part, key_part;
    int r = part_load(&cert_part, "client certificate", c->cert_file, c->cert_pem, err);
    X509 *cert = r == 0 ? PEM_read_bio_X509(cert_part.bio, NULL, NULL, NULL) : NULL;
    if (r == 0)
        r = cert ? check_dates(&cert_part, cert, now_ms, err)
                 : part_bad(&cert_part, err, "is not a certificate in PEM form");
    part_done(&cert_part);
    if (r == 0) {
        r = part_load(&key_part, "client key", c->key_file, c->key_pem, err);
        if (r == 0)
            r = check_key(&key_part, cert, err);
        part_done(&key_part);
    }
    X509_free(cert);
    return r;
}

int credentials_check(const struct kube_config *c, int64_t now_ms, struct err *err)
{
    int r = c->ca_file || c->ca_pem ? check_ca(c, now_ms, err) : 0;
    if (r == 0)
        r = check_client(c, now_ms, err);
    if (r == 0)
        *err = ERR_INIT; // clears the error of an expired authority beside a valid one
    return r;
}
