// SPDX-License-Identifier: Apache-2.0
// The parts that tests of the client library share: a client, its proxy, and outcomes of calls.
#pragma once

#include "sdk/c/include/cadre/client.h"
#include "tests/unit/sdk/c/sdk_proxy.h"
#include "tests/unit/support/patience.h"

#define J(literal) ((cadre_client_json){(literal), sizeof(literal) - 1})

struct fixture {
    struct sdk_proxy proxy;
    cadre_client *client;
    cadre_client_error error;
};

// The outcome of a call that was started.
struct outcome {
    int n;
    cadre_client_code code;
    cadre_client_error error;
    char text[256];
    uint64_t id;
    struct fixture *f;
    uint64_t to_cancel;
};

int setup(void **state);
int teardown(void **state);
cadre_client_options options_of(const struct fixture *f);
void open_with(struct fixture *f, const cadre_client_options *o);
void open_client(struct fixture *f);
cadre_client_request request_of(const char *method);
const char *call(struct fixture *f, const cadre_client_request *r);
const char *call_method(struct fixture *f, const char *method, const char *args);
uint64_t start(struct fixture *f, cadre_client_request r, struct outcome *o);
uint64_t start_method(struct fixture *f, const char *method, struct outcome *o);
void wait_for(struct fixture *f, const struct outcome *o);
void turn_a_little(struct fixture *f);
void until_saw(struct fixture *f, const char *text, size_t n);
