// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/operator/proxy/proxy_world.h"

#include "common/base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int world_setup_empty(void **state)
{
    struct world *w = xcalloc(1, sizeof *w);
    fixture_init(&w->f, NULL);
    fixture_group(&w->f, WORLD, 1, NULL);
    client_open(&w->f, &w->c, "llama");
    *state = w;
    return 0;
}

int world_setup(void **state)
{
    world_setup_empty(state);
    struct world *w = *state;
    for (uint32_t i = 0; i < WORLD; i++)
        worker_start(&w->f, &w->workers[i], i, 1);
    return 0;
}

int world_teardown(void **state)
{
    struct world *w = *state;
    client_close(&w->c);
    for (uint32_t i = 0; i < WORLD; i++)
        worker_hang_up(&w->f, &w->workers[i]);
    fixture_done(&w->f);
    free(w);
    return 0;
}

void sends(struct world *w, struct call_text call)
{
    struct err err = ERR_INIT;
    if (client_send(&w->c, &call, &err) < 0)
        fail_msg("%s", err.msg);
}

void sends_group(struct world *w, uint32_t id, const char *head, const char *args)
{
    sends(w, (struct call_text){.id = id, .rank = RECORD_GROUP, .head = head, .args = args});
}

void hears(struct world *w, const char *want)
{
    const char *got = client_hears(&w->c);
    size_t n = strlen(want);
    if (!got)
        fail_msg("nothing came, not %s", want);
    bool same = n && want[n - 1] == '*' ? strncmp(got, want, n - 1) == 0 : strcmp(got, want) == 0;
    if (!same)
        fail_msg("%s\ncame, not\n%s", got, want);
}

void hears_about(struct world *w, const char *begin, const char *about)
{
    const char *got = client_hears(&w->c);
    if (!got || !str_starts(got, begin) || !strstr(got, about))
        fail_msg("%s\ncame, not %s... %s", got ? got : "nothing", begin, about);
}

void hears_nothing(struct world *w)
{
    const char *got = client_hears(&w->c);
    if (got)
        fail_msg("%s came", got);
}

void ranks_read(struct world *w)
{
    for (uint32_t i = 0; i < WORLD; i++)
        wire_pass(&w->workers[i].wire);
}

void cancels_at(struct world *w, uint32_t rank, uint32_t id)
{
    struct wire_record *r = wire_next(&w->workers[rank].wire);
    assert_non_null(r);
    assert_int_equal(r->h.type, RECORD_CANCEL);
    assert_int_equal(r->h.call, id);
    free(r);
}
