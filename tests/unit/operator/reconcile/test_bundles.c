// SPDX-License-Identifier: Apache-2.0
// Single bundles, and the annotations of pods that name bundles. A user who may edit pods may write anything there.
#include "operator/reconcile/bundles.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>

static struct arena arena;
static struct label zone = {"zone", "a"};

static int teardown(void **state)
{
    (void)state;
    arena_done(&arena);
    return 0;
}

static struct placementgroup_spec spec_of(struct bundle_spec *bundles, size_t n)
{
    return (struct placementgroup_spec){.bundles = bundles, .n_bundles = n};
}

// Three bundles of one GPU, two of half a CPU, and one more of the first shape.
static struct bundles example(void)
{
    struct bundle_spec entries[] = {
        {.count = 3, .resources_json = "{\"nvidia.com/gpu\":1,\"cpu\":\"1\"}"},
        {.count = 2, .resources_json = "{\"cpu\":\"500m\"}", .node_selector = {&zone, 1}},
        {.count = 1, .resources_json = "{\"cpu\":\"1000m\",\"nvidia.com/gpu\":\"1\"}"},
    };
    struct placementgroup_spec s = spec_of(entries, ARRAY_LEN(entries));
    struct bundles b;
    struct err err = ERR_INIT;
    assert_int_equal(bundles_expand(&s, &arena, &b, &err), 0);
    return b;
}

static void entries_are_counted_out_and_shapes_told_apart(void **state)
{
    (void)state;
    struct bundles b = example();
    assert_int_equal(b.n, 6);
    assert_int_equal(b.n_shapes, 2);
    assert_int_equal(b.gpus, 4);
    assert_ptr_equal(bundle_shape(&b, 0), bundle_shape(&b, 5));
    assert_ptr_not_equal(bundle_shape(&b, 0), bundle_shape(&b, 3));
    assert_int_equal(amounts_get(&bundle_shape(&b, 4)->resources, "cpu"), 500);
}

static void what_cannot_be_expanded_is_named(void **state)
{
    (void)state;
    struct bundles b;
    struct bundle_spec many[] = {{.count = 10000, .resources_json = "{\"cpu\":1}"},
                                 {.count = 1, .resources_json = "{\"cpu\":1}"}};
    struct bundle_spec bad[] = {{.count = 1, .resources_json = "{\"cpu\":1}"},
                                {.count = 1, .resources_json = "{\"cpu\":\"one\"}"}};
    struct placementgroup_spec s = spec_of(many, 2);
    struct err err = ERR_INIT;
    assert_int_equal(bundles_expand(&s, &arena, &b, &err), ERR_LIMIT);
    assert_string_equal(err.msg, "spec.bundles: a PlacementGroup has 1 to 10000 bundles, not 10001");
    s = spec_of(bad, 2);
    err = ERR_INIT;
    assert_int_equal(bundles_expand(&s, &arena, &b, &err), ERR_INVALID);
    assert_memory_equal(err.msg, "spec.bundles[1].resources: resource cpu: ", 41);
}

static void a_pod_asks_for_the_sum_of_its_bundles(void **state)
{
    (void)state;
    struct bundles b = example();
    const int32_t items[] = {2, 3, 4, 5};
    struct bundle_sum sum;
    bundles_sum(&b, items, ARRAY_LEN(items), &arena, &sum);
    assert_int_equal(amounts_get(&sum.resources, "cpu"), 3000);
    assert_int_equal(amounts_get(&sum.resources, "nvidia.com/gpu"), 2000);
    assert_string_equal(labels_get(&sum.node_selector, "zone"), "a");
}

static void devices_have_many_names(void **state)
{
    (void)state;
    static const struct {
        const char *resources, *device; // NULL = none
    } cases[] = {
        {"{\"cpu\":\"1\",\"memory\":\"1Gi\",\"hugepages-2Mi\":\"2Mi\"}", NULL},
        {"{\"nvidia.com/gpu\":\"1\"}", NULL},
        {"{\"amd.com/gpu\":\"0\"}", NULL},
        {"{\"kubernetes.io/batch\":\"1\",\"node.kubernetes.io/x\":\"1\"}", NULL},
        {"{\"amd.com/gpu\":\"2\",\"cpu\":\"1\"}", "amd.com/gpu"},
        {"{\"cpu\":\"1\",\"nvidia.com/mig-1g.10gb\":\"1\"}", "nvidia.com/mig-1g.10gb"},
        {"{\"nvidia.com/gpu\":\"1\",\"rdma/hca\":\"1\"}", "rdma/hca"},
        {"{\"notkubernetes.io/x\":\"1\"}", "notkubernetes.io/x"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bundle_spec entry = {.count = 1, .resources_json = cases[i].resources};
        struct placementgroup_spec s = spec_of(&entry, 1);
        struct bundles b;
        struct err err = ERR_INIT;
        assert_int_equal(bundles_expand(&s, &arena, &b, &err), 0);
        const struct amount *device = bundle_other_device(bundle_shape(&b, 0));
        if (!str_eq(device ? device->name : NULL, cases[i].device))
            fail_msg("%s: %s", cases[i].resources, device ? device->name : "none");
    }
}

struct reading {
    int32_t *items;
    size_t n;
    bool ok, same;
};

static struct reading read_pod(const struct bundles *b, const char *text, const char *shapes)
{
    struct label annotations[] = {{ANNOTATION_BUNDLES, text}, {ANNOTATION_SHAPES, shapes}};
    struct pod p = {.obj.meta.annotations = {annotations, shapes ? 2 : 1}};
    struct reading r;
    r.ok = bundles_of_pod(b, &p, &arena, &r.items, &r.n, &r.same);
    return r;
}

static void a_pod_says_what_it_was_made_for(void **state)
{
    (void)state;
    struct bundles b = example();
    const int32_t items[] = {1, 2, 3, 5};
    const char *text = bundles_text(items, ARRAY_LEN(items), &arena);
    const char *shapes = bundles_shapes_text(&b, items, ARRAY_LEN(items), &arena);
    assert_string_equal(text, "1-3,5");
    struct reading r = read_pod(&b, text, shapes);
    assert_true(r.ok);
    assert_true(r.same);
    assert_int_equal(r.n, ARRAY_LEN(items));
    assert_memory_equal(r.items, items, sizeof items);
}

static void other_shapes_than_now_are_seen(void **state)
{
    (void)state;
    struct bundles b = example();
    const int32_t gpus[] = {0, 1};
    const char *shapes = bundles_shapes_text(&b, gpus, ARRAY_LEN(gpus), &arena);
    assert_true(read_pod(&b, "0-1", shapes).same);
    assert_false(read_pod(&b, "2-3", shapes).same);
    assert_false(read_pod(&b, "0-2", shapes).same); // the shapes are of two bundles only
    assert_false(read_pod(&b, "0-1", NULL).same);
}

// The PlacementGroup has shrunk since.
static void bundles_that_are_no_more_do_not_count(void **state)
{
    (void)state;
    struct bundles b = example();
    const int32_t last[] = {5};
    struct reading r = read_pod(&b, "5-9", bundles_shapes_text(&b, last, 1, &arena));
    assert_true(r.ok && r.same);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.items[0], 5);
    r = read_pod(&b, "6-2147483647", "");
    assert_true(r.ok);
    assert_int_equal(r.n, 0);
}

static void nonsense_is_not_read(void **state)
{
    (void)state;
    static const char *const texts[] = {"all", "-1", "0-", "3-1", "0,,1", "0,", "2,1", "0-3,3", "0-99999999999", "1 2"};
    struct bundles b = example();
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (read_pod(&b, texts[i], "").ok)
            fail_msg("%s was read", texts[i]);
    struct pod bare = {.obj.meta.name = "p"};
    int32_t *items;
    size_t n;
    bool same;
    assert_false(bundles_of_pod(&b, &bare, &arena, &items, &n, &same));
}

static void nonsense_in_the_shapes_is_another_shape(void **state)
{
    (void)state;
    struct bundles b = example();
    uint64_t hash = bundle_shape(&b, 0)->hash;
    const char *const texts[] = {
        "",
        "*",
        "*1",
        ",,",
        "0*1",
        "x*1",
        arena_printf(&arena, "%016" PRIx64, hash),
        arena_printf(&arena, "%016" PRIx64 "*0", hash),
        arena_printf(&arena, "%016" PRIx64 "*1,", hash),
        arena_printf(&arena, "%016" PRIx64 "*1;%016" PRIx64 "*1", hash, hash),
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct reading r = read_pod(&b, "0-1", texts[i]);
        if (!r.ok || r.same)
            fail_msg("%s is the group's", texts[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_are_counted_out_and_shapes_told_apart),
        cmocka_unit_test(what_cannot_be_expanded_is_named),
        cmocka_unit_test(a_pod_asks_for_the_sum_of_its_bundles),
        cmocka_unit_test(devices_have_many_names),
        cmocka_unit_test(a_pod_says_what_it_was_made_for),
        cmocka_unit_test(other_shapes_than_now_are_seen),
        cmocka_unit_test(bundles_that_are_no_more_do_not_count),
        cmocka_unit_test(nonsense_is_not_read),
        cmocka_unit_test(nonsense_in_the_shapes_is_another_shape),
    };
    return cmocka_run_group_tests(tests, NULL, teardown);
}
