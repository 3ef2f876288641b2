// SPDX-License-Identifier: Apache-2.0
#include "common/base/option.h"

#include "common/base/duration.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <getopt.h>
#include <stdio.h>

enum { LETTERS_MAX = 16, VERSION = 256, HELP, FIRST_ROW };

int option_wrong(const struct option_program *p, const char *what, const char *value, const char *wrong)
{
    fprintf(stderr, "%s: %s %s: %s\n", p->name, what, value, wrong);
    if (!p->last_line)
        fprintf(stderr, "Try '%s --help'.\n", p->name);
    return p->usage;
}

static const char *read_bool(const char *value, bool *ret)
{
    *ret = !value || str_eq(value, "true");
    return *ret || str_eq(value, "false") ? NULL : "must be true or false";
}

static const char *read_number(const struct option_row *row, const char *value, int *ret)
{
    static char wrong[64];
    int64_t n;
    if (str_to_i64(value, &n) && n >= row->min && n <= row->max) {
        *ret = (int)n;
        return NULL;
    }
    snprintf(wrong, sizeof wrong, "must be a number from %d to %d", row->min, row->max);
    return wrong;
}

static const char *read_time(const char *value, int64_t *ret_ms)
{
    return duration_parse(value, ret_ms) && *ret_ms > 0 ? NULL : "must be a time: " DURATION_FORM;
}

static const char *read_value(const struct option_row *row, const char *value, void *options)
{
    void *field = (char *)options + row->offset;
    switch (row->kind) {
    case OPTION_TEXT:
        *(const char **)field = value;
        return NULL;
    case OPTION_FLAG:
        *(bool *)field = true;
        return NULL;
    case OPTION_BOOL:
        return read_bool(value, field);
    case OPTION_NUMBER:
        return read_number(row, value, field);
    case OPTION_TIME:
        return read_time(value, field);
    case OPTION_SET:
        break;
    }
    return row->set(options, value);
}

static const struct option_row *row_of(const struct option_program *p, int opt)
{
    const struct option_row *row = p->rows;
    if (opt >= FIRST_ROW)
        return row + (opt - FIRST_ROW);
    while (row->letter != opt)
        row++;
    return row;
}

static int apply(const struct option_program *p, int opt, void *options)
{
    if (opt == VERSION) {
        printf("%s %s\n", p->name, CADRE_VERSION);
        return 0;
    }
    if (opt == HELP) {
        fputs(p->help, stdout);
        return 0;
    }
    if (opt == '?') { // getopt has printed the reason
        fprintf(stderr, "Try '%s --help'.\n", p->name);
        return p->usage;
    }
    const struct option_row *row = row_of(p, opt);
    const char *wrong = read_value(row, optarg, options);
    if (!wrong)
        return -1;
    _cleanup_(free_p) char *what = xasprintf("--%s", row->name);
    return option_wrong(p, what, optarg ? optarg : "", wrong);
}

int option_parse(const struct option_program *p, int argc, char **argv, void *options)
{
    static const int has_argument[] = {
        [OPTION_TEXT] = required_argument,   [OPTION_FLAG] = no_argument,       [OPTION_BOOL] = optional_argument,
        [OPTION_NUMBER] = required_argument, [OPTION_TIME] = required_argument, [OPTION_SET] = required_argument};
    char letters[2 * LETTERS_MAX + 2] = "+";
    size_t n = 0, n_letters = 1;
    while (p->rows[n].name)
        n++;
    _cleanup_(free_p) struct option *table = xcalloc(n + 3, sizeof *table);
    for (size_t i = 0; i < n; i++) {
        const struct option_row *row = &p->rows[i];
        table[i] = (struct option){row->name, has_argument[row->kind], NULL, FIRST_ROW + (int)i};
        if (row->letter)
            n_letters += (size_t)snprintf(letters + n_letters, sizeof letters - n_letters, "%c%s", row->letter,
                                          has_argument[row->kind] ? ":" : "");
    }
    table[n] = (struct option){"version", no_argument, NULL, VERSION};
    table[n + 1] = (struct option){"help", no_argument, NULL, HELP};
    int r = -1;
    for (int opt; r < 0 && (opt = getopt_long(argc, argv, letters, table, NULL)) != -1;)
        r = apply(p, opt, options);
    return r;
}
