// SPDX-License-Identifier: Apache-2.0
// A user's module. Loads the shared object, checks its description, and finds classes and methods.
#pragma once

#include "common/base/err.h"
#include "sdk/c/include/cadre/worker.h"

#include <stdbool.h>

enum { MODULE_CLASSES_MAX = 256, MODULE_METHODS_MAX = 1024, MODULE_NAME_MAX = 63 };

struct module {
    const char *path;
    const cadre_module_info *info;
};

// Loads the module. It stays until the process ends, because threads that it started may still run its code. `path` is
// borrowed. The message of an error tells a user what is wrong with the module or with its image.
int module_load(const char *path, struct module *ret, struct err *err);

// Makes the checks of module_load(): the number of the ABI, no NULL that would crash, names that can be called, no name
// twice, modes that exist. `pulled`: the methods have no function, because the program runs them itself.
int module_check(const char *path, const cadre_module_info *info, bool pulled, struct err *err);

// NULL or "" as name means the only class. NULL with ERR_NOT_FOUND: the message lists the existing ones.
const cadre_class *module_class(const struct module *m, const char *name, struct err *err);
const cadre_method *module_method(const cadre_class *class, const char *name, struct err *err);
