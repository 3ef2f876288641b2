// SPDX-License-Identifier: Apache-2.0
#include "cli/print_result.h"

#include "cli/plain.h"
#include "cli/report.h"

#include <stdio.h>
#include <unistd.h>

static void print_rank(int64_t rank, cadre_client_json result)
{
    printf("%lld: ", (long long)rank);
    plain_print_json(stdout, result.text, result.len);
}

// A batch is written to a file as it is, for programs that read safetensors. A terminal cannot show it.
static int print_bytes(cadre_client_json result)
{
    struct err err = ERR_INIT;
    if (isatty(STDOUT_FILENO))
        err_set(&err, ERR_INVALID,
                "the method ran, and its result is a batch of tensors (%zu bytes): send it to a file", result.len);
    else if (fwrite(result.text, 1, result.len, stdout) != result.len)
        err_set(&err, ERR_IO, "cannot write the result");
    return err.code ? report_err(&err) : 0;
}

int result_print(const struct cli_options *o, const struct proxy *c)
{
    cadre_client_json list = {buf_str(&c->result), c->result.len}, item;
    if (cadre_client_content_of(list) != CADRE_CLIENT_CONTENT_JSON)
        return print_bytes(list);
    if (o->output != OUTPUT_RANKS)
        plain_print_json(stdout, list.text, list.len);
    else if (c->rank >= 0)
        print_rank(c->rank, list);
    else
        for (int64_t rank = 0; cadre_client_list_next(&list, &item) == 1; rank++)
            print_rank(rank, item);
    return 0;
}
