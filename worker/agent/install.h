// SPDX-License-Identifier: Apache-2.0
// `cadre-agent install DIR`: the init container of a worker pod runs it, so that the agent exists in any image.
#pragma once

#include "common/base/err.h"

#define INSTALL_PACKAGE "cadre.zip" // the package of Python, which Python imports as it is
#define INSTALL_LIBRARY "libcadre.so"
#define INSTALL_NCCL "libcadre_nccl.so" // which that library loads where a communicator wants it
#define INSTALL_GPUS "cadre-gpus"       // the program that watches GPUs

// Copies the running program to DIR/cadre-agent, mode 0755, and what workers in Python need, where the folder
// ../lib/cadre beside the program has it: the package, the library, and the libraries that this needs; and the program
// that watches GPUs. Each whole or not at all.
int install_program(const char *dir, struct err *err);
// The folder of the running program, if it was installed together with those; NULL = it was not. The caller's.
char *install_brought(void);
// The path of that program beside the running one, or in ../lib/cadre; NULL = it is not there. The caller's.
char *install_beside(const char *name);
