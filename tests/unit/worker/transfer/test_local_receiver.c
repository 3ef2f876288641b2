// SPDX-License-Identifier: Apache-2.0
// A sender writes to the room of a receiver, which here is the same process.
#include "worker/transfer/local_receiver.h"

#include "common/base/mem.h"
#include "worker/transfer/back_buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

enum { ROWS = 64, COLUMNS = 1024, LEN = ROWS * COLUMNS * 4, STEP = 100 * 1000 };

// Two senders have half of the rows each. Four receivers get a quarter of the columns each.
static struct {
    struct arena arena;
    struct transfer_side sides[2];
    struct transfer_plan plan;
    struct transfer_cursor cursor; // from the second sender to the third receiver
    uint32_t *weights, *old;
    struct block given, taken, room;
    struct blocks from, to;
    struct back_buffer *back_buffer;
    struct window *window;
    struct window_place place;
    struct local_receiver *receiver;
} t;

static const uint64_t shape[] = {ROWS, COLUMNS};
static const int by_rows[] = {0}, by_columns[] = {1};
static const struct mesh_dim dims[] = {{"tp", 2}, {"tp", 4}};
static const struct mesh meshes[] = {{"actor", &dims[0], 1}, {"rollout", &dims[1], 1}};
static const struct transfer_tensor tensors[] = {{"w", SAFETENSORS_F32, shape, 2, by_rows},
                                                 {"w", SAFETENSORS_F32, shape, 2, by_columns}};

static int setup(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    memset(&t, 0, sizeof t);
    for (int i = 0; i < 2; i++)
        t.sides[i] = (struct transfer_side){meshes[i].name, &meshes[i], &tensors[i], 1, NULL};
    assert_int_equal(transfer_plan(&t.sides[0], &t.sides[1], 0, &t.arena, &t.plan, &err), 0);
    transfer_cursor_init(&t.cursor, &t.sides[0], &t.sides[1], &t.plan, 1, 2);
    t.weights = xmalloc(LEN / 2);
    t.old = xcalloc(LEN / 4, 1);
    for (uint32_t i = 0; i < LEN / 2 / 4; i++)
        t.weights[i] = i;
    t.given = (struct block){t.weights, LEN / 2, false};
    t.taken = (struct block){t.old, LEN / 4, false};
    t.from = (struct blocks){&t.given, 1, NULL};
    t.back_buffer = back_buffer_new(true);
    assert_int_equal(back_buffer_lay(t.back_buffer, &(struct blocks){&t.taken, 1, NULL}, &err), 0);
    t.room = (struct block){back_buffer_at(t.back_buffer, 0), LEN / 4, false};
    t.to = (struct blocks){&t.room, 1, NULL};
    t.window = window_new_room(&t.to);
    window_place(&t.place);
    window_show(t.window, &t.place);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    local_receiver_free(t.receiver);
    window_end(t.window);
    back_buffer_free(t.back_buffer);
    free(t.weights);
    free(t.old);
    arena_done(&t.arena);
    return 0;
}

static int look(struct err *err)
{
    return local_receiver_new(&t.place, &t.place, &(bool){true}, 1, &t.from, &t.receiver, err);
}

static void each_run_gets_to_its_place(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    const uint32_t *room = t.room.data;
    assert_int_equal(look(&err), 0);
    while (t.cursor.left)
        assert_int_equal(local_receiver_write(t.receiver, &t.cursor, STEP, &err), 0);
    for (uint32_t row = 0; row < ROWS; row++)
        for (uint32_t i = 0; i < COLUMNS / 4; i++) {
            uint32_t want = row < ROWS / 2 ? 0 : (row - ROWS / 2) * COLUMNS + 2 * (COLUMNS / 4) + i;
            if (room[row * (COLUMNS / 4) + i] != want)
                fail_msg("row %u, column %u: %u, not %u", row, i, room[row * (COLUMNS / 4) + i], want);
        }
}

static void who_has_left_gets_nothing(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    assert_int_equal(look(&err), 0);
    t.window->word[0] = 0;
    assert_int_equal(local_receiver_write(t.receiver, &t.cursor, STEP, &err), ERR_GONE);
    assert_string_equal(err.msg, "it has ended, or given up");
    for (size_t i = 0; i < LEN / 4; i++)
        assert_int_equal(((char *)t.room.data)[i], 0);
}

// As if it had stood still between its look at the window and the write.
static void who_comes_late_writes_to_nothing(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    assert_int_equal(look(&err), 0);
    back_buffer_abandon(t.back_buffer);
    assert_int_equal(back_buffer_lay(t.back_buffer, &(struct blocks){&t.taken, 1, NULL}, &err), 0);
    assert_int_equal(local_receiver_write(t.receiver, &t.cursor, STEP, &err), ERR_GONE);
    assert_string_equal(err.msg, "writing to its memory: Bad address");
    for (size_t i = 0; i < LEN / 4; i++)
        assert_int_equal(((char *)back_buffer_at(t.back_buffer, 0))[i], 0);
}

static void what_is_elsewhere_or_no_room_is_refused(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct window_place here = t.place;
    here.host[0]++;
    assert_int_equal(local_receiver_new(&t.place, &here, &(bool){true}, 1, &t.from, &t.receiver, &err),
                     ERR_UNAVAILABLE);
    assert_null(t.receiver);
    t.window->blocks[0].kind = WINDOW_MEMORY;
    assert_int_equal(look(&err), ERR_UNAVAILABLE);
    assert_null(t.receiver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_run_gets_to_its_place, setup, teardown),
        cmocka_unit_test_setup_teardown(who_has_left_gets_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(who_comes_late_writes_to_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_elsewhere_or_no_room_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
