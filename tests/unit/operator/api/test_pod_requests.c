// SPDX-License-Identifier: Apache-2.0
// The resources that a pod takes from its node, compared case by case with kube-scheduler.
#include "operator/api/pod.h"

#include "common/base/mem.h"
#include "operator/api/pod_constraints.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define CPU(n) "\"resources\":{\"requests\":{\"cpu\":\"" n "\"}}"
#define C(name, n) "{\"name\":\"" name "\"," CPU(n) "}"
#define SIDECAR(name, n) "{\"name\":\"" name "\",\"restartPolicy\":\"Always\"," CPU(n) "}"

static struct pod_constraints decode(const char *spec_and_status, struct arena *a)
{
    struct pod_constraints c = {0};
    struct err err = ERR_INIT;
    char *json = arena_printf(a, "{\"metadata\":{\"name\":\"p\"},%s}", spec_and_status);
    if (pod_constraints_decode(json, strlen(json), a, &c, &err) < 0)
        fail_msg("%s: %s", spec_and_status, err.msg);
    return c;
}

static void needs_cpu(const char *spec_and_status, int64_t milli)
{
    struct arena a = ARENA_INIT;
    struct pod_constraints c = decode(spec_and_status, &a);
    int64_t got = resources_get(&c.requests, RESOURCE_CPU);
    if (got != milli)
        fail_msg("%s: %lld, not %lld", spec_and_status, (long long)got, (long long)milli);
    assert_int_equal(resources_get(&c.requests, RESOURCE_PODS), 1000);
    arena_done(&a);
}

static void containers_add_up(void **state)
{
    (void)state;
    needs_cpu("\"spec\":{\"containers\":[]}", 0);
    needs_cpu("\"spec\":{\"containers\":[{\"name\":\"a\"}]}", 0);
    needs_cpu("\"spec\":{\"containers\":[" C("a", "1") "," C("b", "500m") "]}", 1500);
}

static void the_largest_init_container_may_need_more(void **state)
{
    (void)state;
    needs_cpu("\"spec\":{\"initContainers\":[" C("i", "2") "," C("j", "3") "],\"containers\":[" C("a", "1") "]}", 3000);
    needs_cpu("\"spec\":{\"initContainers\":[" C("i", "2") "],\"containers\":[" C("a", "4") "]}", 4000);
}

static void a_sidecar_counts_beside_the_containers_and_under_later_init_containers(void **state)
{
    (void)state;
    needs_cpu("\"spec\":{\"initContainers\":[" SIDECAR("s", "1") "],\"containers\":[" C("a", "2") "]}", 3000);
    // s + j, while j runs
    needs_cpu("\"spec\":{\"initContainers\":[" SIDECAR("s", "1") "," C("j", "5") "],\"containers\":[" C("a", "2") "]}",
              6000);
    // j runs before s starts
    needs_cpu("\"spec\":{\"initContainers\":[" C("j", "5") "," SIDECAR("s", "1") "],\"containers\":[" C("a", "2") "]}",
              5000);
    needs_cpu("\"spec\":{\"initContainers\":[" SIDECAR("s", "1") "," SIDECAR("t", "2") "," C(
                  "j", "1") "],\"containers\":[" C("a", "2") "]}",
              5000);
}

static void pod_level_resources_replace_and_overhead_adds(void **state)
{
    (void)state;
    needs_cpu("\"spec\":{\"overhead\":{\"cpu\":\"250m\"},\"containers\":[" C("a", "1") "]}", 1250);
    needs_cpu("\"spec\":{" CPU("3") ",\"containers\":[" C("a", "1") "]}", 3000);
    needs_cpu("\"spec\":{" CPU("3") ",\"overhead\":{\"cpu\":\"1\"},\"initContainers\":[" C(
                  "i", "9") "],\"containers\":[" C("a", "1") "]}",
              4000);
    // Only cpu, memory and hugepages can be requested for the whole pod.
    struct arena a = ARENA_INIT;
    struct pod_constraints c =
        decode("\"spec\":{\"resources\":{\"requests\":{\"nvidia.com/gpu\":\"8\",\"memory\":\"1k\"}},"
               "\"containers\":[{\"name\":\"a\",\"resources\":{\"requests\":{\"nvidia.com/gpu\":"
               "\"2\",\"cpu\":\"1\",\"memory\":\"5\"}}}]}",
               &a);
    assert_int_equal(resources_get(&c.requests, RESOURCE_GPU), 2000);
    assert_int_equal(resources_get(&c.requests, RESOURCE_CPU), 1000);
    assert_int_equal(resources_get(&c.requests, RESOURCE_MEMORY), 1000000);
    arena_done(&a);
}

#define STATUS(name, actual, allocated) \
    "{\"name\":\"" name "\"," CPU(actual) ",\"allocatedResources\":{\"cpu\":\"" allocated "\"}}"

static void a_resize_counts_with_the_larger_size_until_it_is_done(void **state)
{
    (void)state;
    const char *spec = "\"spec\":{\"containers\":[" C("a", "2") "]}";
    char json[1024];
    // growing: the request counts
    needs_cpu(
        "\"spec\":{\"containers\":[" C("a", "2") "]},\"status\":{\"containerStatuses\":[" STATUS("a", "1", "1") "]}",
        2000);
    // shrinking: the actual resources count; the allocated ones count
    needs_cpu(
        "\"spec\":{\"containers\":[" C("a", "2") "]},\"status\":{\"containerStatuses\":[" STATUS("a", "4", "3") "]}",
        4000);
    needs_cpu(
        "\"spec\":{\"containers\":[" C("a", "2") "]},\"status\":{\"containerStatuses\":[" STATUS("a", "1", "3") "]}",
        3000);
    // infeasible: the request does not count
    snprintf(json, sizeof json,
             "%s,\"status\":{\"conditions\":[{\"type\":\"PodResizePending\",\"status\":\"True\",\"reason\":"
             "\"Infeasible\"}],\"containerStatuses\":[" STATUS("a", "1", "1") "]}",
             spec);
    needs_cpu(json, 1000);
    // a status of another container, or without resources
    snprintf(json, sizeof json,
             "%s,\"status\":{\"containerStatuses\":[" STATUS("b", "9", "9") ",{\"name\":\"a\","
                                                                            "\"allocatedResources\":{\"cpu\":\"8\"}}]}",
             spec);
    needs_cpu(json, 2000);
    // for sidecars, too, but not for init containers
    needs_cpu(
        "\"spec\":{\"initContainers\":[" SIDECAR("s", "1") "," C("i", "1") "],\"containers\":[" C(
            "a", "1") "]},"
                      "\"status\":{\"initContainerStatuses\":[" STATUS("s", "5", "5") "," STATUS("i", "9", "9") "]}",
        6000);
    // for the whole pod
    needs_cpu("\"spec\":{" CPU("2") ",\"containers\":[" C("a", "1") "]},\"status\":{" CPU(
                  "4") ",\"allocatedResources\":{\"cpu\":\"3\"}}",
              4000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(containers_add_up),
        cmocka_unit_test(the_largest_init_container_may_need_more),
        cmocka_unit_test(a_sidecar_counts_beside_the_containers_and_under_later_init_containers),
        cmocka_unit_test(pod_level_resources_replace_and_overhead_adds),
        cmocka_unit_test(a_resize_counts_with_the_larger_size_until_it_is_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
