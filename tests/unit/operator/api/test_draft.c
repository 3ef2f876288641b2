// SPDX-License-Identifier: Apache-2.0
// The request of a client, and the WorkerGroup to create.
#include "operator/api/draft.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static struct {
    struct arena arena;
    struct draft draft;
    struct err err;
} t;

static int teardown(void **state)
{
    (void)state;
    arena_done(&t.arena);
    return 0;
}

static int read_args(const char *args)
{
    t.err = ERR_INIT;
    return draft_read(args, "ml", "anna", 1700000000123, &t.arena, &t.draft, &t.err);
}

#define SPEC "\"spec\":{\"replicas\":2,\"template\":{\"spec\":{\"containers\":[{\"name\":\"w\",\"image\":\"i\"}]}}}"

static void a_group_goes_with_its_session(void **state)
{
    (void)state;
    assert_int_equal(read_args("{\"workerGroup\":{\"metadata\":{\"name\":\"llama\"}," SPEC "}}"), 0);
    assert_string_equal(t.draft.name, "llama");
    assert_false(t.draft.detached);
    char want[1024];
    snprintf(want, sizeof want,
             "{\"apiVersion\":\"cadre.dev/v1alpha1\",\"kind\":\"WorkerGroup\",\"metadata\":{\"name\":\"llama\","
             "\"annotations\":{\"cadre.dev/created-by\":\"anna\",\"cadre.dev/manifest-hash\":\"%s\","
             "\"cadre.dev/session-renewed\":\"1700000000123\"}}," SPEC "}",
             t.draft.hash);
    assert_string_equal(t.draft.manifest, want);
}

static void a_detached_one_does_not(void **state)
{
    (void)state;
    assert_int_equal(
        read_args("{\"lifetime\":\"Detached\",\"workerGroup\":{\"metadata\":{\"name\":\"llama\"}," SPEC "}}"), 0);
    assert_true(t.draft.detached);
    assert_null(strstr(t.draft.manifest, "session-renewed"));
}

static void labels_and_annotations_stay(void **state)
{
    (void)state;
    assert_int_equal(read_args("{\"workerGroup\":{\"apiVersion\":\"cadre.dev/v1alpha1\",\"kind\":\"WorkerGroup\","
                               "\"metadata\":{\"name\":\"llama\",\"namespace\":\"ml\",\"labels\":{\"a\":\"b\"},"
                               "\"annotations\":{\"team\":\"x \\\"y\\\"\"}}," SPEC "}}"),
                     0);
    assert_non_null(strstr(t.draft.manifest, "\"labels\":{\"a\":\"b\"}"));
    assert_non_null(strstr(t.draft.manifest, "\"annotations\":{\"team\":\"x \\\"y\\\"\",\"cadre.dev/created-by\""));
}

static void equal_requests_have_equal_hashes(void **state)
{
    (void)state;
    read_args("{\"workerGroup\":{\"metadata\":{\"name\":\"llama\"}," SPEC "}}");
    const char *first = t.draft.hash;
    read_args("{\"workerGroup\":{\"metadata\":{\"name\":\"llama\"}," SPEC "}}");
    assert_string_equal(t.draft.hash, first);
    read_args("{\"workerGroup\":{\"metadata\":{\"name\":\"llama2\"}," SPEC "}}");
    assert_string_not_equal(t.draft.hash, first);
}

static void a_placementgroup_is_read_alike(void **state)
{
    (void)state;
    assert_int_equal(read_args("{\"placementGroup\":{\"metadata\":{\"name\":\"pool\"}," SPEC "}}"), 0);
    assert_int_equal(t.draft.kind, KIND_PLACEMENTGROUP);
    assert_non_null(strstr(t.draft.manifest, "\"kind\":\"PlacementGroup\""));
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *args;
        int code;
        const char *says;
    } cases[] = {
        {"", ERR_INVALID, "group.create"},
        {"[]", ERR_INVALID, "needs {\"workerGroup\""},
        {"{\"workerGroup\":3}", ERR_INVALID, "needs {\"workerGroup\""},
        {"{\"workerGroup\":{" SPEC "}}", ERR_INVALID, "metadata.name and spec"},
        {"{\"workerGroup\":{\"metadata\":{\"name\":\"x\"}}}", ERR_INVALID, "metadata.name and spec"},
        {"{\"workerGroup\":{\"kind\":\"Pod\",\"metadata\":{\"name\":\"x\"}," SPEC "}}", ERR_INVALID,
         "kind WorkerGroup"},
        {"{\"placementGroup\":{\"kind\":\"WorkerGroup\",\"metadata\":{\"name\":\"x\"}," SPEC "}}", ERR_INVALID,
         "kind PlacementGroup"},
        {"{\"placementGroup\":{" SPEC "},\"workerGroup\":{" SPEC "}}", ERR_INVALID, "or {\"placementGroup\""},
        {"{\"workerGroup\":{\"metadata\":{\"name\":\"x\",\"namespace\":\"prod\"}," SPEC "}}", ERR_FORBIDDEN,
         "\"prod\""},
        {"{\"workerGroup\":{\"metadata\":{\"name\":\"x\",\"ownerReferences\":[]}," SPEC "}}", ERR_INVALID,
         "\"ownerReferences\""},
        {"{\"workerGroup\":{\"metadata\":{\"name\":\"x\",\"annotations\":{\"cadre.dev/created-by\":\"eve\"}}," SPEC
         "}}",
         ERR_INVALID, "the operator's own"},
        {"{\"lifetime\":\"Forever\",\"workerGroup\":{\"metadata\":{\"name\":\"x\"}," SPEC "}}", ERR_INVALID,
         "not \"Forever\""},
        {"{\"timeout\":1,\"workerGroup\":{\"metadata\":{\"name\":\"x\"}," SPEC "}}", ERR_INVALID, "\"timeout\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(read_args(cases[i].args), cases[i].code);
        if (!strstr(t.err.msg, cases[i].says))
            fail_msg("%s: %s", cases[i].args, t.err.msg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_group_goes_with_its_session, teardown),
        cmocka_unit_test_teardown(a_detached_one_does_not, teardown),
        cmocka_unit_test_teardown(labels_and_annotations_stay, teardown),
        cmocka_unit_test_teardown(equal_requests_have_equal_hashes, teardown),
        cmocka_unit_test_teardown(a_placementgroup_is_read_alike, teardown),
        cmocka_unit_test_teardown(what_is_wrong_is_said, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
