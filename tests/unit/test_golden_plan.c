// SPDX-License-Identifier: Apache-2.0
// tests/golden/plan/<case>/{in.json,want.txt}: a WorkerGroup in its world (group_case.h), and what is decided about it.
// want.txt is plan_describe(), with the status on several lines for the reader's sake.
#include "tests/unit/golden.h"
#include "tests/unit/group_case.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <string.h>

// Breaks a line with a status before each condition, and before what follows them.
static void put_line(struct buf *b, const char *line, size_t len)
{
    static const char *const before[] = {
        "{\"type\":", "\"status\":{", "\"worldSize\":", "\"masterAddr\":", "\"placements\":", "\"lastFailure\":"};
    bool status = len > 8 && strncmp(line + 1, " status ", 8) == 0;
    for (size_t at = 0; at < len; at++) {
        for (size_t i = 0; status && i < ARRAY_LEN(before); i++)
            if (str_starts(line + at, before[i]))
                buf_puts(b, "\n    ");
        buf_putc(b, line[at]);
    }
    buf_putc(b, '\n');
}

static void put_bodies(struct buf *b, const struct plan *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct action *x = &p->actions[i];
        if (!x->body || x->kind == ACTION_STATUS)
            continue;
        _cleanup_(free_p) char *text = golden_pretty(x->body, strlen(x->body));
        buf_printf(b, "%s: %s", x->name ? x->name : "dry run", text);
    }
}

static char *decide(const char *name, const char *in, size_t len)
{
    (void)len;
    struct group_case *c = group_case_new(in);
    const struct plan *p = group_case_decide(c);
    struct buf b = BUF_INIT(1024 * 1024);
    const char *text = plan_describe(p, &c->arena);
    for (const char *end; (end = strchr(text, '\n')); text = end + 1)
        put_line(&b, text, (size_t)(end - text));
    if (!b.len)
        buf_puts(&b, "nothing\n");
    if (str_starts(name, "render-"))
        put_bodies(&b, p);
    group_case_free(c);
    return buf_take(&b);
}

int main(void)
{
    return golden_run("tests/golden/plan", "in.json", "want.txt", decide) == 0 ? 0 : 1;
}
