// SPDX-License-Identifier: Apache-2.0
// Tests of our client against the server begin with this: a server on a port of 127.0.0.1 that echoes, and one client.
#pragma once

#include "tests/unit/common/ws/ws_fixture.h"

#define MIB ((size_t)1 << 20)

extern struct ws_fixture f;
extern struct ws_peer p;
extern struct certs certs;

int world_setup_all(void **state); // makes the certificates
int world_teardown_all(void **state);
int world_setup(void **state);
int world_teardown(void **state);
#define WS_TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

void world_restart(const struct ws_server_config *config, const char *address); // another server, without a client
void open_peer(const struct ws_client_config *config);                          // config may be NULL
bool seen(const char *text);                                                    // in the trace of the server
void echo_both_kinds(void); // sends three messages, and gets them back
