// SPDX-License-Identifier: Apache-2.0
// Inputs of tests that say only what is special about them: an object with a member "like" is what
// tests/golden/world/NAME.json has, with the object's other members merged into it.
//
//   {"like": "pod 1 n2", "status": {"phase": "Failed"}}    world/pod.json with 1 for $1 and n2 for $2, and that phase
//
// Merged means: objects member by member; null takes a member away; an object for a list changes the list's items by
// their "type" or else their "name" ({"conditions": {"Ready": {"status": "False"}}}), null takes one away, further ones
// go to the end; anything else, and an object that has a "like" itself, replaces what was there.
#pragma once

#include "common/base/arena.h"

// The document in full. The test fails if the text cannot be read.
const char *likeness_expand(const char *json, struct arena *a);
