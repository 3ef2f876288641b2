// SPDX-License-Identifier: Apache-2.0
#include "operator/api/node.h"

#include "operator/api/object_decode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static const struct node *decode(const char *json)
{
    const struct object *o = NULL;
    struct err err = ERR_INIT;
    if (object_decode(KIND_NODE, json, strlen(json), &o, &err) < 0)
        fail_msg("%s", err.msg);
    return node_of(o);
}

static void what_placement_needs_is_read(void **state)
{
    (void)state;
    const struct node *n = decode(
        "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\",\"labels\":{\"kubernetes.io/"
        "hostname\":\"n1\",\"rack\":\"r2\"}},"
        "\"spec\":{\"unschedulable\":true,\"taints\":[{\"key\":\"nvidia.com/gpu\",\"value\":\"present\",\"effect\":"
        "\"NoSchedule\"},{\"key\":\"k\",\"effect\":\"NoExecute\"}]},"
        "\"status\":{\"capacity\":{\"cpu\":\"64\"},\"allocatable\":{\"cpu\":\"63500m\",\"memory\":\"1Gi\",\"pods\":"
        "\"110\","
        "\"nvidia.com/gpu\":\"8\",\"hugepages-1Gi\":\"0\"},\"images\":[{\"names\":[\"a\"],\"sizeBytes\":1}],"
        "\"conditions\":[{\"type\":\"MemoryPressure\",\"status\":\"False\"},{\"type\":\"Ready\",\"status\":\"True\","
        "\"lastTransitionTime\":\"2026-01-02T03:04:05Z\"}]}}");
    assert_string_equal(n->obj.meta.name, "n1");
    assert_string_equal(labels_get(&n->obj.meta.labels, "rack"), "r2");
    assert_true(n->unschedulable);
    assert_int_equal(n->n_taints, 2);
    assert_string_equal(n->taints[0].value, "present");
    assert_string_equal(n->taints[1].effect, "NoExecute");
    assert_null(n->taints[1].value);
    assert_int_equal(n->allocatable.n, 4);
    assert_int_equal(resources_get(&n->allocatable, RESOURCE_CPU), 63500);
    assert_int_equal(resources_get(&n->allocatable, RESOURCE_PODS), 110000);
    assert_int_equal(resources_get(&n->allocatable, RESOURCE_GPU), 8000);
    assert_true(n->ready);
    assert_int_equal(n->ready_changed_ms, INT64_C(1767323045000));
    object_unref(&n->obj);
}

static void a_node_is_ready_only_if_it_says_so(void **state)
{
    (void)state;
    const struct node *fresh = decode("{\"metadata\":{\"name\":\"n1\"}}");
    assert_false(fresh->ready);
    assert_int_equal(fresh->ready_changed_ms, 0);
    assert_int_equal(fresh->allocatable.n, 0);
    object_unref(&fresh->obj);
    const struct node *lost = decode("{\"metadata\":{\"name\":\"n1\"},\"status\":{\"conditions\":[{\"type\":\"Ready\","
                                     "\"status\":\"Unknown\",\"lastTransitionTime\":\"1970-01-01T00:00:09Z\"}]}}");
    assert_false(lost->ready);
    assert_int_equal(lost->ready_changed_ms, 9000);
    object_unref(&lost->obj);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_placement_needs_is_read),
        cmocka_unit_test(a_node_is_ready_only_if_it_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
