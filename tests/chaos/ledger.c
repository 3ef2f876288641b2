// SPDX-License-Identifier: Apache-2.0
// A module that writes a line "TOKEN RANK" to disk for each call that it runs.
#include <cadre/worker.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ledger {
    int fd, rank;
};

static cadre_result create(cadre_worker *worker, const char *init, size_t init_len, void **ret_self)
{
    const char *file = NULL;
    (void)init, (void)init_len;
    cadre_result r = cadre_init_string(worker, "file", NULL, &file);
    if (r != CADRE_OK)
        return r;
    struct ledger *l = calloc(1, sizeof *l);
    if (!l)
        return CADRE_OUT_OF_MEMORY;
    l->rank = cadre_rank(worker);
    l->fd = file ? open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (l->fd < 0) {
        free(l);
        return cadre_create_fail(worker, "cannot open %s: %s", file ? file : "no file", strerror(errno));
    }
    *ret_self = l;
    return CADRE_OK;
}

static void destroy(void *self)
{
    struct ledger *l = self;
    close(l->fd);
    free(l);
}

// note(token, ms): takes ms milliseconds, and returns token * 100 + rank.
static cadre_result note(void *self, cadre_call *call)
{
    const struct ledger *l = self;
    char line[64];
    int64_t token = 0, ms = 0;
    cadre_result r = cadre_arg_int64(call, 0, "token", &token);
    if (r == CADRE_OK)
        r = cadre_arg_int64(call, 1, "ms", &ms);
    if (r != CADRE_OK)
        return r;
    int n = snprintf(line, sizeof line, "%lld %d\n", (long long)token, l->rank);
    if (write(l->fd, line, (size_t)n) != n)
        return cadre_fail(call, "cannot write: %s", strerror(errno));
    usleep((useconds_t)ms * 1000);
    return cadre_return_int64(call, token * 100 + l->rank);
}

static const cadre_method methods[] = {{"note", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, note, NULL}};
static const cadre_class classes[] = {{"Ledger", create, destroy, methods, 1}};
static const cadre_module_info info = {CADRE_ABI, "ledger", classes, 1};

const cadre_module_info *cadre_module(void)
{
    return &info;
}
