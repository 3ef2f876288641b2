// SPDX-License-Identifier: Apache-2.0
// Calls that methods of this worker make: to its own group and to others of its namespace, through the proxy, like
// calls of any client. In a pod, they use the pod's ServiceAccount. Each thread has its own connection, from its first
// call on.
#pragma once

#include "sdk/c/include/cadre/client.h"
#include "worker/host/host_options.h"

#define NESTED_CLIENT_TOKEN_FILE "/var/run/secrets/cadre.dev/token"

struct nested_client;

struct nested_client *nested_client_new(const struct host_options *o); // borrows the options
void nested_client_free(struct nested_client *c);                      // after the threads that used it; accepts NULL

// Sets the namespace, group and rank of this worker, as a proxy has said. On the loop's thread.
void nested_client_place(struct nested_client *c, const char *ns, const char *group, int rank);
// Returns them, on any thread. false: not known yet. The strings live as long as the object.
bool nested_client_where(struct nested_client *c, const char **ret_ns, const char **ret_group, int *ret_rank);

struct nested_client_line { // one for each thread
    cadre_client *client;
    int wake; // an eventfd that ends its wait
};

// Returns the line of the calling thread, which keeps it until it ends. Returns NULL with an error if there can be
// none.
struct nested_client_line *nested_client_line(struct nested_client *c, cadre_client_error *error);
