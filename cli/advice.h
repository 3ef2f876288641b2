// SPDX-License-Identifier: Apache-2.0
// Advice to a user about a group, by the reason of a condition.
#pragma once

const char *advice_of(const char *reason); // NULL = there is no advice for it
