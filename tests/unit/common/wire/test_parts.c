// SPDX-License-Identifier: Apache-2.0
#include "common/base/mem.h"
#include "common/wire/area.h"
#include "common/wire/parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static void adds(struct parts *p, const char *text, struct quota *quota)
{
    parts_add_copy(p, text, strlen(text), quota);
}

static void reads(struct parts *p, size_t at_most, const char *want)
{
    char out[64];
    size_t n = parts_read(p, out, at_most);
    assert_int_equal(n, strlen(want));
    assert_memory_equal(out, want, n);
}

static void parts_are_read_as_one_text_however_they_are_cut(void **state)
{
    (void)state;
    struct parts p = {0};
    adds(&p, "one", NULL);
    adds(&p, "", NULL);
    adds(&p, "two", NULL);
    parts_add(&p, blob_copy("..three..", 9, NULL), 2, 5);
    assert_int_equal(p.len, 11);
    for (size_t step = 1; step <= 12; step++) {
        char all[16] = "";
        size_t got = 0, n;
        while ((n = parts_read(&p, all + got, step)) > 0)
            got += n;
        assert_int_equal(got, 11);
        assert_string_equal(all, "onetwothree");
        parts_rewind(&p);
    }
    parts_done(&p);
    assert_int_equal(p.n, 0);
    assert_int_equal(p.len, 0);
}

static void is_next(struct parts *p, const char *want)
{
    size_t n;
    const char *got = parts_look(p, &n);
    assert_int_equal(n, want ? strlen(want) : 0);
    if (want)
        assert_memory_equal(got, want, n);
    else
        assert_null(got);
}

static void what_was_skipped_is_not_read(void **state)
{
    (void)state;
    struct parts p = {0};
    adds(&p, "one", NULL);
    adds(&p, "two", NULL);
    is_next(&p, "one");
    parts_skip(&p, 2);
    is_next(&p, "e");
    parts_skip(&p, 1);
    reads(&p, 64, "two");
    is_next(&p, NULL);
    parts_rewind(&p);
    reads(&p, 64, "onetwo");
    parts_done(&p);
}

static void parts_of_another_come_behind_and_are_not_copied(void **state)
{
    (void)state;
    struct parts p = {0}, behind = {0};
    struct blob *b = blob_copy("two", 3, NULL);
    adds(&p, "one", NULL);
    parts_add(&behind, blob_ref(b), 0, 3);
    parts_move(&p, &behind);
    assert_int_equal(behind.n, 0);
    assert_ptr_equal(p.at[1].blob, b);
    assert_int_equal(b->refs, 2);
    reads(&p, 64, "onetwo");
    parts_done(&p);
    assert_int_equal(b->refs, 1);
    blob_unref(b);
}

static void a_copy_without_room_is_there_and_not_charged(void **state)
{
    (void)state;
    struct quota *q = quota_new(4, NULL);
    struct parts p = {0};
    adds(&p, "one", q);
    adds(&p, "two", q);
    assert_int_equal(quota_used(q), 3);
    assert_int_equal(parts_uncharged(&p), 3);
    reads(&p, 64, "onetwo");
    parts_done(&p);
    assert_int_equal(quota_used(q), 0);
    quota_unref(q);
}

struct owner {
    struct area area;
    char bytes[8];
    int returned;
};

static void give(struct area *a, const char *data, uint32_t tag)
{
    (void)data, (void)tag;
    CONTAINER_OF(a, struct owner, area)->returned++;
}

static void end(struct area *a)
{
    (void)a;
}

static void owner_init(struct owner *o, const char *text)
{
    *o = (struct owner){.area = {.fd = -1, .base = o->bytes, .size = sizeof o->bytes, .give = give, .end = end}};
    memcpy(o->bytes, text, strlen(text));
    area_init(&o->area);
}

static void owns(struct parts *p, size_t at_most, const char *want, struct quota *quota)
{
    size_t n;
    assert_non_null(parts_look(p, &n));
    n = MIN(n, at_most);
    assert_int_equal(n, strlen(want));
    assert_memory_equal(parts_own(p, n, quota), want, n);
    parts_skip(p, n);
}

static void what_is_shared_is_copied_as_it_is_looked_at(void **state)
{
    (void)state;
    struct quota *q = quota_new(64, NULL);
    struct owner o;
    struct parts p = {0};
    owner_init(&o, "shared");
    adds(&p, "<", NULL);
    parts_add(&p, blob_in_area(&o.area, o.bytes, 6, 1), 0, 6);
    adds(&p, ">", NULL);
    owns(&p, 4, "<", q);
    assert_int_equal(quota_used(q), 0); // nobody else can change it
    owns(&p, 4, "shar", q);
    assert_int_equal(quota_used(q), 4);
    memcpy(o.bytes, "XXXXED", 6);
    assert_int_equal(o.returned, 0);
    owns(&p, 4, "ED", q);
    assert_int_equal(o.returned, 1); // all of it is copied
    owns(&p, 4, ">", q);
    is_next(&p, NULL);
    memcpy(o.bytes, "YYYYYY", 6);
    assert_int_equal(p.len, 8);
    parts_rewind(&p);
    reads(&p, 64, "<sharED>");
    parts_done(&p);
    assert_int_equal(quota_used(q), 0);
    quota_unref(q);
    area_unref(&o.area);
}

static void what_was_not_looked_at_goes_back_to_its_owner(void **state)
{
    (void)state;
    struct owner o;
    struct parts p = {0};
    owner_init(&o, "shared");
    parts_add(&p, blob_in_area(&o.area, o.bytes, 6, 1), 0, 6);
    owns(&p, 2, "sh", NULL);
    parts_done(&p);
    assert_int_equal(o.returned, 1);
    area_unref(&o.area);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_read_as_one_text_however_they_are_cut),
        cmocka_unit_test(what_was_skipped_is_not_read),
        cmocka_unit_test(parts_of_another_come_behind_and_are_not_copied),
        cmocka_unit_test(a_copy_without_room_is_there_and_not_charged),
        cmocka_unit_test(what_is_shared_is_copied_as_it_is_looked_at),
        cmocka_unit_test(what_was_not_looked_at_goes_back_to_its_owner),
    };
    return cmocka_run_group_tests_name("parts", tests, NULL, NULL);
}
