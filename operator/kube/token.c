// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/token.h"

#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdlib.h>
#include <string.h>

enum {
    TOKEN_MAX = 64 * 1024,
    TOKEN_EVERY_MS = 60 * 1000,
};

static void wipe(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

// Other characters than visible ASCII cannot be in a header, or would forge another header.
static char *token_clean(const char *text)
{
    size_t n = strlen(text);
    while (n && (unsigned char)text[n - 1] <= ' ')
        n--;
    for (size_t i = 0; i < n; i++)
        if (text[i] <= ' ' || text[i] == 0x7f)
            return NULL;
    return n ? strndup(text, n) : NULL;
}

static int token_read(const char *file, char **ret, struct err *err)
{
    struct buf text = BUF_INIT(TOKEN_MAX);
    int r = file_read(file, &text, err);
    if (r == 0 && !(*ret = token_clean(buf_str(&text))))
        r = err_set(err, ERR_INVALID, "%s holds no token", file);
    if (text.data)
        explicit_bzero(text.data, text.size);
    buf_done(&text);
    return r;
}

int token_init(struct token *t, const char *text, const char *file, int64_t now_ms, struct err *err)
{
    *t = (struct token){.file = text ? NULL : file, .read_ms = now_ms};
    if (text)
        return (t->text = token_clean(text)) ? 0
                                             : err_set(err, ERR_INVALID, "the token has characters that no token has");
    return file ? token_read(file, &t->text, err) : 0;
}

void token_done(struct token *t)
{
    wipe(TAKE_PTR(t->text));
}

bool token_due(const struct token *t, int64_t now_ms)
{
    return t->file && now_ms - t->read_ms >= TOKEN_EVERY_MS;
}

bool token_refresh(struct token *t, int64_t now_ms)
{
    struct err ignored = ERR_INIT; // if the old token is no longer valid, the API server answers 401
    char *fresh = NULL;
    t->read_ms = now_ms;
    if (!t->file || token_read(t->file, &fresh, &ignored) < 0)
        return false;
    if (str_eq(fresh, t->text)) {
        wipe(fresh);
        return false;
    }
    wipe(t->text);
    t->text = fresh;
    t->generation++;
    return true;
}
