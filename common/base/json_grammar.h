// SPDX-License-Identifier: Apache-2.0
// The grammar of JSON: a state machine that takes the bytes of one document, in any parts, and finds its tokens. It is
// strict: it follows RFC 8259, checks UTF-8, and accepts at most JSON_DEPTH_MAX levels. It allocates no memory. The
// reader (json.h) and the check (json_check.h) both use it, so they accept the same texts.
#pragma once

#include "common/base/err.h"
#include "common/base/utf8.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_DEPTH_MAX = 128 };

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_LIST, JSON_OBJECT };

enum json_token {
    JSON_MORE,   // no token: all bytes are used up
    JSON_WRONG,  // the byte at *p makes the document invalid. Feed nothing more
    JSON_NAME,   // the name of a member, with both quotes
    JSON_SCALAR, // a string, a number, true, false or null
    JSON_OPEN,   // the bracket that begins a list or an object
    JSON_CLOSE,  // the bracket that ends it
};

struct json_grammar { // {0} is the start
    bool nuls;        // set at the start: values may have U+0000, names may not
    // The last token:
    bool escaped;        // of a name or a string: it has escapes
    enum json_type type; // of a JSON_SCALAR or JSON_OPEN
    size_t len;          // bytes of a JSON_NAME or JSON_SCALAR, in all parts together
    uint8_t depth;       // brackets that are open after it
    // private
    uint8_t state;
    bool name;                           // the string is a name
    uint64_t lists[JSON_DEPTH_MAX / 64]; // a bit for each open bracket
    struct utf8 utf8;                    // of a character that the end of a part splits
    uint8_t n_escape;                    // bytes of an escape that have come
    uint16_t code;                       // of its last four digits
    const char *word;                    // the bytes of true, false or null that must follow
};

// Finds the next token in the bytes from *p to `end`, and moves *p to the byte after it. After JSON_MORE, continue with
// the next part of the text. A number ends only when the byte after it has come. If a number is the whole document, no
// token comes for it; then json_grammar_ends() is true, and `type` and `len` describe the number.
enum json_token json_grammar_next(struct json_grammar *g, const char **p, const char *end);
// Call it after JSON_OPEN to skip the list or object. The caller finds the matching bracket itself, and continues with
// the byte after it.
void json_grammar_leave(struct json_grammar *g);
// Call it after the last byte. Returns true if the document is complete.
bool json_grammar_ends(const struct json_grammar *g);
// Puts the reason into `err` after JSON_WRONG, or with `ended` after the last byte of an incomplete document. `at` is
// the offset of the wrong byte, or of the end. Returns ERR_INVALID, or ERR_LIMIT if the nesting is too deep.
int json_grammar_fault(const struct json_grammar *g, size_t at, bool ended, struct err *err);
