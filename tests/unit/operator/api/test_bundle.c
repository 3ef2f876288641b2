// SPDX-License-Identifier: Apache-2.0
#include "operator/api/bundle.h"

#include "common/base/json.h"
#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include <string.h>

static struct arena arena;

static int teardown(void **state)
{
    (void)state;
    arena_done(&arena);
    return 0;
}

static struct amounts amounts(const char *json)
{
    struct amounts x;
    struct err err = ERR_INIT;
    if (amounts_decode(json, &arena, &x, &err) < 0)
        fail_msg("%s", err.msg);
    return x;
}

static void amounts_are_quantities_by_name(void **state)
{
    (void)state;
    struct amounts x = amounts("{\"memory\": \"1Gi\", \"cpu\": \"1500m\", \"nvidia.com/gpu\": 2}"), none = {0};
    assert_int_equal(amounts_get(&x, "cpu"), 1500);
    assert_int_equal(amounts_get(&x, "memory"), INT64_C(1024) * 1024 * 1024 * 1000);
    assert_int_equal(amounts_get(&x, "nvidia.com/gpu"), 2000);
    assert_int_equal(amounts_get(&x, "pods"), 0);
    assert_int_equal(amounts_get(&none, "cpu"), 0);
}

static void what_is_no_quantity_is_named(void **state)
{
    (void)state;
    static const char *const texts[] = {"{\"cpu\": \"much\"}", "{\"cpu\": true}", "{\"cpu\": null}", "{\"cpu\": {}}"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct amounts x;
        struct err err = ERR_INIT;
        assert_int_equal(amounts_decode(texts[i], &arena, &x, &err), ERR_INVALID);
        assert_non_null(strstr(err.msg, "resource cpu: "));
    }
}

static void sums_have_every_name_once_and_do_not_overflow(void **state)
{
    (void)state;
    struct amounts sum = {0}, some = amounts("{\"b\": 1, \"d\": 2}"), more = amounts("{\"a\": 1, \"b\": 2, \"e\": 3}");
    struct amounts huge = amounts("{\"b\": \"9223372036854775807\"}");
    amounts_add(&sum, &some, &arena);
    amounts_add(&sum, &more, &arena);
    assert_int_equal(sum.n, 4);
    for (size_t i = 1; i < sum.n; i++)
        assert_true(strcmp(sum.items[i - 1].name, sum.items[i].name) < 0);
    assert_int_equal(amounts_get(&sum, "b"), 3000);
    amounts_add(&sum, &huge, &arena);
    assert_int_equal(amounts_get(&sum, "b"), INT64_MAX);
    assert_int_equal(amounts_get(&some, "b"), 1000); // the input has not changed
}

static const char *fill(const char *json, const struct bundle_fill *f)
{
    const char *out = NULL;
    struct err err = ERR_INIT;
    if (bundle_fill(json, f, &arena, &out, &err) < 0)
        return arena_strdup(&arena, err.msg);
    return out;
}

static const char pod[] = "{\"metadata\":{\"x\":1},\"spec\":{\"nodeSelector\":{\"a\":\"theirs\",\"b\":\"theirs\"},"
                          "\"containers\":[{\"name\":\"w\",\"resources\":{\"claims\":[],\"limits\":{\"cpu\":\"1\"},"
                          "\"requests\":{\"cpu\":\"7\",\"disk\":\"1\"}}},{\"name\":\"side\"}],\"last\":true}}";

static void the_first_container_has_the_bundles_instead_of_its_own(void **state)
{
    (void)state;
    struct label label = {"b", "ours"};
    struct labels selector = {&label, 1};
    struct amounts two = amounts("{\"cpu\": 2}");
    struct bundle_fill f = {&two, &selector, NULL, "image:1", "Never"};
    assert_string_equal(fill(pod, &f),
                        "{\"metadata\":{\"x\":1},\"spec\":{\"last\":true,\"nodeSelector\":{\"a\":\"theirs\",\"b\":"
                        "\"ours\"},\"containers\":[{\"name\":\"w\",\"image\":\"image:1\",\"imagePullPolicy\":\"Never\","
                        "\"resources\":{\"claims\":[],\"requests\":{\"cpu\":\"2\"},\"limits\":{\"cpu\":\"2\"}}},"
                        "{\"name\":\"side\"}]}}");
}

static void a_larger_cpu_limit_of_the_template_stays(void **state)
{
    (void)state;
    static const struct {
        const char *limit, *want;
    } cases[] = {{"16", "16"}, {"\"2500m\"", "2500m"}, {"2", "2"}, {"\"1\"", "2"}, {"\"many\"", "2"}, {"[]", "2"}};
    struct labels none = {0};
    struct amounts two = amounts("{\"cpu\": 2, \"gpu\": 2}");
    struct bundle_fill f = {.resources = &two, .node_selector = &none, .image = "i"};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *template =
            arena_printf(&arena,
                         "{\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"gpu\":9,\"cpu\":%s"
                         "},\"requests\":{\"cpu\":\"9\"}}}]}}",
                         cases[i].limit);
        const char *want =
            arena_printf(&arena, "\"requests\":{\"cpu\":\"2\",\"gpu\":\"2\"},\"limits\":{\"cpu\":\"%s\",\"gpu\":\"2\"}",
                         cases[i].want);
        if (!strstr(fill(template, &f), want))
            fail_msg("%s: %s", want, fill(template, &f));
    }
}

// The API server has added limits to a pod of a bundle. These limits stay.
static void only_what_is_named_may_be_replaced(void **state)
{
    (void)state;
    struct labels none = {0};
    struct amounts two = amounts("{\"gpu\": 2}"), cpu = amounts("{\"cpu\": 1}");
    struct bundle_fill f = {.resources = &two, .node_selector = &none, .replaces = &cpu};
    const char *filled = fill(pod, &f);
    assert_non_null(strstr(filled, "\"requests\":{\"disk\":\"1\",\"gpu\":\"2\"},\"limits\":{\"gpu\":\"2\"}"));
    assert_null(strstr(filled, "image"));
}

static void what_is_of_the_wrong_shape_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "[]",
        "{\"spec\":[]}",
        "{\"spec\":{}}",
        "{\"spec\":{\"containers\":{}}}",
        "{\"spec\":{\"containers\":[]}}",
        "{\"spec\":{\"containers\":[1]}}",
        "{\"spec\":{\"nodeSelector\":1,\"containers\":[{}]}}",
        "{\"spec\":{\"containers\":[{\"resources\":[]}]}}",
        "{\"spec\":{\"containers\":[{\"resources\":{\"limits\":1}}]}}",
        "{",
    };
    struct labels none = {0};
    struct amounts one = amounts("{\"cpu\": 1}");
    struct bundle_fill f = {.resources = &one, .node_selector = &none, .replaces = &one, .image = "i"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        const char *out;
        struct err err = ERR_INIT;
        if (bundle_fill(texts[i], &f, &arena, &out, &err) != ERR_INVALID)
            fail_msg("%s was filled: %s", texts[i], out);
    }
}

static const char *template_of(const char *json)
{
    const char *out = NULL;
    struct err err = ERR_INIT;
    return bundle_template(json, &arena, &out, &err) < 0 ? arena_strdup(&arena, err.msg) : out;
}

static const struct json *container_of(const char *json)
{
    struct json *root;
    struct err err = ERR_INIT;
    assert_int_equal(json_parse(json, strlen(json), NULL, &arena, &root, &err), 0);
    const struct json *list = json_get(json_get(root, "spec"), "containers");
    assert_int_equal(json_count(list), 1);
    return list->child;
}

static void a_template_without_containers_gets_one(void **state)
{
    (void)state;
    static const char *const texts[] = {NULL, "{}", "{\"spec\":{}}", "{\"spec\":{\"containers\":[]}}",
                                        "{\"spec\":{\"containers\":null}}"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        const struct json *c = container_of(template_of(texts[i]));
        assert_true(json_str_is(json_get(c, "name"), "worker"));
        assert_null(json_get(c, "image"));
    }
    const char *kept = template_of("{\"metadata\":{\"a\":1},\"spec\":{\"tolerations\":[{\"key\":\"x\"}]}}");
    assert_non_null(strstr(kept, "{\"metadata\":{\"a\":1},\"spec\":{\"tolerations\":[{\"key\":\"x\"}],"
                                 "\"automountServiceAccountToken\":false,\"containers\":["));
}

static void pods_of_our_own_image_have_no_token_unless_asked_for(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *want;
    } cases[] = {
        {"", "{\"spec\":{\"automountServiceAccountToken\":false,\"containers\":["},
        {"\"automountServiceAccountToken\":null", "{\"spec\":{\"automountServiceAccountToken\":false,\"containers\":["},
        {"\"automountServiceAccountToken\":true", "{\"spec\":{\"automountServiceAccountToken\":true,\"containers\":["}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char template[128];
        snprintf(template, sizeof template, "{\"spec\":{%s}}", cases[i].spec);
        assert_non_null(strstr(template_of(template), cases[i].want));
    }
}

static void any_other_is_left_alone(void **state)
{
    (void)state;
    static const char *const texts[] = {"{\"spec\":{\"containers\":[{\"name\":\"mine\"}]}}", "[1]", "\"text\"",
                                        "{\"spec\":{\"containers\":\"none\"}}"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        assert_ptr_equal(template_of(texts[i]), texts[i]);
    assert_string_equal(template_of("{\"spec\":1}"), "spec.template: spec: expected object, got number");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(amounts_are_quantities_by_name),
        cmocka_unit_test(what_is_no_quantity_is_named),
        cmocka_unit_test(sums_have_every_name_once_and_do_not_overflow),
        cmocka_unit_test(the_first_container_has_the_bundles_instead_of_its_own),
        cmocka_unit_test(a_larger_cpu_limit_of_the_template_stays),
        cmocka_unit_test(only_what_is_named_may_be_replaced),
        cmocka_unit_test(what_is_of_the_wrong_shape_is_refused),
        cmocka_unit_test(a_template_without_containers_gets_one),
        cmocka_unit_test(pods_of_our_own_image_have_no_token_unless_asked_for),
        cmocka_unit_test(any_other_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, teardown);
}
