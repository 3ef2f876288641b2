// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/process.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct metrics *m;

static double process(const char *name)
{
    struct buf all = BUF_INIT(1 << 20);
    assert_int_equal(metrics_write(m, &all), 0);
    struct buf key = BUF_INIT(100);
    buf_printf(&key, "\n%s ", name);
    const char *at = strstr(all.data, buf_str(&key));
    double v = at ? strtod(at + key.len, NULL) : -1;
    buf_done(&key);
    buf_done(&all);
    return v;
}

static void the_process_is_measured(void **state)
{
    (void)state;
    struct loop *loop = loop_new();
    m = metrics_new();
    process_metrics(m, loop);
    double rss = process("process_resident_memory_bytes");
    char *more = xmalloc(64 << 20);
    memset(more, 1, 64 << 20);
    assert_true(process("process_resident_memory_bytes") > rss + (32 << 20));
    free(more);
    assert_true(process("process_virtual_memory_bytes") > rss);
    assert_true(process("process_cpu_seconds_total") > 0);
    double fds = process("process_open_fds");
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_true(process("process_open_fds") == fds + 1);
    fclose(file);
    assert_true(process("process_max_fds") >= fds);
    double age = (double)time(NULL) - process("process_start_time_seconds");
    assert_true(age > -2 && age < 3600);
    loop_observe(loop, NULL, NULL);
    metrics_free(m);
    loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_process_is_measured)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
