// SPDX-License-Identifier: Apache-2.0
// Is NCCL found, linked and loaded, and is the library the one of the header? Needs no GPU.
#include <nccl.h>
#include <stddef.h>
#include <stdio.h>

// The parts of nccl.h that worker/collective/nccl.c copies, so that it builds without nccl.h.
_Static_assert(ncclSuccess == 0 && ncclRemoteError == 6 && ncclInProgress == 7, "results");
_Static_assert(sizeof(ncclUniqueId) == 128, "the unique id");
_Static_assert(ncclInt8 == 0 && ncclUint8 == 1 && ncclInt32 == 2 && ncclUint32 == 3 && ncclInt64 == 4, "types");
_Static_assert(ncclUint64 == 5 && ncclFloat16 == 6 && ncclFloat32 == 7 && ncclFloat64 == 8, "types");
_Static_assert(ncclBfloat16 == 9, "types");
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 24, 0)
_Static_assert(ncclFloat8e4m3 == 10 && ncclFloat8e5m2 == 11, "types");
#endif
_Static_assert(ncclSum == 0 && ncclProd == 1 && ncclMax == 2 && ncclMin == 3 && ncclAvg == 4, "reductions");
_Static_assert(NCCL_API_MAGIC == 0xcafebeef && NCCL_VERSION(2, 14, 0) == 21400, "the configuration");
_Static_assert(offsetof(ncclConfig_t, magic) == 8 && offsetof(ncclConfig_t, version) == 12, "the configuration");
_Static_assert(offsetof(ncclConfig_t, blocking) == 16, "the configuration");

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
