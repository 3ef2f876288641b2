// SPDX-License-Identifier: Apache-2.0
#include "worker/transfer/transfer_fault.h"

#ifdef CADRE_FAULTS
#include "common/base/str.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const phases[] = {"met", "joining", "begun", "moving", "moved", "ready", "decided", "taken"};

void transfer_fault_at(enum transfer_fault_phase phase)
{
    const char *file = getenv("CADRE_TRANSFER_FAULT");
    char wanted[32] = "", rest[16] = "";
    int64_t number = 0;
    FILE *f = file ? fopen(file, "re") : NULL;
    if (!f)
        return;
    int n = fscanf(f, "%31s %15s", wanted, rest);
    fclose(f);
    if (n != 2 || !str_eq(wanted, phases[phase]) || !str_to_i64(rest, &number) || unlink(file) != 0)
        return;
    kill(getpid(), (int)number);
}
#else
void transfer_fault_at(enum transfer_fault_phase phase)
{
    (void)phase;
}
#endif
