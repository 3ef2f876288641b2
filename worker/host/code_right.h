// SPDX-License-Identifier: Apache-2.0
// Whose calls may run their client's code in this process, as unpickling and debugging do. A program declares this once
// (cadre_host_options.code). Otherwise nobody's calls may.
#pragma once

#include "sdk/c/include/cadre/host.h"

#include <stdbool.h>

void code_right_install(cadre_host_code code);
bool code_right_is_asked(void);      // the proxy is to say which clients have the right
bool code_right_admits(bool has_it); // a call; `has_it`: as the proxy says (RECORD_CODE)
