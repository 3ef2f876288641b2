// SPDX-License-Identifier: Apache-2.0
#include "operator/api/pod.h"

#include "common/base/mem.h"
#include "operator/api/object_decode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <malloc.h>
#include <stdio.h>
#include <string.h>

static const struct pod *decode(const char *json)
{
    const struct object *o = NULL;
    struct err err = ERR_INIT;
    if (object_decode(KIND_POD, json, strlen(json), &o, &err) < 0)
        fail_msg("%s", err.msg);
    return pod_of(o);
}

#define OURS "{\"metadata\":{\"name\":\"llama-0-1\",\"namespace\":\"ml\",\"labels\":{\"cadre.dev/group\":\"llama\"}},"

static void the_state_of_our_pods_is_read(void **state)
{
    (void)state;
    const struct pod *p = decode(
        OURS
        "\"spec\":{\"nodeName\":\"n1\",\"priority\":-10},\"status\":{\"phase\":\"Failed\",\"reason\":\"Evicted\","
        "\"message\":\"low on memory\",\"podIP\":\"10.0.0.1\",\"startTime\":\"1970-01-01T00:00:02Z\",\"conditions\":["
        "{\"type\":\"Ready\",\"status\":\"True\"},{\"type\":\"PodScheduled\",\"status\":\"True\"},"
        "{\"type\":\"DisruptionTarget\",\"status\":\"True\",\"reason\":\"PreemptionByScheduler\"}],"
        "\"initContainerStatuses\":[{\"name\":\"setup\",\"state\":{\"terminated\":{\"exitCode\":0,\"reason\":"
        "\"Completed\"}}}],"
        "\"containerStatuses\":[{\"name\":\"worker\",\"state\":{\"terminated\":{\"exitCode\":137,\"reason\":"
        "\"OOMKilled\",\"message\":\"last line\",\"finishedAt\":\"1970-01-01T00:00:09Z\"}},\"lastState\":"
        "{\"terminated\":{\"exitCode\":1}}},"
        "{\"name\":\"side\",\"state\":{\"waiting\":{\"reason\":\"ImagePullBackOff\",\"message\":\"no such image\"}}},"
        "{\"name\":\"log\",\"state\":{\"running\":{}}},{\"name\":\"new\"}]}}");
    assert_string_equal(p->node, "n1");
    assert_int_equal(p->priority, -10);
    assert_int_equal(p->phase, POD_FAILED);
    assert_true(pod_terminal(p));
    assert_string_equal(p->reason, "Evicted");
    assert_string_equal(p->message, "low on memory");
    assert_string_equal(p->ip, "10.0.0.1");
    assert_int_equal(p->started_ms, 2000);
    assert_true(p->ready);
    assert_false(p->unschedulable);
    assert_string_equal(p->disruption, "PreemptionByScheduler");
    assert_int_equal(p->n_containers, 5);
    const struct container_status *c = p->containers;
    assert_true(c[0].init && c[0].terminated && c[0].exit_code == 0);
    assert_string_equal(c[0].name, "setup");
    assert_true(!c[1].init && c[1].terminated && c[1].exit_code == 137 && c[1].finished_ms == 9000);
    assert_string_equal(c[1].reason, "OOMKilled");
    assert_string_equal(c[1].message, "last line");
    assert_true(c[2].waiting && !c[2].terminated);
    assert_string_equal(c[2].reason, "ImagePullBackOff");
    assert_string_equal(c[2].message, "no such image");
    assert_true(!c[3].waiting && !c[3].terminated && !c[3].reason);
    assert_true(!c[4].waiting && !c[4].terminated);
    object_unref(&p->obj);
}

static void a_pod_that_cannot_be_placed_says_why(void **state)
{
    (void)state;
    const struct pod *p = decode(OURS "\"status\":{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\","
                                      "\"status\":\"False\",\"reason\":\"Unschedulable\",\"message\":\"0/3 nodes\"},"
                                      "{\"type\":\"DisruptionTarget\",\"status\":\"False\",\"reason\":\"x\"}]}}");
    assert_true(p->unschedulable);
    assert_string_equal(p->unschedulable_message, "0/3 nodes");
    assert_null(p->disruption);
    assert_null(p->node);
    assert_false(p->ready);
    assert_int_equal(p->phase, POD_PENDING);
    object_unref(&p->obj);
}

static bool ready_with(const char *ready, const char *containers_ready)
{
    char conditions[256], text[512];
    snprintf(conditions, sizeof conditions, "{\"type\":\"Ready\",%s},{\"type\":\"ContainersReady\",\"status\":\"%s\"}",
             ready, containers_ready);
    snprintf(text, sizeof text, OURS "\"status\":{\"phase\":\"Running\",\"conditions\":[%s]}}", conditions);
    const struct pod *p = decode(text);
    bool ready_now = p->ready;
    object_unref(&p->obj);
    return ready_now;
}

// After an outage of the control plane, the node controller hears from no node for a moment.
static void ready_is_what_the_kubelet_said_last(void **state)
{
    (void)state;
    assert_true(ready_with("\"status\":\"True\"", "True"));
    assert_true(ready_with("\"status\":\"False\"", "True")); // the node controller wrote it
    assert_false(ready_with("\"status\":\"False\"", "False"));
    assert_false(ready_with("\"status\":\"False\",\"reason\":\"ReadinessGatesNotReady\"", "True"));
    assert_false(ready_with("\"status\":\"False\",\"reason\":\"ContainersNotReady\"", "False"));
    assert_false(ready_with("\"status\":\"False\",\"reason\":\"PodCompleted\"", "True"));
}

static void phases_are_read(void **state)
{
    (void)state;
    const struct {
        const char *text;
        enum pod_phase phase;
    } cases[] = {{"Pending", POD_PENDING}, {"Running", POD_RUNNING}, {"Succeeded", POD_SUCCEEDED},
                 {"Failed", POD_FAILED},   {"Unknown", POD_UNKNOWN}, {"Hibernating", POD_UNKNOWN}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char json[128];
        snprintf(json, sizeof json, "{\"metadata\":{\"name\":\"p\"},\"status\":{\"phase\":\"%s\"}}", cases[i].text);
        const struct pod *p = decode(json);
        assert_int_equal(p->phase, cases[i].phase);
        object_unref(&p->obj);
    }
}

#define TERM(name) "{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[" name "]}]}"

static void only_one_name_in_all_terms_is_a_pin(void **state)
{
    (void)state;
    const struct {
        const char *terms, *pin;
    } cases[] = {
        {TERM("\"n1\""), "n1"},
        {TERM("\"n1\"") "," TERM("\"n1\""), "n1"},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\"}],\"matchFields\":[{\"key\":\"metadata.name\","
         "\"operator\":\"In\",\"values\":[\"n1\"]}]}",
         "n1"},
        {"", NULL},
        {TERM("\"n1\"") "," TERM("\"n2\""), NULL},
        {TERM("\"n1\",\"n2\""), NULL},
        {TERM("\"n1\"") ",{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\"}]}", NULL},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\"}]}," TERM("\"n1\""), NULL},
        {"{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"NotIn\",\"values\":[\"n1\"]}]}", NULL},
        {"{\"matchExpressions\":[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"n1\"]}]}", NULL},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"NewOperator\",\"values\":[\"1\"]}]}", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char json[1024];
        snprintf(json, sizeof json,
                 "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"affinity\":{\"nodeAffinity\":{"
                 "\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":[%s]}}}}}",
                 cases[i].terms);
        const struct pod *p = decode(json);
        if (cases[i].pin)
            assert_string_equal(p->pin, cases[i].pin);
        else
            assert_null(p->pin);
        object_unref(&p->obj);
    }
}

// The operator keeps ten thousand of them. With names of usual length, 600 bytes each make 6 MB.
static void a_foreign_pod_costs_little(void **state)
{
    (void)state;
    const struct pod *p =
        decode("{\"metadata\":{\"name\":\"checkout-frontend-7c9d8f6b5d-x0007\",\"namespace\":\"shop-production\","
               "\"uid\":\"0f1b6a3a-90c4-4f0e-8f61-1c6b7f7d0007\",\"resourceVersion\":\"184467007\","
               "\"labels\":{\"app\":\"checkout-frontend\",\"pod-template-hash\":\"7c9d8f6b5d\"},"
               "\"annotations\":{\"cadre.dev/x\":\"y\"},\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":"
               "\"ReplicaSet\",\"name\":\"checkout-frontend-7c9d8f6b5d\",\"uid\":\"u\",\"controller\":true}],"
               "\"managedFields\":[{\"manager\":\"m\",\"fieldsV1\":{\"f:metadata\":{}}}]},"
               "\"spec\":{\"nodeName\":\"ip-10-0-7-17.eu-central-1\",\"priority\":5,\"containers\":[{\"name\":\"web\","
               "\"resources\":{\"requests\":{\"cpu\":\"500m\",\"memory\":\"512Mi\",\"ephemeral-storage\":\"1Gi\"}}}]},"
               "\"status\":{\"phase\":\"Running\",\"message\":\"m\",\"podIP\":\"10.0.0.1\",\"conditions\":[{\"type\":"
               "\"Ready\","
               "\"status\":\"True\"}],\"containerStatuses\":[{\"name\":\"web\",\"state\":{\"running\":{}}}]}}");
    assert_string_equal(p->obj.meta.name, "checkout-frontend-7c9d8f6b5d-x0007");
    assert_string_equal(p->obj.meta.resource_version, "184467007");
    assert_string_equal(p->node, "ip-10-0-7-17.eu-central-1");
    assert_int_equal(p->priority, 5);
    assert_int_equal(p->phase, POD_RUNNING);
    assert_int_equal(resources_get(&p->requests, RESOURCE_CPU), 500);
    assert_int_equal(resources_get(&p->requests, RESOURCE_PODS), 1000);
    assert_int_equal(p->obj.meta.labels.n, 0);
    assert_int_equal(p->obj.meta.annotations.n, 0);
    assert_null(p->obj.meta.owner.uid);
    assert_null(p->ip);
    assert_int_equal(p->n_containers, 0);
    size_t block = malloc_usable_size(p->obj.arena.head); // the only block
    assert_in_range(block, p->obj.arena.used, 600 - 16);  // 16: what malloc() adds
    object_unref(&p->obj);
}

// A user who may write the status of a pod can write odd words into it. The pod must still count.
static void odd_conditions_do_not_hide_a_pod(void **state)
{
    (void)state;
    const struct pod *p =
        decode(OURS "\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"Maybe\"},"
                    "{\"type\":\"\",\"status\":\"\"},{\"type\":\"PodScheduled\"}]}}");
    assert_false(p->ready);
    assert_false(p->unschedulable);
    object_unref(&p->obj);
}

static void pods_of_the_operator_have_their_labels(void **state)
{
    (void)state;
    const struct pod *p = decode("{\"metadata\":{\"name\":\"o-1\",\"labels\":{\"app.kubernetes.io/instance\":\"x\","
                                 "\"app.kubernetes.io/part-of\":\"cadre\"}},\"status\":{\"phase\":\"Running\"}}");
    assert_string_equal(labels_get(&p->obj.meta.labels, "app.kubernetes.io/instance"), "x");
    object_unref(&p->obj);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_state_of_our_pods_is_read),       cmocka_unit_test(a_pod_that_cannot_be_placed_says_why),
        cmocka_unit_test(ready_is_what_the_kubelet_said_last), cmocka_unit_test(phases_are_read),
        cmocka_unit_test(odd_conditions_do_not_hide_a_pod),    cmocka_unit_test(only_one_name_in_all_terms_is_a_pin),
        cmocka_unit_test(a_foreign_pod_costs_little),          cmocka_unit_test(pods_of_the_operator_have_their_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
