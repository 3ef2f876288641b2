// SPDX-License-Identifier: Apache-2.0
// The output of `kubectl cadre why` for the objects of tests/golden/why.
#include "cli/cli_options.h"
#include "cli/explain.h"
#include "cli/plain.h"
#include "common/base/mem.h"
#include "common/base/rfc3339.h"
#include "tests/unit/support/golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static char *explained(const char *name, const char *in, size_t len)
{
    struct err err = ERR_INIT;
    struct buf text = BUF_INIT(1 << 20), out = BUF_INIT(1 << 20);
    buf_append(&text, in, len);
    _cleanup_(document_free) cJSON *root = document_read(&text, &err);
    if (!root)
        fail_msg("%s: %s", name, err.msg);
    struct explain_input input = {.group = document_get(root, "group"),
                                  .pods = document_get(root, "pods"),
                                  .events = document_get(root, "events")};
    const char *now = document_str(root, "now");
    assert_true(rfc3339_parse(now, strlen(now), &input.now_ms));
    explain(&input, &out);
    buf_done(&text);
    return buf_take(&out);
}

static void each_group_is_explained(void **state)
{
    (void)state;
    assert_int_equal(golden_run("tests/golden/why", "in.json", "want.txt", explained), 0);
}

static void durations(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms; // -1 = none
    } cases[] = {{"30s", 30000},
                 {"1m30s", 90000},
                 {"500ms", 500},
                 {"2h", 7200000},
                 {"45", 45000},
                 {"0", 0},
                 {"5x", -1},
                 {"s", -1},
                 {"-5", -1},
                 {"1m-5s", -1},
                 {"99999999s", -1},
                 {"", -1},
                 {"9223372036854775807", -1}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t ms = -1;
        bool good = cli_options_duration(cases[i].text, &ms);
        if (good != (cases[i].ms >= 0) || (good && ms != cases[i].ms))
            fail_msg("%s: %d %lld", cases[i].text, good, (long long)ms);
    }
}

static void json_for_people_has_blanks(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    static const char in[] = "[1,{\"a\" :\"x,\\\":y\",\n \"b\":[]}]";
    FILE *out = open_memstream(&text, &size);
    plain_print_json(out, in, sizeof in - 1);
    fclose(out);
    assert_string_equal(text, "[1, {\"a\": \"x,\\\":y\", \"b\": []}]\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_group_is_explained),
        cmocka_unit_test(durations),
        cmocka_unit_test(json_for_people_has_blanks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
