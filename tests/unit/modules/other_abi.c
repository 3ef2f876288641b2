// SPDX-License-Identifier: Apache-2.0
// A module of another ABI. Nothing but its number may be looked at.
#include <cadre/worker.h>

const cadre_module_info *cadre_module(void)
{
    static const cadre_module_info info = {CADRE_ABI + 1, (const char *)1, (const cadre_class *)1, 1};
    return &info;
}
