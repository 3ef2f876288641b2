// SPDX-License-Identifier: Apache-2.0
#include "worker/host/module.h"

#include "common/base/buf.h"
#include "common/base/map.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/mode.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A name is a letter or '_', then letters, digits and '_'. Names that begin with "__" are reserved for methods of the
// host.
static bool name_valid(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    size_t len = strnlen(name, MODULE_NAME_MAX + 1);
    return len > 0 && len <= MODULE_NAME_MAX && strspn(name, letters) == len && !(name[0] >= '0' && name[0] <= '9') &&
           !str_starts(name, "__");
}

static int check_name(const char *what, const char *name, struct map *seen, struct err *err)
{
    if (!name)
        return err_set(err, ERR_INVALID, "%s has no name", what);
    if (!name_valid(name))
        return err_set(err, ERR_INVALID,
                       "%s is named '%.80s': a name is up to %d letters, digits and '_', not beginning with a digit "
                       "or \"__\"",
                       what, name, MODULE_NAME_MAX);
    if (map_has(seen, name))
        return err_set(err, ERR_INVALID, "%s is named '%s' like another before it", what, name);
    map_set(seen, name, seen);
    return 0;
}

static int check_method(const cadre_method *m, size_t i, bool pulled, struct map *seen, struct err *err)
{
    char what[32];
    snprintf(what, sizeof what, "method %zu", i);
    int r = check_name(what, m->name, seen, err);
    if (r < 0)
        return r;
    if (!m->run && !pulled)
        return err_set(err, ERR_INVALID, "method %s has no function", m->name);
    if (!mode_of(m->dispatch))
        return err_set(err, ERR_INVALID, "method %s declares dispatch mode %d, which does not exist", m->name,
                       (int)m->dispatch);
    if (!mode_execute_of(m->execute))
        return err_set(err, ERR_INVALID, "method %s declares execute mode %d, which does not exist", m->name,
                       (int)m->execute);
    return 0;
}

static int check_class(const cadre_class *c, size_t i, bool pulled, struct map *seen, struct err *err)
{
    struct map methods = MAP_INIT;
    char what[32];
    snprintf(what, sizeof what, "class %zu", i);
    int r = check_name(what, c->name, seen, err);
    if (r < 0)
        return r;
    if (!c->create)
        return err_set(err, ERR_INVALID, "class %s has no constructor (create)", c->name);
    if (c->n_methods > MODULE_METHODS_MAX || (c->n_methods && !c->methods))
        return err_set(err, ERR_INVALID, "class %s has %zu methods in %s table; at most %d", c->name, c->n_methods,
                       c->methods ? "its" : "no", MODULE_METHODS_MAX);
    for (size_t k = 0; k < c->n_methods && r == 0; k++)
        r = check_method(&c->methods[k], k, pulled, &methods, err);
    if (r < 0)
        err_wrap(err, "class %s", c->name);
    map_done(&methods);
    return r;
}

static int check_classes(const cadre_module_info *info, bool pulled, struct err *err)
{
    struct map classes = MAP_INIT;
    int r = 0;
    if (!info->classes || info->n_classes == 0 || info->n_classes > MODULE_CLASSES_MAX)
        return err_set(err, ERR_INVALID, "it has %zu classes in %s table; 1 to %d are possible", info->n_classes,
                       info->classes ? "its" : "no", MODULE_CLASSES_MAX);
    for (size_t i = 0; i < info->n_classes && r == 0; i++)
        r = check_class(&info->classes[i], i, pulled, &classes, err);
    map_done(&classes);
    return r;
}

enum { MODULE_ABI_MIN = 1 };

int module_check(const char *path, const cadre_module_info *info, bool pulled, struct err *err)
{
    if (!info)
        return err_set(err, ERR_INVALID, "module %s: cadre_module() returned NULL", path);
    // The layout of another ABI is unknown. ABI 2 only adds functions to ABI 1.
    if (info->abi < MODULE_ABI_MIN || info->abi > CADRE_ABI)
        return err_set(err, ERR_INVALID,
                       "module %s was built for ABI %u, this cadre-worker speaks %u: rebuild it with the SDK of "
                       "version %s",
                       path, info->abi, CADRE_ABI, CADRE_VERSION);
    int r = check_classes(info, pulled, err);
    return r < 0 ? err_wrap(err, "module %s", path) : 0;
}

// Explains the error of the loader to the person who built the image.
static int explain_load(const char *path, const char *said, struct err *err)
{
    if (strstr(said, "libcuda.so.1: cannot open"))
        return err_set(err, ERR_NOT_FOUND,
                       "module %s does not load: %s: is there a GPU driver on this machine? In a "
                       "cluster, the pod must also request nvidia.com/gpu",
                       path, said);
    if (strstr(said, "cannot open shared object file"))
        return err_set(err, ERR_NOT_FOUND,
                       "module %s does not load: %s: the module needs that library; add it to the image or to "
                       "LD_LIBRARY_PATH",
                       path, said);
    if (strstr(said, "undefined symbol: cadre_"))
        return err_set(err, ERR_INVALID,
                       "module %s does not load: %s: this cadre-worker (version %s) does not have it; was the module "
                       "built with a newer SDK?",
                       path, said, CADRE_VERSION);
    if (strstr(said, "undefined symbol"))
        return err_set(err, ERR_INVALID, "module %s does not load: %s: link it with the library that has it", path,
                       said);
    if (strstr(said, "invalid ELF header") || strstr(said, "file too short") || strstr(said, "wrong ELF class"))
        return err_set(err, ERR_INVALID, "module %s is not a shared object for this machine: %s", path, said);
    return err_set(err, ERR_INVALID, "module %s does not load: %s", path, said);
}

int module_load(const char *path, struct module *ret, struct err *err)
{
    // The path is absolute, because dlopen() searches other folders for a bare name.
    _cleanup_(free_p) char *real = realpath(path, NULL);
    if (!real)
        return err_set(err, ERR_NOT_FOUND, "module %s: %s (the path is one inside the worker's container)", path,
                       strerror(errno));
    void *handle = dlopen(real, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *said = dlerror();
        return explain_load(path, said ? said : "no reason given", err);
    }
    const cadre_module_info *(*describe)(void);
    void *symbol = dlsym(handle, "cadre_module");
    if (!symbol)
        return err_set(err, ERR_INVALID,
                       "module %s does not export cadre_module(): define it with CADRE_EXPORT, as extern \"C\" in C++",
                       path);
    memcpy(&describe, &symbol, sizeof describe);
    const cadre_module_info *info = describe();
    int r = module_check(path, info, false, err);
    if (r == 0)
        *ret = (struct module){path, info};
    return r;
}

enum { LIST_MAX = 400 };

const cadre_class *module_class(const struct module *m, const char *name, struct err *err)
{
    _cleanup_(buf_done) struct buf names = BUF_INIT(LIST_MAX);
    if (str_empty(name) && m->info->n_classes == 1)
        return &m->info->classes[0];
    for (size_t i = 0; i < m->info->n_classes; i++) {
        const cadre_class *c = &m->info->classes[i];
        if (str_eq(c->name, name))
            return c;
        buf_printf(&names, "%s%s", i ? ", " : "", c->name);
    }
    if (str_empty(name))
        err_set(err, ERR_NOT_FOUND, "module %s has several classes (%s): set one of them as the class", m->path,
                buf_str(&names));
    else
        err_set(err, ERR_NOT_FOUND, "module %s has no class %.80s; it has %s", m->path, name, buf_str(&names));
    return NULL;
}

const cadre_method *module_method(const cadre_class *class, const char *name, struct err *err)
{
    _cleanup_(buf_done) struct buf names = BUF_INIT(LIST_MAX);
    for (size_t i = 0; i < class->n_methods; i++)
        if (str_eq(class->methods[i].name, name))
            return &class->methods[i];
    for (size_t i = 0; i < class->n_methods; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", class->methods[i].name);
    err_set(err, ERR_NOT_FOUND, "class %s has no method %.80s; it has %s", class->name, name ? name : "",
            names.len ? buf_str(&names) : "none");
    return NULL;
}
