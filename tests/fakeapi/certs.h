// SPDX-License-Identifier: Apache-2.0
// Certificates made on the spot, so that no test waits for one to expire or carries a key in its sources.
#pragma once

struct certs { // PEM text, owned
    char *ca;
    char *server_cert, *server_key; // for 127.0.0.1 and "kubernetes"
    char *client_cert, *client_key; // signed by the CA
    char *expired_cert;             // of client_key, since 2020-01-02 03:04:05 UTC
    char *future_cert;              // of client_key, from 2999-01-01 on
    char *other_ca;                 // has signed nothing
    char *other_key;
    char *encrypted_key; // client_key with a passphrase
};

void certs_make(struct certs *ret);
void certs_done(struct certs *c);
