// SPDX-License-Identifier: Apache-2.0
// Is NCCL found, linked and loaded, and is the library the one of the header? Needs no GPU.
#include <nccl.h>
#include <stdio.h>

int main(void)
{
    int version = 0;
    ncclResult_t r = ncclGetVersion(&version);
    if (r != ncclSuccess || version != NCCL_VERSION_CODE) {
        fprintf(stderr, "nccl_version: the library says %d (result %d), the header %d\n", version, (int)r,
                NCCL_VERSION_CODE);
        return 1;
    }
    printf("%d.%d.%d\n", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH);
    return 0;
}
