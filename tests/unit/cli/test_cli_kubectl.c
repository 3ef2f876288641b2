// SPDX-License-Identifier: Apache-2.0
// kubectl-cadre through kubectl: the way to the operator, objects, logs. kubectl is tests/unit/cli/fake_kubectl.py.
#include "tests/unit/cli/fake_kubectl.h"
#include "tests/unit/support/cli_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fake_kubectl kubectl;
static struct cli_world world;

static void put_file(const char *name, const char *text)
{
    fake_kubectl_put(&kubectl, name, text);
}

static bool was_asked(const char *words)
{
    return fake_kubectl_was_asked(&kubectl, words);
}

static size_t left_overs(void)
{
    return fake_kubectl_left_overs(&kubectl);
}

static int start(void **state)
{
    (void)state;
    fake_kubectl_start(&kubectl);
    cli_world_start(&world, 2);
    fake_kubectl_lead_to(&kubectl, &world.gateway.port, 1);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    cli_world_stop(&world);
    fake_kubectl_stop(&kubectl);
    return 0;
}

static void prints(const char *line, const char *want)
{
    cli_world_line(&world, line);
    if (world.status != 0)
        fail_msg("%s: %d %s", line, world.status, buf_str(&world.err));
    assert_string_equal(buf_str(&world.out), want);
}

static void fails(const char *line, int status, const char *why)
{
    cli_world_line(&world, line);
    if (why)
        assert_string_equal(buf_str(&world.err), why);
    assert_int_equal(world.status, status);
}

static void a_call_through_the_api_server(void **state)
{
    (void)state;
    prints("call llama add 10", "[10, 11]\n");
    assert_true(was_asked("create token cadre-cli --namespace cadre-system --audience cadre\n"));
    prints("call llama get_value --context c --kubeconfig /k -n ml", "[10, 11]\n");
    assert_true(was_asked("--context=c --kubeconfig=/k proxy --unix-socket="));
    assert_true(
        was_asked(" --accept-paths=^/api/v1/namespaces/cadre-system/services/https:cadre-operator:9443/proxy/\n"));
    assert_int_equal(left_overs(), 0);
}

// In their order, to each of its commands.
static void options_that_are_for_kubectl(void **state)
{
    char many[512];
    size_t len = (size_t)snprintf(many, sizeof many, "ca");
    (void)state;
    prints("call llama add 10 --as=eve --as-group a --as-group b --as-uid 7 --user u --cluster k", "[10, 11]\n");
    assert_true(was_asked("--as=eve --as-group=a --as-group=b --as-uid=7 --user=u --cluster=k config view --minify"));
    assert_true(was_asked("--as=eve --as-group=a --as-group=b --as-uid=7 --user=u --cluster=k create token cadre-cli"));
    assert_true(was_asked("--as=eve --as-group=a --as-group=b --as-uid=7 --user=u --cluster=k proxy --unix-socket="));
    cli_world_line(&world, "ca --certificate-authority=/ca --client-certificate /c --client-key /k "
                           "--tls-server-name api --insecure-skip-tls-verify");
    assert_true(was_asked("--certificate-authority=/ca --client-certificate=/c --client-key=/k --tls-server-name=api "
                          "--insecure-skip-tls-verify get --raw "));
    for (int i = 0; i < 33; i++)
        len += (size_t)snprintf(many + len, sizeof many - len, " --as-group g");
    fails(many, 2, "error: more than 32 options are for kubectl\nSee 'kubectl cadre ca --help' for usage.\n");
}

static void what_kubectl_refuses(void **state)
{
    (void)state;
    fails("call llama add 10 --service-account bob", 1,
          "error: a token of ServiceAccount ml/bob is needed to call (others: --service-account, --token): "
          "Error from server (NotFound): serviceaccounts \"bob\" not found\n");
    put_file("broken", "");
    fails("call llama add 10", 1, "error: kubectl proxy ended with exit code 1: error: no route to the cluster\n");
    fails("why llama", 1, "Error from server (NotFound): workergroups.cadre.dev \"llama\" not found\n");
    assert_int_equal(left_overs(), 0);
    setenv("PATH", "/nonexistent", 1);
    fails("why llama", 1, "error: cannot run kubectl: No such file or directory; is it installed and in PATH?\n");
}

static void put_pod(void)
{
    put_file("llama-0-0.log", "[rank 0] hello\n");
    put_file("pods.json", "{\"items\":[{\"metadata\":{\"name\":\"llama-0-0\"},"
                          "\"spec\":{\"containers\":[{\"name\":\"worker\"}]}}]}");
}

static void following_ends_with_an_interrupt(void **state)
{
    (void)state;
    put_pod();
    cli_world_run(&world, (const char *const[]){KUBECTL_CADRE, "logs", "llama", "-f", NULL}, "hello");
    assert_int_equal(world.status, 128 + SIGINT);
    assert_string_equal(buf_str(&world.out), "[rank 0] hello\n");
}

static void following_ends_when_nobody_reads(void **state)
{
    (void)state;
    put_pod();
    cli_world_run(&world, (const char *const[]){"/bin/sh", "-c", KUBECTL_CADRE " logs llama -f | head -n 1", NULL},
                  NULL);
    assert_int_equal(world.status, 0);
    assert_string_equal(buf_str(&world.out), "[rank 0] hello\n");
    assert_true(was_asked("logs --follow --namespace ml --selector cadre.dev/group=llama --tail -1 "
                          "--max-log-requests 1 --container worker\n"));
}

static void output_that_cannot_be_written_is_an_error(void **state)
{
    (void)state;
    cli_world_run(&world, (const char *const[]){"/bin/sh", "-c", KUBECTL_CADRE " ca >/dev/full", NULL}, NULL);
    assert_int_equal(world.status, 1);
    assert_string_equal(buf_str(&world.err), "error: cannot write the output: No space left on device\n");
}

// The group misses a rank, so that the call waits.
static void interrupt_a_call(int signo)
{
    cli_world_kill(&world, 1);
    GATEWAY_UNTIL(&world.gateway, gateway_fixture_counters(&world.gateway).workers == 1);
    world.interrupt_at_clients = 1;
    world.interrupt_signal = signo;
    cli_world_line(&world, "call llama add 1");
}

// A proxy has all rights of the user, who may have forgotten it.
static void being_killed_leaves_no_proxy_behind(void **state)
{
    (void)state;
    interrupt_a_call(SIGKILL);
    assert_int_equal(world.status, 128 + SIGKILL);
    assert_int_equal(left_overs(), 1);
    GATEWAY_UNTIL(&world.gateway, !fake_kubectl_has_proxy(&kubectl));
}

static void an_interrupt_leaves_nothing_behind(void **state)
{
    (void)state;
    interrupt_a_call(SIGINT);
    assert_int_equal(world.status, 128 + SIGINT);
    assert_non_null(strstr(buf_str(&world.err), "Error (CANCELED): interrupted; the call has not run"));
    assert_int_equal(left_overs(), 0);
}

static void an_operator_that_is_away(void **state)
{
    (void)state;
    fake_kubectl_lead_to(&kubectl, (const int[]){1}, 1); // nobody is there
    fails("call llama add 1 --timeout 300ms", 1, NULL);
    assert_int_equal(left_overs(), 0);
}

static void logs_of_all_ranks_in_order(void **state)
{
    (void)state;
    put_file("pods.json", "{\"items\":[{\"metadata\":{\"name\":\"llama-10-0\",\"annotations\":{\"cadre.dev/"
                          "keys\":\"k\"}},\"spec\":{\"containers\":[{\"name\":\"worker\"}]}},"
                          "{\"metadata\":{\"name\":\"llama-2-0\",\"annotations\":{\"cadre.dev/"
                          "keys\":\"k\"}},\"spec\":{\"containers\":[{\"name\":\"main\"},{\"name\":\"x\"}]}}]}");
    put_file("llama-2-0.log", "[rank 4] a\n[rank 5] b\n[rank 4] c");
    put_file("llama-10-0.log", "\n[rank 20] d\n");
    prints("logs llama --tail 5", "[rank 4] a\n[rank 5] b\n[rank 4] c\n[rank 20] d\n");
    assert_true(was_asked("get pods --namespace ml --selector cadre.dev/group=llama --output json\n"));
    assert_true(was_asked("logs llama-2-0 --namespace ml --container main --tail 5\n"));
    prints("logs llama --rank 4", "[rank 4] a\n[rank 4] c");
    assert_true(was_asked("logs llama-10-0 --namespace ml --container worker --tail -1\n"));
}

// Their first containers have different names. kubectl takes one name for all.
static void following_pods_of_two_templates(void **state)
{
    (void)state;
    put_file("pods.json",
             "{\"items\":[{\"metadata\":{\"name\":\"llama-0-0\"},\"spec\":{\"containers\":[{\"name\":\"worker\"}]}},"
             "{\"metadata\":{\"name\":\"llama-1-0\"},\"spec\":{\"containers\":[{\"name\":\"main\"}]}}]}");
    put_file("llama-0-0.log", "hello\n");
    cli_world_run(&world, (const char *const[]){KUBECTL_CADRE, "logs", "llama", "-f", NULL}, "hello");
    assert_true(was_asked("--tail -1 --max-log-requests 2\n"));
}

static void lines_without_an_agent_say_no_rank(void **state)
{
    (void)state;
    put_pod();
    prints("logs llama", "[rank 0] hello\n");
    fails("logs llama --rank 0", 1,
          "error: group ml/llama has the runtime Plain, so its lines do not say their rank: leave out --rank, or run "
          "'kubectl logs llama-0-0'\n");
}

static void logs_of_a_group_on_bundles(void **state)
{
    (void)state;
    put_file("pods.json", "{\"items\":[]}");
    put_file("pods cadre.dev_group in (pool-plg,b-plg).json",
             "{\"items\":[{\"metadata\":{\"name\":\"pool-plg-0-0\",\"annotations\":{\"cadre.dev/"
             "keys\":\"k\"}},\"spec\":{\"containers\":[{\"name\":\"worker\"}]}}]}");
    put_file("workergroups.json", "{\"spec\":{\"placement\":{\"groups\":[{\"name\":\"pool\"},{\"name\":\"b\"}]}}}");
    put_file("pool-plg-0-0.log", "[agent] hello\n[llama rank 0] a\n[other rank 0] b\n[llama rank 1] c\n");
    prints("logs llama", "[llama rank 0] a\n[llama rank 1] c\n");
    prints("logs llama --rank 1", "[llama rank 1] c\n");
    assert_true(was_asked("get pods --namespace ml --selector cadre.dev/group in (pool-plg,b-plg) --output json\n"));
}

static void a_group_without_pods(void **state)
{
    (void)state;
    put_file("pods.json", "{\"items\":[]}");
    fails("logs llama", 1, "Error from server (NotFound): workergroups.cadre.dev \"llama\" not found\n");
    put_file("workergroups.json", "{\"spec\":{\"placement\":{\"groups\":[{\"name\":\"pool\"}]}}}");
    fails("logs llama", 1, "error: group ml/llama has no pods; 'kubectl cadre why llama' says why\n");
}

static void why_reads_group_pods_and_events(void **state)
{
    (void)state;
    put_file("workergroups.json", "{\"metadata\":{\"name\":\"llama\",\"namespace\":\"ml\"},\"status\":{\"conditions\":["
                                  "{\"type\":\"Ready\",\"status\":\"False\",\"reason\":\"Suspended\","
                                  "\"message\":\"spec.suspend is true\"}]}}");
    cli_world_line(&world, "why llama");
    assert_int_equal(world.status, 0);
    assert_non_null(strstr(buf_str(&world.out), "WorkerGroup ml/llama: Suspended"));
    assert_non_null(strstr(buf_str(&world.out), "Set spec.suspend to false."));
    assert_null(strstr(buf_str(&world.out), "Pods")); // they could not be read
    put_file("pods.json", "{\"items\":[]}");
    cli_world_line(&world, "why llama");
    assert_non_null(strstr(buf_str(&world.out), "Pods: none"));
}

static void why_finds_a_placement_group_by_its_bare_name(void **state)
{
    (void)state;
    put_file("placementgroups.json", "{\"kind\":\"PlacementGroup\","
                                     "\"metadata\":{\"name\":\"pool\",\"namespace\":\"ml\"},\"status\":{}}");
    put_file("pods cadre.dev_group=pool-plg.json",
             "{\"items\":[{\"metadata\":{\"name\":\"pool-plg-0-0\",\"annotations\":{\"cadre.dev/keys\":\"k\"}}}]}");
    cli_world_line(&world, "why pool");
    assert_int_equal(world.status, 0);
    assert_non_null(strstr(buf_str(&world.out), "PlacementGroup ml/pool"));
    assert_non_null(strstr(buf_str(&world.out), "pool-plg-0-0"));
    fails("why wg/pool", 1, "Error from server (NotFound): workergroups.cadre.dev \"pool\" not found\n");
    fails("why workergroup.cadre.dev/pool", 1,
          "Error from server (NotFound): workergroups.cadre.dev \"pool\" not found\n");
}

static void what_workers_say_does_nothing_to_the_terminal(void **state)
{
    (void)state;
    put_file("workergroups.json", "{\"metadata\":{\"name\":\"llama\",\"namespace\":\"ml\"},\"status\":{"
                                  "\"lastFailure\":{\"rank\":0,\"message\":\"\\u001b]0;owned\\u0007\"}}}");
    cli_world_line(&world, "why llama");
    assert_non_null(strstr(buf_str(&world.out), "^[]0;owned^G"));
    assert_null(strchr(buf_str(&world.out), '\033'));
}

static void the_ca_comes_from_the_operator(void **state)
{
    (void)state;
    prints("ca --operator-namespace other",
           "/api/v1/namespaces/other/services/https:cadre-operator:9443/proxy/v1/ca\n");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
        T(a_call_through_the_api_server),
        T(options_that_are_for_kubectl),
        T(what_kubectl_refuses),
        T(following_ends_with_an_interrupt),
        T(following_ends_when_nobody_reads),
        T(output_that_cannot_be_written_is_an_error),
        T(being_killed_leaves_no_proxy_behind),
        T(an_interrupt_leaves_nothing_behind),
        T(an_operator_that_is_away),
        T(logs_of_all_ranks_in_order),
        T(following_pods_of_two_templates),
        T(lines_without_an_agent_say_no_rank),
        T(logs_of_a_group_on_bundles),
        T(a_group_without_pods),
        T(why_reads_group_pods_and_events),
        T(why_finds_a_placement_group_by_its_bare_name),
        T(what_workers_say_does_nothing_to_the_terminal),
        T(the_ca_comes_from_the_operator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
