// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/command.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#define WORLD                                                                         \
    "\"group\":\"u\",\"attempt\":1,\"name\":\"wg\",\"namespace\":\"ns\",\"nodes\":1," \
    "\"nodeRank\":0,\"masterAddr\":\"m\",\"masterPort\":29500,\"worldSize\":2,\"localWorldSize\":2"

static struct command *parse(enum record_type type, const char *json)
{
    struct err err = ERR_INIT;
    struct command *c = NULL;
    if (command_parse(type, json, strlen(json), &c, &err) < 0)
        fail_msg("%s: %s", json, err.msg);
    return c;
}

static void a_prepare_is_read(void **state)
{
    (void)state;
    struct command *c = parse(RECORD_PREPARE, "{\"group\":\"u-1\",\"attempt\":3,\"graceMs\":500,\"timeoutMs\":9000,"
                                              "\"masterAddr\":\"wg-0.wg.ns.svc\",\"masterIP\":\"10.0.0.1\",\"new\":1}");
    assert_string_equal(c->group, "u-1");
    assert_int_equal(c->attempt, 3);
    assert_int_equal(c->grace_ms, 500);
    assert_int_equal(c->timeout_ms, 9000);
    assert_string_equal(c->master_addr, "wg-0.wg.ns.svc");
    assert_string_equal(c->master_ip, "10.0.0.1");
    command_unref(c);
}

static void a_start_is_read(void **state)
{
    (void)state;
    struct command *c = parse(
        RECORD_START, "{" WORLD ",\"env\":[{\"name\":\"A\",\"value\":\"b\\u00e9\"},{\"name\":\"E\"}],"
                      "\"gpus\":{\"visibility\":\"All\",\"perWorker\":2,\"indices\":[2,3]},"
                      "\"command\":[\"python\",\"-u\"],\"workingDir\":\"/w\","
                      "\"processes\":[{\"rank\":0,\"localRank\":0,\"ticket\":\"t\"},{\"rank\":1,\"localRank\":1}]}");
    assert_int_equal(c->env.world_size, 2);
    assert_int_equal(c->env.master_port, 29500);
    assert_string_equal(c->env.uid, "u");
    assert_int_equal(c->env.n_vars, 2);
    assert_string_equal(c->env.vars[0].value, "bé");
    assert_string_equal(c->env.vars[1].value, "");
    assert_int_equal(c->env.gpus.visibility, GPUS_ALL);
    assert_int_equal(c->env.gpus.per_worker, 2);
    assert_int_equal(c->env.gpus.n_indices, 2);
    assert_int_equal(c->env.gpus.indices[1], 3);
    assert_string_equal(c->argv[1], "-u");
    assert_null(c->argv[2]);
    assert_string_equal(c->dir, "/w");
    assert_int_equal(c->n_processes, 2);
    assert_string_equal(c->processes[0].ticket, "t");
    assert_null(c->processes[1].ticket);
    command_unref(c);
}

static void what_is_left_out_has_a_meaning(void **state)
{
    (void)state;
    struct command *c = parse(RECORD_START, "{" WORLD ",\"processes\":[{\"rank\":1,\"localRank\":1}]}");
    assert_null(c->argv);
    assert_null(c->dir);
    assert_int_equal(c->env.gpus.visibility, GPUS_OWN);
    assert_int_equal(c->env.gpus.per_worker, GPUS_SHARE);
    assert_int_equal(c->env.gpus.count, GPUS_UNKNOWN);
    assert_null(c->env.gpus.indices);
    command_unref(c);
    c = parse(RECORD_STOP, "{\"group\":\"u\",\"attempt\":0,\"end\":true}");
    assert_true(c->end);
    command_unref(c);
    c = parse(RECORD_STOP, "{\"group\":\"u\",\"attempt\":0}");
    assert_false(c->end);
    assert_int_equal(c->grace_ms, 25000);
    command_unref(c);
}

static const struct {
    enum record_type type;
    const char *json, *why;
} wrongs[] = {
    {RECORD_STOP, "{\"attempt\":1}", "group: missing"},
    {RECORD_STOP, "{\"group\":\"u\",\"attempt\":1,\"end\":1}", "end: not true or false"},
    {RECORD_STOP, "[]", "group: missing"},
    {RECORD_STOP, "{", "a command with contradictory values"},
    {RECORD_STOP, "{\"group\":\"\",\"attempt\":1}", "group: empty"},
    {RECORD_STOP, "{\"group\":\"u\"}", "attempt: missing"},
    {RECORD_STOP, "{\"group\":\"u\",\"attempt\":-1}", "attempt: not a number"},
    {RECORD_STOP, "{\"group\":\"u\",\"attempt\":1,\"graceMs\":1e99}", "graceMs: not a number"},
    {RECORD_PREPARE, "{\"group\":\"u\",\"attempt\":1,\"masterAddr\":\"m\"}", "go together"},
    {RECORD_START, "{" WORLD "}", "processes: missing"},
    {RECORD_START, "{" WORLD ",\"processes\":{}}", "processes: not a list"},
    {RECORD_START, "{" WORLD ",\"processes\":[{\"rank\":0}]}", "localRank: missing"},
    {RECORD_START, "{" WORLD ",\"processes\":[7]}", "rank: missing"},
    {RECORD_START, "{" WORLD ",\"processes\":[{\"rank\":2,\"localRank\":0}]}", "outside of the world"},
    {RECORD_START, "{" WORLD ",\"processes\":[{\"rank\":0,\"localRank\":0},{\"rank\":0,\"localRank\":1}]}",
     "a rank twice"},
    {RECORD_START, "{" WORLD ",\"env\":[{\"name\":\"A=B\"}],\"processes\":[{\"rank\":0,\"localRank\":0}]}",
     "env: a name"},
    {RECORD_START, "{" WORLD ",\"command\":[],\"processes\":[{\"rank\":0,\"localRank\":0}]}", "command: empty"},
    {RECORD_START, "{" WORLD ",\"command\":[1],\"processes\":[{\"rank\":0,\"localRank\":0}]}", "command: not a string"},
    {RECORD_START, "{" WORLD ",\"gpus\":{\"visibility\":\"Some\"},\"processes\":[{\"rank\":0,\"localRank\":0}]}",
     "must be Own or All"},
    {RECORD_START, "{" WORLD ",\"gpus\":{\"indices\":[-1]},\"processes\":[{\"rank\":0,\"localRank\":0}]}",
     "indices: not a number"},
};

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrongs); i++) {
        struct err err = ERR_INIT;
        struct command *c = NULL;
        assert_int_equal(command_parse(wrongs[i].type, wrongs[i].json, strlen(wrongs[i].json), &c, &err), ERR_INVALID);
        assert_null(c);
        if (!strstr(err.msg, wrongs[i].why))
            fail_msg("%s: \"%s\" does not say \"%s\"", wrongs[i].json, err.msg, wrongs[i].why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prepare_is_read),
        cmocka_unit_test(a_start_is_read),
        cmocka_unit_test(what_is_left_out_has_a_meaning),
        cmocka_unit_test(what_is_wrong_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
