// SPDX-License-Identifier: Apache-2.0
#include "cli/kubectl.h"

#include "common/base/mem.h"

#include <stdarg.h>
#include <string.h>

enum { MESSAGE_MAX = 16 << 10, NAME_MAX_LEN = 1024, OBJECTS_MAX = 64 << 20 };

struct kubectl_args kubectl_args(const struct cli_options *o, ...)
{
    struct kubectl_args args = {{"kubectl"}};
    size_t n = 1;
    va_list ap;
    for (size_t i = 0; i < o->n_kubectl; i++)
        args.argv[n++] = o->kubectl[i];
    va_start(ap, o);
    for (const char *arg; n < KUBECTL_ARGS_MAX - 1 && (arg = va_arg(ap, const char *));)
        args.argv[n++] = arg;
    va_end(ap);
    return args;
}

int kubectl_run(const struct kubectl_args *args, struct buf *out, struct err *err)
{
    _cleanup_(buf_done) struct buf said = BUF_INIT(MESSAGE_MAX);
    int status = process_capture(args->argv, out, &said, err);
    if (status > 0) {
        const char *text = buf_str(&said);
        size_t len = strlen(text);
        while (len && text[len - 1] == '\n')
            len--;
        err_set(err, strstr(text, "(NotFound)") ? ERR_NOT_FOUND : ERR_INTERNAL, "%.*s", len ? (int)len : 100,
                len ? text : "kubectl failed and did not say why");
    }
    return err->code;
}

cJSON *kubectl_json(const struct kubectl_args *args, struct err *err)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(OBJECTS_MAX);
    cJSON *root = NULL;
    if (kubectl_run(args, &out, err) == 0 && !(root = document_read(&out, err)))
        err_wrap(err, "what kubectl printed");
    return root;
}

char *kubectl_namespace(const struct cli_options *o, struct err *err)
{
    if (o->ns)
        return xstrdup(o->ns);
    _cleanup_(buf_done) struct buf out = BUF_INIT(NAME_MAX_LEN);
    const struct kubectl_args args =
        kubectl_args(o, "config", "view", "--minify", "--output", "jsonpath={..namespace}", NULL);
    char *ns = NULL;
    if (kubectl_run(&args, &out, err) == 0)
        ns = xstrdup(out.len ? buf_str(&out) : "default");
    else if (err->code == ERR_INTERNAL) // kubectl ran, and knows no cluster
        err_wrap(err, "there is no local run of %s, and kubectl knows no cluster", o->group ? o->group : "a group");
    return ns;
}
