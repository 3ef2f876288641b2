// SPDX-License-Identifier: Apache-2.0
// Stands in for the GPU driver's library while needs_driver.so is linked; at run time it is not found.
int cuInit(unsigned flags);

__attribute__((visibility("default"))) int cuInit(unsigned flags)
{
    return (int)flags;
}
