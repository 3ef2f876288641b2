// SPDX-License-Identifier: Apache-2.0
// Two proxies, as in two replicas of the operator. Each is a process with its own address. A worker is connected to
// both.
#pragma once

#include "tests/fakeapi/certs.h"

#include <sys/types.h>

enum { REPLICAS = 2 };

#define REPLICA_NS "bench"
#define REPLICA_GROUP "echo"
#define REPLICA_TOKEN "a token"
#define REPLICA_NAME "kubernetes" // in the certificate

struct replicas {
    struct certs certs;
    char dir[64];
    char addresses[REPLICAS][32]; // without the port
    int port;                     // of all
    pid_t pids[REPLICAS], worker;
};

// These functions exit with a message if they fail.
void replicas_start(struct replicas *r, const char *worker, const char *module);
void replicas_stop(struct replicas *r);
void replica_start(struct replicas *r, unsigned i); // starts a killed one again
void replica_kill(struct replicas *r, unsigned i);
