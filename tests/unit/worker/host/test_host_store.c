// SPDX-License-Identifier: Apache-2.0
#include "worker/host/object_store.h"

#include "common/base/mem.h"
#include "common/base/rand.h"
#include "tests/unit/worker/host/store_holds.h"

#include <string.h>

#define ROOM ((size_t)1 << 20)

static const int here, there; // two connections

static const struct kept_object *put(struct object_store *s, const char *text, const void *owner, bool pinned)
{
    struct err err = ERR_INIT;
    const struct kept_object *o;
    struct blob *b = blob_copy(text, strlen(text), NULL);
    assert_int_equal(object_store_put(s, &(struct kept_object){.blob = b, .pinned = pinned}, owner, &o, &err), 0);
    blob_unref(b);
    return o;
}

static void what_is_put_can_be_had_until_it_is_dropped(void **state)
{
    (void)state;
    struct object_store *s = object_store_new(ROOM, 1);
    uint64_t id = put(s, "abc", &here, false)->id;
    const struct kept_object *o = object_store_get(s, id);
    assert_memory_equal(o->blob->data + o->offset, "abc", o->len);
    assert_null(object_store_get(s, id + 1));
    store_holds(s, ROOM, 1, 3 + STORE_OBJECT_COST);
    assert_true(object_store_drop(s, id));
    assert_false(object_store_drop(s, id));
    assert_null(object_store_get(s, id));
    store_holds(s, ROOM, 0, 0);
    object_store_free(s);
}

static void an_object_may_be_the_end_of_a_blob(void **state)
{
    (void)state;
    struct object_store *s = object_store_new(ROOM, 1);
    struct err err = ERR_INIT;
    const struct kept_object *o;
    struct blob *b = blob_copy("head and arguments", 18, NULL);
    assert_int_equal(object_store_put(s, &(struct kept_object){.blob = b, .offset = 9}, &here, &o, &err), 0);
    blob_unref(b);
    assert_int_equal(o->len, 9);
    assert_memory_equal(o->blob->data + o->offset, "arguments", 9);
    object_store_free(s);
}

static void a_connection_takes_its_objects_along_but_pinned_ones(void **state)
{
    (void)state;
    struct object_store *s = object_store_new(ROOM, 1);
    uint64_t mine = put(s, "a", &here, false)->id, theirs = put(s, "b", &there, false)->id;
    uint64_t pinned = put(s, "c", &here, true)->id, later = put(s, "d", &here, false)->id;
    assert_true(object_store_pin(s, later));
    assert_false(object_store_pin(s, later + 1));
    assert_int_equal(object_store_drop_owned(s, &here), 1);
    assert_null(object_store_get(s, mine));
    assert_non_null(object_store_get(s, theirs));
    assert_non_null(object_store_get(s, pinned));
    assert_non_null(object_store_get(s, later));
    store_holds(s, ROOM, 3, 3 * (1 + STORE_OBJECT_COST));
    object_store_free(s);
}

static void a_full_store_says_how_full_and_takes_nothing(void **state)
{
    (void)state;
    struct object_store *s = object_store_new(2 * STORE_OBJECT_COST + 10, 1);
    struct err err = ERR_INIT;
    const struct kept_object *o;
    struct blob *b = blob_copy("123456", 6, NULL);
    uint64_t first = put(s, "12345", &here, false)->id;
    assert_int_equal(object_store_put(s, &(struct kept_object){.blob = b}, &here, &o, &err), ERR_LIMIT);
    assert_non_null(strstr(err.msg, "no room for 6 bytes: 1 objects have 261 of the 522 bytes"));
    assert_non_null(strstr(err.msg, "CADRE_STORE_BYTES"));
    assert_int_equal(object_store_put(s, &(struct kept_object){.blob = b, .offset = 1}, &here, &o, &err),
                     0); // 5 bytes fit
    assert_true(object_store_drop(s, first));
    blob_unref(b);
    object_store_free(s);
}

// Compares with a table that is searched.
static void at_random_it_holds_what_it_should(void **state)
{
    (void)state;
    enum { MAX = 64, FULL = 20 * STORE_OBJECT_COST };
    struct {
        uint64_t id;
        const void *owner;
        bool pinned;
        size_t len;
    } model[MAX];
    size_t n = 0, bytes = 0;
    struct rand rand;
    rand_seed(&rand, 7);
    struct object_store *s = object_store_new(FULL, 9);
    for (int step = 0; step < 20000; step++) {
        size_t k = n ? rand_below(&rand, n) : 0;
        uint64_t what = rand_below(&rand, 10);
        if (what < 5 && n < MAX) {
            struct err err = ERR_INIT;
            const struct kept_object *o;
            size_t len = rand_below(&rand, 600);
            struct blob *b = blob_new(len, NULL);
            bool fits = bytes + len + STORE_OBJECT_COST <= FULL;
            model[n].owner = rand_below(&rand, 2) ? &here : &there;
            model[n].pinned = rand_below(&rand, 4) == 0;
            model[n].len = len;
            assert_int_equal(object_store_put(s, &(struct kept_object){.blob = b, .pinned = model[n].pinned},
                                              model[n].owner, &o, &err),
                             fits ? 0 : ERR_LIMIT);
            blob_unref(b);
            if (fits) {
                model[n++].id = o->id;
                bytes += len + STORE_OBJECT_COST;
            }
        } else if (what < 8 && n) {
            assert_true(object_store_drop(s, model[k].id));
            bytes -= model[k].len + STORE_OBJECT_COST;
            model[k] = model[--n];
        } else if (what == 8 && n) {
            assert_true(object_store_pin(s, model[k].id));
            model[k].pinned = true;
        } else {
            size_t gone = 0;
            for (size_t i = n; i-- > 0;) {
                if (model[i].owner != &here || model[i].pinned)
                    continue;
                bytes -= model[i].len + STORE_OBJECT_COST;
                model[i] = model[--n];
                gone++;
            }
            assert_int_equal(object_store_drop_owned(s, &here), gone);
        }
        store_holds(s, FULL, n, bytes);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(object_store_get(s, model[i].id)->len, model[i].len);
    }
    object_store_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_can_be_had_until_it_is_dropped),
        cmocka_unit_test(an_object_may_be_the_end_of_a_blob),
        cmocka_unit_test(a_connection_takes_its_objects_along_but_pinned_ones),
        cmocka_unit_test(a_full_store_says_how_full_and_takes_nothing),
        cmocka_unit_test(at_random_it_holds_what_it_should),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
