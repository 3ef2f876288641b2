// SPDX-License-Identifier: Apache-2.0
// `cadre-agent install DIR`: what the init container of a worker pod runs, so that the agent is there in any image.
#ifndef CADRE_AGENT_INSTALL_H
#define CADRE_AGENT_INSTALL_H

#include "common/base/err.h"

// Copies the running program to DIR/cadre-agent, mode 0755, whole or not at all.
int install_program(const char *dir, struct err *err);

#endif
