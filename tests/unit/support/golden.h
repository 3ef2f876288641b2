// SPDX-License-Identifier: Apache-2.0
// Golden tests: <dir>/<case>/ holds an input and the wanted output. A runner produces the output of every case; with
// UPDATE_GOLDEN=1 in the environment it becomes the wanted one, to be reviewed in the diff.
#pragma once

#include <stddef.h>

// The output of one case, from malloc().
typedef char *(*golden_fn)(const char *name, const char *in, size_t len);

// Runs every case of the folder (path from the root of the tree), in order of names. Returns how many differ, each
// named on stderr with the output that was produced; -1 if there is no case at all.
int golden_run(const char *dir, const char *in_name, const char *want_name, golden_fn fn);

// Hands the input of every case to `fn`; returns how many there are.
int golden_each(const char *dir, const char *in_name, void (*fn)(const char *in));

// JSON on many lines, every token as it was; from malloc(). Text that is not JSON comes back as it is.
char *golden_pretty(const char *json, size_t len);
