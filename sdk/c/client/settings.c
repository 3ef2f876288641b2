// SPDX-License-Identifier: Apache-2.0
#include "sdk/c/client/settings.h"

#include "common/base/duration.h"
#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

enum { TOKEN_MAX = 64 << 10, CA_MAX = 1 << 20, NAME_MAX_LEN = 253 };

int settings_copy_sized(void *to, size_t size, const void *from, const char *what, struct err *err)
{
    size_t given;
    memcpy(&given, from, sizeof given);
    if (given < sizeof given)
        return err_set(err, ERR_INVALID, "%s was not initialised: its size is %zu", what, given);
    for (size_t i = size; i < given; i++)
        if (((const char *)from)[i])
            return err_set(err, ERR_INVALID, "%s uses options that this version of the library (%s) does not have",
                           what, CADRE_VERSION);
    memset(to, 0, size);
    memcpy(to, from, MIN(given, size));
    return 0;
}

// The content of the file; the caller frees it.
static char *read_file(const char *path, const char *what, size_t max, struct err *err)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(max);
    if (file_read(path, &text, err) == 0)
        return buf_take(&text);
    err_set(err, err->code == ERR_LIMIT ? ERR_LIMIT : ERR_IO, "%s: %.500s", what, err->msg);
    return NULL;
}

char *settings_token(const struct settings *s, struct err *err)
{
    if (!s->token_file)
        return s->token ? xstrdup(s->token) : NULL;
    char *token = read_file(s->token_file, "the token file", TOKEN_MAX, err);
    if (!token)
        return NULL;
    token[strcspn(token, " \t\r\n")] = '\0';
    if (*token)
        return token;
    free(token);
    err_set(err, ERR_UNAUTHORIZED, "the token file %s is empty", s->token_file);
    return NULL;
}

// The name becomes part of a path, so it must not contain anything that leaves its place there.
static int check_name(const char *what, const char *name, struct err *err)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";
    size_t len = strlen(name);
    if (len >= 1 && len <= NAME_MAX_LEN && strspn(name, allowed) == len)
        return 0;
    return err_set(err, ERR_INVALID, "%s \"%s\" is not a name of Kubernetes: letters a to z, digits, - and .", what,
                   name);
}

static int set_address(struct settings *s, const cadre_client_options *o, bool *ret_tls, struct err *err)
{
    if (str_empty(o->address))
        return err_set(err, ERR_INVALID, "no address: wss://host:port, ws://host:port or unix:/path of a proxy");
    s->url = xstrdup(o->address);
    *ret_tls = str_starts(s->url, "wss://");
    s->address = *ret_tls ? s->url + 6 : str_starts(s->url, "ws://") ? s->url + 5 : s->url;
    bool is_unix = str_starts(s->url, "unix:");
    if ((s->address == s->url) != is_unix || (!is_unix && strchr(s->address, '/')))
        return err_set(err, ERR_INVALID,
                       "\"%s\" is not an address; there are wss://host:port, ws://host:port and unix:/path", s->url);
    const size_t path_max = sizeof((struct sockaddr_un *)NULL)->sun_path - 1;
    size_t len = is_unix ? strlen(s->url + strlen("unix:")) : 1;
    if (len < 1 || len > path_max) // the path is after the reason, because it may be cut off
        return err_set(err, ERR_INVALID, "the path of a Unix socket has 1 to %zu bytes, and this one has %zu: \"%s\"",
                       path_max, len, s->url);
    return 0;
}

static int set_path(struct settings *s, const cadre_client_options *o, struct err *err)
{
    const char *prefix = o->path_prefix ? o->path_prefix : "";
    size_t len = strlen(prefix);
    while (len && prefix[len - 1] == '/')
        len--;
    if (len && prefix[0] != '/')
        return err_set(err, ERR_INVALID, "the path prefix \"%s\" does not begin with /", prefix);
    if (!o->ns)
        return err_set(err, ERR_INVALID, "no namespace: set the namespace of the groups to call");
    if (check_name("namespace", o->ns, err) < 0 || (o->group && check_name("group", o->group, err) < 0))
        return err->code;
    s->ns = xstrdup(o->ns);
    s->group = o->group ? xstrdup(o->group) : NULL;
    s->path = xasprintf("%.*s/v1/namespaces/%s%s%s", (int)len, prefix, s->ns, s->group ? "/workergroups/" : "",
                        s->group ? s->group : "");
    return 0;
}

static int set_trust(struct settings *s, const cadre_client_options *o, bool tls, struct err *err)
{
    if (o->token && o->token_file)
        return err_set(err, ERR_INVALID, "set only one of token and token_file");
    if (o->ca_pem && o->ca_file)
        return err_set(err, ERR_INVALID, "set only one of ca_pem and ca_file");
    s->token = o->token ? xstrdup(o->token) : NULL;
    s->token_file = o->token_file ? xstrdup(o->token_file) : NULL;
    free(settings_token(s, err)); // checks that it can be read
    if (err->code)
        return err->code;
    s->token_in_hello = o->token_in_hello;
    s->server_name = o->server_name ? xstrdup(o->server_name) : NULL;
    if (!tls)
        return 0;
    _cleanup_(free_p) char *ca = o->ca_file ? read_file(o->ca_file, "the CA file", CA_MAX, err) : NULL;
    if (err->code)
        return err->code;
    s->tls = ws_tls_new(ca ? ca : o->ca_pem, err);
    return s->tls ? 0 : err->code;
}

static int set_limits(struct settings *s, const cadre_client_options *o, struct err *err)
{
    if (o->connect_timeout_ms < 0 || o->connect_timeout_ms > DURATION_MAX_MS || o->unreachable_ms < 0 ||
        o->unreachable_ms > DURATION_MAX_MS || o->max_calls > SETTINGS_CALLS_MAX)
        return err_set(err, ERR_INVALID, "a negative time, or one over 7 days, or max_calls over %d",
                       SETTINGS_CALLS_MAX);
    s->connect_ms = o->connect_timeout_ms ? o->connect_timeout_ms : 10 * 1000;
    s->unreachable_ms = o->unreachable_ms ? o->unreachable_ms : 60 * 1000;
    s->max_calls = o->max_calls ? o->max_calls : 10 * 1000;
    s->max_body = o->max_body ? o->max_body : (size_t)64 << 20;
    s->max_bytes = o->max_bytes ? o->max_bytes : (size_t)512 << 20;
    s->sleeps = o->no_spin;
    s->threaded = o->threaded;
    s->on_connection = o->on_connection;
    s->on_output = o->on_output;
    s->ctx = o->ctx;
    return 0;
}

int settings_init(struct settings *s, const cadre_client_options *options, struct err *err)
{
    cadre_client_options o = {0};
    bool tls = false;
    *s = (struct settings){0};
    if (settings_copy_sized(&o, sizeof o, options, "cadre_client_options", err) < 0)
        return err->code;
    if (set_address(s, &o, &tls, err) < 0 || set_path(s, &o, err) < 0 || set_trust(s, &o, tls, err) < 0 ||
        set_limits(s, &o, err) < 0)
        settings_done(s);
    return err->code;
}

void settings_done(struct settings *s)
{
    free(s->url);
    free(s->path);
    free(s->ns);
    free(s->group);
    free(s->token);
    free(s->token_file);
    free(s->server_name);
    ws_tls_unref(s->tls);
    *s = (struct settings){0};
}
