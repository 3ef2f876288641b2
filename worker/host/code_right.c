// SPDX-License-Identifier: Apache-2.0
#include "worker/host/code_right.h"

static cadre_host_code installed = CADRE_HOST_CODE_NONE;

void code_right_install(cadre_host_code code)
{
    installed = code;
}

bool code_right_is_asked(void)
{
    return installed == CADRE_HOST_CODE_RIGHT;
}

bool code_right_admits(bool has_it)
{
    return installed == CADRE_HOST_CODE_ALL || (installed == CADRE_HOST_CODE_RIGHT && has_it);
}
