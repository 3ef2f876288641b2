// SPDX-License-Identifier: Apache-2.0
// Two proxies, as two replicas of the operator have them, each a process of its own with an address of its own, and a
// worker that is connected to both.
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

// Each exits with a message where it fails.
void replicas_start(struct replicas *r, const char *worker, const char *module);
void replicas_stop(struct replicas *r);
void replica_start(struct replicas *r, unsigned i); // one that was killed
void replica_kill(struct replicas *r, unsigned i);
