// SPDX-License-Identifier: Apache-2.0
#include "worker/host/nested.h"

#include <stdlib.h>
#include <sys/eventfd.h>

void nested_wake(struct nested *n)
{
    int wake = atomic_load(&n->wake);
    if (wake)
        (void)eventfd_write(wake - 1, 1);
}

void nested_end(struct nested *n)
{
    for (size_t i = 0; i < n->n_open; i++) {
        cadre_client_forget(n->line->client, n->open[i]);
        (void)cadre_client_cancel(n->line->client, n->open[i]);
    }
    if (n->n_open)
        cadre_client_process(n->line->client); // so that the proxy gets the cancels now
    atomic_store(&n->wake, 0);
    free(n->open);
    n->open = NULL;
    n->n_open = 0;
}
