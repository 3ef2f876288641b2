// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/oom.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/cadre-oom-XXXXXX";

static int setup(void **state)
{
    (void)state;
    return mkdtemp(root) ? 0 : -1;
}

static void in_file(const char *name, const char *text)
{
    _cleanup_(free_p) char *path = xasprintf("%s/%s", root, name);
    if (!text) {
        unlink(path);
        return;
    }
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int teardown(void **state)
{
    (void)state;
    in_file("memory/memory.oom_control", NULL);
    in_file("memory.events", NULL);
    _cleanup_(free_p) char *memory = xasprintf("%s/memory", root);
    rmdir(memory);
    return rmdir(root);
}

static void both_versions_of_cgroups_tell(void **state)
{
    (void)state;
    assert_int_equal(oom_kills(root), -1);
    _cleanup_(free_p) char *memory = xasprintf("%s/memory", root);
    assert_int_equal(mkdir(memory, 0700), 0);
    in_file("memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
    assert_int_equal(oom_kills(root), 2);
    in_file("memory.events", "low 0\nhigh 0\nmax 31\noom 4\noom_kill 3\noom_group_kill 0\n");
    assert_int_equal(oom_kills(root), 3);
    in_file("memory.events", "oom_kill many\n");
    assert_int_equal(oom_kills(root), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(both_versions_of_cgroups_tell, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
