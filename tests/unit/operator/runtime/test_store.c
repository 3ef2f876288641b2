// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/store.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/base/rand.h"
#include "common/base/str.h"
#include "operator/api/pod.h"
#include "tests/unit/support/store_gone.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static struct store *s;
static struct buf trace; // "+name@version " = added, "~" = changed, "-" = deleted

static const char *or_null(const char *text)
{
    return *text ? text : NULL;
}

// owner and group: "" = none
static const struct object *object(const char *name, const char *version, const char *owner, const char *group)
{
    struct arena a;
    arena_init(&a, 512);
    struct object *o = &arena_new(&a, struct pod)->obj;
    *o = (struct object){.refs = 1, .kind = KIND_POD};
    o->meta.name = arena_strdup(&a, name);
    o->meta.ns = "ml";
    o->meta.uid = arena_printf(&a, "uid-of-%s", name);
    o->meta.resource_version = arena_strdup(&a, version);
    o->meta.owner.uid = arena_strdup(&a, or_null(owner));
    if (*group) {
        o->meta.labels.items = arena_new(&a, struct label);
        o->meta.labels.items[0] = (struct label){"cadre.dev/group", arena_strdup(&a, group)};
        o->meta.labels.n = 1;
    }
    o->arena = a;
    return o;
}

static void put(const char *name, const char *version)
{
    const struct object *o = object(name, version, "", "");
    store_put(s, o);
    object_unref(o);
}

static void wrote(const char *name, const char *version)
{
    const struct object *o = object(name, version, "", "");
    store_wrote(s, o);
    object_unref(o);
}

static void deleted(const char *name, const char *version)
{
    const struct object *o = object(name, version, "", "");
    store_deleted(s, o);
    object_unref(o);
}

static void put_in(const char *name, const char *version, const char *owner, const char *group)
{
    const struct object *o = object(name, version, owner, group);
    store_put(s, o);
    object_unref(o);
}

static void put_pod(const char *name, const char *version, const char *node, const char *pin)
{
    const struct object *o = object(name, version, "u1", "");
    CONTAINER_OF((struct object *)o, struct pod, obj)->node = node;
    CONTAINER_OF((struct object *)o, struct pod, obj)->pin = pin;
    store_put(s, o);
    object_unref(o);
}

static void put_on(const char *name, const char *version, const char *node)
{
    put_pod(name, version, node, "n3");
}

static void on_event(void *ctx, const struct object *old, const struct object *now)
{
    const struct object *o = now ? now : old;
    buf_printf(&trace, "%s%c%s@%s ", (const char *)ctx,
               !old  ? '+'
               : now ? '~'
                     : '-',
               o->meta.name, o->meta.resource_version);
    if (old && now)
        buf_printf(&trace, "(was %s) ", old->meta.resource_version);
}

static int setup(void **state)
{
    (void)state;
    s = store_new(KIND_POD);
    trace = BUF_INIT(1 << 16);
    store_subscribe(s, on_event, (void *)"");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    store_free(s);
    buf_done(&trace);
    return 0;
}

static void assert_trace(const char *want)
{
    assert_string_equal(buf_str(&trace), want);
    buf_reset(&trace);
}

static const char *version_of(const char *name)
{
    const struct object *o = store_get(s, "ml", name);
    return o ? o->meta.resource_version : "none";
}

static void changes_are_told_once(void **state)
{
    (void)state;
    put("a", "5");
    assert_trace("+a@5 ");
    put("a", "5");
    assert_trace("");
    put("a", "7");
    assert_trace("~a@7 (was 5) ");
    assert_int_equal(store_count(s), 1);
    store_gone(s, "ml", "a");
    assert_trace("-a@7 ");
    store_gone(s, "ml", "a");
    assert_trace("");
    assert_string_equal(version_of("a"), "none");
    assert_int_equal(store_kind(s), KIND_POD);
}

static void what_is_older_is_ignored(void **state)
{
    (void)state;
    put("a", "10");
    put("a", "9"); // 10 is newer, because versions are numbers
    assert_trace("+a@10 ");
    assert_string_equal(version_of("a"), "10");
}

static void names_are_apart_by_namespace(void **state)
{
    (void)state;
    put("a", "1");
    assert_null(store_get(s, "other", "a"));
    assert_null(store_get(s, "", "ml/a"));
    assert_non_null(store_get(s, "ml", "a"));
}

static void another_uid_is_another_object(void **state)
{
    (void)state;
    struct object *again = (struct object *)object("a", "9", "", "");
    again->meta.uid = "another";
    put("a", "5");
    store_put(s, again);
    object_unref(again);
    assert_trace("+a@5 -a@5 +a@9 ");
}

static void subscribers_are_told_in_order(void **state)
{
    (void)state;
    store_subscribe(s, on_event, (void *)"second:");
    put("a", "1");
    assert_trace("+a@1 second:+a@1 ");
}

static void a_reference_outlives_its_place(void **state)
{
    (void)state;
    put("a", "1");
    const struct object *o = object_ref(store_get(s, "ml", "a"));
    store_gone(s, "ml", "a");
    assert_string_equal(o->meta.name, "a");
    object_unref(o);
}

static void our_own_write_is_visible_at_once(void **state)
{
    (void)state;
    put("a", "5");
    store_saw(s, "5");
    wrote("a", "7");
    assert_string_equal(version_of("a"), "7");
    put("a", "6"); // the watch delivers an earlier version
    put("a", "7"); // then our own
    assert_trace("+a@5 ~a@7 (was 5) ");
}

static void our_own_write_is_ignored_once_the_watch_is_past_it(void **state)
{
    (void)state;
    put("a", "5");
    deleted("a", "9");
    store_saw(s, "9");
    wrote("a", "7"); // the answer was slow: somebody has deleted it since
    assert_string_equal(version_of("a"), "none");
    wrote("b", "9");
    assert_string_equal(version_of("b"), "none");
    wrote("b", "10");
    assert_string_equal(version_of("b"), "10");
}

static void it_tells_what_it_need_not_be_told(void **state)
{
    (void)state;
    struct object_peek g = {.ns = "ml", .name = "a", .uid = "uid-of-a", .version = "5"};
    assert_false(store_holds(s, &g));
    assert_false(store_is_past(s, "5")); // it has seen nothing yet
    put("a", "5");
    store_saw(s, "8");
    assert_true(store_holds(s, &g));
    assert_true(store_is_past(s, "8"));
    assert_false(store_is_past(s, "9"));
    static const struct object_peek others[] = {{.ns = "ml", .name = "a", .uid = "uid-of-a", .version = "4"},
                                                {.ns = "ml", .name = "a", .uid = "uid-of-a", .version = "6"},
                                                {.ns = "ml", .name = "a", .uid = "uid-of-b", .version = "5"},
                                                {.ns = "lm", .name = "a", .uid = "uid-of-a", .version = "5"},
                                                {.ns = "ml", .name = "b", .uid = "uid-of-a", .version = "5"}};
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        assert_false(store_holds(s, &others[i]));
}

static void a_deletion_does_not_reach_what_was_created_after_it(void **state)
{
    (void)state;
    put("a", "5");
    store_gone(s, "ml", "a");
    wrote("a", "12");
    deleted("a", "8"); // the deletion of the first one, late
    assert_string_equal(version_of("a"), "12");
    deleted("a", "15");
    assert_string_equal(version_of("a"), "none");
    deleted("a", "15");
    assert_string_equal(version_of("a"), "none");
}

static void a_list_removes_what_it_does_not_bring(void **state)
{
    (void)state;
    assert_false(store_is_complete(s));
    store_list_begin(s);
    put("a", "1");
    put("b", "2");
    put("c", "3");
    assert_false(store_is_complete(s));
    store_list_swap(s, "10");
    assert_true(store_is_complete(s));
    assert_trace("+a@1 +b@2 +c@3 ");
    store_list_begin(s);
    put("b", "2");
    put("c", "11");
    put("d", "12");
    store_list_swap(s, "20");
    assert_trace("~c@11 (was 3) +d@12 -a@1 ");
    assert_true(store_is_complete(s));
}

static void a_list_does_not_remove_what_we_wrote_after_it(void **state)
{
    (void)state;
    store_list_begin(s);
    put("a", "1");
    wrote("new", "25");
    wrote("old", "15"); // written before the list, and deleted again
    store_list_swap(s, "20");
    assert_string_equal(version_of("new"), "25");
    assert_string_equal(version_of("old"), "none");
    wrote("late", "19"); // the list has reported everything up to 20
    assert_string_equal(version_of("late"), "none");
}

static void a_list_that_starts_over_counts_only_the_second_time(void **state)
{
    (void)state;
    store_list_begin(s);
    put("a", "1");
    put("b", "2");
    store_list_begin(s);
    put("b", "2");
    store_list_swap(s, "10");
    assert_string_equal(version_of("a"), "none");
    assert_string_equal(version_of("b"), "2");
}

static size_t names_of(size_t n, const struct object *const *found, char *text, size_t size)
{
    *text = '\0';
    for (size_t i = 0; i < n; i++)
        snprintf(text + strlen(text), size - strlen(text), "%s ", found[i]->meta.name);
    return n;
}

static const char *owned(const char *uid)
{
    static char text[4096];
    struct arena a = ARENA_INIT;
    const struct object *const *found;
    size_t n = store_by_owner(s, &(struct meta){.ns = "ml", .uid = uid}, &a, &found);
    names_of(n, found, text, sizeof text);
    arena_done(&a);
    return text;
}

static void add_name(void *ctx, const struct object *o)
{
    char *text = ctx;
    snprintf(text + strlen(text), 4096 - strlen(text), "%s ", o->meta.name);
}

static const char *on_node(const char *node)
{
    static char text[4096];
    *text = '\0';
    store_each_on_node(s, node, add_name, text);
    return text;
}

static void pods_are_found_by_the_node_that_they_are_bound_or_pinned_to(void **state)
{
    (void)state;
    put_on("g-10-0", "1", NULL);
    assert_string_equal(on_node("n1"), "");
    assert_string_equal(on_node("n3"), "g-10-0 ");
    put_on("g-10-0", "2", "n1");
    put_on("g-2-0", "3", "n1");
    put_on("g-3-0", "4", "n2");
    assert_string_equal(on_node("n1"), "g-2-0 g-10-0 ");
    assert_string_equal(on_node("n2"), "g-3-0 ");
    assert_string_equal(on_node("n3"), "");
    deleted("g-2-0", "5");
    assert_string_equal(on_node("n1"), "g-10-0 ");
}

static void children_are_found_in_natural_order(void **state)
{
    (void)state;
    put_in("g-10-0", "1", "u1", "g");
    put_in("g-2-0", "2", "u1", "g");
    put_in("g-2-1", "3", "u2", "g"); // the same label, another owner
    put_in("x", "4", "", "");
    put_in("y", "5", "", "h");
    assert_string_equal(owned("u1"), "g-2-0 g-10-0 ");
    assert_string_equal(owned("u2"), "g-2-1 ");
    assert_string_equal(owned("u3"), "");
}

// Anybody may write the UID of an owner into an object in their own namespace.
static void an_owner_owns_nothing_in_another_namespace(void **state)
{
    const struct object *o = object("g-0-9", "2", "u1", "g");
    (void)state;
    CONTAINER_OF((struct object *)o, struct pod, obj)->obj.meta.ns = "mallory";
    put_in("g-0-0", "1", "u1", "g");
    store_put(s, o);
    object_unref(o);
    assert_string_equal(owned("u1"), "g-0-0 ");
}

static void indexes_of_an_empty_store_are_empty(void **state)
{
    (void)state;
    assert_string_equal(owned("u1"), "");
    assert_null(store_get(s, "ml", "a"));
    store_each(s, NULL, NULL);
    store_list_swap(s, "1");
}

static void indexes_follow_changes(void **state)
{
    (void)state;
    put_in("a", "1", "u1", "g");
    put_in("a", "2", "u2", "h");
    assert_string_equal(owned("u1"), "");
    assert_string_equal(owned("u2"), "a ");
    put_in("a", "3", "", "");
    assert_string_equal(owned("u2"), "");
    put_in("a", "4", "u1", "");
    store_gone(s, "ml", "a");
    assert_string_equal(owned("u1"), "");
}

// Compares the store with plain arrays, under random puts, deletes and lists.
static void it_agrees_with_a_plain_array(void **state)
{
    (void)state;
    enum { N = 200, OWNERS = 7, STEPS = 20000 };
    struct {
        bool there, listed;
        int version, owner;
    } m[N] = {0};
    struct rand r;
    rand_seed(&r, 11);
    bool listing = false;
    for (int step = 1; step <= STEPS; step++) {
        int k = (int)rand_below(&r, N), owner = (int)rand_below(&r, OWNERS);
        char name[16], version[16], uid[16];
        snprintf(name, sizeof name, "p-%d", k);
        snprintf(version, sizeof version, "%d", step);
        snprintf(uid, sizeof uid, "u%d", owner);
        uint64_t what = rand_below(&r, 100);
        if (what < 60) {
            put_in(name, version, owner ? uid : "", owner ? uid : "");
            m[k].there = m[k].listed = true;
            m[k].version = step;
            m[k].owner = owner;
        } else if (what < 98) {
            store_gone(s, "ml", name);
            m[k].there = false;
        } else if (!listing) {
            store_list_begin(s);
            for (int i = 0; i < N; i++)
                m[i].listed = false;
            listing = true;
        } else {
            store_list_swap(s, version);
            for (int i = 0; i < N; i++)
                m[i].there &= m[i].listed;
            listing = false;
        }
        if (step % 500)
            continue;
        size_t count = 0, children = 0;
        for (int i = 0; i < N; i++) {
            snprintf(name, sizeof name, "p-%d", i);
            const struct object *o = store_get(s, "ml", name);
            assert_int_equal(o != NULL, m[i].there);
            count += m[i].there;
            children += m[i].there && m[i].owner == 3;
        }
        assert_int_equal(store_count(s), count);
        struct arena a = ARENA_INIT;
        const struct object *const *found;
        assert_int_equal(store_by_owner(s, &(struct meta){.ns = "ml", .uid = "u3"}, &a, &found), children);
        for (size_t i = 0; i < children; i++) {
            assert_string_equal(found[i]->meta.owner.uid, "u3");
            assert_true(i == 0 || str_cmp_natural(found[i - 1]->meta.name, found[i]->meta.name) < 0);
        }
        arena_done(&a);
        buf_reset(&trace);
    }
}

static void count_object(void *ctx, const struct object *o)
{
    assert_int_equal(o->kind, KIND_POD);
    ++*(size_t *)ctx;
}

static void every_object_is_visited(void **state)
{
    (void)state;
    for (int i = 0; i < 500; i++) {
        char name[16];
        snprintf(name, sizeof name, "p-%d", i);
        put(name, "1");
    }
    size_t n = 0;
    store_each(s, count_object, &n);
    assert_int_equal(n, 500);
}

static void note_name(void *ctx, const struct object *o)
{
    (void)ctx;
    buf_printf(&trace, "%s ", o->meta.name);
}

static void objects_are_visited_by_age(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t created_ms;
    } items[] = {{"b", 5}, {"young", 9}, {"old", 1}, {"a", 5}};
    for (size_t i = 0; i < ARRAY_LEN(items); i++) {
        struct object *o = (struct object *)object(items[i].name, "1", "", "");
        o->meta.created_ms = items[i].created_ms;
        store_put(s, o);
        object_unref(o);
    }
    buf_reset(&trace);
    store_each(s, note_name, NULL);
    assert_string_equal(buf_str(&trace), "old a b young ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define STORE_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        STORE_TEST(changes_are_told_once),
        STORE_TEST(what_is_older_is_ignored),
        STORE_TEST(names_are_apart_by_namespace),
        STORE_TEST(another_uid_is_another_object),
        STORE_TEST(subscribers_are_told_in_order),
        STORE_TEST(a_reference_outlives_its_place),
        STORE_TEST(our_own_write_is_visible_at_once),
        STORE_TEST(our_own_write_is_ignored_once_the_watch_is_past_it),
        STORE_TEST(it_tells_what_it_need_not_be_told),
        STORE_TEST(a_deletion_does_not_reach_what_was_created_after_it),
        STORE_TEST(a_list_removes_what_it_does_not_bring),
        STORE_TEST(a_list_does_not_remove_what_we_wrote_after_it),
        STORE_TEST(a_list_that_starts_over_counts_only_the_second_time),
        STORE_TEST(pods_are_found_by_the_node_that_they_are_bound_or_pinned_to),
        STORE_TEST(an_owner_owns_nothing_in_another_namespace),
        STORE_TEST(children_are_found_in_natural_order),
        STORE_TEST(indexes_of_an_empty_store_are_empty),
        STORE_TEST(indexes_follow_changes),
        STORE_TEST(it_agrees_with_a_plain_array),
        STORE_TEST(every_object_is_visited),
        STORE_TEST(objects_are_visited_by_age),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
