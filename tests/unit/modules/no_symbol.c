// SPDX-License-Identifier: Apache-2.0
// A shared object that is not a module.
int not_a_module(void);

__attribute__((visibility("default"))) int not_a_module(void)
{
    return 1;
}
