// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/keyed_pods.h"

#include "tests/unit/support/store_json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

static void put(struct store *pods, const char *name, const char *owner, const char *keys, const char *phase)
{
    char json[1024];
    snprintf(
        json, sizeof json,
        "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ml\",\"uid\":\"u-%s\",\"resourceVersion\":\"1\",\"labels\":{"
        "\"cadre.dev/group\":\"g\"},\"annotations\":{%s},\"ownerReferences\":[{\"apiVersion\":\"cadre.dev/"
        "v1alpha1\",\"kind\":\"%s\",\"name\":\"g\",\"uid\":\"u-g\",\"controller\":true}]},\"spec\":{\"containers\":[{"
        "\"name\":\"w\"}]},\"status\":{\"phase\":\"%s\"}}",
        name, name, keys, owner, phase);
    store_put_json(pods, json);
}

static void pods_with_other_keys_are_counted_while_they_run(void **state)
{
    struct store *pods = store_new(KIND_POD);
    (void)state;
    put(pods, "old", "WorkerGroup", "\"cadre.dev/keys\":\"a-1\"", "Running");
    put(pods, "older", "PlacementGroup", "\"cadre.dev/keys\":\"b-1\"", "Pending");
    put(pods, "new", "WorkerGroup", "\"cadre.dev/keys\":\"a-2\"", "Running");
    put(pods, "plain", "WorkerGroup", "", "Running");
    put(pods, "ended", "WorkerGroup", "\"cadre.dev/keys\":\"a-1\"", "Succeeded");
    put(pods, "other", "Job", "\"cadre.dev/keys\":\"a-1\"", "Running");
    assert_int_equal(keyed_pods_count(pods, "a-2"), 2);
    assert_int_equal(keyed_pods_count(pods, NULL), 4);
    store_free(pods);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pods_with_other_keys_are_counted_while_they_run)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
