// SPDX-License-Identifier: Apache-2.0
// The authority of a socket that only its owner reaches: whoever is there may call, and no process needs a ticket.
#ifndef CADRE_LOCAL_TRUST_H
#define CADRE_LOCAL_TRUST_H

#include "operator/gateway/authority.h"

extern const struct authority trust_everybody;

#endif
