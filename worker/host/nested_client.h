// SPDX-License-Identifier: Apache-2.0
// Calls that methods of this worker make: to its own group and others of its namespace, through the proxy, like those
// of any client. In a pod, they use its ServiceAccount. Each thread has its own connection, from its first call on.
#pragma once

#include "sdk/c/include/cadre/client.h"
#include "worker/host/host_options.h"

#define NESTED_CLIENT_TOKEN_FILE "/var/run/secrets/cadre.dev/token"

struct nested_client;

struct nested_client *nested_client_new(const struct options *o); // which is borrowed
void nested_client_free(struct nested_client *c);                 // after the threads that used it; accepts NULL

// Whose worker this is, as a proxy has said; from the loop's thread.
void nested_client_place(struct nested_client *c, const char *ns, const char *group, int rank);
// The same for any thread; false: not known. The strings live as long as the object.
bool nested_client_where(struct nested_client *c, const char **ret_ns, const char **ret_group, int *ret_rank);

struct nested_client_line { // of a thread
    cadre_client *client;
    int wake; // an eventfd that ends its waiting
};

// The calling thread's own, which it keeps to its end. NULL and an error if there can be none.
struct nested_client_line *nested_client_line(struct nested_client *c, cadre_client_error *error);
