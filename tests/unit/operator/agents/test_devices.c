// SPDX-License-Identifier: Apache-2.0
// Reports of agents about the GPUs of their pods, and the results: facts, the lists of the ranks, metrics.
#include "operator/agents/devices.h"

#include "tests/unit/operator/agents/agents_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define RANKS(n) "\"ranks\":[{\"group\":\"group-uid\",\"rank\":" #n "}]"
#define GPU(i, uuid, state, more) \
    "{\"index\":" #i ",\"uuid\":\"" uuid "\",\"name\":\"NVIDIA H200\",\"state\":\"" state "\"," more "}"
#define GPUS(list) "{\"gpus\":[" list "]}"
#define VALUES "\"temperature\":41,\"usedBytes\":2097152,\"powerMilliwatts\":70500,\"xid\":0,"
#define BOTH_WELL GPUS(GPU(0, "GPU-a", "Ok", VALUES RANKS(0)) "," GPU(1, "GPU-b", "Ok", "\"xid\":31," RANKS(1)))
#define SECOND_LOST GPUS(GPU(0, "GPU-a", "Ok", RANKS(0)) "," GPU(1, "GPU-b", "Lost", "\"xid\":79," RANKS(1)))

static void a_heartbeat_tells_the_gpus_of_each_rank(void **state)
{
    struct fixture *f = *state;
    join(f, 0, HELLO(""));
    say(f, RECORD_HEARTBEAT, BOTH_WELL);
    assert_non_null(strstr(buf_str(&f->gpus), "group-uid 0 [{\"index\":0,\"uuid\":\"GPU-a\""));
    assert_non_null(strstr(buf_str(&f->gpus), "group-uid 1 [{\"index\":1,\"uuid\":\"GPU-b\""));
    assert_null(strstr(buf_str(&f->gpus), "ranks"));
    assert_null(facts(f)->lost.uuid);
    assert_int_equal(f->changes, 1); // there is nothing to decide
}

static void so_does_a_hello(void **state)
{
    struct fixture *f = *state;
    join(f, 0, "{\"role\":\"agent\",\"version\":1,\"groups\":[],\"gpus\":[" GPU(0, "GPU-a", "Ok", RANKS(3)) "]}");
    assert_non_null(strstr(buf_str(&f->gpus), "group-uid 3 "));
}

static void a_lost_one_is_a_fact_for_the_group_that_has_it(void **state)
{
    struct fixture *f = *state;
    join(f, 0, HELLO(""));
    say(f, RECORD_HEARTBEAT, BOTH_WELL);
    assert_false(agents_gpu_lost(f->agents, "pod-uid"));
    say(f, RECORD_HEARTBEAT, SECOND_LOST);
    assert_int_equal(f->changes, 2);
    assert_string_equal(facts(f)->lost.uuid, "GPU-b");
    assert_int_equal(facts(f)->lost.rank, 1);
    assert_int_equal(facts(f)->lost.xid, 79);
    assert_null(facts_of(f, "another-group")->lost.uuid);
    assert_true(agents_gpu_lost(f->agents, "pod-uid"));
    say(f, RECORD_HEARTBEAT, SECOND_LOST);
    say(f, RECORD_HEARTBEAT, "{}"); // it contains no news
    assert_int_equal(f->changes, 2);
    assert_string_equal(facts(f)->lost.uuid, "GPU-b");
    leave(f, 0);
    assert_string_equal(facts(f)->lost.uuid, "GPU-b"); // it stays like all other reports
}

static void what_makes_no_sense_breaks_the_protocol_and_changes_nothing(void **state)
{
    static const char *const bad[] = {
        "{\"gpus\":7}",
        GPUS("7"),
        GPUS("{\"index\":0,\"uuid\":\"\",\"name\":\"x\"}"),
        GPUS(GPU(256, "GPU-a", "Ok", RANKS(0))),
        GPUS(GPU(0, "GPU-a", "Ok", RANKS(-1))),
        "{\"gpus\":[",
    };
    struct fixture *f = *state;
    join(f, 0, HELLO(""));
    say(f, RECORD_HEARTBEAT, SECOND_LOST);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct err err = ERR_INIT;
        assert_true(give(f, 0, RECORD_HEARTBEAT, bad[i], &err) < 0);
        assert_true(err.msg[0]);
    }
    assert_string_equal(facts(f)->lost.uuid, "GPU-b");
}

static void more_than_a_pod_can_have_is_refused(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct buf b = BUF_INIT(1 << 20);
    join(f, 0, HELLO(""));
    buf_puts(&b, "{\"gpus\":[" GPU(0, "GPU-a", "Ok", RANKS(0)));
    for (int i = 0; i < GPU_LIST_MAX; i++)
        buf_puts(&b, "," GPU(0, "GPU-a", "Ok", RANKS(0)));
    buf_puts(&b, "]}");
    assert_int_equal(give(f, 0, RECORD_HEARTBEAT, buf_str(&b), &err), ERR_LIMIT);
    buf_reset(&b);
    buf_puts(&b, "{\"gpus\":[{\"index\":0,\"uuid\":\"GPU-a\",\"name\":\"x\",\"ranks\":[{\"group\":\"g\",\"rank\":0}");
    for (int i = 0; i < GPU_RANKS_MAX; i++)
        buf_puts(&b, ",{\"group\":\"g\",\"rank\":0}");
    buf_puts(&b, "]}]}");
    assert_int_equal(give(f, 0, RECORD_HEARTBEAT, buf_str(&b), &err), ERR_INVALID);
    buf_done(&b);
}

static void metrics_have_the_names_of_dcgm(void **state)
{
    struct fixture *f = *state;
    struct buf out = BUF_INIT(1 << 20);
    join(f, 0, HELLO(""));
    agents_metrics(f->agents, &out);
    assert_int_equal(out.len, 0); // no pod has a GPU
    say(f, RECORD_HEARTBEAT, BOTH_WELL);
    agents_metrics(f->agents, &out);
#define OF_A "{namespace=\"ml\",pod=\"g-0-0\",Hostname=\"n1\",gpu=\"0\",UUID=\"GPU-a\",modelName=\"NVIDIA H200\"} "
    assert_non_null(strstr(buf_str(&out), "# TYPE DCGM_FI_DEV_GPU_TEMP gauge\nDCGM_FI_DEV_GPU_TEMP" OF_A "41\n"));
    assert_non_null(strstr(buf_str(&out), "DCGM_FI_DEV_FB_USED" OF_A "2\n"));
    assert_non_null(strstr(buf_str(&out), "DCGM_FI_DEV_POWER_USAGE" OF_A "70\n"));
    assert_non_null(strstr(buf_str(&out), "DCGM_FI_DEV_XID_ERRORS" OF_A "0\n"));
    assert_non_null(strstr(buf_str(&out), "UUID=\"GPU-b\",modelName=\"NVIDIA H200\"} 31\n"));
    assert_null(strstr(buf_str(&out), "DCGM_FI_DEV_FB_TOTAL{")); // the agent did not report it
    assert_non_null(strstr(buf_str(&out), "cadre_gpu_lost" OF_A "0\n"));
    buf_done(&out);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_heartbeat_tells_the_gpus_of_each_rank),
        T(so_does_a_hello),
        T(a_lost_one_is_a_fact_for_the_group_that_has_it),
        T(what_makes_no_sense_breaks_the_protocol_and_changes_nothing),
        T(more_than_a_pod_can_have_is_refused),
        T(metrics_have_the_names_of_dcgm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
