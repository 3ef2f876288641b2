// SPDX-License-Identifier: Apache-2.0
// The texts of --help.
#pragma once

const char *help_of(const char *verb); // NULL or an unknown one: the summary
