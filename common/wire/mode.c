// SPDX-License-Identifier: Apache-2.0
#include "common/wire/mode.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/record.h"

static const char *const dispatch_names[RECORD_DISPATCH_COUNT] = {
    [RECORD_ONE_TO_ALL] = "ONE_TO_ALL",
    [RECORD_ALL_TO_ALL] = "ALL_TO_ALL",
    [RECORD_DP_COMPUTE] = "DP_COMPUTE",
    [RECORD_DP_COMPUTE_PROTO] = "DP_COMPUTE_PROTO",
    [RECORD_3D_PROTO] = "3D_PROTO",
    [RECORD_3D_ALL_MICRO_DP] = "3D_ALL_MICRO_DP",
    [RECORD_3D_PP_ONLY] = "3D_PP_ONLY",
    [RECORD_SPLIT] = "SPLIT",
    [RECORD_DP_COMPUTE_METRIC] = "DP_COMPUTE_METRIC",
};
static const char *const execute_names[RECORD_EXECUTE_COUNT] = {
    [RECORD_ALL] = "ALL",
    [RECORD_RANK_ZERO] = "RANK_ZERO",
    [RECORD_ANY] = "ANY",
};

static const char *name_of(const char *const *names, size_t n, unsigned mode)
{
    return mode < n && names[mode] ? names[mode] : "?";
}

static uint8_t number_of(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 1; i < n; i++)
        if (str_eq(names[i], name))
            return (uint8_t)i;
    return 0;
}

static void list(const char *const *names, size_t n, struct buf *out)
{
    for (size_t i = 1; i < n; i++)
        buf_printf(out, "%s%s", i > 1 ? ", " : "", names[i]);
}

const char *mode_dispatch_name(unsigned dispatch)
{
    return name_of(dispatch_names, ARRAY_LEN(dispatch_names), dispatch);
}

const char *mode_execute_name(unsigned execute)
{
    return name_of(execute_names, ARRAY_LEN(execute_names), execute);
}

uint8_t mode_dispatch(const char *name)
{
    return number_of(dispatch_names, ARRAY_LEN(dispatch_names), name);
}

uint8_t mode_execute(const char *name)
{
    return number_of(execute_names, ARRAY_LEN(execute_names), name);
}

void mode_dispatch_list(struct buf *out)
{
    list(dispatch_names, ARRAY_LEN(dispatch_names), out);
}

void mode_execute_list(struct buf *out)
{
    list(execute_names, ARRAY_LEN(execute_names), out);
}
