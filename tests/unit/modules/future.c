// SPDX-License-Identifier: Apache-2.0
// A module that calls a function of an SDK that is yet to be written.
#include <cadre/worker.h>

void cadre_from_the_future(void);

const cadre_module_info *cadre_module(void)
{
    cadre_from_the_future();
    return NULL;
}
