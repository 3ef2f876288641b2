// SPDX-License-Identifier: Apache-2.0
#include "bench/calls/caller.h"

#include "common/base/mem.h"

#include <cadre/client.h>
#include <stdio.h>
#include <stdlib.h>

enum { COLUMNS = 1024 };

void caller_die(const char *what, const cadre_client_error *error)
{
    fprintf(stderr, "bench: %s: %s (%s)\n", what, error->message, error->name);
    exit(1);
}

cadre_client *caller_open(const char *address, const char *ns, const char *ca_pem, size_t max_body)
{
    cadre_client_options o;
    cadre_client_error error;
    cadre_client *c;
    cadre_client_options_init(&o);
    o.address = address;
    o.ns = ns;
    o.token = "bench";
    o.ca_pem = ca_pem;
    o.max_body = max_body;
    o.max_bytes = 3 * max_body;
    if (cadre_client_open(&o, &c, &error) != CADRE_CLIENT_OK)
        caller_die(address, &error);
    return c;
}

void *caller_batch(const char *dtype, size_t element, size_t bytes, size_t *ret_len)
{
    cadre_client_error error;
    char *data = xmalloc(bytes);
    void *document;
    for (size_t i = 0; i < bytes; i++)
        data[i] = (char)(i / COLUMNS * 7 + i);
    const cadre_client_tensor t = {.name = "a",
                                   .dtype = dtype,
                                   .shape = {bytes / COLUMNS / element, COLUMNS},
                                   .n_dims = 2,
                                   .data = data,
                                   .len = bytes};
    if (cadre_client_batch_write(&t, 1, NULL, NULL, &document, ret_len, &error) != CADRE_CLIENT_OK)
        caller_die("batch", &error);
    free(data);
    return document;
}
