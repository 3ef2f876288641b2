// SPDX-License-Identifier: Apache-2.0
// Decides which calls may make this process run code that their client has sent, for example by unpickling or by
// debugging. A program declares this once (cadre_host_options.code). Without a declaration, no call may.
#pragma once

#include "sdk/c/include/cadre/host.h"

#include <stdbool.h>

void code_right_install(cadre_host_code code);
bool code_right_is_asked(void);      // the proxy should say which clients have the right
bool code_right_admits(bool has_it); // for a call; `has_it`: what the proxy says (RECORD_CODE)
