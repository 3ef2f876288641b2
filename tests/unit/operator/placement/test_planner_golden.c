// SPDX-License-Identifier: Apache-2.0
// tests/golden/plan-placement/<case>/{in.txt,want.txt}: clusters and gangs (placement_builder.h), and the planner's
// answers. UPDATE_GOLDEN=1 writes the present answers; read the change in the diff.
#include "tests/unit/support/placement_builder.h"

#include "common/base/buf.h"
#include "common/base/mem.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *file_read(const char *dir, const char *name)
{
    struct buf b = BUF_INIT(1 << 20);
    _cleanup_(free_p) char *path = xasprintf("%s/%s", dir, name);
    FILE *f = fopen(path, "r");
    char chunk[4096];
    for (size_t n; f && (n = fread(chunk, 1, sizeof chunk, f)) > 0;)
        assert_int_equal(buf_append(&b, chunk, n), 0);
    if (f)
        fclose(f);
    return buf_take(&b);
}

static void file_write(const char *dir, const char *name, const char *text)
{
    _cleanup_(free_p) char *path = xasprintf("%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void answers_are_as_written(void **state)
{
    const char *dir = *state;
    _cleanup_(free_p) char *in = file_read(dir, "in.txt");
    struct world *w = world_new(in);
    assert_true(w->n_gangs > 0);
    const char *got = world_answers(w);
    if (getenv("UPDATE_GOLDEN"))
        file_write(dir, "want.txt", got);
    _cleanup_(free_p) char *want = file_read(dir, "want.txt");
    assert_string_equal(got, want);
    world_free(w);
}

int main(void)
{
    glob_t dirs;
    if (glob("tests/golden/plan-placement/*", GLOB_ONLYDIR, NULL, &dirs) != 0) {
        fprintf(stderr, "no cases: run this in the root of the tree\n");
        return 1;
    }
    struct CMUnitTest *tests = xcalloc(dirs.gl_pathc, sizeof *tests);
    for (size_t i = 0; i < dirs.gl_pathc; i++)
        tests[i] = (struct CMUnitTest){strrchr(dirs.gl_pathv[i], '/') + 1, answers_are_as_written, NULL, NULL,
                                       dirs.gl_pathv[i]};
    int failed = _cmocka_run_group_tests("planner golden", tests, dirs.gl_pathc, NULL, NULL);
    free(tests);
    globfree(&dirs);
    return failed;
}
