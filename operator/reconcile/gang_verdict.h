// SPDX-License-Identifier: Apache-2.0
// The API server's verdict on the pods of the present spec, from dry runs. It is also in Accepted.
#pragma once

#include "operator/reconcile/gang.h"

enum gang_verdict {
    GANG_OK,
    GANG_REFUSED,
    GANG_UNKNOWN, // the plan asks the API server, or tries later
};
enum gang_verdict gang_verdict(struct gang_decision *g);
// The same for a spec that would replace running pods. If `runs`, a spec that no existing nodes could ever take counts
// as refused: the owner keeps its pods, and the plan looks again when nodes change.
enum gang_verdict gang_verdict_of_change(struct gang_decision *g, bool runs);
// Call this if the API server refused a creation. Accepted then says what that means for the template.
void gang_verdict_refusal(struct gang_decision *g);
// Returns true if the API server refused the last try of a creation. A dry run of another spec does not count.
bool gang_verdict_refused_before(const struct gang_decision *g);
// Does the same, but only until the time of the next try.
bool gang_verdict_refused_lately(const struct gang_decision *g);
