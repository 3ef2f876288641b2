// SPDX-License-Identifier: Apache-2.0
// A module that was linked with the GPU driver.
#include <cadre/worker.h>

int cuInit(unsigned flags);

const cadre_module_info *cadre_module(void)
{
    cuInit(0);
    return NULL;
}
