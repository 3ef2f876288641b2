// SPDX-License-Identifier: Apache-2.0
// How many bytes this thread has sent on sockets. Link it with -Wl,--wrap=send,--wrap=sendmsg.
#pragma once

#include <stdint.h>

uint64_t bytes_sent(void);
