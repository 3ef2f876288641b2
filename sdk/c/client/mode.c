// SPDX-License-Identifier: Apache-2.0
#include "common/wire/mode.h"
#include "sdk/c/include/cadre/client.h"

const char *cadre_client_dispatch_name(int dispatch)
{
    const struct dispatch_mode *m = dispatch > 0 ? mode_of((unsigned)dispatch) : NULL;
    return m ? m->name : NULL;
}

const char *cadre_client_execute_name(int execute)
{
    return execute > 0 && execute < RECORD_EXECUTE_COUNT ? mode_execute_name((unsigned)execute) : NULL;
}
