// SPDX-License-Identifier: Apache-2.0
// `cadre-agent install DIR`: the init container of a worker pod runs it, so that the agent exists in any image.
#pragma once

#include "common/base/err.h"

#define INSTALL_PACKAGE "cadre.zip" // the Python package, which Python imports from the archive
#define INSTALL_LIBRARY "libcadre.so"
#define INSTALL_NCCL "libcadre_nccl.so" // libcadre.so loads it when a communicator wants NCCL
#define INSTALL_GPUS "cadre-gpus"       // the program that watches GPUs

// Copies the running program to DIR/cadre-agent, mode 0755. Also copies what Python workers need, if ../lib/cadre
// beside the program has it: the package, the library, the libraries that the library needs, and the program that
// watches GPUs. Each file is copied completely or not at all.
int install_program(const char *dir, struct err *err);
// Returns the folder of the running program if these files were installed with it, else NULL. The caller frees it.
char *install_brought(void);
// Returns the path of the program `name` beside the running one, or in ../lib/cadre. NULL = it is not there. The caller
// frees it.
char *install_beside(const char *name);
