// SPDX-License-Identifier: Apache-2.0
// kubectl-cadre against four accumulators behind a gateway, with --server: no cluster, no kubectl.
#include "tests/unit/support/cli_world.h"

#include "common/base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

static struct cli_world world;

static int start(void **state)
{
    (void)state;
    cli_world_start(&world, 4);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    cli_world_stop(&world);
    return 0;
}

// Each starts with its rank as value.
#define REACH " -n ml --server @ --token alice"

static void prints(const char *line, const char *want)
{
    cli_world_line(&world, line);
    if (world.status != 0)
        fail_msg("%s: %d %s", line, world.status, buf_str(&world.err));
    assert_string_equal(buf_str(&world.out), want);
    assert_string_equal(buf_str(&world.err), "");
}

static void fails(const char *line, int status, const char *why)
{
    cli_world_line(&world, line);
    assert_int_equal(world.status, status);
    assert_string_equal(buf_str(&world.out), "");
    if (!strstr(buf_str(&world.err), why))
        fail_msg("%s: %s", line, buf_str(&world.err));
}

static void a_call_runs_on_every_rank(void **state)
{
    (void)state;
    prints("call llama add --per-rank '[1, 1, 1, 1]'" REACH, "[1, 2, 3, 4]\n");
    prints("call llama add 10" REACH, "[11, 12, 13, 14]\n");
    prints("call llama add '[10]'" REACH, "[21, 22, 23, 24]\n");
    prints("call llama add '{\"x\": 10}' --timeout 30s" REACH, "[31, 32, 33, 34]\n");
    prints("call llama add --arg=-10 --attempt 1 --no-wait" REACH, "[21, 22, 23, 24]\n");
    prints("call llama add" REACH " -- -1", "[20, 21, 22, 23]\n");
    prints("call llama add 1" REACH, "[21, 22, 23, 24]\n");
    prints("call llama get_value" REACH, "[21, 22, 23, 24]\n");
    prints("call llama get_value -o ranks" REACH, "0: 21\n1: 22\n2: 23\n3: 24\n");
}

static int start_tensor(void **state)
{
    (void)state;
    cli_world_start_roles(&world, 4, TENSOR_SO,
                          "[{\"name\":\"actor\",\"class\":\"Actor\"},{\"name\":\"critic\",\"class\":\"Critic\"}]");
    return 0;
}

static int start_late(void **state)
{
    (void)state;
    cli_world_start_late(&world, 2);
    return 0;
}

// As it is, and a reason why not as -o ranks.
static void prints_json(const char *line, const char *begin)
{
    cli_world_line(&world, line);
    assert_int_equal(world.status, 1);
    assert_ptr_equal(strstr(buf_str(&world.out), begin), buf_str(&world.out));
    assert_non_null(
        strstr(buf_str(&world.err), "() ran, but kubectl-cadre cannot tell whether there is one result per rank"));
}

static void a_line_for_each_rank_wants_a_result_of_each(void **state)
{
    (void)state;
    prints("call llama add '{\"a\":[1,2,3,4]}' --role actor" REACH, "{\"a\": [1, 3, 5, 7]}\n");
    fails("call llama add '{\"a\":[1,2,3,4]}' --role actor -o ranks --dispatch dp-compute-proto" REACH, 2,
          "-o ranks is for modes that return one result per rank");
    fails("call llama add '{\"a\":[1,2,3,4]}' --role actor -o ranks" REACH, 1,
          "add() was not called: it has a mode that does not return one result per rank");
    fails("call llama sub '{\"a\":[1,2,3,4]}' --role critic -o ranks" REACH, 1, "sub() was not called");
    prints("call llama add '{\"a\":[1,2,3,4]}' --role actor -o ranks --execute rank-zero" REACH,
           "0: {\"a\": [1, 2, 3, 4]}\n");
    prints("call llama add '{\"a\":[1,2,3,4]}' --role actor -o ranks --dispatch dp-compute-metric" REACH,
           "0: {\"a\": [1]}\n1: {\"a\": [3]}\n2: {\"a\": [5]}\n3: {\"a\": [7]}\n");
    fails("call llama add --keep -o ranks" REACH, 2, "--keep prints one reference to all results, so no -o ranks");
    fails("call llama nothing --role actor -o ranks" REACH, 1, "Error (NOT_FOUND): ");
}

static void what_is_not_known_to_be_of_each_is_printed_as_it_is(void **state)
{
    (void)state;
    prints("call llama get_value -o ranks" REACH, "0: 0\n1: 1\n"); // they were not there when it asked, or just about
    prints_json("call llama group.info -o ranks" REACH, "{\"");
    prints_json("call llama object.put '[3]' -o ranks --dispatch one-to-all" REACH, "{\"$ref\": \"cadre:1:");
}

static void or_without_results(void **state)
{
    (void)state;
    prints("call llama add 10 --no-reply" REACH, "");
    prints("call llama add 1 --rank 2 --no-reply" REACH, "");
    prints("call llama get_value" REACH, "[10, 11, 13, 13]\n");
    fails("call llama nothing --no-reply" REACH, 1, "Error (NOT_FOUND): ");
    fails("kill llama" REACH, 2, "--rank is missing");
    fails("call llama add 1 --no-reply -o json" REACH, 2, "--no-reply has no result to print, so no -o");
}

static void or_on_one(void **state)
{
    (void)state;
    prints("call llama add 100 --rank 2" REACH, "102\n");
    prints("call llama get_value --rank 2 -o ranks" REACH, "2: 102\n");
    prints("call llama get_value --execute rank-zero" REACH, "0\n");
    prints("call llama get_value --execute any" REACH, "0\n");
    prints("call llama add --dispatch split --split '{\"index\":[0,1,0,1],\"elements\":true}' --collect "
           "'{\"ranks\":[3,1]}' '[0, 0]'" REACH,
           "[3, 1]\n");
    prints("call llama foo_rank_zero --arg 5 --arg 6 -o ranks" REACH, "0: 11\n");
}

static const char *reference(const char *line)
{
    static char text[512];
    cli_world_line(&world, line);
    if (world.status != 0)
        fail_msg("%s: %d %s", line, world.status, buf_str(&world.err));
    snprintf(text, sizeof text, "%.*s", (int)strcspn(buf_str(&world.out), "\n"), buf_str(&world.out));
    return text;
}

static const char *line_of(const char *begin, const char *ref, const char *end)
{
    static char line[1024];
    snprintf(line, sizeof line, "%s '%s'%s%s", begin, ref, end, REACH);
    return line;
}

static void results_may_stay_with_the_workers(void **state)
{
    (void)state;
    const char *ref = reference("put llama '[5]' --rank 1" REACH);
    prints(line_of("get llama", ref, ""), "[5]\n");
    prints(line_of("call llama add", ref, ""), "[5, 6, 7, 8]\n");
    prints(line_of("free llama", ref, ""), "");
    fails(line_of("get llama", ref, ""), 1, "Error (NOT_FOUND): rank 1: the object no longer exists");
    fails(line_of("call llama add", ref, ""), 1, "Error (NOT_FOUND): ");
    ref = reference("call llama add 1 --keep" REACH);
    prints(line_of("get llama", ref, ""), "[6, 7, 8, 9]\n"); // another session than the one that made it
    prints(line_of("call llama add", ref, " --dispatch all-to-all"), "[12, 14, 16, 18]\n");
    ref = reference("put llama '{\"a\": [1, 2, 3, 4]}' --dispatch dp-compute-proto" REACH);
    prints(line_of("get llama", ref, ""), "{\"a\": [1, 2, 3, 4]}\n");
    fails("get llama" REACH, 2, "the reference of the object is missing");
    fails("get llama cadre:1:nonsense" REACH, 1, "Error (INVALID): ");
    fails("put llama nonsense" REACH, 2, "the argument nonsense is not JSON: ");
    char deep[256];
    snprintf(deep, sizeof deep, "put llama %0129d" REACH, 0);
    memset(strchr(deep, '0'), '[', 129);
    fails(deep, 2, "[[[: JSON is nested deeper than 128 levels\n");
    fails("call llama add 1 --keep --no-reply" REACH, 2, "use only one of --no-reply and --keep");
}

static void arguments_that_are_wrong(void **state)
{
    (void)state;
    fails("call llama add --per-rank '[1, 2, 3]'" REACH, 1, "Error (INVALID): ");
    fails("call llama add '{\"y\": 1}'" REACH, 1, "add() needs an argument 'x'");
    fails("call llama add --attempt 7 --timeout 50ms" REACH, 1, "Error (TIMEOUT): ");
    fails("call llama add 1 --rank 4" REACH, 1, "its ranks are 0 to 3");
    fails("call llama nothing" REACH, 1, "Error (NOT_FOUND): ml/llama has no method 'nothing'");
    fails("call llamas add 1" REACH, 1, "Error (NOT_FOUND): there is no WorkerGroup ml/llamas");
    prints("call llama get_value" REACH, "[0, 1, 2, 3]\n");
}

static void tokens_that_do_not_do(void **state)
{
    (void)state;
    fails("call llama add 1 -n ml --server @ --token bob", 1, "Error (FORBIDDEN): ");
    fails("call llama add 1 -n ml --server @ --token nobody", 1, "Error (UNAUTHORIZED): ");
    fails("call llama add 1 -n ml --server @ --token-file /nonexistent/token", 1, "/nonexistent/token");
    fails("call llama add 1 -n ml --server nowhere --token alice", 1, "\"nowhere\" is not an address");
}

static void info_is_a_table(void **state)
{
    (void)state;
    cli_world_line(&world, "info llama" REACH);
    const char *out = buf_str(&world.out);
    assert_int_equal(world.status, 0);
    assert_non_null(strstr(out, "Group:    ml/llama\n"));
    assert_non_null(strstr(out, "Ready:    yes (4 of 4 ranks are connected)\n"));
    assert_non_null(strstr(out, "\n3      yes        1        llama-3-0                      n1\n"));
    assert_non_null(strstr(out, "\nadd                      ONE_TO_ALL       ALL\n"));
    cli_world_line(&world, "info llama -o json" REACH);
    assert_non_null(strstr(buf_str(&world.out), "\"worldSize\": 4"));
}

// The operator's answer about the group.
static void set_status(const char *reason, const char *status, const char *refusal)
{
    const struct group_facts facts = {.uid = GATEWAY_UID,
                                      .ns = "ml",
                                      .name = "llama",
                                      .world = 4,
                                      .attempt = 1,
                                      .oldest = 1,
                                      .refusal = refusal,
                                      .status = status,
                                      .reason = reason};
    router_group_set(gateway_router(world.gateway.gateway), &facts);
}

static void begins(const char *line, const char *text)
{
    cli_world_line(&world, line);
    assert_int_equal(world.status, 0);
    if (!str_starts(buf_str(&world.out), text))
        fail_msg("%s says: %s", line, buf_str(&world.out));
}

static void status_is_info_and_begins_with_the_status_of_the_group(void **state)
{
    (void)state;
    begins("status llama" REACH, "Group:    ml/llama\nAttempt:  1\n"); // of a local run
    set_status("Running", NULL, NULL);
    begins("status llama" REACH, "Group:    ml/llama\nStatus:   Running\nAttempt:  1\nReady:    yes");
    begins("info llama" REACH, "Group:    ml/llama\nStatus:   Running\nAttempt:  1\nReady:    yes");
    set_status("Silent", "Silent: an agent is away", NULL);
    begins("status llama" REACH, "Group:    ml/llama\nStatus:   Silent: an agent is away\n");
    set_status("Suspended", "Suspended: its message", "it is suspended");
    begins("status llama" REACH, "Group:    ml/llama\nStatus:   Suspended: it is suspended\n");
    set_status(NULL, NULL, "it failed: rank 1 exited with code 3");
    begins("status llama" REACH, "Group:    ml/llama\nStatus:   it failed: rank 1 exited with code 3\n");
    cli_world_line(&world, "status llama -o json" REACH);
    assert_non_null(strstr(buf_str(&world.out), "\"worldSize\": 4"));
    for (const char *const *line = (const char *[]){"status --help", "help status", "help info", NULL}; *line; line++)
        begins(*line, "Usage: kubectl cadre info GROUP");
}

static void info_shows_the_gpus_by_rank(void **state)
{
    (void)state;
    struct router *router = gateway_router(world.gateway.gateway);
    router_gpus(router, GATEWAY_UID, 2,
                "[{\"index\":6,\"uuid\":\"GPU-3f0c\",\"name\":\"NVIDIA H200\",\"state\":\"Ok\",\"memoryBytes\":2097152,"
                "\"usedBytes\":1048576,\"temperature\":41,\"xid\":0,\"eccUncorrected\":0}]");
    router_gpus(router, GATEWAY_UID, 3,
                "[{\"index\":7,\"uuid\":\"GPU-77aa\",\"name\":\"NVIDIA H200\",\"state\":\"Lost\",\"xid\":79}]");
    router_gpus(router, GATEWAY_UID, 4, "[{}]"); // there is no such rank
    router_gpus(router, GATEWAY_UID, 0, "");     // it has none
    cli_world_line(&world, "info llama" REACH);
    const char *out = buf_str(&world.out);
    assert_non_null(
        strstr(out, "\nRANK   GPU  STATE  XID   ECC    TEMP  USED MiB  TOTAL MiB  NAME                     UUID\n"
                    "2      6    Ok     0     0      41    1         2          NVIDIA H200              GPU-3f0c\n"
                    "3      7    Lost   79    -      -     -         -          NVIDIA H200              GPU-77aa\n"));
}

static void a_rank_that_dies_is_named(void **state)
{
    (void)state;
    cli_world_kill(&world, 2);
    GATEWAY_UNTIL(&world.gateway, gateway_fixture_counters(&world.gateway).workers == 3);
    fails("call llama get_value --no-wait" REACH, 1, "Error (UNAVAILABLE): ");
    fails("call llama get_value --timeout 5s" REACH, 1,
          " ms: ml/llama is not ready: 3 of 4 ranks are connected, missing: 2"); // what is left of 5 s when it is sent
    prints("call llama get_value --rank 3" REACH, "3\n");
    prints("call wg/llama get_value --rank 3" REACH, "3\n");
    prints("call workergroup.cadre.dev/llama get_value --rank 3" REACH, "3\n");
}

static void an_interrupt_ends_the_question_for_stacks(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < world.n; i++)
        kill(world.workers[i], SIGSTOP); // each of them would be waited for
    cli_world_run(&world,
                  (const char *const[]){KUBECTL_CADRE, "stack", "llama", "--server", world.url, "-n", "ml", "--token",
                                        "alice", NULL},
                  "Error (");
    assert_int_equal(world.status, 128 + SIGINT);
    assert_null(strstr(buf_str(&world.err), "rank 3"));
}

static void usage_is_explained(void **state)
{
    (void)state;
    fails("call llama", 2, "error: call needs a GROUP and a METHOD\nSee 'kubectl cadre call --help'");
    fails("call llama add text", 2, "a string needs quotes: '\"text\"'");
    fails("call llama add 1 --arg 2", 2, "use only one of ARGS, --arg and --per-rank");
    fails("call llama add --per-rank 1", 2, "--per-rank needs a list");
    fails("call llama add --rank 1 --execute all", 2, "a call to one rank has no --dispatch and no --execute");
    fails("call llama add --rank x", 2, "error: --rank x: must be a number from 0");
    fails("call llama add --dispatch split -o ranks", 2, "-o ranks is for modes that return one result per rank");
    fails("call llama add --dispatch some", 2, "error: there is no mode some; there are ONE_TO_ALL, ALL_TO_ALL, ");
    fails("call llama add --timeout 1.5h", 2,
          "--timeout 1.5h: must be seconds, or whole numbers with h, m, s or ms, such as 500ms, 15s or 1h30m, at most "
          "168h");
    fails("call llama add -5", 2, "missing: -5; write a negative number after --\n");
    fails("call llama add -10", 2, "missing: -10; write a negative number after --\n");
    fails("call llama add --rank 1 -1.5", 2, "missing: -1.5; write a negative number after --\n");
    fails("free llama 5", 2,
          "error: 5 is not a reference: a reference is the text that put or call --keep printed, from cadre: on");
    fails("get llama [1]", 2, "error: [1] is not a reference");
    fails("call ml/llama add 1", 2, "error: GROUP is the name of a WorkerGroup; set its namespace with -n: ml/llama\n");
    fails("call plg/llama add 1", 2,
          "error: GROUP is the name of a WorkerGroup; set its namespace with -n: plg/llama\n");
    fails("why llama -o json", 2, "unknown option, or its value is missing: -o\n");
    fails("call llama add --wrong", 2, "unknown option, or its value is missing: --wrong");
    fails("call llama add --token a --token-file b", 2, "use only one of --token and --token-file");
    fails("why", 2, "error: the name of the group is missing");
    fails("why a b", 2, "error: unexpected argument b");
    fails("call g add 1 2", 2,
          "error: unexpected argument 2: a method's arguments are one JSON list, such as '[1, 2]'");
    fails("nothing", 2, "error: unknown command \"nothing\"");
    cli_world_line(&world, "call -h");
    assert_int_equal(world.status, 0);
    cli_world_line(&world, "call --help");
    assert_int_equal(world.status, 0);
    assert_ptr_equal(strstr(buf_str(&world.out), "Usage: kubectl cadre call GROUP METHOD"), buf_str(&world.out));
    prints("version", "kubectl-cadre " CADRE_VERSION "\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_call_runs_on_every_rank, start, stop),
        cmocka_unit_test_setup_teardown(a_line_for_each_rank_wants_a_result_of_each, start_tensor, stop),
        cmocka_unit_test_setup_teardown(what_is_not_known_to_be_of_each_is_printed_as_it_is, start_late, stop),
        cmocka_unit_test_setup_teardown(or_without_results, start, stop),
        cmocka_unit_test_setup_teardown(or_on_one, start, stop),
        cmocka_unit_test_setup_teardown(results_may_stay_with_the_workers, start, stop),
        cmocka_unit_test_setup_teardown(arguments_that_are_wrong, start, stop),
        cmocka_unit_test_setup_teardown(tokens_that_do_not_do, start, stop),
        cmocka_unit_test_setup_teardown(info_is_a_table, start, stop),
        cmocka_unit_test_setup_teardown(status_is_info_and_begins_with_the_status_of_the_group, start, stop),
        cmocka_unit_test_setup_teardown(info_shows_the_gpus_by_rank, start, stop),
        cmocka_unit_test_setup_teardown(a_rank_that_dies_is_named, start, stop),
        cmocka_unit_test_setup_teardown(an_interrupt_ends_the_question_for_stacks, start, stop),
        cmocka_unit_test_setup_teardown(usage_is_explained, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
