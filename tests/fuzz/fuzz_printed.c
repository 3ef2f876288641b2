// SPDX-License-Identifier: Apache-2.0
// Lines that ranks have printed, as an agent sends them.
#include "operator/agents/agent_report.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct printed p;
    if (report_decode_output((const char *)data, size, &a, &p, &err) < 0) {
        must((err.code == ERR_INVALID || err.code == ERR_LIMIT) && err.msg[0]);
    } else {
        must(p.group && p.n <= size);
        for (size_t i = 0; i < p.n; i++)
            must(strlen(p.lines[i].text) <= size);
    }
    arena_done(&a);
    return 0;
}
