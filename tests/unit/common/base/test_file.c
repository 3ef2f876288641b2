// SPDX-License-Identifier: Apache-2.0
#include "common/base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <unistd.h>

static void a_file_in_memory_is_read_from_its_beginning(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(8);
    char got[8];
    buf_puts(&b, "abc");
    int fd = file_in_memory("test", &b);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, got, sizeof got), 3);
    assert_memory_equal(got, "abc", 3);
    close(fd);
    buf_puts(&b, "too long");
    assert_int_equal(file_in_memory("test", &b), -1);
    buf_done(&b);
}

static void what_cannot_be_written_is_an_error(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_true(file_write_all(ends[1], "abc", 3));
    assert_false(file_write_all(ends[0], "abc", 3)); // this end is for reading
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_in_memory_is_read_from_its_beginning),
        cmocka_unit_test(what_cannot_be_written_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
