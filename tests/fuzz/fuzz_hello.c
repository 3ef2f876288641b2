// SPDX-License-Identifier: Apache-2.0
// The first record of a connection. 'm': what a worker process declares; else what the gateway reads in every HELLO.
// Each refusal has a message. Accepted values are as their header says.
#include "operator/gateway/hello.h"
#include "operator/proxy/member.h"

#include "common/base/str.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_role(const struct member *m, const struct member_role *r)
{
    for (size_t i = 0; i < r->n_methods; i++) {
        const struct member_method *method = &r->methods[i];
        must(method->dispatch && method->execute && method->lane < m->n_lanes);
        must(member_method(r, method->name) == method);
        must(i == 0 || strcmp(r->methods[i - 1].name, method->name) < 0);
    }
}

static void read_member(const char *text, size_t len)
{
    const struct member_identity who = {"u", 1, 0, "p", "n", NULL, "", NULL};
    struct err err = ERR_INIT;
    struct member *m;
    if (member_new(&who, text, len, &m, &err) < 0) {
        must(err.msg[0]);
        return;
    }
    must(m->n_roles > 0 && m->n_roles <= MEMBER_ROLES_MAX && m->n_lanes > 0 && m->n_lanes <= MEMBER_LANES_MAX);
    for (size_t i = 0; i < m->n_roles; i++)
        check_role(m, &m->roles[i]);
    member_free(m);
}

static void read_hello(const char *text, size_t len)
{
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct hello h;
    if (hello_decode(text, len, &a, &h, &err) < 0)
        must((err.code == ERR_INVALID || err.code == ERR_LIMIT) && str_starts(err.msg, "HELLO"));
    else
        must(h.role && h.rank >= -1 && h.attempt >= -1);
    arena_done(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size && data[0] == 'm')
        read_member((const char *)data + 1, size - 1);
    else
        read_hello((const char *)data, size);
    return 0;
}
