// SPDX-License-Identifier: Apache-2.0
// batch_call ADDRESS NAMESPACE GROUP METHOD DTYPE HEAD NUMBER...: calls a method with a batch: tensor "a" of F32, F64
// or I64, and column "row". It prints the result: "a: 0 1 row: [...]", or a list of these. HEAD is "" or lines with
// "pad", "split=JSON", "collect=JSON", "dispatch=NUMBER". For test_local_modes.sh.
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/batch.h"
#include "sdk/c/include/cadre/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double value_at(const cadre_client_tensor *t, size_t i)
{
    float f;
    double d;
    int64_t n;
    if (str_eq(t->dtype, "F32")) {
        memcpy(&f, (const char *)t->data + i * sizeof f, sizeof f);
        return (double)f;
    }
    if (str_eq(t->dtype, "F64")) {
        memcpy(&d, (const char *)t->data + i * sizeof d, sizeof d);
        return d;
    }
    memcpy(&n, (const char *)t->data + i * sizeof n, sizeof n);
    return (double)n;
}

static void print_batch(cadre_client_json doc)
{
    struct arena a = ARENA_INIT;
    struct safetensors s;
    struct err err = ERR_INIT;
    cadre_client_tensor t;
    cadre_client_error error;
    if (cadre_client_batch_tensor(doc, "a", &t, &error) != CADRE_CLIENT_OK) {
        printf("%s\n", error.message);
        return;
    }
    printf("%s", t.name);
    for (size_t i = 0; i < t.shape[0]; i++)
        printf(" %g", value_at(&t, i));
    if (safetensors_read(doc.text, doc.len, &a, &s, &err) == 0 && safetensors_meta_get(&s, BATCH_COLUMNS))
        printf(" %s", safetensors_meta_get(&s, BATCH_COLUMNS));
    printf("\n");
    arena_done(&a);
}

static void print(cadre_client_json result)
{
    cadre_client_json item;
    switch (cadre_client_content_of(result)) {
    case CADRE_CLIENT_CONTENT_BATCH:
        print_batch(result);
        break;
    case CADRE_CLIENT_CONTENT_LIST:
        while (cadre_client_list_next(&result, &item) == 1)
            print(item);
        break;
    default:
        printf("%.*s\n", (int)result.len, result.text);
    }
}

static void *values_of(const char *dtype, char **numbers, size_t n, size_t *ret_len)
{
    char *out = xcalloc(n + 1, 8), *at = out;
    for (size_t i = 0; i < n; i++) {
        double d = strtod(numbers[i], NULL);
        float f = (float)d;
        int64_t v = (int64_t)d;
        size_t size = str_eq(dtype, "F32") ? sizeof f : sizeof d;
        memcpy(at, str_eq(dtype, "F32") ? (void *)&f : str_eq(dtype, "F64") ? (void *)&d : (void *)&v, size);
        at += size;
    }
    *ret_len = (size_t)(at - out);
    return out;
}

static void read_head(char *head, cadre_client_request *r)
{
    for (char *line = head, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end)
            *end++ = '\0';
        if (str_eq(line, "pad"))
            r->pad = 1;
        else if (str_starts(line, "split="))
            r->split = line + 6;
        else if (str_starts(line, "collect="))
            r->collect = line + 8;
        else if (str_starts(line, "dispatch="))
            r->dispatch = (int)strtol(line + 9, NULL, 10);
    }
}

static char *rows_of(size_t n)
{
    struct buf b = BUF_INIT(1 << 16);
    buf_puts(&b, "{\"row\":[");
    for (size_t i = 0; i < n; i++)
        buf_printf(&b, "%s\"r%zu\"", i ? "," : "", i);
    buf_puts(&b, "]}");
    return buf_take(&b);
}

int main(int argc, char **argv)
{
    cadre_client_options o;
    cadre_client_request r;
    cadre_client *client;
    cadre_client_error error;
    cadre_client_json result;
    if (argc < 7)
        return 2;
    size_t n = (size_t)argc - 7;
    _cleanup_(free_p) char *columns = rows_of(n);
    cadre_client_tensor a = {.name = "a", .dtype = argv[5], .shape = {n}, .n_dims = 1};
    _cleanup_(free_p) void *values = values_of(argv[5], argv + 7, n, &a.len), *batch = NULL;
    a.data = values;
    cadre_client_options_init(&o);
    o.address = argv[1];
    o.ns = argv[2];
    o.group = argv[3];
    o.token = "any"; // cadre-local trusts everybody who reaches its socket
    cadre_client_request_init(&r, argv[4]);
    r.timeout_ms = 20 * 60 * 1000; // only a call that hangs takes longer
    read_head(argv[6], &r);
    cadre_client_code code = cadre_client_batch_write(&a, 1, columns, NULL, &batch, &r.batch_len, &error);
    r.batch = batch;
    if (code == CADRE_CLIENT_OK)
        code = cadre_client_open(&o, &client, &error);
    if (code != CADRE_CLIENT_OK) {
        printf("%s %s\n", error.name, error.message);
        return 1;
    }
    code = cadre_client_call(client, &r, &result, &error);
    if (code == CADRE_CLIENT_OK)
        print(result);
    else
        printf("%s %s\n", error.name, error.message);
    cadre_client_close(client);
    return code != CADRE_CLIENT_OK;
}
