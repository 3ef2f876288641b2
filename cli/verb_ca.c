// SPDX-License-Identifier: Apache-2.0
#include "cli/kubectl.h"
#include "cli/report.h"
#include "cli/verbs.h"

#include "common/base/mem.h"

#include <stdio.h>

enum { PEM_MAX = 1 << 20 };

// The answer of the API server. It proves who the operator is, because a user of the kubeconfig trusts the API server.
int verb_ca(const struct cli_options *o)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(PEM_MAX);
    struct err err = ERR_INIT;
    _cleanup_(free_p) char *path =
        xasprintf("/api/v1/namespaces/%s/services/https:cadre-operator:9443/proxy/v1/ca", o->operator_ns);
    const struct kubectl_args args = kubectl_args(o, "get", "--raw", path, NULL);
    int status = 0;
    if (kubectl_run(&args, &out, &err) < 0)
        status = report_err(&err);
    else
        fwrite(buf_str(&out), 1, out.len, stdout);
    return status;
}
