// SPDX-License-Identifier: Apache-2.0
#include "operator/api/pod.h"

#include "common/base/mem.h"
#include "operator/api/pod_constraints.h"
#include "tests/unit/operator/api/test_arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static struct pod_constraints decode(const char *json)
{
    struct pod_constraints c = {0};
    struct err err = ERR_INIT;
    if (pod_constraints_decode(json, strlen(json), &arena, &c, &err) < 0)
        fail_msg("%s", err.msg);
    return c;
}

static void everything_that_decides_about_nodes_is_read(void **state)
{
    (void)state;
    struct pod_constraints c = decode(
        "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"priority\":1000,\"preemptionPolicy\":\"Never\","
        "\"nodeSelector\":{\"gpu\":\"h100\",\"disk\":\"ssd\"},"
        "\"tolerations\":[{\"operator\":\"Exists\"},{\"key\":\"a\",\"value\":\"b\",\"effect\":\"NoSchedule\"},"
        "{\"key\":\"c\",\"operator\":\"Equal\",\"tolerationSeconds\":300},{\"key\":\"d\",\"operator\":\"Lt\",\"value\":"
        "\"3\"}],"
        "\"affinity\":{\"podAffinity\":{},\"nodeAffinity\":{\"preferredDuringSchedulingIgnoredDuringExecution\":[],"
        "\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":["
        "{\"matchExpressions\":[{\"key\":\"zone\",\"operator\":\"In\",\"values\":[\"a\",\"b\"]},"
        "{\"key\":\"old\",\"operator\":\"DoesNotExist\"}],\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":"
        "\"NotIn\",\"values\":[\"n9\"]}]},{},{\"matchExpressions\":[{\"key\":\"cores\",\"operator\":\"Gt\",\"values\":"
        "[\"63\"]},{\"key\":\"x\",\"operator\":\"Lt\",\"values\":[\"1\"]},{\"key\":\"y\",\"operator\":\"Exists\"}]}]}}}"
        ","
        "\"containers\":[{\"name\":\"a\",\"resources\":{\"requests\":{\"nvidia.com/gpu\":\"8\"}}}]}}");
    assert_int_equal(c.priority, 1000);
    assert_false(c.preempts);
    assert_int_equal(resources_get(&c.requests, RESOURCE_GPU), 8000);
    assert_int_equal(c.node_selector.n, 2);
    assert_string_equal(labels_get(&c.node_selector, "gpu"), "h100");
    assert_int_equal(c.n_tolerations, 3); // the operator Lt is unknown, so it tolerates nothing
    assert_true(c.tolerations[0].exists && !c.tolerations[0].key);
    assert_true(!c.tolerations[1].exists);
    assert_string_equal(c.tolerations[1].value, "b");
    assert_string_equal(c.tolerations[1].effect, "NoSchedule");
    assert_string_equal(c.tolerations[2].key, "c");
    assert_int_equal(c.n_terms, 3);
    assert_int_equal(c.terms[0].n, 3);
    assert_int_equal(c.terms[0].matches[0].op, MATCH_IN);
    assert_int_equal(c.terms[0].matches[0].n_values, 2);
    assert_string_equal(c.terms[0].matches[0].values[1], "b");
    assert_false(c.terms[0].matches[0].field);
    assert_int_equal(c.terms[0].matches[1].op, MATCH_NOT_EXISTS);
    assert_true(c.terms[0].matches[2].field);
    assert_int_equal(c.terms[0].matches[2].op, MATCH_NOT_IN);
    assert_int_equal(c.terms[1].n, 0); // stays: it matches no node
    assert_int_equal(c.terms[2].matches[0].op, MATCH_GT);
    assert_int_equal(c.terms[2].matches[1].op, MATCH_LT);
    assert_int_equal(c.terms[2].matches[2].op, MATCH_EXISTS);
}

static void a_plain_pod_may_go_anywhere(void **state)
{
    (void)state;
    struct pod_constraints c = decode("{\"spec\":{\"containers\":[{\"name\":\"a\"}]}}");
    assert_int_equal(c.n_terms, 0);
    assert_int_equal(c.n_tolerations, 0);
    assert_int_equal(c.node_selector.n, 0);
    assert_int_equal(c.priority, 0);
    assert_true(c.preempts);
    assert_int_equal(c.requests.n, 1); // one pod
}

static void what_cannot_be_planned_is_refused(void **state)
{
    (void)state;
    const struct {
        const char *json, *want;
    } cases[] = {
        {"{\"kind\":\"Status\"}", "Pod: spec: missing"},
        {"{\"spec\":{\"nodeSelector\":{\"a\":1}}}", "Pod: spec.nodeSelector[\"a\"]: expected string, got 1"},
        {"{\"spec\":{\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":"
         "{\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Like\"}]}]}}}}}",
         "Pod: spec.affinity.nodeAffinity: unknown operator \"Like\" for \"a\"; known are In, NotIn, Exists, "
         "DoesNotExist, Gt and Lt"},
        {"{\"spec\":{\"containers\":[{\"name\":\"a\",\"resources\":{\"requests\":{\"cpu\":\"x\"}}}]}}",
         "Pod: spec.containers[0].resources.requests[\"cpu\"]: expected quantity, got \"x\""},
        {"{", "Pod: not valid JSON at byte 1: expected the name of a member"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct pod_constraints c;
        struct err err = ERR_INIT;
        assert_int_equal(pod_constraints_decode(cases[i].json, strlen(cases[i].json), &arena, &c, &err), ERR_INVALID);
        assert_string_equal(err.msg, cases[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(everything_that_decides_about_nodes_is_read, setup, teardown),
        cmocka_unit_test_setup_teardown(a_plain_pod_may_go_anywhere, setup, teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_planned_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
