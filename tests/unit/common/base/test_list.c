// SPDX-License-Identifier: Apache-2.0
#include "common/base/list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

struct item {
    int n;
    struct list link;
};

static int digits(const struct list *head)
{
    int n = 0;
    for (const struct list *l = head->next; l != head; l = l->next)
        n = n * 10 + CONTAINER_OF(l, struct item, link)->n;
    return n;
}

static void order_is_kept(void **state)
{
    (void)state;
    struct list head = LIST_INIT(head);
    struct item a = {1, {0}}, b = {2, {0}}, c = {3, {0}};
    assert_true(list_empty(&head));
    assert_null(list_pop(&head));
    list_append(&head, &a.link);
    list_append(&head, &c.link);
    list_insert_before(&c.link, &b.link);
    assert_int_equal(digits(&head), 123);
    assert_ptr_equal(list_pop(&head), &a.link);
    assert_int_equal(digits(&head), 23);
}

static void a_list_moves_into_another_one(void **state)
{
    (void)state;
    struct list head = LIST_INIT(head), more = LIST_INIT(more);
    struct item a = {1, {0}}, b = {2, {0}}, c = {3, {0}}, d = {4, {0}};
    list_append(&head, &a.link);
    list_append(&head, &d.link);
    list_splice(&d.link, &more);
    assert_int_equal(digits(&head), 14);
    list_append(&more, &b.link);
    list_append(&more, &c.link);
    list_splice(&d.link, &more);
    assert_int_equal(digits(&head), 1234);
    assert_true(list_empty(&more));
    list_splice(&more, &head);
    assert_int_equal(digits(&more), 1234);
    assert_true(list_empty(&head));
}

static void removing_twice_is_safe(void **state)
{
    (void)state;
    struct list head = LIST_INIT(head);
    struct item a = {1, {0}}, b = {2, {0}};
    list_append(&head, &a.link);
    list_append(&head, &b.link);
    list_remove(&a.link);
    list_remove(&a.link);
    assert_int_equal(digits(&head), 2);
    assert_true(list_empty(&a.link));
}

static void the_element_at_hand_may_be_removed(void **state)
{
    (void)state;
    struct list head = LIST_INIT(head);
    struct item items[5];
    for (int i = 0; i < 5; i++) {
        items[i].n = i + 1;
        list_append(&head, &items[i].link);
    }
    LIST_FOREACH(l, &head) {
        if (CONTAINER_OF(l, struct item, link)->n % 2)
            list_remove(l);
    }
    assert_int_equal(digits(&head), 24);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_is_kept),
        cmocka_unit_test(a_list_moves_into_another_one),
        cmocka_unit_test(removing_twice_is_safe),
        cmocka_unit_test(the_element_at_hand_may_be_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
