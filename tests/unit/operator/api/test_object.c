// SPDX-License-Identifier: Apache-2.0
#include "operator/api/object.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/lease.h"
#include "operator/api/object_decode.h"
#include "operator/api/pod.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static const struct object *decode(enum kind kind, const char *json)
{
    const struct object *o = NULL;
    struct err err = ERR_INIT;
    if (object_decode(kind, json, strlen(json), &o, &err) < 0)
        fail_msg("%s", err.msg);
    return o;
}

static void kinds_know_their_place_in_the_api(void **state)
{
    (void)state;
    const struct {
        enum kind kind;
        const char *name, *api_version, *plural;
        bool namespaced;
    } cases[] = {
        {KIND_POD, "Pod", "v1", "pods", true},
        {KIND_NODE, "Node", "v1", "nodes", false},
        {KIND_WORKERGROUP, "WorkerGroup", "cadre.dev/v1alpha1", "workergroups", true},
        {KIND_PLACEMENTGROUP, "PlacementGroup", "cadre.dev/v1alpha1", "placementgroups", true},
        {KIND_SERVICE, "Service", "v1", "services", true},
        {KIND_ENDPOINTSLICE, "EndpointSlice", "discovery.k8s.io/v1", "endpointslices", true},
        {KIND_LEASE, "Lease", "coordination.k8s.io/v1", "leases", true},
        {KIND_EVENT, "Event", "events.k8s.io/v1", "events", true},
        {KIND_SECRET, "Secret", "v1", "secrets", true},
        {KIND_TOKEN_REVIEW, "TokenReview", "authentication.k8s.io/v1", "tokenreviews", false},
        {KIND_SUBJECT_ACCESS_REVIEW, "SubjectAccessReview", "authorization.k8s.io/v1", "subjectaccessreviews", false},
        {KIND_SELF_SUBJECT_ACCESS_REVIEW, "SelfSubjectAccessReview", "authorization.k8s.io/v1",
         "selfsubjectaccessreviews", false},
    };
    assert_int_equal(ARRAY_LEN(cases), KIND_COUNT);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct kind_info *info = kind_info(cases[i].kind);
        assert_string_equal(info->kind, cases[i].name);
        assert_string_equal(info->api_version, cases[i].api_version);
        assert_string_equal(info->plural, cases[i].plural);
        assert_int_equal(info->namespaced, cases[i].namespaced);
    }
}

static void metadata_is_read(void **state)
{
    (void)state;
    const struct object *o =
        decode(KIND_SERVICE,
               "{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{\"name\":\"llama\",\"namespace\":\"ml\","
               "\"uid\":\"u-1\","
               "\"resourceVersion\":\"18446744073709551616\",\"generation\":9007199254740993,"
               "\"creationTimestamp\":\"2026-01-02T03:04:05Z\",\"deletionTimestamp\":\"2026-01-02T03:05:05Z\","
               "\"deletionGracePeriodSeconds\":30,\"labels\":{\"b\":\"2\",\"a\":\"1\",\"env\":\"prod\"},"
               "\"annotations\":{\"cadre.dev/x\":\"y\",\"other\":\"large\"},\"managedFields\":[{\"manager\":\"m\"}],"
               "\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"n\",\"uid\":\"u-2\"},"
               "{\"apiVersion\":\"cadre.dev/v1alpha1\",\"kind\":\"WorkerGroup\",\"name\":\"llama\",\"uid\":\"u-3\","
               "\"controller\":true}]},\"spec\":{}}");
    assert_int_equal(o->kind, KIND_SERVICE);
    assert_string_equal(o->meta.name, "llama");
    assert_string_equal(o->meta.ns, "ml");
    assert_string_equal(o->meta.uid, "u-1");
    assert_string_equal(o->meta.resource_version, "18446744073709551616");
    assert_int_equal(o->meta.generation, INT64_C(9007199254740993));
    assert_int_equal(o->meta.created_ms, INT64_C(1767323045000));
    assert_int_equal(o->meta.deleted_ms, INT64_C(1767323105000));
    assert_int_equal(o->meta.deletion_grace_s, 30);
    assert_int_equal(o->meta.labels.n, 3);
    assert_string_equal(labels_get(&o->meta.labels, "a"), "1");
    assert_string_equal(labels_get(&o->meta.labels, "env"), "prod");
    assert_null(labels_get(&o->meta.labels, "c"));
    assert_int_equal(o->meta.annotations.n, 1);
    assert_string_equal(labels_get(&o->meta.annotations, "cadre.dev/x"), "y");
    assert_string_equal(o->meta.owner.kind, "WorkerGroup"); // the owner that is the controller, not the first one
    assert_string_equal(o->meta.owner.uid, "u-3");
    object_unref(o);
}

static void what_is_missing_is_null_or_zero(void **state)
{
    (void)state;
    const struct object *o = decode(KIND_EVENT, "{\"metadata\":{\"name\":\"e\"}}");
    assert_string_equal(o->meta.ns, "");
    assert_null(o->meta.uid);
    assert_null(o->meta.resource_version);
    assert_int_equal(o->meta.generation, 0);
    assert_int_equal(o->meta.deleted_ms, 0);
    assert_null(o->meta.owner.uid);
    assert_int_equal(o->meta.labels.n, 0);
    object_unref(o);
}

static void an_object_lives_as_long_as_someone_holds_it(void **state)
{
    (void)state;
    const struct object *o =
        decode(KIND_LEASE, "{\"metadata\":{\"name\":\"leader\"},\"spec\":{\"holderIdentity\":\"a\"}}");
    assert_ptr_equal(object_ref(o), o);
    object_unref(o);
    assert_string_equal(lease_of(o)->holder, "a");
    object_unref(o);
    object_unref(NULL);
}

// The texts have the same length. The objects keep much, little and much of them, so the size of one does not tell the
// size of the next.
static void objects_of_one_length_may_keep_more_or_less(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"metadata\":{\"name\":\"a\",\"labels\":{\"one\":\"1\",\"two\":\"2\",\"three\":\"3\",\"four\":\"4\"}}}",
        "{\"metadata\":{\"name\":\"b\",\"lab_ls\":{\"one\":\"1\",\"two\":\"2\",\"three\":\"3\",\"four\":\"4\"}}}",
        "{\"metadata\":{\"name\":\"c\",\"labels\":{\"one\":\"a long value\",\"two\":\"2\",\"x\":\"3\"        }}}",
    };
    static const size_t labels[] = {4, 0, 3};
    for (size_t i = 0; i < 3 * ARRAY_LEN(texts); i++) {
        size_t which = i % ARRAY_LEN(texts);
        assert_int_equal(strlen(texts[which]) / 64, strlen(texts[0]) / 64);
        const struct object *o = decode(KIND_LEASE, texts[which]), *again = decode(KIND_LEASE, texts[which]);
        assert_int_equal(o->meta.name[0], "abc"[which]);
        assert_int_equal(o->meta.labels.n, labels[which]);
        assert_int_equal(again->meta.labels.n, o->meta.labels.n);
        assert_int_equal(again->arena.used, o->arena.used);
        if (which == 2)
            assert_string_equal(labels_get(&again->meta.labels, "one"), "a long value");
        object_unref(again);
        object_unref(o);
    }
}

// A user can store so many values in one pod.
static const char *pod_with_many(const char *begin, const char *value, const char *end, struct buf *b)
{
    buf_puts(b, begin);
    for (int i = 0; i < 200 * 1000; i++)
        buf_printf(b, "%s\"a%d\"%s", i ? "," : "", i, value);
    buf_puts(b, end);
    return buf_str(b);
}

static void a_pod_with_long_lists_uses_its_node(void **state)
{
    (void)state;
    static const char spec[] =
        "\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":\"w\",\"resources\":{\"requests\":"
        "{\"nvidia.com/gpu\":\"8\"}}}]";
    struct buf b = BUF_INIT(16 << 20);
    char names[512], labels[512];
    snprintf(names, sizeof names, "{\"metadata\":{\"name\":\"p\"},%s,\"hostAliases\":[{\"hostnames\":[", spec);
    snprintf(labels, sizeof labels, "{%s},\"metadata\":{\"name\":\"p\",\"labels\":{", spec);
    for (int i = 0; i < 2; i++) {
        const char *text = i ? pod_with_many(labels, ":\"\"", "}}}", &b) : pod_with_many(names, "", "]}]}}", &b);
        const struct object *o = decode(KIND_POD, text);
        assert_string_equal(pod_of(o)->node, "n1");
        assert_int_equal(resources_get(&pod_of(o)->requests, RESOURCE_GPU), 8000);
        object_unref(o);
        buf_reset(&b);
    }
    buf_done(&b);
}

static void another_kind_is_refused(void **state)
{
    (void)state;
    const struct {
        const char *json, *want;
    } cases[] = {
        {"{\"kind\":\"Node\",\"metadata\":{\"name\":\"a\"}}", "Pod a: kind: expected Pod, got \"Node\""},
        {"{\"kind\":3,\"metadata\":{\"name\":\"a\",\"namespace\":\"ml\"}}", "Pod ml/a: kind: expected Pod, got 3"},
        {"[]", "Pod: expected object, got list"},
        {"{}", "Pod: metadata: missing"},
        {"{\"metadata\":{\"name\":\"\"}}", "Pod : metadata.name: empty"},
        {"{\"metadata\":{\"namespace\":\"ml\"}}", "Pod: metadata.name: missing"},
        {"{\"metadata\":{\"name\":\"a\"}", "Pod: not valid JSON at byte 24: expected ',' or '}'"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct object *o;
        struct err err = ERR_INIT;
        assert_int_equal(object_decode(KIND_POD, cases[i].json, strlen(cases[i].json), &o, &err), ERR_INVALID);
        assert_string_equal(err.msg, cases[i].want);
    }
}

static void resource_versions_have_an_order(void **state)
{
    (void)state;
    const char *sorted[] = {NULL, "1", "9", "10", "99", "100", "18446744073709551615", "18446744073709551616"};
    for (size_t i = 0; i < ARRAY_LEN(sorted); i++)
        for (size_t k = 0; k < ARRAY_LEN(sorted); k++) {
            int r = resource_version_cmp(sorted[i], sorted[k]);
            assert_int_equal((r > 0) - (r < 0), (i > k) - (i < k));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_know_their_place_in_the_api),
        cmocka_unit_test(metadata_is_read),
        cmocka_unit_test(what_is_missing_is_null_or_zero),
        cmocka_unit_test(an_object_lives_as_long_as_someone_holds_it),
        cmocka_unit_test(objects_of_one_length_may_keep_more_or_less),
        cmocka_unit_test(a_pod_with_long_lists_uses_its_node),
        cmocka_unit_test(another_kind_is_refused),
        cmocka_unit_test(resource_versions_have_an_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
