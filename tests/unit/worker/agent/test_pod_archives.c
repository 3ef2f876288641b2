// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/pod_archives.h"

#include "common/wire/archive_piece.h"
#include "tests/unit/support/folder.h"
#include "tests/unit/support/patience.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHA256 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"

struct world {
    struct loop *loop;
    struct pod_archives *pod_archives;
    char folder[64];
};

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    folder_new(w->folder);
    w->loop = loop_new();
    w->pod_archives = pod_archives_new(w->loop);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    pod_archives_free(w->pod_archives);
    loop_free(w->loop);
    folder_free(w->folder);
    free(w);
    return 0;
}

static void want(const struct world *w, const char *archive)
{
    char folder[96], wanted[256];
    snprintf(folder, sizeof folder, "CADRE_ARCHIVES=%s", w->folder);
    snprintf(wanted, sizeof wanted, "CADRE_ARCHIVE=%s", archive);
    const char *const env[] = {"PATH=/bin", folder, wanted, NULL};
    pod_archives_want(w->pod_archives, env);
}

static bool says(const struct world *w, const char *text)
{
    struct json_writer j = WRITER_INIT;
    pod_archives_write(w->pod_archives, &j);
    bool same = strcmp(buf_str(&j.buf), text) == 0;
    writer_done(&j);
    return same;
}

static void what_is_wanted_is_told_of_once_it_is_there(void **state)
{
    const struct world *w = *state;
    want(w, SHA256 ":5");
    uint64_t before = pod_archives_version(w->pod_archives);
    assert_true(says(w, "\"archives\":[]"));
    folder_write(w->folder, OTHER ".tar", "nobody wants it");
    folder_write(w->folder, SHA256 ".tar", "whole");
    TURN_UNTIL(loop_run_once(w->loop, 100), pod_archives_version(w->pod_archives) != before, "");
    assert_true(says(w, "\"archives\":[\"" SHA256 "\"]"));
    before = pod_archives_version(w->pod_archives);
    want(w, SHA256 ":5"); // another rank
    want(w, OTHER ":15");
    assert_true(says(w, "\"archives\":[\"" SHA256 "\",\"" OTHER "\"]"));
    assert_int_not_equal(pod_archives_version(w->pod_archives), before);
}

static void pieces_are_read_by_their_offset(void **state)
{
    const struct world *w = *state;
    struct buf out = BUF_INIT(ARCHIVE_PIECE_MAX);
    struct err err = ERR_INIT;
    folder_write(w->folder, SHA256 ".tar", "whole");
    folder_write(w->folder, OTHER ".tar", "nobody wants it");
    want(w, SHA256 ":5");
    assert_int_equal(pod_archives_read(w->pod_archives, SHA256, 2, &out, &err), 0);
    assert_string_equal(buf_str(&out), "ole");
    assert_int_equal(pod_archives_read(w->pod_archives, SHA256, 5, &out, &err), ERR_NOT_FOUND);
    err = ERR_INIT;
    assert_int_equal(pod_archives_read(w->pod_archives, OTHER, 0, &out, &err), ERR_NOT_FOUND);
    folder_clear(w->folder);
    err = ERR_INIT;
    uint64_t before = pod_archives_version(w->pod_archives);
    assert_int_equal(pod_archives_read(w->pod_archives, SHA256, 0, &out, &err), ERR_NOT_FOUND);
    assert_int_not_equal(pod_archives_version(w->pod_archives), before);
    assert_true(says(w, "\"archives\":[]"));
    buf_done(&out);
}

static void what_is_no_archive_is_passed_over(void **state)
{
    static const char *const wrong[] = {"", "5", SHA256, "x" SHA256 ":5", "../" SHA256 ":5", "/etc/passwd:5"};
    const struct world *w = *state;
    const char *const none[] = {"PATH=/bin", NULL};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        want(w, wrong[i]);
    pod_archives_want(w->pod_archives, none);
    assert_true(says(w, "\"archives\":[]"));
    assert_int_equal(pod_archives_version(w->pod_archives), POD_ARCHIVES_VERSION_NEW);
}

static void of_many_the_first_is_forgotten(void **state)
{
    const struct world *w = *state;
    char archive[ARCHIVE_SHA256_LEN + 16];
    struct buf out = BUF_INIT(ARCHIVE_PIECE_MAX);
    struct err err = ERR_INIT;
    folder_write(w->folder, SHA256 ".tar", "whole");
    want(w, SHA256 ":5");
    for (int i = 0; i < POD_ARCHIVES_MAX; i++) {
        snprintf(archive, sizeof archive, "%064d:1", i);
        want(w, archive);
    }
    assert_int_equal(pod_archives_read(w->pod_archives, SHA256, 0, &out, &err), ERR_NOT_FOUND);
    assert_true(says(w, "\"archives\":[]"));
}

// Returns whether an agent finds the archive of a process with these two variables.
static bool finds(struct world *w, const char *first, const char *second)
{
    const char *const env[] = {first, second, "CADRE_ARCHIVE=" SHA256 ":5", NULL};
    pod_archives_free(w->pod_archives);
    w->pod_archives = pod_archives_new(w->loop);
    pod_archives_want(w->pod_archives, env);
    return says(w, "\"archives\":[\"" SHA256 "\"]");
}

static void the_folder_is_the_one_of_workers_in_python(void **state)
{
    struct world *w = *state;
    char folder[128], tmpdir[80], temp[80], tmp[80];
    snprintf(folder, sizeof folder, "%s/cadre-archives-%u", w->folder, (unsigned)geteuid());
    snprintf(tmpdir, sizeof tmpdir, "TMPDIR=%s", w->folder);
    snprintf(temp, sizeof temp, "TEMP=%s", w->folder);
    snprintf(tmp, sizeof tmp, "TMP=%s", w->folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    folder_write(folder, SHA256 ".tar", "whole");
    assert_true(finds(w, tmpdir, "TEMP=/tmp"));
    assert_true(finds(w, "TMPDIR=", temp));
    assert_true(finds(w, "TMP=/tmp", temp));
    assert_true(finds(w, "TMPDIR=/nonexistent", tmp));
    assert_true(finds(w, "TEMP=/dev/null", tmp)); // no folder
    assert_false(finds(w, "TMPDIR=/tmp", tmp));
    folder_free(folder);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_wanted_is_told_of_once_it_is_there), TEST(pieces_are_read_by_their_offset),
        TEST(what_is_no_archive_is_passed_over),          TEST(of_many_the_first_is_forgotten),
        TEST(the_folder_is_the_one_of_workers_in_python),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
