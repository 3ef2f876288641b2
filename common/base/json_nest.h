// SPDX-License-Identifier: Apache-2.0
// Where an object or a list ends, without a look at what is in it.
#ifndef CADRE_BASE_JSON_NEST_H
#define CADRE_BASE_JSON_NEST_H

// `p` is at its '{' or '['. The byte behind the bracket that closes it; NULL if that does not come before `end`.
// Strings are seen as such, but nothing is checked: "{]" ends.
const char *json_nest_end(const char *p, const char *end);

#endif
