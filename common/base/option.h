// SPDX-License-Identifier: Apache-2.0
// The command line of a program, read by a table with one row for each option.
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum option_kind {
    OPTION_TEXT,   // const char *; the value as it is
    OPTION_FLAG,   // bool: true; takes no value
    OPTION_BOOL,   // bool: true or false; --x is --x=true
    OPTION_NUMBER, // int, from min to max
    OPTION_TIME,   // int64_t: milliseconds, more than 0 (duration.h)
    OPTION_SET,    // `set` reads the value
};

// Returns NULL, or why the value is wrong: "must be wss://HOST:PORT". The text must stay valid.
typedef const char *(*option_set)(void *options, const char *value);

struct option_row {
    const char *name; // without "--"; NULL ends the table
    enum option_kind kind;
    size_t offset; // of the field in the program's struct of options
    int min, max;
    option_set set;
    int letter; // of the short form; 0 = none
};

struct option_program {
    const char *name; // "cadre-agent"
    const char *help;
    const struct option_row *rows; // without --version and --help, which every program has
    int usage;                     // the exit status of a wrong command line
    bool last_line;                // the last line on stderr is the reason: no hint at --help follows
};

// Reads options from argv[optind], up to the first argument that is not an option. -1 = continue at argv[optind].
// Otherwise exit with this status: it has printed the error, the version or the help.
int option_parse(const struct option_program *p, int argc, char **argv, void *options);

// Prints "PROGRAM: WHAT VALUE: WRONG" and returns p->usage.
int option_wrong(const struct option_program *p, const char *what, const char *value, const char *wrong);
