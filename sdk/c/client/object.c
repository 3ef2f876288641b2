// SPDX-License-Identifier: Apache-2.0
// References: calls that the proxy and the workers serve themselves.
#include "common/wire/batch.h"
#include "sdk/c/client/fault.h"
#include "sdk/c/client/settings.h"
#include "sdk/c/include/cadre/client.h"

cadre_client_code cadre_client_object_put(cadre_client *c, const cadre_client_request *to, cadre_client_json value,
                                          cadre_client_json *ret, cadre_client_error *error)
{
    cadre_client_request r;
    struct err err = ERR_INIT;
    cadre_client_request_init(&r, NULL);
    if (to && settings_copy_sized(&r, sizeof r, to, "cadre_client_request", &err) < 0)
        return fault_return(error, &err);
    r.size = sizeof r;
    r.method = "object.put";
    r.args = (cadre_client_json){NULL, 0};
    r.batch = r.per_rank = NULL;
    r.role = NULL; // all of them have one store
    r.no_result = r.by_reference = 0;
    if (value.text && batch_is_safetensors(value.text, value.len)) {
        r.batch = value.text;
        r.batch_len = value.len;
    } else {
        r.args = value;
    }
    return cadre_client_call(c, &r, ret, error);
}

static cadre_client_code call(cadre_client *c, const char *method, cadre_client_json reference, int64_t timeout_ms,
                              cadre_client_json *ret, cadre_client_error *error)
{
    cadre_client_request r;
    cadre_client_request_init(&r, method);
    r.args = reference;
    r.timeout_ms = timeout_ms;
    return cadre_client_call(c, &r, ret, error);
}

cadre_client_code cadre_client_object_get(cadre_client *c, cadre_client_json reference, int64_t timeout_ms,
                                          cadre_client_json *ret, cadre_client_error *error)
{
    return call(c, "object.get", reference, timeout_ms, ret, error);
}

cadre_client_code cadre_client_object_pin(cadre_client *c, cadre_client_json reference, int64_t timeout_ms,
                                          cadre_client_error *error)
{
    return call(c, "object.pin", reference, timeout_ms, NULL, error);
}

cadre_client_code cadre_client_object_free(cadre_client *c, cadre_client_json reference, int64_t timeout_ms,
                                           cadre_client_error *error)
{
    return call(c, "object.free", reference, timeout_ms, NULL, error);
}
